#!/usr/bin/env bats
#
# fake-llm, the scripted model server, seen by curl; and the fixtures.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2154

load ../helper

ASK='{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}'

# post [OPTION]...: one request, its body $ASK; curl's output.
post() {
    curl -sS --max-time 20 "$@" -d "$ASK" "http://127.0.0.1:$LLM_PORT/v1/chat/completions"
}

# text of a stream, put together
deltas() {
    sed -n 's/^data: {/{/p' | jq -j '.choices[0].delta.content // empty'
}

# fixture DIRECTIVE... [BODY on stdin]: a fixture file, its path in $made
fixture() {
    made=$BATS_TEST_TMPDIR/made.http
    {
        printf '%s\n' "$@" ''
        cat
    } >"$made"
}

# now in milliseconds
now() {
    date +%s%3N
}

@test "fake-llm: prints its port, and ends with its parent" {
    run_expect 0 bash -c '"$1/tools/fake-llm" --reply hi >port & while [[ ! -s port ]]; do sleep 0.02; done; echo $!' - "$TESTS"
    pid=$(cat "$OUT")
    port=$(cat port)
    [[ $port -gt 1024 ]]
    wait_for_gone() { ! kill -0 "$pid" 2>/dev/null; }
    wait_for wait_for_gone
    run_expect 7 curl -s "http://127.0.0.1:$port/"
}

@test "fake-llm: wrong arguments are told, with status 2" {
    run_expect 2 "$TESTS/tools/fake-llm" --nonsense
    stderr_is "fake-llm: '--nonsense': there is no such option"
    run_expect 2 "$TESTS/tools/fake-llm" --reply
    stderr_is "fake-llm: '--reply': it needs a value"
    run_expect 2 "$TESTS/tools/fake-llm" nonsense
    stderr_is "fake-llm: 'nonsense': there is no such file"
    for line in 'nonsense: 1' 'chunk: x' 'end: never' 'delay: 5h' 'header: nothing' 'chomp: 1' 'status: abc'; do
        run_expect 2 "$TESTS/tools/fake-llm" --set "$line"
        stderr_is "fake-llm: '$line': cannot obey '$line'"
    done
    fixture 'escape: %' <<<'100% of it'
    run_expect 2 "$TESTS/tools/fake-llm" "$made"
    stderr_has "begins no escape"
}

@test "fake-llm: --reply streams a word at a time, with usage when asked" {
    start_llm --reply $'two words\n  ünd "more" \\'
    run_expect 0 post -i
    stdout_has 'HTTP/1.1 200 OK' 'Content-Type: text/event-stream' 'Transfer-Encoding: chunked'
    stdout_lacks usage
    run_expect 0 post
    stdout_line 1 'data: {"id":"chatcmpl-2","object":"chat.completion.chunk","created":1719500000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}'
    stdout_line 5 'data: {"id":"chatcmpl-2","object":"chat.completion.chunk","created":1719500000,"model":"m","choices":[{"index":0,"delta":{"content":" words"},"finish_reason":null}]}'
    stdout_has $'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    [[ $(deltas <"$OUT"; echo .) == $'two words\n  ünd "more" \\.' ]]
    ASK='{"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"a b c"}]}'
    run_expect 0 post
    stdout_has '"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}'
}

@test "fake-llm: --reply is one JSON object when no stream is asked for" {
    start_llm --reply 'two words'
    ASK='{"model":"m","messages":[{"role":"user","content":"hello"}]}'
    run_expect 0 post -i
    stdout_has 'Content-Type: application/json' 'Content-Length: '
    run_expect 0 post
    stdout_json '.object, .choices[0].message.content, .choices[0].finish_reason, .usage.total_tokens' \
        chat.completion 'two words' stop 3
}

@test "fake-llm: --call is a tool call in pieces, or whole" {
    start_llm --call 'now {"zone": "UTC"}'
    run_expect 0 post
    stdout_has '"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"now","arguments":""}}]' \
        '"finish_reason":"tool_calls"'
    sed -n 's/^data: {/{/p' "$OUT" | jq -j '.choices[0].delta.tool_calls[0].function.arguments // empty' >arguments
    [[ $(cat arguments) == '{"zone": "UTC"}' ]]
    ASK='{"messages":[]}'
    run_expect 0 post
    stdout_json '.choices[0] | .message.tool_calls[0].function.arguments, .message.content, .finish_reason' \
        '{"zone": "UTC"}' null tool_calls
}

@test "fake-llm: --echo-context lists what it was sent" {
    start_llm --echo-context
    ASK='{"stream":true,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"7"}]}'
    run_expect 0 post
    [[ $(deltas <"$OUT") == 'system:be brief|user:see[image_url]|assistant:[f {}]|tool:7' ]]
    request_messages_are 1 'system:be brief' 'user:see[image_url]' 'assistant:[f {}]' 'tool:7'
}

@test "fake-llm: steps are served in the order given, the last repeats" {
    start_llm openai/http-503 --reply one --reply two
    for want in 'engine_overloaded' '"one"' '"two"' '"two"'; do
        run_expect 0 post
        stdout_has "$want"
    done
    requests_are 4
}

@test "fake-llm: --frames prints what would be served, to be read back" {
    printf '%s\n' 'status: 429 Too Many' 'close-after: 4' '' abcdef >cut.http
    printf '%s\n' raw '' HTTP >raw.http
    printf '%s\n' 'repeat: forever' '' x >endless.http
    printf '%s\n' 'fill: @ 2000000 x' '' @ >large.http
    run_expect 0 "$TESTS/tools/fake-llm" --frames ./cut.http ./raw.http ./endless.http ./large.http openai/no-body
    stdout_bytes_are "./cut.http\t429\tapplication/json\tclose\t4\nabcd$FIXTURES/openai/no-body.http\t200\ttext/event-stream\tclean\t0\n"
}

@test "fake-llm: --once ends it after the last step" {
    start_llm --once --reply one --reply two
    run_expect 0 post
    run_expect 0 post
    stdout_has '"two"'
    gone() { ! kill -0 "$LLM_PID" 2>/dev/null; }
    wait_for gone
    run_expect 7 post
}

@test "fake-llm: a path of its own, other paths alike, lists of models" {
    fixture 'path: /v1/special' 'header: Content-Type: text/plain' <<<special
    start_llm "$made" --reply one --reply two --models a,b
    run_expect 0 curl -sS "http://127.0.0.1:$LLM_PORT/v1/special?x=1"
    stdout_is special
    run_expect 0 post
    stdout_has '"one"'
    run_expect 0 curl -sS "http://127.0.0.1:$LLM_PORT/v1/models"
    stdout_json '.data[].id' a b
    run_expect 0 curl -sS "http://127.0.0.1:$LLM_PORT/api/tags"
    stdout_json '.models[].name' a b
    run_expect 0 curl -sS "http://127.0.0.1:$LLM_PORT/any/other"
    stdout_has 'two'
}

@test "fake-llm: records each request exactly, before it answers" {
    start_llm --accept-silent
    printf '{"a":\t"\xff\x00 "}' >body
    run_expect 28 curl -sS --max-time 0.5 -H 'X-Test: 1' -H 'Content-Type: application/json' --data-binary @body "$OPENAI_BASE_URL/x"
    cmp body "$RECORD/1.json"
    run_expect 0 cat "$RECORD/1.headers"
    stdout_line 1 $'POST /v1/x HTTP/1.1\r'
    [[ $(request_header 1 x-test) == 1 && -z $(request_header 1 authorization) ]]
    wait_for test -e "$RECORD/1.end"
    [[ $(cat "$RECORD/1.end") == 'stopped 0' ]]
    requests_are 1
    run_expect 0 find "$RECORD" -name '*.part'
    stdout_empty
}

@test "fake-llm: takes large, chunked and announced (100-continue) bodies" {
    start_llm --reply ok
    head -c 3000000 /dev/zero | tr '\0' x >body
    run_expect 0 curl -sS -H 'Expect: 100-continue' --data-binary @body -w '%{time_total}' -o answer "$OPENAI_BASE_URL/x"
    cmp body "$RECORD/1.json"
    run_expect 0 curl -sS -H 'Transfer-Encoding: chunked' --data-binary @body -o answer "$OPENAI_BASE_URL/x"
    cmp body "$RECORD/2.json"
}

@test "fake-llm: the hook runs between record and answer" {
    start_llm --reply ok --hook 'cat "$FAKE_BODY" >seen.$FAKE_N; test ! -e refuse'
    run_expect 0 post
    stdout_has '"ok"'
    [[ $(cat seen.1) == "$ASK" ]]
    touch refuse
    run_expect 0 post -i
    stdout_has 'HTTP/1.1 418' 'the hook of the test failed'
}

@test "fake-llm: the connection is kept, and closed where that ends the body" {
    start_llm --reply a
    run_expect 0 curl -sS -o /dev/null -o /dev/null -w '%{num_connects}\n' -d "$ASK" "$OPENAI_BASE_URL/1" "$OPENAI_BASE_URL/2"
    stdout_is 1 0
    start_llm openai/connection-close
    run_expect 0 curl -sS -o /dev/null -o /dev/null -w '%{num_connects}\n' -d "$ASK" "$OPENAI_BASE_URL/1" "$OPENAI_BASE_URL/2"
    stdout_is 1 1
    run_expect 0 post -i
    stdout_has 'Connection: close'
    stdout_lacks Transfer-Encoding Content-Length
}

@test "fake-llm: 32 requests at once are answered at once, each to its own" {
    start_llm --echo-context --set 'delay-headers: 500ms'
    from=$(now)
    run_expect 0 bash -c 'seq 32 | xargs -P 32 -I{} curl -sS -o answer.{} \
        -d "{\"messages\":[{\"role\":\"user\",\"content\":\"number {}\"}]}" "$OPENAI_BASE_URL/x"'
    [[ $(($(now) - from)) -lt 8000 ]]
    for i in {1..32}; do
        json_is "answer.$i" '.choices[0].message.content' "user:number $i"
    done
    requests_are 32
}

@test "fixture: status, headers and body as written" {
    fixture 'status: 299 Odd' 'header: X-A: b: c' 'header: Content-Type: text/x' 'header: X-Port: ${PORT}' <<<$'body: 1\n\nmore'
    start_llm "$made"
    run_expect 0 post -i
    stdout_bytes_are "HTTP/1.1 299 Odd\r\nContent-Type: text/x\r\nX-A: b: c\r\nX-Port: $LLM_PORT\r\nContent-Length: 14\r\n\r\nbody: 1\n\nmore\n"
}

@test "fixture: a whole response, sent as it is" {
    printf 'HTTP/1.0 200 Fine\nX: y\n\nbody' >raw
    start_llm ./raw
    run_expect 0 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"; printf "GET / HTTP/1.1\r\n\r\n" >&3; cat <&3' - "$LLM_PORT"
    stdout_is_file raw
}

@test "fixture: line ends, escapes, fills, repeats, chomp" {
    body() { "$TESTS/tools/fake-llm" --body "$made"; }
    fixture 'eol: crlf' <<<$'a\n\nb'
    run_expect 0 body
    stdout_bytes_are 'a\r\n\r\nb\r\n'
    fixture 'eol: cr' 'chomp' <<<$'a\n\nb'
    run_expect 0 body
    stdout_bytes_are 'a\r\rb'
    fixture 'eol: mixed' <<<$'a\n\nb\n\nc'
    run_expect 0 body
    stdout_bytes_are 'a\r\r\nb\n\rc\r\n'
    fixture 'escape: %' <<<'%1b%FF%%%0A'
    run_expect 0 body
    stdout_bytes_are '\x1b\xff%\n\n'
    fixture 'fill: @ 3 xy' 'chomp' <<<'a@b@'
    run_expect 0 body
    stdout_bytes_are 'axyxyxybxyxyxy'
    fixture 'mark: |' 'repeat: 3' 'chomp' <<<'a|b|c|d'
    run_expect 0 body
    stdout_bytes_are 'abbbcd'
    fixture 'repeat: 2' <<<'a'
    run_expect 0 body
    stdout_is a a
    fixture 'repeat: forever' <<<'a'
    run_expect 2 body
}

@test "fixture: pieces are HTTP chunks of their own" {
    wire() {
        start_llm "$made" "$@"
        run_expect 0 post --raw
    }
    fixture 'chunk: 2' <<<abcd
    wire
    stdout_bytes_are '2\r\nab\r\n2\r\ncd\r\n1\r\n\n\r\n0\r\n\r\n'
    fixture 'split: 1,3' <<<abcd
    wire
    stdout_bytes_are '1\r\na\r\n2\r\nbc\r\n2\r\nd\n\r\n0\r\n\r\n'
    fixture 'mark: |' chomp <<<'a|bc||d'
    wire
    stdout_bytes_are '1\r\na\r\n2\r\nbc\r\n1\r\nd\r\n0\r\n\r\n'
    fixture 'chunk: event' <<<$'a\nb\n\nc\n'
    wire
    stdout_bytes_are '5\r\na\nb\n\n\r\n3\r\nc\n\n\r\n0\r\n\r\n'
    fixture 'chunk: line' 'eol: crlf' <<<$'a\nb'
    wire
    stdout_bytes_are '3\r\na\r\n\r\n3\r\nb\r\n\r\n0\r\n\r\n'
    wire --set 'chunk: 100' --set 'transfer: length'
    stdout_bytes_are 'a\r\nb\r\n'
}

@test "fixture: ends too early, by offset" {
    fixture 'header: X: y' <<<abcdefgh
    start_llm "$made" --set 'close-after: 3'
    run_expect 18 post
    stdout_bytes_are abc
    wait_for test -e "$RECORD/1.end"
    [[ $(cat "$RECORD/1.end") == 'stopped 3' ]]
    start_llm "$made" --set 'break-after: 3'
    run_expect 56 post
    stdout_bytes_are abc
    stderr_has reset
    start_llm "$made" --set 'stall-after: 3'
    run_expect 28 post --max-time 0.5
    stdout_bytes_are abc
    start_llm "$made" --set 'stall-after: 0' --set 'transfer: length'
    run_expect 28 post --max-time 0.5
    stdout_empty
    start_llm "$made" --set 'transfer: length' --set 'end: close'
    run_expect 18 post
    stdout_is abcdefgh
    start_llm "$made" --set 'transfer: close' --set 'end: reset'
    run_expect 56 post
    stdout_is abcdefgh
}

@test "fixture: delays" {
    fixture 'mark: |' 'delay: 200ms' 'delay-headers: 300ms' <<<'a|b|c'
    start_llm "$made"
    run_expect 0 post -w '%{time_starttransfer} %{time_total}\n'
    run_expect 0 awk 'NR == 2 { print ($1 >= 0.3 && $1 < 0.5), ($2 >= 0.9 && $2 < 2) }' "$OUT"
    stdout_is '1 1'
}

@test "fake-llm: a client that leaves is noted" {
    start_llm openai/endless
    run_expect 28 post --max-time 0.5
    wait_for test -e "$RECORD/1.end"
    [[ $(cat "$RECORD/1.end") == gone\ * ]]
}

@test "fake-llm: --no-accept lets no connection through" {
    start_llm --no-accept
    run_expect 28 post --connect-timeout 0.5
    stderr_matches '[Tt]ime(d )?out'
    requests_are 0
}

@test "fixtures: each says what it is and whence, can be loaded, and has an answer that is JSON" {
    run_expect 0 "$TESTS/tools/fake-llm" --expect "$FIXTURES"/*/*.http
    lines_are "$(find "$FIXTURES" -name '*.http' | wc -l)"
    cp "$OUT" table
    run_expect 1 grep -vE $'^[^\t]*\t([0-9]|-)\t[^\t]*$' table
    stdout_empty
    cut -f 3 table | grep -vx -e - | run_expect 0 jq -s 'map(type) | unique | .[]'
    stdout_is '"string"'
    run_expect 0 awk 'FNR == 1 && !/^# ./ { print FILENAME }' "$FIXTURES"/*/*.http
    stdout_empty
    run_expect 0 awk '/^# Source: ./ { n++ } END { print n }' "$FIXTURES"/*/*.http
    stdout_is "$(wc -l <table)"
}

@test "fixtures: each comes over the wire as its body says" {
    local steps=() file
    for file in "$FIXTURES"/*/*.http; do
        if ! grep -qE '^(raw|end: .*|repeat: forever|path: .*)$' "$file"; then steps+=("$file"); fi
    done
    [[ ${#steps[@]} -gt 100 ]]
    start_llm "${steps[@]}" --set 'delay: 0' --set 'delay-headers: 0'
    for file in "${steps[@]}"; do
        post >>got
    done
    "$TESTS/tools/fake-llm" --body "${steps[@]}" >wanted
    cmp got wanted
    requests_are "${#steps[@]}"
}
