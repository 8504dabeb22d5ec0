#!/usr/bin/env bats
#
# hist-search finds what a search of a few lines of Python finds, on random histories.

load helper

# Under a sanitizer a start takes many times as long.
@test "search: 300 random histories give the same as the oracle" {
    local histories=300
    [[ ${VARIANT:-} != asan ]] || histories=60
    RUN_LIMIT=300 run_expect 0 "$TESTS/search-oracle" "$histories"
    stdout_is "$histories histories, $((histories * 5)) questions"
    stderr_empty
}

# The oracle is no oracle if it agrees with everything.
@test "search: the oracle sees what is wrong" {
    local wrong
    mkdir wrong
    for wrong in '--case-sensitive' '--limit=2' '-r user' '--reverse' '-v'; do
        printf '#!/bin/sh\nexec "%s" "$@" %s\n' "$BIN/hist-search" "$wrong" >wrong/hist-search
        chmod +x wrong/hist-search
        PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/search-oracle" 60
        stdout_has 'seed ' wanted
    done
}
