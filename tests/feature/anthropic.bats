#!/usr/bin/env bats
#
# chat against the bytes of the Anthropic Messages API: every fixture (tests/unit/splits_test.c has them byte by byte
# and cut), the request, what is stored, citations, keys.

# shellcheck disable=SC2034

load ../helper
load ../wire

FAMILY=anthropic MANY=70

# Each fixture says all that there is to say.
more_expectations() {
    :
}

@test "anthropic: each fixture gives its exit code, its text, its error in one line, and what is stored" {
    expectations 'pause-turn.*' >table
    ask_all table
    all_stored table
    finish_reasons_are normal stop stop-sequence stop max-tokens length refusal content_filter refusal-empty content_filter \
        context-full model_context_window_exceeded unknown-stop brand_new calls tool_calls \
        calls-max-tokens length calls-cut error error error reset error no-stop-reason stop no-message-stop stop \
        not-streamed stop not-streamed-refusal content_filter not-streamed-calls tool_calls
}

@test "anthropic: errors are told in the server's words" {
    start_family anthropic/error-first anthropic/error anthropic/error-no-type anthropic/http-529 anthropic/http-401-key \
        anthropic/context-full-empty anthropic/context-full anthropic/refusal anthropic/refusal-details \
        anthropic/not-streamed-refusal-details
    for want in '5 server error: Overloaded' '7 answer is incomplete: server error: Overloaded' \
        '5 server error: upstream failed' '5 HTTP 529: Overloaded' '3 HTTP 401: invalid x-api-key: *** (key from ANTHROPIC_API_KEY)' \
        '6 the conversation is too long for the model' "7 answer is incomplete: the model's context is full" \
        '6 the model refused to answer' '6 the model refused to answer: It is not safe. (bio)' \
        '6 the model refused to answer: cyber'; do
        run_expect "${want%% *}" chat --retries 0 -N hello
        stderr_is "chat: ${want#* }"
    done
}

@test "anthropic: a paused turn is gone on with, from its own blocks, and is one answer" {
    use_history
    for bytes in event 1; do
        start_family --set "chunk: $bytes" --set 'delay: 0ms' anthropic/pause-turn-search anthropic/pause-turn anthropic/normal
        run_expect 0 chat -u -N hello
        stdout_is 'I look. It is green.Hello, world.Hello, world.'
        stderr_is 'input_tokens=33 output_tokens=12'
        requests_are 3
        # As they came, behind the prompt, and nothing behind them.
        blocks='{"type":"thinking","thinking":"Search.","signature":"c2ln"}
            {"type":"text","text":"I look. "}
            {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"grass"}}
            {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.org/","title":"t","encrypted_content":"RW5j","page_age":null}]}
            {"type":"text","text":"It is green.","citations":[{"type":"web_search_result_location","url":"https://example.org/","title":"t","encrypted_index":"RW5j","cited_text":"Green."}]}
            {"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{"query":"sky"}}'
        request 2 | jq -cS '.messages | map(.role), .[1].content' >sent
        { echo '["user","assistant"]' && jq -cSs . <<<"$blocks"; } >wanted
        same 'the paused answer' wanted sent
        request 3 | jq -cS '.messages | map(.role), .[1].content' >sent
        { echo '["user","assistant"]' && jq -cSs . <<<"$blocks"'{"type":"text","text":"Hello, world."}'; } >wanted
        same 'both parts' wanted sent
    done
    json_is history.jsonl 'select(.role == "assistant") | [.content, .finish_reason, .usage.output_tokens] | tojson' \
        '["I look. It is green.Hello, world.Hello, world.","stop",12]' '["I look. It is green.Hello, world.Hello, world.","stop",12]'
    run_expect 0 chat -N --json hello
    stdout_json .type session_id text text text usage 'done'
}

@test "anthropic: a turn that is paused for ever ends at --max-iterations; one that cannot be gone on with, as it is" {
    use_history
    start_family anthropic/pause-turn
    run_expect 9 chat --max-iterations 2 hello
    stdout_is 'Hello, world.Hello, world.Hello, world.'
    stderr_is 'chat: the model goes on pausing its turn after 2 rounds'
    requests_are 3
    json_is history.jsonl 'select(.role == "assistant") | .content, .finish_reason' 'Hello, world.Hello, world.Hello, world.' pause_turn
    # Without any block there is nothing to go on from.
    printf '%s\n' 'header: Content-Type: application/json' '' \
        '{"type":"message","content":[],"stop_reason":"pause_turn"}' >empty.http
    start_family ./empty.http
    run_expect 7 chat -N hello
    stderr_is 'chat: answer is incomplete: the model paused its turn'
    requests_are 1
}

@test "anthropic: what fails after a pause leaves what came; a call after it is carried out" {
    use_history
    start_family anthropic/pause-turn anthropic/http-529
    run_expect 7 chat -s a --retries 0 hello
    stdout_is 'Hello, world.'
    stderr_is 'chat: answer is incomplete: HTTP 529: Overloaded'
    json_is history.jsonl 'select(.role == "assistant") | .content, .finish_reason' 'Hello, world.' error
    # The retries are those of any other request.
    start_family anthropic/pause-turn anthropic/http-529 anthropic/normal
    run_expect 0 chat -s b --retries 1 hello
    stdout_is 'Hello, world.Hello, world.'
    requests_are 3
    put_tool weather 'echo sunny' get_weather
    start_family anthropic/pause-turn anthropic/thinking-calls anthropic/normal
    run_expect 0 chat -s c --yes -T ./weather hello
    stdout_is 'Hello, world.' 'Hello, world.'
    json_is "$RECORD/3.json" '.messages | map(.role), (.[1].content | map(.type)) | join(" ")' 'user assistant user' \
        'text thinking redacted_thinking tool_use'
}

@test "anthropic: the request" {
    use_history
    start_family anthropic/normal
    run_expect 0 chat -S 'be brief' hello
    stdout_is 'Hello, world.'
    run_expect 0 request 1
    stdout_json 'tojson' '{"model":"test-model","max_tokens":128000,"cache_control":{"type":"ephemeral"},"system":"be brief","messages":[{"role":"user","content":"hello"}],"stream":true}'
    run_expect 0 head -n 1 "$RECORD/1.headers"
    stdout_is $'POST /v1/messages HTTP/1.1\r'
    [[ $(request_header 1 content-type) == application/json ]]
    [[ $(request_header 1 accept) == text/event-stream ]]
    [[ $(request_header 1 anthropic-version) == 2023-06-01 ]]
    [[ $(request_header 1 x-api-key) == test-key-1 ]]
    [[ $(request_header 1 authorization) == '' ]]
    run_expect 0 chat again
    request_messages_are 2 user:hello 'assistant:Hello, world.' user:again
    json_is history.jsonl 'select(.role == "assistant") | [.provider, .model, .finish_reason, (.usage | del(.raw) | tojson)] | join(" ")' \
        'anthropic test-model stop {"input_tokens":11,"output_tokens":4}' \
        'anthropic test-model stop {"input_tokens":11,"output_tokens":4}'
}

@test "anthropic: a base URL with and without /v1, by flag and by variable; max_tokens by option" {
    start_family anthropic/normal
    for path in '' / /v1 /v1/ /api /api/v1//; do
        run_expect 0 chat -N --base-url "http://127.0.0.1:$LLM_PORT$path" hello
    done
    cat "$RECORD"/*.headers | grep ^POST | tr -d '\r' >paths
    is paths paths 'POST /v1/messages HTTP/1.1' 'POST /v1/messages HTTP/1.1' 'POST /v1/messages HTTP/1.1' \
        'POST /v1/messages HTTP/1.1' 'POST /api/v1/messages HTTP/1.1' 'POST /api/v1/messages HTTP/1.1'
    run_expect 0 chat --dry-run -p anthropic -m qwen3 hello
    stdout_json .max_tokens 128000
    run_expect 0 chat --dry-run -o max_tokens=77 -o 'thinking={"type":"enabled","budget_tokens":20}' hello
    stdout_json '[.max_tokens, .thinking.budget_tokens] | tojson' '[77,20]'
    run_expect 0 chat --dry-run --no-stream hello
    stdout_json .stream false
    requests_are 6
}

@test "anthropic: a conversation that another provider began, with its calls" {
    use_history
    {
        hist_line s assistant 'How can I help?'
        hist_line s user weather
        hist_line s assistant '' '' '{"tool_calls":[{"id":"functions.get:0","name":"a.get","args":{"city":"Paris"}},
            {"id":"functions.get:0","name":"get","args":"{\"ci"}],"provider":"openai",
            "thinking":[{"type":"thinking","thinking":"t","signature":"s"}]}'
        hist_line s tool '20 degrees' '' '{"tool_call_id":"functions.get:0"}'
        hist_line s user 'and now'
    } >history.jsonl
    start_family anthropic/normal
    run_expect 0 chat -s s 'and there'
    request 1 >body
    json_is body '.messages[] | tojson' \
        '{"role":"user","content":"…"}' \
        '{"role":"assistant","content":"How can I help?"}' \
        '{"role":"user","content":"weather"}' \
        '{"role":"assistant","content":[{"type":"tool_use","id":"call_iUsEkjOgs","name":"a_get","input":{"city":"Paris"}},{"type":"tool_use","id":"call_jUsEkjOgs","name":"get","input":{"INVALID_JSON":"{\"ci"}}]}' \
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_iUsEkjOgs","content":"20 degrees"},{"type":"tool_result","tool_use_id":"call_jUsEkjOgs","content":"no result: the call was not carried out, its arguments are not a valid JSON object","is_error":true},{"type":"text","text":"and now\n\nand there"}]}'
    json_is body '[.tools, .tool_choice] | tojson' \
        '[[{"name":"a_get","input_schema":{"type":"object"}},{"name":"get","input_schema":{"type":"object"}}],{"type":"none"}]'
    run_expect 0 chat --dry-run -s s -o 'tools=[]' x
    stdout_json '[.tools, .tool_choice] | tojson' '[[],null]'
}

@test "anthropic: calls, signed thinking and usage are stored" {
    use_history
    start_family anthropic/calls anthropic/calls-no-input anthropic/calls-input-at-start anthropic/calls-no-id \
        anthropic/not-streamed-calls anthropic/thinking-calls anthropic/calls-max-tokens anthropic/thinking \
        anthropic/thinking-unsigned anthropic/usage-cache anthropic/usage-last
    for code in 9 9 9 9 9 9 7 0 0 0 0; do
        number=$((${number:-0} + 1))
        run_expect "$code" chat --retries 0 -s "$number" hello
    done
    stored() {
        json_is history.jsonl "select(.session_id == \"$1\" and .role == \"assistant\") | $2 | tojson" "$3"
    }
    both='[{"id":"toolu_a","name":"get_weather","args":{"city":"Paris"}},{"id":"toolu_b","name":"get_time","args":'
    stored 1 .tool_calls "$both"'{"zone":"UTC"}}]'
    stored 2 '[.tool_calls[] | .args]' '[{},{}]'
    stored 3 '[.tool_calls[] | .args]' '[{"city":"Paris"}]'
    stored 4 '[.tool_calls | map(.name), (map(.id) | unique | length)]' '[["get_time","get_date"],2]'
    stored 5 .tool_calls "$both"'{}}]'
    # Newer models bind their thinking to what was before it.
    stored 5 '.thinking[0] | [.type, (.before | test("^[0-9a-f]{16}$"))]' '["bound",true]'
    stored 5 '.thinking[1:]' '[{"type":"thinking","thinking":"Hm.","signature":"c2ln"}]'
    stored 6 '.thinking[1:]' '[{"type":"thinking","thinking":"The weather is asked for.","signature":"c2lnbmF0dXJl"},{"type":"redacted_thinking","data":"ZW5jcnlwdGVk"}]'
    stored 7 '[.tool_calls[] | .args | type]' '["string"]'
    stored 8 '[.content, .thinking[1:]]' \
        '["Hello, world.",[{"type":"thinking","thinking":"Let me \"see\".\nYes.","signature":"c2lnbmF0dXJl"}]]'
    stored 9 'has("thinking")' false
    stored 10 .usage '{"input_tokens":543,"output_tokens":12,"cache_read_tokens":500,"cache_write_tokens":40,"raw":{"input_tokens":3,"cache_creation_input_tokens":40,"cache_read_input_tokens":500,"output_tokens":12}}'
    stored 11 '.usage | del(.raw)' '{"input_tokens":21,"output_tokens":5}'
}

@test "anthropic: thinking stays at home when the loop of calls is over" {
    use_history
    {
        hist_line s user weather
        hist_line s assistant 'Let me see.' '' '{"tool_calls":[{"id":"a","name":"get","args":{}}],"provider":"anthropic",
            "thinking":[{"type":"thinking","thinking":"t","signature":"s"}]}'
        hist_line s tool 20 '' '{"tool_call_id":"a"}'
    } >history.jsonl
    start_family anthropic/normal
    run_expect 0 chat --dry-run -s s hello
    stdout_json '.messages[1:] | map(.content[].type) | join(" ")' 'text tool_use tool_result text'
}

@test "anthropic: --json tells citations where they come, as they came" {
    use_history
    start_family anthropic/citations anthropic/not-streamed-citations anthropic/server-tool
    for want in 'text citation citation text' 'text citation text' 'text text citation'; do
        run_expect 0 chat -N --json hello
        jq -sr 'map(.type) | join(" ")' "$OUT" >types
        is 'types of events' types "session_id $want usage done"
        jq -c 'select(.type == "citation") | keys, .citation' "$OUT" >>citations
    done
    json_is citations 'tojson' '["citation","type"]' \
        '{"type":"char_location","cited_text":"The grass is green.","document_index":0,"document_title":"Nature","start_char_index":0,"end_char_index":20}' \
        '["citation","type"]' \
        '{"type":"char_location","cited_text":"The grass is green.","document_index":1,"document_title":"Nature","start_char_index":0,"end_char_index":20}' \
        '["citation","type"]' \
        '{"type":"char_location","cited_text":"The grass is green.","document_index":0,"document_title":"Nature","start_char_index":0,"end_char_index":20}' \
        '["citation","type"]' \
        '{"type":"web_search_result_location","url":"https://example.org/","title":"Ex \"ample\"","encrypted_index":"RW5j","cited_text":"It is 20 degrees."}'
    run_expect 0 chat -N hello
    stdout_is 'I look it up. 20 degrees.'
    stderr_empty
    json_is history.jsonl 'select(.citations) | .citations | length' 2 1 1 1
}

@test "anthropic: a server that speaks OpenAI's format has not answered" {
    start_family openai/normal
    run_expect 7 chat hello
    stdout_empty
    stderr_is "chat: answer is incomplete: the server does not speak Anthropic's protocol"
    requests_are 1
    # [DONE] is the end of what has begun, as before.
    printf '%s\n' 'end: clean' '' 'event: content_block_delta' \
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}' '' \
        'data: [DONE]' '' >done.http
    start_family ./done.http
    run_expect 0 chat -N hello
    stdout_is hi
}

@test "anthropic: the key goes to its own provider, or to a base URL that the user gave" {
    start_family anthropic/normal
    here=http://127.0.0.1:$LLM_PORT
    unset ANTHROPIC_BASE_URL ANTHROPIC_API_KEY
    number=0
    sent() {
        number=$((number + 1))
        [[ $(request_header $number x-api-key),$(request_header $number authorization) == "$1" ]] ||
            fail "keys: wanted '$1'" "$(cat "$RECORD/$number.headers")"
    }
    run_expect 2 chat hello
    stderr_is "chat: no key for 'anthropic': set ANTHROPIC_API_KEY or CHAT_API_KEY, or let 'chathist key anthropic' \
store it in '$HOME/.config/chathist/keys/anthropic' with mode 600"
    run_expect 0 chat --base-url "$here" hello
    sent ,
    ANTHROPIC_API_KEY=key-a run_expect 0 chat --base-url "$here" hello
    sent key-a,
    ANTHROPIC_API_KEY=key-a CHAT_API_KEY=key-c ANTHROPIC_BASE_URL=$here run_expect 0 chat hello
    sent key-c,
    OPENAI_API_KEY=key-o run_expect 0 chat --base-url "$here" hello
    sent ,
    # Of the two that are there, each asks with its own; a key alone tells which provider.
    export ANTHROPIC_API_KEY=key-a ANTHROPIC_BASE_URL=$here
    OPENAI_API_KEY=key-o run_expect 0 chat hello
    sent key-a,
    CHAT_MODEL=claude run_expect 0 chat hello
    sent key-a,
    # At another server's the answer is none.
    OPENAI_API_KEY=key-o OPENAI_BASE_URL=$here/v1 run_expect 7 chat -m openai:m hello
    sent ',Bearer key-o'
    OLLAMA_HOST=$here/v1 run_expect 7 chat -m ollama:m hello
    sent ,
    run_expect 2 env ANTHROPIC_API_KEY=$'two\nlines' chat hello
    stderr_is "chat: bad header 'x-api-key': a control character in its value"
    requests_are "$number"
}

@test "anthropic: --models" {
    start_family --models claude-b,claude-a anthropic/normal
    run_expect 0 chat --models
    stdout_is anthropic:claude-b anthropic:claude-a
    printf '%s\n' 'path: /v1/models?limit=1000' '' '{"data":[{"type":"model","id":"claude-z","display_name":"Z"}],"has_more":false}' >models.http
    printf '%s\n' 'path: /v1/models' '' '{"data":[{"type":"model","id":"claude-z","display_name":"Z"}],"has_more":false}' >models2.http
    start_family ./models.http ./models2.http anthropic/normal
    run_expect 0 chat --models
    stdout_is anthropic:claude-z
    [[ $(request_header 1 anthropic-version),$(request_header 1 x-api-key) == 2023-06-01,test-key-1 ]]
    run_expect 0 head -n 1 "$RECORD/1.headers"
    stdout_is $'GET /v1/models?limit=1000 HTTP/1.1\r'
}

# start_strict STEP...: start_family, at a server that refuses what Anthropic's newest models refuse.
start_strict() {
    start_family --hook "'$TESTS/tools/request-rules' anthropic \"\${FAKE_BODY%/*}\" \"\$FAKE_N\"" "$@"
}

# refusal MESSAGE: a fixture with this error.
refusal() {
    printf 'status: 400\n\n%s\n' "$(jq -cn --arg message "$1" '{type: "error", error: {type: "invalid_request_error", $message}}')"
}

@test "anthropic: thinking, call, thinking, text, call go back as they came, in the loop and in later turns" {
    use_history
    put_tool weather 'echo sunny' get_weather
    start_strict anthropic/interleaved anthropic/thinking anthropic/interleaved anthropic/http-529 anthropic/normal
    run_expect 0 chat -s s --yes -T ./weather one
    blocks='{"type":"thinking","thinking":"","signature":"c2lnMQ=="}
        {"type":"tool_use","id":"toolu_a","name":"get_weather","input":{"city":"Paris"}}
        {"type":"thinking","thinking":"And the ä time?","signature":"c2lnMg=="}
        {"type":"text","text":"Now the time."}
        {"type":"tool_use","id":"toolu_b","name":"get_weather","input":{"city":"UTC"}}'
    request 2 | jq -cS '.messages[1].content' >sent
    jq -cSs . <<<"$blocks" >wanted
    same 'the blocks' wanted sent
    # The second turn ends between its rounds; what it stored is read from the file again.
    run_expect 5 chat -s s --yes --retries 0 -T ./weather two
    run_expect 0 chat -s s --yes -T ./weather 'go on'
    request 5 | jq -cS '.messages[1].content' >sent
    same 'the blocks in a later turn' wanted sent
    request 5 | jq -r '.messages | map(.content | if type == "string" then . else map(.type) | join(" ") end) | .[]' >types
    is types types one 'thinking tool_use thinking text tool_use' 'tool_result tool_result' 'thinking text' two \
        'thinking tool_use thinking text tool_use' 'tool_result tool_result text'
    # With other tools, and with another model, it would be the thinking of another conversation.
    run_expect 0 chat -s s 'no tools'
    run_expect 0 chat -s s -m anthropic:other --yes -T ./weather other
    run_expect 0 chat -s s --yes -T ./weather again
    for number in 6 7 8; do
        request "$number" | jq -r '[.messages[].content | arrays | .[] | .signature // empty] | join(" ")'
    done >signatures
    is signatures signatures '' '' 'c2lnMQ== c2lnMg== c2lnbmF0dXJl c2lnMQ== c2lnMg=='
    requests_are 8
    run_expect 0 "$TESTS/tools/request-rules" anthropic "$RECORD"
    stdout_is '8 requests, 0 broken rules'
}

@test "anthropic: a server that refuses the blocks of earlier answers is asked again without them" {
    use_history
    # shellcheck disable=SC2016
    refusal 'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.' >bound.http
    start_family --refuse '"signature"=./bound.http' anthropic/thinking anthropic/normal
    run_expect 0 chat -s s one
    run_expect 0 chat -s s two
    stdout_is 'Hello, world.'
    stderr_is "chat: the server refuses the model's earlier thinking: it is left out"
    requests_are 3
    json_is "$RECORD/3.json" '.messages[1].content' 'Hello, world.'
}

@test "anthropic: effort, a summary of the reasoning, the cache; what an older model refuses is left out" {
    use_history
    refusal 'adaptive thinking is not supported on this model' >adaptive.http
    refusal 'max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for test-model' >limit.http
    refusal 'cache_control: Extra inputs are not permitted' >cache.http
    start_strict anthropic/thinking
    run_expect 0 chat -N hello
    request 1 | jq -c '[.thinking, .output_config, .cache_control]' >sent
    is fields sent '[null,null,{"type":"ephemeral"}]'
    run_expect 0 chat -N --reasoning --effort minimal hello
    stderr_matches 'Let me'
    request 2 | jq -c '[.thinking, .output_config, .cache_control]' >sent
    is fields sent '[{"type":"adaptive","display":"summarized"},{"effort":"low"},{"type":"ephemeral"}]'
    run_expect 0 chat --once --effort none hello
    request 3 | jq -c '[.thinking, .output_config, .cache_control]' >sent
    is fields sent '[{"type":"disabled"},null,null]'
    run_expect 0 chat -N --no-stream -o cache_control=null -o 'output_config={"effort":"xhigh"}' hello
    request 4 | jq -c '[.thinking, .output_config, .cache_control]' >sent
    is fields sent '[null,{"effort":"xhigh"},null]'
    start_family --refuse '"max_tokens":128000=./limit.http' --refuse '"adaptive"=./adaptive.http' \
        --refuse '"cache_control"=./cache.http' anthropic/normal
    run_expect 0 chat -N --reasoning hello
    stdout_is 'Hello, world.'
    stderr_matches "the model has no adaptive thinking: 'thinking' is left out"
    requests_are 4
    request 4 | jq -c '[.max_tokens, .thinking, .cache_control]' >sent
    is fields sent '[64000,null,null]'
    # The limit is known for a day.
    run_expect 0 chat -N hello
    stderr_empty
    requests_are 5
}

@test "anthropic: a schema that the model has no field for is in the system prompt" {
    use_history
    refusal 'output_config: Extra inputs are not permitted' >format.http
    printf '{"type":"object","properties":{},"additionalProperties":false}' >s.json
    start_family --refuse '"output_config"=./format.http' anthropic/normal
    run_expect 1 chat -N --schema s.json hello
    stderr_matches "answer does not match 's.json'"
    requests_are 2
    request 2 | jq -c '[.output_config, (.system | contains("JSON Schema"))]' >sent
    is fields sent '[null,true]'
}

@test "anthropic: tools of the server; a beta header; a token instead of a key" {
    start_strict anthropic/server-tool
    unset ANTHROPIC_API_KEY
    run_expect 0 env ANTHROPIC_AUTH_TOKEN=test-token-1 chat -N -T @web_search -T @code_execution_20260521 \
        --header 'anthropic-beta: a-2026-01-01,b-2026-01-01' hello
    stdout_is 'I look it up. 20 degrees.'
    request 1 | jq -c .tools >sent
    is tools sent '[{"type":"web_search_20250305","name":"web_search"},{"type":"code_execution_20260521","name":"code_execution"}]'
    [[ $(request_header 1 anthropic-beta) == a-2026-01-01,b-2026-01-01 ]]
    [[ $(request_header 1 authorization),$(request_header 1 x-api-key) == 'Bearer test-token-1,' ]]
    # Lasting ones, one with its settings, which other providers do not get.
    mkdir -p "$HOME/.config/chathist"
    printf '%s\n' 'tools = @web_search_20260209' \
        'option.anthropic.tools = [{"type":"web_fetch_20260209","name":"web_fetch","max_uses":3}]' >"$HOME/.config/chathist/config"
    ANTHROPIC_API_KEY=k OPENAI_API_KEY=k run_expect 0 chat --dry-run hello
    stdout_json '.tools | tojson' '[{"type":"web_search_20260209","name":"web_search"},{"type":"web_fetch_20260209","name":"web_fetch","max_uses":3}]'
    OPENAI_API_KEY=k run_expect 0 chat --dry-run -m openai-responses:m hello
    stdout_json '.tools | tojson' '[{"type":"web_search_20260209"}]'
    ANTHROPIC_API_KEY=test-key-1 ANTHROPIC_AUTH_TOKEN=test-token-1 run_expect 0 chat -N -T '' hello
    [[ $(request_header 2 authorization),$(request_header 2 x-api-key) == ,test-key-1 ]]
}

@test "anthropic: request-rules finds what is wrong" {
    mkdir bad
    number=0
    while IFS=$'\t' read -r change what; do
        number=$((number + 1))
        jq -c "$change" <<<'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},
            {"role":"assistant","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"i","name":"f","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"r"}]}],
            "tools":[{"name":"f","input_schema":{"type":"object"}}]}' >"bad/$number.json"
        echo "request $number: anthropic: $what"
    done >wanted <<'END'
.temperature = 1	unknown fields ['temperature']
del(.max_tokens)	max_tokens None
.thinking = {type: "enabled", budget_tokens: 2000}	thinking {'type': 'enabled', 'budget_tokens': 2000}
.messages += [{role: "assistant", content: "x"}]	prefill
.messages[1].content[0].text = " "	blank text in message 1
.messages[2].content = "x"	calls without results before message 2
.tools[0].cache_control = {"type":"ephemeral"} | .tools = [range(5) as $n | .tools[0] + {name: "f\($n)"}]	5 cache_control
.messages[1].content[0] = {type: "thinking", thinking: "", signature: "s"}	the thinking of message 1 is bound to a different conversation
.tool_choice = {type: "any"}	a forced tool
.output_config = {effort: "minimal"}	effort minimal
END
    echo "$number requests, $number broken rules" >>wanted
    run_expect 1 "$TESTS/tools/request-rules" anthropic bad
    same 'what is wrong' wanted "$OUT"
}

# A stream: an event and its data by turns.
stream_of() {
    printf 'event: message_start\ndata: {"type":"message_start","message":{"id":"m","model":"c","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
    printf 'event: %s\ndata: %s\n\n' "$@"
    printf 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
}

@test "anthropic: a call of a program has its caller, and its result is asked for in the same container" {
    use_history
    caller='{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}'
    call="{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"get_time\",\"input\":{},\"caller\":$caller}"
    stream_of content_block_start "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":$call}" \
        content_block_stop '{"type":"content_block_stop","index":0}' \
        message_delta '{"type":"message_delta","delta":{"stop_reason":"tool_use","container":{"id":"cont_1","expires_at":"2099-01-01T00:00:00Z"}},"usage":{"output_tokens":4}}' |
        sed '1i # a stream\n' >program.http
    put_tool 'time' 'echo noon' get_time
    start_family ./program.http anthropic/normal anthropic/normal
    run_expect 0 chat -s s --yes -T ./time hello
    request 2 | jq -c '[.container, .messages[1].content]' >sent
    is sent sent "[\"cont_1\",[{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"get_time\",\"input\":{},\"caller\":$caller}]]"
    run_expect 0 chat -s s --yes -T ./time again
    request 3 | jq -c '[.container, .messages[1].content[0].caller]' >sent
    is sent sent "[\"cont_1\",$caller]"
    # An option with other members gets the id beside them, one with another id has its way.
    run_expect 0 chat -s s --dry-run -o 'container={"skills":[]}' again
    stdout_json '.container | tojson' '{"id":"cont_1","skills":[]}'
    run_expect 0 chat -s s --dry-run -o container=mine again
    stdout_json '.container' mine
    # Another server does not get it, nor does this one after it has expired.
    run_expect 0 chat -s s --dry-run --base-url https://api.anthropic.com again
    stdout_json '[.container, .messages[1].content[0].caller] | tojson' '[null,null]'
    sed -i s/2099-01/2019-01/ history.jsonl
    run_expect 0 chat -s s --dry-run again
    stdout_json '.container' null
    # A server that does not know it any more is asked without it.
    sed -i s/2019-01/2099-01/ history.jsonl
    printf 'status: 404 Not Found\n\n{"type":"error","error":{"type":"not_found_error","message":"container cont_1 not found"}}\n' >gone
    start_family ./gone anthropic/normal
    server_moved history.jsonl
    run_expect 0 chat -s s again
    [[ $(request 1 | jq -c .container)$(request 2 | jq -c .container) == '"cont_1"null' ]]
}

@test "anthropic: a compaction goes back alone if the request before it has changed" {
    use_history
    stream_of content_block_start '{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null,"tool_changes":[]}}' \
        content_block_delta '{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"the summary","signature":"c2ln"}}' \
        content_block_stop '{"type":"content_block_stop","index":0}' \
        content_block_start '{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"hm","signature":"c2ln"}}' \
        content_block_stop '{"type":"content_block_stop","index":1}' \
        content_block_start '{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Hello."}}' \
        content_block_stop '{"type":"content_block_stop","index":2}' \
        message_delta '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}' |
        sed '1i # a stream\n' >compaction.http
    start_family ./compaction.http anthropic/normal
    run_expect 0 chat -s s hello
    block='{"content":"the summary","signature":"c2ln","tool_changes":[],"type":"compaction"}'
    run_expect 0 chat -s s --dry-run again
    [[ $(jq -cS '.messages[1].content | [.[0], (.[1:] | map(.type))]' "$OUT") == "[$block,[\"thinking\",\"text\"]]" ]]
    run_expect 0 chat -s s --dry-run -S 'Be brief.' again
    [[ $(jq -cS '.messages[1].content | [.[0], (.[1:] | map(.type))]' "$OUT") == "[$block,[\"text\"]]" ]]
}
