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

# ---- what a server refuses

# refusal NAME PARAM MESSAGE: the fixture ./NAME.http, an HTTP 400 in OpenAI's form.
refusal() {
    {
        printf 'status: 400\n\n'
        jq -cn --argjson param "$2" --arg message "$3" '{error: {message: $message, type: "invalid_request_error",
            param: $param}}'
    } >"$1.http"
}

# fields K FILTER JSON: what jq makes of the K-th request.
fields() {
    request "$1" | jq -c "$2" >got
    is "request $1" got "$3"
}

@test "request options: a refused field is left out, which is said once and known for a day" {
    mkdir -p "$HOME/.config/chathist/templates"
    printf -- '---\noption.temperature = 0.2\n---\n{{input}}\n' >"$HOME/.config/chathist/templates/cool"
    refusal temperature '"temperature"' "Unsupported value: 'temperature' does not support 0.2 with this model."
    start_llm ./temperature.http --reply one --reply two --reply three
    run_expect 0 chat -1 -t cool hello
    stdout_is one
    stderr_is "chat: the server refuses 'temperature': asking without it"
    fields 1 .temperature 0.2
    fields 2 .temperature null
    run_expect 0 chat -1 -t cool hello
    stdout_is two
    stderr_empty
    fields 3 .temperature null
    run_expect 0 chat --dry-run -t cool hello
    stdout_json .temperature null
    # Another model may take it.
    run_expect 0 chat --dry-run -t cool -m openai:other hello
    stdout_json .temperature 0.2
    # What a flag says is sent in any case.
    run_expect 0 chat -1 -t cool -o temperature=0.3 hello
    fields 4 .temperature 0.3
    # After a day it is tried again.
    sed -i 's/"since":/"since":1/' "$HOME"/.cache/chathist/refused/*
    run_expect 0 chat --dry-run -t cool hello
    stdout_json .temperature 0.2
    sed -i 's/"since":1[0-9]*/"since":1/' "$HOME"/.cache/chathist/refused/*
    run_expect 0 chat --dry-run -t cool hello
    stdout_json .temperature 0.2
}

@test "request options: what a flag set is not left out, and the error is shown" {
    refusal seed '"seed"' "Unknown parameter: 'seed'."
    refusal effort '"reasoning_effort"' "Unsupported parameter: 'reasoning_effort' is not supported with this model."
    start_llm ./seed.http ./effort.http
    run_expect 1 chat -1 -o seed=1 hello
    stderr_is "chat: HTTP 400: Unknown parameter: 'seed'."
    run_expect 1 chat -1 --effort high hello
    stderr_matches '^chat: HTTP 400: Unsupported parameter'
    requests_are 2
    [[ ! -e $HOME/.cache/chathist/refused ]]
}

@test "request options: a field whose omission does not help is not remembered" {
    mkdir -p "$HOME/.config/chathist/templates"
    printf -- '---\noption.seed = 1\n---\n{{input}}\n' >"$HOME/.config/chathist/templates/s"
    refusal seed '"seed"' "Unknown parameter: 'seed'."
    refusal other null 'Something else is wrong.'
    start_llm ./seed.http ./other.http
    run_expect 1 chat -1 -t s hello
    stderr_has 'HTTP 400: Something else is wrong.'
    requests_are 2
    [[ ! -e $HOME/.cache/chathist/refused ]]
}

@test "request options: the limit gets the name that the server knows" {
    refusal limit '"max_tokens"' "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    start_llm ./limit.http --reply one --reply two
    run_expect 0 chat -1 --max-tokens 77 hello
    stderr_is "chat: the server refuses 'max_tokens': asking with 'max_completion_tokens'"
    fields 2 '[.max_tokens, .max_completion_tokens]' '[null,77]'
    run_expect 0 chat -1 --max-tokens 78 hello
    fields 3 '[.max_tokens, .max_completion_tokens]' '[null,78]'
}

@test "request options: an effort that the server does not know becomes the nearest that it names" {
    refusal effort '"reasoning_effort"' "Invalid value: 'max'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', and 'xhigh'."
    start_llm ./effort.http --reply one --reply two
    run_expect 0 chat -1 --effort max hello
    stderr_is "chat: the server does not know the effort 'max': asking with 'xhigh'"
    fields 2 .reasoning_effort '"xhigh"'
    run_expect 0 chat -1 --effort high hello
    fields 3 .reasoning_effort '"high"'
}

@test "request options: OpenAI's models that take tools only without reasoning are asked so" {
    put_tool f
    refusal tools '"reasoning_effort"' "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."
    start_llm ./tools.http --reply one --reply two --reply three
    run_expect 0 chat -1 -T ./f hello
    stderr_is "chat: the server takes tools only without reasoning: asking with reasoning_effort 'none'"
    fields 1 '[.reasoning_effort, (.tools | length)]' '[null,1]'
    fields 2 '[.reasoning_effort, (.tools | length)]' '["none",1]'
    run_expect 0 chat -1 -T ./f hello
    stderr_empty
    fields 3 .reasoning_effort '"none"'
    run_expect 0 chat -1 hello
    fields 4 .reasoning_effort null
}
