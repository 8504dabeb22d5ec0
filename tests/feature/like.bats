#!/usr/bin/env bats
#
# hist-search --like: messages that mean the same, by the vectors of a model.

load ../helper
load ../history

VECTORS=$BATS_TEST_TMPDIR/none

setup() {
    sandbox
    use_history
    VECTORS=$HISTORY.vectors
    unset CHAT_MODEL
}

# add SESSION CONTENT [ROLE]
add() {
    run_expect 0 hist-append -s "$1" -r "${3:-user}" "$2"
}

fill() {
    add one 'my automobile broke down'
    add two 'the kitten sleeps' assistant
    add three 'a recipe for bread'
    add four 'all: automobile' tool
}

# with_server STEP...
with_server() {
    start_llm "$@"
    unset CHAT_MODEL OPENAI_BASE_URL
    configure 'embed.model = openai:small' "embed.base_url = http://127.0.0.1:$LLM_PORT/v1"
}

# The texts that request N sent, on a line.
sent() {
    jq -c .input "$RECORD/$1.json"
}

@test "like: without a model it says what to set, and sends nothing" {
    fill
    run_expect 2 hist-search --like car
    stderr_has 'set embed.model in the configuration'
    stdout_empty
    [[ ! -e $VECTORS ]] || fail 'there are vectors'
}

@test "like: the server of prompts gets no message" {
    fill
    with_server --embed car=automobile
    configure 'embed.model = openai:small' 'base_url = http://127.0.0.1:9/v1'
    CHAT_BASE_URL=http://127.0.0.1:9/v1 OPENAI_BASE_URL=http://127.0.0.1:$LLM_PORT/v1 run_expect 0 hist-search --like car
    [[ $(cut -f 1 "$OUT" | head -n 1) == one ]] || fail "$(<"$OUT")"
}

@test "like: the nearest message first, prompts and answers alone; what is new is sent, and once" {
    fill
    with_server --embed car=automobile,cat=kitten
    run_expect 0 hist-search --like car
    [[ $(cut -f 1 "$OUT" | head -n 1) == one ]] || fail "$(<"$OUT")"
    lines_are 3
    sent 1 >shown
    is 'the first request' shown '["car"]'
    sent 2 >shown
    is 'the second request' shown '["my automobile broke down","the kitten sleeps","a recipe for bread","car"]'
    [[ $(stat -c %a "$VECTORS") == 600 ]] || fail "$(ls -l)"
    remember "$VECTORS"
    run_expect 0 hist-search --like cat -n 1
    [[ $(cut -f 1,4 "$OUT") == $'two\tassistant' ]] || fail "$(<"$OUT")"
    unchanged "$VECTORS"
    add five 'another automobile'
    run_expect 0 hist-search --like car -n 2 --json
    jq -r .session_id "$OUT" >shown
    is 'the sessions' shown five one
    sent 5 >shown
    is 'what is new' shown '["another automobile","car"]'
    run_expect 0 hist-search --like car -r assistant
    [[ $(cut -f 1 "$OUT") == two ]] || fail "$(<"$OUT")"
}

@test "like: in a repository without a history nothing is found" {
    with_server --embed a=b
    unset CHAT_HISTORY
    git init -q repository
    cd repository || return
    run_expect 1 hist-search --like car
    stdout_empty
    [[ ! -e .git/aicoder ]] || fail "$(ls .git/aicoder)"
}

@test "like: the words count, too" {
    add one 'bread bread bread bread'
    add two 'xyzzy and plugh and what else there is to say of it'
    with_server --embed xyzzy=bread
    run_expect 0 hist-search --like xyzzy
    cut -f 1 "$OUT" >shown
    is 'the order' shown two one
}

@test "like: secrets are replaced before they are sent" {
    add one 'my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD'
    with_server --embed a=b
    run_expect 0 hist-search --like 'key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD'
    run_expect 1 grep -rl abcdefghijklmnop "$RECORD"
    sent 2 >shown
    is 'the texts' shown '["my key is [redacted api-key]","key [redacted api-key]"]'
}

@test "like: a kill loses the batch that was under way, and the next run goes on after the others" {
    jq -cn 'range(100) | {id: "m\(.)", session_id: "s", timestamp: "2026-11-01T00:00:00.000000+00:00", role: "user", content: "text \(.)"}' >"$HISTORY"
    with_server --embed a=b --embed a=b --embed a=b --accept-silent
    background hist-search --like text
    wait_for test -e "$RECORD/4.json"
    kill -9 "$BG"
    wait "$BG" || true
    with_server --embed a=b
    run_expect 0 hist-search --like text -n all
    lines_are 100
    [[ $(jq '.input | length' "$RECORD/2.json") == 33 && $(sent 2) == '["text 64",'* ]] || fail "$(sent 2)"
    [[ $(sent 1) == '["text"]' && ! -e $RECORD/4.json ]] || fail "$(sent 1)"
    cp "$VECTORS" whole
    # A vector that was not written to its end.
    head -c -50 whole >"$VECTORS"
    with_server --embed a=b
    run_expect 0 hist-search --like text -n all
    lines_are 100
    [[ $(sent 2) == '["text 99","text"]' ]] || fail "$(sent 2)"
    run_expect 0 cmp whole "$VECTORS"
}

@test "like: vectors that were damaged are asked for again, and only they" {
    jq -cn 'range(100) | {id: "m\(.)", session_id: "s", timestamp: "2026-11-01T00:00:00.000000+00:00", role: "user", content: "text \(.)"}' >"$HISTORY"
    with_server --embed a=b
    run_expect 0 hist-search --like text
    cp "$VECTORS" whole
    # The first, two in the middle, and the last. A row has 104 bytes.
    for row in 0 50 51 99; do
        printf '\033\034' | dd of="$VECTORS" bs=1 seek=$((40 + row * 104 + row % 2 * 8 + 8)) conv=notrunc status=none
    done
    with_server --embed a=b
    run_expect 0 hist-search --like text -n all
    stderr_empty
    lines_are 100
    jq -c .input "$RECORD"/*.json | sort >shown
    is 'the requests' shown '["text 0","text"]' '["text 50","text"]' '["text 51","text"]' '["text 99","text"]' '["text"]'
    run_expect 0 cmp whole "$VECTORS"
}

@test "like: a message that the server refuses, or whose vector cannot be used, is passed over and said once" {
    local refusal
    jq -cn 'range(5) | {id: "m\(.)", session_id: "s", timestamp: "2026-11-01T00:00:00.000000+00:00", role: "user", content: "text \(.)"}' >"$HISTORY"
    printf 'status: 400 Bad Request\nheader: Content-Type: application/json\n\n{"error":{"message":"no such words"}}\n' >refusal
    refusal=refusal
    # The query; all; 0 1 2; 0; 1 2; 1; 2; 3 4 and the query.
    with_server --embed a=b $refusal $refusal --embed a=b $refusal $refusal --embed a=b --embed a=b
    run_expect 0 hist-search --like other -n all
    lines_are 4
    stderr_is 'chat: 1 of 6 texts have no vector: HTTP 400: no such words' \
        'hist-search: the model of embed.model makes no vector of 1 of the messages: they are passed over from now on'
    sent 6 >shown
    is 'the refused text' shown '["text 1"]'
    with_server --embed a=b
    run_expect 0 hist-search --like other -n all
    lines_are 4
    stderr_empty
    [[ ! -e $RECORD/2.json ]] || fail "$(sent 2)"
    # Alone, with the query that the server takes; a vector of zeros.
    add s 'text 5'
    jq -cn '{data: [{index: 0, embedding: [range(64) | 0]}, {index: 1, embedding: [range(64) | 1]}]}' >body
    { printf 'header: Content-Type: application/json\n\n' && cat body; } >answer
    with_server --embed a=b answer
    run_expect 0 hist-search --like other -n all
    lines_are 4
    stderr_is 'hist-search: the model of embed.model makes no vector of 1 of the messages: they are passed over from now on'
    # What is new after it is not held up.
    add s 'text 6'
    with_server --embed a=b
    run_expect 0 hist-search --like other -n all
    lines_are 5
    stderr_empty
}

@test "like: on a terminal it is shown at once what is waited for, and Ctrl-C ends chat, too" {
    fill
    with_server --embed a=b --accept-silent
    run_expect 130 env TERM=xterm "$TESTS/tools/on-tty" --fds 2 --wait 'embed 0 s.*embed 0 % of [0-9]+ bytes' --signal INT hist-search --like car
    run_expect 1 pgrep -af "[b]ase-url=http://127.0.0.1:$LLM_PORT/"
    with_server --accept-silent
    background hist-search --like car
    wait_for pgrep -f "base-url=http://127.0.0.1:$LLM_PORT/"
    kill -TERM "$BG"
    finish 143
    run_expect 1 pgrep -af "[b]ase-url=http://127.0.0.1:$LLM_PORT/"
}

@test "like: of a text that is too long for the model its beginning is sent" {
    add one "$(printf 'word%.0s ' {1..1500})"
    printf 'status: 500 Internal Server Error\n\n{"error":{"message":"input is too large to process"}}\n' >refusal
    with_server --embed a=b refusal refusal refusal --embed a=b
    run_expect 0 hist-search --like text
    lines_are 1
    stderr_empty
    jq '.input[0] | length' "$RECORD"/[1-6].json >shown
    is 'the lengths' shown 4 1500 1500 800 400 4
}

@test "like: another model, a history that was rewritten and one that was edited begin a new file" {
    fill
    with_server --embed car=automobile
    run_expect 0 hist-search --like car
    sed -i 's/:small/:large/' "$HOME/.config/chathist/config"
    run_expect 0 hist-search --like car
    [[ $(jq -r .model "$RECORD/4.json") == large && $(jq '.input | length' "$RECORD/4.json") == 4 ]] || fail "$(sent 4)"
    run_expect 0 hist-delete -q --force two
    [[ ! -e $VECTORS ]] || fail 'the vector of an erased message is there'
    run_expect 0 hist-search --like car
    sent 6 >shown
    is 'the texts' shown '["my automobile broke down","a recipe for bread","car"]'
    sed 's/ broke/ really broke/' "$HISTORY" >lines
    cat lines >"$HISTORY"
    run_expect 0 hist-search --like car
    sent 8 >shown
    is 'the texts' shown '["my automobile really broke down","a recipe for bread","car"]'
}

@test "like: what a server may not answer is an error, and nothing of it is stored" {
    local body
    fill
    for body in '{"data":[]}' '{"data":[{"index":1,"embedding":[1]}]}' '[' '{}' '{"error":{"message":"no such model"}}' \
        '{"data":[{"index":0,"embedding":[]}]}' '{"data":[{"index":0,"embedding":[0,0]}]}' '{"data":[{"index":0,"embedding":[1e999]}]}' \
        '{"data":[{"index":0,"embedding":["1"]}]}' '{"data":[{"index":0,"embedding":[NaN]}]}' \
        "$(jq -cn '{data: [{index: 0, embedding: [range(16385)]}]}')"; do
        printf 'header: Content-Type: application/json\n\n%s\n' "$body" >answer
        with_server answer
        run_expect 2 hist-search --like car
        stderr_matches 'vector|no such model'
        stdout_empty
        [[ ! -s $VECTORS ]] || fail "$body is stored"
        with_server --embed a=b answer
        [[ $body == *'0,"embedding"'* ]] || run_expect 2 hist-search --like car
        [[ ! -s $VECTORS ]] || fail "$body is stored"
    done
    printf 'status: 401 Unauthorized\n\n{"error":{"message":"bad key test-key-1"}}\n' >answer
    with_server answer
    run_expect 2 hist-search --like car
    stderr_lacks test-key-1
    stderr_has 'hist-search: the model of embed.model made no vectors'
    # All texts are refused.
    printf 'status: 400 Bad Request\n\n{"error":{"message":"not today"}}\n' >answer
    with_server --embed a=b answer
    run_expect 2 hist-search --like car
    stderr_has 'chat: HTTP 400: not today'
    [[ ! -s $VECTORS ]] || fail 'it is stored'
    # Another number of dimensions than before begins a new file.
    with_server --embed a=b
    run_expect 0 hist-search --like car
    [[ $(head -c 16 "$VECTORS" | od -An -tu1 -j8 -N1) -eq 64 ]] || fail "$(head -c 16 "$VECTORS" | od -c)"
    vector() {
        printf 'header: Content-Type: application/json\n\n'
        jq -cn "{data: [range($1) | {index: ., embedding: [., 1]}]}"
    }
    vector 1 >one
    vector 4 >four
    with_server one four
    run_expect 0 hist-search --like car
    lines_are 3
    [[ $(head -c 16 "$VECTORS" | od -An -tu1 -j8 -N1) -eq 2 ]] || fail "$(head -c 16 "$VECTORS" | od -c)"
}

@test "like: a file of vectors that others can write, or that is something else, is not used" {
    fill
    with_server --embed a=b
    echo 'something else' >"$VECTORS"
    run_expect 2 hist-search --like car
    stderr_is "hist-search: '$VECTORS' is not a private file of vectors"
    [[ $(<"$VECTORS") == 'something else' ]] || fail 'it was written'
    rm "$VECTORS"
    ln -s other "$VECTORS"
    run_expect 2 hist-search --like car
    [[ ! -e other ]] || fail 'the link was followed'
}

@test "like: chat --embed reads a last line without a newline" {
    with_server --embed a=b
    run_expect 0 chat --embed -m openai:small --base-url "http://127.0.0.1:$LLM_PORT/v1" < <(printf '"one"\n"two"')
    lines_are 2
    sent 1 >shown
    is 'the texts' shown '["one","two"]'
    with_server --embed a=b
    run_expect 0 chat --embed -m openai:small --base-url "http://127.0.0.1:$LLM_PORT/v1" < <(printf '"one"')
    lines_are 1
}

@test "like: it goes with no other search" {
    for option in -E -v -w -o -l -c -q --in-session --sort=best --query=x --regexp=x '-C 1'; do
        # shellcheck disable=SC2086
        run_expect 2 hist-search --like car $option
        stderr_has '--like goes only with'
    done
    run_expect 2 hist-search --like car other
    run_expect 2 hist-search --like ''
}
