#!/usr/bin/env bats
#
# hist-title: a session gets a title, and every program that names sessions shows it.

load ../helper

setup() {
    sandbox
    umask 077
    use_history
}

# line SESSION ROLE TEXT: a line of the history.
line() {
    printf '{"id":"m%s","session_id":"%s","timestamp":"2024-06-27T15:00:%02d.000000+00:00","role":"%s","content":"%s"}\n' \
        "$((++LINES_MADE))" "$1" "$LINES_MADE" "$2" "$3" >>"$HISTORY"
}

@test "hist-title: gives, prints, changes and removes a title" {
    line a user 'first question'
    line a assistant 'answer'
    line b user 'other question'
    run_expect 0 hist-title a
    stdout_empty
    run_expect 0 hist-title a $'nginx \n behind' 'a proxy '
    stdout_empty
    stderr_empty
    run_expect 0 hist-title a
    stdout_is 'nginx behind a proxy'
    run_expect 0 hist-title --json a
    stdout_is '{"session_id":"a","title":"nginx behind a proxy"}'
    tail -n 1 "$HISTORY" | jq -e 'keys == ["content","id","role","session_id","timestamp"] and .role == "title"' >"$TMPDIR/jq"
    # The same once more stores nothing.
    remember "$HISTORY"
    run_expect 0 hist-title a nginx behind a proxy
    unchanged "$HISTORY"
    # The order stays, and the title is no message.
    run_expect 0 hist-sessions
    stdout_is $'b\t2024-06-27T15:00:03.000000+00:00\t1\tother question' \
        $'a\t2024-06-27T15:00:02.000000+00:00\t2\tnginx behind a proxy'
    run_expect 0 hist-sessions --json -s a
    json_is "$OUT" '[.title, .preview, .message_count] | tostring' '["nginx behind a proxy","first question",2]'
    run_expect 0 hist-show --json last
    json_is "$OUT" .content 'other question'
    run_expect 0 hist-show --json a
    json_is "$OUT" .content 'first question' 'answer'
    run_expect 0 hist-stats --json
    json_is "$OUT" 'select(.by == null or .key == null) | .messages' 3
    run_expect 0 hist-check
    stdout_is '4 lines, 3 messages, 2 sessions: 0 problems, 0 warnings'
    # Only a search of titles finds it.
    run_expect 1 hist-search proxy
    run_expect 0 hist-search -l --in title PROXY
    stdout_is a
    run_expect 0 hist-search -c ''
    stdout_is 3
    echo a | run_expect 0 hist-title - renamed
    run_expect 0 hist-title a
    stdout_is renamed
    run_expect 0 hist-title --remove a
    run_expect 0 hist-title a
    stdout_empty
    run_expect 0 hist-sessions -s a
    stdout_is $'a\t2024-06-27T15:00:02.000000+00:00\t2\tfirst question'
    run_expect 2 hist-title a "$(printf '%0201d' 0)"
    stderr_is 'hist-title: a title has at most 200 characters'
    run_expect 1 hist-title nginx
    stderr_is "hist-title: no session 'nginx'"
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

@test "hist-title: exports, copies, imports and deletions take the title along" {
    line a user 'first question'
    line a title 'old name'
    line a assistant 'answer'
    line a title 'A talk with a name'
    run_expect 0 hist-export -f md a
    stdout_has '# A talk with a name' 'first question'
    run_expect 0 hist-show -f md a
    stdout_has '# A talk with a name'
    run_expect 0 hist-export -f txt a
    stdout_has '=== A talk with a name'
    run_expect 0 hist-export -f html -o page.html a
    grep -c 'A talk with a name' page.html >"$TMPDIR/count"
    is cat "$TMPDIR/count" 1
    run_expect 0 hist-export -f openai a
    json_is "$OUT" '.messages | length' 2
    run_expect 0 hist-export -f jsonl -o all.jsonl a
    [[ $(wc -l <all.jsonl) -eq 4 ]]
    run_expect 0 hist-export -f json -o all.json a
    json_is all.json '.messages[].role' title user assistant
    for file in all.jsonl all.json; do
        run_expect 0 hist-import --history "new-$file" "$file"
        run_expect 0 hist-title --history "new-$file" a
        stdout_is 'A talk with a name'
        run_expect 0 hist-import --history "new-$file" "$file"
        run_expect 0 hist-sessions --history "new-$file"
        stdout_is $'a\t2024-06-27T15:00:03.000000+00:00\t2\tA talk with a name'
    done
    run_expect 0 hist-fork -q a
    run_expect 0 hist-title "$(cat "$OUT")"
    stdout_is 'A talk with a name'
    run_expect 0 hist-delete --force a
    stdout_has 'A talk with a name'
    run_expect 1 hist-search --in title 'old name'
}

@test "hist-title: after a title from the last microsecond of the year 9999 another one is stored" {
    line a user hello
    jq -cn '{id: "t", session_id: "a", timestamp: "9999-12-31T23:59:59.999999Z", role: "title", content: "last"}' >>"$HISTORY"
    run_expect 0 hist-title a 'new'
    run_expect 0 chat -q -p echo -s a --title other hello
    stdout_is $'hello\n\nhello\n[1 message]'
    [[ $(jq -r 'select(.role != "title").role' "$HISTORY" | wc -l) == 3 ]]
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
        line a user hello
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
