#!/usr/bin/env bats
#
# hist-append: stores messages of other programs and prints their ids.

load ../helper
load ../history

# stored FILTER LINE...: what jq -r FILTER makes of the history.
stored() {
    json_is "$HISTORY" "$@"
}

# line_is N TEXT: the N-th line of the history, its id and time as ID and TIME, made sessions as SESSION.
line_is() {
    sed -n "$1p" "$HISTORY" | sed -E 's/"id":"[0-9]{13}-[0-9a-f]{8}"/"id":"ID"/
        s/"timestamp":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}\+00:00"/"timestamp":"TIME"/
        s/"session_id":"sess_[0-9]{13}_[0-9a-f]{6}"/"session_id":"SESSION"/' >got
    is "line $1" got "$2"
}

# ---- one message

@test "hist-append: a line of the documented form, and its id" {
    run_expect 0 hist-append hello
    stdout_matches '^[0-9]{13}-[0-9a-f]{8}$'
    lines_are 1
    stderr_empty
    line_is 1 '{"id":"ID","session_id":"SESSION","timestamp":"TIME","role":"user","content":"hello"}'
    stored .id "$(cat "$OUT")"
    [[ $(wc -l <"$HISTORY") -eq 1 ]]
}

@test "hist-append: id and time are those of now" {
    before=$(date +%s%3N)
    TZ=Asia/Tokyo run_expect 0 hist-append hello
    after=$(date +%s%3N)
    id=$(jq -r .id "$HISTORY")
    at=$(date -d "$(jq -r .timestamp "$HISTORY")" +%s%3N)
    [[ ${id%-*} -ge $before && ${id%-*} -le $after && $at -ge $before && $at -le $after ]]
}

@test "hist-append: every option, in the documented order of keys" {
    run_expect 0 hist-append --edit-results '[{"ok": true, "n":1.0}]' --files a --images 3 -r assistant \
        --files-modified c --files 'b "c"' -s s1 text
    line_is 1 '{"id":"ID","session_id":"s1","timestamp":"TIME","role":"assistant","content":"text","images":3,"files":["a","b \"c\""],"files_modified":["c"],"edit_results":[{"ok": true, "n":1.0}]}'
    run_expect 0 hist-append --role=tool --session=s1 --images=0 --edit-results='[]' ''
    line_is 2 '{"id":"ID","session_id":"s1","timestamp":"TIME","role":"tool","content":"","images":0,"edit_results":[]}'
}

@test "hist-append: a value with a line end stays on one line" {
    run_expect 0 hist-append -s s --edit-results $'[\n {"a":\t"x\\ny"}\r\n]' --files $'a\nb' $'c\nd'
    [[ $(wc -l <"$HISTORY") -eq 1 ]]
    stored '.edit_results[0].a, .files[0], .content' x y a b c d
}

@test "hist-append: text from standard input, without its one final newline" {
    run_expect 0 hist-append -s s < <(printf 'two\nlines\n\n')
    run_expect 0 hist-append -s s < <(printf 'no newline')
    printf 'a\xff\xc3\xa9\xf0\x9f\x98\0b\r\n' >file
    run_expect 0 hist-append -s s <file
    stored '.content | @json' '"two\nlines\n"' '"no newline"' $'"a\xef\xbf\xbdé\xef\xbf\xbd\\u0000b\\r"'
    # shellcheck disable=SC2016
    run_expect 0 bash -c 'echo piped | hist-append -s s given'
    tail -n 1 "$HISTORY" >last
    json_is last .content given
}

@test "hist-append: arguments are joined by spaces; invalid UTF-8 becomes U+FFFD" {
    run_expect 0 hist-append -s s one 'two  three' $'\xff' -- -r
    stored .content "one two  three "$'\xef\xbf\xbd'" -r"
}

# lines N: three lines, the second of N bytes.
lines() {
    printf '{"content":"before"}\n{"content":"'
    head -c $(($1 - 14)) /dev/zero | tr '\0' x
    printf '"}\n{"content":"after"}\n'
}

@test "hist-append: --json skips a line that is too long, or would be, and stores the others" {
    local n mib=$((64 << 20))
    export CHAT_FSYNC=0
    for n in $((mib - 40)) $((mib - 1)) $mib $((mib + 1)) $((mib + 70000)); do
        run_expect 2 bash -c "$(declare -f lines); lines $n | hist-append -s s --json"
        lines_are 2
        stderr_matches '^hist-append: cannot store line 2: (the message is )?longer than 64 MiB$'
        stored .content before after
        rm "$HISTORY"
    done
    run_expect 2 bash -c "$(declare -f lines); { lines $mib | head -n 2 | head -c -1; } | hist-append -s s --json"
    lines_are 1
    stderr_is 'hist-append: cannot store line 2: longer than 64 MiB'
    rm "$HISTORY"
    # More than a prompt may have.
    run_expect 0 bash -c "$(declare -f lines); lines $((40 << 20)) | hist-append -s s --json"
    lines_are 3
    stored '.content | length' 6 $(((40 << 20) - 14)) 5
}

@test "hist-append: without a session a new one, which is current" {
    run_expect 0 hist-append one
    stored .session_id "$(head -n 1 "$HISTORY.session")"
    run_expect 0 hist-append two
    [[ $(jq -r .session_id "$HISTORY" | sort -u) == "$(head -n 1 "$HISTORY.session")" ]]
}

@test "hist-append: -s takes an id literally and moves no pointer; CHAT_SESSION is as good" {
    run_expect 0 hist-append -s session-0001 one
    run_expect 0 hist-append -s 0001 two
    CHAT_SESSION='env' run_expect 0 hist-append three
    CHAT_SESSION='env' run_expect 0 hist-append -s flag four
    [[ ! -e $HISTORY.session ]]
    stored .session_id session-0001 0001 env flag
    stderr_empty
}

@test "hist-append: a session that has been idle for too long is not continued" {
    echo old >"$HISTORY.session"
    touch -d '31 minutes ago' "$HISTORY.session"
    hist_line old user hello "$(date -u -d '31 minutes ago' +%FT%T.000000+00:00)" >"$HISTORY"
    CHAT_SESSION_TIMEOUT=1h run_expect 0 hist-append one
    CHAT_SESSION_TIMEOUT=off run_expect 0 hist-append two
    stored .session_id old old old
    head -n 1 "$HISTORY" >first
    mv first "$HISTORY"
    run_expect 0 hist-append three
    [[ $(head -n 1 "$HISTORY.session") == sess_* ]]
    stored .session_id old "$(head -n 1 "$HISTORY.session")"
    CHAT_SESSION_TIMEOUT=soon run_expect 2 hist-append four
    stdout_empty
    stderr_is "hist-append: bad value 'soon' for CHAT_SESSION_TIMEOUT: a time such as 90s, 30min, 2h, or 'off' is expected"
}

@test "hist-append: what is no session id" {
    local id
    for id in current last '' -x 'a b' a/b .a é "$(printf '%0129d' 1)"; do
        run_expect 2 hist-append -s "$id" text
        stdout_empty
        stderr_has "hist-append: bad session id '$id' in -s: "
        [[ -z $id ]] || CHAT_SESSION=$id run_expect 2 hist-append text
    done
    [[ -z $(ls -A) ]]
    for id in 8b1e7f5e-7c4b-4a8e-9d1c-0123456789ab a 0 A.b_c:d-e "$(printf '%0128d' 1)"; do
        run_expect 0 hist-append -s "$id" text
    done
}

@test "hist-append: wrong values are told, and nothing is stored" {
    run_expect 2 hist-append -r robot x
    stderr_is "hist-append: bad value 'robot' for --role: user, assistant, system or tool is expected (see 'hist-append --help')"
    local value
    for value in -1 1.5 x '' '1 2' '"1"' 99999999999999999999; do
        run_expect 2 hist-append --images "$value" x
        stderr_is "hist-append: bad value '$value' for --images: a number is expected (see 'hist-append --help')"
    done
    for value in '{}' x '' '[{}' '[{}] x' null; do
        run_expect 2 hist-append --edit-results "$value" x
        stderr_is "hist-append: bad value for --edit-results: a JSON array is expected (see 'hist-append --help')"
    done
    run_expect 2 hist-append --edit-results '[{},1]' x
    stderr_is "hist-append: bad value for --edit-results: its elements must be objects (see 'hist-append --help')"
    stdout_empty
    [[ -z $(ls -A) ]]
}

# ---- lines

@test "hist-append: --json fills in what is missing" {
    run_expect 0 hist-append --json -s s < <(printf '%s\n' '{"content":"one"}' '{"role":"assistant","content":"two"}')
    lines_are 2
    cp "$OUT" ids
    line_is 1 '{"id":"ID","session_id":"s","timestamp":"TIME","role":"user","content":"one"}'
    line_is 2 '{"id":"ID","session_id":"s","timestamp":"TIME","role":"assistant","content":"two"}'
    mapfile -t ids <ids
    stored .id "${ids[@]}"
    [[ ${ids[0]} != "${ids[1]}" ]]
    [[ ! -e $HISTORY.session ]]
}

@test "hist-append: --json keeps what is there, the known fields in their order, the unknown byte for byte" {
    cat >lines <<'END'
{"zeta":{"b": [1,2 ] ,"n":1.0e5,"big":12345678901234567890},"finish_reason":"stop","usage":{"input_tokens":1, "output_tokens":2},"content":"\u0063\/\ud83d\ude00","role":"assistant","timestamp":"2020-01-01T00:00:00Z","session_id":"own","id":"mine","reply_to":"q","a\u0062":null, "tool_calls":[{"id":"c","name":"n","args":{"x":1.50}}]}
END
    run_expect 0 hist-append --json -s other <lines
    stdout_is mine
    is history "$HISTORY" '{"id":"mine","session_id":"own","timestamp":"2020-01-01T00:00:00.000000+00:00","role":"assistant","content":"\u0063\/\ud83d\ude00","tool_calls":[{"id":"c","name":"n","args":{"x":1.50}}],"reply_to":"q","usage":{"input_tokens":1, "output_tokens":2},"finish_reason":"stop","zeta":{"b": [1,2 ] ,"n":1.0e5,"big":12345678901234567890},"a\u0062":null}'
}

@test "hist-append: --json -r is the role of lines without one; blank lines, CRLF, BOM, no last newline" {
    printf '\xef\xbb\xbf{"content":"one"}\r\n\r\n \n{"content":"two","role":null}\n{"role":"robot","content":null}' >lines
    run_expect 0 hist-append --json -s s -r system <lines
    stderr_empty
    stored '[.role, .content] | @json' '["system","one"]' '["system","two"]' '["robot",""]'
}

@test "hist-append: --json: wrong lines are named and passed over, the others stored" {
    cat >lines <<'END'
{"content":"one"}
not json
{"content":"two"} {"content":"three"}
["content"]
{"role":"user"}
{"content":5}
{"content":"x","role":""}
{"content":"x","session_id":"a b"}
{"content":"x","images":"2"}
{"content":"x","id":7}
{"content":"x","id":"a b"}
{"content":"x","timestamp":"yesterday"}
{"content":"last"}
END
    run_expect 2 hist-append --json -s s <lines
    lines_are 2
    stored .content one last
    stderr_matches '^hist-append: cannot store line 2: ' '^hist-append: cannot store line 3: ' '^hist-append: cannot store line 4: ' \
        "^hist-append: cannot store line 5: no 'content'\$" "^hist-append: cannot store line 6: 'content' is not a string\$" \
        '^hist-append: cannot store line 7: ' '^hist-append: cannot store line 8: ' '^hist-append: cannot store line 9: ' \
        '^hist-append: cannot store line 10: ' "^hist-append: cannot store line 11: 'a b' is no message id\$" \
        "^hist-append: cannot store line 12: 'yesterday' is no time\$"
    [[ $(wc -l <"$ERR") -eq 11 ]]
}

@test "hist-append: --json repairs invalid UTF-8, as from every pipe" {
    printf '{"content":"a\xffb"}\n{"content":"c"}\n' >lines
    run_expect 0 hist-append --json -s s <lines
    stored .content $'a\xef\xbf\xbdb' c
}

@test "hist-append: --json stores lines as they come" {
    mkfifo pipe
    background bash -c 'exec hist-append --json -s s <pipe'
    exec 5>pipe
    echo '{"content":"one"}' >&5
    wait_for grep -q '"one"' "$HISTORY"
    wait_for test -s "$OUT.bg"
    echo '{"content":"two"}' >&5
    wait_for grep -q '"two"' "$HISTORY"
    exec 5>&-
    finish 0
    lines_are 2
}

@test "hist-append: --json stores everything though nobody reads the ids" {
    seq 3000 | sed 's/.*/{"content":"message &"}/' >lines
    # shellcheck disable=SC2016
    run_expect 0 bash -c '{ head -n 1500 lines; until [[ -e gone ]]; do sleep 0.05; done; tail -n 1500 lines; } |
        hist-append --json -s s | { exec <&-; : >gone; }; echo "${PIPESTATUS[1]}"'
    stdout_is 141
    stderr_empty
    [[ $(wc -l <"$HISTORY") -eq 3000 ]]
    # shellcheck disable=SC2016
    run_expect 0 bash -c '{ head -n 1500 lines; sleep 0.2; tail -n 1500 lines; } | hist-append --json -s t >/dev/full; echo "${PIPESTATUS[1]}"'
    stdout_is 2
    stderr_is 'hist-append: cannot write to standard output: No space left on device'
    [[ $(wc -l <"$HISTORY") -eq 6000 ]]
}

@test "hist-append: --json of nothing stores nothing" {
    run_expect 0 hist-append --json
    stdout_empty
    stderr_empty
    [[ -z $(ls -A) ]]
}

@test "hist-append: --json takes no text and no fields" {
    run_expect 2 hist-append --json text
    stderr_is "hist-append: --json takes lines from standard input: no text, no fields (see 'hist-append --help')"
    run_expect 2 hist-append --json --files x
    stderr_is "hist-append: --json takes lines from standard input: no text, no fields (see 'hist-append --help')"
    [[ -z $(ls -A) ]]
}

@test "hist-append: a silent standard input is said, but for -q" {
    # The text comes when one of the two has said it, and the other has had as much time.
    # shellcheck disable=SC2016
    run_expect 0 bash -c '{ for ((i = 0; i < 300; i++)); do sleep 0.1; ! grep -q waiting "$0" || break; done
        sleep 0.2; echo late; } | tee >(hist-append -q -s t >quiet 2>&1) | hist-append -s s' "$ERR.new"
    stderr_is 'hist-append: waiting for standard input'
    wait_for test -s quiet
    stored .content late late
    run_expect 0 cat quiet
    stdout_matches '^[0-9]{13}-[0-9a-f]{8}$'
    lines_are 1
}

@test "hist-append: nothing to store is an error" {
    run_expect 2 hist-append </dev/null
    stdout_empty
    stderr_is "hist-append: no text: give it as an argument or on standard input (see 'hist-append --help')"
    run_expect 2 hist-append < <(:)
    [[ ! -e $HISTORY ]]
    run_expect 0 hist-append ''
    stored .content ''
}

@test "hist-append: - is standard input" {
    run_expect 0 hist-append - <<<'from a pipe'
    stored .content 'from a pipe'
}
