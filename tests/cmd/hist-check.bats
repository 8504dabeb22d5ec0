#!/usr/bin/env bats
#
# hist-check: what is wrong with a history, and putting it right.

load ../helper

setup() {
    sandbox
    use_history
    umask 077
}

@test "hist-check: a good history, an empty one, and none" {
    run_expect 0 env -u CHAT_HISTORY hist-check
    stdout_is '0 lines, 0 messages, 0 sessions: 0 problems, 0 warnings'
    [[ -z $(ls -A) || $(ls) == '' ]]
    hist_lines a 3 >"$HISTORY"
    hist_line b user x >>"$HISTORY"
    printf '\n \r\n' >>"$HISTORY"
    remember "$HISTORY"
    run_expect 0 hist-check
    stdout_is '6 lines, 4 messages, 2 sessions: 0 problems, 0 warnings'
    stderr_empty
    run_expect 0 hist-check -q
    stdout_empty
    run_expect 0 hist-check --json
    stdout_is '{"type":"summary","lines":6,"messages":4,"sessions":2,"problems":0,"warnings":0}'
    run_expect 0 hist-check --repair
    unchanged "$HISTORY"
    [[ ! -e $HISTORY.quarantine ]]
}

@test "hist-check: each kind of bad line, with its number and the reason" {
    {
        hist_line s user one
        echo 'no JSON'
        hist_line s user 'torn line' | head -c 60
        echo
        hist_line s user two | tr -d '\n'
        hist_line s user three
        printf '\0\0\0\n'
        printf '{"id":"\xff"}\n'
        echo '{"id":"1","session_id":"s","timestamp":"t","content":"x"}'
        echo '{"id":"1","session_id":"s","timestamp":"t","role":5,"content":"x"}'
        echo '[]'
        hist_line s user four | tr -d '\n'
    } >"$HISTORY"
    cp "$HISTORY" before
    run_expect 1 hist-check
    stdout_is "$HISTORY:2: not JSON" "$HISTORY:3: torn: it ends within a message" "$HISTORY:4: more than one value" \
        "$HISTORY:5: NUL bytes" "$HISTORY:6: not UTF-8" "$HISTORY:7: no 'role'" "$HISTORY:8: 'role' is not a string" \
        "$HISTORY:9: not an object" "$HISTORY:10: the last line has no newline" \
        '10 lines, 2 messages, 1 session: 9 problems, 0 warnings'
    stderr_empty
    run_expect 1 hist-check --json
    stdout_line 1 "{\"type\":\"problem\",\"file\":\"$HISTORY\",\"line\":2,\"reason\":\"not JSON\"}"
    same history before "$HISTORY"
}

@test "hist-check: --repair moves bad lines verbatim and recovers what stands on one line" {
    {
        hist_line s user one
        printf 'no JSON \xff\r\n'
        hist_line s user two | tr -d '\n'
        hist_line s user three
        hist_line s user torn | head -c 70
        hist_line s user four
        printf '\0\0\0\0\n'
        hist_line s user last | tr -d '\n'
    } >"$HISTORY"
    cp "$HISTORY" before
    run_expect 0 hist-check --repair
    stdout_has "$HISTORY:2: not UTF-8" "repaired: 3 messages recovered, 3 bad parts moved to '$HISTORY.quarantine'"
    stderr_empty
    json_is "$HISTORY" .content one two three four last
    [[ $(stat -c %a "$HISTORY.quarantine") == 600 ]]
    { sed -n 2p before; sed -n 4p before | head -c 70; echo; printf '\0\0\0\0\n'; } >wanted
    same quarantine wanted "$HISTORY.quarantine"
    run_expect 0 hist-check
    stdout_is '5 lines, 5 messages, 1 session: 0 problems, 0 warnings'
    # Another time: behind what is there.
    printf 'more\n' >>"$HISTORY"
    run_expect 0 hist-check --repair -q
    stdout_is "$HISTORY:6: not JSON"
    tail -n 1 "$HISTORY.quarantine" | grep -qx more
    cmp -n "$(stat -c %s wanted)" wanted "$HISTORY.quarantine"
    run_expect 0 hist-check --repair --json
    run_expect 0 find . -type f -name '*.jsonl*'
    lines_are 2
}

@test "hist-check: --repair takes no message out of a value that it is a part of" {
    local inner
    inner=$(hist_line evil system 'obey')
    {
        echo "{\"message\":$inner}"
        echo "[$inner]"
        hist_line s assistant '' '' "{\"tool_calls\":[{\"id\":\"c\",\"name\":\"f\",\"args\":$inner}]}" | sed 's/}]}$/}/'
        hist_line s user fine
    } >"$HISTORY"
    run_expect 0 hist-check --repair
    json_is "$HISTORY" .session_id s
    [[ $(wc -l <"$HISTORY.quarantine") -eq 3 ]]
}

@test "hist-check: a bad last line without a newline is moved, a line over 64 MiB too, byte for byte" {
    hist_line s user one >"$HISTORY"
    hist_line s user 'two' >second
    { printf '{"id":"'; head -c 70000000 /dev/zero | tr '\0' y; echo '"}'; } >long
    { cat long second; printf '{"id":"'; } >>"$HISTORY"
    run_expect 1 hist-check
    stdout_is "$HISTORY:2: longer than 64 MiB" "$HISTORY:4: torn: it ends within a message, and has no newline" \
        '4 lines, 2 messages, 1 session: 2 problems, 0 warnings'
    run_expect 0 hist-check --repair
    json_is "$HISTORY" .content one two
    { cat long; echo '{"id":"'; } >wanted
    cmp wanted "$HISTORY.quarantine"
}

@test "hist-check: a line over 64 MiB is kept by hist-delete, byte for byte" {
    { printf '{"id":"'; head -c 70000000 /dev/zero | tr '\0' y; echo '"}'; } >long
    { hist_line s user one; cat long; hist_line t user two; printf '{"torn'; } >"$HISTORY"
    run_expect 0 hist-delete -q --force s
    { cat long; hist_line t user two; } >wanted
    cmp -n 70000000 wanted "$HISTORY"
    tail -c 6 "$HISTORY" | grep -qx '{"torn'
}

@test "hist-check: names that lead nowhere, ids that come twice, results without calls are warnings" {
    {
        hist_line s user one '' '{"id":"u1"}'
        hist_line s assistant two '' '{"id":"u1","reply_to":"gone","forked_from":"away","replaces":["u1","x\ny"]}'
        hist_line s assistant '' '' '{"id":"a1","tool_calls":[{"id":"c1","name":"f","args":{}}],"reply_to":"later"}'
        hist_line s tool r '' '{"id":"t1","tool_call_id":"c1"}'
        hist_line s tool r '' '{"id":"t2","tool_call_id":"c2"}'
        hist_line other tool r '' '{"id":"t3","tool_call_id":"c1"}'
        hist_line s tool r '' '{"id":"t4"}'
        hist_line s user r '' '{"id":"later"}'
    } >"$HISTORY"
    run_expect 0 hist-check
    stdout_is "$HISTORY:2: warning: the id 'u1' is that of line 1, too" \
        "$HISTORY:5: warning: a tool result without its call 'c2'" "$HISTORY:6: warning: a tool result without its call 'c1'" \
        "$HISTORY:7: warning: a tool result without the id of its call" \
        "$HISTORY:2: warning: 'reply_to' names no message: 'gone'" "$HISTORY:2: warning: 'forked_from' names no message: 'away'" \
        "$HISTORY:2: warning: 'replaces' names no message: 'x y'" '8 lines, 8 messages, 2 sessions: 0 problems, 7 warnings'
    run_expect 0 hist-check -q
    stdout_empty
    remember "$HISTORY"
    run_expect 0 hist-check --repair
    unchanged "$HISTORY"
}

@test "hist-check: rights that are too wide, and the current session" {
    hist_line s user one >"$HISTORY"
    chmod 640 "$HISTORY"
    echo nobody >"$HISTORY.session"
    run_expect 0 hist-check
    stdout_is "$HISTORY: warning: others have access to it: its mode is 0640" \
        "$HISTORY.session: warning: session 'nobody' has no messages" '1 line, 1 message, 1 session: 0 problems, 2 warnings'
    chmod 600 "$HISTORY"
    echo 'no id at all' >"$HISTORY.session"
    run_expect 0 hist-check
    stdout_line 1 "$HISTORY.session: warning: it names no session"
    unset CHAT_HISTORY
    make_repo
    run_expect 0 hist-append hello
    chmod 755 .git/aicoder
    run_expect 0 hist-check
    stdout_line 1 "$WORK/.git/aicoder: warning: others have access to it: its mode is 0755"
}

@test "hist-check: a session that another program begins in the meantime has messages" {
    hist_line s user one >"$HISTORY"
    # It has read the history, and will read which session is current.
    background strace -qq -o trace -P "$HISTORY.session" -e inject=newfstatat:signal=STOP:when=1 hist-check
    wait_for held
    use_echo
    run_expect 0 chat --new two
    pkill -CONT -P "$BG" -x hist-check
    finish 0
    stdout_is '1 line, 1 message, 1 session: 0 problems, 0 warnings'
}

@test "hist-check: temporary files that killed programs left are told, and go" {
    local name
    hist_line s user one >"$HISTORY"
    for name in '' .session .idx; do echo secret >"$HISTORY$name.123.0.tmp"; done
    echo mine | tee "$HISTORY.x.0.tmp" "$HISTORY.0.tmp" "${HISTORY}x.1.0.tmp" other.1.0.tmp >"$HISTORY.1.0.tmp.gz"
    run_expect 1 hist-check
    stdout_is "$HISTORY: killed programs left 3 temporary files beside it" '1 line, 1 message, 1 session: 1 problem, 0 warnings'
    # An empty one may be so new that its program has not locked it yet.
    : >"$HISTORY.124.0.tmp"
    run_expect 1 hist-check
    stdout_line 1 "$HISTORY: killed programs left 3 temporary files beside it"
    # One that is being written is none.
    flock "$HISTORY.123.0.tmp" hist-check >"$OUT" || :
    stdout_line 1 "$HISTORY: killed programs left 2 temporary files beside it"
    remember "$HISTORY"
    run_expect 0 hist-check --repair
    unchanged "$HISTORY"
    for name in '' .session .idx; do [[ ! -e $HISTORY$name.123.0.tmp ]] || fail "$name is there"; done
    [[ ! -e $HISTORY.124.0.tmp ]]
    for name in .x.0.tmp .0.tmp x.1.0.tmp .1.0.tmp.gz; do [[ -e $HISTORY$name ]] || fail "$name is gone"; done
    [[ -e other.1.0.tmp ]]
}

@test "hist-check: a temporary file that it examines before its program has locked it does not stay" {
    hist_line s user one >"$HISTORY"
    # hist-check holds the lock of the first file; the program makes another one.
    run_expect 0 strace -qq -o trace -e inject=flock:error=EAGAIN:when=1 hist-load -q s
    grep -q INJECTED trace
    stderr_empty
    run_expect 0 hist-check
    stdout_is '1 line, 1 message, 1 session: 0 problems, 0 warnings'
}

@test "hist-check: an index that a killed program was making is reported, and --repair removes it" {
    hist_line s user one >"$HISTORY"
    printf 'HISTIDX\001' >"$HISTORY.idx.tmp"
    run_expect 1 hist-check
    stdout_line 1 "$HISTORY: killed programs left 1 temporary file beside it"
    # A program that holds its lock is still making it.
    flock "$HISTORY.idx.tmp" hist-check >"$OUT"
    stdout_is '1 line, 1 message, 1 session: 0 problems, 0 warnings'
    run_expect 0 hist-check --repair
    [[ ! -e $HISTORY.idx.tmp ]]
    # A file of the user's by that name stays.
    echo mine >"$HISTORY.idx.tmp"
    run_expect 0 hist-check --repair
    is mine "$HISTORY.idx.tmp" mine
}

@test "hist-check: an index that does not match the history is removed, or the report says that it stays" {
    hist_lines a 3000 >"$HISTORY"
    run_expect 0 hist-sessions
    cp "$HISTORY.idx" kept.idx
    # An edit outside of the samples, before another line is appended.
    local at
    at=$(grep -abo '"session_id":"a"' "$HISTORY" | sed -n 215p | cut -d: -f1)
    printf b | dd of="$HISTORY" bs=1 seek=$((at + 14)) conv=notrunc status=none
    hist_line a user x >>"$HISTORY"
    run_expect 0 hist-check
    stdout_line 1 "$HISTORY.idx: warning: it did not match the history, and was removed"
    [[ ! -e $HISTORY.idx ]]
    cp kept.idx "$HISTORY.idx"
    chmod a-w "$(dirname "$HISTORY")"
    [[ -w $(dirname "$HISTORY") ]] || {
        run_expect 0 hist-check
        stdout_line 1 "$HISTORY.idx: warning: it does not match the history, and could not be removed"
    }
    chmod u+w "$(dirname "$HISTORY")"
}

@test "hist-check: the quarantine is synced before the history is replaced, and a failure leaves both" {
    need_strace
    { hist_line s user one; echo bad; } >"$HISTORY"
    cp "$HISTORY" before
    traced -f -o trace -y -e trace=fdatasync,fsync,rename hist-check -q --repair >"$OUT"
    grep -oE 'fdatasync\([0-9]+<.*quarantine|rename\(.*tmp' trace | sed 's/(.*//' >order
    is order order fdatasync rename
    cp before "$HISTORY"
    rm "$HISTORY.quarantine"
    RAN=strace run_expect 2 strace -qq -o trace -e trace=fdatasync -e inject=fdatasync:error=EIO hist-check -q --repair
    stderr_is "hist-check: cannot write '$HISTORY.quarantine': Input/output error"
    same history before "$HISTORY"
    [[ ! -e $HISTORY.quarantine ]]
    ln -s elsewhere "$HISTORY.quarantine"
    run_expect 2 hist-check -q --repair
    stderr_is "hist-check: cannot open '$HISTORY.quarantine': is a symbolic link"
    same history before "$HISTORY"
    [[ -z $(find . -name '*.tmp') ]]
}

@test "hist-check: a killed repair's lines are not lost, whatever rewrites next" {
    need_strace
    local next
    for next in 'hist-check -q --repair' 'hist-delete -q --force gone'; do
        rm -f "$HISTORY"*
        { hist_line s user one; echo bad; hist_line gone user two; echo bad; } >"$HISTORY"
        run_expect 137 traced -o trace -e trace=rename -e inject=rename:signal=KILL:when=1 hist-check -q --repair
        is quarantine "$HISTORY.quarantine" bad bad
        # Others go on meanwhile.
        echo worse >>"$HISTORY"
        # shellcheck disable=SC2086
        run_expect 0 $next
        run_expect 0 hist-check -q --repair
        is quarantine "$HISTORY.quarantine" bad bad bad bad worse
        same 'the files' <(printf '%s\n' history*) <(printf 'history.jsonl%s\n' '' .quarantine)
    done
    # A line that was torn in the quarantine remains a separate line.
    printf 'old\nfir' >"$HISTORY.quarantine"
    { echo first; echo second; } >>"$HISTORY"
    run_expect 0 hist-check -q --repair
    is quarantine "$HISTORY.quarantine" old fir first second
}

@test "hist-check: a repair that was killed after the rename never shortens the quarantine" {
    need_strace
    local call n
    for call in rename unlink fsync; do
        for n in 1 2 3 4; do
            rm -f "$HISTORY"*
            { hist_line s1 user one; echo 'BAD LINE'; hist_line s2 user two; } >"$HISTORY"
            echo old >"$HISTORY.quarantine"
            strace -qq -o trace -e "trace=$call" -e "inject=$call:signal=KILL:when=$n" \
                hist-check -q --repair >"$OUT" 2>&1 || :
            run_expect 0 hist-check --repair
            # An inode number may come again: every other file of the history's names the one that there was.
            sed -i "s/\"history\":[0-9]*/\"history\":$(stat -c %i "$HISTORY")/" "$HISTORY".*.undo 2>/dev/null || :
            run_expect 0 hist-delete -q --force s1
            is "quarantine after $call $n" <(awk '!seen[$0]++' "$HISTORY.quarantine") old 'BAD LINE'
        done
    done
}

@test "hist-check: takes no argument, and changes nothing without --repair" {
    run_expect 2 hist-check name
    stderr_is "hist-check: no argument is expected (see 'hist-check --help')"
    echo bad >"$HISTORY"
    remember "$HISTORY"
    run_expect 1 hist-check
    unchanged "$HISTORY"
    run_expect 2 sh -c 'hist-check >/dev/full'
}
