#!/usr/bin/env bats
#
# hist-check: what is wrong with a history, and putting it right.

load ../helper

setup() {
    sandbox
    use_history
    umask 077
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

@test "hist-check: a temporary file that it examines before its program has locked it does not stay" {
    hist_line s user one >"$HISTORY"
    # hist-check holds the lock of the first file; the program makes another one.
    run_expect 0 strace -qq -o trace -e inject=flock:error=EAGAIN:when=1 hist-load -q s
    grep -q INJECTED trace
    stderr_empty
    run_expect 0 hist-check
    stdout_is '1 line, 1 message, 1 session: 0 problems, 0 warnings'
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
