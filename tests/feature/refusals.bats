#!/usr/bin/env bats
#
# What chat sends without being asked, refused in the words of many servers: each prompt is answered.

load ../helper

setup() {
    sandbox
    printf '%s\n' 'path: /v1/messages' 'header: Content-Type: application/json' '' '{"type":"message","role":"assistant",
        "model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"the answer"}]}' >messages.http
    printf '%s\n' 'path: /v1/responses' 'header: Content-Type: application/json' '' '{"status":"completed","output":[
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"the answer"}]}]}' >responses.http
}

# refusing THING STATUS BODY: a server that refuses a request that has THING (a field, `system`, 128000 as max_tokens, the
# `tool` bad, or more `tools` than three, of which the fourth is four), in these words. It is the server of all providers.
refusing() {
    local mark="\"$1\":"
    case $1 in
    stream) mark='"stream":true' ;;
    system) mark='"role":"system"' ;;
    max_tokens) mark='"max_tokens":128000' ;;
    tool) mark='"bad"' ;;
    tools) mark='"four"' ;;
    esac
    printf 'status: %s\n\n%s' "$2" "$3" >refusal.http
    start_llm --refuse "$mark=./refusal.http" ./messages.http ./responses.http --reply 'the answer'
    export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=test-key-1
}

# sent JSON [FIELD]: what the last request has in that field; without it, the names of the tools.
sent() {
    local filter='[.tools[] | (.function // .) | .name // .type]'
    jq -c "${2:+.}${2:-$filter}" "$(find "$RECORD" -name '*.json' -size +0 | sort -V | tail -n 1)" >got
    is 'what was sent' got "$1"
}

# asked THING: asks once for each line of that thing in fixtures/refusals/words.tsv. A server refuses with these words as
# long as the request has the thing, and answers otherwise. The result must be the answer, and there must be a notice.
asked() {
    local thing=$1 n=0 status want body field
    use_history
    [[ $thing == tool* ]] || field=$thing
    while IFS=$'\t' read -r _ status want body; do
        n=$((n + 1))
        refusing "$thing" "$status" "$body"
        XDG_CACHE_HOME=$PWD/cache$thing$n run_expect 0 chat -1 -m "$MODEL" "${ARGS[@]}" hello </dev/null
        stdout_is 'the answer'
        [[ $(wc -l <"$ERR") -ge 1 ]] || fail "$thing $n: no notice for $body" || return 1
        [[ $want == - ]] || sent "${want//, /,}" "${field-}" || fail "$thing $n: $body" || return 1
        kill "$LLM_PID"
    done < <(grep "^$thing	" "$FIXTURES/refusals/words.tsv")
    [[ $n -ge 10 ]] || fail "only $n wordings of $thing"
}

@test "refusals: a server that does not stream is asked for the whole answer" {
    MODEL=openai-chat:m ARGS=()
    asked stream
}

@test "refusals: a model without a system role gets the system prompt before the first prompt" {
    MODEL=openai-chat:m ARGS=(-S 'Be terse.')
    asked system
}

@test "refusals: the length that chat chose gives way to the one that the server names" {
    MODEL=anthropic:m ARGS=()
    asked max_tokens
}

# offer NAME...: makes a tool of each name, and sets ARGS to offer them.
offer() {
    ARGS=()
    for name; do
        printf '#!/bin/sh\necho %s\n' "'{\"name\":\"$name\",\"description\":\"d\",\"parameters\":{\"type\":\"object\",
            \"properties\":{\"of_$name\":{}}}}'" >"$name"
        chmod +x "$name"
        ARGS+=(-T "./$name")
    done
}

@test "refusals: a single tool is left out by its name or place, and the others stay" {
    MODEL=openai-chat:m
    offer alpha bad omega
    asked tool
}

@test "refusals: of too many tools the first ones are sent" {
    MODEL=openai-chat:m
    offer one two three four five
    asked tools
}

@test "refusals: a tool that is left out is named, and remembered until its declaration changes" {
    use_history
    offer alpha bad omega
    refusing tool 400 '{"type":"error","error":{"message":"tools.1.custom.input_schema: JSON schema is invalid."}}'
    run_expect 0 chat -1 -m anthropic:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    stdout_is 'the answer'
    run_expect 0 chat -1 -m anthropic:m "${ARGS[@]}" hello </dev/null
    stderr_empty
    sent '["alpha","omega"]'
    sed -i 's/"d"/"another"/' bad
    run_expect 0 chat -1 -m anthropic:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    # Another model may take it.
    run_expect 0 chat -1 -m anthropic:n "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
}

@test "refusals: an error that names two tools costs one request, and the number of tools is named once" {
    use_history
    offer one bad three four five
    refusing tool 400 '[{"error":{"message":"* tools[0].function_declarations[1].name: x\n* tools[0].function_declarations[3].name: y"}}]'
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad', 'four': asking without them"
    sent '["one","three","five"]'
    refusing tools 400 "{\"error\":{\"message\":\"'tools' : maximum number of items is 3\"}}"
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_is 'chat: the server takes at most 3 tools: the last 2 are left out'
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_empty
    sent '["one","bad","three"]'
}

@test "refusals: a call of the model that failed refuses no tool" {
    use_history
    offer alpha bad
    refusing tool 400 '{"error":{"message":"tool call validation failed: parameters for tool bad did not match schema","code":"tool_use_failed"}}'
    run_expect 1 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    sent '["alpha","bad"]'
}

@test "refusals: what was refused is remembered, and what the user typed is not changed" {
    use_history
    refusing stream 400 '{"error":{"message":"Streaming is not supported."}}'
    run_expect 0 chat -1 -m openai-chat:m hello </dev/null
    stderr_is 'chat: the server does not stream: asking for the whole answer'
    run_expect 0 chat -1 -m openai-chat:m hello </dev/null
    stderr_empty
    stdout_is 'the answer'
    run_expect 1 chat -1 -m openai-chat:m -o stream=true hello </dev/null
    stderr_is 'chat: HTTP 400: Streaming is not supported. (set by -o stream)'
    sent true stream
}

@test "refusals: a length that depends on the prompt is not remembered, and a typed one is not changed" {
    use_history
    # shellcheck disable=SC2016
    refusing max_tokens 400 \
        '{"error":{"message":"input length and `max_tokens` exceed context limit: 80000 + 128000 > 200000"}}'
    for _ in 1 2; do
        run_expect 0 chat -1 -m anthropic:m hello </dev/null
        stderr_is 'chat: the server refuses an answer of 128000 tokens: asking with 120000'
        stdout_is 'the answer'
    done
    run_expect 6 chat -1 -m anthropic:m --max-tokens 128000 hello </dev/null
    stderr_has '(set by --max-tokens)'
    sent 128000 max_tokens
}

@test "refusals: an option of the configuration is left out, and one that is typed is an error that names it" {
    MODEL=openai-chat:m ARGS=()
    configure 'option.top_k = 40'
    asked top_k
    configure ''
    refusing top_k 400 '{"error":{"message":"property '"'top_k'"' is unsupported"}}'
    run_expect 1 chat -1 -m openai-chat:m -o top_k=40 hello </dev/null
    stdout_empty
    stderr_is "chat: HTTP 400: property 'top_k' is unsupported (set by -o top_k)"
    sent 40 top_k
    # Nor is it remembered for the configuration, or left out because of it.
    configure 'option.top_k = 40'
    run_expect 0 chat -1 -m openai-chat:m hello </dev/null
    stderr_is "chat: the server refuses 'top_k': asking without it"
    run_expect 1 chat -1 -m openai-chat:m -o top_k=40 hello </dev/null
    stderr_has '(set by -o top_k)'
}

@test "refusals: options of the configuration that decide about tools and the format are left out, too" {
    use_history
    offer alpha
    local option message
    for option in response_format='{"type":"json_object"}' tool_choice=required parallel_tool_calls=false; do
        configure "option.${option%%=*} = ${option#*=}"
        refusing "${option%%=*}" 400 "{\"error\":{\"message\":\"Unsupported parameter\",\"param\":\"${option%%=*}\"}}"
        run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
        stderr_is "chat: the server refuses '${option%%=*}': asking without it"
    done
    # A tool of an option, and one that runs at the server.
    message="Invalid value: 'bad'. Supported values are: 'function' and 'custom'."
    refusing tool 400 "{\"error\":{\"message\":\"$message\",\"param\":\"tools[1].type\"}}"
    configure 'option.tools = [{"type":"bad"}]'
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    sent '["alpha"]'
    configure ''
    run_expect 1 chat -1 -m openai-chat:m -o 'tools=[{"type":"bad"}]' "${ARGS[@]}" hello </dev/null
    stderr_is "chat: HTTP 400: $message (set by -o tools)"
    refusing tool 400 "{\"error\":{\"message\":\"Hosted tool 'bad' is not supported with this model.\"}}"
    configure 'tools = @bad'
    run_expect 0 chat -1 -m openai-responses:m hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    run_expect 1 chat -1 -m openai-responses:n -T @bad hello </dev/null
    stderr_is "chat: HTTP 400: Hosted tool 'bad' is not supported with this model."
}
