#!/usr/bin/env bats
#
# hist-title: a session gets a title, and every program that names sessions shows it.

load ../helper

setup() {
    sandbox
    umask 077
    use_history
}

@test "hist-title: chat --title names the session of the turn, and nothing of it is sent" {
    start_llm --reply one --reply two
    run_expect 0 chat -s notes --title 'my notes' hello
    run_expect 0 hist-title notes
    stdout_is 'my notes'
    run_expect 0 chat -s notes again
    request_messages_are 2 'user:hello' 'assistant:one' 'user:again'
    run_expect 0 hist-show --json --raw notes
    json_is "$OUT" .role user title assistant user assistant
    run_expect 2 chat --once --title x hello
    stderr_has '--title is for a session that is stored'
    run_expect 2 chat -s notes --title "$(printf '%0201d' 0)" hello
    stderr_has 'a title has at most 200 characters'
}

@test "hist-title: chat stores the title with the prompt, so that it is there if chat is killed" {
    background chat -p echo -o delay_ms=60000 -s notes --title 'my notes' hello
    wait_for grep -q hello "$HISTORY"
    kill -KILL "$BG"
    finish 137
    run_expect 0 hist-title notes
    stdout_is 'my notes'
    # Another title, also with a prompt that is answered again.
    run_expect 0 chat -p echo -s notes --title 'other notes' --regenerate
    run_expect 0 hist-title notes
    stdout_is 'other notes'
}

# foreign ID TIME TITLE [REPLACED]: a title of another program, whose clock is ahead.
foreign() {
    jq -cn --arg id "$1" --arg time "$2" --arg title "$3" --arg replaced "${4-}" \
        '{id: $id, session_id: "a", timestamp: $time, role: "title", content: $title} + if $replaced == "" then {} else {replaces: [$replaced]} end' >>"$HISTORY"
}

# titled TITLE: every program shows this title, and no other one.
titled() {
    run_expect 0 hist-title a
    stdout_is "$1"
    run_expect 0 hist-sessions --json
    [[ $(jq -r 'select(.session_id == "a").title' "$OUT") == "$1" ]] || fail 'hist-sessions'
    run_expect 0 hist-show -f md a
    stdout_has "# $1"
    run_expect 0 hist-export -f html a
    grep -qF "$1" "$OUT" || fail 'the page'
    run_expect 0 hist-export -f jsonl a
    run_expect 0 hist-import -q --history round "$OUT"
    run_expect 0 hist-title --history round a
    stdout_is "$1"
    rm -f round*
}

@test "hist-title: a title that is given replaces one from any clock, and the earlier ones" {
    local lines
    for lines in 1 2000; do
        rm -f "$HISTORY"*
        put a user hello
        # A large history has an index, which covers the first title.
        seq -f "%.0f $(printf 'x%.0s' {1..150})" "$lines" | sed 's/.*/{"role":"user","content":"&","session_id":"z"}/' >many
        foreign t 9999-12-31T23:59:59.999999Z theirs
        run_expect 0 hist-append --json <many
        titled theirs
        run_expect 0 hist-title a mine
        jq -se '[.[] | select(.content == "mine")][0].replaces == ["t"]' "$HISTORY" >"$TMPDIR/jq"
        titled mine
        # A title that another machine gave at the same time, by a right clock, is later.
        foreign u 2020-01-01T00:00:00Z unseen
        titled mine
        foreign v 2099-01-01T00:00:00Z concurrent t
        titled concurrent
        run_expect 0 chat -q -p echo -s a --title 'by chat' hello
        titled 'by chat'
        # Once it was replaced, a title stays so, also if it comes again.
        foreign v 2099-01-01T00:00:00Z concurrent
        titled 'by chat'
        run_expect 0 hist-title --remove a
        run_expect 0 hist-title a
        stdout_empty
        run_expect 0 hist-check
    done
}
