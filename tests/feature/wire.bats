#!/usr/bin/env bats
#
# chat against the bytes that servers send: every fixture (tests/unit/splits_test.c has them byte by byte and cut),
# the request, errors, time-outs. What a fixture itself says of exit code and answer is in its header.

# shellcheck disable=SC2034

load ../helper
load ../wire

FAMILY=openai MANY=120

# What the fixtures leave open: NAME EXIT ANSWER. None of these servers was offered a tool, so a call ends with 9.
more_expectations() {
    cat <<'END'
bad-json-first 7 ""
calls 9 "Let me see."
calls-bad-arguments 9 ""
calls-cut 7 ""
calls-no-arguments 9 ""
calls-no-id 9 ""
code-point-in-two-deltas 0 "a\ufffd\ufffdb"
gemini-calls 9 ""
gemini-calls-index-0 9 ""
not-http 4 ""
not-streamed-calls 9 ""
ollama-call 9 ""
refusal 6 "I can't help with that."
surrogate-pair-in-two-deltas 0 "a\ud83d\ude00b"
END
}

@test "wire: each fixture gives its exit code, its text, its error in one line, and what is stored" {
    expectations nothing >table
    ask_all table
    all_stored table
    finish_reasons_are normal stop length length not-streamed-length length content-filter content_filter \
        refusal content_filter no-finish stop no-done stop calls tool_calls gemini-calls tool_calls \
        cut error reset error vllm-error error bad-json error calls-cut error
}

@test "wire: what came of a stream that is cut at any byte is printed and stored" {
    use_history
    "$TESTS/tools/fake-llm" --body "$FIXTURES/openai/normal.http" >body
    for at in $(seq 1 37 $(($(grep -bo finish_reason body | tail -n 1 | cut -d: -f1) - 1))); do
        start_llm --set "close-after: $at" openai/normal
        run_expect 7 chat --retries 0 -q -N hello
        stderr_matches '^chat: answer is incomplete: (the stream ended early|the connection was closed)$'
        jq -j 'select(.role == "assistant") | .content' history.jsonl >stored
        printf '%s' "$(cat "$OUT")" >printed
        same 'printed and stored' printed stored
        rm history.jsonl
        kill "$LLM_PID"
    done
}

@test "wire: large events and many deltas" {
    use_history
    start_llm openai/big-event openai/many-deltas
    run_expect 0 chat -s big hello
    [[ $(($(wc -c <"$OUT"))) == 5242881 && $(tr -d 'x\n' <"$OUT" | wc -c) == 0 ]]
    run_expect 0 chat -s many hello
    [[ $(($(wc -c <"$OUT"))) == 50001 && $(tr ' ' '\n' <"$OUT" | grep -cx word) == 10000 ]]
    json_is history.jsonl 'select(.role == "assistant") | .content | length' 5242880 50000
}

@test "wire: the request" {
    start_llm --reply hi
    run_expect 0 chat hello
    run_expect 0 request 1
    stdout_json 'tojson' '{"model":"test-model","messages":[{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}'
    run_expect 0 head -n 1 "$RECORD/1.headers"
    stdout_is $'POST /v1/chat/completions HTTP/1.1\r'
    [[ $(request_header 1 content-type) == application/json ]]
    [[ $(request_header 1 accept) == text/event-stream ]]
    [[ $(request_header 1 authorization) == 'Bearer test-key-1' ]]
    [[ $(request_header 1 expect) == '' ]]
    [[ $(request_header 1 user-agent) == chathist* ]]
}

@test "wire: a base URL with slashes at its end, and a path" {
    start_llm --reply hi
    run_expect 0 chat --base-url "http://127.0.0.1:$LLM_PORT/a/b//" hello
    run_expect 0 head -n 1 "$RECORD/1.headers"
    stdout_is $'POST /a/b/chat/completions HTTP/1.1\r'
}

@test "wire: any text travels as it is" {
    start_llm --reply hi
    text=$'quote " back\\slash\ttab\r\nline \x01 \x7f \xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80 \xe2\x80\xae end  '
    run_expect 0 chat "$text"
    [[ $(request 1 | jq -j '.messages[0].content'; echo .) == "$text." ]]
    printf 'a\xff\xc3(\1b' >bytes
    run_expect 0 chat -N <bytes
    [[ $(request 2 | jq -c '.messages[0].content') == '"a\ufffd\ufffd(\u0001b"' ]] ||
        [[ $(request 2 | jq -c '.messages[0].content') == $'"a\xef\xbf\xbd\xef\xbf\xbd(\\u0001b"' ]]
}

@test "wire: -o sets fields of the request, as JSON or as text" {
    start_llm --reply hi
    run_expect 0 chat -o temperature=0.20 -o 'stop=["a","b"]' -o user=me -o 'note=a=b' -o big=12345678901234567890 \
        -o empty= -o t=true hello
    request 1 >body
    json_is body '[.stop[1], .user, .note, .empty, .t] | tojson' '["b","me","a=b","",true]'
    grep -q '"temperature":0.20[,}]' body
    grep -q '"big":12345678901234567890[,}]' body
    run_expect 0 chat --dry-run -o stream=false hello
    stdout_json '.stream, has("stream_options")' false false
    run_expect 0 chat -o model=other -o stream_options=null hello
    request 2 >body
    json_is body '.model, .stream_options' other null
    [[ $(grep -o '"model"' body | wc -l) == 1 ]]
    for bad in temperature =1 ''; do
        run_expect 2 chat -o "$bad" hello
        stderr_has "chat: bad value '$bad' for --option"
    done
    requests_are 2
}

@test "wire: --no-stream asks for one piece and prints it" {
    use_history
    start_llm --reply 'two words' openai/normal
    run_expect 0 chat --no-stream hello
    stdout_is 'two words'
    request 1 >body
    json_is body '.stream, has("stream_options")' false false
    [[ $(request_header 1 accept) == application/json ]]
    json_is history.jsonl 'select(.role == "assistant") | .content, .finish_reason, .usage.output_tokens' 'two words' stop 2
    # A server that streams all the same.
    run_expect 0 chat -N --no-stream hello
    stdout_is 'Hello, world.'
}

# written_once COMMAND...: runs it with a pipe for its output, which it writes with one call; `got` has the output.
written_once() {
    run_expect 0 sh -c 'strace -qq -o trace -e trace=write,writev,pwritev2 "$@" | cat >got' sh "$@"
    [[ $(grep -cE '(write|writev|pwritev2)\(1, .* = [1-9]' trace) == 1 ]] ||
        fail "not one write: $*" "$(head trace | cut -c 1-100)"
}

@test "wire: --no-stream writes an answer and its newline in one call" {
    need_strace
    CHAT_PROVIDER='echo' written_once chat -1 -q --no-stream 'n 1'
    [[ $(<got) == *'[1 message]' ]]
    # A server that answers in one piece, and one that streams all the same.
    long=$(head -c 300000 /dev/zero | tr '\0' x)
    { printf 'header: Content-Type: application/json\n\n' && printf '{"choices":[{"message":{"content":"%s"}}]}' "$long"; } >long.http
    start_llm --reply 'two words' openai/normal ./long.http
    written_once chat -1 --no-stream hello
    printf 'two words\n' | cmp - got
    written_once chat -1 --no-stream hello
    printf 'Hello, world.\n' | cmp - got
    # Longer than the buffer of the output, to a file.
    written_once sh -c 'exec chat -1 -q --no-stream hello >to'
    printf '%s\n' "$long" | cmp - to
}

@test "wire: --no-stream writes the texts of a turn that calls tools in one call" {
    need_strace
    put_tool f 'echo ok'
    printf 'header: Content-Type: application/json\n\n' | tee call.http >end.http
    printf '%s' '{"choices":[{"finish_reason":"tool_calls","message":{"content":"I look.","tool_calls":[' \
        '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}' >>call.http
    printf '%s' '{"choices":[{"finish_reason":"stop","message":{"content":"It is so."}}]}' >>end.http
    start_llm ./call.http ./end.http
    written_once chat -1 -q --yes -T ./f --no-stream hello
    printf 'I look.\nIt is so.\n' | cmp - got
    # With events, each is a line that is written at once.
    start_llm ./call.http ./end.http
    run_expect 0 sh -c 'strace -qq -o trace -e trace=write,writev,pwritev2 chat -1 -q --yes -T ./f --no-stream --json hello | cat >got'
    [[ $(grep -cE '(write|writev|pwritev2)\(1, .* = [1-9]' trace) == "$(wc -l <got)" ]]
}

@test "wire: usage is stored" {
    use_history
    start_llm openai/usage openai/usage-last-chunk openai/usage-every-chunk openai/normal
    for s in a b c d; do run_expect 0 chat -s $s hello; done
    for f in usage usage-last-chunk usage-every-chunk; do
        grep -o '"prompt_tokens":[0-9]*,"completion_tokens":[0-9]*' "$FIXTURES/openai/$f.http" | tail -n 1 |
            sed 's/prompt/input/; s/completion/output/; s/.*/{&}/'
    done | sed '2s/}/,"cache_read_tokens":8}/' >wanted
    jq -c 'select(.role == "assistant") | .usage // empty | del(.raw)' history.jsonl >got
    same 'usage' wanted got
    [[ $(($(wc -l <got))) == 3 ]]
}

@test "wire: tool calls are stored in their order, also without id and with invalid arguments" {
    use_history
    start_llm openai/calls openai/calls-bad-arguments openai/calls-no-arguments openai/calls-no-id openai/gemini-calls \
        openai/not-streamed-calls openai/calls-cut
    for s in 1 2 3 4 5 6; do
        run_expect 9 chat -s $s hello
        stderr_matches "^chat: the model called the tool '[a-z_]+', which it was not given\$"
    done
    run_expect 7 chat -s 7 hello
    calls() {
        jq -c "select(.session_id == \"$1\" and .role == \"assistant\") | .tool_calls" history.jsonl
    }
    [[ $(calls 1) == '[{"id":"call_a","name":"get_weather","args":{"city":"Paris"}},{"id":"call_b","name":"get_time","args":{"zone":"UTC"}}]' ]]
    [[ $(calls 2) == '[{"id":"call_a","name":"get_weather","args":"{\"city\": Paris"}]' ]]
    [[ $(calls 3) == '[{"id":"call_a","name":"get_time","args":{}},{"id":"call_b","name":"get_date","args":{}}]' ]]
    [[ $(calls 4 | jq -r '.[].id' | sort -u | grep -c .) == $(calls 4 | jq length) ]]
    [[ $(calls 5 | jq length) -ge 2 ]]
    [[ $(calls 6) == '[{"id":"call_1","name":"get_weather","args":{"city":"Paris"}}]' ]]
    [[ $(calls 7 | jq -c '.[0].args') == '"{\"ci"' ]]
}

# events_end EXIT RETRYABLE: of chat --json: the code that it ends with, and its error event the last one.
events_end() {
    tail -n 1 "$OUT" >last
    json_is last '.type, .code, .retryable' error "$1" "$2" || return 1
    jq -r '"chat: " + .message' last >wanted
    same 'stderr and the event' wanted "$ERR"
}

@test "wire: JSON that is nested too deeply is called that" {
    deep=$(printf '[%.0s' {1..600} && printf ']%.0s' {1..600})
    printf '%s\n' 'status: 200' '' "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}" '' \
        "data: {\"choices\":[],\"more\":$deep}" '' >deep.http
    printf '%s\n' 'header: Content-Type: application/json' '' "{\"choices\":[],\"more\":$deep}" >whole.http
    start_llm ./deep.http ./whole.http openai/normal
    run_expect 7 chat -N hello
    stdout_is Hi
    stderr_is 'chat: answer is incomplete: an event is nested more than 512 levels deep'
    run_expect 7 chat -N --no-stream --retries 0 hello
    stderr_is 'chat: answer is incomplete: it is nested more than 512 levels deep'
    echo "[{\"role\":\"user\",\"content\":\"a\",\"x\":$deep}]" >given.json
    run_expect 2 chat --messages given.json next
    stderr_is "chat: skipped 1 bad entry in 'given.json': nested too deeply" \
        "chat: no usable message in 'given.json'"
    { echo '{"role":"user","content":"a"}' && echo "{\"role\":\"user\",\"content\":\"a\",\"x\":$deep}"; } |
        run_expect 0 chat --messages - next
    stderr_is 'chat: skipped 1 bad entry on standard input: nested too deeply'
    # What is no JSON for another reason is not.
    echo '[[' | run_expect 2 chat --messages - next
    stderr_is 'chat: skipped 1 bad entry on standard input' 'chat: no usable message on standard input'
    echo "{\"x\":$deep}" >bad.jsonl
    run_expect 1 hist-check --history bad.jsonl
    stdout_line 1 'bad.jsonl:1: nested too deeply'
}

@test "wire: Mistral gets ids of calls of nine letters and digits, the same each time, none twice" {
    use_history
    {
        hist_line s user hello
        hist_line s assistant '' '' '{"tool_calls":[{"id":"call_abc","name":"f","args":{}},{"id":"abcDEF123","name":"g","args":{}},
            {"id":"call_abc","name":"h","args":{}}]}'
        hist_line s tool one '' '{"tool_call_id":"call_abc"}'
        hist_line s tool two '' '{"tool_call_id":"abcDEF123"}'
        hist_line s tool three '' '{"tool_call_id":"call_abc"}'
        hist_line s assistant 'Well.' '' '{"tool_calls":[{"id":"toolu_01A-b_c","name":"f","args":{}},{"id":"abcDEF123","name":"f","args":{}}]}'
        hist_line s tool four '' '{"tool_call_id":"abcDEF123"}'
    } >history.jsonl
    remember history.jsonl
    export MISTRAL_API_KEY=k
    run_expect 0 chat --dry-run -s s -m mistral:m next
    jq -r '.messages[].tool_calls // [] | .[].id' "$OUT" >ids
    jq -r '.messages[] | select(.role == "tool") | .tool_call_id' "$OUT" >results
    same 'each call has its result' ids results
    [[ $(grep -cE '^[a-zA-Z0-9]{9}$' ids) == 5 && $(sort -u ids | wc -l) -eq 5 ]] || fail 'odd ids' "$(cat ids)"
    [[ $(sed -n 2p ids) == abcDEF123 ]] || fail 'an id that is good is kept' "$(cat ids)"
    stdout_json '.messages[] | select(.role == "tool") | .content' one two three 'no result is known' four
    cp ids before
    run_expect 0 chat --dry-run -s s -m mistral:m 'something else'
    jq -r '.messages[].tool_calls // [] | .[].id' "$OUT" >ids
    same 'the ids of another request' before ids
    unchanged history.jsonl
    # Its own, and those of a loop that another server's id begins.
    put_tool 'time' 'echo noon' get_time
    start_llm openai/deepseek-call openai/normal
    CHAT_BASE_URL=$OPENAI_BASE_URL run_expect 0 chat -s t -m mistral:m --yes -T ./time 'what time is it'
    json_is "$RECORD/2.json" '.messages[1].tool_calls[0].id == .messages[2].tool_call_id, (.messages[2].tool_call_id | test("^[a-zA-Z0-9]{9}$"))' true true
    json_is history.jsonl 'select(.session_id == "t") | .tool_call_id // empty' call_0
    # Others get what they gave.
    OPENAI_API_KEY=k run_expect 0 chat --dry-run -s t -m openai:m next
    stdout_json '.messages[].tool_call_id // empty' call_0
}

@test "wire: --json ends with the error, its code, its message, and whether to try again" {
    start_llm openai/http-401 openai/http-429 openai/http-400-context openai/cut openai/http-404 openai/nothing
    for want in '3 false' '5 true' '6 false' '7 false' '1 false' '4 true'; do
        run_expect "${want% *}" chat --retries 0 -N --json hello
        stdout_json 'select(.type == "session_id" or .type == "error") | .type' session_id error
        # shellcheck disable=SC2086
        events_end $want
    done
    run_expect 4 chat --retries 0 -N --json --base-url "http://127.0.0.1:$(unused_port)/v1" hello
    events_end 4 true
}

@test "wire: nobody listens" {
    use_history
    port=$(unused_port)
    export OPENAI_API_KEY=test-key-1 CHAT_MODEL=m
    run_expect 4 chat --retries 0 --base-url "http://127.0.0.1:$port/v1" hello
    stdout_empty
    stderr_is "chat: cannot connect to '127.0.0.1:$port': Connection refused"
    json_is history.jsonl '.role + ":" + .content, .finish_reason' user:hello null assistant: error
}

# Which limit leaves none for the connection alone depends on the system. The leak sanitizer needs descriptors, too, and
# waits for them without end.
@test "wire: a connection that cannot be made for want of descriptors says so" {
    start_llm --reply hi
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
    for limit in 5 6 7 8; do
        bash -c 'ulimit -n "$0"; exec chat --no-store --retries 0 hello' "$limit" >>out 2>>err 3>&- 4>&- || :
    done
    ERR=err
    stderr_has "chat: cannot connect to '127.0.0.1:$LLM_PORT': Too many open files"
    stderr_lacks "Couldn't connect"
}

@test "wire: URLs that are none" {
    use_history
    export OPENAI_API_KEY=test-key-1 CHAT_MODEL=m
    for url in ftp://127.0.0.1/v1 file:///etc/passwd nonsense://x 'http://' 'http:///v1' 127.0.0.1 ''; do
        run_expect 2 chat --base-url "$url" hello
        stdout_empty
        one_line_of_stderr
    done
}

@test "wire: a connection that is never established ends at --connect-timeout" {
    start_llm --no-accept
    took_less 8000 run_expect 4 chat --retries 0 --connect-timeout 1s hello
    stdout_empty
    stderr_is "chat: cannot connect to '127.0.0.1:$LLM_PORT': no connection within 1 s (connect time-out)"
}

@test "wire: silence before any answer ends at --idle-timeout" {
    use_history
    start_llm --accept-silent
    took_less 8000 run_expect 4 chat --idle-timeout 1s hello
    stdout_empty
    stderr_is "chat: no answer from '127.0.0.1:$LLM_PORT': nothing came within 1 s (idle time-out)"
    # Who has waited that long does not wait twice more.
    requests_are 1
    json_is history.jsonl '[.role, .content, .finish_reason] | tojson' '["user","hello",null]' '["assistant","","error"]'
}

@test "wire: silence in the middle keeps what came" {
    use_history
    start_llm openai/stall
    took_less 8000 run_expect 7 chat --idle-timeout 1s hello
    stdout_is 'Hello, world.'
    stderr_is 'chat: answer is incomplete: nothing came within 1 s (idle time-out)'
    json_is history.jsonl '[.role, .content, .finish_reason] | tojson' '["user","hello",null]' \
        '["assistant","Hello, world.","error"]'
}

@test "wire: --first-byte-timeout is a limit of its own, from the end of the request to the first of the answer" {
    use_history
    start_llm --accept-silent
    took_less 8000 run_expect 4 chat --first-byte-timeout 1s hello
    stdout_empty
    stderr_is "chat: no answer from '127.0.0.1:$LLM_PORT': nothing came within 1 s (first-byte time-out)"
    requests_are 1
    # A head alone is no answer.
    printf '%s\n' raw 'eol: crlf' 'end: stall' '' 'HTTP/1.1 200 OK' 'Content-Type: text/event-stream' '' >head.http
    start_llm ./head.http
    took_less 8000 run_expect 4 chat --first-byte-timeout 1s hello
    stderr_has 'nothing came within 1 s (first-byte time-out)'
    # A slow beginning, then pieces that come fast; and the other way round.
    start_llm --set 'delay-headers: 3s' openai/normal
    run_expect 0 chat -N --idle-timeout 2s --first-byte-timeout 20s hello
    run_expect 0 chat -N --idle-timeout 2s --first-byte-timeout 0 hello
    run_expect 4 chat -N --idle-timeout 2s hello
    stderr_has '(idle time-out)'
    start_llm --set 'chunk: event' --set 'delay: 600ms' openai/normal
    run_expect 0 chat -N --first-byte-timeout 2s hello
    start_llm openai/stall
    run_expect 7 chat -N --first-byte-timeout 20s --idle-timeout 2s hello
    stderr_has '(idle time-out)'
}

# opening_of FAMILY: the beginning of a stream, without text.
opening_of() {
    case $1 in
    openai) printf '%s\n' ': working' '' 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}' '' ;;
    anthropic)
        printf 'event: %s\ndata: %s\n\n' \
            message_start '{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":1}}}' \
            content_block_start '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}' \
            ping '{"type":"ping"}'
        ;;
    openai-responses)
        printf 'event: %s\ndata: {"type":"%s","output_index":0%s}\n\n' \
            response.created{,} ',"response":{"status":"in_progress","output":[]}' \
            response.output_item.added{,} ',"item":{"type":"message","role":"assistant","content":[]}'
        ;;
    ollama) printf '%s\n' '{"message":{"role":"assistant","content":""},"done":false}' ;;
    blanks) printf '\n\n' ;;
    esac
}

@test "wire: comments, pings and empty parts do not end --first-byte-timeout" {
    for FAMILY in openai anthropic openai-responses ollama blanks; do
        type=text/event-stream
        [[ $FAMILY != ollama ]] || type=application/x-ndjson
        [[ $FAMILY != blanks ]] || type=application/json
        { printf '%s\n' 'end: stall' "header: Content-Type: $type" '' && opening_of "$FAMILY"; } >opening.http
        start_family ./opening.http
        took_less 8000 run_expect 4 chat -1 --first-byte-timeout 1s --idle-timeout 50s hello
        stderr_is "chat: no answer from '127.0.0.1:$LLM_PORT': no text came within 1 s (first-byte time-out)"
        # Without the option each of them counts.
        run_expect 7 chat -1 --idle-timeout 1s --retries 0 hello
        stderr_is 'chat: answer is incomplete: nothing came within 1 s (idle time-out)'
        unset OLLAMA_HOST
    done
}

@test "wire: a long silence before the first text is not the idle time-out" {
    printf '%s\n' 'chunk: event' 'delay: 2s' 'header: Content-Type: text/event-stream' '' >slow.http
    opening_of openai >>slow.http
    printf '%s\n' 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}' '' >>slow.http
    start_llm ./slow.http
    run_expect 0 chat -1 --retries 0 --first-byte-timeout 60s --idle-timeout 1s hello
    stdout_is hi
}

@test "wire: an answer that takes longer than the idle time-out, without a pause of that length, is none" {
    start_llm --set 'chunk: event' --set 'delay: 600ms' openai/normal
    run_expect 0 chat --idle-timeout 2s hello
    stdout_is 'Hello, world.'
}

@test "wire: behind the finish reason nothing is waited for long, whatever the idle time-out is" {
    printf '%s\n' 'end: stall' '' 'data: {"choices":[{"delta":{"content":"whole"}}]}' '' \
        'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}' '' >unended.http
    start_llm ./unended.http
    for limit in 5m 0; do
        RUN_LIMIT=20 run_expect 0 chat -N --idle-timeout "$limit" hello
        stdout_is whole
        stderr_empty
    done
    # The usage comes later, and so do the pieces of a server that sends its reason with each of them.
    printf '%s\n' 'mark: |' 'delay: 300ms' '' 'data: {"choices":[{"delta":{"content":"whole"},"finish_reason":"stop"}]}' \
        '' '|data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}' '' >late-usage.http
    start_llm ./late-usage.http
    run_expect 0 chat -N -u hello
    stdout_is whole
    stderr_is 'input_tokens=3 output_tokens=4'
    printf '%s\n' 'mark: |' 'delay: 2500ms' '' 'data: {"choices":[{"delta":{"content":"one"},"finish_reason":"stop"}]}' \
        '' 'data: {"choices":[{"delta":{"content":" two"},"finish_reason":"stop"}]}' '' \
        '|data: {"choices":[{"delta":{"content":" three"},"finish_reason":"stop"}]}' '' >all-along.http
    start_llm ./all-along.http
    run_expect 0 chat -N hello
    stdout_is 'one two three'
}

# ---- once more

# error STATUS [HEADER]...: a fixture with that status and those headers, in the file STATUS.http.
error() {
    {
        printf 'status: %s\n' "$1"
        [[ $# -lt 2 ]] || printf 'header: %s\n' "${@:2}"
        printf '\n{"error":{"message":"not now"}}\n'
    } >"$1.http"
}

@test "wire: a busy server is asked again, with the same request, and the prompt is stored once" {
    use_history
    for status in 408 409 429 500 503 529; do
        error $status 'retry-after-ms: 5'
        start_llm ./$status.http ./$status.http --reply hi
        run_expect 0 chat -s "$status" hello
        stdout_is hi
        stderr_empty
        requests_are 3
        cmp "$RECORD/1.json" "$RECORD/3.json"
        json_is history.jsonl "select(.session_id == \"$status\") | .role + \":\" + .content" user:hello assistant:hi
    done
}

@test "wire: a server that refuses stream_options is asked without them, at once and once" {
    use_history
    for fixture in "$FIXTURES"/openai-stream-options/*.http; do
        start_llm "$fixture" openai/normal
        run_expect 0 chat --retries 0 -N -u -o temperature=1 hello
        stdout_is 'Hello, world.'
        stderr_matches "^chat: the server refuses 'stream_options[._a-z]*': asking without it$" \
            '^input_tokens=unknown output_tokens=unknown$'
        requests_are 2
        [[ $(request 1 | jq -c .stream_options) == '{"include_usage":true}' ]]
        same 'the second request' <(request 1 | jq 'del(.stream_options)') <(request 2 | jq .)
        # What comes after it is judged as always.
        start_llm "$fixture" openai/http-429 --reply hi
        run_expect 5 chat --retries 0 -N hello
        requests_are 2
        start_llm "$fixture" "$fixture"
        run_expect 1 chat -N hello
        stderr_matches '^chat: HTTP 4(00|22): '
        requests_are 2
        # Who asks for them himself is told; without a stream there are none.
        start_llm "$fixture" --reply hi
        run_expect 1 chat -N -o 'stream_options={"include_usage":true}' hello
        run_expect 0 chat -N --no-stream hello
        requests_are 2
    done
    local asked=() i
    for ((i = 0; i < 25; i++)); do asked+=(hello); done
    json_is history.jsonl 'select(.role == "user") | .content' "${asked[@]}"
    # Another refusal is none of these.
    start_llm openai/http-400 --reply hi
    run_expect 1 chat -N hello
    requests_are 1
    # Mistral is known not to want them.
    start_llm openai/usage
    MISTRAL_API_KEY=k run_expect 0 chat -N -u --base-url "$OPENAI_BASE_URL" -m mistral:m hello
    stderr_matches '^input_tokens=[0-9]+ output_tokens=[0-9]+$'
    [[ $(request 1 | jq -c .stream_options) == null ]]
}

@test "wire: a server that refuses the schema gets it in the older form, then in words alone" {
    use_history
    echo '{"type":"object","properties":{"n":{"type":"integer"}}}' >schema
    for fixture in "$FIXTURES"/openai-response-format/*.http; do
        start_llm "$fixture" --reply '{"n":1}'
        run_expect 0 chat --retries 0 -N -S terse --schema schema hello
        stdout_is '{"n":1}'
        stderr_empty
        requests_are 2
        [[ $(request 1 | jq -r .response_format.type) == json_schema ]]
        [[ $(request 2 | jq -c .response_format) == \
            '{"type":"json_object","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}' ]]
        [[ $(request 2 | jq -r '.messages[0].content') == terse*JSON\ Schema:*'"integer"'* ]]
        # Not that either.
        start_llm "$fixture" "$fixture" --reply '{"n":2}'
        run_expect 0 chat --retries 0 -N --schema schema hello
        stdout_is '{"n":2}'
        requests_are 3
        [[ $(request 3 | jq -c '[.response_format, .messages[0].role]') == '[null,"system"]' ]]
        same 'but for the format' <(request 2 | jq 'del(.response_format)') <(request 3 | jq .)
        # With nothing left to leave out it is an error as any other.
        start_llm "$fixture" "$fixture" "$fixture" --reply hi
        run_expect "$(sed -n 's/^exit: //p' "$fixture")" chat --retries 0 -N --schema schema hello
        requests_are 3
        # Who asks for it himself is told.
        start_llm "$fixture" --reply hi
        run_expect "$(sed -n 's/^exit: //p' "$fixture")" \
            chat --retries 0 -N -o 'response_format={"type":"json_object"}' hello
        requests_are 1
    done
    # One field after the other.
    start_llm "$FIXTURES"/openai-stream-options/azure.http \
        "$FIXTURES"/openai-response-format/deepseek.http --reply '{"n":3}'
    run_expect 0 chat --retries 0 -N --schema schema hello
    stdout_is '{"n":3}'
    [[ $(request 3 | jq -c '[.stream_options, .response_format.type]') == '[null,"json_object"]' ]]
}

@test "wire: --retries says how often, 0 never" {
    error 503 'Retry-After: 0'
    for n in 0 1 2 5; do
        start_llm ./503.http
        run_expect 5 chat --retries $n -N hello
        stderr_is 'chat: HTTP 503: not now'
        requests_are $((n + 1))
    done
    start_llm ./503.http
    run_expect 5 chat -N hello
    requests_are 3
    for bad in x -1 1.5 '' 99999999999999999999; do
        run_expect 2 chat --retries="$bad" hello
        stderr_has "bad value '$bad' for --retries"
    done
}

# The forms of a wait are in tests/unit/exchange_test.c.
@test "wire: the server says when: in a header, in the body of an error, in an event of a stream; not above the limit" {
    # says TEXT [ARGUMENT]...: a turn with two requests says that it waits that long.
    says() {
        start_llm ./error.http "${FAMILY-openai}/normal"
        run_expect 0 chat -v -N "${@:2}" hello || return 1
        requests_are 2 || return 1
        stderr_matches ": trying again in $1 s \\(1\\)\$"
    }
    printf '%s\n' 'status: 429' 'header: Retry-After: 0.15' '' '{"error":{"message":"not now"}}' >error.http
    says 0.1
    printf '%s\n' 'status: 429' '' 'Please try again in 120ms.' >error.http
    says 0.1
    printf 'header: Content-Type: text/event-stream\n\ndata: {"error":{"code":429,"message":"slowly","retry_after_ms":130}}\n\n' >error.http
    says 0.1
    printf '%s\n' 'header: Content-Type: text/event-stream' '' 'event: response.failed' \
        'data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Please try again in 140ms."}}}' '' >error.http
    FAMILY=openai-responses
    says 0.1 -m openai-responses:m
    printf '%s\n' 'status: 429' '' 'Your quota will reset after 8h12m33s.' >error.http
    start_llm ./error.http
    run_expect 5 chat -N hello
    stdout_empty
    stderr_is 'chat: HTTP 429: Your quota will reset after 8h12m33s. (the server asks to wait for 29553 s)'
    requests_are 1
}

@test "wire: a lost connection is made again, and a server that comes late is reached" {
    start_llm openai/nothing openai/nothing --reply hi
    run_expect 0 chat hello
    stdout_is hi
    requests_are 3
    # Behind the head, and behind a sign of life: closed, reset, ended.
    for end in close reset clean; do
        printf '%s\n' "end: $end" '' '' >head.http
        printf '%s\n' "end: $end" '' ': ping' '' >ping.http
        start_llm ./head.http ./ping.http --reply hi
        run_expect 0 chat -N hello
        stdout_is hi
        stderr_empty
        requests_are 3
        start_llm ./ping.http
        run_expect 7 chat -N --retries 1 hello
        one_line_of_stderr
        stderr_has 'chat: answer is incomplete: '
        requests_are 2
    done
    printf '%s\n' 'end: close' '' 'data: {"choices":[{"delta":{"role":"assistant"}}]}' '' >role.http
    start_llm ./role.http --reply hi
    run_expect 0 chat -N hello
    requests_are 2
    # A time-out is not repeated, nor is an answer of which something came, or one of another kind.
    start_llm anthropic/normal
    run_expect 7 chat -N hello
    requests_are 1
    printf '%s\n' 'end: stall' '' ': ping' '' >silent.http
    start_llm ./silent.http
    run_expect 7 chat -N --idle-timeout 1s hello
    stderr_is 'chat: answer is incomplete: nothing came within 1 s (idle time-out)'
    requests_are 1
    start_llm openai/reasoning-only
    run_expect 7 chat -N hello
    requests_are 1
    start_llm --reply hi
    # shellcheck disable=SC2031
    export LATE=$LLM_PORT
    kill "$LLM_PID"
    wait "$LLM_PID" 2>/dev/null || :
    cat >late.py <<'END'
import http.server, os, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = b'{"choices":[{"message":{"content":"late"}}]}'
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
time.sleep(.2)
http.server.HTTPServer(('127.0.0.1', int(os.environ['LATE'])), Handler).handle_request()
END
    python3 late.py 2>/dev/null 3>&- 4>&- &
    BACKGROUND+=("$!")
    # However long Python takes to begin.
    run_expect 0 chat -N --retries 9 hello
    stdout_is late
}

@test "wire: the wait is told on a terminal and with -v, and as an event" {
    error 429 'Retry-After: 0.2'
    hint='chat: HTTP 429: not now: trying again in 0.2 s (1)'
    start_llm ./429.http --reply hi
    run_expect 0 chat -v -N hello
    stderr_has "$hint"
    start_llm ./429.http --reply hi
    run_expect 0 on_tty --fds 2 chat -N hello
    stdout_has "$hint"
    start_llm ./429.http --reply hi
    run_expect 0 on_tty --fds 2 chat -q -N hello
    stdout_lacks 'trying again'
    start_llm ./429.http --reply hi
    run_expect 0 chat --json -N hello
    stderr_empty
    stdout_json 'select(.type == "notice") | .message' "${hint#chat: }"
    stdout_json '.type' session_id notice text usage 'done'
}

@test "wire: wrong time-outs" {
    use_echo
    for option in --connect-timeout --first-byte-timeout --idle-timeout; do
        for bad in x -1 1. .5 1.5.5 '' 99999999999999999999; do
            run_expect 2 chat "$option=$bad" hello
            stderr_has "bad value '$bad' for $option"
        done
        for good in 0 1.5 1.5s; do
            run_expect 0 chat "$option=$good" hello
        done
    done
}

@test "wire: an error without end" {
    printf '%s\n' 'status: 500' 'transfer: chunked' 'mark: |' 'repeat: forever' 'fill: @ 4000 on and ' '' \
        'an error |that goes @' >body.http
    start_llm ./body.http
    took_less 30000 run_expect 5 chat --retries 0 hello
    one_line_of_stderr
    stderr_has 'HTTP 500: an error'
}

@test "wire: --models lists what the server offers" {
    start_llm --models b,a:1 --reply hi
    run_expect 0 chat --models
    stdout_is openai:b openai:a:1
    stderr_empty
    run_expect 0 chat --models -p echo
    stdout_is echo:echo
    run_expect 2 chat --models hello
    stdout_empty
    stderr_is "chat: --models takes no prompt (see 'chat --help')"
    # What only a turn goes by is not taken and ignored.
    for args in '-s x' -N -c '-S x' '--var a=b' '-f f' '--messages -' --regenerate --edit '-o a=b' '-T t' --yes \
        '--max-iterations 1' '--tool-timeout 1s' --no-stream --no-store --dry-run '--retries 1' '--schema f' -x --no-markdown --reasoning -u; do
        # shellcheck disable=SC2086
        run_expect 2 chat --models $args
        stdout_empty
        stderr_matches "^chat: --[a-z-]+ cannot be given with --models \\(see 'chat --help'\\)\$"
    done
    run_expect 0 chat --models -v --no-stdin -m openai:b --connect-timeout 50s --first-byte-timeout 50s --idle-timeout 50s
    stdout_is openai:b openai:a:1
}

@test "wire: --models --cached: the list of before, a new one when there is none or it is old" {
    start_llm --models b,a:1 --reply hi
    rm -r "$HOME/.cache"
    run_expect 0 chat --models --cached
    stdout_is openai:b openai:a:1
    file=$HOME/.cache/chathist/models/openai@127.0.0.1:$LLM_PORT%v1
    is cache "$file" b a:1
    [[ $(stat -c %a "$file" "${file%/*}" | xargs) == '600 700' ]]
    echo other >"$file"
    run_expect 0 chat --models --cached --json
    stdout_is '{"type":"model","model":"openai:other"}'
    requests_are 1
    # Another server at the same address has a list of its own.
    echo mine >"${file%?v1}%team%v1"
    run_expect 0 chat --models --cached --base-url "http://127.0.0.1:$LLM_PORT/team/v1/"
    stdout_is openai:mine
    # Who does not say --cached asks the server, and so does a list that is a day old.
    run_expect 0 chat --models
    stdout_is openai:b openai:a:1
    echo other >"$file"
    touch -d '25 hours ago' "$file"
    run_expect 0 chat --models --cached
    stdout_is openai:b openai:a:1
    requests_are 3
    # Another provider's, another server's.
    run_expect 0 chat --models --cached -p ollama --base-url "$OPENAI_BASE_URL"
    stdout_is ollama:b ollama:a:1
    run_expect 0 chat --models --cached -p echo
    stdout_is echo:echo
    requests_are 4
    # A cache that cannot be is none.
    rm -r "$HOME/.cache"
    echo text >"$HOME/.cache"
    run_expect 0 chat --models --cached
    stdout_is openai:b openai:a:1
    stderr_empty
    XDG_CACHE_HOME=$WORK/cache run_expect 0 chat --models
    [[ -e $WORK/cache/chathist/models/openai@127.0.0.1:$LLM_PORT%v1 ]]
    run_expect 2 chat --cached hello
    stderr_is "chat: --cached can only be given with --models (see 'chat --help')"
}

@test "wire: --models --cached does not wait for ever" {
    printf '%s\n' 'path: /v1/models' 'transfer: chunked' 'mark: |' 'repeat: forever' 'delay: 100ms' '' '| ' >slow.http
    start_llm ./slow.http --reply hi
    took_less 15000 run_expect 4 chat --models --cached
    stdout_empty
}

@test "wire: --models that fails" {
    printf '%s\n' 'path: /v1/models' 'status: 401' '' '{"error":{"message":"wrong key test-key-1"}}' >denied.http
    start_llm ./denied.http --reply hi
    run_expect 3 chat --models
    stdout_empty
    stderr_is 'chat: HTTP 401: wrong key *** (key from OPENAI_API_KEY)'
    run_expect 4 chat --models --base-url "http://127.0.0.1:$(unused_port)/v1"
    one_line_of_stderr
    printf '%s\n' 'path: /v1/models' '' '{"error":{"message":"no list for test-key-1","code":401}}' >denied.http
    start_llm ./denied.http --reply hi
    run_expect 3 chat --models
    stdout_empty
    stderr_is 'chat: server error 401: no list for ***'
}

@test "wire: a server that repeats the key in its answer" {
    printf '%s\n' '# The key comes in two pieces.' '' \
        'data: {"choices":[{"index":0,"delta":{"content":"key sk-sec"},"finish_reason":null}]}' '' \
        'data: {"choices":[{"index":0,"delta":{"content":"ret-1 it is"},"finish_reason":"stop"}]}' '' \
        'data: [DONE]' '' >echoed.http
    start_llm ./echoed.http ./echoed.http
    OPENAI_API_KEY=sk-secret-1 run_expect 0 chat --history h.jsonl hello
    stdout_is 'key *** it is'
    run_expect 1 grep -F sk-secret-1 h.jsonl
    OPENAI_API_KEY=sk-secret-1 run_expect 0 chat --history h.jsonl --json hello
    stdout_has '*** it is'
    stdout_lacks sk-sec
}

@test "wire: a server that repeats the key and a secret header in the names of models" {
    start_llm --models 'is-sk-secret-1,not-sK-secret-1,has-s3cret-value-1' --reply hi
    OPENAI_API_KEY=sk-secret-1 run_expect 0 chat --models --header 'X-Token: s3cret-value-1'
    stdout_is "$(printf '%s\n' openai:is-*** openai:not-sK-secret-1 openai:has-***)"
    run_expect 1 grep -rF -e sk-secret-1 -e s3cret-value-1 "$HOME/.cache"
}

@test "wire: a placeholder instead of a key is a word of the answer" {
    start_llm --reply 'Start lm-studio, then |--------|'
    OPENAI_API_KEY=lm-studio run_expect 0 chat --history h.jsonl hello
    stdout_is 'Start lm-studio, then |--------|'
}
