#!/usr/bin/env bats
#
# Stateless history passing, walked through with our programs: what of a history goes out
# with each request.

# shellcheck disable=SC2016,SC2129

load ../helper

setup() {
    sandbox
    use_history
    start_llm --reply ok
}

# wanted FIRST LAST: `role:message N` for each, as hist_lines makes them.
wanted() {
    local i
    for ((i = $1; i <= $2; i++)); do
        if ((i % 2)); then echo "user:message $i"; else echo "assistant:message $i"; fi
    done
}

# ---- the five cases

@test "D: no history: the prompt alone" {
    run_expect 0 chat -s s1 hello
    stdout_is ok
    stderr_empty
    request_messages_are 1 user:hello
}

@test "D: a follow-up: what was said before it" {
    hist_line s1 user 'what is a pipe?' >"$HISTORY"
    hist_line s1 assistant 'a channel between processes' >>"$HISTORY"
    run_expect 0 chat -s s1 'how long is it?'
    request_messages_are 1 'user:what is a pipe?' 'assistant:a channel between processes' 'user:how long is it?'
}

@test "D: a reference: code and quotes of an earlier message arrive as they were written" {
    local code=$'```c\nputs("a\\tb\\"");\n```\n  <&> äöü 😀'
    hist_line s1 user "$code" >"$HISTORY"
    hist_line s1 assistant 'It prints a tab.' >>"$HISTORY"
    run_expect 0 chat -s s1 'what was in the second line?'
    jq -j '.messages[0].content' "$RECORD/1.json" >got
    printf '%s' "$code" >want
    same content want got
}

@test "D: 25 earlier messages: the last 20 and the prompt" {
    hist_line s1 assistant 'message 0' >"$HISTORY"
    hist_lines s1 24 >>"$HISTORY"
    run_expect 0 chat -s s1 next
    mapfile -t lines < <(wanted 5 24)
    request_messages_are 1 "${lines[@]}" user:next
    json_is "$RECORD/1.json" '.messages | length' 21
    stderr_empty
    run_expect 0 chat -v -s s1 more
    stderr_has 'chat: the oldest messages are not sent (CHAT_MAX_MESSAGES=20, CHAT_MAX_BYTES=102400)'
}

@test "D: 25 earlier messages, the last of them unanswered: it goes out with the prompt" {
    hist_lines s1 25 >"$HISTORY"
    run_expect 0 chat -s s1 next
    mapfile -t lines < <(wanted 7 24)
    request_messages_are 1 "${lines[@]}" 'user:message 25' '' next
    json_is "$RECORD/1.json" '.messages | length' 19
}

@test "D: malformed: wrong entries are passed over with a note, wherever they stand" {
    {
        printf 'not JSON\n'
        hist_line s1 user first
        printf '{"id":"x","session_id":"s1","timestamp":"t","role":"user"}\n'
        printf '{"id":"x","session_id":"s1","timestamp":"t","role":7,"content":"no role"}\n'
        printf '{"id":"x","session_id":"s1","timestamp":"t","role":"user","content":["list"]}\n'
        printf '["session_id","s1"]\n\n'
        printf '{"session_id":"s1"}{"role":"user"}\n'
        printf '\0\0\0\0\n'
        hist_line s1 assistant answer
        printf '{"id":"y","session_id":"s1","timestamp":"t","role":"narrator","content":"unknown role"}\n'
        printf '{"id":"1","session_id":"s1","timesta'
    } >"$HISTORY"
    remember "$HISTORY"
    run_expect 0 chat -s s1 next
    stdout_is ok
    stderr_matches "^chat: skipped [0-9]+ bad lines in '$HISTORY'\$"
    request_messages_are 1 user:first assistant:answer user:next
    # What was there is there still, the torn line a line of its own.
    head -c "$(stat -c %s "$BATS_TEST_TMPDIR/remembered.${HISTORY//\//%}")" "$HISTORY" |
        cmp - "$BATS_TEST_TMPDIR/remembered.${HISTORY//\//%}"
    run_expect 0 tail -n 3 "$HISTORY"
    stdout_line 1 '{"id":"1","session_id":"s1","timesta'
    run_expect 0 hist-show --json s1
    stdout_json .content first answer 'unknown role' next ok
}

# ---- the bounds

@test "D: the number of messages can be set" {
    hist_lines s1 24 >"$HISTORY"
    CHAT_MAX_MESSAGES=4 run_expect 0 chat --no-store -s s1 next
    mapfile -t lines < <(wanted 21 24)
    request_messages_are 1 "${lines[@]}" user:next
    CHAT_MAX_MESSAGES=all run_expect 0 chat --no-store -s s1 next
    mapfile -t lines < <(wanted 1 24)
    request_messages_are 2 "${lines[@]}" user:next
    CHAT_MAX_MESSAGES=0 run_expect 0 chat --no-store -s s1 next
    request_messages_are 3 user:next
    # The user begins: an odd number leaves out one more.
    CHAT_MAX_MESSAGES=3 run_expect 0 chat --no-store -s s1 next
    mapfile -t lines < <(wanted 23 24)
    request_messages_are 4 "${lines[@]}" user:next
    configure 'max_messages = 2'
    run_expect 0 chat --no-store -s s1 next
    request_messages_are 5 "${lines[@]}" user:next
    local bad
    for bad in few -1 1.5 99999999999999999999999; do
        CHAT_MAX_MESSAGES=$bad run_expect 2 chat --no-store -s s1 next
        stderr_has "bad value '$bad' for CHAT_MAX_MESSAGES"
    done
}

@test "D: a hint from 15 messages on, on a terminal or with -v" {
    hist_lines s1 14 >"$HISTORY"
    run_expect 0 chat --no-store -v -s s1 next
    stderr_lacks 'the conversation has'
    hist_line s1 assistant 'message 0' | cat - "$HISTORY" >longer
    mv longer "$HISTORY"
    run_expect 0 chat --no-store -v -s s1 next
    stderr_has 'chat: the conversation has 15 messages (-N starts a new session)'
    run_expect 0 chat --no-store -s s1 next
    stderr_empty
    run_expect 0 on_tty --fds 2 chat --no-store -s s1 next
    stdout_has 'chat: the conversation has 15 messages (-N starts a new session)'
    run_expect 0 on_tty --fds 2 chat -q --no-store -s s1 next
    stdout_lacks chat:
}

@test "D: only role and content travel" {
    hist_line other user elsewhere >"$HISTORY"
    hist_line s1 user first '' '{"images":2,"files":["a.c"],"custom":{"secret":1}}' >>"$HISTORY"
    hist_line s1 assistant answer '' '{"files_modified":["b.c"],"edit_results":[{"ok":true}],"model":"m","provider":"p","usage":{"input_tokens":1,"output_tokens":2},"finish_reason":"stop"}' >>"$HISTORY"
    run_expect 0 chat -s s1 next
    json_is "$RECORD/1.json" '.messages[] | tojson' '{"role":"user","content":"first"}' \
        '{"role":"assistant","content":"answer"}' '{"role":"user","content":"next"}'
}

@test "D: roles alternate, whatever the history holds" {
    local role
    for role in assistant user user assistant assistant user; do
        hist_line s1 "$role" "a $role" >>"$HISTORY"
    done
    hist_line s1 assistant '   ' >>"$HISTORY"
    run_expect 0 chat -s s1 next
    request_messages_are 1 user:… 'assistant:a assistant' 'user:a user' '' 'a user' \
        'assistant:a assistant' '' 'a assistant' 'user:a user' '' next
}

@test "D: requests stay under 100 KB, the newest of the history first" {
    local i long
    long=$(head -c 30000 /dev/zero | tr '\0' x)
    for i in 1 2 3 4 5 6; do
        hist_line s1 user "q$i" >>"$HISTORY"
        hist_line s1 assistant "$i$long" >>"$HISTORY"
    done
    run_expect 0 chat -s s1 next
    [[ $(stat -c %s "$RECORD/1.json") -le 104448 ]]
    json_is "$RECORD/1.json" '.messages[] | "\(.role) \(.content[:2])"' 'user q4' 'assistant 4x' 'user q5' \
        'assistant 5x' 'user q6' 'assistant 6x' 'user ne'
    CHAT_MAX_BYTES=40000 run_expect 0 chat --no-store -s s1 more
    json_is "$RECORD/2.json" '.messages[] | "\(.role) \(.content[:2])"' 'user q6' 'assistant 6x' 'user ne' \
        'assistant ok' 'user mo'
    CHAT_MAX_BYTES=all run_expect 0 chat --no-store -s s1 more
    json_is "$RECORD/3.json" '.messages | length' 15
    # This turn is always whole.
    head -c 200000 /dev/zero | tr '\0' y | run_expect 0 chat --no-store -s s1
    json_is "$RECORD/4.json" '.messages[-1].content | length' 200000
    json_is "$RECORD/4.json" '.messages | length' 9
}

# ---- the history given with each request: --messages

# given MESSAGE...: a JSON array in given.json of `role:content` each.
given() {
    printf '%s\n' "$@" | jq -Rn '[inputs | capture("(?<role>[^:]*):(?<content>.*)")]' >given.json
}

@test "D: --messages: the conversation of a file, and no other; nothing is stored" {
    hist_lines s1 4 >"$HISTORY"
    echo s1 >"$HISTORY.session"
    remember "$HISTORY"
    given 'user:what is a pipe?' 'assistant:a channel'
    run_expect 0 chat --messages given.json 'how long is it?'
    stdout_is ok
    stderr_empty
    request_messages_are 1 'user:what is a pipe?' 'assistant:a channel' 'user:how long is it?'
    CHAT_SESSION=s1 run_expect 0 chat --messages given.json again
    request_messages_are 2 'user:what is a pipe?' 'assistant:a channel' user:again
    unchanged "$HISTORY"
    run_expect 0 head -n 1 "$HISTORY.session"
    stdout_is s1
    # In a place without any history none is made.
    rm "$HISTORY" "$HISTORY.session"
    run_expect 0 chat --messages given.json hello
    [[ ! -e $HISTORY && ! -e $HISTORY.session ]]
}

@test "D: --messages: no history, an empty file, an empty array" {
    for text in '' '[]' $'\n'; do
        printf '%s' "$text" >given.json
        run_expect 0 chat --messages given.json hello
        stderr_empty
    done
    request_messages_are 1 user:hello
    request_messages_are 3 user:hello
}

@test "D: --messages: 25 messages: the last 20 and the prompt; a hint from 15 on" {
    mapfile -t all < <(echo 'assistant:message 0'; wanted 1 24)
    given "${all[@]}"
    run_expect 0 chat -v --messages given.json next
    mapfile -t lines < <(wanted 5 24)
    request_messages_are 1 "${lines[@]}" user:next
    stderr_has 'chat: the oldest messages are not sent (CHAT_MAX_MESSAGES=20, CHAT_MAX_BYTES=102400)'
    given "${all[@]:0:15}"
    run_expect 0 chat -v --messages given.json next
    stderr_has 'chat: the conversation has 15 messages'
    CHAT_MAX_BYTES=15 run_expect 0 chat --messages given.json next
    request_messages_are 3 'user:message 13' 'assistant:message 14' user:next
}

@test "D: --messages: malformed entries are passed over with a note, in an array and in lines" {
    cat >given.json <<'END'
[{"role":"user","content":"first"}, null, 7, "text", [], {"role":"user"}, {"content":"no role"},
 {"role":"narrator","content":"x"}, {"role":"user","content":["parts"]}, {"role":"assistant","content":"answer"}]
END
    run_expect 0 chat --messages given.json next
    stdout_is ok
    stderr_is "chat: skipped 8 bad entries in 'given.json'"
    request_messages_are 1 user:first assistant:answer user:next
    {
        echo 'not JSON'
        hist_line s1 user first
        printf '{"role":"us\n\0\0\0\n\n'
        echo '{"role":"assistant","content":"answer"}'
        printf '{"id":"1","sess'
    } >given.jsonl
    run_expect 0 chat --messages given.jsonl next
    stderr_is "chat: skipped 4 bad entries in 'given.jsonl'"
    request_messages_are 2 user:first assistant:answer user:next
    run_expect 0 chat -q --messages - next <given.jsonl
    stderr_empty
    # An array that is cut, HTML, binary: no message at all is a mistake of the caller.
    for text in '{}' '[{"role":"user","content":"a"}' '<html>' $'\x89PNG\r\n\x1a' '{{{{' '[[[['; do
        printf '%s' "$text" | run_expect 2 chat --messages - next
        stdout_empty
        stderr_matches '^chat: skipped [12] bad entr(y|ies) on standard input$' \
            '^chat: no usable message on standard input$'
    done
    requests_are 3
}

@test "D: --messages: roles alternate, calls keep their results, the system prompt is the newest" {
    given 'system:old' user:a user:b assistant:c 'system:new' assistant:d
    run_expect 0 chat --messages given.json next
    request_messages_are 1 system:new user:a '' b assistant:c '' d user:next
    run_expect 0 chat -S mine --messages given.json next
    request_messages_are 2 system:mine user:a '' b assistant:c '' d user:next
    {
        hist_line s1 user list
        hist_line s1 assistant '' '' '{"tool_calls":[{"id":"c1","name":"ls","args":{}}]}'
        hist_line s1 tool one '' '{"tool_call_id":"c1"}'
    } >given.jsonl
    run_expect 0 chat --messages given.jsonl next
    request_messages_are 3 user:list 'assistant:[ls {}]' tool:one assistant:… user:next
}

@test "D: --messages: what is exported can be sent on, calls and results included" {
    echo '[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"sum"}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},
        {"id":"c2","type":"function","function":{"name":"add","arguments":"{not JSON"}}]},
        {"role":"tool","tool_call_id":"c1","content":"2"},{"role":"tool","tool_call_id":"c2","content":"?"},
        {"role":"assistant","content":"two"},
        {"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]' >array
    start_llm --echo-context
    run_expect 0 chat --messages array next
    stderr_is "chat: skipped 1 bad entry in 'array'"
    request_messages_are 1 $'user:a\n\nsum' 'assistant:[add {"a":1}][add {}]' tool:2 'tool:?' assistant:two user:next
    run_expect 0 hist-import -q array
    for form in json openai; do
        run_expect 0 hist-export --all-sessions -f "$form"
        cp "$OUT" exported
        run_expect 0 chat --messages exported next
        stderr_empty
    done
    request_messages_are 2 $'user:a\n\nsum' 'assistant:[add {"a":1}][add {}]' tool:2 'tool:?' assistant:two user:next
    same 'both forms' <(request 2 | jq .messages) <(request 3 | jq .messages)
    echo '{"system":"Be brief.","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"1"}]}' >anthropic
    run_expect 0 chat --messages anthropic next
    request_messages_are 4 'system:Be brief.' user:one assistant:1 user:next
}

@test "D: hist-show and hist-search hand their lines over" {
    hist_lines s1 4 >"$HISTORY"
    hist_line s2 user other >>"$HISTORY"
    hist-show --json s1 | run_expect 0 chat --messages - 'summarise this'
    stdout_is ok
    stderr_empty
    request_messages_are 1 'user:message 1' 'assistant:message 2' 'user:message 3' 'assistant:message 4' 'user:summarise this'
    hist-search --json --reverse 'message 2' | run_expect 0 chat --messages - and this
    request_messages_are 2 user:… 'assistant:message 2' 'user:and this'
    run_expect 0 wc -l <"$HISTORY"
    stdout_is 5
}

@test "D: --messages with a session stores the turn there, and goes by the file alone" {
    hist_lines s1 2 >"$HISTORY"
    given user:a assistant:b
    run_expect 0 chat -s s1 --messages given.json next
    request_messages_are 1 user:a assistant:b user:next
    json_is "$HISTORY" .content 'message 1' 'message 2' next ok
    [[ ! -e $HISTORY.session ]]
    run_expect 0 chat -s s1 -S brief --messages given.json more
    run_expect 0 chat -s s1 -S brief --messages given.json more
    [[ $(grep -c '"role":"system"' "$HISTORY") == 1 ]]
    run_expect 0 chat --no-store -s s1 --messages given.json next
    [[ $(($(wc -l <"$HISTORY"))) == 9 ]]
}

@test "D: --messages and what it cannot be given with" {
    given user:a
    for args in -N -c '-N --no-store'; do
        # shellcheck disable=SC2086
        run_expect 2 chat $args --messages given.json next
        stderr_is "chat: --messages cannot be given with --new or --continue (see 'chat --help')"
    done
    run_expect 2 chat --messages given.json
    stderr_matches '^chat: no prompt: give it as arguments or on standard input'
    run_expect 2 chat --messages - <given.json
    stderr_matches "^chat: no prompt: '--messages -' takes standard input"
    run_expect 2 chat --messages none.json next
    stderr_is "chat: cannot open 'none.json': No such file or directory"
    mkdir dir
    run_expect 2 chat --messages dir next
    stderr_is "chat: cannot open 'dir': is a directory"
    run_expect 2 chat --messages - next <&-
    requests_are 0
    # The prompt as always: standard input and arguments, when the messages are in a file.
    echo text | run_expect 0 chat --messages given.json explain
    request_messages_are 1 user:a '' text '' explain
    run_expect 0 chat --dry-run --messages given.json next
    stdout_json '.messages[0].content' $'a\n\nnext'
    requests_are 1
}
