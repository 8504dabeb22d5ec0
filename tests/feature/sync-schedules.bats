#!/usr/bin/env bats
#
# hist-sync: machines whose disks are restored or copied, whose folders arrive late and in part, whose clocks and ids
# differ, and whose programs are killed and cut off, between a folder, ssh and a database.

load ../helper

@test "sync: no line is lost and no deleted line is back, whatever happens to machines and folders" {
    [[ $(uname) == Linux && $VARIANT != asan ]] || skip 'faults.so is for Linux, without the sanitizers'
    RUN_LIMIT=240 run_expect 0 "$TESTS/tools/sync-schedules" 1 10
    stderr_empty
    stdout_has '10 schedules, 0 failed'
}

@test "sync-schedules: a line that the last machine sends to the database is waited for" {
    [[ $(uname) == Linux && $VARIANT != asan ]] || skip 'faults.so is for Linux, without the sanitizers'
    run_expect 0 "$TESTS/tools/sync-schedules" --steps 7 70939
    stdout_has '1 schedules, 0 failed'
}
