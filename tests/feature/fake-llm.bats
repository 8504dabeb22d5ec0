#!/usr/bin/env bats
#
# The fixtures, and what other tests rely on in fake-llm, the scripted model server, seen by curl.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2154

load ../helper

ASK='{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}'

# post [OPTION]...: one request, its body $ASK; curl's output.
post() {
    curl -sS --max-time 50 "$@" -d "$ASK" "http://127.0.0.1:$LLM_PORT/v1/chat/completions"
}

# fixture DIRECTIVE... [BODY on stdin]: a fixture file, its path in $made
fixture() {
    made=$BATS_TEST_TMPDIR/made.http
    {
        printf '%s\n' "$@" ''
        cat
    } >"$made"
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
    run_expect 28 post --max-time 2
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
