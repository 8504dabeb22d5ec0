#!/usr/bin/env bats
#
# The order of the messages that a search finds: the newest first, by their times, whatever their places in the file.

load ../helper
load ../history

# at TIME TEXT [SESSION]: a message of that time; TIME as date(1) reads it.
at() {
    put "${3:-s}" user "hit $2" "$(date -u -d "$1" +%FT%T.000000+00:00)"
}

# found WORDS...: hist-search finds these, after `hit`, in this order.
found() {
    local want=() word
    for word; do want+=("hit $word"); done
    stdout_json .content "${want[@]}"
}

@test "order-search: after an import of old conversations, today's messages are the newest" {
    for i in 1 2 3; do at "$i minutes ago" "today $i" "today-$i"; done
    for i in 1 2; do
        printf '{"id":"a%s","session_id":"old-%s","timestamp":"2023-01-0%sT03:04:05+00:00","role":"user","content":"hit old %s"}\n' \
            $i $i $i $i
    done >old.jsonl
    run_expect 0 hist-import -q old.jsonl
    run_expect 0 hist-search --json hit
    found 'today 1' 'today 2' 'today 3' 'old 2' 'old 1'
    run_expect 0 hist-search --json -n 1 hit
    found 'today 1'
    run_expect 0 hist-search --json -n 4 --reverse hit
    found 'old 2' 'today 3' 'today 2' 'today 1'
    run_expect 0 hist-search -l hit
    stdout_is today-1 today-2 today-3 old-2 old-1
    run_expect 0 hist-search -l --reverse hit
    stdout_is old-1 old-2 today-3 today-2 today-1
    run_expect 0 hist-search -L old
    stdout_is today-1 today-2 today-3
    run_expect 0 hist-search -L --reverse old
    stdout_is today-3 today-2 today-1
    run_expect 0 hist-search --json -v old
    found 'today 1' 'today 2' 'today 3'
    run_expect 0 hist-search --json --query '-today'
    found 'old 2' 'old 1'
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never -n 1 hit
    stdout_has 'today 1'
}

@test "order-search: of the same time, the later line is the newer one" {
    for i in 1 2 3; do at 2024-01-01 "$i"; done
    run_expect 0 hist-search --json hit
    found 3 2 1
    run_expect 0 hist-search --json --reverse hit
    found 1 2 3
    run_expect 0 hist-search --json -n 2 --reverse hit
    found 2 3
}

@test "order-search: a time that is ahead or cannot be read counts as the latest before it" {
    put s user 'hit unreadable, first' '' '{"timestamp":"yesterday"}'
    at 2024-01-03 3
    at '10 years' 'ahead, after 3'
    at 2024-01-05 5
    at 2024-01-04 4
    put s user 'hit unreadable, after 5' '' '{"timestamp":"at noon"}'
    at 2024-01-01 1
    run_expect 0 hist-search --json hit
    found 'unreadable, after 5' 5 4 'ahead, after 3' 3 1 'unreadable, first'
}

@test "order-search: the messages of several histories are one list" {
    mkdir a b
    HISTORY=a/h at 2024-01-03 'a 3'
    HISTORY=a/h at 2024-01-01 'a 1'
    HISTORY=a/h at 2024-01-05 'a 5'
    HISTORY=b/h at 2024-01-04 'b 4'
    HISTORY=b/h at 2024-01-05 'b 5'
    HISTORY=b/h at 2024-01-02 'b 2'
    both=(--history a/h --history b/h)
    run_expect 0 hist-search "${both[@]}" --json hit
    found 'a 5' 'b 5' 'b 4' 'a 3' 'b 2' 'a 1'
    run_expect 0 hist-search "${both[@]}" --json -n 3 --reverse hit
    found 'b 4' 'b 5' 'a 5'
    # Sessions of the same id in two histories are two sessions.
    run_expect 0 hist-search "${both[@]}" -l hit
    stdout_is $'s\ta/h' $'s\tb/h'
    run_expect 0 hist-search "${both[@]}" -c hit
    stdout_is 6
    run_expect 0 hist-search "${both[@]}" --in-session --json 3 1
    found 'a 3' 'a 1'
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never --history b/h --history a/h hit
    stdout_is b/h 's  2024-01-05 00:00  user  hit b 5' 's  2024-01-04 00:00  user  hit b 4' \
        's  2024-01-02 00:00  user  hit b 2' a/h 's  2024-01-05 00:00  user  hit a 5' \
        's  2024-01-03 00:00  user  hit a 3' 's  2024-01-01 00:00  user  hit a 1'
    # A session counts in the history in which it was named.
    run_expect 0 hist-search "${both[@]}" --json -s s --query 'hit until:2024-01-02'
    found 'b 2' 'a 1'
    run_expect 0 hist-search "${both[@]}" --json --query 'hit title:a since:2024-01-03'
    found 'a 5' 'a 3'
}

@test "order-search: the messages around a match stay in the order of the file" {
    at 2024-01-02 'old 1' one
    put one assistant 'first answer' 2024-01-01T00:00:00.000000+00:00
    at 2024-01-05 'new' two
    put two assistant 'second answer' 2024-01-06T00:00:00.000000+00:00
    at 2024-01-03 'middle' three
    run_expect 0 hist-search -A 1 hit
    cut -f 1,5 "$OUT" >rows
    is rows rows $'two\thit new' $'two\tsecond answer' -- $'three\thit middle' -- $'one\thit old 1' $'one\tfirst answer'
    run_expect 0 hist-search -A 1 -n 1 --reverse hit
    cut -f 1,5 "$OUT" >rows
    is rows rows $'two\thit new' $'two\tsecond answer'
    run_expect 0 hist-search -A 1 --reverse hit
    cut -f 1,5 "$OUT" >rows
    is rows rows $'one\thit old 1' $'one\tfirst answer' -- $'three\thit middle' -- $'two\thit new' $'two\tsecond answer'
}

# make_large: 14 MB in two parts, of which the second is older, with one newer message in its middle.
make_large() {
    jq -cn '("lorem ipsum dolor " * 100) as $text | range(7000) | . as $n
        | (if $n == 5000 then 9000 elif $n < 3500 then $n + 3500 else $n - 3500 end) as $age
        | {id: "m\($n)", session_id: "s\($n % 7)", timestamp: ((1700000000 + $age * 60) | todate), role: "user",
           content: ("number \($n) \($text)" + (if $n % 500 == 0 then " a RARE word" else "" end))}' >"$HISTORY"
}

@test "order-search: in a large history, with and without indexes, on any number of threads" {
    local want=(m5000 m3000 m2500 m2000 m1500 m1000 m500 m0 m6500 m6000 m5500 m4500 m4000 m3500) j
    make_large
    for j in 1 2 4; do
        rm -f "$HISTORY.idx" "$HISTORY.skip"
        for _ in 1 2 3; do
            run_expect 0 hist-search -j $j --json rare
            stdout_json .id "${want[@]}"
        done
        run_expect 0 hist-search -j $j --json -n 3 lorem
        stdout_json .id m5000 m3499 m3498
        run_expect 0 hist-search -j $j --json -n 2 --reverse lorem
        stdout_json .id m3499 m5000
        run_expect 0 hist-search -j $j -c lorem
        stdout_is 7000
    done
    [[ -f $HISTORY.skip ]] || fail 'there is no skip index'
    # What comes after the index was made is in the order, too.
    put s user 'one more rare' 2023-11-18T05:00:00.000000+00:00 '{"id":"middle"}'
    put s user 'the newest rare' "$(date -u +%FT%T.000000+00:00)" '{"id":"newest"}'
    run_expect 0 hist-search --json rare
    stdout_json .id newest m5000 m3000 m2500 m2000 m1500 middle m1000 m500 m0 m6500 m6000 m5500 m4500 m4000 m3500
}

# Only what cannot be the newest is left unread.
@test "order-search: the newest messages are found without reading the rest" {
    make_large
    hist-sessions -q >"$OUT"
    traced -o trace -e trace=pread64 hist-search -j 1 -n 1 lorem >"$OUT"
    [[ $(cut -f 2 "$OUT") == m5000 ]] || fail "$(<"$OUT")"
    [[ $(awk -F'= ' '{ n += $NF } END { print n }' trace) -le 2000000 ]] || fail "$(<trace)"
}
