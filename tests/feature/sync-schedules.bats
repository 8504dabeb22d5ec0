#!/usr/bin/env bats
#
# hist-sync: machines whose disks are restored, whose folders arrive late and in part, and whose ids change.

load ../helper

@test "sync: no line is lost and no deleted line is back, whatever happens to machines and folders" {
    cd "$TMPDIR" || return 1
    run_expect 0 "$TESTS/tools/sync-schedules" 1 10
    stdout_has '10 schedules, 0 failed'
}
