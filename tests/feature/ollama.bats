#!/usr/bin/env bats
#
# chat against Ollama's own API: every fixture (tests/unit/splits_test.c has them byte by byte and cut), the request, tools, reasoning, and the
# size of the context.

# shellcheck disable=SC2016,SC2034

load ../helper
load ../wire

# Before a prompt in a session Ollama is asked what it has loaded, and what the model can hold.
FAMILY=ollama MANY=20 REQUESTS_EACH=3

more_expectations() {
    :
}

start_ollama() {
    start_family "${@/#+/ollama/}"
}

# chat_request K FILTER VALUE...: of the K-th request to /api/chat.
chat_request() {
    local found k=$1
    shift
    found=$(grep -l '^POST /api/chat ' "$RECORD"/*.headers | sort -V | sed -n "${k}p")
    json_is "${found%.headers}.json" "$@"
}

# paths: the path of each request.
paths() {
    for head in $(find "$RECORD" -name '*.headers' | sort -V); do
        head -n 1 "$head" | cut -d ' ' -f 2
    done | xargs
}

@test "ollama: each fixture gives its exit code, its text, its error in one line, and what is stored" {
    expectations '' >table
    ask_all table
    all_stored table
    finish_reasons_are normal stop call tool_calls calls-no-id tool_calls length length cut error cut-in-line error \
        error-late error whole stop lines-as-json stop thinking stop
    json_is history.jsonl 'select(.session_id == "normal" and .role == "assistant") | .usage | tojson' \
        '{"input_tokens":26,"output_tokens":3}'
    # Compared as values: a newer jq writes 2.50 as it was, an older one 2.5.
    json_is history.jsonl 'select(.session_id == "call") | .tool_calls // empty
        | . == [{"id":"call_a1b2","name":"f","args":{"a":3,"b":{"c":[1,2.5]}}}]' true
    json_is history.jsonl 'select(.session_id == "calls-no-id") | .tool_calls // empty | map(.args) | tojson' '[{"a":1},{}]'
}

@test "ollama: the request: messages, images, tools, options, effort, schema, limit" {
    printf 'iVBORw0KGgo=' | base64 -d >a.png
    printf '{"type":"object","properties":{"n":{"type":"integer"}}}' >schema
    put_tool f 'cat'
    start_ollama --reply '{"n":1}'
    run_expect 0 chat -S 'be brief' -f a.png -T ./f --schema schema --effort high --max-tokens 50 -o temperature=0.5 \
        -o keep_alive=10m -o 'options={"seed":7}' hello
    run_expect 0 head -n 1 "$RECORD/2.headers"
    stdout_is $'POST /api/chat HTTP/1.1\r'
    [[ $(request_header 2 accept) == application/x-ndjson ]]
    [[ $(request_header 2 authorization) == '' ]]
    chat_request 1 'del(.messages, .tools) | tojson' '{"model":"test-model","stream":true,"truncate":false,"format":{"type":"object","properties":{"n":{"type":"integer"}}},"think":"high","options":{"num_ctx":8192,"num_predict":50,"temperature":0.5,"seed":7},"keep_alive":"10m"}'
    chat_request 1 '.messages[] | tojson' '{"role":"system","content":"be brief"}' \
        '{"role":"user","content":"hello","images":["iVBORw0KGgo="]}'
    chat_request 1 '.tools[0].function.name' f
    run_expect 2 chat -N --max-tokens 50 -o num_predict=40 hello
    stderr_is "chat: --max-tokens and -o num_predict contradict each other: both set 'options.num_predict'"
    run_expect 0 chat -N --effort none --no-stream hello
    chat_request 2 '[.think, .stream] | tojson' '[false,false]'
    run_expect 0 chat -N --reasoning hello
    chat_request 3 '[.think, .options] | tojson' '[true,null]'
    run_expect 0 chat -p ollama --models
    stdout_is ollama:test-model
}

@test "ollama: calls and results go back with the thinking before them, and ids that Ollama did not give" {
    use_history
    put_tool f 'echo "got $(cat)"'
    start_ollama +call +normal +calls-no-id +normal
    run_expect 0 chat -T ./f --yes --reasoning hello
    stdout_is 'Hello, world.'
    stderr_has 'I ask f.'
    chat_request 2 '.messages[1:] == [{"role":"assistant","content":"","thinking":"I ask f.","tool_calls":[{"id":"call_a1b2","function":{"index":0,"name":"f","arguments":{"a":3,"b":{"c":[1,2.5]}}}}]},{"role":"tool","content":"got {\"a\":3,\"b\":{\"c\":[1,2.50]}}\n","tool_name":"f","tool_call_id":"call_a1b2"}]' true
    run_expect 0 chat -T ./f --yes more
    chat_request 4 '[.messages[-3:][] | .role, (.tool_calls // [] | map(.function.arguments) | tojson), .tool_name]
        | tojson' '["assistant","[{\"a\":1},{}]",null,"tool","[]","f","tool","[]","f"]'
    chat_request 4 '.messages as $m | ($m[-3].tool_calls | map(.id)) == [$m[-2].tool_call_id, $m[-1].tool_call_id]' true
}

@test "ollama: a model that does not reason is asked without it, but not against --effort" {
    start_ollama +http-400-thinking +normal
    run_expect 0 chat -N --reasoning hello
    stdout_is 'Hello, world.'
    stderr_has "chat: the model does not reason: asking without 'think'"
    chat_request 2 .think null
    start_ollama +http-400-thinking +normal
    run_expect 1 chat -N --effort low hello
    stderr_is 'chat: HTTP 400: "test-model" does not support thinking (set by --effort)'
}

@test "ollama: num_ctx follows what is sent in large steps, and keeps the size that the model is loaded with" {
    use_history
    printf 'x%.0s' {1..40000} >large
    start_family --models test-model=context_length:131072 --reply hi
    run_expect 0 chat -N hello
    chat_request 1 '.options' null
    [[ $(paths) == '/api/ps /api/chat' ]]
    run_expect 0 chat -N -f large hello
    chat_request 2 '.options | tojson' '{"num_ctx":32768}'
    [[ $(paths) == '/api/ps /api/chat /api/ps /api/show /api/chat' ]]
    run_expect 0 chat -N -f large -o num_ctx=12000 hello
    chat_request 3 '.options | tojson' '{"num_ctx":12000}'
    CHAT_MAX_INPUT_TOKENS=20000 run_expect 0 chat -N -f large hello
    chat_request 4 '.options | tojson' '{"num_ctx":24576}'
    start_family --models test-model=context_length:16384 --reply hi
    run_expect 0 chat -N -f large hello
    chat_request 1 '.options | tojson' '{"num_ctx":16384}'
    start_family --models test-model=context_length:131072=loaded:20000 --reply hi
    run_expect 0 chat -N hello
    chat_request 1 '.options | tojson' '{"num_ctx":20000}'
    run_expect 0 chat -N -f large hello
    chat_request 2 '.options | tojson' '{"num_ctx":20000}'
}

@test "ollama: a server that never ends what it says of its models does not hold up the prompt" {
    printf 'path: /api/ps\nheader: Content-Type: application/json\nchunk: 1\ndelay: 50ms\nmark: |\nrepeat: forever\ntransfer: chunked\n\n{"models":[|1,|]}\n' >drip.http
    start_ollama +normal ./drip.http
    run_expect 0 timeout 40 chat -N hello
    stdout_is 'Hello, world.'
}

@test "ollama: the window of the model limits the conversation" {
    use_history
    for i in {1..40}; do
        hist_line s user "question $i $(printf 'x%.0s' {1..1000})"
        hist_line s assistant "answer $i"
    done >history.jsonl
    start_family --models test-model=context_length:8192 --reply hi
    run_expect 0 chat -s s hello
    chat_request 1 '[.options.num_ctx, (.messages | length < 70), .messages[0].role] | tojson' '[8192,true,"user"]'
    start_family --models test-model=context_length:65536 --reply hi
    run_expect 0 chat -s s hello
    chat_request 1 '.messages | length' 83
}

@test "ollama: a conversation that is too long is asked again with less, and a silent cut is told once" {
    use_history
    printf 'word %.0s' {1..2000} >large
    run_expect 0 chat -p echo -s s -f large hello
    start_ollama +http-400-long +normal
    run_expect 0 chat -s s hello
    stderr_has 'chat: the conversation is too long: asking again without parts of long texts'
    printf 'status: 200\nheader: Content-Type: application/x-ndjson\n\n{"message":{"content":"hi"},"done":true,"prompt_eval_count":300,"eval_count":1}\n' >cut.http
    start_family ./cut.http
    run_expect 0 chat -N -f large hello
    stderr_matches '^chat: the server has left out a part of the conversation: it counted 300 tokens in 1[0-9]{4} bytes$'
    # Of a later turn, a server may have kept the beginning in its cache, and not count it.
    run_expect 0 chat again
    stderr_matches '^chat: the server has left out a part of the conversation, or does not count what it has cached: it counted 300 tokens in 1[0-9]{4} bytes$'
    start_ollama +normal
    run_expect 0 chat -N -q hello
    empty stderr "$ERR"
}

@test "ollama: a base URL that ends in /v1 is that of the compatible API" {
    start_llm --reply hi
    export OLLAMA_HOST=127.0.0.1:$LLM_PORT/v1
    run_expect 0 chat -m ollama:m hello
    run_expect 0 chat -m ollama:m --base-url "http://127.0.0.1:$LLM_PORT/v1/" hello
    run_expect 0 chat -N -m ollama:m --base-url "http://127.0.0.1:$LLM_PORT/api/chat" hello
    [[ $(paths) == '/v1/chat/completions /v1/chat/completions /api/ps /api/chat' ]]
}
