#!/usr/bin/env bats
#
# Services that the user configuration defines by name: service.NAME.base_url and so on.

# The shell of a tool expands its own variables.
# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    use_history
    FOLDER=$HOME/.config/chathist
    CONFIG=$FOLDER/config
    mkdir -p "$FOLDER/keys"
    chmod -R go= "$FOLDER"
}

# serve [OPTION]...: a server, and nothing in the environment that chooses one.
serve() {
    start_llm "$@"
    unset OPENAI_BASE_URL OPENAI_API_KEY CHAT_MODEL CHAT_PROVIDER
    HERE=http://127.0.0.1:$LLM_PORT
}

# path K: the path of the K-th request.
path() {
    head -n 1 "$RECORD/$1.headers" | cut -d ' ' -f 2
}

@test "services: the name, the key, headers and options of one" {
    serve --reply hi
    printf '%s\n' "service.xai.base_url = $HERE/v1" 'service.xai.key_command = echo key-x' \
        'service.xai.header.X-Team = blue' 'service.xai.option.temperature = 0' \
        "service.other.base_url = $HERE/other" >"$CONFIG"
    run_expect 0 chat -m xai:grok-4 hello
    [[ $(path 1) == /v1/chat/completions ]]
    [[ $(request_header 1 authorization) == 'Bearer key-x' ]]
    [[ $(request_header 1 x-team) == blue ]]
    [[ $(request 1 | jq -c '[.model, .temperature]') == '["grok-4",0]' ]]
    json_is "$HISTORY" 'select(.role == "assistant") | .provider' xai
    CHAT_MODEL=xai:grok-4 run_expect 0 chat hello
    run_expect 0 chat -p xai -m grok-4 hello
    CHAT_PROVIDER=xai run_expect 0 chat -m grok-4 hello
    for k in 2 3 4; do
        [[ $(request_header $k authorization) == 'Bearer key-x' ]] || fail "key of request $k"
    done
    # What one service has, no other one gets.
    install -m 600 <(echo key-o) "$FOLDER/keys/other"
    run_expect 0 chat -m other:m hello
    [[ $(path 5) == /other/chat/completions ]]
    [[ $(request_header 5 authorization) == 'Bearer key-o' ]]
    [[ -z $(request_header 5 x-team) ]]
    [[ $(request 5 | jq .temperature) == null ]]
}

@test "services: one that is the only one with a key is chosen, base_url does not move it" {
    printf '%s\n' 'service.xai.base_url = https://xai.test/v1' 'base_url = http://127.0.0.1:9/v1' >"$CONFIG"
    run_expect 2 chat -m xai:m hello
    stderr_is "chat: no key for 'xai': set CHAT_API_KEY or service.xai.key_command, or let 'chathist key xai' store it in '$FOLDER/keys/xai' with mode 600"
    echo 'service.xai.key_command = echo key-x' >>"$CONFIG"
    run_expect 4 timeout 60 chat -m xai:m --retries 0 hello
    stderr_has xai.test
    sed -i '/^base_url/d' "$CONFIG"
    unset OPENAI_BASE_URL OPENAI_API_KEY CHAT_PROVIDER
    run_expect 0 chat --dry-run -m m hello
    stdout_json .model m
}

@test "services: what is wrong in the configuration is said" {
    while IFS='|' read -r lines reason; do
        printf '%b' "$lines" >"$CONFIG"
        run_expect 2 chat --dry-run -p echo hello </dev/null
        stderr_has "$reason"
    done <<'END'
service.openai.base_url = https://a.test\n|cannot use service 'openai': a provider has that name
service.a b.base_url = https://a.test\n|cannot use service 'a b': a name has letters
service.a:b.base_url = https://a.test\n|cannot use service 'a:b': a name has letters
service..base_url = https://a.test\n|cannot use service '': a name has letters
service.a.wire = anthropic\n|cannot use 'service.a.wire': there is no service.a.base_url
service.a.header.Authorization = s\n|cannot use 'service.a.header.Authorization': there is no service.a.base_url
service.a.header_command.X = s\nservice.a.bas_url = u\n|cannot use 'service.a.header_command.X': there is
service.a.option.temperature = 0\n|cannot use 'service.a.option.temperature': there is no service.a.base_url
service.a.option.base_url = u\n|cannot use 'service.a.option.base_url': there is no service.a.base_url
service.a.key_command = echo k\n|cannot use 'service.a.key_command': there is no service.a.base_url
service.a.bas_url = https://a.test\n|cannot use 'service.a.bas_url': there is no service.a.base_url
service.a = https://a.test\n|cannot use 'service.a': there is no service.a.base_url
service.a.base_url = a.test\n|bad base URL 'a.test'
service.a.base_url = https://a.test\nservice.a.wire = grpc\n|bad value 'grpc' for service.a.wire: openai-chat, openai-responses or anthropic is expected
END
    printf '%s\n' 'service.a.base_url = https://a.test' 'service.a.key = sk-1' >"$CONFIG"
    run_expect 0 chat -p echo hello
    stderr_has "unknown key 'service.a.key'"
}

@test "services: each wire has its path, its header for the key and its body" {
    serve anthropic/normal openai-responses/normal
    printf '%s\n' "service.a.base_url = $HERE/anthropic" 'service.a.wire = anthropic' \
        "service.r.base_url = $HERE/v1" 'service.r.wire = openai-responses' \
        'service.a.key_command = echo key-a' 'service.r.key_command = echo key-r' >"$CONFIG"
    run_expect 0 chat -m a:m hello
    run_expect 0 chat -m r:m hello
    [[ $(path 1) == /anthropic/v1/messages && $(path 2) == /v1/responses ]]
    [[ $(request_header 1 x-api-key) == key-a && -z $(request_header 1 authorization) ]]
    [[ $(request_header 2 authorization) == 'Bearer key-r' ]]
}

@test "services: the lists of models and the completion know them" {
    serve --models x,y
    printf '%s\n' "service.xai.base_url = $HERE/v1" "service.zai.base_url = $HERE/z/v1" >"$CONFIG"
    run_expect 0 chat -p xai --models
    stdout_is xai:x xai:y
    run_expect 2 chat -p nonsense hello
    stderr_has ', echo, xai, zai'
    [[ $(find "$HOME/.cache/chathist/models" -name 'xai@*' | wc -l) == 1 ]]
}

@test "services: the whole name of a model at the provider that is chosen" {
    serve --models m,mistral:7b
    export MISTRAL_API_KEY=key-mistral
    printf '%s\n' "service.near.base_url = $HERE/v1" 'service.far.base_url = https://far.test/v1' \
        'service.far.key_command = echo k' >"$CONFIG"
    for provider in ollama vllm lmstudio llamacpp near; do
        run_expect 0 chat --dry-run -p $provider -m mistral:7b hello
        stdout_json .model mistral:7b
        run_expect 0 chat --dry-run -p $provider -m $provider:mistral:7b hello
        stdout_json .model mistral:7b
        CHAT_PROVIDER=$provider run_expect 0 chat --dry-run -m mistral:7b hello
        stdout_json .model mistral:7b
    done
    run_expect 0 chat --dry-run -p far -m mistral:7b hello
    stdout_json .model mistral:7b
    # Another provider than one on this machine has it if its list says so.
    CHAT_PROVIDER=far run_expect 0 chat --dry-run -m mistral:7b hello
    stdout_json .model 7b
    export OPENAI_BASE_URL=$HERE/v1 CHAT_PROVIDER=openai
    run_expect 0 chat --dry-run -m mistral:7b hello
    stdout_json .model 7b
    run_expect 0 chat --models
    run_expect 0 chat --dry-run -m mistral:7b hello
    stdout_json .model mistral:7b
}

@test "services: OLLAMA_API_KEY is the key of Ollama" {
    serve --reply hi
    OLLAMA_HOST=$HERE OLLAMA_API_KEY=key-ollama run_expect 0 chat -p ollama -m m hello
    [[ $(request_header 1 authorization) == 'Bearer key-ollama' ]]
}

@test "services: those of examples/services, by --dry-run and at a server" {
    local names name n=0 answers=()
    names=$(sed -n 's/^service\.\([^.]*\)\.base_url.*/\1/p' "$ROOT/examples/services")
    for name in $names; do
        case $name in
        kimi) answers+=(anthropic/normal) ;;
        xai) answers+=(openai-responses/normal) ;;
        *) answers+=(openai/normal) ;;
        esac
    done
    serve "${answers[@]}"
    [[ $(wc -w <<<"$names") -ge 12 ]]
    cp "$ROOT/examples/services" "$CONFIG"
    for name in $names; do
        install -m 600 <(echo "key-$name") "$FOLDER/keys/$name"
        run_expect 0 chat --dry-run -m "$name:a/b:c" hello
        stdout_json .model a/b:c
    done
    sed -i "s|https://[^/]*|$HERE|" "$CONFIG"
    for name in $names; do
        n=$((n + 1))
        run_expect 0 chat -s "s$n" -N -m "$name:m" hello
        [[ $(request $n | jq -r .model) == m ]] || fail "model of $name"
        case $name in
        kimi)
            [[ $(request_header $n x-api-key) == key-kimi ]] || fail "key of $name"
            [[ $(path $n) == /anthropic/v1/messages ]] || fail "path of $name"
            ;;
        xai) [[ $(path $n) == /v1/responses ]] || fail "path of $name" ;;
        *)
            [[ $(request_header $n authorization) == "Bearer key-$name" ]] || fail "key of $name"
            [[ $(path $n) == "$(sed -n "s|^service.$name.base_url = https://[^/]*||p" "$ROOT/examples/services")/chat/completions" ]] ||
                fail "path of $name"
            ;;
        esac
        [[ $name != github || $(request_header $n x-github-api-version) == 2022-11-28 ]] || fail "header of $name"
    done
}

@test "services: a server that demands the reasoning of other models' calls gets it, empty" {
    start_llm --call 'f {}' --reply 'done'
    printf '#!/bin/sh\n[ "$1" = --schema ] && echo %s || echo ok\n' \
        "'{\"name\":\"f\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}'" >f
    chmod +x f
    run_expect 0 chat -s t -T ./f --yes hello
    for reason in 'The `reasoning_content` in the thinking mode must be passed back to the API.' \
        'thinking is enabled but reasoning_content is missing in assistant tool call message at index 1'; do
        printf 'status: 400 Bad Request\n\n{"error":{"message":"%s","type":"invalid_request_error"}}\n' "$reason" >refusal
        serve ./refusal openai/normal
        echo "service.kimi.base_url = $HERE/v1" >"$CONFIG"
        run_expect 0 chat -s t -m kimi:k "go on"
        stderr_empty
        [[ $(request 1 | jq -c '[.messages[] | select(.role == "assistant") | .reasoning_content]') == '[null,null'* ]]
        [[ $(request 2 | jq -c '[.messages[] | select(.role == "assistant") | .reasoning_content] | unique') == '[""]' ]]
        [[ $(request 2 | jq '[.messages[] | select(.tool_calls)] | length') == 1 ]]
    done
}

@test "services: options may have any name, and messages name the key as it was written" {
    serve
    printf '%s\n' "service.a.base_url = $HERE" 'service.a.option.wire = 1' 'service.a.option.base_url = "u"' >"$CONFIG"
    run_expect 0 chat --dry-run -m a:m hello
    stdout_json '[.wire, .base_url] | tojson' '[1,"u"]'
    printf '%s\n' "service.a.base_url = $HERE" 'service.a.header.X(Y = x' >"$CONFIG"
    run_expect 2 chat -m a:m hello
    stderr_has "cannot use 'service.a.header.X(Y'"
    for key in header_command.X key_command; do
        printf '%s\n' "service.a.base_url = $HERE" "service.a.$key = exit 3" >"$CONFIG"
        run_expect 2 chat -m a:m hello
        stderr_has "service.a.$key"
    done
}

@test "services: CHAT_API_KEY goes to one on this machine, and not over plain http elsewhere" {
    serve --reply hi
    printf '%s\n' "service.a.base_url = $HERE/v1" 'service.b.base_url = http://far.test/v1' >"$CONFIG"
    CHAT_API_KEY=key-any run_expect 0 chat -m a:m hello
    [[ $(request_header 1 authorization) == 'Bearer key-any' ]]
    CHAT_API_KEY=key-any run_expect 2 chat -m b:m hello
    stderr_has "refusing to send a key to 'far.test"
}

@test "services: a schema is also in the system prompt of one with Anthropic's API" {
    serve
    printf '%s\n' "service.a.base_url = $HERE" 'service.a.wire = anthropic' >"$CONFIG"
    echo '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}' >schema
    run_expect 0 chat --dry-run -m a:m --schema schema hello
    stdout_json '.system | tostring | contains("integer")' true
}

@test "services: the whole name of a model is no mistyped provider" {
    serve --reply hi
    OPENROUTER_API_KEY=k run_expect 0 chat -p openrouter --base-url "$HERE/v1" -m mistral:7b hello
    stderr_empty
    [[ $(request 1 | jq -r .model) == mistral:7b ]]
}
