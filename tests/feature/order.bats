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

# Three sessions of today, and two of 2023 in old.jsonl.
today_and_old() {
    local i
    for i in 1 2 3; do
        run_expect 0 chat -q -s "today-$i" "today $i"
    done
    for i in 1 2; do
        hist_line "old-$i" user "old $i" "2023-01-0${i}T03:04:05+00:00"
    done >old.jsonl
}

# What every program says then.
today_is_first() {
    order_is 'today-3 today-2 today-1 old-2 old-1' hist-sessions
    order_is 'old-1 old-2 today-1 today-2 today-3' hist-sessions --reverse
    order_is 'today-3 today-2' hist-sessions -n 2
    order_is 'today-3 today-2' hist-sessions -n 2 --id today
    order_is 'today-2 today-1 old-2 old-1' hist-delete --dry-run --keep 1
    order_is 'today-1 old-2 old-1' hist-delete --dry-run --keep 2
    order_is 'old-2 old-1' hist-delete --dry-run --older-than 30d
    # Nearly everything has to go, and the oldest goes first; then a little, which takes the oldest alone.
    order_is 'today-3 today-2 today-1 old-2 old-1' hist-delete --dry-run --max-size 0
    order_is 'old-1' hist-delete --dry-run --max-size "$(($(stat -c %s "$1") - 1))"
    run_expect 0 hist-show --json last
    json_is "$OUT" .session_id today-3 today-3
    run_expect 0 chat -c --dry-run more
    stdout_has '"today 3"'
    run_expect 0 hist-load --json
    json_is "$OUT" .session_id today-3 today-3
    run_expect 0 hist-export --all-sessions -f json
    [[ $(jq -r '.messages[].session_id' "$OUT" | uniq | paste -sd ' ') == 'old-1 old-2 today-1 today-2 today-3' ]] ||
        fail "$(jq -r '.messages[].session_id' "$OUT")"
    run_expect 0 hist-stats --newest 2 --by session
    stdout_line 2 $'today-3\t2\t1\t2\t4\t0'
    run_expect 0 hist-delete --force --keep 3
    order_is 'today-3 today-2 today-1' hist-sessions
}

@test "order: after an import of old conversations, today's are the last used" {
    today_and_old
    run_expect 0 hist-import -q old.jsonl
    today_is_first "$HOME/.local/share/aicoder/history.jsonl"
}

@test "order: after a sync with a machine that has old conversations, today's are the last used" {
    local today=$HOME
    export HOME=$BATS_TEST_TMPDIR/b
    mkdir -p "$HOME" folder
    today_and_old
    run_expect 0 hist-delete --force today-1 today-2 today-3
    run_expect 0 hist-import -q old.jsonl
    run_expect 0 hist-sync folder
    export HOME=$today
    today_and_old
    run_expect 0 hist-sync folder
    today_is_first "$HOME/.local/share/aicoder/history.jsonl"
}

@test "order: of all histories, by the times, too" {
    today_and_old
    make_repo repo
    cd repo
    run_expect 0 chat -q -s here 'in the repository'
    run_expect 0 hist-import -q ../old.jsonl
    order_is 'here today-3 today-2 today-1 old-2 old-1' hist-sessions --all
    run_expect 0 hist-sessions --all --json -n 1
    json_is "$OUT" .session_id here
}

@test "order: a session counts as used when its latest message was written" {
    hist_line both user late 2024-06-03T10:00:00.000000+00:00 >h
    hist_line one user one 2024-06-02T10:00:00.000000+00:00 >>h
    hist_line both user early 2024-06-01T10:00:00.000000+00:00 >>h
    run_expect 0 hist-sessions --history h
    stdout_is $'both\t2024-06-03T10:00:00.000000+00:00\t2\tlate' $'one\t2024-06-02T10:00:00.000000+00:00\t1\tone'
    order_is one hist-delete --history h --dry-run --keep 1
    order_is both hist-sessions --history h --since 2024-06-03
    order_is one hist-sessions --history h --until 2024-06-02
    # Within a session the messages stay in the order of the lines.
    run_expect 0 hist-show --history h --json both
    json_is "$OUT" .content late early
}

@test "order: of the same time, the later line is the newer one" {
    local i
    for i in a b c b; do
        hist_line "$i" user "$i" 2024-06-03T10:00:00.000000+00:00
    done >h
    order_is 'b c a' hist-sessions --history h
    order_is 'b c' hist-sessions --history h -n 2
}

# A clock of the year 9999 wrote the first line, one in the middle, the last one, or all.
@test "order: a wrong clock does not keep a session at the first place" {
    local odd=9999-06-01T00:00:00.000000+00:00
    hist_line odd user x $odd >h
    hist_line a user x 2024-01-01T00:00:00.000000+00:00 >>h
    hist_line b user x 2024-02-01T00:00:00.000000+00:00 >>h
    order_is 'b a odd' hist-sessions --history h
    order_is 'a odd' hist-delete --history h --dry-run --keep 1
    hist_line c user x $odd >>h
    hist_line old user x 2020-02-01T00:00:00.000000+00:00 >>h
    order_is 'c b a old odd' hist-sessions --history h
    hist_line d user x 2024-03-01T00:00:00.000000+00:00 >>h
    order_is 'd c b a old odd' hist-sessions --history h
    hist_line e user x '' '{"timestamp":"yesterday"}' >>h
    order_is 'e d c b a old odd' hist-sessions --history h
    run_expect 0 hist-show --history h --json last
    json_is "$OUT" .session_id e
    sed 's/"timestamp":"[^"]*"/"timestamp":"'$odd'"/' h >all
    order_is 'e d old c b a odd' hist-sessions --history all
    sed 's/"timestamp":"[^"]*"/"timestamp":"never"/' h >all
    order_is 'e d old c b a odd' hist-sessions --history all
    order_is 'old c b a odd' hist-delete --history all --dry-run --keep 2
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

@test "order: a session does not expire while its latest message is young" {
    export CHAT_HISTORY=h CHAT_SESSION_TIMEOUT=30m
    run_expect 0 chat -q -s s one
    hist_line s user old 2020-01-01T00:00:00.000000+00:00 >>h
    run_expect 0 hist-load -q s
    touch -d '2 hours ago' h.session
    run_expect 0 chat --dry-run two
    stdout_has '"one"'
}

@test "order: a session of titles alone is in no list" {
    hist_line a user x 2024-06-01T00:00:00.000000+00:00 >h
    hist_line gone title 'a name' 2024-06-02T00:00:00.000000+00:00 >>h
    order_is a hist-sessions --history h
    order_is '' hist-sessions --history h --id gone
    run_expect 0 hist-show --history h --json last
    json_is "$OUT" .session_id a
    run_expect 0 hist-export --history h --all-sessions -f md
    stdout_lacks 'a name'
    # It can still be named, to erase it.
    run_expect 0 hist-title --history h gone
    stdout_is 'a name'
    run_expect 0 hist-delete --history h --force gone
    run_expect 1 grep gone h
}

# ---- against an oracle

@test "order: every program has the order that a few lines of Python say" {
    RUN_LIMIT=300 run_expect 0 "$TESTS/tools/order-oracle" --search "${ORDER_ORACLE_HISTORIES:-30}"
    stdout_is "${ORDER_ORACLE_HISTORIES:-30} histories"
    stderr_empty
}

# wrong PROGRAM SCRIPT: the oracle sees it when a program is this script, in which `real` is the program.
wrong() {
    mkdir -p wrong
    printf '#!/bin/sh\nreal() { "%s" "$@"; }\n%s\n' "$BIN/$1" "$2" >"wrong/$1"
    chmod +x "wrong/$1"
    PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/tools/order-oracle" --search 40 1
    stdout_has "$3"
    rm -r wrong
}

# shellcheck disable=SC2016
@test "order: the oracle sees what is wrong" {
    wrong hist-sessions 'real "$@" | tac' 'hist-sessions'
    wrong hist-delete 'real "$@" | tail -n +2' '--keep'
    wrong hist-show 'shift; real -q --raw --json --history h0 "$(hist-sessions -q --history h0 --reverse -n 1 | cut -f 1)"' last
    wrong hist-search 'real "$@" | tac' 'hist-search'
    wrong hist-stats 'real "$@" | sed "s/\"messages\":1/\"messages\":2/"' 'hist-stats'
}
