# What the benchmarks share; to be sourced after tools/servers.sh.
#
# Machines are noisy, so only ratios within one run count: candidates take turns, round after round, and the median of
# the rounds counts.

title() { printf '\n%s\n' "$*"; }
progress() { [ ! -t 2 ] || printf '\r\033[K%s' "$*" >&2; }

# Median of the numbers on standard input.
median() { sort -g | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

# Ids that ran ahead of the clock (max_drift) must be past before there can be others without: the clock catches up by itself.
wait_for_clock() { # SERVER
    until [ "$(sql "$1" -Atc "SELECT coalesce(drift <= '0', true) FROM snowflake_stat")" = t ]; do
        progress "waiting for the clock, which ids are ahead of by $(sql "$1" -Atc 'SELECT drift FROM snowflake_stat')"
        sleep 0.1
    done
    progress
}

# VALUE as SHOW prints it.
set_drift() { # SERVER VALUE
    sql "$1" -c "ALTER SYSTEM SET snowflake.max_drift = '$2'" -c "SELECT pg_reload_conf()" -o /dev/null
    until [ "$(sql "$1" -Atc 'SHOW snowflake.max_drift')" = "$2" ]; do :; done
}

# Nanoseconds for one call, of all clients together, in statements with many calls.
per_call() { # SERVER CLIENTS BATCHES CALLS FUNCTION [STATEMENT-BEFORE]
    echo "${6:-} SELECT count($5) FROM (SELECT generate_series(1, $4) OFFSET 0) calls;" >"$base/calls.sql"
    bench_client "$1" -c "$2" -j "$2" -t "$3" -f "$base/calls.sql" |
        awk -v calls=$(($2 * $4)) '/^tps/ {print 1e9 * '"$2"' / ($3 * calls)}'
}
