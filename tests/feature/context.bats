#!/usr/bin/env bats
#
# What of a session fits into the context: limits in tokens, and a beginning that repeats from turn to turn.

# shellcheck disable=SC2016

load ../helper
load ../history

text() {
    head -c "$1" /dev/zero | tr '\0' "${2:-x}"
}

# repeated FIRST LAST: of the bytes of these requests (tools, then messages), how many in a hundred are the
# beginning of the request before them as well?
repeated() {
    python3 - "$RECORD" "$1" "$2" <<'END'
import json, os, sys
record, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def prefix(k):
    body = json.load(open(os.path.join(record, f'{k}.json')))
    return json.dumps(body.get('tools', [])) + ''.join(json.dumps(m) for m in body['messages'])
same = total = 0
before = prefix(first - 1) if first > 1 else ''
for k in range(first, last + 1):
    now = prefix(k)
    same += len(os.path.commonprefix([before, now]))
    total += len(now)
    before = now
print(same * 100 // total)
END
}

@test "context: over 40 turns with a window in tokens four fifths of the input repeat" {
    local i
    start_llm --reply "$(text 250 a)"
    export CHAT_MAX_INPUT_TOKENS=2500
    for i in {1..40}; do
        run_expect 0 chat -q -S 'Be brief.' -s s "$i $(text 250 "$((i % 10))")"
    done
    requests_are 40
    run_expect 0 repeated 1 40
    [[ $(<"$OUT") -ge 80 ]] || fail 'too little repeats'
    # No request is over the limit (a token is four bytes), and between steps at least half of it is used.
    for i in {25..40}; do
        [[ $(jq '[.messages[].content | length] | add' "$RECORD/$i.json") -le 10000 ]] || fail "request $i is too long"
        [[ $(jq '[.messages[].content | length] | add' "$RECORD/$i.json") -ge 4400 ]] || fail "request $i is too short"
        json_is "$RECORD/$i.json" '.messages[0:2][].role' system user
    done
    run_expect 0 chat -v --dry-run -s s next
    stderr_has 'the oldest messages are not sent (CHAT_MAX_INPUT_TOKENS=2500)'
}

@test "context: the step of a session that is much longer than the window repeats as well" {
    local i
    start_llm --reply "$(text 50 a)"
    for ((i = 1; i <= 300; i++)); do
        printf '{"role":"user","content":"%s %s"}\n{"role":"assistant","content":"%s"}\n' "$i" "$(text 60)" "$(text 60 y)"
    done | hist-append -s s --json >/dev/null
    export CHAT_MAX_INPUT_TOKENS=400
    for i in {1..20}; do run_expect 0 chat -q -s s "$i $(text 60 z)"; done
    run_expect 0 repeated 2 20
    # 80 as a rule: how often the step moves in 20 turns depends on the ids, which are random.
    [[ $(<"$OUT") -ge 35 ]] || fail 'too little repeats'
}

@test "context: that messages are left out is said once for a limit in tokens, too" {
    start_llm --reply "$(text 100)"
    export CHAT_MAX_INPUT_TOKENS=100
    run_expect 0 chat -s s "$(text 100)"
    stderr_empty
    run_expect 0 chat -s s "$(text 100)"
    stderr_empty
    run_expect 0 chat -s s "$(text 100)"
    stderr_is 'chat: the oldest messages are no longer sent: the limits are CHAT_MAX_INPUT_TOKENS=100 (max_input_tokens, max_messages, max_bytes); -N starts a new session'
    run_expect 0 chat -s s "$(text 100)"
    stderr_empty
    json_is "$RECORD/3.json" '.messages | length' 3
    json_is "$RECORD/4.json" '.messages | length' 3
}

@test "context: limits of messages and bytes hold beside one in tokens if they are set" {
    hist_lines s 60 >"$HISTORY"
    use_echo
    CHAT_MAX_INPUT_TOKENS=10000 run_expect 0 chat --no-store -s s next
    stdout_line 2 '[61 messages]'
    CHAT_MAX_INPUT_TOKENS=10000 CHAT_MAX_MESSAGES=10 run_expect 0 chat --no-store -s s next
    stdout_line 2 '[11 messages]'
    CHAT_MAX_INPUT_TOKENS=10000 CHAT_MAX_BYTES=40 run_expect 0 chat --no-store -s s next
    stdout_line 2 '[5 messages]'
    # All that the model can hold; that is not known here.
    CHAT_MAX_INPUT_TOKENS=all run_expect 0 chat --no-store -s s next
    stdout_line 2 '[21 messages]'
    CHAT_MAX_INPUT_TOKENS=many run_expect 2 chat --no-store -s s next
    stderr_is "chat: bad value 'many' for CHAT_MAX_INPUT_TOKENS: a number or 'all' is expected"
}

# usage INPUT: the usage of an answer.
usage() {
    printf '{"model":"m","usage":{"input_tokens":%s,"output_tokens":1}}' "$1"
}

@test "context: tokens are estimated as the server counted them in the session" {
    local i
    for i in 1 2 3 4 5; do
        hist_line s user "$(text 500)"
        hist_line s assistant "$(text 500)" '' "$(usage $((i * 500)))"
    done >"$HISTORY"
    use_echo
    # Two bytes a token: 3000 tokens are 6000 bytes, not 12000.
    CHAT_MAX_INPUT_TOKENS=3000 run_expect 0 chat -q --no-store -s s next
    stdout_line 2 '[11 messages]'
    CHAT_MAX_INPUT_TOKENS=2400 run_expect 0 chat -q --no-store -s s next
    stdout_line 2 '[5 messages]'
    # Another model counts in another way: then the estimate stays.
    sed -i '4s/"model":"m"/"model":"n"/; 8s/"model":"m"/"model":"n"/' "$HISTORY"
    CHAT_MAX_INPUT_TOKENS=2400 run_expect 0 chat -q --no-store -s s next
    stdout_line 2 '[11 messages]'
}

@test "context: tools come in the same order each time, and count against the tokens" {
    local i
    cp "$TESTS/tools/fake-mcp" .
    start_llm --reply ok
    for i in 1 2 3; do
        run_expect 0 chat -q -1 --mcp 'b=./fake-mcp --shuffle' --mcp 'a=./fake-mcp --shuffle' hello
    done
    json_is "$RECORD/1.json" '[.tools[].function.name] | join(" ")' \
        'b__a b__b b__c b__d b__e b__f b__g b__h a__a a__b a__c a__d a__e a__f a__g a__h'
    jq -c .tools "$RECORD/1.json" >one
    for i in 2 3; do jq -c .tools "$RECORD/$i.json" | same tools one /dev/stdin; done
    hist_lines s 20 >"$HISTORY"
    CHAT_MAX_INPUT_TOKENS=100 run_expect 0 chat --dry-run -q -s s next
    stdout_json '.messages | length' 21
    CHAT_MAX_INPUT_TOKENS=100 run_expect 0 chat --dry-run -q -s s --mcp 'm=./fake-mcp --many 9' next
    stdout_json '.messages | length' 3
}

# ---- what is too long

@test "context: a request that is too long is sent again without the older half" {
    hist_lines s 16 >"$HISTORY"
    start_llm openai/http-400-context --reply ok
    run_expect 0 chat -s s next
    stdout_is ok
    stderr_is "chat: the conversation is too long: asking again without the oldest 10 messages (HTTP 400: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.)"
    requests_are 2
    json_is "$RECORD/1.json" '.messages | length' 17
    json_is "$RECORD/2.json" '.messages[0,-1].content' 'message 11' next
    run_expect 0 hist-show --json -n 1 s
    stdout_json .content ok
}

@test "context: what is too long with nothing to leave out is status 6" {
    hist_lines s 16 >"$HISTORY"
    start_llm openai/http-400-context
    run_expect 6 chat --no-store -s s next
    stderr_has 'asking again without the oldest 10 messages'
    stderr_has 'asking again without the oldest 4 messages'
    requests_are 3
    # The newest answer and its prompt are sent in any case.
    request_messages_are 3 'user:message 15' 'assistant:message 16' 'user:next'
    run_expect 6 chat -1 alone
    stderr_lacks 'asking again'
    requests_are 4
    # A filter is not about the length.
    printf 'status: 400\n\n{"error":{"message":"x","code":"content_policy_violation"}}' >policy
    start_llm "$PWD/policy"
    run_expect 6 chat --no-store -s s next
    requests_are 1
}

@test "context: Anthropic and llama.cpp say in their words that it is too long" {
    local fixture
    hist_lines s 8 >"$HISTORY"
    for fixture in error-too-long http-400-too-long; do
        start_llm "anthropic/$fixture" anthropic/normal
        ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=k run_expect 0 chat --no-store -m anthropic:m -s s next
        stderr_has 'asking again without the oldest 6 messages'
        requests_are 2
    done
    for fixture in llamacpp-error error-200-context; do
        start_llm "openai/$fixture" --reply ok
        run_expect 0 chat --no-store -s s next
        stdout_is ok
        requests_are 2
    done
}

# ---- what the server says about its context

# start_unknown OPTION...: like start_llm, but its list of models was not requested yet.
start_unknown() {
    start_llm "$@"
    rm -rf "$HOME/.cache"
}

# cached: what the cache of model lists holds.
cached() {
    cat "$HOME"/.cache/chathist/models/*
}

@test "context: a list of models tells the window, before the first request that could exceed it and once a day" {
    local member
    for member in context_length max_model_len context_window max_context_length max_input_tokens; do
        hist_lines s 30 >"$HISTORY"
        start_unknown --models "other,test-model=$member:100" --reply ok
        run_expect 0 chat -q -s s next
        requests_are 2
        json_is "$RECORD/2.json" '.messages | length' 31
        run_expect 0 cached
        stdout_is other $'test-model\t100'
        # 100 tokens, 25 of them for the answer: 300 bytes, and the last step left half of it.
        run_expect 0 chat -q --dry-run -s s next
        stdout_json '.messages | length' 17
        CHAT_MAX_INPUT_TOKENS=40 run_expect 0 chat -v --dry-run -s s next
        stderr_has 'CHAT_MAX_INPUT_TOKENS=40'
        CHAT_MAX_INPUT_TOKENS=4000 run_expect 0 chat -v --dry-run -s s next
        stderr_has 'CHAT_MAX_INPUT_TOKENS=75'
        CHAT_MAX_INPUT_TOKENS=all run_expect 0 chat --dry-run --max-tokens 10 -s s next
        stdout_json '.messages | length' 33
        # Completion reads the same list.
        run_expect 0 chat --models --cached
        stdout_is openai:other openai:test-model
    done
}

@test "context: Gemini's own list tells the window, its compatible one does not" {
    hist_lines s 30 >"$HISTORY"
    printf '%s\n' 'status: 200' 'header: Content-Type: application/json' 'path: /v1beta/models' '' \
        '{"models":[{"name":"models/gemini-test","inputTokenLimit":100,"outputTokenLimit":50}]}' >list.http
    start_unknown ./list.http --reply ok
    export GEMINI_API_KEY=test-key-1 CHAT_MODEL=gemini:gemini-test
    run_expect 0 chat -q --base-url "http://127.0.0.1:$LLM_PORT/v1beta/openai" -s s next
    run_expect 0 cached
    stdout_is $'gemini-test\t100'
    run_expect 0 chat -q --dry-run --base-url "http://127.0.0.1:$LLM_PORT/v1beta/openai" -s s next
    stdout_json '.messages | length' 17
}

@test "context: a short conversation is not worth the list, a long prompt or message is" {
    start_unknown --models 'test-model=context_length:100' --reply ok
    hist_lines s 8 >"$HISTORY"
    run_expect 0 chat -s s next
    run_expect 0 chat -1 next
    [[ ! -e $HOME/.cache/chathist/models ]] || fail 'the list was requested'
    requests_are 2
    run_expect 6 chat -1 "$(text 3072)"
    stderr_has 'the prompt is too long for the model'
    requests_are 3
    start_unknown --models 'test-model=context_length:100' --reply ok
    hist_line t user "$(text 3072)" >"$HISTORY"
    hist_line t assistant yes >>"$HISTORY"
    run_expect 0 chat -q -s t next
    requests_are 2
    [[ $(jq '.messages | map(.content | length) | add' "$RECORD/2.json") -le 300 ]]
    run_expect 0 chat -q -s t next
    requests_are 3
}

@test "context: a server that does not list its models loses no window" {
    hist_lines s 30 >"$HISTORY"
    printf 'status: 500\npath: /v1/models\n\nno' >none
    start_unknown "$PWD/none" --reply ok
    mkdir -p "$HOME/.cache/chathist/models"
    printf 'test-model\t100\n' >"$HOME/.cache/chathist/models/openai@127.0.0.1:$LLM_PORT%v1"
    touch -d '2 days ago' "$HOME"/.cache/chathist/models/*
    run_expect 0 chat -q -s s next
    run_expect 0 cached
    stdout_is $'test-model\t100'
    # The list is not requested again on this day.
    run_expect 0 find "$HOME/.cache/chathist/models" -type f -mtime -1
    [[ -s $OUT ]] || fail 'the list counts as old'
}

@test "context: with a large window the limit is 32,000 tokens" {
    hist_lines s 200 >"$HISTORY"
    start_unknown --models 'test-model=context_length:1000000' --reply ok
    run_expect 0 chat -q -s s next
    run_expect 0 chat -s s more
    json_is "$RECORD/2.json" '.messages | length' 201
    json_is "$RECORD/3.json" '.messages | length' 203
    stderr_empty
    for i in 1 2 3 4; do hist_line s user "$(text 40000)"; hist_line s assistant yes; done >>"$HISTORY"
    run_expect 0 chat -v -s s 'and now?'
    stderr_has '(CHAT_MAX_INPUT_TOKENS=32000)'
    CHAT_MAX_INPUT_TOKENS=all run_expect 0 chat --no-store -s s 'and now?'
    json_is "$RECORD/5.json" '.messages | length' 215
}

@test "context: llama.cpp is asked for its window in each turn of a conversation" {
    hist_lines s 40 >"$HISTORY"
    printf 'status: 200\npath: /props\nheader: Content-Type: application/json\n\n{"default_generation_settings":{"n_ctx":100}}' >props
    start_unknown "$PWD/props" --reply ok
    export CHAT_MODEL=llamacpp:m CHAT_BASE_URL=http://127.0.0.1:$LLM_PORT/v1
    run_expect 0 chat -v -s s next
    stderr_has '(CHAT_MAX_INPUT_TOKENS=75)'
    jq -s 'map(select(.messages)) | .[-1].messages | length' "$RECORD"/*.json >"$OUT"
    stdout_is 25
    # A server that does not say changes nothing.
    start_unknown --reply ok
    CHAT_BASE_URL=http://127.0.0.1:$LLM_PORT/v1 run_expect 0 chat -q --no-store -s s next
    stdout_is ok
}
