#!/usr/bin/env bats
#
# hist-delete: erases sessions; and the rewriting of a history, with what may go wrong in it.

# shellcheck disable=SC2016,SC2030,SC2031,SC2094

load ../helper
load ../history

# three: the sessions old, middle and new, two lines each, by turns.
three() {
    local n
    for n in 1 2; do
        hist_line old user "old $n" "2024-01-0${n}T00:00:00.000000+00:00"
        hist_line middle user "middle $n apple" "2024-02-0${n}T00:00:00.000000+00:00"
        hist_line new user "new $n" "$(date -u +%Y-%m-%dT%H:%M:%S.000000+00:00)"
    done >"$HISTORY"
    cp "$HISTORY" before
}

# meanwhile CHANGE STATUS COMMAND...: another program, which has the history locked, does the change when the command
# has made its choice and waits for the lock.
meanwhile() {
    local change=$1 status=$2 holder
    shift 2
    rm -f locked go
    mkfifo go
    flock "$HISTORY" sh -c "echo locked >locked; read -r _ <go; $change" 3>&- 4>&- &
    holder=$!
    BACKGROUND+=("$holder")
    wait_for test -s locked || return 1
    background "$@"
    wait_for appends "$BG" || return 1
    echo >go
    wait "$holder" || fail "the change failed: $change" || return 1
    finish "$status"
}

# left SESSION...: exactly the lines of these sessions are in the history, as they were.
left() {
    local names
    names=$(printf '%s\n' "$@")
    jq -c --arg names "$names" 'select(.session_id as $id | $names / "\n" | index($id))' before >wanted
    same history wanted "$HISTORY"
}

# alone: nothing but the history and what the test has made is there.
alone() {
    [[ -z $(find . -name '*.tmp') ]] || fail "left behind: $(ls -A)"
}

# went SESSION...: that is what was printed.
went() {
    cut -f 1 "$OUT" >names
    is went names "$@"
}

# gone REGEX FILE...: none of them has it any more.
gone() {
    local regex=$1
    shift
    if grep -rq -e "$regex" "$@"; then fail "still there: $regex"; fi
}

# ---- what goes

@test "hist-delete: asks on the terminal, and only y is yes" {
    three
    local answer
    for answer in 'n\n' '\n' 'x\n' '\x04'; do
        run_expect 0 on_tty --wait 'delete 1 session \(2 messages, 1 KiB\)\? \[y/N\] ' --type "$answer" hist-delete old
        stdout_lacks $'old\t'
        same history before "$HISTORY"
    done
    run_expect 130 on_tty --wait 'y/N' --type '\x03' hist-delete old
    same history before "$HISTORY"
    run_expect 0 on_tty --wait 'y/N' --type 'y\n' hist-delete --older-than 30d
    stdout_has 'delete 2 sessions (4 messages, 1 KiB)? ' 'middle'
    left new
    alone
}

@test "hist-delete: a session that was loaded while the question was open stays" {
    three
    meanwhile 'hist-load -q --history "$CHAT_HISTORY" middle' 0 hist-delete --force --older-than 1d
    went old
    left middle new
    stderr_is 'hist-delete: 1 session stays: used since it was chosen'
}

# ---- files

@test "rewrite: mode and owner stay" {
    three
    chmod 640 "$HISTORY"
    chown 1234:2345 "$HISTORY" 2>/dev/null || :
    stat -c '%a %u %g' "$HISTORY" >rights
    run_expect 0 hist-delete --force old
    stat -c '%a %u %g' "$HISTORY" | cmp - rights
}

@test "rewrite: nothing to do writes nothing" {
    need_strace
    three
    traced -f -o trace -e trace=openat,rename,write hist-delete --force --older-than 9999d
    if grep -q '\.tmp"' trace; then fail "$(cat trace)"; fi
    same history before "$HISTORY"
}

# ---- faults

@test "rewrite: a list of deletions that cannot be looked at stops it" {
    need_strace
    three
    : >"$HISTORY.deleted"
    RAN=strace run_expect 2 strace -qq -o trace -P "$HISTORY.deleted" -P history.jsonl.deleted -e trace=newfstatat,openat \
        -e inject=newfstatat:error=EIO hist-delete --force old
    stderr_has "cannot open '$HISTORY.deleted': Input/output error"
    same history before "$HISTORY"
    run_expect 0 hist-delete --force old
    is deletions <(jq -r .session_id "$HISTORY.deleted") old old
}

# calls COMMAND [TEXT]: runs it traced and prints `NAME NUMBER` for each system call of the rewrite, from where the
# history is opened for it; with TEXT those that have it. NUMBER counts the calls of that name from the start.
calls() {
    traced -y -o trace -e trace=all "${@:2}" >"$TMPDIR/traced" 2>&1 || :
    awk -v text="$1" '
        { name = $0; sub(/\(.*/, "", name); if (name !~ /^[a-z0-9_]+$/) next; count[name]++ }
        /O_RDWR.*history\.jsonl/ { begun = 1 }
        begun && (text == "" || index($0, text)) { print name, count[name] }' trace
}

# bad_three COMMAND: the sessions of three with bad lines between; `after` is what the command makes of it.
bad_three() {
    three
    { head -n 3 "$HISTORY"; echo 'no JSON'; tail -n +4 "$HISTORY"; printf '{"torn'; } >before
    case $1 in
    hist-delete*) grep -v '"old"' before | head -c -1 >after ;;
    hist-check*) sed -n '1,3p;5,7p' before >after ;;
    esac
    start_anew
}

start_anew() {
    cp before "$HISTORY"
    rm -f "$HISTORY.quarantine"*
    echo 'of old' >"$HISTORY.quarantine"
}

# quarantined: it has the bad lines of bad_three behind what was there, after a kill perhaps twice.
quarantined() {
    is quarantine <(awk '!seen[$0]++' "$HISTORY.quarantine") 'of old' 'no JSON' '{"torn'
}

@test "rewrite: a fault in any call of it leaves the history as it was, and nothing behind" {
    need_strace
    local command call n status outcomes
    for command in 'hist-delete --force old' 'hist-check -q --repair'; do
        bad_three "$command"
        # shellcheck disable=SC2086
        calls "$WORK" $command | grep -v '^close ' >calls
        [[ $(cut -d ' ' -f 1 calls | sort -u | tr '\n' ' ') == *'fchmod '*'flock '*'fsync '*'openat '*'pread64 '*'rename '*'write '* ]] ||
            fail "$(cat trace)"
        outcomes=
        while read -r call n; do
            start_anew
            # shellcheck disable=SC2086
            run_expect 0 sh -c 'set +e; "$@"; echo $? >status' - \
                strace -qq -o trace -e "trace=$call" -e "inject=$call:error=EIO:when=$n" $command
            grep -q INJECTED trace || fail "$call $n was not met"
            status=$(cat status)
            if cmp -s before "$HISTORY"; then
                outcomes+="old:$status "
                [[ $status == 2 ]] || fail "$call $n: status $status"
                is "quarantine after $call $n" "$HISTORY.quarantine" 'of old'
                stderr_matches "^${command%% *}: cannot .*'.*': Input/output error\$" || fail "$call $n"
            else
                same "history with $call $n" after "$HISTORY"
                outcomes+="new:$status "
                [[ $command != hist-check* ]] || quarantined
                [[ $status == 0 ]] || stderr_matches 'is rewritten, but a power cut may undo it: Input/output error$' ||
                    fail "$call $n"
            fi
            alone || fail "$call $n"
        done <calls
        [[ $outcomes == *old:2*new:2* ]] || fail "$command: $outcomes"
    done
    # Short of room at every size, the last byte included.
    local size
    three
    for size in 0 1 100 $(($(stat -c %s "$HISTORY") * 2 / 3 - 1)); do
        said=$(prlimit --fsize="$size" hist-delete --force old 2>&1) && fail "deleted with $size bytes"
        [[ $said == "hist-delete: cannot rewrite '$HISTORY': File too large" ]] || fail "$size: $said"
        same history before "$HISTORY"
        alone
    done
}

@test "hist-delete: what could not be printed or finished is said to be done" {
    three
    run_expect 2 sh -c 'hist-delete --force old >/dev/full'
    stderr_is 'hist-delete: 1 session is erased' 'hist-delete: cannot write to standard output: No space left on device'
    left middle new
    run_expect 2 sh -c 'hist-delete --dry-run --force middle >/dev/full'
    stderr_is 'hist-delete: cannot write to standard output: No space left on device'
    need_strace
    echo middle >"$HISTORY.session"
    run_expect 2 strace -qq -o trace -P "$HISTORY.session" -e trace=unlink,unlinkat \
        -e inject=unlink,unlinkat:error=EACCES hist-delete -q --force middle
    stderr_is "hist-delete: the sessions are erased, but cannot remove '$HISTORY.session': Permission denied"
    left new
}

@test "rewrite: synced before it is renamed, the directory after, whatever CHAT_FSYNC" {
    need_strace
    three
    CHAT_FSYNC=0 traced -f -y -o trace -e trace=fsync,rename,write hist-delete --force old
    grep -E 'history.jsonl|work>' trace | sed -nE 's/^[0-9]+ +(write|rename|fsync)\([0-9]*(<.*\.tmp>|<[^>]*work>)?.*/\1\2/p' |
        sed -E 's/<.*tmp>/ new/; s/<.*work>/ directory/' | uniq >order
    is order order 'write new' 'fsync new' rename 'fsync directory'
}

@test "rewrite: killed at any system call, the history is the old one or the new one, and the next run goes through" {
    need_strace
    local command call n outcomes
    for command in 'hist-delete -q --force old' 'hist-check -q --repair'; do
        bad_three "$command"
        # shellcheck disable=SC2086
        calls '' $command >calls
        [[ $(wc -l <calls) -gt 50 ]] || fail "$(cat trace)"
        outcomes=
        while read -r call n; do
            start_anew
            # shellcheck disable=SC2086
            run_expect 137 strace -qq -o trace -e "trace=$call" \
                -e "inject=$call:signal=KILL:when=$n" $command || fail "$call $n"
            if cmp -s before "$HISTORY"; then
                outcomes+=old,
            else
                same "history after death at $call $n" after "$HISTORY"
                outcomes+=new,
                [[ $command != hist-check* ]] || quarantined
            fi
            # shellcheck disable=SC2086
            $command >"$TMPDIR/again" 2>&1 || [[ $? == 1 ]] || fail "$call $n: the next run fails" "$(cat "$TMPDIR/again")"
            same "history of the next run after $call $n" after "$HISTORY"
            [[ $command != hist-check* ]] || quarantined
            alone || fail "$call $n"
        done <calls
        [[ $outcomes == old,*new, ]] || fail "$command: $outcomes"
    done
}

@test "rewrite: a signal ends it with the old history, and without the new file" {
    three
    local signal status holder
    mkfifo go
    for signal in INT TERM HUP QUIT; do
        flock "$HISTORY" sh -c 'echo locked >locked; read -r _ <go' 3>&- 4>&- &
        holder=$!
        wait_for test -s locked
        background hist-delete --force old
        sleep 0.3
        kill "-$signal" "$BG"
        status=$((128 + $(kill -l "$signal")))
        finish "$status"
        echo >go
        wait "$holder" || :
        rm locked
        same history before "$HISTORY"
        alone
    done
}

@test "rewrite: a signal while it copies" {
    need_strace
    three
    # Comes with the sync of the copy, before the lock is taken again.
    run_expect 143 strace -qq -o trace -e trace=fsync -e inject=fsync:signal=TERM:when=1 hist-delete --force old
    stdout_empty
    same history before "$HISTORY"
    alone
}

# ---- other programs at the same time

@test "rewrite: 4 writers lose no line while sessions are deleted" {
    hist_lines gone0 2000 >"$HISTORY"
    local i pids=() rounds=0
    for i in 1 2 3 4; do
        bash -c 'for ((n = 1; n <= 100; n++)); do hist-append -s "w$1" "$n" || exit 1
            ((n % 10)) || hist-append -s "gone$n-$1" x || exit 1; done; : >"done$1"' - "$i" >"ids$i" 2>>errors 3>&- 4>&- &
        pids+=($!)
    done
    # By choice and by name, as long as they write.
    until [[ -e done1 && -e done2 && -e done3 && -e done4 ]] || ((++rounds > 500)); do
        hist-delete -q --force --match 'message 7' >>deleted 2>>errors
        hist-sessions -n all | grep -o '^gone[^	]*' | hist-delete -q --force - >>deleted 2>>errors || :
        hist_lines "gone$rounds" 50 | hist-append --json >ids0
    done
    for i in "${pids[@]}"; do wait "$i"; done
    [[ ! -s errors ]] || fail "$(cat errors)"
    # It did happen between what they wrote.
    [[ $rounds -ge 5 ]] || fail "only $rounds rounds"
    grep -q '^gone[0-9]*-[1-4]	' deleted || fail 'nothing of theirs was deleted while they wrote'
    for i in 1 2 3 4; do
        jq -r "select(.session_id == \"w$i\") | .content" "$HISTORY" | cmp - <(seq 100)
    done
    hist-sessions -n all | grep -o '^gone[^	]*' | hist-delete -q --force - >>deleted
    jq -e '.session_id | startswith("w")' "$HISTORY" >"$OUT"
    lines_are 400
    alone
}

@test "rewrite: 4 writers lose no line while the history is repaired, and no bad one is lost either" {
    local i pids=()
    hist_lines old 500 >"$HISTORY"
    # Takes the lock as all writers do, and leaves what is no message.
    cat >tear <<'END'
import fcntl, os, sys
while True:
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
    fcntl.flock(fd, fcntl.LOCK_EX)
    if os.fstat(fd).st_ino == os.stat(sys.argv[1]).st_ino:
        break
    os.close(fd)
os.write(fd, (sys.argv[2] + "\n").encode())
END
    for i in 1 2 3 4; do
        bash -c 'for ((n = 1; n <= 60; n++)); do hist-append -s "w$1" "$n" || exit 1
            ((n % 6)) || python3 tear "$CHAT_HISTORY" "torn $1 $n"; done; echo "done"' - "$i" >"ids$i" 2>>errors 3>&- 4>&- &
        pids+=($!)
    done
    : >moved
    while [[ $(cat ids? | grep -cx 'done') -lt 4 ]]; do
        hist-check --repair --json 2>>errors | jq -r 'select(.type == "repair") | .moved' >>moved
    done
    for i in "${pids[@]}"; do wait "$i"; done
    hist-check --repair --json | jq -r 'select(.type == "repair") | .moved' >>moved
    [[ ! -s errors ]] || fail "$(cat errors)"
    for i in 1 2 3 4; do
        jq -r "select(.session_id == \"w$i\") | .content" "$HISTORY" | cmp - <(seq 60)
    done
    [[ $(jq -r 'select(.session_id == "old") | .content' "$HISTORY" | wc -l) == 500 ]]
    sort "$HISTORY.quarantine" >got
    for i in 1 2 3 4; do seq -f "torn $i %g" 6 6 60; done | sort >wanted
    same quarantine wanted got
    # It did happen while they wrote, several times.
    [[ $(wc -l <moved) -ge 3 ]] || fail "only $(wc -l <moved) repairs"
    run_expect 0 hist-check -q
    stdout_empty
    alone
}

@test "rewrite: a reader sees the old history or the new one" {
    hist_lines a 3000 >"$HISTORY"
    hist_lines b 3000 >>"$HISTORY"
    cp "$HISTORY" both
    # Every byte, in two ways, until it is told to stop.
    background bash -c 'until [[ -e stop ]]; do
        hist-sessions | cut -f 1,3 | tr "\t\n" "= "; echo
        hist-export -f jsonl --all-sessions | cksum; done'
    local i
    for ((i = 0; i < 20; i++)); do
        hist-delete -q --force a >"$TMPDIR/deleted"
        # Both are there for a while, and for a while is none.
        ((i % 2)) || sleep 0.1
        cp both new
        mv new "$HISTORY"
        ((i % 2)) || sleep 0.1
    done
    : >stop
    finish 0
    stderr_empty
    sort -u "$OUT" >seen
    { echo 'b=3000 '; echo 'b=3000 a=3000 '; tail -n 3000 both | cksum; cksum <both; } | sort -u >wanted
    same 'what was seen' wanted seen
}

@test "rewrite: one that reads goes on in the old history" {
    hist_lines a 20000 >"$HISTORY"
    hist_lines b 1 >>"$HISTORY"
    mkfifo pipe
    hist-show --json a >pipe 2>"$TMPDIR/errors" &
    local reader=$!
    exec 5<pipe
    head -n 1 <&5 >/dev/null
    run_expect 0 hist-delete --force a
    cat <&5 | tail -n 1 | jq -e '.content == "message 20000"' >"$OUT"
    exec 5<&-
    wait "$reader"
}

@test "rewrite: one that was used since it was chosen stays, unless it was named" {
    three
    # It waits for the lock with its choice made; what comes meanwhile is stored by the holder of the lock.
    local how
    for how in '--older-than 30d' old; do
        cp before "$HISTORY"
        hist_line old user meanwhile >line
        # shellcheck disable=SC2086
        meanwhile 'cat line >>history.jsonl' 0 hist-delete --force $how
        if [[ $how == old ]]; then
            went old
            left middle new
        else
            went middle
            stderr_is 'hist-delete: 1 session stays: used since it was chosen'
            jq -r 'select(.session_id == "old") | .content' "$HISTORY" >got
            is old got 'old 1' 'old 2' meanwhile
        fi
    done
}

@test "rewrite: when all that were chosen were used since, nothing is written and nothing is current any less" {
    three
    run_expect 0 hist-load -q old
    hist_line old user meanwhile >line
    cat before line >wanted
    meanwhile 'cat line >>history.jsonl; ls -i history.jsonl >inode' 0 hist-delete --force --match 'OLD 1'
    stdout_empty
    stderr_is 'hist-delete: 1 session stays: used since it was chosen'
    same history wanted "$HISTORY"
    cmp inode <(ls -i history.jsonl)
    pointer_is "$HISTORY.session" old
    alone
}

# The lines of `old` are removed as hist-delete removes them.
without_old='grep -v \"old\" before >new; mv new history.jsonl'

@test "rewrite: what another program has deleted meanwhile is not listed as deleted" {
    three
    meanwhile "$without_old" 0 hist-delete --force old new
    went new
    stderr_is 'hist-delete: another program has deleted 1 of the chosen sessions meanwhile'
    left middle
}

@test "hist-title: a session that is deleted meanwhile gets no title" {
    three
    meanwhile "$without_old" 1 hist-title old 'a title'
    stdout_empty
    stderr_is "hist-title: session 'old' was deleted meanwhile"
    left middle new
}

@test "rewrite: a fault when it has to begin anew leaves the history as the others made it" {
    need_strace
    three
    hist_line old user meanwhile >line
    cat before line >wanted
    local fault
    for fault in ftruncate:error=EIO lseek:error=EIO write:error=ENOSPC:when=2 pread64:error=EIO:when=7+; do
        cp before "$HISTORY"
        meanwhile 'cat line >>history.jsonl' 2 strace -qq -y -o trace -e "trace=${fault%%:*}" -e "inject=$fault" \
            hist-delete --force --older-than 30d
        grep -q 'history.jsonl.*INJECTED' trace || fail "$fault was not met: $(cat trace)"
        stdout_empty
        stderr_matches "^hist-delete: cannot (rewrite|read) '$HISTORY': (Input/output error|No space left on device)\$"
        same "history after $fault" wanted "$HISTORY"
        alone
    done
}

@test "rewrite: a file that is put in its place meanwhile is the one that counts" {
    three
    meanwhile 'tac before >new; mv new history.jsonl' 0 hist-delete --force old
    tac before | jq -c 'select(.session_id != "old")' >wanted
    same history wanted "$HISTORY"
    alone
}

# ---- trust

@test "rewrite: a history in a repository stays one's own, and nothing keeps what was erased" {
    unset CHAT_HISTORY
    use_echo
    make_repo
    HISTORY=$WORK/.aicoder/history.jsonl
    chat -q -s first one >"$OUT"
    chat -q two >"$OUT"
    current=$(head -n 1 .aicoder/session)
    id=$(head -n 1 "$HISTORY" | jq -r .id)
    grep -rq "$id" "$HOME/.local/share/aicoder/repositories"
    run_expect 0 hist-delete --force first
    gone "$id" .git "$HOME"
    [[ $(stat -c %h "$HISTORY") -eq 2 ]]
    run_expect 0 chat three
    stderr_empty
    stdout_has '[3 messages]'
    # Emptied, too, and begun again.
    run_expect 0 hist-delete --force --keep 0
    went "$current"
    [[ ! -s $HISTORY && ! -e .aicoder/session ]]
    run_expect 0 chat four
    stderr_empty
    run_expect 0 chat five
    stderr_empty
    stdout_has '[3 messages]'
}

# ---- against an oracle

@test "hist-delete: on random histories what goes and what stays is what a few lines of Python say" {
    RUN_LIMIT=300 run_expect 0 "$TESTS/tools/delete-oracle" "${DELETE_ORACLE_HISTORIES:-100}"
    stdout_empty
    stderr_empty
}

@test "hist-delete: what was erased is not in the index" {
    RUN_LIMIT=300 run_expect 0 "$TESTS/tools/delete-oracle" 60 4000 large
    stdout_empty
    stderr_empty
}

@test "hist-delete: the oracle sees what is wrong" {
    mkdir wrong
    local sed
    # One more line gone, one that stays.
    for sed in 's/.*/hist-delete.real "$@"; s=$?; [ "$2" = --dry-run ] || sed -i 2d "$CHAT_HISTORY"; exit $s/' \
        's/.*/[ "$2" = --dry-run ] \&\& exec hist-delete.real "$@"; exec hist-delete.real --dry-run "$@"/'; do
        { echo '#!/bin/sh'; echo | sed "$sed"; } >wrong/hist-delete
        chmod +x wrong/hist-delete
        ln -sf "$BIN/hist-delete" wrong/hist-delete.real
        PATH=$PWD/wrong:$PATH run_expect 1 "$TESTS/tools/delete-oracle" 40 1
        stdout_matches '^delete-oracle 1 [0-9]+: '
    done
}
