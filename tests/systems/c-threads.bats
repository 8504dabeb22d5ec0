#!/usr/bin/env bats
#
# The threads per user of a question-answering engine, walked through with our programs. Its samples are in
# tests/feature/examples.bats.

# shellcheck disable=SC2016

load ../helper

ALICE=6f2c1f4e-8d0b-4a57-9c3e-2b7d5a9e1f00
BOB=0b9d7c52-3e41-4f6a-8a2d-c4f1e6b7a911

setup() {
    sandbox
    use_history
    start_llm --echo-context
}

# ---- ids made by the client

@test "C: the client makes the id, the same id is always the same thread" {
    run_expect 0 chat --json -s "$ALICE" 'one'
    stdout_json 'select(.session_id).session_id' "$ALICE" "$ALICE"
    run_expect 0 chat -s "$ALICE" two
    stdout_is 'user:one|assistant:user:one|user:two'
    json_is "$HISTORY" .session_id "$ALICE" "$ALICE" "$ALICE" "$ALICE"
    run_expect 0 hist-show --json "$ALICE"
    stdout_json .content one user:one two 'user:one|assistant:user:one|user:two'
    # A thread of a client makes nothing current.
    run_expect 1 hist-show current
    stderr_is 'hist-show: there is no current session'
}

@test "C: an id is what the format allows, and nothing else" {
    local id
    for id in a A.b_c:d-e 0 "$(printf 'x%.0s' {1..128})"; do
        run_expect 0 chat -s "$id" hello
        run_expect 0 chat -s "$id" again
        stdout_has 'user:hello|assistant:user:hello|user:again'
    done
    remember "$HISTORY"
    for id in '' ' ' a/b 'a b' ../x -x .x "$(printf 'x%.0s' {1..129})" ä $'a\nb' current last; do
        run_expect 2 chat "--session=$id" hello
        stdout_empty
        stderr_matches '^chat: .*session id'
    done
    unchanged "$HISTORY"
    requests_are 8
}

@test "C: two ids never mix, even when one begins the other" {
    run_expect 0 chat -s "$ALICE" 'alice speaks'
    run_expect 0 chat -s "$BOB" 'bob speaks'
    run_expect 0 chat -s "${ALICE%?}" 'a prefix speaks'
    stdout_is 'user:a prefix speaks'
    run_expect 0 chat -s "$ALICE" again
    stdout_is 'user:alice speaks|assistant:user:alice speaks|user:again'
    run_expect 0 chat -s "$BOB" again
    stdout_is 'user:bob speaks|assistant:user:bob speaks|user:again'
    run_expect 0 hist-show "$BOB"
    stdout_lacks alice prefix
}

@test "C: two threads at the same time never mix" {
    local i pids=() pid
    for i in 1 2 3 4 5; do
        chat -s "$ALICE" "alice $i" >/dev/null &
        pids+=($!)
        chat -s "$BOB" "bob $i" >/dev/null &
        pids+=($!)
        for pid in "${pids[@]}"; do wait "$pid"; done
        pids=()
    done
    json_is "$HISTORY" "select(.session_id == \"$ALICE\" and .role == \"user\").content" 'alice 1' 'alice 2' 'alice 3' 'alice 4' 'alice 5'
    json_is "$HISTORY" "select(.session_id == \"$BOB\" and .role == \"user\").content" 'bob 1' 'bob 2' 'bob 3' 'bob 4' 'bob 5'
    run_expect 0 hist-show "$ALICE"
    stdout_lacks bob
    run_expect 0 hist-show "$BOB"
    stdout_lacks alice
    requests_are 10
}

# ---- restart

@test "C: a restart empties the thread under its id; what was said stays findable" {
    run_expect 0 chat -s "$ALICE" 'the secret word is umbrella'
    run_expect 0 chat -s "$BOB" 'bob stays'
    run_expect 0 hist-new --detached --reset "$ALICE"
    stdout_is "$ALICE"
    stderr_empty
    run_expect 0 chat -s "$ALICE" 'which word?'
    stdout_is 'user:which word?'
    run_expect 0 chat -s "$BOB" 'and I?'
    stdout_is 'user:bob stays|assistant:user:bob stays|user:and I?'
    # The thread is what came after; search and --raw see every line.
    run_expect 0 hist-show "$ALICE"
    stdout_lacks umbrella
    stdout_has 'which word?'
    run_expect 0 hist-show --raw "$ALICE"
    stdout_has umbrella 'which word?'
    run_expect 0 hist-search -l umbrella
    stdout_is "$ALICE"
    json_is "$HISTORY" 'select(.reset) | "\(.session_id) \(.role) \(.content)"' "$ALICE system "
}

@test "C: a restart keeps the system prompt, or takes a new one" {
    run_expect 0 chat -s "$ALICE" -S 'Answer in verse' hello
    run_expect 0 hist-new --detached --reset "$ALICE"
    run_expect 0 chat -s "$ALICE" hello
    request_messages_are 2 'system:Answer in verse' user:hello
    run_expect 0 hist-new --detached --reset "$ALICE" -S 'Answer in prose'
    run_expect 0 chat -s "$ALICE" hello
    request_messages_are 3 'system:Answer in prose' user:hello
    run_expect 0 hist-new --detached --reset "$ALICE" -S ''
    run_expect 0 chat -s "$ALICE" hello
    request_messages_are 4 user:hello
}

# ---- events

@test "C: NDJSON events: the thread's id first, then text, then the end" {
    start_llm --set 'chunk: 3' openai/usage-last-chunk
    run_expect 0 chat --json -s "$ALICE" hello
    jq -e . "$OUT" >/dev/null
    stdout_line 1 "{\"type\":\"session_id\",\"session_id\":\"$ALICE\"}"
    [[ $(jq -rj 'select(.type == "text").text' "$OUT") == "$(jq -r 'select(.role == "assistant").content' "$HISTORY")" ]]
    run_expect 0 jq -r .type "$OUT"
    stdout_matches '^text$' '^usage$'
    [[ $(tail -n 1 "$OUT") == 'done' ]]
    stderr_empty
}

@test "C: an event is there as soon as its text is" {
    start_llm --set 'gate: 3 go' --reply 'slow and steady wins the race'
    background chat --json -s "$ALICE" hello
    wait_for grep -q '"text":"slow' "$OUT.bg"
    # The stream was still running, and the answer is stored at its end.
    [[ ! -e $RECORD/1.end ]]
    json_is "$HISTORY" .role user
    : >go
    finish 0
    stdout_json 'select(.type == "done").finish_reason' stop
    json_is "$HISTORY" .content hello 'slow and steady wins the race'
}

@test "C: what went wrong is told on a line of its own, behind the text" {
    start_llm openai/cut
    run_expect 7 sh -c 'chat -s "$1" hello 2>&1' - "$ALICE"
    stdout_line 1 'Hello, world.'
    stdout_matches '^chat: answer is incomplete: '
    lines_are 2
}
