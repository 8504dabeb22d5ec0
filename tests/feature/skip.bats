#!/usr/bin/env bats
#
# The skip index beside a large history: with it a search reads less, and prints the same.

load ../helper
load ../sidecar

setup() {
    sandbox
    use_history h.jsonl
}

# make_large [FROM]: 27 MB, two chunks and some, in lines that begin as ours; `zebra N` in one message each of
# 1,000, and in a field of all; bad lines among them.
make_large() {
    python3 - "$HISTORY" "${1:-0}" <<'X'
import sys
text = 'lorem ipsum dolor sit amet ' * 70
with open(sys.argv[1], 'w', encoding='utf-8') as f:
    for n in range(int(sys.argv[2]), int(sys.argv[2]) + 13000):
        word = f'zebra {n}' if n % 1000 == 7 else 'STRASSE' if n == 4444 else 'Stra\\u00dfe' if n == 9999 else ''
        f.write(f'{{"id":"1719500000000-{n:08d}","session_id":"sess_1719500000000_{n % 50:06d}","timestamp":"2024-06-27T15:00:00.000000+00:00",'
                f'"role":"{"user" if n % 2 else "assistant"}","content":"line {n} {word} {text}","model":"zebra"}}\n')
        if n % 2000 == 1500:
            f.write('a zebra\n')
X
    settle
}

# settle: waits until a later change of the history has another time; before that no search uses an index.
settle() {
    sleep 0.1
}

# make_skip: searches until the index is complete.
make_skip() {
    local before='' now=none
    while [[ $now != "$before" ]]; do
        before=$now
        hist-search -q -j 2 zzqq 2>/dev/null || [[ $? == 1 ]]
        now=$(cksum <"$HISTORY.skip")
    done
}

export SUFFIX=.skip
QUESTIONS=(
    'hist-search -c -j 1 zebra'
    'hist-search -j 2 ZEBRA'
    'hist-search -o --reverse stra\u00dfe'
    'hist-search -c nothing'
    'hist-search -c -e 4007 -e 5007'
)
# Some of which read all of it, and more than once.
ALL_QUESTIONS=(
    "${QUESTIONS[@]}"
    'hist-search --json -n 3 zebra'
    'hist-search -c strasse'
    'hist-search -c -s 000007 zebra'
    'hist-search -l zebra'
    'hist-search -q nothing'
    'hist-search -c -w 4007'
    'hist-search -v -c lorem'
    'hist-search -C 1 -n 2 zebra'
    'hist-search -c li'
    'hist-search -E -c zebra.4'
)

# again: another program appends a line that is there.
again() {
    sed -n 8p "$HISTORY" >line
    cat line >>"$HISTORY"
}

no_skip() {
    [[ ! -e $HISTORY.skip ]] || fail "there is a skip index"
}

@test "skip: each search adds a part of it, and later searches read less" {
    make_large
    QUESTIONS=("${ALL_QUESTIONS[@]}")
    agree
    [[ -f $HISTORY.skip && $(stat -c %a "$HISTORY.skip") == 600 ]] || fail "$(ls -l)"
    make_skip
    remember "$HISTORY.skip"
    agree
    unchanged "$HISTORY.skip"
    reads 4000 hist-search -c zebra
    stdout_is 13
    reads 2500 hist-search -c nothing || [[ $(<"$OUT") == 0 ]]
    run_expect 0 hist-sessions -q
}

@test "skip: a search adds no more than a 24th of the history" {
    local searches=0 before='' now=none
    make_large
    while [[ $now != "$before" ]]; do
        before=$now
        run_expect 1 hist-search -c nothing
        now=$(cksum <"$HISTORY.skip")
        searches=$((searches + 1))
    done
    [[ $searches -ge 23 && $searches -le 27 ]] || fail "$searches searches"
}

@test "skip: a search on a terminal makes all of it, after its hits" {
    make_large
    run_expect 1 on_tty --fds 1 hist-search nothing
    stdout_empty
    remember "$HISTORY.skip"
    run_expect 1 hist-search -c nothing
    unchanged "$HISTORY.skip"
    reads 2500 hist-search -c nothing || [[ $(<"$OUT") == 0 ]]
    rm "$HISTORY.skip"
    traced -f -y -o trace -e trace=openat,write python3 -S "$TESTS/tools/on-tty" --fds 1 hist-search zebra >"$OUT"
    stdout_has zebra
    run_expect 0 awk '/write\(1/ { printed = 1 } /O_CREAT.*h\.jsonl\.skip/ { made++; early += !printed } END { exit !made || early }' trace
}

@test "skip: the hits are printed before it is made" {
    make_large
    traced -f -y -o trace -e trace=openat,write hist-search -c zebra >"$OUT"
    stdout_is 13
    run_expect 0 awk '/write\(1/ { printed = 1 } /O_CREAT.*h\.jsonl\.skip/ { made++; early += !printed } END { exit !made || early }' trace
}

@test "skip: a line across many sections is not read for each of them" {
    make_large
    head -c "$((100000000 - $(stat -c %s "$HISTORY")))" /dev/zero >>"$HISTORY"
    echo >>"$HISTORY"
    again
    settle
    # Each of the threads may read it, and so does the growing index.
    reads 300000 hist-search -c zebra
    stdout_is 14
    [[ -f $HISTORY.skip ]]
    run_expect 0 hist-search -c zebra
    stdout_is 14
}

@test "skip: the history is on the disk before the index says something of it" {
    make_large
    traced -f -y -o trace -e trace=fdatasync,pwrite64 hist-search -c zebra >"$OUT"
    stdout_is 13
    run_expect 0 awk '/fdatasync\(.*h\.jsonl>\) *= 0/ { synced = 1 } /pwrite64\(.*h\.jsonl\.skip>/ { made++; early += !synced } END { exit !made || early }' trace
}

@test "skip: a search that does not need it makes none" {
    local args
    make_large
    for args in '-n 1 zebra' '-q lorem' '-c li' '-E -c [z]' '-v -c zebra'; do
        # shellcheck disable=SC2086
        run_expect 0 hist-search $args
        no_skip
    done
    head -c 12000000 "$HISTORY" >small
    run_expect 1 hist-search --history small -c nothing
    run_expect 2 ls small.skip small.idx
}

@test "skip: a history that was changed by hand" {
    make_large
    make_skip
    python3 -c 'f = open("h.jsonl", "r+b"); d = f.read(); f.seek(d.index(b"lorem", 3000000)); f.write(b"nothi")'
    run_expect 0 hist-search -c nothi
    stdout_is 1
    agree
    # A line is appended before a search has read the change.
    python3 -c 'f = open("h.jsonl", "r+b"); d = f.read(); f.seek(d.index(b"dolor", 9000000)); f.write(b"nothi")'
    again
    run_expect 0 hist-sessions
    run_expect 0 hist-search -c nothi
    stdout_is 2
    agree
    truncate -s 20000000 "$HISTORY"
    agree
    cp "$HISTORY" copy
    perl -pi -e 's/zebra 4007/giraffe!!!/' copy
    mv copy "$HISTORY"
    run_expect 0 hist-search -c 'giraffe!!!'
    stdout_is 1
    agree
}

@test "skip: a history that is changed by hand while one of our programs waits for the disk" {
    make_large
    make_skip
    background strace -qq -o trace -P "$HISTORY" -e trace=fdatasync -e inject=fdatasync:signal=STOP \
        hist-append -s sess_1719500000000_000001 more
    wait_for held
    tail -n 1 "$HISTORY" | grep -q '"more"'
    settle
    python3 -c 'f = open("h.jsonl", "r+b"); d = f.read(); f.seek(d.index(b"lorem", 3000000)); f.write(b"nothi")'
    [[ ! -s $OUT.bg ]] || fail 'it did not wait'
    pkill -CONT -P "$BG" -x hist-append
    finish 0
    run_expect 0 hist-search -c nothi
    stdout_is 1
}

@test "skip: it keeps nothing of deleted sessions" {
    make_large
    make_skip
    run_expect 0 hist-delete --force sess_1719500000000_000007
    no_skip
    agree
    run_expect 0 hist-check -q --repair
    no_skip
    agree
    [[ -f $HISTORY.skip ]]
}

@test "skip: in a repository it is history.skip, and one that came with a clone is not used" {
    unset CHAT_HISTORY
    make_repo repo
    mkdir -p repo/.git/aicoder
    cd repo
    HISTORY=.git/aicoder/history.jsonl make_large
    run_expect 1 hist-search -c nothing
    [[ $(ls -A .git/aicoder) == history.jsonl ]] || fail "$(ls -A .git/aicoder)"
    run_expect 0 hist-load sess_1719500000000_000001
    run_expect 1 hist-search -c nothing
    run_expect 0 ls .git/aicoder
    stdout_is history.idx history.jsonl history.skip owner session
}

@test "skip: another file in its place is left alone" {
    make_large
    echo mine >other
    ln -s other "$HISTORY.skip"
    run_expect 0 hist-search -c zebra
    stdout_is 13
    ln -f other "$HISTORY.skip"
    run_expect 0 hist-search -c zebra
    is mine other mine
    rm "$HISTORY.skip"
    cp other "$HISTORY.skip"
    run_expect 0 hist-search -c zebra
    run_expect 0 hist-delete --force sess_1719500000000_000049
    is mine "$HISTORY.skip" mine
    rm "$HISTORY.skip"
    mkfifo "$HISTORY.skip"
    run_expect 0 hist-search -c zebra
    [[ -p $HISTORY.skip ]]
    run_expect 2 hist-export -f md -o "$HISTORY.skip" sess_1719500000000_000001
    stderr_is "hist-export: --output: '$HISTORY.skip' belongs to the history (see 'hist-export --help')"
}

@test "skip: on a full disk it is removed, without a message" {
    local call
    make_large
    for call in pwrite64:error=ENOSPC:when=1 pwrite64:error=ENOSPC:when=2 pwrite64:error=EIO:when=2; do
        rm -f "$HISTORY".*
        traced -f -o trace -e trace=pwrite64 -e "inject=$call" hist-search -c zebra >"$OUT" 2>"$ERR"
        stdout_is 13
        stderr_is "hist-search: skipped 6 bad lines in '$HISTORY'"
        no_skip
    done
    agree
}

@test "skip: killed at any write, the next search goes on" {
    local n
    make_large
    for n in 1 2 1 2; do
        [[ $n == 1 ]] || make_skip
        [[ $n == 2 ]] || rm -f "$HISTORY".*
        traced -f -o trace -e trace=pwrite64 -e "inject=pwrite64:signal=KILL:when=$n" hist-search -c zebra >"$OUT" 2>/dev/null || :
        stdout_is 13
        agree
    done
    [[ -f $HISTORY.skip ]]
}

@test "skip: many programs that append, search and delete at once" {
    local i
    make_large
    for i in 1 2 3; do
        (for _ in 1 2 3 4 5; do hist-append -s sess_1719500000000_000001 "a zebra $i" || exit; done) >"append$i" &
        (for _ in 1 2 3 4; do hist-search -c zebra 2>&3 || exit; done) >"search$i" 3>/dev/null &
    done
    run_expect 0 hist-delete --force sess_1719500000000_000049
    wait
    run_expect 0 hist-search -c zebra
    stdout_is 28
    run_expect 0 sort -n -u search?
    [[ $(head -n 1 "$OUT") -ge 13 && $(tail -n 1 "$OUT") -le 28 ]] || fail "$(<"$OUT")"
    agree
}
