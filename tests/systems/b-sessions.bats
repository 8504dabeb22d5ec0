#!/usr/bin/env bats
#
# The session store of an agent on a database, walked through with our programs. Its loop of calls and results is in
# tests/feature/tools.bats.

# shellcheck disable=SC2016,SC2129

load ../helper
load ../history

# ---- what is stored

@test "B: a session has created_at, last_accessed, message_count and its conversation" {
    hist_line s1 user 'first question' 2024-06-27T15:00:00.000000+00:00 >"$HISTORY"
    hist_line s2 user elsewhere 2024-06-27T15:30:00.000000+00:00 >>"$HISTORY"
    hist_line s1 assistant 'first answer' 2024-06-27T16:00:00.250000+00:00 >>"$HISTORY"
    run_expect 0 hist-sessions --json
    stdout_is '{"session_id":"s1","timestamp":"2024-06-27T16:00:00.250000+00:00","message_count":2,"preview":"first question","first_role":"user","created_at":"2024-06-27T15:00:00.000000+00:00","last_accessed":"2024-06-27T16:00:00.250000+00:00"}' \
        '{"session_id":"s2","timestamp":"2024-06-27T15:30:00.000000+00:00","message_count":1,"preview":"elsewhere","first_role":"user","created_at":"2024-06-27T15:30:00.000000+00:00","last_accessed":"2024-06-27T15:30:00.000000+00:00"}'
    run_expect 0 hist-show --json s1
    stdout_json '"\(.role): \(.content)"' 'user: first question' 'assistant: first answer'
    stderr_empty
}

@test "B: a message is a JSON line, kept byte for byte" {
    printf '%s\n' '{"id":"1719500000000-a1b2c3d4","session_id":"s1","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"caf\u00e9 \ud83d\ude00","score":1.50,"nested":{"b": [1,  2]}}' >"$HISTORY"
    run_expect 0 hist-show --json s1
    stdout_is_file "$HISTORY"
    run_expect 0 hist-search --json 'CAFÉ 😀'
    stdout_is_file "$HISTORY"
    # Through a pipe into another history: nothing of it changes.
    hist-show --json s1 | run_expect 0 hist-append --history copy.jsonl --json
    stdout_is 1719500000000-a1b2c3d4
    same copy "$HISTORY" copy.jsonl
}

# ---- a fresh agent for every request

@test "B: each request restores its session into a fresh process" {
    start_llm --echo-context
    run_expect 0 chat -s s1 one
    stdout_is user:one
    # Another process, another directory, nothing kept but the file.
    mkdir elsewhere
    (cd elsewhere && run_expect 0 env -i PATH="$PATH" HOME="$HOME" OPENAI_BASE_URL="$OPENAI_BASE_URL" \
        CHAT_MODEL="$CHAT_MODEL" OPENAI_API_KEY=k CHAT_HISTORY="$HISTORY" chat --no-stream -s s1 two)
    stdout_is 'user:one|assistant:user:one|user:two'
    cp "$HISTORY" moved.jsonl
    run_expect 0 chat --history moved.jsonl -s s1 three
    request_messages_are 3 user:one assistant:user:one user:two 'assistant:user:one|assistant:user:one|user:two' user:three
    # The original knows nothing of what was said to the copy.
    json_is "$HISTORY" .role user assistant user assistant
}

# ---- create, list, chat in

@test "B: create, list, chat in" {
    use_echo
    run_expect 0 hist-new --detached
    stdout_matches '^sess_[0-9]{13}_[0-9a-f]{6}$'
    lines_are 1
    local id
    id=$(cat "$OUT")
    # Without a message there is nothing to list yet, nor a history.
    run_expect 2 hist-sessions
    stdout_empty
    stderr_is "hist-sessions: no history '$HISTORY'"
    run_expect 0 chat -s "$id" hello
    run_expect 0 chat -s "$id" again
    stdout_is again '[3 messages]'
    run_expect 0 hist-sessions
    stdout_matches "^$id	[0-9T:.+-]+	4	hello\$"
    lines_are 1
    run_expect 0 hist-new -S 'You are terse'
    id=$(cat "$OUT")
    run_expect 0 hist-sessions
    stdout_matches "^$id	[0-9T:.+-]+	1	You are terse\$"
    run_expect 0 chat --dry-run hi
    stdout_json '.system, (.messages | tojson)' 'You are terse' '[{"role":"user","content":"hi"}]'
}

# ---- messages in the form of each provider

@test "B: one history, the form of each provider" {
    hist_line s1 system 'Be brief' >"$HISTORY"
    hist_line s1 user hello >>"$HISTORY"
    hist_line s1 assistant '' '' '{"tool_calls":[{"id":"c1","name":"f","args":{"n":1}}]}' >>"$HISTORY"
    hist_line s1 tool '42' '' '{"tool_call_id":"c1"}' >>"$HISTORY"
    hist_line s1 assistant 'It is 42.' >>"$HISTORY"
    OPENAI_API_KEY=k run_expect 0 chat -m openai-chat:gpt-x -s s1 --dry-run why
    stdout_json '.model, (.messages[] | tojson)' gpt-x '{"role":"system","content":"Be brief"}' \
        '{"role":"user","content":"hello"}' \
        '{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}}]}' \
        '{"role":"tool","tool_call_id":"c1","content":"42"}' \
        '{"role":"assistant","content":"It is 42."}' '{"role":"user","content":"why"}'
    run_expect 0 chat -m echo:echo -s s1 --dry-run why
    stdout_json '.model, .system, (.messages[] | tojson)' echo 'Be brief' '{"role":"user","content":"hello"}' \
        '{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"f","args":{"n":1}}]}' \
        '{"role":"tool","content":"42","tool_call_id":"c1"}' \
        '{"role":"assistant","content":"It is 42."}' '{"role":"user","content":"why"}'
    # A dry run changes nothing.
    run_expect 0 hist-show --json s1
    stdout_is_file "$HISTORY"
}

@test "B: openai, anthropic, openrouter, mistral, ollama, anthropic again: to each its form, and only its own thinking" {
    put_tool weather 'echo sunny' get_weather
    put_tool 'time' 'echo noon' get_time
    tools=(--yes -T ./weather -T ./time)
    start_llm openai/calls openai/normal anthropic/thinking-calls anthropic/normal openai/openrouter-call openai/normal \
        openai/calls openai/normal openai/ollama openai/deepseek-call openai/normal anthropic/calls anthropic/normal
    here=http://127.0.0.1:$LLM_PORT
    export ANTHROPIC_BASE_URL=$here ANTHROPIC_API_KEY=k OLLAMA_HOST=$here/v1 CHAT_MAX_MESSAGES=all
    run_expect 0 chat -s s1 "${tools[@]}" one
    run_expect 0 chat -s s1 -m anthropic:m "${tools[@]}" two
    CHAT_BASE_URL=$here OPENROUTER_API_KEY=k run_expect 0 chat -s s1 -m openrouter:m "${tools[@]}" three
    CHAT_BASE_URL=$here MISTRAL_API_KEY=k run_expect 0 chat -s s1 -m mistral:m "${tools[@]}" four
    run_expect 0 chat -s s1 -m ollama:m five
    CHAT_BASE_URL=$here DEEPSEEK_API_KEY=k run_expect 0 chat -s s1 -m deepseek:m "${tools[@]}" six
    run_expect 0 chat -s s1 -m anthropic:m "${tools[@]}" seven
    json_is "$HISTORY" '.provider // empty' openai openai anthropic anthropic openrouter openrouter mistral mistral ollama \
        deepseek deepseek anthropic anthropic
    requests_are 13
    # In each request the conversation is whole, with a result right behind each call.
    for n in 2 6 8 9 11; do
        jq -r '.messages | map(if .tool_calls then (.tool_calls | map(.id) | join("+")) elif .role == "tool" then "=" + .tool_call_id else .role[:1] end)
            | join(" ")' "$RECORD/$n.json"
    done >shapes
    mistral=$(request 8 | jq -r '.messages[] | select(.role == "tool") | .tool_call_id' | tr '\n' ' ')
    read -r m1 m2 m3 m4 m5 m6 <<<"$mistral"
    one='u call_a+call_b =call_a =call_b a u toolu_a =toolu_a a'
    is shapes shapes 'u call_a+call_b =call_a =call_b' \
        "$one u toolu_1 =toolu_1" \
        "u $m1+$m2 =$m1 =$m2 a u $m3 =$m3 a u $m4 =$m4 a u $m5+$m6 =$m5 =$m6" \
        "$one u toolu_1 =toolu_1 a u call_$m1+call_$m2 =call_$m1 =call_$m2 a u" \
        "$one u toolu_1 =toolu_1 a u call_$m1+call_$m2 =call_$m1 =call_$m2 a u a u call_0 =call_0"
    [[ $(tr ' ' '\n' <<<"$mistral" | grep -cE '^[a-zA-Z0-9]{9}$') == 6 && $(tr ' ' '\n' <<<"$mistral" | sort -u | grep -c .) == 6 ]]
    # What each thought goes back to it alone, while its loop goes on; to Anthropic as long as nothing before it changes.
    for n in {1..13}; do
        jq -r '[.. | objects | (select(.type == "thinking" or .type == "redacted_thinking") | .type),
            (select(has("reasoning_details")) | "details"), (select(has("reasoning_content")) | "content"),
            (select(has("signature")) | "signature")] | unique | join(" ")' "$RECORD/$n.json"
    done >thoughts
    # DeepSeek gets an empty one with the others' calls.
    is thoughts thoughts '' '' '' 'redacted_thinking signature thinking' '' 'details signature' '' '' '' content content \
        'redacted_thinking signature thinking' 'redacted_thinking signature thinking'
    # Anthropic's ids are none twice, its own calls and the others'.
    json_is "$RECORD/13.json" '[.messages[].content | arrays | .[] | select(.type == "tool_use") | .id] | length, (unique | length),
        (map(test("^[a-zA-Z0-9_-]+$")) | all)' 9 9 true
    json_is "$RECORD/13.json" '[.messages[].content | arrays | .[] | .id // empty], [.messages[].content | arrays | .[] | .tool_use_id // empty]
        | tojson' '["call_a","call_b","toolu_a","toolu_1","call_FAkcANXdP","call_VYP2o3urs","call_0","call_n40c2VWtX","toolu_b"]' \
        '["call_a","call_b","toolu_a","toolu_1","call_FAkcANXdP","call_VYP2o3urs","call_0","call_n40c2VWtX","toolu_b"]'
    # The history keeps what each gave.
    json_is "$HISTORY" '.tool_calls // [] | .[].id' call_a call_b toolu_a toolu_1 call_a call_b call_0 toolu_a toolu_b
}
