#!/usr/bin/env bats
#
# The conversation memory of a chat server, walked through with our programs.

# shellcheck disable=SC2016,SC2129

load ../helper
load ../history

# ago MINUTES: that long before now, as a history writes it.
ago() {
    date -u -d "$1 minutes ago" +%FT%T.000000+00:00
}

# idle MINUTES: a current session "old" whose last line and whose being made current are that long ago.
idle() {
    hist_line old user question "$(ago "$1")" >"$HISTORY"
    hist_line old assistant answer "$(ago "$1")" >>"$HISTORY"
    echo old >"$HISTORY.session"
    touch -d "$1 minutes ago" "$HISTORY.session"
}

# The session of the history's last line.
last_session() {
    tail -n 1 "$HISTORY" | jq -r .session_id
}

# ---- sessions

@test "A: the first message makes a session, its id comes back, the next message uses it" {
    start_llm --reply one --reply two
    run_expect 0 chat --json first
    stdout_matches '^\{"type":"session_id","session_id":"sess_[0-9]{13}_[0-9a-f]{6}"\}$'
    local id
    id=$(jq -r 'select(.type == "session_id").session_id' "$OUT")
    stdout_json 'select(.type == "done").session_id' "$id"
    run_expect 0 chat --json second
    stdout_json 'select(.type == "session_id").session_id' "$id"
    json_is "$HISTORY" '"\(.session_id) \(.role) \(.content)"' "$id user first" "$id assistant one" \
        "$id user second" "$id assistant two"
}

@test "A: a client that gives the id back reaches its session, whichever is current" {
    start_llm --reply yes
    run_expect 0 chat --json mine
    local id
    id=$(jq -r 'select(.type == "session_id").session_id' "$OUT")
    run_expect 0 chat --new 'another conversation'
    run_expect 0 chat -s "$id" back
    request_messages_are 3 user:mine assistant:yes user:back
    run_expect 0 hist-sessions
    stdout_matches "^$id	[^	]*	4	mine\$"
    lines_are 2
}

# ---- what the model gets

@test "A: the full history is sent on each turn" {
    start_llm --reply one --reply two --reply three
    run_expect 0 chat a
    run_expect 0 chat b
    run_expect 0 chat c
    request_messages_are 1 user:a
    request_messages_are 2 user:a assistant:one user:b
    request_messages_are 3 user:a assistant:one user:b assistant:two user:c
    requests_are 3
}

@test "A: tool calls and their results are stored with their ids and replayed on the wire" {
    start_llm --reply ok
    hist-append -s s1 --json >"$OUT" <<'JSON'
{"role":"user","content":"compare the weather in Oslo and Rome"}
{"role":"assistant","content":"I look it up.","tool_calls":[{"id":"call_a","name":"weather","args":{"city":"Oslo"}},{"id":"call_b","name":"weather","args":"{\"city\": Rome"}]}
{"role":"tool","content":"bad arguments","tool_call_id":"call_b"}
{"role":"tool","content":"{\"degrees\":12}","tool_call_id":"call_a"}
{"role":"assistant","content":"Oslo has 12 degrees."}
JSON
    lines_are 5
    json_is "$HISTORY" 'select(.tool_calls) | .tool_calls | tojson' \
        '[{"id":"call_a","name":"weather","args":{"city":"Oslo"}},{"id":"call_b","name":"weather","args":"{\"city\": Rome"}]'
    json_is "$HISTORY" 'select(.tool_call_id) | .tool_call_id' call_b call_a
    run_expect 0 chat -s s1 'and Rome?'
    # The results stand behind their call in its order; what was no JSON goes back as an object.
    json_is "$RECORD/1.json" '.messages[] | tojson' \
        '{"role":"user","content":"compare the weather in Oslo and Rome"}' \
        '{"role":"assistant","content":"I look it up.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":"call_b","type":"function","function":{"name":"weather","arguments":"{}"}}]}' \
        '{"role":"tool","tool_call_id":"call_a","content":"{\"degrees\":12}"}' \
        '{"role":"tool","tool_call_id":"call_b","content":"bad arguments"}' \
        '{"role":"assistant","content":"Oslo has 12 degrees."}' \
        '{"role":"user","content":"and Rome?"}'
}

# ---- the answer

@test "A: a streamed answer is collected and stored at the end, the question before it is asked" {
    start_llm --hook "cp '$HISTORY' '$WORK/asked.jsonl'" --set 'chunk: 1' openai/normal
    run_expect 0 chat hello
    stdout_is 'Hello, world.'
    json_is asked.jsonl '"\(.role) \(.content)"' 'user hello'
    json_is "$HISTORY" '"\(.role) \(.content)"' 'user hello' 'assistant Hello, world.'
    json_is "$HISTORY" 'select(.role == "assistant").finish_reason' stop
}

@test "A: an answer that calls a tool is stored with its calls, in pieces or whole" {
    start_llm --set 'chunk: 7' --call 'read_file {"path":"a.c"}'
    run_expect 9 chat 'what is in a.c?'
    stdout_empty
    stderr_has "chat: the model called the tool 'read_file'"
    json_is "$HISTORY" 'select(.role == "assistant") | .content, .finish_reason, (.tool_calls[] | .name, (.args | tojson))' \
        '' tool_calls read_file '{"path":"a.c"}'
    local call
    call=$(jq -r 'select(.role == "assistant").tool_calls[0].id' "$HISTORY")
    [[ -n $call ]]
    # Its result comes from elsewhere, and the conversation goes on.
    start_llm --reply 'A main function.'
    printf '{"role":"tool","content":"int main","tool_call_id":"%s"}\n' "$call" | run_expect 0 hist-append --json
    run_expect 0 chat 'go on'
    request_messages_are 1 'user:what is in a.c?' 'assistant:[read_file {"path":"a.c"}]' 'tool:int main' assistant:… 'user:go on'
}

# ---- the debug log

@test "A: -v tells the session and each message that is sent" {
    use_echo
    hist_line s1 system 'Be brief' >"$HISTORY"
    hist_line s1 user hello >>"$HISTORY"
    hist_line s1 assistant '' '' '{"tool_calls":[{"id":"c1","name":"f","args":{}}]}' >>"$HISTORY"
    hist_line s1 tool 'naïve' '' '{"tool_call_id":"c1"}' >>"$HISTORY"
    run_expect 0 chat -v -s s1 go
    stdout_is go '[4 messages]'
    stderr_is 'session=s1 state=existing message_count=5' \
        'index=0 role=system content_length=8 has_tool_calls=false' \
        'index=1 role=user content_length=5 has_tool_calls=false' \
        'index=2 role=assistant content_length=0 has_tool_calls=true' \
        'index=3 role=tool content_length=6 has_tool_calls=false' \
        'index=4 role=user content_length=2 has_tool_calls=false'
    run_expect 0 chat -v -s s2 hello
    stderr_is 'session=s2 state=new message_count=1' \
        'index=0 role=user content_length=5 has_tool_calls=false'
    run_expect 0 chat -s s2 quiet
    stderr_empty
}

# ---- the time-out of idle sessions

@test "A: a session that was idle for half an hour makes room for a new one" {
    use_echo
    idle 31
    run_expect 0 chat hello
    stdout_is hello '[1 message]'
    local fresh
    fresh=$(last_session)
    [[ $fresh == sess_* ]]
    run_expect 0 chat again
    stdout_is again '[3 messages]'
    [[ $(last_session) == "$fresh" ]]
    # Nothing is lost: the old one is there to be loaded.
    run_expect 0 hist-show old
    stdout_has question answer
}

@test "A: a session that was used within half an hour goes on" {
    use_echo
    idle 29
    run_expect 0 chat hello
    stdout_is hello '[3 messages]'
    [[ $(last_session) == old ]]
}

@test "A: being made current counts as use, so does a line from another program" {
    use_echo
    idle 600
    run_expect 0 hist-load old
    run_expect 0 chat hello
    stdout_is hello '[3 messages]'
    idle 600
    run_expect 0 hist-append -s old -r assistant 'a late answer'
    run_expect 0 chat hello
    stdout_is hello '[3 messages]'
    [[ $(last_session) == old ]]
}

@test "A: the time-out can be set, turned off, and does not hold for a session that is named" {
    use_echo
    idle 5
    CHAT_SESSION_TIMEOUT=4m run_expect 0 chat hello
    stdout_is hello '[1 message]'
    idle 5
    CHAT_SESSION_TIMEOUT=6m run_expect 0 chat hello
    stdout_is hello '[3 messages]'
    idle 600000
    CHAT_SESSION_TIMEOUT=off run_expect 0 chat hello
    stdout_is hello '[3 messages]'
    configure 'session_timeout = off'
    idle 600000
    run_expect 0 chat hello
    stdout_is hello '[3 messages]'
    rm "$HOME/.config/chathist/config"
    idle 600000
    run_expect 0 chat -s old hello
    stdout_is hello '[3 messages]'
    idle 600000
    CHAT_SESSION=old run_expect 0 chat hello
    stdout_is hello '[3 messages]'
    idle 600000
    run_expect 0 chat --continue hello
    stdout_is hello '[3 messages]'
    local bad
    for bad in soon -1 30x ' '; do
        CHAT_SESSION_TIMEOUT=$bad run_expect 2 chat hello
        stdout_empty
        stderr_has "bad value '$bad' for CHAT_SESSION_TIMEOUT"
    done
}

# ---- what it lacked

@test "A: what the server lacked: persistence, loading after a restart, search, several users" {
    start_llm --echo-context
    run_expect 0 chat 'remember the number 7'
    # Nothing runs between two commands, so each is a restart; a user is a history.
    run_expect 0 chat --history other.jsonl 'whose number?'
    stdout_is "user:whose number?"
    run_expect 0 chat 'which number?'
    stdout_is 'user:remember the number 7|assistant:user:remember the number 7|user:which number?'
    run_expect 0 hist-search -l 'NUMBER 7'
    lines_are 1
    run_expect 0 hist-load last
    stdout_has 'remember the number 7' 'which number?'
    run_expect 1 hist-search --history other.jsonl 'number 7'
    stdout_empty
    stderr_empty
}
