#!/usr/bin/env bats
#
# What chat sends without being asked, refused in the words of many servers: each prompt is answered.

load ../helper

# refusing THING STATUS BODY: a server that refuses a request that has THING, in these words; its address is in $HERE.
refusing() {
    printf '%s' "$3" >body
    rm -f port seen
    python3 "$TESTS/tools/refusing-llm" "$1" "$2" body port seen 3>&- &
    echo $! >pid
    until [[ -s port ]]; do sleep 0.02; done
    HERE=http://127.0.0.1:$(<port)
}

# asked THING: asks once for each line of that thing in fixtures/refusals/words.tsv. A server refuses with these words as
# long as the request has the thing, and answers otherwise. The result must be the answer, and the notice one line.
asked() {
    local thing=$1 n=0 status want body
    use_history
    while IFS=$'\t' read -r _ status want body; do
        n=$((n + 1))
        refusing "$thing" "$status" "$body"
        run_expect 0 env -u OPENAI_BASE_URL XDG_CACHE_HOME="$PWD/cache$thing$n" \
            OPENAI_API_KEY=test-key-1 ANTHROPIC_API_KEY=test-key-1 \
            chat -1 --base-url "$HERE${MODEL_PATH-}" -m "$MODEL" "${ARGS[@]}" hello </dev/null
        kill "$(<pid)"
        stdout_is 'the answer'
        [[ $(wc -l <"$ERR") -ge 1 ]] || fail "$thing $n: no notice for $body" || return 1
        [[ $want == - || $(<seen) == "$want" ]] || fail "$thing $n: wanted $want, sent $(<seen): $body" || return 1
    done < <(grep "^$thing	" "$FIXTURES/refusals/words.tsv")
    [[ $n -ge 10 ]] || fail "only $n wordings of $thing"
}

@test "refusals: a server that does not stream is asked for the whole answer" {
    MODEL=openai-chat:m MODEL_PATH=/v1 ARGS=()
    asked stream
}

@test "refusals: a model without a system role gets the system prompt before the first prompt" {
    MODEL=openai-chat:m MODEL_PATH=/v1 ARGS=(-S 'Be terse.')
    asked system
}

@test "refusals: the length that chat chose gives way to the one that the server names" {
    MODEL=anthropic:m MODEL_PATH='' ARGS=()
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
    MODEL=openai-chat:m MODEL_PATH=/v1
    offer alpha bad omega
    asked tool
}

@test "refusals: of too many tools the first ones are sent" {
    MODEL=openai-chat:m MODEL_PATH=/v1
    offer one two three four five
    asked tools
}

@test "refusals: a tool that is left out is named, and remembered until its declaration changes" {
    use_history
    offer alpha bad omega
    refusing tool 400 '{"type":"error","error":{"message":"tools.1.custom.input_schema: JSON schema is invalid."}}'
    export ANTHROPIC_BASE_URL=$HERE ANTHROPIC_API_KEY=test-key-1
    run_expect 0 chat -1 -m anthropic:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    stdout_is 'the answer'
    run_expect 0 chat -1 -m anthropic:m "${ARGS[@]}" hello </dev/null
    stderr_empty
    [[ $(<seen) == '["alpha", "omega"]' ]] || fail "the server got $(<seen)"
    sed -i 's/"d"/"another"/' bad
    run_expect 0 chat -1 -m anthropic:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    # Another model may take it.
    run_expect 0 chat -1 -m anthropic:n "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    kill "$(<pid)"
}

@test "refusals: an error that names two tools costs one request, and the number of tools is named once" {
    use_history
    offer one bad three four five
    refusing tool 400 '[{"error":{"message":"* tools[0].function_declarations[1].name: x\n* tools[0].function_declarations[3].name: y"}}]'
    export OPENAI_BASE_URL=$HERE/v1 OPENAI_API_KEY=test-key-1
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad', 'four': asking without them"
    [[ $(<seen) == '["one", "three", "five"]' ]] || fail "the server got $(<seen)"
    kill "$(<pid)"
    refusing tools 400 "{\"error\":{\"message\":\"'tools' : maximum number of items is 3\"}}"
    export OPENAI_BASE_URL=$HERE/v1
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_is 'chat: the server takes at most 3 tools: the last 2 are left out'
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_empty
    [[ $(<seen) == '["one", "bad", "three"]' ]] || fail "the server got $(<seen)"
    kill "$(<pid)"
}

@test "refusals: a call of the model that failed refuses no tool" {
    use_history
    offer alpha bad
    refusing tool 400 '{"error":{"message":"tool call validation failed: parameters for tool bad did not match schema","code":"tool_use_failed"}}'
    export OPENAI_BASE_URL=$HERE/v1 OPENAI_API_KEY=test-key-1
    run_expect 1 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    [[ $(<seen) == '["alpha", "bad"]' ]] || fail "the server got $(<seen)"
    kill "$(<pid)"
}

@test "refusals: what was refused is remembered, and what the user typed is not changed" {
    use_history
    refusing stream 400 '{"error":{"message":"Streaming is not supported."}}'
    export OPENAI_BASE_URL=$HERE/v1 OPENAI_API_KEY=test-key-1
    run_expect 0 chat -1 -m openai-chat:m hello </dev/null
    stderr_is 'chat: the server does not stream: asking for the whole answer'
    run_expect 0 chat -1 -m openai-chat:m hello </dev/null
    stderr_empty
    stdout_is 'the answer'
    run_expect 1 chat -1 -m openai-chat:m -o stream=true hello </dev/null
    stderr_is 'chat: HTTP 400: Streaming is not supported. (set by -o stream)'
    [[ $(<seen) == true ]] || fail "the server got stream: $(<seen)"
    kill "$(<pid)"
}

@test "refusals: a length that depends on the prompt is not remembered, and a typed one is not changed" {
    use_history
    # shellcheck disable=SC2016
    refusing max_tokens 400 \
        '{"error":{"message":"input length and `max_tokens` exceed context limit: 80000 + 128000 > 200000"}}'
    export ANTHROPIC_BASE_URL=$HERE ANTHROPIC_API_KEY=test-key-1
    for _ in 1 2; do
        run_expect 0 chat -1 -m anthropic:m hello </dev/null
        stderr_is 'chat: the server refuses an answer of 128000 tokens: asking with 120000'
        stdout_is 'the answer'
    done
    run_expect 6 chat -1 -m anthropic:m --max-tokens 128000 hello </dev/null
    stderr_has '(set by --max-tokens)'
    [[ $(<seen) == 128000 ]] || fail "the server got max_tokens: $(<seen)"
    kill "$(<pid)"
}

@test "refusals: an option of the configuration is left out, and one that is typed is an error that names it" {
    MODEL=openai-chat:m MODEL_PATH=/v1 ARGS=()
    configure 'option.top_k = 40'
    asked top_k
    configure ''
    refusing top_k 400 '{"error":{"message":"property '"'top_k'"' is unsupported"}}'
    export OPENAI_BASE_URL=$HERE/v1 OPENAI_API_KEY=test-key-1
    run_expect 1 chat -1 -m openai-chat:m -o top_k=40 hello </dev/null
    stdout_empty
    stderr_is "chat: HTTP 400: property 'top_k' is unsupported (set by -o top_k)"
    [[ $(<seen) == 40 ]] || fail "the server got $(<seen)"
    # Nor is it remembered for the configuration, or left out because of it.
    configure 'option.top_k = 40'
    run_expect 0 chat -1 -m openai-chat:m hello </dev/null
    stderr_is "chat: the server refuses 'top_k': asking without it"
    run_expect 1 chat -1 -m openai-chat:m -o top_k=40 hello </dev/null
    stderr_has '(set by -o top_k)'
    kill "$(<pid)"
}

@test "refusals: options of the configuration that decide about tools and the format are left out, too" {
    use_history
    offer alpha
    export OPENAI_API_KEY=test-key-1
    local option message
    for option in response_format='{"type":"json_object"}' tool_choice=required parallel_tool_calls=false; do
        configure "option.${option%%=*} = ${option#*=}"
        refusing "${option%%=*}" 400 "{\"error\":{\"message\":\"Unsupported parameter\",\"param\":\"${option%%=*}\"}}"
        export OPENAI_BASE_URL=$HERE/v1
        run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
        stderr_is "chat: the server refuses '${option%%=*}': asking without it"
        kill "$(<pid)"
    done
    # A tool of an option, and one that runs at the server.
    message="Invalid value: 'bad'. Supported values are: 'function' and 'custom'."
    refusing tool 400 "{\"error\":{\"message\":\"$message\",\"param\":\"tools[1].type\"}}"
    export OPENAI_BASE_URL=$HERE/v1
    configure 'option.tools = [{"type":"bad"}]'
    run_expect 0 chat -1 -m openai-chat:m "${ARGS[@]}" hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    [[ $(<seen) == '["alpha"]' ]] || fail "the server got $(<seen)"
    configure ''
    run_expect 1 chat -1 -m openai-chat:m -o 'tools=[{"type":"bad"}]' "${ARGS[@]}" hello </dev/null
    stderr_is "chat: HTTP 400: $message (set by -o tools)"
    kill "$(<pid)"
    refusing tool 400 "{\"error\":{\"message\":\"Hosted tool 'bad' is not supported with this model.\"}}"
    export OPENAI_BASE_URL=$HERE/v1
    configure 'tools = @bad'
    run_expect 0 chat -1 -m openai-responses:m hello </dev/null
    stderr_is "chat: the server refuses the tool 'bad': asking without it"
    run_expect 1 chat -1 -m openai-responses:n -T @bad hello </dev/null
    stderr_is "chat: HTTP 400: Hosted tool 'bad' is not supported with this model."
    kill "$(<pid)"
}
