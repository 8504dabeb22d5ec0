#!/usr/bin/env bats
#
# One order: sessions and messages stand in the order of their times, not in that of the lines, in every program.

load ../helper

setup() {
    sandbox
    use_echo
}

# order_is NAME COMMAND...: the first fields of what the command prints, joined by blanks.
order_is() {
    local wanted=$1
    shift
    run_expect 0 "$@"
    [[ $(cut -f 1 "$OUT" | paste -sd ' ') == "$wanted" ]] || fail "wanted $wanted, got $(cut -f 1 "$OUT" | paste -sd ' ')"
}

@test "order: an index that was made before a time had passed is made again" {
    hist_lines filler 3000 >h
    hist_line ahead user x "$(date -u -d '+3 seconds' +%FT%T.000000+00:00)" >>h
    hist_line now user x "$(date -u -d '-1 hour' +%FT%T.000000+00:00)" >>h
    order_is 'now ahead filler' hist-sessions --history h
    [[ -e h.idx ]] || fail 'there is no index'
    sleep 4
    order_is 'ahead now filler' hist-sessions --history h
    order_is 'ahead now filler' hist-sessions --history h
}

@test "order: every program has the order that a few lines of Python say" {
    RUN_LIMIT=300 run_expect 0 "$TESTS/tools/order-oracle" "${ORDER_ORACLE_HISTORIES:-30}"
    stdout_is "${ORDER_ORACLE_HISTORIES:-30} histories"
    stderr_empty
}

# wrong PROGRAM SCRIPT: the oracle sees it when a program is this script, in which `real` is the program.
wrong() {
    mkdir -p wrong
    printf '#!/bin/sh\nreal() { "%s" "$@"; }\n%s\n' "$BIN/$1" "$2" >"wrong/$1"
    chmod +x "wrong/$1"
    PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/tools/order-oracle" 40 1
    stdout_has "$3"
    rm -r wrong
}

# shellcheck disable=SC2016
@test "order: the oracle sees what is wrong" {
    wrong hist-sessions 'real "$@" | tac' 'hist-sessions'
    wrong hist-delete 'real "$@" | tail -n +2' '--keep'
    wrong hist-search 'real "$@" | tac' 'hist-search'
}
