#!/usr/bin/env bats
#
# The index beside a large history: whatever is in its place, and whatever happened to it or to the history,
# every program prints what it prints without one.

load ../helper
load ../sidecar

setup() {
    sandbox
    use_history h.jsonl
}

# large_lines SESSIONS COUNT: so many lines of 500 bytes, of the sessions by turns.
large_lines() {
    jq -cn --argjson sessions "$1" --argjson count "$2" --argjson from "$LINES_MADE" '
        ("lorem ipsum " * 33) as $text | range($from; $from + $count) | {
            id: "m\(.)", session_id: "session-\(. % $sessions)", timestamp: "2024-06-27T15:00:00.000000+00:00",
            role: (if . % 2 == 0 then "user" else "assistant" end), content: "line \(.) \($text)"}'
    LINES_MADE=$((LINES_MADE + $2))
}

# make_large: 600 KB, with bad lines, some of which may be of session-3.
make_large() {
    {
        large_lines 20 600
        printf 'garbage\n{"session_id":"session-3"\n\n{"x":"\\u0073"\n'
        large_lines 20 600
    } >"$HISTORY"
}

export SUFFIX=.idx
QUESTIONS=(
    'hist-sessions'
    'hist-sessions --json --limit all'
    'hist-sessions --limit 3'
    'hist-sessions --id session-1'
    'hist-sessions --json --id ion-13 --limit all'
    'hist-sessions --limit 4 --id session-1'
    'hist-sessions --limit 3 --id '
    'hist-sessions --id nothing'
    'hist-show --json session-3'
    'hist-show --raw session-17'
    'hist-show ion-12'
    'hist-show session-1'
    'hist-show session'
    'hist-show nothing'
    'hist-show last'
    'hist-export -f txt session-5'
    'hist-check -q'
    'chat --dry-run -p echo -s session-4 hello'
    'chat --dry-run -p echo -c hello'
)

# is_index FILE: a regular file with mode 0600, and nothing of its making is left.
is_index() {
    [[ -f $1 && ! -L $1 && $(stat -c %a "$1") == 600 && ! -e $1.tmp ]] || fail "$1 is no index"
}

no_index() {
    [[ ! -e $HISTORY.idx && ! -e $HISTORY.idx.tmp ]] || fail "there is an index"
}

@test "index: the first program makes it, the others use it" {
    make_large
    agree
    is_index "$HISTORY.idx"
    agree
    run_expect 0 ls -A
    stdout_has "h.jsonl.idx"
}

@test "index: a line that is longer than what a thread reads at once" {
    make_large
    # Not by truncate: a history with holes is refused.
    { head -c 9M /dev/zero; echo; } >>"$HISTORY"
    large_lines 20 20 >>"$HISTORY"
    QUESTIONS=('hist-sessions --limit all' 'hist-show --json session-3')
    agree
    is_index "$HISTORY.idx"
    agree
}

@test "index: in a repository it is history.idx, beside the history" {
    unset CHAT_HISTORY
    make_repo
    run_expect 0 hist-append -s own hello
    large_lines 5 700 >>.git/aicoder/history.jsonl
    HISTORY=.git/aicoder/history.jsonl SIDECAR=.git/aicoder/history.idx agree
    is_index .git/aicoder/history.idx
    [[ ! -e .git/aicoder/history.jsonl.idx ]] || fail 'an index of another name'
    # Git does not see it.
    is link <(readlink .aicoder) .git/aicoder
    is exclude .git/info/exclude /.aicoder
}

# What came with a directory is nobody's index.
@test "index: a directory that is not trusted has none, and one that lies there is not read" {
    unset CHAT_HISTORY
    make_repo repo
    mkdir repo/.git/aicoder
    large_lines 5 700 >repo/.git/aicoder/history.jsonl
    cd repo
    run_expect 0 hist-sessions
    cp "$OUT" ../wanted
    [[ $(ls -A .git/aicoder) == history.jsonl ]] || fail "$(ls -A .git/aicoder)"
    # One that would be right, but for what it says.
    run_expect 0 hist-sessions --history .git/aicoder/history.jsonl
    mv .git/aicoder/history.jsonl.idx .git/aicoder/history.idx
    perl -pi -e 's/line 695/line 007/' .git/aicoder/history.idx
    run_expect 0 hist-sessions
    stdout_is_file ../wanted
    # Once it is entered, it has one of its own.
    run_expect 0 hist-load session-1
    run_expect 0 hist-sessions
    stdout_is_file ../wanted
    is_index .git/aicoder/history.idx
    run_expect 1 grep -q 'line 007' .git/aicoder/history.idx
}

# ---- what happened to the history

@test "index: after hist-delete and hist-check --repair" {
    make_large
    agree
    run_expect 0 hist-delete --force session-3 session-5
    no_index
    agree
    is_index "$HISTORY.idx"
    # A checksum between the parts of an id can read as one of the two by chance.
    if grep -q 'session-3' "$HISTORY.idx" && grep -q 'session-5' "$HISTORY.idx"; then fail 'the old index'; fi
    run_expect 0 hist-check -q --repair
    no_index
    agree
    is_index "$HISTORY.idx"
}

# ---- what is in its place

# edit OLD NEW [FROM]: changes a session id in place, behind that byte, as no program of ours does.
edit() {
    python3 -c 'import sys
f = open("h.jsonl", "r+b"); d = f.read(); f.seek(d.index(sys.argv[1].encode(), int(sys.argv[3]))); f.write(sys.argv[2].encode())' \
        "$1" "$2" "${3:-0}"
}

# Writers do not look at the index, so it takes this for an append. Where it is found to be wrong, it is made anew.
@test "index: a line that was changed in place before a program appended one" {
    make_large
    hist-sessions >first
    edit session-3 session-x
    run_expect 0 hist-append -s session-1 'and goes on'
    run_expect 0 hist-show --json session-3
    lines_are 59
    agree
    run_expect 0 hist-show --raw session-x
    # When many lines were appended.
    edit session-5 session-y 300000
    large_lines 20 300 >>"$HISTORY"
    agree
    run_expect 0 hist-show --raw session-y
    # By hist-check --repair.
    edit session-7 session-z 100000
    run_expect 0 hist-append -s session-1 'and goes on'
    run_expect 0 hist-check -q --repair
    no_index
    run_expect 0 hist-show --raw session-z
    agree
    # By hist-check, which reads everything.
    edit session-8 session-w 100000
    run_expect 0 hist-append -s session-1 'and goes on'
    run_expect 0 hist-sessions --limit all
    [[ $(<"$OUT") != *session-w* ]] || fail 'the list shows the edit by itself'
    run_expect 0 hist-check
    stdout_has "h.jsonl.idx: warning: it did not match the history, and was removed"
    no_index
    run_expect 0 hist-sessions --limit all
    stdout_has session-w
    agree
}

@test "index: a link, a FIFO or a directory in its place is left alone" {
    make_large
    echo 'not for us' >elsewhere
    ln -s elsewhere "$HISTORY.idx"
    for question in "${QUESTIONS[@]}"; do answer "$question" got; done
    [[ -L $HISTORY.idx && $(<elsewhere) == 'not for us' ]] || fail 'the link is gone, or was followed'
    run_expect 0 hist-delete --force session-3
    [[ -L $HISTORY.idx && $(<elsewhere) == 'not for us' ]] || fail 'the link is gone, or was followed'
    rm "$HISTORY.idx"
    mkfifo "$HISTORY.idx"
    for question in "${QUESTIONS[@]}"; do answer "$question" got; done
    run_expect 0 hist-append -s session-3 hello
    [[ -p $HISTORY.idx ]] || fail 'the FIFO is gone'
    rm "$HISTORY.idx"
    agree
    is_index "$HISTORY.idx"
}

@test "index: one cut to some bytes is made anew; a foreign file is left alone, but in our own directory" {
    local n
    make_large
    hist-sessions >first
    cp "$HISTORY.idx" good
    for n in 1 3 4 6 7; do
        head -c "$n" good >"$HISTORY.idx"
        run_expect 0 hist-sessions -q
        is_index "$HISTORY.idx"
        [[ $(stat -c %s "$HISTORY.idx") -gt 1000 ]] || fail "$n bytes"
    done
    echo 'not for us' >"$HISTORY.idx"
    run_expect 1 hist-check
    stdout_has "h.jsonl.idx: warning: it cannot be used as an index, and keeps one from being made"
    run_expect 0 hist-check -q --repair
    [[ $(<"$HISTORY.idx") == 'not for us' ]] || fail 'it is gone'
    unset CHAT_HISTORY
    export XDG_DATA_HOME=$WORK/data
    mkdir outside
    cd outside
    run_expect 0 hist-append -s own hello
    cd "$WORK/data/aicoder"
    large_lines 5 700 >>history.jsonl
    echo 'not for us' >history.idx
    cd "$WORK/outside"
    run_expect 1 hist-check -q
    stdout_is "$WORK/data/aicoder/history.idx: it cannot be used as an index, and keeps one from being made"
    run_expect 0 hist-check -q --repair
    run_expect 0 hist-sessions
    is_index "$WORK/data/aicoder/history.idx"
}

@test "index: where nothing can be written there is none, and one that is there is used" {
    mkdir dir
    use_history dir/h.jsonl
    make_large
    hist-sessions >wanted
    rm "$HISTORY.idx"
    chmod 500 dir
    run_expect 0 without_rights hist-sessions
    stdout_is_file wanted
    no_index
    chmod 700 dir
    hist-sessions >wanted
    large_lines 20 300 >>"$HISTORY"
    chmod 400 "$HISTORY.idx"
    chmod 500 dir
    remember "$HISTORY.idx"
    run_expect 0 without_rights hist-sessions --limit all
    cp "$OUT" got
    unchanged "$HISTORY.idx"
    chmod 700 dir
    without 'hist-sessions --limit all' wanted
    run_expect 0 diff <(cat got; echo status 0; echo "hist-sessions: skipped 3 bad lines in '$HISTORY'") wanted
}

@test "index: a disk that is full, or another failure, is nobody's business" {
    local call
    make_large
    without 'hist-sessions --limit all' want
    for call in write:ENOSPC pwrite64:EIO rename:EACCES ftruncate:EIO flock:ENOLCK openat:EMFILE:when=20+; do
        rm -f "$HISTORY.idx" "$HISTORY.idx.tmp"
        traced -o trace -e "trace=${call%%:*}" -e "inject=${call%%:*}:error=${call#*:}:when=1" \
            hist-sessions --limit all >got 2>&1 || :
        [[ $call != write* ]] || continue
        { sed '/^hist-sessions: /d' got; echo status 0; } >plain
        run_expect 0 diff plain <(sed '/^hist-sessions: /d' want)
    done
    rm -f "$HISTORY.idx"*
    agree
}

# ---- a long one

# make_long: more than one block of ids, and of sessions that are read at once.
make_long() {
    jq -cn 'range(60000) | {
        id: "m\(.)", session_id: "session-\(. * 7919 % 20000)", timestamp: "2024-06-27T15:00:00.000000+00:00",
        role: (if . % 2 == 0 then "user" else "assistant" end), content: "line \(.)"}' >"$HISTORY"
}

alone() {
    run_expect 0 ls -A dir
    stdout_is "h.jsonl$1"
}

# faulty FAULT: the first program has it in a write.
faulty() {
    rm -f "$HISTORY".*
    traced -f -o trace -P "$HISTORY.idx.tmp" -e trace=pwrite64 -e "inject=pwrite64:$1" hist-sessions --limit all >got 2>err
}

@test "index: where it cannot be written there is none; killed at a write, the next program goes on" {
    local n
    mkdir dir
    use_history dir/h.jsonl
    make_long
    hist-sessions --limit all >want
    for n in 1 30; do
        faulty "error=ENOSPC:when=$n"
        run_expect 0 grep -q INJECTED trace
        run_expect 0 cmp want got
        [[ ! -s err ]]
        alone ''
        run_expect 137 faulty "signal=KILL:when=$n"
        run_expect 0 hist-sessions --limit all
        stdout_is_file want
        alone $'\nh.jsonl.idx'
    done
}

# ---- many at once, and killed ones

@test "index: many programs that append, read and delete at once" {
    local i
    make_large
    cp "$HISTORY" before
    for i in 1 2 3; do
        (for _ in {1..15}; do hist-append -q -s "writer-$i" "text of $i" >ids.$i; done) 3>&- 4>&- &
        (for _ in {1..15}; do hist-sessions --limit all; hist-show "session-$i"; done >reads.$i 2>&1) 3>&- 4>&- &
    done
    (large_lines 20 900 | while read -r line; do printf '%s\n' "$line"; done >>"$HISTORY") 3>&- 4>&- &
    wait
    run_expect 1 grep -lE 'cannot|rror' reads.1 reads.2 reads.3
    agree
    for i in 1 2 3; do
        run_expect 0 hist-show --json "writer-$i"
        lines_are 15
    done
    (for _ in {1..10}; do hist-append -q -s "writer-4" 'text' >ids.4; done) 3>&- 4>&- &
    for i in 1 2 3; do
        (for _ in {1..10}; do hist-sessions >reads.$i; done) 3>&- 4>&- &
        run_expect 0 hist-delete -q --force "writer-$i"
    done
    wait
    agree
    run_expect 1 grep -q 'writer-[123]' "$HISTORY.idx"
}

@test "index: killed at any system call, the next program goes on" {
    local n call
    make_large
    for call in openat flock ftruncate pwrite64 write lseek rename close; do
        for n in 1 2 3 4 5; do
            rm -f "$HISTORY.idx"
            traced -o trace -e "trace=$call" -e "inject=$call:signal=KILL:when=$n" hist-sessions >got 2>&1 || :
        done
    done
    agree
    is_index "$HISTORY.idx"
    for n in 1 2; do
        large_lines 20 300 >>"$HISTORY"
        traced -o trace -e trace=pwrite64 -e "inject=pwrite64:signal=KILL:when=$n" hist-sessions >got 2>&1 || :
        agree
    done
    is_index "$HISTORY.idx"
}

@test "index: the program that makes it tells of bad lines, once" {
    make_large
    run_expect 0 hist-sessions
    stderr_is "hist-sessions: skipped 3 bad lines in '$HISTORY'"
    rm "$HISTORY.idx"
    run_expect 0 hist-sessions -q
    stderr_empty
}

# made_slowly COMMAND...: makes it of six pieces, each of which takes more than a second.
made_slowly() {
    rm -f "$HISTORY.idx"
    # shellcheck disable=SC2016
    run_expect 0 "${THROUGH[@]}" sh -c 'exec "$@" >list' sh \
        strace -qq -f -o trace -e trace=pread64 \
        -e inject=pread64:delay_exit=100000 "$@"
    is_index "$HISTORY.idx"
    [[ $(wc -l <list) == 3 ]] || fail "$(cat list)"
}

@test "index: one that takes long to make is made with a line of progress on a terminal, and quietly elsewhere" {
    jq -cn '("lorem ipsum " * 8000) as $text | range(126) | {id: "m\(.)", session_id: "s\(. % 3)",
        timestamp: "2024-06-27T15:00:00.000000+00:00", role: "user", content: $text}' >"$HISTORY"
    THROUGH=(on_tty --raw --fds 2)
    made_slowly hist-sessions
    progress_and_gone index
    stdout_matches $'\rindex [1-9][0-9] % of 12.1 MB, [0-9.]+ [kM]B/s, [0-9]+ s left\e'
    made_slowly hist-sessions -q
    stdout_empty
    THROUGH=()
    made_slowly hist-sessions
    stdout_empty
    stderr_empty
}
