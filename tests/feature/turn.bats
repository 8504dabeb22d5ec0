#!/usr/bin/env bats
#
# A turn of chat when things go wrong in its middle: what is on disk when, and what is left. Signals, kill -9 at
# each system call, closed pipes and descriptors, full disks, many at once.

# shellcheck disable=SC2016,SC2034

load ../helper

# lines_are_whole N: the history has N lines, each a valid one.
lines_are_whole() {
    local got
    got=$(jq -c 'select((.id | type) == "string" and (.session_id | type) == "string" and (.timestamp | type) == "string"
        and (.role | type) == "string" and (.content | type) == "string")' "$HISTORY" | wc -l)
    [[ $((got)) == "$1" && $(($(wc -l <"$HISTORY"))) == "$1" ]] ||
        fail "lines: wanted $1, got $(wc -l <"$HISTORY") of which $((got)) are whole"
}

# ends_with LINE...: role, content and finish_reason of the last lines.
ends_with() {
    tail -n $# "$HISTORY" >ends
    json_is ends '"\(.role):\(.content):\(.finish_reason // "")"' "$@"
}

# every_tool_reads TEXT: session s, by each program.
every_tool_reads() {
    run_expect 0 hist-sessions && stdout_matches $'^s\t' || return 1
    run_expect 0 hist-show s && stdout_has "$1" || return 1
    run_expect 0 hist-search "$1" || return 1
    run_expect 0 hist-load s && stdout_has "$1"
}

# ---- what is on disk when

@test "turn: the prompt is stored when the request arrives, the answer when it has ended" {
    use_history
    start_llm --hook 'cp "$CHAT_HISTORY" at-"$FAKE_N"' --reply one --reply two
    run_expect 0 chat -s s hello
    json_is at-1 '.role + ":" + .content' user:hello
    run_expect 0 chat -s s -S system again
    json_is at-2 '.role + ":" + .content' user:hello assistant:one system:system user:again
    [[ $(cat "$RECORD/1.hook" "$RECORD/2.hook") == '' ]]
}

@test "turn: the connection is made while the prompt is synced, and the request leaves after it" {
    use_history
    start_llm --reply hi
    run_expect 0 traced -f -o trace -e trace=fdatasync,connect,sendto \
        -e inject=fdatasync:delay_enter=1000000:when=1 chat hello
    sed -nE '/AF_INET/s/.*/connect/p; /fdatasync/s/.*[0-9]+\) *= 0.*|.*resumed.*/synced/p; /POST/s/.*/sent/p' trace |
        head -n 3 >order
    is order order connect synced sent
    CHAT_FSYNC=0 run_expect 0 traced -f -o trace -e trace=fdatasync,fsync chat hello
    [[ ! -s trace ]]
}

@test "turn: a signal during the sync ends the turn before the request is sent" {
    use_history
    start_llm --reply hi
    background strace -qq -o trace -e trace=fdatasync -e inject=fdatasync:signal=STOP:when=1 chat hello
    wait_for held
    pkill -TERM -P "$BG" -x chat
    pkill -CONT -P "$BG" -x chat
    finish 143
    stdout_empty
    requests_are 0
}

@test "turn: a new session costs one sync before the request, and none with CHAT_FSYNC=0" {
    use_history
    use_echo
    run_expect 0 chat -s other before
    start_llm --reply hi --reply hi --reply hi --reply hi
    for how in '' '-N --title T'; do
        # shellcheck disable=SC2086
        run_expect 0 traced -f -o trace -e trace=fdatasync,fsync,sendto chat $how hello
        sed -nE '/POST/q; /resumed/!s/^[0-9]+ +([a-z]+)\(.*/\1/p' trace >order
        is order order fdatasync
        # shellcheck disable=SC2086
        CHAT_FSYNC=0 run_expect 0 traced -f -o trace -e trace=fdatasync,fsync chat $how hello
        [[ ! -s trace ]]
    done
    run_expect 0 hist-show -n 1 current
}

@test "turn: the directory of a new history is synced, too" {
    use_history
    use_echo
    run_expect 0 traced -y -o trace -e trace=fdatasync,fsync chat -s s hello
    sed -E 's/.*<(.*)>.*/\1/' trace >synced
    is synced synced "$HISTORY" "$WORK" "$HISTORY"
}

@test "turn: a history that is replaced while the model answers" {
    use_history
    start_llm --hook 'cp "$CHAT_HISTORY" new && mv new "$CHAT_HISTORY"' --reply hi
    run_expect 0 chat -s s hello
    lines_are_whole 2
    ends_with user:hello: assistant:hi:stop
}

@test "turn: an answer is not stored if its prompt is deleted while the model answers" {
    use_history
    start_llm --hook 'hist-delete -q --force "$(cat delete)"' --reply one --reply two --reply three
    run_expect 0 hist-append -q -s other x
    # Nothing of the session comes back: no answer, no title, and no text beside the history.
    echo s >delete
    run_expect 8 chat -s s --title T hello
    stdout_is one
    stderr_is 'chat: not stored: the prompt was deleted meanwhile'
    lines_are_whole 1
    [[ $(partials) == '' ]]
    # The answer to a prompt that was stored earlier.
    run_expect 0 chat -p echo -s s hello
    run_expect 8 chat -s s --regenerate
    stdout_is two
    stderr_is 'chat: not stored: the prompt was deleted meanwhile'
    lines_are_whole 1
    # Another session is deleted.
    echo other >delete
    run_expect 0 chat -s s hello
    lines_are_whole 2
    ends_with user:hello: assistant:three:stop
}

@test "turn: an answer is stored if the history is moved away while the model answers" {
    use_history
    start_llm --hook "mv '$HISTORY' moved" --reply one
    run_expect 0 chat -s s hello
    stdout_is one
    stderr_empty
    lines_are_whole 1
    ends_with assistant:one:stop
}

@test "turn: results and answers are not stored if their prompt is deleted while a tool runs" {
    use_history
    put_tool add 'hist-delete -q --force s'
    start_llm openai/tools-one --reply 'It is 5.'
    run_expect 8 chat -s s --yes -T ./add hello
    stdout_is 'It is 5.'
    stderr_is 'chat: not stored: the prompt was deleted meanwhile'
    lines_are_whole 0
    [[ $(partials) == '' ]]
}

# ---- kill -9

# changes COMMAND...: the system calls of the command, from the first that names a history or .aicoder on, that
# change something others can see: NAME and which of that name it is.
changes() {
    run_expect 0 traced -o trace "$@"
    awk -F'(' '/history[.]jsonl|aicoder/ { on = 1 } { n[$1]++ } on && !/O_RDONLY|write[(]1,|fchmod/ { print $1, n[$1] }' trace |
        grep -E '^(openat|write|fdatasync|fsync|rename|renameat|ftruncate|chmod|mkdir|mkdirat|unlink|unlinkat|linkat|symlinkat) ' >calls
    [[ $(($(wc -l <calls))) -ge 6 ]]
}

# killed_at CALL NUMBER COMMAND...
killed_at() {
    local at=$1:signal=KILL:when=$2
    shift 2
    run_expect 137 traced -o trace -e inject="$at" "$@"
}

@test "turn: killed at any system call, it leaves a history that every tool reads and the next append heals" {
    use_history
    use_echo
    run_expect 0 chat -s s first
    cp "$HISTORY" before
    changes chat -s s second
    while read -r call number <&9; do
        cp before "$HISTORY"
        killed_at "$call" "$number" chat -s s second
        every_tool_reads first
        run_expect 0 chat -s s third
        head -c "$(wc -c <before)" "$HISTORY" | cmp - before
        [[ $(jq -Rc 'select(try (fromjson | false) catch true)' "$HISTORY" | wc -l) -le 1 ]]
        tail -n 2 "$HISTORY" >last
        json_is last '"\(.role) \(.finish_reason) \(.content | split("\n")[-2:] | contains(["third"]))"' \
            'user null true' 'assistant stop true'
    done 9<calls
}

@test "turn: killed at any system call of the first run in a repository, the next one works, and is trusted" {
    use_echo
    make_repo repo
    cd repo || return 1
    changes chat first
    grep -q renameat calls
    while read -r call number <&9; do
        rm -rf .aicoder .git/aicoder "$HOME/.local"
        killed_at "$call" "$number" chat first
        run_expect 0 chat second
        run_expect 0 chat third
        stderr_empty
        stdout_has third messages
        HISTORY=.aicoder/history.jsonl
        lines_are_whole "$(wc -l <"$HISTORY")"
    done 9<calls
}

# printed N: the program in the background has printed at least that many bytes.
printed() {
    [[ $(wc -c <"$OUT.bg") -ge $1 ]]
}

# partials: the files of answers that are coming, or were.
partials() {
    find "${1:-.}" -name '*.partial.*' | sort
}

partials_are() {
    [[ $(partials | wc -l) == "$1" ]]
}

@test "turn: killed while the answer streams, at many moments, what was printed is stored by the next writer" {
    use_history
    start_llm --reply first openai/endless
    run_expect 0 chat -s s first
    [[ $(partials) == '' ]]
    seen=0
    for bytes in 0 0 0 1 2 5 10 20 40 100; do
        had=$(($(wc -l <"$HISTORY")))
        background chat -s s "prompt $had"
        [[ $bytes == 0 ]] || wait_for printed "$bytes"
        kill -KILL "$BG"
        finish 137
        cp "$OUT" printed
        left=$(partials | wc -l)
        # The prompt, unless it was killed before that; the answer is not there yet.
        now=$(($(wc -l <"$HISTORY")))
        [[ $now == "$had" || $now == $((had + 1)) ]]
        lines_are_whole "$now"
        every_tool_reads first
        run_expect 0 hist-append -q -s other next
        [[ $(partials) == '' ]]
        lines_are_whole $((now + left + 1))
        if ((left)); then
            ends_with "assistant:$(tail -n 2 "$HISTORY" | head -n 1 | jq -r .content):interrupted" user:next:
            tail -n 2 "$HISTORY" | head -n 1 >answer
            json_is answer '.reply_to, .session_id, .model, .provider' \
                "$(jq -r --arg p "prompt $had" 'select(.content == $p).id' "$HISTORY")" s test-model openai
            python3 - printed answer <<'END'
import json, sys
printed, stored = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))['content']
assert stored.startswith(printed) and not stored.replace('word ', '').strip('word '), (printed, stored)
END
            [[ ! -s printed ]] || seen=$((seen + 1))
        fi
    done
    [[ $seen -gt 3 ]]
    CHAT_PROVIDER='echo' run_expect 0 chat -s s -m echo:echo last
    ends_with user:last: "assistant:$(cat "$OUT"):stop"
    [[ $(partials) == '' ]]
}

@test "turn: the answer of a chat that was killed is stored before the next chat reads the session" {
    use_history
    start_llm --accept-silent
    background chat -s s first
    wait_for partials_are 1
    kill -KILL "$BG"
    finish 137
    lines_are_whole 1
    start_llm --reply fine
    run_expect 0 chat -s s second
    stderr_empty
    request_messages_are 1 user:second
    ends_with user:first: assistant::interrupted user:second: assistant:fine:stop
}

@test "turn: what streams is in a file before it is printed, which goes with the end, and others leave alone" {
    use_history
    # The file is made after the request was sent.
    hook='for i in $(seq 300); do cat "$CHAT_HISTORY".partial.* 2>/dev/null | grep . >"during-$FAKE_N" && break; sleep 0.1; done'
    start_llm --set 'chunk: event' --hook "$hook; stat -c %a \"\$CHAT_HISTORY\".partial.* >mode" \
        openai/endless
    background chat -s s question
    wait_for grep -q 'word.*word' "$OUT.bg"
    [[ $(partials | wc -l) == 1 && $(cat mode) == 600 ]]
    json_is during-1 '.role + ":" + .content, .reply_to' assistant: "$(jq -r .id "$HISTORY")"
    for i in 1 2; do run_expect 0 hist-append -q -s other "$i"; done
    run_expect 0 hist-check -q
    lines_are_whole 3
    [[ $(partials | wc -l) == 1 ]]
    kill -INT "$BG"
    finish 130
    [[ $(partials) == '' ]]
    lines_are_whole 4
    ends_with "assistant:$(cat "$OUT"):interrupted"
}

@test "turn: without a stored prompt there is no such file" {
    use_echo
    export CHAT_HISTORY=$WORK/h.jsonl
    for options in --no-store '--messages messages.json'; do
        echo '[]' >messages.json
        # shellcheck disable=SC2086
        run_expect 0 traced -o trace -e trace=openat,open chat $options hello
        if grep -q partial trace; then fail "a file with $options"; fi
    done
    [[ ! -e h.jsonl ]]
}

@test "turn: a file of another form, owner or kind is no answer" {
    use_history
    use_echo
    run_expect 0 chat -s s hello
    id=1795470989741-48f00f7e
    head -n 2 "$HISTORY" | tail -n 1 | jq -c --arg id "$id" '.id = $id | .content = "" | .finish_reason = "interrupted"' >"first"
    cp "$HISTORY" before
    # A name that is not ours, a link, a second name, one that others can write, one that is too large.
    { cat first; echo planted; } >"$HISTORY.partial.notes"
    ln -s "$HISTORY.partial.notes" "$HISTORY.partial.${id%?}0"
    mkfifo "$HISTORY.partial.${id%?}1"
    { cat first; echo planted; } >"$HISTORY.partial.${id%?}2" && ln "$HISTORY.partial.${id%?}2" second
    { cat first; echo planted; } >"$HISTORY.partial.${id%?}3" && chmod 666 "$HISTORY.partial.${id%?}3"
    { cat first; echo planted; } >"$HISTORY.partial.${id%?}4" && truncate -s 65M "$HISTORY.partial.${id%?}4"
    partials >were
    run_expect 0 hist-append -q -s other x
    lines_are_whole 3
    partials >are
    cmp were are
    rm "$HISTORY".partial.*
    # What begins with no line of ours has no text to be kept.
    : >"$HISTORY.partial.${id%?}5"
    head -c 50 first >"$HISTORY.partial.${id%?}6"
    { jq -c '.role = "user"' first; echo planted; } >"$HISTORY.partial.${id%?}7"
    { jq -c '.reply_to = "1-0"' first; echo 'the prompt was deleted'; } >"$HISTORY.partial.${id%?}8"
    run_expect 0 hist-append -q -s other x
    lines_are_whole 4
    [[ $(partials) == '' ]]
    # Text that is torn, or no UTF-8.
    { cat first; printf 'a\377b \303'; } >"$HISTORY.partial.$id"
    run_expect 0 hist-append -q -s other x
    ends_with $'assistant:a\uFFFDb \uFFFD:interrupted' user:x:
    # And once only, also when it could not be removed.
    { cat first; printf 'again'; } >"$HISTORY.partial.$id"
    run_expect 0 hist-append -q -s other x
    ends_with $'assistant:a\uFFFDb \uFFFD:interrupted' user:x: user:x:
    [[ $(partials) == '' ]]
}

@test "turn: many that are killed at once leave each answer once" {
    use_history
    use_echo
    for i in {1..12}; do
        # The last one has begun before the first has ended.
        chat -s s$((i % 3)) -o delay_ms=300 "$i one two three $(seq -s ' ' 100)" >"printed-$i" 2>/dev/null 3>&- 4>&- &
        BACKGROUND+=("$!")
    done
    wait_for grep -q two printed-12
    kill -KILL "${BACKGROUND[@]}" || :
    wait "${BACKGROUND[@]}" || :
    BACKGROUND=()
    # shellcheck disable=SC2046
    head -qn1 $(partials) | jq -r .reply_to | sort >left
    (($(wc -l <left) > 3))
    for i in {1..8}; do hist-append -q -s other "$i" & BACKGROUND+=("$!"); done
    wait
    BACKGROUND=()
    [[ $(partials) == '' ]]
    # One of them may have been killed after it stored its answer, before it removed the file.
    jq -r 'select(.role == "assistant").reply_to' "$HISTORY" | sort >got
    [[ $(comm -23 left got) == '' && $(uniq -d got) == '' ]]
    run_expect 0 hist-check -q
}

@test "turn: hist-check tells of answers that were left, hist-delete takes them along" {
    use_history
    use_echo
    background chat -s s -o delay_ms=300 "one two three $(seq -s ' ' 100)"
    wait_for grep -q two "$OUT.bg"
    kill -KILL "$BG"
    finish 137
    run_expect 0 hist-check
    stdout_matches "^$HISTORY: warning: 1 answer of a chat that was killed: the next program that writes stores it\$"
    cp "$(partials "$WORK")" kept
    name=$(basename "$(partials "$WORK")")
    run_expect 0 hist-delete --force s
    [[ $(partials) == '' ]]
    if grep -q one "$HISTORY"; then fail 'it is still there'; fi
    # Nor does it come back.
    cp kept "$name"
    run_expect 0 hist-append -q -s other x
    lines_are_whole 1
}

# ---- signals

# interrupted SIGNAL STATUS: in the middle of an answer that never ends.
interrupted() {
    rm -f "$HISTORY"
    background chat -s s hello
    wait_for grep -q word "$OUT.bg"
    kill -s "$1" "$BG"
    finish "$2" || return 1
    stderr_empty || return 1
    lines_are_whole 2 || return 1
    tail -n 1 "$HISTORY" >answer
    json_is answer '.role, .finish_reason' assistant interrupted || return 1
    # What was shown is what was stored, with the newline that it lacks.
    jq -j .content answer >wanted
    echo >>wanted
    stdout_is_file wanted
}

@test "turn: SIGINT, SIGTERM, SIGHUP in the middle: what came is stored, then the signal is obeyed" {
    use_history
    start_llm openai/endless
    interrupted INT 130
    interrupted TERM 143
    interrupted HUP 129
}

@test "turn: the signal itself ends it, for those who look" {
    use_echo
    cat >look.py <<'END'
import signal, subprocess, sys, time
for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    p = subprocess.Popen(['chat', '--no-store', '-o', 'delay_ms=200', 'a b c ' * 30], stdout=subprocess.PIPE)
    p.stdout.read(1)
    p.send_signal(number)
    p.stdout.read()
    print(p.wait() == -number)
END
    run_expect 0 python3 look.py
    stdout_is True True True
}

# ---- a turn that failed

# sent PROMPT LINE...: what the next turn of session s would send, as role:content.
sent() {
    local prompt=$1
    shift
    run_expect 0 chat -s s --dry-run -- "$prompt"
    stdout_json '.messages[] | "\(.role):\(.content)"' "$@"
}

@test "turn: a retry after a failure costs one prompt" {
    use_history
    use_echo
    for i in 1 2; do
        run_expect 5 chat -s s --retries 0 -o status=503 -q 'What is X?'
        stdout_empty
    done
    json_is "$HISTORY" '"\(.role):\(.content):\(.finish_reason // "")"' \
        'user:What is X?:' assistant::error 'user:What is X?:' assistant::error
    ends_with 'user:What is X?:' assistant::error
    json_is "$HISTORY" '.reply_to // empty' "$(sed -n 1p "$HISTORY" | jq -r .id)" "$(sed -n 3p "$HISTORY" | jq -r .id)"
    sent 'What is X?' 'user:What is X?'
    run_expect 0 chat -s s -v 'What is X?'
    stdout_is 'What is X?' '[1 message]'
    stderr_is 'session=s state=existing message_count=1' \
        'index=0 role=user content_length=10 has_tool_calls=false'
    sent next 'user:What is X?' $'assistant:What is X?\n[1 message]' user:next
    run_expect 0 hist-show s
    stdout_matches '^\[ended\] error$'
    run_expect 0 hist-export -f openai s
    stdout_json '.messages[] | "\(.role):\(.content)"' 'user:What is X?' $'assistant:What is X?\n[1 message]'
    run_expect 0 chat --dry-run --messages "$HISTORY" next
    stdout_json '.messages | length' 3
}

@test "turn: that messages are left out is said once, wherever it runs" {
    use_history
    use_echo
    export CHAT_MAX_MESSAGES=4
    for i in 1 2; do
        run_expect 0 chat -s s "$i"
        stderr_empty
    done
    # The turn that fails is not the last of those that sent everything.
    run_expect 0 chat -s s 3
    stderr_empty
    run_expect 0 chat -s s 4
    stdout_is 4 '[5 messages]'
    stderr_is 'chat: the oldest messages are no longer sent: the limits are CHAT_MAX_MESSAGES=4, CHAT_MAX_BYTES=102400 (max_messages, max_bytes); -N starts a new session'
    for i in 5 6; do
        run_expect 0 chat -s s "$i"
        stderr_empty
    done
    run_expect 0 chat -v -s s 7
    stderr_has 'chat: the oldest messages are not sent (CHAT_MAX_MESSAGES=4, CHAT_MAX_BYTES=102400)'
    # The same at the limit of bytes, however many messages there are; -q is silent.
    export CHAT_MAX_MESSAGES=all CHAT_MAX_BYTES=30
    for i in 1 2 3; do run_expect 0 chat -q -s t "$i"; done
    stderr_empty
    run_expect 0 chat -s u "long enough to be more than thirty bytes"
    stderr_empty
    # The newest answer and its prompt are always sent.
    run_expect 0 chat -s u between
    stderr_empty
    run_expect 0 chat -s u next
    stderr_is 'chat: the oldest messages are no longer sent: the limits are CHAT_MAX_BYTES=30 (max_messages, max_bytes); -N starts a new session'
    # --regenerate and --edit send what was sent before.
    run_expect 0 chat -s u --regenerate
    stderr_empty
}

@test "turn: a long session is in memory once" {
    [[ $VARIANT != asan ]] || skip 'the address sanitizer reserves terabytes'
    use_history
    use_echo
    python3 - 12000 >"$HISTORY" <<'END'
import sys
text = 'message ' * 650
for i in range(int(sys.argv[1])):
    role, more = ('assistant', ',"reply_to":"%013d-%08x"' % (1719500000000 + i - 1, i - 1)) if i % 2 else ('user', '')
    print('{"id":"%013d-%08x","session_id":"s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"%s","content":"%s%d"%s}'
          % (1719500000000 + i, i, role, text, i, more))
END
    # As much as the programs themselves need and 40 MB, and the 64 MB of the session.
    for limited in 'chat -q -s s hello' 'hist-show -n 2 s' 'hist-load -n 1 s' 'hist-show --raw -n 2 s'; do
        # shellcheck disable=SC2086
        run_expect 0 bash -c 'ulimit -v 184000; exec "$@"' - $limited
        stderr_empty
        stdout_has hello
    done
    run_expect 0 chat -s s -v --dry-run next
    stderr_has 'session=s state=existing message_count=21'
    # A prompt at the very beginning is found.
    { hist_line s system 'be terse'; cat "$HISTORY"; } >with
    run_expect 0 bash -c 'ulimit -v 184000; exec "$@"' - chat --history with -q -s s --dry-run next
    stdout_json '.system, (.messages | length)' 'be terse' 21
}

@test "turn: a prompt that failed takes no place among max_messages" {
    use_history
    use_echo
    run_expect 0 chat -s s one
    for i in 1 2 3; do run_expect 5 chat -s s --retries 0 -o status=500 two; done
    CHAT_MAX_MESSAGES=2 sent three user:one $'assistant:one\n[1 message]' user:three
}

@test "turn: a prompt without a mark is sent, and so is one that another program's mark names" {
    use_history
    use_echo
    {
        hist_line s user one
        hist_line s assistant '' '' '{"finish_reason":"error"}'
        hist_line s user two
        hist_line s assistant '' '' '{"finish_reason":"error","reply_to":"1-other"}'
        hist_line s user three
    } >h
    cp h "$HISTORY"
    sent four $'user:one\n\ntwo\n\nthree\n\nfour'
}

@test "turn: interrupted while it reads the prompt, nothing is stored" {
    use_history
    use_echo
    mkfifo fifo
    exec 5<>fifo
    background chat -q <fifo
    sleep 0.2
    kill -INT "$BG"
    finish 130
    exec 5>&-
    [[ ! -e $HISTORY ]]
}

@test "turn: a signal that was ignored at the start stays so" {
    use_history
    start_llm --set 'gate: 3 go' --reply 'a b c'
    (
        trap '' HUP
        exec chat -s s hello >out 2>err 3>&- 4>&-
    ) &
    BG=$!
    wait_for test -s out
    kill -HUP "$BG"
    : >go
    wait "$BG"
    [[ $(cat out) == 'a b c' && ! -s err ]]
    ends_with user:hello: 'assistant:a b c:stop'
}

# ---- standard output that fails

# piped COMMAND READER: the status of COMMAND in $status, with standard output read by READER.
piped() {
    RAN="$1 | $2"
    env --default-signal=PIPE bash -c "$1 2>\"\$0\" | { $2; } >out; exit \${PIPESTATUS[0]}" "$ERR" 3>&- 4>&- || status=$?
    : >"$OUT"
}

@test "turn: a closed pipe ends it quietly, with what came stored" {
    use_history
    start_llm openai/endless
    for how in '' --json; do
        status=0
        piped "chat -s s $how hello" 'head -c 30'
        judge $status 141
        stderr_empty
        tail -n 1 "$HISTORY" >answer
        json_is answer '.role, .finish_reason, (.content | startswith("word "))' assistant interrupted true
    done
    lines_are_whole 4
    # With SIGPIPE ignored by who started it, too.
    status=0
    piped "trap '' PIPE; chat -s s hello" 'head -c 30'
    judge $status 141
    stderr_empty
    lines_are_whole 6
}

@test "turn: a full disk as standard output is an error, the answer is stored whole" {
    use_history
    start_llm --reply 'one two'
    run_expect 1 bash -c 'exec chat -s s hello >/dev/full'
    stderr_is 'chat: cannot write to standard output: No space left on device'
    ends_with user:hello: 'assistant:one two:stop'
    for args in '--no-store --json hello' '--dry-run hello' --models --help --version; do
        run_expect 1 bash -c "exec chat $args >/dev/full"
        stderr_matches '^chat: cannot write to standard output'
        [[ $(($(wc -l <"$ERR"))) == 1 ]]
    done
}

# ---- a history that cannot be written

# answered_unsaved PATTERN COMMAND...: a warning, the answer all the same, status 8.
answered_unsaved() {
    local pattern=$1
    shift
    run_expect 8 "$@" || return 1
    stdout_is hello '[1 message]' || return 1
    stderr_matches "^chat: not stored: $pattern\$" || return 1
    [[ $(($(wc -l <"$ERR"))) == 1 ]] || fail 'stderr: wanted one line'
}

@test "turn: the disk is full: a warning, the question is asked, status 8, the history is what it was" {
    use_history
    use_echo
    run_expect 0 chat -s other before
    remember "$HISTORY"
    answered_unsaved "cannot write '$HISTORY': No space left on device" \
        traced -o trace -P "$HISTORY" -e trace=write -e inject=write:error=ENOSPC chat -s s hello
    unchanged "$HISTORY"
    # A file size limit tears the line; the part goes.
    size=$(wc -c <"$HISTORY")
    answered_unsaved "cannot write '$HISTORY': File too large" prlimit --fsize=$((size + 50)) chat -s s hello
    unchanged "$HISTORY"
    # Nothing is left of the first line of all. What is printed is in files, too, and short enough.
    answered_unsaved "cannot write 'x': File too large" prlimit --fsize=60 chat --history x -s s hello
    [[ ! -s x ]]
}

@test "turn: a sync that fails is a line that is not stored" {
    use_history
    use_echo
    run_expect 0 chat -s other before
    remember "$HISTORY"
    answered_unsaved "cannot write '$HISTORY': Input/output error" \
        traced -o trace -P "$HISTORY" -e trace=fdatasync -e inject=fdatasync:error=EIO chat -s s hello
    unchanged "$HISTORY"
    # The request is sent all the same if a thread has found the error.
    start_llm --reply hi
    run_expect 8 traced -f -o trace -P "$HISTORY" -e trace=fdatasync -e inject=fdatasync:error=EIO chat -s s hello
    stdout_is hi
    stderr_is "chat: not stored: cannot write '$HISTORY': Input/output error"
    unchanged "$HISTORY"
}

@test "turn: only the answer cannot be stored; only the prompt cannot" {
    use_history
    use_echo
    run_expect 0 chat -s other before
    answered_unsaved "cannot write '$HISTORY': No space left on device" \
        traced -o trace -P "$HISTORY" -e trace=write -e inject=write:error=ENOSPC:when=2 chat -s s hello
    lines_are_whole 3
    ends_with user:hello:
    # The next program that writes stores what is known of it.
    run_expect 0 hist-append -q -s other next
    lines_are_whole 5
    ends_with $'assistant:hello\n[1 message]:interrupted' user:next:
    # On a terminal that is told in a line of its own.
    run_expect 8 on_tty --raw strace -qq -o trace -P "$HISTORY" \
        -e trace=write -e inject=write:error=ENOSPC:when=2 chat --color=never -s t hello
    stdout_has $'hello\n[1 message]\nchat: not stored: cannot write'
    lines_are_whole 6
    run_expect 0 hist-append -q -s other next
    lines_are_whole 8
    answered_unsaved "cannot write '$HISTORY': No space left on device" \
        traced -o trace -P "$HISTORY" -e trace=write -e inject=write:error=ENOSPC:when=1 chat -N hello
    lines_are_whole 10
    ends_with user:hello: $'assistant:hello\n[1 message]:stop'
    # It is the current session all the same.
    run_expect 0 chat next
    stdout_is next '[3 messages]'
}

@test "turn: --json tells of it, too" {
    use_history
    use_echo
    run_expect 0 chat -s s before
    run_expect 8 traced -o trace -P "$HISTORY" -e trace=write -e inject=write:error=EDQUOT chat -N --json hello
    stdout_json '.type' session_id text text text usage 'done' error
    tail -n 1 "$OUT" >last
    json_is last '.code, .message' 8 "not stored: cannot write '$HISTORY': Disk quota exceeded"
    stderr_is "chat: not stored: cannot write '$HISTORY': Disk quota exceeded"
}

@test "turn: a history where none can be" {
    use_echo
    answered_unsaved "cannot open '/proc/none.jsonl': .*" chat --history /proc/none.jsonl hello
    answered_unsaved "cannot make directory '/proc/absent': No such file or directory" chat --history /proc/absent/x.jsonl hello
}

@test "turn: a read-only directory, a full file system" {
    unshare -rm true 2>/dev/null || skip 'unshare cannot make a mount name space'
    use_echo
    make_repo repo
    mkdir small
    cat >mounted <<'END'
mount -t tmpfs -o "$1" none "$2" || exit 77
mkdir -p "$2/.git/objects" "$2/.git/refs" 2>/dev/null && echo "ref: refs/heads/main" >"$2/.git/HEAD"
[ -z "$4" ] || head -c "$4" /dev/zero >"$2/fill" 2>/dev/null
[ "$3" = rw ] || mount -o remount,ro "$2" || exit 77
cd "$2" && shift 4 && exec "$@"
END
    unshare -rm sh mounted size=64k small ro '' true 2>/dev/null || skip 'cannot mount here'
    # Where a history cannot be made the user's own is used, and that is said.
    run_expect 0 unshare -rm sh mounted size=64k repo ro '' chat hello
    stdout_is hello '[1 message]'
    stderr_is "chat: '$WORK/repo/.git' cannot be written: using your own history '$HOME/.local/share/aicoder/history.jsonl'"
    run_expect 8 unshare -rm sh mounted size=16k small rw 100000 chat hello
    stdout_is hello '[1 message]'
    stderr_matches '^chat: .*: No space left on device \(CHAT_HISTORY can name another file\)$'
}

@test "turn: a history that one has no permission for is not stored in, and the question is asked" {
    use_echo
    mkdir closed sealed
    hist_line s user before >closed.jsonl
    hist_line s user before >readable.jsonl
    hist_line s user before >closed/x.jsonl
    echo s | tee closed.jsonl.session >readable.jsonl.session
    touch -d '2 hours ago' closed.jsonl.session
    chmod 0 closed.jsonl closed
    chmod 0444 readable.jsonl
    chmod 0555 sealed
    for file in closed.jsonl closed/x.jsonl closed/new.jsonl sealed/new.jsonl; do
        answered_unsaved "cannot open '$file': Permission denied" without_rights chat --history "$file" hello
        answered_unsaved "cannot open '$file': Permission denied" without_rights chat --history "$file" -s s hello
        # Nothing is to be stored, or read.
        echo '[]' | run_expect 0 without_rights chat --history "$file" --messages - hello
        stdout_is hello '[1 message]'
        stderr_empty
    done
    run_expect 8 without_rights chat --history readable.jsonl hello
    stdout_is before '' hello '[1 message]'
    stderr_is "chat: not stored: cannot open 'readable.jsonl': Permission denied"
    # What is about the history cannot do without it; and what is not to be stored is asked with all of it.
    for options in '-c hello' '-s s --regenerate' '-s s --edit hello' '-s s --no-store hello' '-s s --dry-run hello'; do
        # shellcheck disable=SC2086
        run_expect 1 without_rights chat --history closed.jsonl $options
        stdout_empty
        stderr_is "chat: cannot open 'closed.jsonl': Permission denied"
    done
    chmod 0755 closed sealed
    [[ $(wc -l <closed/x.jsonl) == 1 && -z $(ls sealed) ]]
}

# ---- many at once

@test "turn: xargs -P32 chat" {
    use_history
    use_echo
    export CHAT_MAX_MESSAGES=all
    run_expect 0 chat -s shared first
    seq 64 | run_expect 0 xargs -P32 -I{} chat --no-stdin -s shared 'prompt {}'
    stderr_empty
    lines_are_whole 130
    jq -r .id "$HISTORY" | sort | uniq -d >twice
    [[ ! -s twice ]]
    # Each prompt has its answer, which names it.
    jq -sr '(map({key: .id, value: .content}) | from_entries) as $prompts
        | .[] | .reply_to // empty as $to | select(.content | contains($prompts[$to])) | $to' "$HISTORY" | sort -u >paired
    [[ $(($(wc -l <paired))) == 65 ]]
    # Without a session named, the first of them make their own.
    rm "$HISTORY"*
    seq 32 | run_expect 0 xargs -P32 -I{} chat --no-stdin 'prompt {}'
    stderr_empty
    lines_are_whole 64
    run_expect 0 hist-show current
}

@test "turn: two that begin a session at once share it, and one of them hints at that" {
    use_history
    use_echo
    install -m 600 /dev/null "$HISTORY"
    flock "$HISTORY" sh -c 'touch locked; until [ -e go ]; do sleep 0.05; done' 3>&- 4>&- &
    BACKGROUND+=("$!")
    wait_for test -e locked
    for n in 1 2; do
        chat -v "prompt $n" >"$n.out" 2>"$n.err" 3>&- 4>&- &
        pids[n]=$!
        wait_for grep -q state=new "$n.err"
    done
    touch go
    wait "${pids[1]}"
    wait "${pids[2]}"
    jq -r .session_id "$HISTORY" | sort -u >sessions
    [[ $(wc -l <sessions) == 1 ]]
    grep -h joins 1.err 2.err >hints
    is hints hints "chat: another chat began the session '$(<sessions)' at the same time and this prompt joins it (--once, -N or -s ID keeps them apart)"
}

@test "turn: two at once in one session are paired by reply_to" {
    use_history
    start_llm --set 'gate: 3 go' --echo-context
    background chat -s s slow question
    wait_for test -e "$RECORD/1.json"
    OPENAI_BASE_URL='' run_expect 0 chat -p echo -m echo -s s quick
    : >go
    finish 0
    json_is "$HISTORY" '"\(.role):\(.content | split("\n")[0])"' 'user:slow question' user:quick 'assistant:slow question' \
        'assistant:user:slow question'
    jq -sr '.[0].id == .[3].reply_to, .[1].id == .[2].reply_to' "$HISTORY" >got
    is pairs got true true
}

@test "turn: a long wait for the lock is told, and Ctrl-C ends one for the register, as well" {
    use_history
    use_echo
    # hold FILE COMMAND: locks the file as long as the command runs.
    hold() {
        rm -f "$WORK/locked" "$ERR.new"
        flock "$1" sh -c "touch '$WORK/locked'; $2" 3>&- 4>&- &
        BACKGROUND+=("$!")
        wait_for test -e "$WORK/locked"
    }
    run_expect 0 chat -s s first
    said="i=0; until grep -q waiting '$ERR.new' 2>/dev/null || [ \$((i += 1)) -gt 300 ]; do sleep 0.1; done"
    hold "$HISTORY" "$said"
    run_expect 0 chat -s s second
    stderr_is "chat: waiting for another program that writes '$HISTORY'"
    hold "$HISTORY" 'sleep 4'
    run_expect 0 chat -q -s s third
    stderr_empty
    lines_are_whole 6
    hold "$HISTORY" "$said"
    echo text | run_expect 0 hist-append -s s
    stderr_is "hist-append: waiting for another program that writes '$HISTORY'"
    unset CHAT_HISTORY
    make_repo repo
    cd repo || return 1
    run_expect 0 chat first
    rm -rf .aicoder .git/aicoder
    hold "$HOME/.local/state/chathist/histories" 'sleep 20'
    background chat second
    sleep 0.5
    start=$(date +%s%3N)
    kill -INT "$BG"
    finish 130
    [[ $(($(date +%s%3N) - start)) -lt 10000 ]]
}

@test "turn: interrupted while another program holds the lock, it does not wait on" {
    use_history
    use_echo
    run_expect 0 chat -s s first
    flock "$HISTORY" sh -c 'touch locked; sleep 20; touch released' 3>&- 4>&- &
    BACKGROUND+=("$!")
    wait_for test -e locked
    background chat -s s second
    wait_for appends "$BG"
    kill -INT "$BG"
    finish 130
    stdout_empty
    stderr_is "chat: not stored: cannot lock '$HISTORY': another program holds it"
    [[ ! -e released ]]
    lines_are_whole 2
}

@test "turn: nobody reads, and a signal comes: what came is stored, then it is obeyed" {
    use_history
    use_echo
    mkfifo pipe
    sh -c 'touch reader; sleep 30' <pipe 3>&- 4>&- &
    BACKGROUND+=("$!")
    head -c 300000 /dev/zero | tr '\0' a >big
    background sh -c 'exec chat -s s <big >pipe'
    wait_for test -s "$HISTORY"
    sleep 0.3
    kill -TERM "$BG"
    wait "$BG" && fail "it ended well"
    [[ $? -eq 1 || $? -eq 143 ]]
    json_is "$HISTORY" '[.role, .finish_reason] | tojson' '["user",null]' '["assistant","interrupted"]'
}

@test "turn: a server that cannot be asked for its models does not cost the prompt" {
    use_history
    port=$(unused_port)
    run_expect 4 chat --base-url "http://127.0.0.1:$port/v1" hello
    stderr_is "chat: cannot connect to '127.0.0.1:$port': Connection refused"
    json_is "$HISTORY" '"\(.role):\(.content):\(.finish_reason // "")"' user:hello: assistant::error
}
