#!/usr/bin/env bats
#
# How an answer ends: the reasons of all services on all wires, and what a model asks of the client that chat
# cannot do.

# shellcheck disable=SC2034

load ../helper
load ../wire

# chat_file REASON: a stream of Chat Completions whose answer ends with the reason after a text and a call. JSON_TEXT
# is the reason then.
chat_file() {
    json_text "$1"
    printf '%s\n' '# a stream' '' "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"},\"finish_reason\":null}]}" '' \
        "data: {\"choices\":[{\"index\":0,\"delta\":{${2-}},\"finish_reason\":$JSON_TEXT}]}" '' 'data: [DONE]' ''
}

# endings_are STATUS REASON...: what chat answers on the wire of Chat Completions, streamed and whole, and what is stored.
endings_are() {
    local wanted=$1 reason steps=()
    shift
    for reason; do
        chat_file "$reason" >"stream${#steps[@]}.http"
        printf 'header: Content-Type: application/json\n\n%s%s}]}\n' \
            '{"choices":[{"index":0,"message":{"role":"assistant","content":"half"},"finish_reason":' "$JSON_TEXT" \
            >"whole${#steps[@]}.http"
        steps+=("./stream${#steps[@]}.http" "./whole${#steps[@]}.http")
    done
    start_llm "${steps[@]}"
    for reason; do
        run_expect "$wanted" chat -N hello
        stdout_is half
        [[ $wanted == 0 ]] || stderr_matches '^chat: (answer is incomplete: the|the server.s content filter stopped the answer|the model)'
        run_expect "$wanted" chat -N --no-stream hello
        stdout_is half
    done
}

@test "endings: the names of a complete answer, in any case" {
    use_history
    endings_are 0 stop STOP end end_turn eos eos_token stop_sequence COMPLETE
    json_is history.jsonl '[., inputs] | map(select(.role == "assistant").finish_reason) | tojson' "$(jq -cn '[range(16) | "stop"]')"
}

@test "endings: the names of a limit and of a filter" {
    use_history
    endings_are 7 length max_tokens MAX_TOKENS model_length
    json_is history.jsonl '[., inputs] | map(select(.role == "assistant").finish_reason) | tojson' "$(jq -cn '[range(8) | "length"]')"
    endings_are 6 content_filter refusal SAFETY RECITATION sensitive PROHIBITED_CONTENT
    chat_file PROHIBITED_CONTENT >filter.http
    start_llm ./filter.http
    run_expect 6 chat -N hello
    stderr_is "chat: the server's content filter stopped the answer: PROHIBITED_CONTENT"
}

@test "endings: every other reason is an answer that the server broke off, by its name" {
    use_history
    endings_are 7 error insufficient_system_resource network_error abort MALFORMED_FUNCTION_CALL OTHER \
        repetition_truncation unknown cancelled time_limit load unload "function_call_filter: MALFORMED_FUNCTION_CALL" $'a\tb'
    chat_file $'a\tb' >tab.http
    start_llm ./tab.http
    run_expect 7 chat -N hello
    stderr_is 'chat: answer is incomplete: the server ended it: a b'
    # The text is kept and sent; the name is stored as it came.
    json_is history.jsonl 'select(.finish_reason == "insufficient_system_resource") | .content' half half
    chat_file error >broken.http
    start_llm ./broken.http --reply fine
    run_expect 7 chat -N --json hello
    stdout_json 'select(.type == "error") | .code, .message' 7 'answer is incomplete: the server ended it: error'
    run_expect 0 chat again
    request_messages_are 2 'user:hello' 'assistant:half' 'user:again'
}

@test "endings: calls beside a reason that is not complete are not run" {
    use_history
    put_tool f 'touch ran; echo ok'
    for reason in error SAFETY length; do
        chat_file "$reason" '"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]' >call.http
        start_llm ./call.http
        run_expect "$([[ $reason == SAFETY ]] && echo 6 || echo 7)" chat -N -T ./f --yes hello
        [[ ! -e ran ]]
        kill "$LLM_PID"
    done
}

@test "endings: Ollama's and Anthropic's reasons by the same table" {
    use_history
    for reason in load unload error; do
        FAMILY=ollama
        printf 'header: Content-Type: application/x-ndjson\n\n{"model":"m","message":{"role":"assistant","content":"half"},"done":false}\n{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"%s"}\n' $reason >o.http
        start_family ./o.http
        run_expect 7 chat -N hello
        stderr_is "chat: answer is incomplete: the server ended it: $reason"
        kill "$LLM_PID"
    done
    FAMILY=anthropic
    for reason in brand_new model_error; do
        printf 'header: Content-Type: application/json\n\n{"type":"message","role":"assistant","content":[{"type":"text","text":"half"}],"stop_reason":"%s"}\n' $reason >a.http
        start_family ./a.http
        run_expect 7 chat -N hello
        stderr_is "chat: answer is incomplete: the server ended it: $reason"
        kill "$LLM_PID"
    done
}

# response_file ITEM...: a whole response of the Responses API with these items.
response_file() {
    printf 'header: Content-Type: application/json\n\n'
    jq -cn '{id: "r", status: "completed", output: $ARGS.positional}' --jsonargs "$@"
}

@test "endings: an item that only the client could carry out ends with 9 and its name, streamed and whole" {
    use_history
    FAMILY=openai-responses
    put_tool f 'touch ran; echo ok'
    for item in '{"type":"mcp_approval_request","id":"r1","name":"search","server_label":"d","arguments":"{}"}' \
        '{"type":"custom_tool_call","call_id":"c","name":"search","input":"x"}' \
        '{"type":"shell_call","call_id":"c","status":"completed","action":{}}' \
        '{"type":"local_shell_call","call_id":"c","action":{}}' \
        '{"type":"apply_patch_call","call_id":"c","operation":{}}' \
        '{"type":"computer_call","call_id":"c","action":{}}'; do
        type=$(jq -r .type <<<"$item")
        response_file "$item" '{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}' >item.http
        printf '# a stream\n\nevent: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":0,"item":%s}\n\nevent: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","output":[]}}\n\n' "$item" >stream.http
        start_family ./item.http ./stream.http
        run_expect 9 chat -N --no-stream -T ./f --yes hello
        stderr_matches "^chat: the model asks for what chat cannot carry out: $type( of 'search')?\$"
        run_expect 9 chat -N hello
        stderr_matches "^chat: the model asks for what chat cannot carry out: $type( of 'search')?\$"
        kill "$LLM_PID"
    done
    [[ ! -e ran ]]
    # A shell of the server has its output in the same answer.
    response_file '{"type":"shell_call","call_id":"c","status":"completed","action":{}}' '{"type":"shell_call_output","call_id":"c","output":[]}' \
        '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done","annotations":[]}]}' >shell.http
    start_family ./shell.http
    run_expect 0 chat -N hello
    stdout_is 'done'
    stderr_empty
    FAMILY=openai
    chat_file tool_calls '"tool_calls":[{"index":0,"id":"c1","type":"custom","custom":{"name":"g","input":"x"}}]' >custom.http
    start_llm ./custom.http
    run_expect 9 chat -N -T ./f --yes hello
    stderr_is 'chat: the model asks for what chat cannot carry out: custom'
}

@test "endings: an answer of parts that mean nothing here ends with 7 and the name of one" {
    use_history
    FAMILY=openai-responses
    response_file '{"type":"web_search_call","id":"w","status":"completed"}' '{"type":"dream_call","id":"d","status":"completed"}' >odd.http
    start_family ./odd.http
    run_expect 7 chat -N hello
    stderr_is "chat: answer is incomplete: it has only a part 'dream_call'"
    FAMILY=anthropic
    printf 'header: Content-Type: application/json\n\n{"type":"message","role":"assistant","content":[{"type":"dream"}],"stop_reason":"end_turn"}\n' >dream.http
    start_family ./dream.http
    run_expect 7 chat -N hello
    stderr_is "chat: answer is incomplete: it has only a part 'dream'"
}

@test "endings: a tool of the provider that runs on this machine is refused before anything is sent" {
    use_history
    FAMILY=anthropic
    start_family --reply no
    for tool in bash_20250124 text_editor_20250728 memory_20250818 computer_20251124 str_replace_based_edit_tool; do
        run_expect 2 chat -N -T "@$tool" hello
        stderr_is "chat: the tool '@$tool' runs on this machine, and chat cannot carry it out: '-T FILE' adds a program"
    done
    export OPENAI_API_KEY=test-key-1
    for tool in shell apply_patch local_shell computer custom; do
        run_expect 2 chat -m openai-responses:m -N -T "@$tool" hello
        stderr_is "chat: the tool '@$tool' runs on this machine, and chat cannot carry it out: '-T FILE' adds a program"
    done
    requests_are 0
    [[ ! -e history.jsonl ]]
}

@test "endings: Anthropic's compaction is kept whole and sent back, and a pause after it is continued" {
    use_history
    FAMILY=anthropic
    printf 'event: %s\ndata: %s\n\n' \
        message_start '{"type":"message_start","message":{"id":"m","model":"c","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}' \
        content_block_start '{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}' \
        content_block_delta '{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"the summary","encrypted_content":"RW5j"}}' \
        content_block_stop '{"type":"content_block_stop","index":0}' \
        message_delta '{"type":"message_delta","delta":{"stop_reason":"compaction"},"usage":{"output_tokens":4}}' \
        message_stop '{"type":"message_stop"}' | sed '1i # a stream\n' >pause.http
    start_family ./pause.http anthropic/normal anthropic/normal
    run_expect 0 chat -N hello
    stdout_is 'Hello, world.'
    block='{"type":"compaction","content":"the summary","encrypted_content":"RW5j"}'
    request 2 | jq -cS '.messages[1].content[0]' >sent
    jq -cS . <<<"$block" >wanted
    same 'the block in the continuation' wanted sent
    run_expect 0 chat again
    request 3 | jq -cS '.messages[1].content[0]' >sent
    same 'the block in the next turn' wanted sent
}

@test "endings: an error with status 200 is told in the server's words, by every wire, in a stream and whole" {
    local wire error type
    local -a errors=(
        '{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}' 'server error: insufficient balance'
        '{"code":"InvalidParameter","message":"Range of input length","request_id":"r"}' 'server error: Range of input length'
        '{"error":{"message":"overloaded just now","type":"api_error"}}' 'server error: overloaded just now'
        '{"error":"in a word"}' 'server error: in a word'
        '{"object":"error","message":"of vLLM","code":503}' 'server error 503: of vLLM'
        '{"detail":"of FastAPI"}' 'server error: of FastAPI'
    )
    for wire in openai openai-responses anthropic ollama; do
        for ((i = 0; i < ${#errors[@]}; i += 2)); do
            for type in text/event-stream application/json; do
                [[ $wire == ollama && $type == text/* ]] && type=application/x-ndjson
                error=${errors[i]}
                [[ $type == text/* ]] && error="data: $error"
                printf 'status: 200\nheader: Content-Type: %s\n\n%s\n\n' "$type" "$error" >error.http
                start_llm ./error.http
                export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=k OLLAMA_HOST=127.0.0.1:$LLM_PORT
                run chat -1 --retries 0 -m "$wire:m" hello
                printf '%s\n' "$output" >said
                is "$wire $type $i" said "chat: ${errors[i + 1]}"
            done
        done
    done
    # The body of an HTTP error may be an event, too.
    printf 'status: 500\nheader: Content-Type: text/event-stream\n\ndata: {"error":{"message":"of LiteLLM"}}\n\n' >error.http
    start_llm ./error.http
    run_expect 5 chat -1 --retries 0 -m openai:m hello
    stderr_is 'chat: HTTP 500: of LiteLLM'
}
