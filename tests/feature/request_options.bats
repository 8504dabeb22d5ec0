#!/usr/bin/env bats
#
# What the user sets in a request: effort, the limit of tokens, headers, tools of the server.

# shellcheck disable=SC2034

load ../helper

# put_tool NAME: an executable ./NAME that declares itself as NAME.
put_tool() {
    printf '#!/bin/sh\necho '\''{"name":"%s","description":"for tests"}'\''\n' "$1" >"$1"
    chmod +x "$1"
}

# ---- effort and length

@test "request options: effort and limit are fields of chat completions" {
    start_llm --reply ok
    run_expect 0 chat -1 --effort high --max-tokens 77 hello
    request 1 | jq -c '[.reasoning_effort, .max_tokens, .max_completion_tokens]' >got
    is fields got '["high",77,null]'
    unset OPENAI_BASE_URL
    run_expect 0 chat --dry-run --max-tokens 77 hello
    stdout_json '.max_completion_tokens, .max_tokens' 77 null
}

@test "request options: effort and limit are fields of Anthropic's API" {
    export ANTHROPIC_API_KEY=test-key-1 CHAT_MODEL=anthropic:claude-x
    run_expect 0 chat --dry-run --effort low --max-tokens 77 hello
    stdout_json '.output_config.effort, .max_tokens' low 77
}

@test "request options: bad values, and providers that cannot do it, are wrong usage" {
    start_llm --reply ok
    run_expect 2 chat -1 --effort very hello
    stderr_is "chat: bad value 'very' for --effort: none, minimal, low, medium, high or max is expected (see 'chat --help')"
    run_expect 2 chat -1 --max-tokens 0 hello
    stderr_is "chat: bad value '0' for --max-tokens: at least 1 is expected (see 'chat --help')"
    run_expect 2 chat -1 -T @ hello
    stderr_is "chat: bad value '@' for --tool: the name of a tool is expected after it (see 'chat --help')"
    run_expect 2 chat -1 -T @web_search hello
    stderr_is "chat: provider 'openai' runs no tools itself: -T @web_search cannot be used"
    run_expect 2 chat -1 -p echo --effort low hello
    stderr_is "chat: provider 'echo' does not reason: --effort cannot be used"
    run_expect 2 chat -1 -p echo --max-tokens 5 hello
    stderr_is "chat: provider 'echo' has no limit: --max-tokens cannot be used"
    run_expect 2 chat -1 -p echo --header 'A: b' hello
    stderr_is "chat: provider 'echo' asks no server: --header cannot be used"
    requests_are 0
}

# ---- options beside other settings

@test "request options: an option keeps what other options set" {
    start_llm --reply ok
    put_tool f
    run_expect 0 chat --dry-run -T ./f -o 'tools=[{"type":"web_search"}]' -o 'a={"b":1}' -o 'a={"c":2}' hello
    stdout_json '[.tools[].type], .a | tojson' '["function","web_search"]' '{"b":1,"c":2}'
}

@test "request options: two settings that contradict each other are wrong usage" {
    start_llm --reply ok
    run_expect 2 chat -1 --effort low -o reasoning_effort=high hello
    stderr_is "chat: --effort and -o reasoning_effort contradict each other: both set 'reasoning_effort'"
    run_expect 2 chat -1 --max-tokens 5 -o max_completion_tokens=6 hello
    stderr_is "chat: --max-tokens and -o max_completion_tokens contradict each other: both set 'max_tokens'"
    requests_are 0
    run_expect 0 chat -1 --effort low -o reasoning_effort=low --max-tokens 5 -o max_tokens=5 hello
    request 1 | jq -c '[.reasoning_effort, .max_tokens]' >got
    is fields got '["low",5]'
}

# ---- headers

@test "request options: headers are sent, and replace those of chat" {
    start_llm --reply ok
    run_expect 0 chat -1 --header 'OpenAI-Project: p 1' --header 'authorization:Basic abc' --header 'Accept:' hello
    is_header 1 OpenAI-Project 'p 1'
    is_header 1 Authorization 'Basic abc'
    is_header 1 Accept ''
    is_header 1 Content-Type application/json
    grep -qi test-key-1 "$RECORD/1.headers" && fail 'the key was sent beside the header'
    run_expect 0 chat --models --header 'X-Y: z'
}

# is_header K NAME VALUE: of the K-th request.
is_header() {
    request_header "$1" "$2" >header
    is "header $2" header "$3"
}

@test "request options: bad headers are wrong usage and are not repeated" {
    local bad
    start_llm --reply ok
    for bad in 'secret-1' ': secret-1' 'a b: secret-1' $'A: secret-1\r\nB: c' $'A: secret-1\n' 'Content-Length: secret-1' \
        'transfer-encoding: secret-1'; do
        run_expect 2 chat -1 --header "$bad" hello
        stderr_matches '^chat: bad (value for --header|header)'
        stderr_lacks secret-1
    done
    requests_are 0
}

@test "request options: a header with a key takes the place of a key" {
    unset OPENAI_API_KEY
    export CHAT_MODEL=openai:m
    run_expect 2 chat --dry-run hello
    stderr_has "no key for 'openai'"
    run_expect 0 chat --dry-run --header 'api-key: secret-1' hello
    run_expect 2 chat --dry-run --header 'X-Y: z' hello
}

@test "request options: headers are not sent over plain http to another machine" {
    run_expect 2 chat -1 --base-url http://192.0.2.1/v1 -m openai:m --header 'api-key: secret-1' hello
    stderr_is "chat: refusing to send a header to '192.0.2.1:80' over plain http: use https or --insecure"
}
