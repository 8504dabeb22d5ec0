#!/usr/bin/env bats
#
# hist-stats: messages, sessions and tokens counted.

load ../helper
load ../history

# What is before them is not read, once there is an index.
@test "hist-stats: --newest reads the end of a history" {
    hist_lines s 4000 >"$HISTORY"
    run_expect 0 hist-stats --newest 10
    traced -o trace -y -e trace=pread64,read hist-stats --newest 10 >"$OUT"
    awk -v file="${HISTORY##*/}" 'index($0, file) && $NF > 0 { sum += $NF } END { exit sum > 400000 }' trace ||
        fail "$(grep "${HISTORY##*/}" trace)"
}
