#!/usr/bin/env bats
#
# Appending when things go wrong: full disks, torn lines, other writers, sudden death (chathist(5), APPENDING).

load ../helper

setup() {
    sandbox
    use_history
    use_echo
    hist_lines old 3 >"$HISTORY"
}


# faulty STATUS CALLS:FAULT FILE COMMAND...: runs it with a fault injected into the system calls that touch FILE ('' for any).
faulty() {
    local status=$1 fault=$2 file=$3
    shift 3
    run_expect "$status" strace -f -qq -o "$TMPDIR/trace" ${file:+-P "$file"} \
        -e "trace=${fault%%:*}" -e "inject=$fault" "$@" || return 1
    grep -q INJECTED "$TMPDIR/trace" || [[ $fault == *signal=* ]] || fail "the fault $fault was not met"
}

# calls CALLS COMMAND...: runs it and leaves its system calls of these kinds in $TMPDIR/trace.
calls() {
    local calls=$1
    shift
    run_expect 0 strace -f -qq -y -o "$TMPDIR/trace" -e "trace=$calls" "$@"
}

traced() {
    grep -qE "$1" "$TMPDIR/trace" || fail "no call like: $1" "$(cat "$TMPDIR/trace")"
}

untraced() {
    if grep -qE "$1" "$TMPDIR/trace"; then fail "not wanted: $1" "$(cat "$TMPDIR/trace")"; fi
}

# whole: is every line of the history valid, and the last one ended?
whole() {
    jq -e . "$HISTORY" >/dev/null 2>&1 || fail 'a line of the history is not JSON' || return 1
    [[ -z $(tail -c 1 "$HISTORY") ]] || fail 'the last line has no end'
}

# ---- failures

@test "store: a full disk is an error, and the history is what it was" {
    need_strace
    remember "$HISTORY"
    faulty 2 write:error=ENOSPC:when=1 "$HISTORY" hist-append -s s hello
    stdout_empty
    stderr_is "hist-append: cannot write '$HISTORY': No space left on device"
    unchanged "$HISTORY"
    faulty 2 write:error=ENOSPC:when=1 "$HISTORY" hist-append --json -s s < <(printf '{"content":"a"}\n{"content":"b"}\n')
    stdout_empty
    unchanged "$HISTORY"
    faulty 2 write:error=EDQUOT:when=1 "$HISTORY" hist-new -q --reset s -S prompt
    stdout_empty
    stderr_is "hist-new: cannot write '$HISTORY': Disk quota exceeded"
    unchanged "$HISTORY"
}

@test "store: a failed fdatasync is an error, not tried again, and the line goes" {
    need_strace
    remember "$HISTORY"
    faulty 2 fdatasync:error=EIO:when=1 "$HISTORY" hist-append -s s hello
    stdout_empty
    stderr_is "hist-append: cannot write '$HISTORY': Input/output error"
    unchanged "$HISTORY"
    faulty 2 fdatasync:error=EIO "$HISTORY" hist-append -s s hello
    unchanged "$HISTORY"
}

@test "store: when the way back fails too, that is said, and the next append heals" {
    need_strace
    size=$(stat -c %s "$HISTORY")
    run_expect 2 strace -qq -o "$TMPDIR/trace" -e trace=ftruncate \
        -e inject=ftruncate:error=EIO prlimit --fsize=$((size + 20)) hist-append -s s hello
    stderr_is "hist-append: cannot write '$HISTORY', and a part stays in it: File too large"
    [[ $(stat -c %s "$HISTORY") -eq $((size + 20)) ]]
    run_expect 0 hist-append -s s again
    run_expect 0 hist-show --json s
    stdout_json .content again
    run_expect 0 hist-show --json old
    lines_are 3
}

@test "store: a lock that is interrupted is waited for, one that fails is an error" {
    need_strace
    faulty 0 flock:error=EINTR:when=1..3 "$HISTORY" hist-append -s s hello
    run_expect 0 hist-show --json s
    stdout_json .content hello
    remember "$HISTORY"
    faulty 2 flock:error=ENOLCK "$HISTORY" hist-append -s s hello
    stderr_is "hist-append: cannot lock '$HISTORY': No locks available"
    unchanged "$HISTORY"
}

@test "store: reads and writes that are interrupted go on" {
    need_strace
    faulty 0 write:error=EINTR:when=1..2 "$HISTORY" hist-append -s s hello
    run_expect 0 hist-show --json s
    stdout_json .content hello
    faulty 0 pread64:error=EINTR:when=1..2 "$HISTORY" hist-show --json s
    stdout_json .content hello
    echo '{"content":"more"}' >lines
    # shellcheck disable=SC2094
    faulty 0 read:error=EINTR:when=1..2 lines hist-append --json -s s <lines
    run_expect 0 hist-show --json s
    stdout_json .content hello more
}

@test "store: a read error is an error, never an empty history" {
    need_strace
    local program
    for program in hist-sessions 'hist-search x' 'hist-show old' 'hist-load old'; do
        # shellcheck disable=SC2086
        faulty 2 pread64:error=EIO "$HISTORY" $program
        stdout_empty
        stderr_is "${program%% *}: cannot read '$HISTORY': Input/output error"
    done
    [[ ! -e $HISTORY.session ]]
}

@test "store: the pointer file is replaced whole or not at all" {
    need_strace
    echo before >"$HISTORY.session"
    # It is not synced: a power cut may take it, and then a session of its own begins.
    faulty 2 rename,renameat,renameat2:error=EIO:when=1 '' hist-new
    lines_are 1
    stderr_is "hist-new: cannot write '$HISTORY.session': Input/output error"
    pointer_is "$HISTORY.session" before
    [[ $(ls -A) == $'history.jsonl\nhistory.jsonl.session' ]]
    # The limit holds for every file, so what it says goes through a pipe.
    run_expect 2 bash -c 'set -o pipefail; prlimit --fsize=3 hist-new 2>&1 | cat >&2'
    stderr_has "hist-new: cannot write '$HISTORY.session': File too large"
    pointer_is "$HISTORY.session" before
    [[ $(ls -A) == $'history.jsonl\nhistory.jsonl.session' ]]
}

@test "store: chat says once that the disk is full" {
    need_strace
    rm "$HISTORY"
    # The prompt is stored; the pointer and the answer are not.
    run_expect 8 strace -f -qq -o "$TMPDIR/trace" -e trace=rename,fdatasync \
        -e inject=rename:error=ENOSPC -e inject=fdatasync:error=ENOSPC:when=2+ chat hello
    stdout_has hello
    stderr_is "chat: not stored: cannot write '$HISTORY.session': No space left on device"
}

@test "store: a model waits for the sync of its prompt, and for no other file" {
    need_strace
    start_llm --reply fine
    run_expect 0 strace -f -qq -y -o "$TMPDIR/trace" -e trace=fdatasync,sendto,openat,rename chat -N hello
    # The answer is synced, too, after that.
    sed -nE -e "s|.* fdatasync\([0-9]+<$HISTORY>.*|sync|p" -e 's|.* sendto\(.*"POST .*|request|p' \
        -e 's|.*partial\.[^.]*", .*O_CREAT.*|partial|p' -e "s|.* rename\(.*\"$HISTORY\.session\"\).*|current|p" \
        "$TMPDIR/trace" >order
    is order order sync request partial current sync
}

# ---- what is synced

@test "sync: each append syncs its file, a new one its directory" {
    need_strace
    calls fsync,fdatasync,write hist-append -s s hello
    traced "fdatasync\([0-9]+<$HISTORY>\)"
    untraced "sync\([0-9]+<$WORK>\)"
    rm "$HISTORY"
    calls fsync,fdatasync hist-append -s s hello
    traced "fdatasync\([0-9]+<$HISTORY>\)"
    traced "fsync\([0-9]+<$WORK>\)"
}

@test "sync: CHAT_FSYNC=0 turns it off" {
    need_strace
    local value
    for value in 0 off; do
        CHAT_FSYNC=$value calls fsync,fdatasync,write hist-append -s s hello
        traced "write\([0-9]+<$HISTORY>"
        untraced "sync\([0-9]+<$HISTORY>"
    done
    CHAT_FSYNC=1 calls fsync,fdatasync hist-append -s s hello
    traced "fdatasync\([0-9]+<$HISTORY>\)"
    configure 'fsync = 0'
    calls fsync,fdatasync hist-append -s s hello
    untraced "sync\([0-9]+<$HISTORY>"
}

@test "sync: the history is opened to append, closed on exec, never through a link, and locked before it is written" {
    need_strace
    calls openat,open,flock,write,fdatasync,close hist-append -s s hello
    traced "open.*history\.jsonl\", O_RDWR\|O_NOCTTY\|O_APPEND\|O_NONBLOCK\|O_NOFOLLOW\|O_CLOEXEC"
    # Its owner is looked at first, and whether it is a history. The lock comes before the write, and is held until the sync is done.
    sed -nE "s/^[0-9]* *(flock|write|fdatasync|close)\([0-9]+<.*history\.jsonl>.*/\1/p" "$TMPDIR/trace" >order
    is order order close close flock write fdatasync close
    # One write for the line.
    [[ $(grep -c "write([0-9]*<$HISTORY>" "$TMPDIR/trace") -eq 1 ]]
}

@test "sync: with all standard streams closed the history does not take the place of one" {
    need_strace
    local command
    for command in 'hist-append -s s hello' 'hist-show old' 'chat -s s hello'; do
        run_expect "$([[ $command == chat* ]] && echo 1 || echo 2)" \
            strace -f -qq -o "$TMPDIR/trace" -e trace=openat bash -c "exec $command <&- >&- 2>&-"
        traced 'history\.jsonl".* = [0-9]+$'
        untraced 'history\.jsonl".* = [012]$'
    done
}

@test "sync: readers take no lock and write nothing" {
    need_strace
    local program
    for program in hist-sessions 'hist-search message' 'hist-show old' 'hist-show --json last' 'hist-export old'; do
        # shellcheck disable=SC2086
        calls flock,write,openat $program
        untraced "flock|write\([0-9]+<$HISTORY>|history\.jsonl\", O_(RDWR|WRONLY)"
        traced 'history\.jsonl", O_RDONLY'
    done
}

# ---- torn lines

@test "torn: a write that is cut at any byte of a line leaves nothing behind" {
    size=$(stat -c %s "$HISTORY")
    remember "$HISTORY"
    run_expect 0 hist-append -s s hello
    length=$(($(stat -c %s "$HISTORY") - size))
    # The least that lets it through is the whole line.
    cp "$BATS_TEST_TMPDIR"/remembered.* "$HISTORY"
    local i
    for ((i = 0; i < length; i++)); do
        # What it says goes through a pipe: the limit holds for every file.
        said=$(prlimit --fsize=$((size + i)) hist-append -s s hello 2>&1) && fail "stored, with $i of $length bytes"
        [[ $said == "hist-append: cannot write '$HISTORY': File too large" ]] || fail "byte $i: $said" || return 1
        cmp -s "$BATS_TEST_TMPDIR"/remembered.* "$HISTORY" || fail "changed at byte $i" || return 1
    done
    run_expect 0 prlimit --fsize=$((size + length)) hist-append -s s hello
    whole
}

@test "torn: a last line cut at any byte is healed by the next append, and nothing else is lost" {
    run_expect 0 hist-append -s s 'torn é'
    size=$(stat -c %s "$HISTORY")
    head -n 3 "$HISTORY" >good
    from=$(stat -c %s good)
    cp "$HISTORY" full
    local i
    for ((i = from + 1; i < size; i += 1)); do
        head -c "$i" full >"$HISTORY"
        hist-append -s s new >/dev/null 2>"$TMPDIR/errors" || fail "cannot append after byte $i" || return 1
        # The torn line stays, as a line of its own.
        { head -c "$i" full && echo && tail -n 1 "$HISTORY"; } | cmp -s - "$HISTORY" || fail "not healed: cut at byte $i" || return 1
        [[ ! -s $TMPDIR/errors && $(wc -l <"$HISTORY") -eq 5 ]] || fail "cut at byte $i" || return 1
        # Two cuts leave a complete object without its line end.
        if ((i % 16 == 0)); then
            run_expect 0 hist-search --json -s s new || return 1
            stdout_json .content new || return 1
            run_expect 0 hist-show --json old
            lines_are 3 || return 1
        fi
    done
    # Only its newline was missing: it counts.
    run_expect 0 hist-show --json s
    stdout_json .content 'torn é' new
}

@test "torn: a tail of NULs, as a crash leaves it, is one bad line" {
    head -c 4096 /dev/zero >>"$HISTORY"
    run_expect 0 hist-append -s s hello
    run_expect 0 hist-show --json s
    stdout_json .content hello
    run_expect 0 hist-sessions
    lines_are 2
    stderr_is "hist-sessions: skipped 1 bad line in '$HISTORY'"
}

@test "torn: the register heals as well" {
    unset CHAT_HISTORY
    make_repo a
    make_repo b
    (cd a && hist-append one) >/dev/null
    register=$HOME/.local/state/chathist/histories
    truncate -s -1 "$register"
    (cd b && hist-append two) >/dev/null
    json_is "$register" .path "$WORK/a/.git/aicoder" "$WORK/b/.git/aicoder"
    cd a
    run_expect 0 hist-append three
    stderr_empty
}

@test "holes: a history with a hole is refused, however it is used" {
    local program
    cp "$HISTORY" before
    truncate -s 1T "$HISTORY" || skip 'no file of 1 TiB here'
    for program in hist-sessions 'hist-sessions --id ol' 'hist-search message' 'hist-show old' 'hist-show last' \
        'hist-load old' 'hist-export old' hist-stats hist-check 'hist-check --repair' 'hist-delete -q --force old' \
        'hist-fork old' 'hist-title old x' 'hist-append -s old new' 'chat -s old hello' 'chat --dry-run hello'; do
        # shellcheck disable=SC2086
        RUN_LIMIT=60 run_expect 2 $program
        stdout_empty
        stderr_has "${program%% *}: '$HISTORY' has holes, which none of these programs makes: 'cp --sparse=never' makes a copy without them"
        [[ $(wc -l <"$ERR") -eq 1 ]] || fail 'more than that'
    done
    [[ $(stat -c %s "$HISTORY") -eq $((1 << 40)) ]] || fail 'it was changed'
    cmp -n "$(stat -c %s before)" before "$HISTORY"
    # A copy without holes has one bad line.
    truncate -s 4M "$HISTORY"
    cp --sparse=never "$HISTORY" copy
    run_expect 0 hist-show --history copy old
    run_expect 1 hist-check --history copy -q
    run_expect 0 hist-check --history copy -q --repair
    cmp before copy
}

# ---- death

# killed N CALL COMMAND...: runs it, killed on entering the N-th CALL.
killed() {
    local n=$1 call=$2
    shift 2
    run_expect 137 strace -f -qq -o "$TMPDIR/trace" -e "trace=$call" \
        -e "inject=$call:signal=KILL:when=$n" "$@"
}

# count CALL: how many of them there are in the last trace.
count() {
    grep -cE "^[0-9]+ +$1\(" "$TMPDIR/trace" || :
}

# stored_lines SESSION: contents of its valid lines, joined by commas.
stored_lines() {
    jq -Rrn --arg session "$1" '[inputs | fromjson? | select(.session_id == $session) | .content] | join(",")' "$HISTORY"
}

@test "death: killed at any system call, the history is readable and the next append heals" {
    need_strace
    cp "$HISTORY" good
    local call n i content
    for call in flock pread64 write fdatasync; do
        cp good "$HISTORY"
        calls "$call" hist-append -s s count || return 1
        n=$(count "$call")
        [[ $n -gt 0 ]] || fail "no $call" || return 1
        for ((i = 1; i <= n; i++)); do
            cp good "$HISTORY"
            killed "$i" "$call" hist-append -s s dead || return 1
            cmp -s -n "$(stat -c %s good)" good "$HISTORY" || fail "$call $i: earlier lines changed" || return 1
            run_expect 0 hist-append -s s alive || return 1
            whole || return 1
            content=$(stored_lines s)
            [[ $content == alive || $content == dead,alive ]] || fail "$call $i: $content" || return 1
        done
    done
}

# left COMMAND...: there is a temporary file; after the command there is none.
left() {
    [[ -n $(find "$WORK" -name '*.tmp') ]] || fail "nothing was left for $*" || return 1
    "$@" >"$TMPDIR/got" 2>&1 || fail "$(cat "$TMPDIR/got")" || return 1
    [[ -z $(find "$WORK" -name '*.tmp') ]] || fail "after $*: $(find "$WORK" -name '*.tmp')"
}

# all_or_none COUNT: every session but old and s has COUNT lines; FORKS: how many there are.
all_or_none() {
    local counts
    counts=$(jq -Rrn --argjson count "$1" '[inputs | fromjson? | .session_id | select(. != "old" and . != "s")]
        | group_by(.) | map(length) | (map(select(. != $count)) | length), length' "$HISTORY" | tr '\n' ' ')
    [[ $counts == '0 '* ]] || fail "a part of the copies: $counts" "$(cat "$HISTORY")" || return 1
    FORKS=${counts#0 }
}

@test "death: hist-fork killed at any system call has stored all copies or none" {
    need_strace
    hist_lines old 30 >>"$HISTORY"
    cp "$HISTORY" good
    local call n i forks=
    for call in openat flock pread64 write fdatasync; do
        cp good "$HISTORY"
        calls "$call" hist-fork -q --detached old || return 1
        n=$(count "$call")
        [[ $n -gt 0 ]] || fail "no $call" || return 1
        for ((i = 1; i <= n; i++)); do
            cp good "$HISTORY"
            killed "$i" "$call" hist-fork -q --detached old || return 1
            cmp -s -n "$(stat -c %s good)" good "$HISTORY" || fail "$call $i: earlier lines changed" || return 1
            run_expect 0 hist-append -s s alive || return 1
            whole || return 1
            all_or_none 33 || return 1
            [[ $(stored_lines s) == alive ]] || fail "$call $i" || return 1
            [[ -z $(find . -name '*.tmp') ]] || fail "$call $i: left: $(find . -name '*.tmp')" || return 1
            forks+=${FORKS% }
        done
    done
    [[ $forks == *0* && $forks == *1* ]]
}

# torn N: hist-fork of the session old, killed with N bytes of the copies written.
torn() {
    killed 1 ftruncate prlimit --fsize=$(($(stat -c %s good) + $1)) hist-fork -q --detached old || return 1
    [[ $(stat -c %s "$HISTORY") -eq $(($(stat -c %s good) + $1)) ]]
}

@test "death: a fork that was killed in the middle leaves a shorter copy, and one that failed none" {
    need_strace
    hist_lines s 10 >>"$HISTORY"
    cp "$HISTORY" good
    local n length
    run_expect 0 hist-fork -q --detached old
    length=$(($(stat -c %s "$HISTORY") - $(stat -c %s good)))
    mkdir "$HISTORY.idx" # No index is made, which would meet the limit first.
    for ((n = 1; n < length; n += n < length - 5 && n > 3 ? 97 : 1)); do
        cp good "$HISTORY"
        torn "$n" || return 1
        cp "$HISTORY" before
        run_expect 0 hist-append -s s alive || return 1
        cmp -s -n "$(stat -c %s before)" before "$HISTORY" || fail "$n: earlier lines changed" || return 1
        [[ $(tail -n 1 "$HISTORY" | jq -r .content) == alive ]] || fail "$n" || return 1
        cp good "$HISTORY"
        run_expect 2 prlimit --fsize=$(($(stat -c %s good) + n)) hist-fork -q --detached old || return 1
        stderr_is "hist-fork: cannot write '$HISTORY': File too large" || return 1
        cmp good "$HISTORY" || return 1
    done
}

@test "death: temporary files of killed programs go with the next one that writes" {
    need_strace
    killed 1 rename hist-load old
    left hist-new
    killed 1 rename hist-delete --force old
    left hist-delete --force old
    hist_lines old 3 >"$HISTORY"
    # In a directory of ours the next message does it.
    unset CHAT_HISTORY
    export XDG_DATA_HOME=$WORK/data
    mkdir outside
    cd outside
    run_expect 0 hist-append -s s one
    killed 1 renameat hist-delete --force s
    left hist-append -s s two
    killed 1 renameat hist-load s
    left hist-append -s s three
}

# ---- several writers

@test "writers: 8 processes appending 1,000 lines each lose and mix nothing" {
    rm "$HISTORY"
    local i pids=()
    for i in 1 2 3 4 5 6 7 8; do
        # As a program writes that has a line at a time: they come in batches of any size, some lines in pieces.
        seq 1000 | awk -v i="$i" 'BEGIN { for (y = "y"; length(y) < 9000; y = y y) {} }
            { printf "{\"content\":\"%d-%d ", i, $1 } $1 % 100 == 0 { printf "%s", substr(y, 1, 4000); print y "\"}" }
            $1 % 100 { print "x\"}" } $1 % 7 == 0 { fflush() }' | hist-append --json -s "s$i" >"ids$i" 2>>errors 3>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    # One that waits for more than three seconds, as on a busy machine, says so.
    run_expect 1 grep -v 'waiting for another program that writes' errors
    whole
    [[ $(wc -l <"$HISTORY") -eq 8000 ]]
    [[ $(jq -r .id "$HISTORY" | sort -u | wc -l) -eq 8000 ]]
    for i in 1 2 3 4 5 6 7 8; do
        [[ $(wc -l <"ids$i") -eq 1000 ]]
        # In their order, each with the id that was printed.
        jq -r "select(.session_id == \"s$i\") | .id" "$HISTORY" | cmp - "ids$i"
        jq -r "select(.session_id == \"s$i\") | .content" "$HISTORY" | cut -d ' ' -f 1 | cmp - <(seq -f "$i-%g" 1000)
    done
}

@test "writers: many short-lived ones at once, chat among them" {
    rm "$HISTORY"
    # shellcheck disable=SC2016
    run_expect 0 bash -c 'seq 100 | xargs -P 16 -I N sh -c "hist-append -s \$((N % 5)) N && chat -q -s c\$((N % 5)) N"'
    whole
    [[ $(jq -r 'select(.role == "user") | .content' "$HISTORY" | sort -n | uniq -c | awk '$1 != 2' | wc -l) -eq 0 ]]
    [[ $(jq -r 'select(.role == "assistant") | .id' "$HISTORY" | wc -l) -eq 100 ]]
    [[ $(jq -r .id "$HISTORY" | sort -u | wc -l) -eq 300 ]]
}

@test "writers: one that finds the history locked waits" {
    mkfifo go
    flock "$HISTORY" sh -c 'echo locked >locked; read -r _ <go' 3>&- 4>&- &
    BACKGROUND+=($!)
    wait_for test -s locked
    remember "$HISTORY"
    background hist-append -s s hello
    sleep 0.4
    kill -0 "$BG"
    unchanged "$HISTORY"
    # Readers do not.
    run_expect 0 hist-show --json old
    lines_are 3
    echo >go
    finish 0
    run_expect 0 hist-show --json s
    stdout_json .content hello
}

@test "writers: one that waited for a history that was replaced meanwhile writes to the new one" {
    mkfifo go
    flock "$HISTORY" sh -c 'echo locked >locked; read -r _ <go; head -n 1 history.jsonl >new; mv new history.jsonl' 3>&- 4>&- &
    BACKGROUND+=($!)
    ln "$HISTORY" old.jsonl
    remember old.jsonl
    wait_for test -s locked
    background hist-append -s s hello
    sleep 0.3
    echo >go
    finish 0
    unchanged old.jsonl
    json_is "$HISTORY" .content 'message 1' hello
}

@test "writers: a history that goes away while one waits is made anew" {
    mkfifo go
    flock "$HISTORY" sh -c 'echo locked >locked; read -r _ <go; rm history.jsonl' 3>&- 4>&- &
    BACKGROUND+=($!)
    wait_for test -s locked
    background hist-append -s s hello
    sleep 0.3
    echo >go
    finish 0
    json_is "$HISTORY" .content hello
    [[ $(stat -c %a "$HISTORY") == 600 ]]
}

# ---- bytes

@test "bytes: fields that nobody knows live through everything, byte for byte" {
    extra='"x_new":{"deep": [1 , 2.50e1,12345678901234567890],"\u0041":"\/"},"X_NEW":0.10,"x_new":[]'
    printf '{"role":"user","content":"a\\u00e9",%s}\n' "$extra" >line
    run_expect 0 hist-append --json -s s <line
    run_expect 0 hist-show --json s
    stdout_has "$extra}" '"content":"a\u00e9"'
    cp "$OUT" stored
    run_expect 0 hist-search --json aé
    stdout_is_file stored
    run_expect 0 hist-append --json --history other.jsonl <stored
    same 'the copy' stored other.jsonl
}

@test "bytes: a large message, to the last byte" {
    head -c 8000000 /dev/urandom | base64 -w 0 >big
    run_expect 0 hist-append -s s <big
    whole
    run_expect 0 hist-show --json s
    jq -rj .content "$OUT" | cmp - big
}

# peak COMMAND...: the memory that it takes at the most, in KiB.
peak() {
    python3 -c 'import resource, subprocess, sys
if subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode != 0:
    sys.exit("failed: " + " ".join(sys.argv[1:]))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$@"
}

@test "memory: 4 MB and twice the longest line, whatever is done with it" {
    [[ $VARIANT != asan ]] || skip 'the sanitizer has its own idea of memory'
    local most args got
    {
        hist_line s user question
        hist_line s assistant "$(printf 'line %06d of what is a long answer in äöü\n' {1..400})"
        hist_line s user more
    } >short
    # Of 25 MB, with a million escapes.
    jq -c 'if .role == "assistant" then .content *= 1600 else . end' short >"$HISTORY"
    most=$((4096 + $(sed -n 2p "$HISTORY" | wc -c) * 2 / 1024))
    for args in 'hist-search -c answer' 'hist-search -c answer' 'hist-search -j 1 -w answer' 'hist-search --json answer' \
        'hist-search -E a.swer' 'hist-search -E -c a.swer' 'hist-search -o answer' 'hist-search -C 1 answer' \
        'hist-search -c more' 'hist-load s' 'hist-load --json s' 'hist-show s' 'hist-show --json s' 'hist-sessions'; do
        # Both indexes are made, and made use of.
        for got in first second; do
            # shellcheck disable=SC2086
            got=$(peak $args)
            if ((got > most)); then
                fail "$args: $got KiB, not $most"
            fi
        done
        rm -f "$HISTORY.idx" "$HISTORY.skip"
    done
}

# ---- random numbers

@test "store: a system without getrandom has random ids, too" {
    need_strace
    faulty 0 getrandom:error=ENOSYS '' hist-append -s s hello
    grep -qxE '[0-9]{13}-[0-9a-f]{8}' "$OUT"
    # The ids of messages end with other digits each time.
    faulty 0 getrandom:error=ENOSYS '' hist-append -s s hello
    [ "$(jq -r '.id[-8:]' "$HISTORY" | sort -u | wc -l)" -eq 5 ]
    calls getrandom,openat hist-append -s s hello
    untraced urandom
}
