# Where a run of tests that start servers works; to be sourced.
#
#     new_folder NAME       makes a folder for it, and prints its path
#
# In memory where that has room: on a disk, making the files of data directories takes a third of all processor time
# (perf, ext4).  A run needs up to 1.5 GB; three times as much must be free, as several run side by side.
new_folder() {
    local place=/tmp memory=/dev/shm room=$((4500 * 1024)) blocks size free
    if [ "$(stat -f -c %T $memory 2>/dev/null)" = tmpfs ] && [ -w $memory ] &&
        [[ ,$(findmnt -n -o OPTIONS -T $memory 2>/dev/null), != *,noexec,* ]]; then
        read -r blocks size < <(stat -f -c '%a %S' $memory)
        free=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
        [ $((blocks * (size / 1024))) -lt $room ] || [ "${free:-0}" -lt $room ] || place=$memory
    fi
    # Not "snowflake.", by which a registry's memory is called.
    mktemp -d "$place/snowflake-$1.XXXXXX"
}
