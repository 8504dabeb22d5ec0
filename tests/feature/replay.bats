#!/usr/bin/env bats
#
# The second request: a long conversation in which everything goes wrong that can, and what is sent of
# it each time. tests/tools/request-rules holds what servers and chat templates refuse. With REPLAY_KEEP=DIR
# the requests are kept there, for tests/tools/check-servers, which sends them to real servers.

# shellcheck disable=SC2016

load ../helper

# tool NAME: a tool that notes each of its runs.
tool() {
    printf '#!/bin/sh\n[ "$1" != --schema ] || { echo '\''{"name":"%s","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}'\''; exit; }\necho %s >>"$RUNS"\necho seen\n' \
        "$1" "$1" >"$1"
    chmod +x "$1"
}

# ask STATUS PROMPT: a turn with an odd window, another one each time.
ask() {
    CHAT_MAX_MESSAGES=$((3 + 2 * (turn % 9))) run_expect "$1" chat -q -s s --retries 0 --yes -T ./probe -T ./get_weather "$2"
}

# converse [mistral|text]: forty turns, with OpenAI, with that provider, or with a server that refuses
# results of tools.
converse() {
    local steps=() turn
    [[ ${1:-} != text ]] || steps+=(--refuse '"role":"tool"=openai/http-400-template')
    export RUNS=$PWD/runs
    for ((turn = 1; turn <= 40; turn++)); do
        case $turn in
        6) steps+=(openai/calls-cut-length) ;;
        9) steps+=(openai/calls-cut) ;;
        11) steps+=(openai/cut) ;;
        14) steps+=(openai/http-400) ;;
        17) steps+=(openai/calls-bad-arguments --reply 'answer 17') ;;
        21) steps+=(openai/calls-odd-names --reply 'answer 21') ;;
        25) steps+=(--call 'probe {"n":25}' openai/http-500) ;;
        29) steps+=(openai/both-call-forms --reply 'answer 29') ;;
        33) steps+=(openai/empty-answer) ;;
        38) steps+=(openai/stall) ;;
        *[048]) steps+=(--call "probe {\"n\":$turn}" --reply "answer $turn") ;;
        *) steps+=(--reply "answer $turn") ;;
        esac
    done
    start_llm "${steps[@]}"
    if [[ ${1:-openai} == mistral ]]; then
        export MISTRAL_API_KEY=test-key-1 CHAT_BASE_URL=$OPENAI_BASE_URL CHAT_MODEL=mistral:test-model
    fi
    tool probe
    tool get_weather
    for ((turn = 1; turn <= 40; turn++)); do
        case $turn in
        6 | 9 | 11) ask 7 "prompt $turn" ;;
        14) ask 1 "prompt $turn" ;;
        25) ask 5 "prompt $turn" ;;
        38) interrupt "prompt $turn" ;;
        *) ask 0 "prompt $turn" ;;
        esac
    done
}

# interrupt PROMPT: Ctrl-C when the answer has begun.
interrupt() {
    background chat -q -s s -T ./probe "$1"
    wait_for test -s "$OUT.bg"
    kill -INT "$BG"
    finish 130
}

hold_to() {
    [[ $(sort runs | uniq -c | tr -s ' ') == ' 13 probe' ]] || fail "runs: $(sort runs | uniq -c)"
    "$TESTS/tools/request-rules" "$@" "$RECORD" || fail 'a request breaks a rule'
    [[ -z ${REPLAY_KEEP:-} ]] || cp -r "$RECORD" "$REPLAY_KEEP/$1"
}

@test "replay: forty turns: every request is one that servers and templates take, each call runs once" {
    use_history
    converse
    hold_to openai qwen gemma mistral
}

@test "replay: the same for Mistral, which takes ids of its own form" {
    use_history
    converse mistral
    hold_to mistral-ids qwen gemma mistral
}

@test "replay: the same for a chat template without tools: results go as text, after one refusal" {
    use_history
    converse text
    mkdir accepted
    local number accepted=0 refused=0 results
    for ((number = 1; number <= $(find "$RECORD" -name '*.json' | wc -l); number++)); do
        results=$(request "$number" | jq 'any(.messages[]; .role == "tool")')
        if [[ $results == true ]]; then
            refused=$((refused + 1))
        else
            cp "$RECORD/$number.json" "accepted/$((++accepted)).json"
        fi
    done
    [[ $accepted -gt 50 && $refused == 1 ]] || fail "$accepted accepted, $refused refused"
    [[ $(sort runs | uniq -c | tr -s ' ') == ' 13 probe' ]] || fail "runs: $(sort runs | uniq -c)"
    "$TESTS/tools/request-rules" openai gemma mistral accepted || fail 'a request breaks a rule'
    [[ -z ${REPLAY_KEEP:-} ]] || cp -r "$RECORD" "$REPLAY_KEEP/text"
}

@test "replay: a server that takes no results of tools gets them as text, and each tool runs once" {
    export RUNS=$PWD/runs
    tool probe
    for status in 400 500; do
        use_history "$status.jsonl"
        rm -f runs
        printf 'status: %s\n\n{"error":{"message":"Only user, assistant and system roles are supported"}}\n' "$status" >refusal.http
        start_llm --call 'probe {"n":1}' ./refusal.http --call 'probe {"n":2}' --reply fine
        run_expect 0 chat -N --retries 0 --yes -T ./probe go
        stdout_is fine
        stderr_is 'chat: the server takes no results of tools: they are sent as text'
        requests_are 4
        [[ $(wc -l <runs) == 2 ]]
        [[ $(request 2 | jq -c '[.messages[].role]') == '["user","assistant","tool"]' ]]
        [[ $(request 3 | jq -c '[.messages[] | [.role, .content]]') == \
            '[["user","go"],["assistant","[call of the tool probe: {\"n\":1}]"],["user","[result of the tool probe]\nseen\n"]]' ]]
        # It is remembered for the rest of the turn, and the tools are still offered.
        [[ $(request 4 | jq -c '[.messages[].role], (.tools | length)') == $'["user","assistant","user","assistant","user"]\n1' ]]
        # The history has them as they are.
        json_is "$HISTORY" '.role' user assistant tool assistant tool assistant
        # The next prompt is merged with the result before it.
        start_llm ./refusal.http --reply again
        run_expect 0 chat -q --retries 0 -c next
        stderr_empty
        [[ $(request 2 | jq -c '[.messages[].role]') == '["user","assistant","user","assistant","user","assistant","user"]' ]]
        # A second refusal is an error.
        start_llm ./refusal.http
        run_expect "$((status == 400 ? 1 : 5))" chat -q --retries 0 -c next
        requests_are 2
        # Without results there is nothing to send in another way.
        start_llm ./refusal.http
        run_expect "$((status == 400 ? 1 : 5))" chat -N --retries 0 hello
        requests_are 1
    done
}

@test "replay: a call that comes in both forms is one call, streamed or not" {
    for stream in both-call-forms both-call-forms-not-streamed; do
        use_history "$stream.jsonl"
        export RUNS=$PWD/runs
        rm -f runs
        tool probe
        start_llm "openai/$stream" --reply fine
        run_expect 0 chat -N --yes -T ./probe go
        stdout_is fine
        [[ $(wc -l <runs) == 1 ]]
        json_is "$HISTORY" 'select(.tool_calls).tool_calls | length' 1
    done
}

# ---- what an answer is made of

# answer NAME DELTA USAGE: a stream of one delta.
answer() {
    printf '# made here\n\ndata: {"model":"resolved-1","choices":[{"index":0,"delta":%s,"finish_reason":"stop"}],"usage":%s}\n\ndata: [DONE]\n\n' \
        "$2" "$3" >"$1.http"
}

@test "replay: usage is stored whole, and the model that answered" {
    use_history
    answer whole '{"content":"x"}' '{"prompt_tokens":20,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":5},"cost":1.25e-4}'
    start_llm ./whole.http
    run_expect 0 chat -u hello
    stderr_is 'input_tokens=20 output_tokens=9 cache_read_tokens=8 cache_write_tokens=3 reasoning_tokens=5 cost=0.000125'
    json_is "$HISTORY" 'select(.model) | .model, (.usage | del(.raw) | tojson)' resolved-1 \
        '{"input_tokens":20,"output_tokens":9,"cache_read_tokens":8,"cache_write_tokens":3,"reasoning_tokens":5,"cost":0.000125}'
    run_expect 0 hist-stats --json
    stdout_has '"input_tokens":20'
}

@test "replay: a count that is no number is unknown and not stored, by every provider" {
    local wire
    use_history
    answer openai '{"content":"x"}' '{"prompt_tokens":NaN,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":-1},"cost":"1"}'
    printf '%s\n' '# made here' '' 'data: {"type":"response.output_text.delta","output_index":0,"delta":"x"}' '' \
        'data: {"type":"response.completed","response":{"status":"completed","model":"m","usage":{"input_tokens":NaN,"output_tokens":2,"input_tokens_details":{"cached_tokens":-1},"cost":"1"}}}' '' >openai-responses.http
    printf '%s\n' '# made here' '' 'data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":NaN,"cache_read_input_tokens":-1}}}' '' \
        'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}' '' \
        'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":Infinity,"output_tokens":2}}' '' \
        'data: {"type":"message_stop"}' '' >anthropic.http
    printf '%s\n' 'status: 200' 'header: Content-Type: application/x-ndjson' '' \
        '{"model":"m","message":{"content":"x"},"done":false}' \
        '{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":NaN,"eval_count":2}' >ollama.http
    for wire in openai openai-responses anthropic ollama; do
        start_llm "./$wire.http"
        export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=k OLLAMA_HOST=127.0.0.1:$LLM_PORT
        run_expect 0 chat -N -u -m "$wire:m" hello
        stdout_is x
        stderr_is 'input_tokens=unknown output_tokens=2'
        run_expect 0 hist-show --json last
        stdout_json 'select(.role == "assistant") | .usage | del(.raw) | tojson' '{"output_tokens":2}'
    done
    prices '* 1 1 1 1 USD'
    run_expect 0 hist-stats --cost --by role
    stdout_is $'total\tunknown\t-\t-\t-\t4\t8' $'assistant\tunknown\t-\t-\t-\t4\t8'
    run_expect 0 hist-stats --by role --json
    stdout_has '"answers_without_usage":4'
}

@test "replay: -u also tells what an answer cost that broke off" {
    printf '# made here\n\ndata: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}\n\n' >cut.http
    start_llm ./cut.http
    run_expect 7 chat -N -u hello
    stderr_has 'input_tokens=10 output_tokens=1'
    # What a terminal shows of both has it in a line of its own.
    run_expect 7 bash -c 'chat -N -u hello 2>&1'
    stdout_line 1 x
    stdout_line 2 'input_tokens=10 output_tokens=1'
}

@test "replay: annotations are citations; what is not kept, and an answer without text, are mentioned" {
    answer odd '{"annotations":[{"type":"url_citation","url":"u"}],"images":[{"type":"image_url"}]}' null
    answer thinks '{"reasoning":"hm"}' null
    start_llm ./odd.http ./thinks.http
    run_expect 0 chat --json -N hello
    stdout_json '.type + (.citation.url // "") + (.message // "")' session_id citationu \
        'noticethe answer has an image, which is not kept' 'noticethe answer is empty' 'done'
    stderr_is 'chat: the answer has an image, which is not kept' 'chat: the answer is empty'
    run_expect 0 chat -N hello
    stdout_empty
    stderr_is 'chat: the answer is empty: the model only reasoned'
}

@test "replay: the transcript of a spoken answer is its text" {
    use_history
    answer spoken '{"content":null,"audio":{"id":"a","data":"AAAA","transcript":"spoken words"}}' null
    start_llm ./spoken.http
    run_expect 0 chat -N hello
    stdout_is 'spoken words'
    stderr_is 'chat: the answer has sound, which is not kept'
}

# ---- compressed answers

# compressed NAME STATUS TYPE FORM: a response of standard input, packed.
compressed() {
    { printf 'HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Encoding: %s\r\nConnection: close\r\n\r\n' "$2" "$3" "$4"
      python3 -c 'import gzip, sys, zlib; f = {"gzip": gzip.compress, "deflate": zlib.compress}[sys.argv[1]]
sys.stdout.buffer.write(f(sys.stdin.buffer.read()))' "$4"; } >"$1"
}

@test "replay: compressed answers and errors are understood, and asked for by nobody" {
    answer plain '{"content":"hello"}' null
    for form in gzip deflate; do
        tail -n +3 plain.http | compressed "$form" '200 OK' text/event-stream "$form"
        echo '{"error":{"message":"no such luck"}}' | compressed "$form-error" '400 Bad Request' application/json "$form"
        start_llm "./$form" "./$form-error"
        run_expect 0 chat -N hello
        stdout_is hello
        requests_are 1
        [[ $(request_header 1 Accept-Encoding) == identity ]]
        run_expect 1 chat -N hello
        stderr_is 'chat: HTTP 400: no such luck'
    done
}

@test "replay: a small answer that unpacks to a gigabyte is bounded" {
    head -c 1G /dev/zero | tr '\0' x | compressed bomb '400 Bad Request' text/plain gzip
    start_llm ./bomb
    [[ $(stat -c %s bomb) -lt 2000000 ]]
    limited=
    [[ $VARIANT == asan ]] || limited='ulimit -v 400000; '
    run_expect 1 sh -c "${limited}exec chat -N hello"
    stdout_empty
}

# ---- what is not tried again

@test "replay: no quota is final, and said" {
    printf '%s\n' 'status: 429' '' '{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}' >quota.http
    start_llm ./quota.http
    run_expect 5 chat -N --json hello
    stdout_has '"message":"HTTP 429: You exceeded your current quota (the account has no quota left: not tried again)","retryable":false'
    requests_are 1
}

@test "replay: errors say what to do: HTML, 404, 401, a key of a few letters" {
    printf '%s\n' 'status: 404' 'header: Content-Type: text/html' '' '<html><head><title>404 Not Found</title></head></html>' >page.http
    printf '%s\n' 'status: 404' '' '{"error":{"message":"The model `x` does not exist"}}' >model.http
    printf '%s\n' 'status: 502' '' '{"error":{"message":"try: ollama pull x"}}' >short.http
    start_llm ./page.http ./model.http ./short.http
    run_expect 1 chat -N hello
    stderr_is 'chat: HTTP 404: 404 Not Found (an HTML page) (is the base URL right? most end in /v1)'
    run_expect 1 chat -N hello
    stderr_is 'chat: HTTP 404: The model `x` does not exist (chathist models lists them)'
    OPENAI_API_KEY=ollama run_expect 5 chat --retries 0 -N hello
    stderr_is 'chat: HTTP 502: try: ollama pull x'
}

@test "replay: --models of a bare array, of an empty list; a base URL with the endpoint" {
    printf '%s\n' 'path: /v1/models' 'header: Content-Type: application/json' '' '[{"id":"a"},{"id":"b"}]' >bare.http
    start_llm ./bare.http --reply hi
    run_expect 0 chat --models
    stdout_is openai:a openai:b
    OPENAI_BASE_URL=$OPENAI_BASE_URL/chat/completions run_expect 0 chat -N hello
    stdout_is hi
    printf '%s\n' 'path: /v1/models' 'header: Content-Type: application/json' '' '{"data":[]}' >none.http
    start_llm ./none.http
    run_expect 0 chat --models
    stdout_empty
    stderr_is 'chat: the server lists no models'
}
