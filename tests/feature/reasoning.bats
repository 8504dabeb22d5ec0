#!/usr/bin/env bats
#
# What a model thinks before it answers: shown when that is asked for, never part of the answer.

# shellcheck disable=SC2016,SC2030,SC2031

load ../helper
load ../wire

@test "reasoning: every server's way to tell it, on standard error with --reasoning, else nowhere" {
    use_history
    for fixture in llamacpp vllm vllm-reasoning ollama openrouter deepseek mistral-thinking; do
        start_llm "openai/$fixture"
        run_expect 0 chat -N --reasoning hello
        stdout_is 'Hello, world.'
        stderr_is 'They greet me.'
        run_expect 0 chat -N --no-stream --reasoning -q hello
        stderr_is 'They greet me.'
        run_expect 0 chat -N hello
        stdout_is 'Hello, world.'
        stderr_empty
    done
    FAMILY=anthropic start_family anthropic/thinking
    run_expect 0 chat -N --reasoning hello
    stdout_is 'Hello, world.'
    stderr_is 'Let me "see".' Yes.
    if jq -r .content history.jsonl | grep -qE 'greet|see'; then fail 'it is stored as content'; fi
}

@test "reasoning: a whole answer" {
    cat >whole.http <<'END'
header: Content-Type: application/json

{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi.","reasoning":null,"reasoning_details":[{"type":"reasoning.summary","summary":"Hm"},{"type":"reasoning.encrypted","data":"x"},{"type":"reasoning.text","text":"m."}]},"finish_reason":"stop"}]}
END
    start_llm ./whole.http
    run_expect 0 chat -N --no-stream --reasoning hello
    stdout_is Hi.
    stderr_is Hmm.
    FAMILY=anthropic start_family anthropic/not-streamed-calls
    run_expect 9 chat -N --no-stream --reasoning hello
    stderr_matches '^Hm\.$' '^chat: the model called the tool'
}

@test "reasoning: events with --json and --reasoning, none without" {
    start_llm openai/deepseek
    run_expect 0 chat -N --json --reasoning hello
    stderr_empty
    stdout_json 'select(.type == "reasoning" or .type == "text") | "\(.type):\(.text)"' 'reasoning:They greet' \
        'reasoning: me.' 'text:Hello, world.'
    stdout_json .type session_id reasoning reasoning text usage 'done'
    run_expect 0 chat -N --json hello
    stdout_json .type session_id text usage 'done'
}

@test "reasoning: before a code block, before an error, and without an answer" {
    printf '%s\n' 'status: 200' '' 'data: {"choices":[{"delta":{"reasoning":"Let me see"}}]}' '' \
        'data: {"choices":[{"delta":{"content":"```\ncode\n```\n"},"finish_reason":"stop"}]}' '' 'data: [DONE]' '' >code.http
    printf '%s\n' 'status: 200' '' 'data: {"choices":[{"delta":{"reasoning":"Let me see"}}]}' '' \
        'data: {"error":{"message":"overloaded","code":503}}' '' >error.http
    start_llm ./code.http ./error.http openai/reasoning-only
    run_expect 0 chat -N -x --reasoning hello
    stdout_is code
    stderr_is 'Let me see'
    # Something of an answer had come: it is not asked again.
    run_expect 5 chat -N --reasoning hello
    stdout_empty
    stderr_is 'Let me see' 'chat: server error 503: overloaded'
    requests_are 2
    run_expect 7 chat -N --reasoning hello
    stdout_empty
    stderr_is 'They greet me.' "chat: answer is incomplete: the model's length limit was reached"
}

@test "reasoning: on a terminal it is folded to a line, or wrapped at words; /set reasoning chooses" {
    printf '%s\n' 'status: 200' '' 'data: {"choices":[{"delta":{"reasoning":"a long line of thoughts\nthat end"}}]}' '' \
        'data: {"choices":[{"delta":{"content":"said\n"},"finish_reason":"stop"}]}' '' 'data: [DONE]' '' >odd.http
    start_llm ./odd.http
    run_expect 0 on_tty --fds 12 chat -N hello
    stdout_has 'reasoning: 2 lines, ' ' s (--reasoning shows it)' $'\nsaid\r\n'
    stdout_lacks thoughts
    run_expect 0 on_tty --fds 12 chat -N -q hello
    stdout_is $'said\r'
    run_expect 0 on_tty --fds 12 --size 14x10 chat -N --reasoning --color=never hello
    stdout_is $'a long line of\r' $'thoughts\r' $'that end\r' $'said\r'
    run_expect 0 on_tty --size 70x24 --wait '> ' --type 'hello\r' --wait said --wait '> ' --type '/set reasoning on\r' --wait '> ' \
        --type 'again\r' --wait said --wait '> ' --type '/set reasoning maybe\r' --wait '> ' --eof chat --color=never
    stdout_has '(/set reasoning on shows it)' 'that end' "bad value 'maybe' for reasoning: 1, 0, on or off is expected"
    # As a setting; in a pipe as with the option.
    mkdir -p "$HOME/.config/chathist"
    echo 'reasoning = on' >"$HOME/.config/chathist/config"
    run_expect 0 chat -N hello
    stderr_is 'a long line of thoughts' 'that end'
}

@test "reasoning: store_reasoning keeps it with the answer, whether it is shown or not" {
    use_history
    mkdir -p "$HOME/.config/chathist"
    printf '%s\n' 'status: 200' '' 'data: {"choices":[{"delta":{"reasoning":"Let me"}}]}' '' 'data: {"choices":[{"delta":{"reasoning":"\nsee"}}]}' '' \
        'data: {"choices":[{"delta":{"content":"said\n"},"finish_reason":"stop"}]}' '' 'data: [DONE]' '' >odd.http
    start_llm ./odd.http
    echo 'store_reasoning = on' >"$HOME/.config/chathist/config"
    run_expect 0 chat -N hello
    stderr_empty
    tail -n 1 "$HISTORY" >line
    run_expect 0 jq -r .reasoning line
    stdout_is 'Let me' 'see'
    # The next request does not have it.
    run_expect 0 chat more
    run_expect 1 grep -c 'Let me' "$RECORD/2.json"
    echo 'store_reasoning = perhaps' >"$HOME/.config/chathist/config"
    run_expect 2 chat -N hello
    stderr_has "bad value 'perhaps' for store_reasoning"
}

@test "reasoning: it is left out if the line would be too long, and the answer is stored" {
    [[ ${CHATHIST_BIG_TESTS-} != no ]] || skip 'no big tests'
    use_history
    mkdir -p "$HOME/.config/chathist"
    # 20 MB of quotes each, which are 40 MB in a line.
    python3 - >odd.http <<'EOF'
print('status: 200\n')
for field in ('reasoning', 'content'):
    for i in range(20):
        print('data: {"choices":[{"delta":{"%s":"%s"}}]}\n' % (field, '\\"' * 1000000))
print('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n')
EOF
    start_llm ./odd.http
    echo 'store_reasoning = on' >"$HOME/.config/chathist/config"
    run_expect 0 chat -N hello
    stderr_has 'chat: the reasoning is not stored: it and the answer are too long for one line'
    tail -n 1 "$HISTORY" | jq -c '[.role, (.content | length), has("reasoning")]' >shown
    is 'the answer' shown '["assistant",20000000,false]'
}

@test "reasoning: on a terminal it is dim and harmless, and the answer begins on a line of its own" {
    printf '%s\n' 'status: 200' '' 'data: {"choices":[{"delta":{"reasoning":"a\u001b]0;x\u0007b"}}]}' '' \
        'data: {"choices":[{"delta":{"content":"c"}}]}' '' 'data: {"choices":[{"delta":{"reasoning":"d"}}]}' '' \
        'data: {"choices":[{"delta":{"content":"e\n"},"finish_reason":"stop"}]}' '' 'data: [DONE]' '' >odd.http
    start_llm ./odd.http
    run_expect 0 on_tty --fds 12 chat -N --reasoning hello
    stdout_bytes_are '\033[38;5;243ma^[]0;x^Gb\033[0m\r\nc\r\n\033[38;5;243md\033[0m\r\ne\r\n'
    run_expect 0 on_tty --fds 12 chat -N --reasoning --color=never hello
    stdout_bytes_are 'a^[]0;x^Gb\r\nc\r\nd\r\ne\r\n'
    # A file gets the exact bytes, and standard output nothing but the answer.
    run_expect 0 chat -N --reasoning hello
    stdout_is ce
    printf 'a\033]0;x\ab\nd\n' >wanted
    same stderr wanted "$ERR"
}

@test "reasoning: on a terminal no sign of waiting overwrites it, and code begins on a line of its own" {
    printf '%s\n' 'status: 200' 'delay: 800ms' 'mark: |' '' 'data: {"choices":[{"delta":{"reasoning":"Let me"}}]}' '' \
        '|data: {"choices":[{"delta":{"reasoning":" see"}}]}' '' \
        '|data: {"choices":[{"delta":{"content":"```\ncode\n```\n"},"finish_reason":"stop"}]}' '' 'data: [DONE]' '' >slow.http
    start_llm ./slow.http
    run_expect 0 env TERM=xterm "$TESTS/tools/on-tty" --raw --fds 12 chat -N -x --reasoning --color=never hello
    sed 's/.*\x1b\[K//' "$OUT" >behind
    is behind behind 'Let me see' code
}

# Prints the fields of the request's message that hold what a server sent beside a call.
members() {
    request "$1" | jq -c '[.messages[] | select(.tool_calls) | .reasoning_content, .reasoning, .reasoning_details, .thinking_blocks, .provider_specific_fields]'
}

# A session that the provider of $1 called a tool in, its result, and a prompt to go on with.
go_on() {
    run_expect 9 chat -s s -m "$1:m" hello
    jq -c 'select(.role == "assistant") | .thinking' history.jsonl >thinking
    jq -r 'select(.role == "assistant") | .tool_calls[].id' history.jsonl | while read -r id; do
        hist_line s tool 20 '' "{\"tool_call_id\":\"$id\"}"
    done >results
    cat results >>history.jsonl
    run_expect 0 chat -s s -m "$1:m" 'and now?'
    run_expect 0 chat -s s -m "openai:m" 'and now?'
}

@test "reasoning: Gemini gets the signature of its thoughts back with its calls, and nobody else does" {
    use_history
    start_llm openai/gemini-calls-signed openai/normal
    export CHAT_BASE_URL=$OPENAI_BASE_URL GEMINI_API_KEY=k
    go_on gemini
    is thinking thinking '[{"type":"extra_content","id":"function-call-1","extra_content":{"google":{"thought_signature":"c2ln \"1\""}}}]'
    [[ $(request 2 | jq -c '[.messages[1].tool_calls[] | [.id, .extra_content]]') == \
        '[["function-call-1",{"google":{"thought_signature":"c2ln \"1\""}}],["function-call-2",null]]' ]]
    [[ $(request 3 | jq -c '[.messages[1].tool_calls[] | .extra_content]') == '[null,null]' ]]
}

@test "reasoning: DeepSeek gets what it thought back with its calls, and nobody else does" {
    use_history
    start_llm openai/deepseek-call openai/normal
    export CHAT_BASE_URL=$OPENAI_BASE_URL DEEPSEEK_API_KEY=k
    go_on deepseek
    is thinking thinking '[{"type":"reasoning_content","text":"They ask \"it\" of me."}]'
    [[ $(request 2 | jq -c '.messages[1] | [.content, .reasoning_content]') == '["","They ask \"it\" of me."]' ]]
    [[ $(request 3 | jq -c '.messages[1] | .reasoning_content') == null ]]
    # An answer without calls needs none.
    start_llm openai/deepseek
    export CHAT_BASE_URL=$OPENAI_BASE_URL
    rm history.jsonl
    run_expect 0 chat -s t -m deepseek:m hello
    json_is history.jsonl 'select(.role == "assistant") | .thinking' null
}

@test "reasoning: OpenRouter gets its details back with its calls, put together from their pieces, and nobody else does" {
    use_history
    start_llm openai/openrouter-call openai/normal
    export CHAT_BASE_URL=$OPENAI_BASE_URL OPENROUTER_API_KEY=k
    go_on openrouter
    details='[{"format":"anthropic-claude-v1","index":0,"signature":"c2lnbmF0dXJl","text":"They ask \"it\".","type":"reasoning.text"},{"data":"RW5j=","format":"openai-responses-v1","id":"rs_1","index":1,"type":"reasoning.encrypted"}]'
    [[ $(jq -cS '.[] | .reasoning_details' thinking) == "$details" ]]
    [[ $(request 2 | jq -cS '.messages[1].reasoning_details') == "$details" ]]
    [[ $(request 3 | jq -c '.messages[1].reasoning_details') == null ]]
    # Without a stream they go back byte for byte, in the loop itself as well.
    put_tool 'time' 'echo noon' get_time
    start_llm openai/openrouter-call-whole openai/normal
    export CHAT_BASE_URL=$OPENAI_BASE_URL
    run_expect 0 chat -s t -m openrouter:m --yes -T ./time --no-stream hello
    request 2 | jq -r '.messages[1] | keys | join(" ")' >keys
    is keys keys 'content reasoning_details role tool_calls'
    request 2 >body
    has body '"reasoning_details":[{"type":"reasoning.summary","summary":"They","format":"unknown","index":0},{"type":"reasoning.summary","summary":" ask \"it\".","format":"unknown","index":0,"more":1.0}]'
    # An answer without calls needs none.
    start_llm openai/openrouter
    export CHAT_BASE_URL=$OPENAI_BASE_URL
    rm history.jsonl
    run_expect 0 chat -s t -m openrouter:m hello
    json_is history.jsonl 'select(.role == "assistant") | .thinking' null
}

@test "reasoning: what came beside a call goes back to its server, by host and port, and to no other one" {
    use_history
    put_tool 'time' 'echo noon' get_time
    start_llm openai/deepseek-call openai/normal
    first=$OPENAI_BASE_URL
    run_expect 0 chat -s s -m openai:m --base-url "$first" --yes -T ./time hello
    [[ $(members 2) == '["They ask \"it\" of me.",null,null,null,null]' ]]
    host=${first#http://}
    json_is history.jsonl 'select(.role == "assistant") | .server' "${host%/v1}" "${host%/v1}"
    json_is history.jsonl 'select(.role != "assistant") | has("server")' false false
    json_is history.jsonl 'select(.thinking) | keys_unsorted | join(" ")' \
        'id session_id timestamp role content tool_calls reply_to server thinking model provider usage finish_reason'
    run_expect 0 chat -s s -m openai:m --base-url "$first" again
    [[ $(members 3) == '["They ask \"it\" of me.",null,null,null,null]' ]]
    start_llm openai/normal
    run_expect 0 chat -s s -m openai:m --base-url "$OPENAI_BASE_URL" again
    [[ $(members 1) == '[null,null,null,null,null]' ]]
    # Nor does it go to the provider's own host, whose lines have no such field.
    run_expect 0 chat -s s -m openai-chat:m --base-url https://api.openai.com/v1 --dry-run again
    stdout_json '[.messages[] | keys[]] | unique | join(" ")' 'content role tool_call_id tool_calls'
}

@test "reasoning: LiteLLM's blocks and fields beside a call go back whole" {
    use_history
    put_tool 'time' 'echo noon' get_time
    fields='{"thought_signature":"c2ln \"1\"","n":1.0}'
    {
        printf 'exit: 0\nanswer: ""\n\n'
        for delta in '{"reasoning_content":"They","thinking_blocks":[{"type":"thinking","thinking":"They","signature":null}]}' \
            '{"reasoning_content":" ask","thinking_blocks":[{"type":"thinking","thinking":" ask","signature":null}]}' \
            '{"thinking_blocks":[{"type":"thinking","thinking":"","signature":"RW5j"}],"provider_specific_fields":{"a":[1]}}' \
            "{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"get_time\",\"arguments\":\"{}\"},\"provider_specific_fields\":$fields}]}"; do
            printf 'data: {"choices":[{"index":0,"delta":%s,"finish_reason":null}]}\n\n' "$delta"
        done
        printf 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    } >litellm
    start_llm ./litellm openai/normal
    run_expect 0 chat -s s -m openai:m --base-url "$OPENAI_BASE_URL" --yes -T ./time hello
    [[ $(members 2) == '["They ask",null,null,[{"type":"thinking","thinking":"They ask","signature":"RW5j"}],{"a":[1]}]' ]]
    request 2 >body
    has body "\"provider_specific_fields\":$fields"
}

@test "reasoning: calls of another model get the stand-in of Gemini's documentation, and for DeepSeek and Kimi an empty reasoning" {
    use_history
    {
        hist_line s user hello
        hist_line s assistant '' '' '{"tool_calls":[{"id":"c1","name":"f","args":{}},{"id":"c2","name":"f","args":{}}],"model":"m","provider":"openai"}'
        hist_line s tool one '' '{"tool_call_id":"c1"}'
        hist_line s tool two '' '{"tool_call_id":"c2"}'
    } >history.jsonl
    export CHAT_API_KEY=k
    run_expect 0 chat -s s --dry-run -m gemini:gemini-3 'go on'
    stdout_json '[.messages[1].tool_calls[].extra_content] | tojson' \
        '[{"google":{"thought_signature":"skip_thought_signature_validator"}},null]'
    for server in '-m deepseek:m' '-m openai:k --base-url https://api.moonshot.ai/v1'; do
        # shellcheck disable=SC2086
        run_expect 0 chat -s s --dry-run $server 'go on'
        stdout_json '[.messages[] | .reasoning_content] | tojson' '[null,"",null,null,"",null]'
    done
}

@test "reasoning: a server that does not take its own members back gets them no more" {
    use_history
    put_tool 'time' 'echo noon' get_time
    printf 'status: 400 Bad Request\n\n{"error":{"message":"property %s is unsupported"}}\n' "'messages.1.reasoning_content'" >refusal
    start_llm openai/deepseek-call ./refusal openai/normal
    run_expect 0 chat -s s -m openai:m --base-url "$OPENAI_BASE_URL" --yes -T ./time hello
    stderr_is 'chat: the server does not take its earlier reasoning back: it is left out'
    [[ $(members 3) == '[null,null,null,null,null]' ]]
}
