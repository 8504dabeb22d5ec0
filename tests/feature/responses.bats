#!/usr/bin/env bats
#
# chat against the bytes of OpenAI's Responses API: every fixture (tests/unit/splits_test.c has them
# byte by byte and cut), the request, the items that
# go back, tools, and what a server refuses.

# shellcheck disable=SC2016,SC2034

load ../helper
load ../wire

FAMILY=openai-responses MANY=30

more_expectations() {
    :
}

start_responses() {
    start_family "${@/#+/openai-responses/}"
}

@test "responses: each fixture gives its exit code, its text, its error in one line, and what is stored" {
    expectations '' >table
    ask_all table
    all_stored table
    finish_reasons_are normal stop reasoning stop call tool_calls reasoning-calls tool_calls refusal content_filter \
        length length filter content_filter max-messages error failed error failed-late error error-late error \
        cut error cut-done error only-completed tool_calls whole stop whole-length length whole-calls tool_calls \
        whole-failed error calls-no-id tool_calls
    json_is history.jsonl 'select(.session_id == "calls-no-id") | .tool_calls // empty | map(.args) | tojson' '[{},{"a":1}]'
}

@test "responses: errors are told in the server's words" {
    start_responses +failed +failed-late +failed-prompt +failed-image +failed-quota +failed-context +error +error-inside \
        +error-late +length +filter +max-messages +refusal +cut +whole-other +whole-queued
    for want in '5 server error: The model failed.' '7 answer is incomplete: server error: The model failed.' \
        '6 server error: Invalid prompt: it was flagged.' '1 server error: The image is not supported.' \
        '5 server error: You exceeded your current quota. (the account has no quota left: not tried again)' \
        '6 server error: Your input exceeds the context window of this model.' '5 server error: Slow down.' \
        '5 server error: Slow down.' '7 answer is incomplete: server error: The model failed.' \
        "7 answer is incomplete: the model's length limit was reached" "6 the server's content filter stopped the answer" \
        '7 answer is incomplete: the server ended it: max_messages' '6 the model refused to answer' \
        '7 answer is incomplete: the stream ended early'; do
        run_expect "${want%% *}" chat --retries 0 -N hello
        stderr_is "chat: ${want#* }"
    done
    run_expect 5 chat --retries 0 -N hello
    stderr_matches "^chat: the server's answer has no output: '\\{"
    run_expect 7 chat --retries 0 -N hello
    stderr_is "chat: answer is incomplete: its status is: 'queued'"
}

@test "responses: the request" {
    start_responses +normal
    run_expect 0 chat -N -S 'be brief' 'a "b"'
    request 1 >body
    json_is body 'keys_unsorted | join(" ")' 'model instructions input stream store include'
    json_is body '.input | tojson' '[{"type":"message","role":"user","content":"a \"b\""}]'
    json_is body '.instructions, .stream, .store, .include[0]' 'be brief' true false reasoning.encrypted_content
    grep -q '^POST /v1/responses ' "$RECORD/1.headers"
    [[ $(request_header 1 Authorization) == 'Bearer test-key-1' ]]
    run_expect 0 chat 'and c'
    request 2 >body
    json_is body '.input[1] | tojson' '{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello, world.","annotations":[],"logprobs":[]}]}'
    json_is body '.input | length' 3
}

@test "responses: effort, summaries, the limit of tokens, and options" {
    run_expect 0 chat --dry-run -m openai-responses:m --base-url http://127.0.0.1:1/v1 --effort high --reasoning --max-tokens 99 \
        -o 'text={"verbosity":"low"}' -o store=true x
    json_is "$OUT" '(.reasoning | tojson), .max_output_tokens, .text.verbosity, .store' '{"summary":"auto","effort":"high"}' 99 low true
    stderr_empty
}

@test "responses: openai uses this API at OpenAI's own host only, openai-chat never, openai-responses everywhere" {
    export OPENAI_API_KEY=k
    unset OPENAI_BASE_URL
    for url in '' https://api.openai.com/v1 https://api.openai.com/v1/ https://eu.api.openai.com/v1; do
        run_expect 0 chat ${url:+--base-url "$url"} --dry-run -m openai:m x
        json_is "$OUT" 'has("input")' true
        run_expect 0 chat ${url:+--base-url "$url"} --dry-run -m openai-chat:m x
        json_is "$OUT" 'has("messages")' true
    done
    for url in http://127.0.0.1:9/v1 https://openrouter.ai/api/v1 https://api.openai.com.example.org/v1 \
        https://notapi.openai.com/v1 http://api.openai.com:8080/v1; do
        run_expect 0 chat --insecure --base-url "$url" --dry-run -m openai:m x
        json_is "$OUT" 'has("messages")' true
        run_expect 0 chat --insecure --base-url "$url" --dry-run -m openai-responses:m x
        json_is "$OUT" 'has("input")' true
    done
    # Whichever is used, it is set up once.
    unset OPENAI_API_KEY
    export XDG_CONFIG_HOME=$PWD/xdg
    mkdir -p xdg/chathist/keys
    (umask 077 && echo k-2 >xdg/chathist/keys/openai)
    unset CHAT_MODEL
    for provider in openai openai-chat openai-responses; do
        run_expect 0 chat -p "$provider" --dry-run -m m x
        stderr_empty
    done
    echo 'api_key_command.openai-chat = echo k' >xdg/chathist/config
    run_expect 0 chat -p openai-chat --dry-run -m m x
    stderr_is "chat: api_key_command.openai-chat in the user configuration is not used: 'openai-chat' has the key of 'openai'"
}

@test "responses: at OpenAI's own host the requests of a session have the same key for the cache" {
    use_history
    export OPENAI_API_KEY=k
    for session in s s t; do
        run_expect 0 chat --dry-run -s "$session" -m openai:m --base-url https://api.openai.com/v1 x
        jq -r .prompt_cache_key "$OUT" >>keys
    done
    grep -qxE '[0-9a-f]{16}' keys
    [[ $(uniq -c keys | awk '{ print $1 }' | xargs) == '2 1' ]]
    run_expect 0 chat --dry-run --once -m openai:m --base-url https://api.openai.com/v1 x
    stdout_json .prompt_cache_key null
    run_expect 0 chat --dry-run -s s -m openai-responses:m --base-url http://127.0.0.1:1/v1 x
    stdout_json .prompt_cache_key null
}

@test "responses: a loop of calls sends every item back, byte for byte and in its order" {
    use_history
    put_tool f 'printf "result of %s" "$(cat)"'
    start_responses +reasoning-calls +reasoning +normal +normal
    run_expect 0 chat -N -T ./f --yes hello
    stdout_is 'I look.' 'Hello, world.'
    request 1 >body
    json_is body '.tools | map(del(.parameters)) | tojson' '[{"type":"function","name":"f","description":"for tests","strict":false}]'
    json_is body '.tools[0].parameters.type' object
    sed -n 's/^data: //p' "$FIXTURES/openai-responses/reasoning-calls.http" | grep '"response.output_item.done"' |
        sed 's/^.*"item"://; s/}$//' >items
    request 2 >body
    grep -qF "$(paste -sd , items)" body
    json_is body '.input | map(.type) | join(" ")' \
        'message reasoning message function_call reasoning function_call function_call_output function_call_output'
    json_is body '.input[6:] | map([.call_id, .output]) | tojson' '[["call_1","result of {\"a\":3}"],["call_2","result of {\"a\":4}"]]'
    # So it is in later turns, for the calls and for the answer.
    run_expect 0 chat again
    request 3 >body
    grep -qF "$(paste -sd , items)" body
    json_is body '.input | map(.type) | join(" ")' \
        'message reasoning message function_call reasoning function_call function_call_output function_call_output reasoning message message'
    json_is body '.input[9] | .id, .phase, .content[0].text' msg_1 final_answer 'Hello, world.'
    # Another provider gets the texts and the calls.
    run_expect 0 chat --dry-run -m openai-chat:m again
    json_is "$OUT" '.messages | map(.role) | join(" ")' 'user assistant tool tool assistant user assistant user'
    run_expect 0 chat --dry-run --base-url https://api.openai.com/v1 -m openai:m again
    json_is "$OUT" '.input | map(.type) | join(" ")' \
        'message message function_call function_call function_call_output function_call_output message message message message'
    if grep -q gAAAA "$OUT"; then fail 'another provider gets the reasoning'; fi
}

@test "responses: calls without reasoning are stored without items, and ids of other servers are rewritten" {
    use_history
    put_tool f 'printf r'
    start_responses +call +normal
    run_expect 0 chat -N -T ./f --yes hello
    json_is history.jsonl 'select(.role == "assistant") | has("thinking")' false false
    request 2 | jq -c '.input[1:]' >got
    is 'the items' got '[{"type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":3}"},{"type":"function_call_output","call_id":"call_1","output":"r"}]'
    rm history.jsonl
    for line in '"role":"user","content":"q"' \
        '"role":"assistant","content":"","tool_calls":[{"id":"chatcmpl-tool-0123456789abcdef0123456789abcdef","name":"functions.f","args":"{bad"}]' \
        '"role":"tool","tool_call_id":"chatcmpl-tool-0123456789abcdef0123456789abcdef","content":"r"'; do
        echo "{$line}" | hist-append -s other --json
    done
    run_expect 0 chat -s other --dry-run x
    json_is "$OUT" '.input[1] | .name, .arguments, (.call_id | length)' functions_f '{}' 14
    json_is "$OUT" '.input[1].call_id == .input[2].call_id' true
}

@test "responses: reasoning at the end of a response, and of an answer that broke off, does not go back" {
    use_history
    printf '%s\n' 'status: 200' '' 'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}}' '' \
        'data: {"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA1"}}' '' \
        'data: {"type":"response.completed","response":{"status":"completed"}}' '' >last.http
    printf '%s\n' 'status: 200' '' 'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA2"}}' '' \
        'data: {"type":"response.output_text.delta","output_index":1,"delta":"b"}' '' >broken.http
    start_responses ./last.http ./broken.http +normal
    run_expect 0 chat -N hello
    run_expect 7 chat --retries 0 hello
    run_expect 0 chat again
    request 3 >body
    json_is body '.input | map(.type) | unique | join(" ")' message
    json_is history.jsonl 'select(.content == "b") | has("thinking")' false
}

@test "responses: --reasoning shows summaries, or the reasoning of an open model" {
    start_responses +reasoning +open-reasoning +no-deltas +whole
    run_expect 0 chat -N --reasoning hello
    stdout_is 'Hello, world.'
    stderr_is '**Greeting**' '' 'They greet.' '' '**Answering**' '' 'I greet back.'
    request 1 >body
    json_is body '.reasoning | tojson' '{"summary":"auto"}'
    run_expect 0 chat -N --reasoning hello
    stderr_is 'They greet me.'
    run_expect 9 chat -N --reasoning hello
    stderr_matches '^I think\.$' '^chat: the model called the tool'
    run_expect 0 chat -N --reasoning --no-stream hello
    stderr_is 'I search.'
}

@test "responses: tools that run at the server, and what they cite" {
    start_responses +web-search +whole +normal
    run_expect 0 chat -N --json -T @web_search hello
    stderr_empty
    stdout_json 'select(.type == "citation") | .citation | tojson' '{"type":"url_citation","start_index":0,"end_index":5,"url":"https://example.org/a","title":"A"}'
    request 1 >body
    json_is body '.tools | tojson' '[{"type":"web_search"}]'
    run_expect 0 chat -N --json --no-stream -T @web_search -T @code_interpreter hello
    stdout_json 'select(.type == "citation") | .citation.url' https://example.org/a
    request 2 >body
    json_is body '(.tools | tojson), .stream' '[{"type":"web_search"},{"type":"code_interpreter"}]' false
    # The search goes back with the rest.
    run_expect 0 chat again
    request 3 >body
    json_is body '.input | map(.type) | join(" ")' 'message reasoning message web_search_call message message'
    run_expect 2 chat -N -m openai-chat:m -T @web_search hello
    stdout_empty
    stderr_is "chat: provider 'openai-chat' runs no tools itself: -T @web_search cannot be used"
}

@test "responses: usage and the model that answered" {
    use_history
    start_responses +reasoning +whole
    for stream in '' --no-stream; do
        run_expect 0 chat -N -u $stream hello
        stderr_is 'input_tokens=36 output_tokens=87 cache_read_tokens=16 cache_write_tokens=0 reasoning_tokens=64'
    done
    json_is history.jsonl 'select(.role == "assistant") | .model, .provider' test-model-2024 openai-responses test-model-2024 openai-responses
}

@test "responses: a schema is sent in its own field, or in the system prompt if the server refuses it" {
    echo '{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],"additionalProperties":false}' >schema.json
    printf '%s\n' 'status: 200' '' 'data: {"type":"response.output_text.delta","output_index":0,"delta":"{\"n\":3}"}' '' \
        'data: {"type":"response.completed","response":{"status":"completed"}}' '' >three.http
    printf '%s\n' 'status: 400 Bad Request' '' '{"error":{"message":"Unsupported parameter: text.format","type":"invalid_request_error","param":"text.format"}}' >no-format.http
    start_responses --refuse '"json_schema"=./no-format.http' ./three.http
    run_expect 0 chat -N --schema schema.json hello
    stdout_is '{"n":3}'
    request 1 >body
    json_is body '.text.format | del(.schema) | tojson' '{"type":"json_schema","name":"answer","strict":true}'
    json_is body '.text.format.schema.properties.n.type' number
    request 2 >body
    json_is body 'has("text")' false
    json_is body '.instructions | test("JSON Schema")' true
}

# refusal MESSAGE PARAM
refusal() {
    printf '%s\n' 'status: 400 Bad Request' '' "{\"error\":{\"message\":\"$1\",\"type\":\"invalid_request_error\",\"param\":$2,\"code\":null}}"
}

@test "responses: what a server or a model does not take is left out" {
    use_history
    refusal 'Encrypted content is not supported with this model.' '"include"' >encrypted.http
    refusal 'Your organization must be verified to generate reasoning summaries.' '"reasoning.summary"' >summary.http
    start_responses --refuse '"include"=./encrypted.http' --refuse '"summary":"auto"=./summary.http' +normal
    run_expect 0 chat -N --reasoning hello
    stdout_is 'Hello, world.'
    stderr_is "chat: the server refuses 'include': asking without it" \
        "chat: the server refuses 'reasoning.summary': asking without it"
    requests_are 3
    # Items of another account, or of a model that reasons.
    start_responses +reasoning
    run_expect 0 chat -N -q hello
    refusal 'The encrypted content gAAA...1== could not be verified.' null >items.http
    start_responses --refuse '"rs_1"=./items.http' +normal
    server_moved history.jsonl
    run_expect 0 chat again
    stderr_is 'chat: the server does not take its earlier reasoning back: it is left out'
    requests_are 2
    request 2 >body
    json_is body '.input | map(.type) | unique | join(" ")' message
    json_is body '.input[1].content[0].text' 'Hello, world.'
    json_is body '.include[0]' reasoning.encrypted_content
}

@test "responses: a server without this API" {
    printf '%s\n' 'status: 404 Not Found' '' '{"detail":"Not Found"}' >404.http
    start_responses ./404.http openai/normal
    run_expect 1 chat -N hello
    stderr_is 'chat: HTTP 404: Not Found (no Responses API there? -p openai-chat uses Chat Completions)'
    run_expect 7 chat -N hello
    stderr_is 'chat: answer is incomplete: the server does not speak the Responses API'
    # A model that is missing is another matter.
    printf '%s\n' 'status: 404 Not Found' '' '{"error":{"message":"The model m does not exist"}}' >model.http
    start_responses ./model.http
    run_expect 1 chat -N hello
    stderr_is 'chat: HTTP 404: The model m does not exist (chathist models lists them)'
}

@test "responses: the list of models, images, PDFs" {
    start_responses --models a,b +normal
    run_expect 0 chat --models -p openai-responses
    stdout_is openai-responses:a openai-responses:b
    start_responses +normal
    printf '\x89PNG\r\n\x1a\n' >dot.png
    run_expect 0 chat -N -f dot.png 'what is it?'
    request 1 >body
    json_is body '.input[0].content | tojson' '[{"type":"input_text","text":"what is it?"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}]'
    printf '%%PDF-1.4\n' >a.pdf
    run_expect 0 chat -N -f a.pdf 'what is it?'
    request 2 >body
    json_is body '.input[0].content | tojson' '[{"type":"input_text","text":"what is it?"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQK"}]'
}

@test "responses: the result of a call that a program made names the program" {
    use_history
    put_tool 'time' 'echo noon' get_time
    caller='{"type":"program","caller_id":"pg_1"}'
    item="{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\",\"name\":\"get_time\",\"arguments\":\"{}\",\"caller\":$caller}"
    {
        printf '# a stream\n\n'
        printf 'event: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":0,"item":%s}\n\n' "$item"
        printf 'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","output":[%s]}}\n\n' "$item"
    } >program.http
    start_responses ./program.http openai-responses/normal
    run_expect 0 chat -s s --yes -T ./time hello
    request 2 | jq -c '[.input[1].caller, .input[2].caller, .input[2].call_id]' >sent
    is sent sent "[$caller,$caller,\"call_1\"]"
}
