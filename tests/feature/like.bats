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
    is 'the first request' shown '["my automobile broke down","the kitten sleeps","a recipe for bread"]'
    sent 2 >shown
    is 'the second request' shown '["car"]'
    [[ $(stat -c %a "$VECTORS") == 600 ]] || fail "$(ls -l)"
    remember "$VECTORS"
    run_expect 0 hist-search --like cat -n 1
    [[ $(cut -f 1,4 "$OUT") == $'two\tassistant' ]] || fail "$(<"$OUT")"
    unchanged "$VECTORS"
    add five 'another automobile'
    run_expect 0 hist-search --like car -n 2 --json
    jq -r .session_id "$OUT" >shown
    is 'the sessions' shown five one
    sent 4 >shown
    is 'what is new' shown '["another automobile"]'
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
    sent 1 >shown
    is 'the text' shown '["my key is [redacted api-key]"]'
}

@test "like: a kill loses the batch that was under way, and the next run goes on after the others" {
    jq -cn 'range(100) | {id: "m\(.)", session_id: "s", timestamp: "2026-11-01T00:00:00.000000+00:00", role: "user", content: "text \(.)"}' >"$HISTORY"
    with_server --embed a=b --embed a=b --accept-silent
    background hist-search --like text
    wait_for test -e "$RECORD/3.json"
    kill -9 "$BG"
    wait "$BG" || true
    cp "$VECTORS" whole
    with_server --embed a=b
    run_expect 0 hist-search --like text -n all
    lines_are 100
    [[ $(jq '.input | length' "$RECORD/1.json") == 32 && $(sent 1) == '["text 64",'* ]] || fail "$(sent 1)"
    [[ $(sent 3) == '["text"]' ]] || fail "$(sent 3)"
    # A batch that was not written to its end.
    head -c -100 whole >"$VECTORS"
    with_server --embed a=b
    run_expect 0 hist-search --like text -n all
    lines_are 100
    [[ $(sent 1) == '["text 32",'* && $(sent 4) == '["text"]' ]] || fail "$(sent 1)"
    # A number of the last batch that is another one.
    { head -c -1 whole && printf '\033'; } >"$VECTORS"
    with_server --embed a=b
    run_expect 0 hist-search --like text -n all
    lines_are 100
    [[ $(sent 1) == '["text 0",'* && $(sent 5) == '["text"]' ]] || fail "$(sent 1)"
}

@test "like: another model, a history that was rewritten and one that was edited begin a new file" {
    fill
    with_server --embed car=automobile
    run_expect 0 hist-search --like car
    sed -i 's/:small/:large/' "$HOME/.config/chathist/config"
    run_expect 0 hist-search --like car
    [[ $(jq -r .model "$RECORD/3.json") == large && $(jq '.input | length' "$RECORD/3.json") == 3 ]] || fail "$(sent 3)"
    run_expect 0 hist-delete -q --force two
    [[ ! -e $VECTORS ]] || fail 'the vector of an erased message is there'
    run_expect 0 hist-search --like car
    sent 5 >shown
    is 'the texts' shown '["my automobile broke down","a recipe for bread"]'
    sed 's/ broke/ really broke/' "$HISTORY" >lines
    cat lines >"$HISTORY"
    run_expect 0 hist-search --like car
    sent 7 >shown
    is 'the texts' shown '["my automobile really broke down","a recipe for bread"]'
}

@test "like: what a server may not answer is an error, and nothing of it is stored" {
    local body
    fill
    run_expect 0 hist-append -s five last
    for body in '{"data":[]}' '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}' '[' '{}' '{"error":{"message":"no such model"}}' \
        '{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]},{"index":2,"embedding":[1]},{"index":3,"embedding":[1]}]}' \
        '{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[1]},{"index":2,"embedding":[1]},{"index":3,"embedding":[1]}]}' \
        '{"data":[{"index":0,"embedding":[0,0]},{"index":1,"embedding":[1,1]},{"index":2,"embedding":[1,1]},{"index":3,"embedding":[1,1]}]}' \
        '{"data":[{"index":0,"embedding":[1e999]},{"index":1,"embedding":[1]},{"index":2,"embedding":[1]},{"index":3,"embedding":[1]}]}' \
        '{"data":[{"index":0,"embedding":["1"]},{"index":1,"embedding":[1]},{"index":2,"embedding":[1]},{"index":3,"embedding":[1]}]}' \
        '{"data":[{"index":0,"embedding":[NaN]},{"index":1,"embedding":[1]},{"index":2,"embedding":[1]},{"index":3,"embedding":[1]}]}' \
        "$(jq -cn '{data: [range(4) | {index: ., embedding: [range(16385)]}]}')"; do
        printf 'header: Content-Type: application/json\n\n%s\n' "$body" >answer
        with_server answer
        run_expect 2 hist-search --like car
        stderr_matches 'vector|no such model'
        stdout_empty
        [[ ! -s $VECTORS ]] || fail "$body is stored"
    done
    printf 'status: 401 Unauthorized\n\n{"error":{"message":"bad key test-key-1"}}\n' >answer
    with_server answer
    run_expect 2 hist-search --like car
    stderr_lacks test-key-1
    stderr_has 'hist-search: the model of embed.model made no vectors'
    # Another number of dimensions than before.
    with_server --embed a=b
    run_expect 0 hist-search --like car
    printf 'header: Content-Type: application/json\n\n{"data":[{"index":0,"embedding":[1,2]}]}\n' >answer
    start_llm answer
    sed -i "s|127.0.0.1:[0-9]*|127.0.0.1:$LLM_PORT|" "$HOME/.config/chathist/config"
    unset CHAT_MODEL OPENAI_BASE_URL
    run_expect 2 hist-search --like car
    stderr_has "a vector of 2 numbers, but '$VECTORS' has vectors of"
    stdout_empty
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

@test "like: it goes with no other search" {
    for option in -E -v -w -o -l -c -q --in-session --sort=best --query=x --regexp=x '-C 1'; do
        # shellcheck disable=SC2086
        run_expect 2 hist-search --like car $option
        stderr_has '--like goes only with'
    done
    run_expect 2 hist-search --like car other
    run_expect 2 hist-search --like ''
}
