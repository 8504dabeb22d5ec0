#!/usr/bin/env bats
#
# The readers, the exports and the way back through an import do what a few lines of Python do, on random
# histories.

load ../helper

# Under a sanitizer a start takes many times as long.
@test "oracle: 1,000 random histories give what it says" {
    local histories=1000
    [[ $VARIANT != asan ]] || histories=100
    RUN_LIMIT=300 run_expect 0 "$TESTS/tools/oracle" "$histories"
    stdout_is "$histories histories, $((histories * 5 + (histories + 3) / 4)) questions"
    stderr_empty
}

@test "oracle: an index changes nothing, whatever has happened to it" {
    local histories=100
    [[ $VARIANT != asan ]] || histories=30
    RUN_LIMIT=300 run_expect 0 "$TESTS/tools/oracle" "$histories" 7000 8 large
    stdout_is "$histories histories, $((histories * 8 + (histories + 3) / 4)) questions"
    stderr_empty
}

# wrong PROGRAM ARGUMENT...: the oracle sees it when these are added to a program's, with the seed that repeats it.
wrong() {
    local program=$1 seed
    shift
    rm -rf wrong
    mkdir wrong
    printf '#!/bin/sh\nexec "%s" "$@" %s\n' "$BIN/$program" "$*" >"wrong/$program"
    chmod +x "wrong/$program"
    PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/tools/oracle" 150
    stdout_has 'wanted ' 'history b'
    seed=$(sed -n '1s/^seed \([0-9]*\): .*/\1/p' "$OUT")
    cp "$OUT" first
    PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/tools/oracle" 1 "$seed"
    stdout_is_file first
    run_expect 0 "$TESTS/tools/oracle" 1 "$seed"
}

# The oracle is no oracle if it agrees with everything.
@test "oracle: it sees what is wrong, and a seed repeats it" {
    wrong hist-search --reverse
    wrong hist-export --raw
}

@test "oracle: what an import loses is seen" {
    mkdir wrong
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nsed -i "s/assistant/user/" first\nexec "%s" "$@"\n' "$BIN/hist-import" >wrong/hist-import
    chmod +x wrong/hist-import
    PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/tools/oracle" 60
    stdout_has 'there and back' 'history b'
}

# The language of queries: hist-search and the script of the page, which node runs instead of a browser.
@test "oracle: a query finds the same messages and sessions with hist-search and in the page" {
    command -v node >/dev/null || skip 'node is missing'
    local queries=300
    [[ ${VARIANT:-} != asan ]] || queries=50
    RUN_LIMIT=300 run_expect 0 "$TESTS/tools/query-oracle" "$queries"
    stdout_has "$queries queries: " ' error' ' messages'
    stderr_empty
    # It sees a difference, and repeats it.
    mkdir wrong
    printf '#!/bin/sh\nexec "%s" "$@" --role=user\n' "$BIN/hist-search" >wrong/hist-search
    chmod +x wrong/hist-search
    PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/tools/query-oracle" "$queries"
    stdout_has 'seed 1, query ' 'the page:    ' 'hist-search: '
}
