# Private PostgreSQL servers for the demo and the benchmark; to be sourced.
#
# They listen on a Unix socket in a temporary folder only, and are stopped and
# removed when the script ends, however it ends.  PostgreSQL refuses to run as
# root: run_unprivileged hands a script over to the user postgres then.
#
#     run_unprivileged "$@"             goes on as an ordinary user
#     start_server NAME [SETTING...]    e.g. start_server shard1 "snowflake.node_id='1'"
#     sql NAME [psql arguments]         asks one server
#     give_clock NAME                   starts it again, with a clock that set_clock can set: libfaketime
#     set_clock NAME SECONDS            so far ahead of the true clock
#     step TITLE                        begins a step of a demo
#     in_short LINE                     a line for the end of all demos

: "${PG_CONFIG:=pg_config}"
bindir=$("$PG_CONFIG" --bindir)

# Starts the calling script again as postgres, from a copy that postgres can read.
run_unprivileged() {
    [ "$(id -u)" = 0 ] || return 0
    local copy status=0
    copy=$(mktemp -d /tmp/snowflake.XXXXXX)
    mkdir "$copy/tree"
    cp -R tools bench examples "$copy/tree/"
    chown -R postgres "$copy"
    (cd "$copy/tree" && exec runuser -u postgres -- env HOME="$copy" PG_CONFIG="$PG_CONFIG" bash "$0" "$@") || status=$?
    # What a benchmark has written.
    [ ! -d "$copy/tree/bench/results" ] || { rm -rf bench/results && cp -R "$copy/tree/bench/results" bench/; }
    rm -rf "$copy"
    exit $status
}

base=''
started=()

stop_servers() {
    local name
    for name in "${started[@]}"; do
        "$bindir/pg_ctl" -D "$base/$name" -m immediate -w stop >/dev/null 2>&1 || :
    done
    [ -z "$base" ] || rm -rf "$base"
}

start_server() {
    local name=$1
    shift
    if [ -z "$base" ]; then
        base=$(mktemp -d /tmp/snowflake.XXXXXX)
        trap stop_servers EXIT
        trap 'exit 130' INT TERM
    fi
    "$bindir/initdb" -D "$base/$name" -U postgres -A trust --no-locale -E UTF8 >"$base/$name.initdb" 2>&1 ||
        { cat "$base/$name.initdb" >&2; return 1; }
    # The number of the server is its port: all sockets are in one folder.
    {
        echo "shared_preload_libraries = 'snowflake'"
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$base'"
        echo "port = $((5433 + ${#started[@]}))"
        printf '%s\n' "$@"
    } >> "$base/$name/postgresql.conf"
    started+=("$name")
    "$bindir/pg_ctl" -D "$base/$name" -l "$base/$name.log" -w start >/dev/null ||
        { cat "$base/$name.log" >&2; return 1; }
}

# The port of a server.
port_of() {
    local i
    for i in "${!started[@]}"; do
        [ "${started[$i]}" != "$1" ] || echo $((5433 + i))
    done
}

set_clock() {
    echo "$2" >"$base/$1.clock.new"
    mv "$base/$1.clock.new" "$base/$1.clock"
}

give_clock() {
    local name=$1 library
    library=$(compgen -G '/usr/lib/*/faketime/libfaketime.so.1' || compgen -G '/usr/lib*/faketime/libfaketime.so.1' ||
        compgen -G '/usr/local/lib*/faketime/libfaketime.so.1') || { echo 'libfaketime is not installed' >&2; return 1; }
    set_clock "$name" +0
    "$bindir/pg_ctl" -D "$base/$name" -m fast -w stop >/dev/null
    LD_PRELOAD=${library%%$'\n'*} FAKETIME_TIMESTAMP_FILE="$base/$name.clock" FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 \
        "$bindir/pg_ctl" -D "$base/$name" -l "$base/$name.log" -w start >/dev/null || { cat "$base/$name.log" >&2; return 1; }
}

steps=0
step() {
    steps=$((steps + 1))
    # Bold where somebody looks.
    if [ -t 1 ]; then printf '\n\033[1m%d. %s\033[0m\n' $steps "$*"; else printf '\n%d. %s\n' $steps "$*"; fi
}

# Descriptor 3 is where "make demo" collects them.
in_short() {
    if { true >&3; } 2>/dev/null; then echo "$*" >&3; else echo "$*"; fi
}

sql() {
    local name=$1
    shift
    "$bindir/psql" -X -q -P pager=off -v ON_ERROR_STOP=1 -h "$base" -p "$(port_of "$name")" -U postgres "$@"
}

bench_client() {
    local name=$1
    shift
    "$bindir/pgbench" -h "$base" -p "$(port_of "$name")" -U postgres -n "$@" postgres
}
