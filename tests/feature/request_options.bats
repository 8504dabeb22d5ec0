#!/usr/bin/env bats
#
# What the user sets in a request: effort, the limit of tokens, headers, tools of the server.

# shellcheck disable=SC2016,SC2034

load ../helper

# ---- effort and length

@test "request options: effort and limit are fields of chat completions" {
    start_llm --reply ok
    run_expect 0 chat -1 --effort high --max-tokens 77 hello
    request 1 | jq -c '[.reasoning_effort, .max_tokens, .max_completion_tokens]' >got
    is fields got '["high",77,null]'
    unset OPENAI_BASE_URL
    run_expect 0 chat --dry-run -m openai-chat:test-model --max-tokens 77 hello
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
    stderr_is "chat: bad value 'very' for --effort: none, minimal, low, medium, high, xhigh or max is expected (see 'chat --help')"
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
    put_tool f
    run_expect 2 chat -1 -T ./f -o tools=null hello
    stderr_is "chat: -T and -o tools contradict each other: both set 'tools'"
    requests_are 0
    run_expect 0 chat -1 --effort low -o reasoning_effort=low --max-tokens 5 -o max_tokens=5 hello
    request 1 | jq -c '[.reasoning_effort, .max_tokens]' >got
    is fields got '["low",5]'
}

# ---- lasting settings

@test "request options: the configuration, a template and flags set them, the later the stronger" {
    start_llm --reply ok
    configure 'option.temperature = 0.1' 'option.a = {"x":1}' 'option.stop =' 'effort = low' 'max_tokens = 11' \
        'option.openai.top_p = 0.5' 'option.groq.top_p = 0.6' 'option.openai.temperature = 0.15'
    run_expect 0 chat --dry-run hello
    stdout_json '[.temperature, .a, .stop, .reasoning_effort, .max_tokens, .top_p] | tojson' \
        '[0.15,{"x":1},"","low",11,0.5]'
    mkdir -p "$HOME/.config/chathist/templates"
    printf -- '---\noption.temperature = 0.2\noption.a = {"y":2}\neffort = high\nmax_tokens = 22\n---\n{{input}}\n' \
        >"$HOME/.config/chathist/templates/t"
    run_expect 0 chat --dry-run -t t hello
    stdout_json '[.temperature, .a, .reasoning_effort, .max_tokens] | tojson' '[0.2,{"x":1,"y":2},"high",22]'
    run_expect 0 chat --dry-run -t t --effort max --max-tokens 33 -o temperature=0.3 hello
    stdout_json '[.temperature, .reasoning_effort, .max_tokens] | tojson' '[0.3,"max",33]'
    run_expect 0 chat --dry-run -o reasoning_effort=none -o max_tokens=44 hello
    stdout_json '[.reasoning_effort, .max_tokens] | tojson' '["none",44]'
    # What is for every provider does not keep echo from its work.
    run_expect 0 chat -1 -p echo hello
}

@test "request options: bad lasting settings are wrong usage" {
    start_llm --reply ok
    configure 'effort = very'
    run_expect 2 chat -1 hello
    stderr_is "chat: bad value 'very' for effort in '$HOME/.config/chathist/config', line 1: none, minimal, low, medium, high, xhigh or max is expected"
    configure 'max_tokens = all'
    run_expect 2 chat -1 hello
    stderr_matches "^chat: bad value 'all' for max_tokens in .*, line 1: a number is expected$"
    configure 'effort = low' 'option.reasoning_effort = high'
    run_expect 2 chat -1 hello
    stderr_is "chat: 'effort' and 'option.reasoning_effort' contradict each other: both set 'reasoning_effort'"
    configure 'option = x'
    run_expect 0 chat -1 hello
    stderr_matches "^chat: unknown key 'option' in "
}

@test "request options: another value for the field of --schema is wrong usage" {
    local model option field
    echo '{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],"additionalProperties":false}' >item.json
    export OPENAI_API_KEY=k ANTHROPIC_API_KEY=k
    # The same value with its members in another order is none.
    run_expect 0 chat --dry-run -m openai-chat:m --schema item.json hello
    jq -S .response_format "$OUT" >sorted
    run_expect 1 grep -Fxq "$(jq -c .response_format "$OUT")" <(jq -c . sorted)
    run_expect 0 chat --dry-run -m openai-chat:m --schema item.json -o "response_format=$(cat sorted)" hello
    while read -r model option field; do
        run_expect 2 chat --dry-run -m "$model" -o "$option" --schema item.json hello </dev/null
        stdout_empty
        stderr_is "chat: --schema and -o ${option%%=*} contradict each other: both set '$field'"
    done <<'END'
openai-chat:m response_format={"type":"json_object"} response_format
openai-chat:m response_format={"json_schema":{"description":"d"}} response_format
openai:m text={"format":{"type":"text"}} text.format
openai:m text=null text.format
anthropic:m output_config={"format":null} output_config.format
ollama:m format=json format
END
    # The same value, other members of the object around it, and a configured value.
    run_expect 0 chat --dry-run -m openai:m -o 'text={"verbosity":"low"}' --schema item.json hello
    stdout_json '.text.verbosity, .text.format.type' low json_schema
    run_expect 0 chat --dry-run -m ollama:m -o "format=$(cat item.json)" --schema item.json hello
    stdout_json '.format.type' object
    configure 'option.response_format = {"type":"json_object"}'
    run_expect 0 chat --dry-run -m openai-chat:m --schema item.json hello
    stdout_json '.response_format.type' json_schema
    # No field has this schema.
    configure ''
    echo '{"type":"object","properties":{}}' >s.json
    run_expect 0 chat --dry-run -m anthropic:m -o 'output_config={"format":null}' --schema s.json hello
    stdout_json '.output_config | tojson' '{"format":null}'
}

@test "request options: a refused field of the configuration is left out" {
    configure 'option.temperature = 0.2' 'effort = high'
    refusal temperature '"temperature"' "'temperature' does not support 0.2 with this model."
    refusal effort null "Unrecognized request argument supplied: reasoning_effort"
    start_llm ./temperature.http ./effort.http --reply ok
    run_expect 0 chat -1 hello
    stderr_is "chat: the server refuses 'temperature': asking without it" \
        "chat: the server refuses 'reasoning_effort': asking without it"
    fields 3 '[.temperature, .reasoning_effort]' '[null,null]'
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
    run_expect 2 chat hello
    stderr_has "no key for 'openai'"
    run_expect 0 chat --dry-run --header 'api-key: secret-1' hello
    run_expect 2 chat --header 'X-Y: z' hello
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

@test "request options: a chat that is stopped with the lock of what is refused holds up no other one" {
    configure 'option.temperature = 0.2'
    refusal temperature '"temperature"' "Unsupported value: 'temperature' does not support 0.2 with this model."
    start_llm ./temperature.http --reply one
    mkdir -p "$HOME/.cache/chathist/refused"
    exec 5<"$HOME/.cache/chathist/refused"
    flock 5
    run_expect 0 chat -1 hello
    exec 5<&-
    stdout_is one
    grep -q temperature "$HOME"/.cache/chathist/refused/*
}

@test "request options: what a flag set is not left out, and the error is shown" {
    refusal seed '"seed"' "Unknown parameter: 'seed'."
    refusal effort '"reasoning_effort"' "Unsupported parameter: 'reasoning_effort' is not supported with this model."
    start_llm ./seed.http ./effort.http
    run_expect 1 chat -1 -o seed=1 hello
    stderr_is "chat: HTTP 400: Unknown parameter: 'seed'. (set by -o seed)"
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

# ---- headers of the configuration

@test "request options: headers of the configuration, for all providers and for one" {
    start_llm --reply ok
    configure 'header.X-All = a: 1' 'header.openai.X-Own = b' 'header.groq.X-Other = c' 'header.openai.X-Both = own' \
        'header.X-Both = all' 'header_command.X-Key = echo "Bearer s3cret-value"; pwd >'"$PWD"'/ran'
    run_expect 0 chat -1 hello
    is_header 1 X-All 'a: 1'
    is_header 1 X-Own b
    is_header 1 X-Other ''
    is_header 1 X-Both own
    is_header 1 X-Key 'Bearer s3cret-value'
    is 'directory of the command' ran "$HOME"
    run_expect 0 chat -1 --header 'x-both: flag' --header 'X-Key:' hello
    is_header 2 X-Both flag
    is_header 2 X-Key ''
    # No command for a dry run, or for a provider without a server.
    rm ran
    run_expect 0 chat --dry-run hello
    stdout_lacks s3cret
    run_expect 0 chat -1 -p echo hello
    [[ ! -e ran ]]
}

@test "request options: a header of the configuration takes the place of a key" {
    start_llm --reply ok
    configure 'header_command.openai.api-key = echo s3cret-value'
    unset OPENAI_API_KEY OPENAI_BASE_URL
    run_expect 0 chat --dry-run -m openai:m hello
    run_expect 0 chat -1 --base-url "http://127.0.0.1:$LLM_PORT/v1" -m openai:m hello
    is_header 1 api-key s3cret-value
    is_header 1 Authorization ''
}

@test "request options: bad headers of the configuration are wrong usage" {
    start_llm --reply ok
    configure 'header.Content-Length = 5'
    run_expect 2 chat -1 hello
    stderr_is "chat: cannot use 'header.Content-Length': bad header 'Content-Length': it cannot be set"
    configure 'header_command.openai.X-Key = false'
    run_expect 2 chat -1 hello
    stderr_matches "^chat: no value from the command in 'header_command.openai.X-Key': exit status 1"
    requests_are 0
}

@test "request options: a secret header is never shown, stored, or in the environment of a tool" {
    local secret=s3cret-value-1234
    use_history
    put_tool f env
    configure "header_command.X-Token = echo 'Bearer $secret'"
    {
        printf 'status: 400\n\n'
        printf '{"error":{"message":"bad token %s"}}' "$secret"
    } >bad.http
    start_llm --call 'f {}' --reply "you sent $secret" ./bad.http
    MY_COPY=$secret run_expect 0 chat -v --yes -T ./f hello
    is_header 1 X-Token "Bearer $secret"
    is_header 2 X-Token "Bearer $secret"
    stdout_is 'you sent ***'
    stderr_lacks "$secret"
    run_expect 1 chat --json hello
    stdout_has '***'
    stdout_lacks "$secret"
    stderr_lacks "$secret"
    run_expect 0 chat -v --dry-run hello
    stdout_lacks "$secret"
    stderr_lacks "$secret"
    if grep -rq "$secret" history.jsonl "$HOME/.local" "$HOME/.cache" 2>/dev/null; then fail 'the secret is on disk'; fi
    if grep -q "$secret" "$RECORD"/*.json; then fail 'the secret is in a request'; fi
}

# ---- connections

# connections_are N...: the numbers of the connections on which the requests came.
connections_are() {
    local i
    for ((i = 1; i <= $#; i++)); do cat "$RECORD/$i.connection"; done >got
    is connections got "$@"
}

@test "request options: the requests of a turn share a connection" {
    put_tool f
    start_llm --call 'f {}' --call 'f {}' --reply finished
    run_expect 0 chat -1 --yes -T ./f hello
    stdout_is finished
    requests_are 3
    connections_are 1 1 1
    # Also those that are not streamed, and the list of models.
    start_llm --call 'f {}' --reply finished
    run_expect 0 chat -1 --yes -T ./f --no-stream hello
    connections_are 1 1
}

@test "request options: what follows the end of a response delays it little and is not shown" {
    printf 'mark: |\n\ndata: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n|data: {"choices":[{"index":0,"delta":{"content":"no"}}]}\n\n' >more.http
    start_llm ./more.http
    run_expect 0 chat -1 hello
    stdout_is hi
    start_llm --set 'end: stall' openai/normal
    run_expect 0 chat -1 hello
    start_llm --set 'repeat: forever' ./more.http
    run_expect 0 chat -1 hello
    stdout_is hi
}

# ---- servers

@test "request options: a base URL may end in the endpoint" {
    start_llm --reply ok
    local end
    for end in chat/completions messages responses; do
        run_expect 0 chat -1 --base-url "http://127.0.0.1:$LLM_PORT/v1/$end" hello
    done
    requests_are 3
}

@test "request options: GOOGLE_API_KEY is Gemini's if it has no other, and chooses no provider" {
    start_llm --reply ok
    unset OPENAI_API_KEY OPENAI_BASE_URL CHAT_MODEL
    export GOOGLE_API_KEY=google-key-1
    run_expect 0 chat -1 -m gemini:m --base-url "http://127.0.0.1:$LLM_PORT/v1" hello
    is_header 1 Authorization 'Bearer google-key-1'
    GEMINI_API_KEY=own-key-1 run_expect 0 chat -1 -m gemini:m --base-url "http://127.0.0.1:$LLM_PORT/v1" hello
    is_header 2 Authorization 'Bearer own-key-1'
    CHAT_PROVIDER=none run_expect 2 chat -1 hello
}

@test "request options: a comment in a data line does not end the answer" {
    printf 'status: 200\n\ndata: : keep-alive\n\ndata: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' >comment.http
    start_llm ./comment.http
    run_expect 0 chat -1 hello
    stdout_is hi
}

# ---- limits

@test "request options: the limits of the user configuration count, and options are stronger" {
    use_history
    start_llm --accept-silent
    configure 'idle_timeout = 0.3s' 'retries = 0'
    run_expect 4 chat hello
    stderr_is "chat: no answer from '127.0.0.1:$LLM_PORT': nothing came within 300 ms (idle time-out)"
    configure 'idle_timeout = 5m' 'first_byte_timeout = 0.3s' 'retries = 0'
    run_expect 4 chat -N hello
    stderr_has 'nothing came within 300 ms (first-byte time-out)'
    start_llm openai/http-503 --reply ok
    configure 'retries = 0'
    run_expect 5 chat -N hello
    requests_are 1
    start_llm openai/http-503 --reply ok
    configure 'retries = 0'
    run_expect 0 chat -N --retries 1 hello
    requests_are 2
    put_tool step 'echo 1'
    put_tool slow 'exec sleep 60'
    start_llm --call 'step {}' --call 'step {}' --reply ok
    configure 'max_iterations = 1'
    run_expect 9 chat -N --yes -T ./step go
    requests_are 2
    start_llm --call 'slow {}' --reply ok
    configure 'tool_timeout = 0.2s'
    run_expect 0 chat -N --yes -T ./slow go
    json_is history.jsonl 'select(.role == "tool") | .content' $'1\n' 'the tool was stopped: it took longer than 0.2 s'
}

@test "request options: a bad limit in the user configuration is named before anything is sent" {
    start_llm --reply ok
    for key in connect_timeout first_byte_timeout idle_timeout tool_timeout; do
        configure "$key = soon"
        run_expect 2 chat hello
        stderr_is "chat: bad value 'soon' for $key in '$HOME/.config/chathist/config', line 1: a time such as 30s or 5min is expected"
    done
    for key in retries max_iterations; do
        configure "$key = -1"
        run_expect 2 chat hello
        stderr_is "chat: bad value '-1' for $key in '$HOME/.config/chathist/config', line 1: a number is expected"
        configure "$key ="
        run_expect 0 chat --dry-run hello
    done
    run_expect 2 chat --idle-timeout soon hello
    stderr_is "chat: bad value 'soon' for --idle-timeout: a time such as 30s or 5min is expected (see 'chat --help')"
    requests_are 0
}
