#!/usr/bin/env bats
#
# --remote: hist-search, hist-sessions, hist-show and hist-load read the database that hist-sync pushes to.

load ../helper
load ../servers
load ../postgres

# Two histories whose copies have the same name, `work`: that of another machine has been pushed.
setup() {
    sandbox
    use_remote
    {
        hist_line s1 user 'The word Zanzibar, and Ärger' 2026-01-01T10:00:00+00:00
        hist_line s1 assistant 'an answer' 2026-01-01T10:00:01+00:00 '{"model":"m1","tool_calls":[{"id":"c","name":"lookup","args":{"q":"needle"}}]}'
        hist_line s2 user 'zanzibar again' 2026-02-01T10:00:00+00:00
        hist_line s2 assistant 'Zanzibar it is' 2026-02-01T10:00:01+00:00
        hist_line s3 user 'nothing of the kind' 2026-03-01T10:00:00+00:00
    } >far.jsonl
    hist-title --history far.jsonl s2 'An island'
    hist-sync -q --history far.jsonl --name work push
    use_history
    hist_line here user 'zanzibar on this machine' >history.jsonl
}

# same_as_far PROGRAM ARGUMENT...: the database gives what the history of the other machine gives.
same_as_far() {
    run_expect 0 "$1" --history far.jsonl "${@:2}"
    cp "$OUT" wanted
    run_expect 0 "$1" --remote --all "${@:2}"
    stdout_is_file wanted
    stderr_empty
}

@test "remote: hist-search gives what it gives in a history" {
    same_as_far hist-search zanzibar
    lines_are 3
    same_as_far hist-search --json ZANZIBAR
    same_as_far hist-search ärger zanzibar
    same_as_far hist-search needle
    same_as_far hist-search -n 1 zanzibar
    stdout_matches 'Zanzibar it is'
    same_as_far hist-search -c zanzibar
    same_as_far hist-search -l zanzibar
    same_as_far hist-search -o -w --case-sensitive Zanzibar
    lines_are 2
    same_as_far hist-search -r user --since 2026-01-15 zanzibar
    stdout_matches 'zanzibar again'
    # Of a named session all messages are fetched, so that every option works.
    same_as_far hist-search -s s2 -E -C 1 'zan.*again'
    lines_are 2
    same_as_far hist-search -s s1 -v zanzibar
    run_expect 1 hist-search --remote --all 'not there'
    stdout_empty
    stderr_empty
    run_expect 2 hist-search --remote --all -E 'z.n'
    stderr_is "hist-search: with --remote, only --session SESSION goes with expressions, queries, several --regexp, --in, --in-session, --invert-match and context (see 'hist-search --help')"
    find "$TMPDIR" -mindepth 1 >left
    empty 'temporary files' left
}

@test "remote: hist-sessions and hist-show give what they give in a history" {
    same_as_far hist-sessions
    lines_are 3
    same_as_far hist-sessions --json
    same_as_far hist-sessions -n 2
    same_as_far hist-sessions --sort count --reverse
    same_as_far hist-sessions --since 2026-01-15 --id s
    lines_are 2
    run_expect 2 hist-sessions --remote --all --match zanzibar
    stderr_is "hist-sessions: --remote goes with none of --match, --sort=size, --session, --role, --model and --from (see 'hist-sessions --help')"
    same_as_far hist-show s1
    same_as_far hist-show -f json s2 s1
    same_as_far hist-show last
    run_expect 0 hist-show --remote --all
    stdout_matches 'nothing of the kind'
    run_expect 1 hist-show --remote absent
    stderr_matches "^hist-sync: no session 'absent'"
    run_expect 0 hist-search --remote --all -l zanzibar
    hist-show --remote --all - <"$OUT" >shown
    [[ $(grep -ci zanzibar shown) == 3 ]]
    find "$TMPDIR" -mindepth 1 >left
    empty 'temporary files' left
}

@test "remote: a session that was loaded continues here, and goes back with the next push" {
    use_echo
    run_expect 0 hist-load --remote s1
    stdout_has 'The word Zanzibar, and Ärger'
    stderr_empty
    run_expect 0 chat 'and more'
    json_is history.jsonl 'select(.session_id == "s1") | .content' 'The word Zanzibar, and Ärger' 'an answer' \
        'and more' "$(cat "$OUT")"
    # Loaded again: no line is doubled, and the local ones stay.
    remember history.jsonl
    run_expect 0 hist-load -q --remote s1
    unchanged history.jsonl
    run_expect 0 hist-sync -q --name work push
    run_expect 0 hist-sync -q --history far.jsonl --name work pull
    json_is far.jsonl 'select(.session_id == "s1") | .content' 'The word Zanzibar, and Ärger' 'an answer' \
        'and more' "$(tail -n 1 history.jsonl | jq -r .content)"
    run_expect 1 hist-load --remote absent
    unchanged history.jsonl
    # Nothing is sent, so the lines that cannot be sent do not matter.
    hist_line 'a name' user hello >>history.jsonl
    run_expect 0 hist-load --remote s1
    stderr_empty
}

@test "remote: no server, no place, no hist-sync" {
    kill_postgres
    run_expect 4 hist-search --remote --all zanzibar
    stdout_empty
    stderr_matches '^hist-sync: '
    start_postgres
    unset CHAT_REMOTE
    run_expect 2 hist-show --remote
    stderr_is "hist-sync: no place is given, by an argument, the setting 'remote' or CHAT_REMOTE: a directory, ssh://HOST or postgresql://... is expected (see 'hist-sync --help')"
    CHAT_REMOTE=$PWD run_expect 2 hist-search --remote zanzibar
    stderr_is "hist-sync: --remote, --search, --sessions and --show read a database: postgresql://... as an argument, the setting 'remote' or CHAT_REMOTE (see 'hist-sync --help')"
    configure "remote = $PLACE"
    run_expect 0 hist-search -c --remote --all zanzibar
    stdout_is 3
    # The codes of the four programs are those of hist-sync.
    for program in 'hist-search --all x' 'hist-sessions --all' 'hist-show --all x' 'hist-load x'; do
        # shellcheck disable=SC2086
        CHAT_REMOTE="$PLACE&user=nobody$BATS_TEST_NUMBER" run_expect 3 $program --remote
        # shellcheck disable=SC2086
        CHAT_REMOTE="postgresql:///x?host=$PWD/absent" run_expect 4 $program --remote
    done
    mkdir bin
    run_expect 2 env PATH="$PWD/bin" "$BIN/hist-show" --remote
    stderr_matches '^hist-show: .*hist-sync'
    run_expect 2 hist-show --remote --history one --history two
    stderr_is "hist-show: --remote reads the copies of one history, or with --all those of all (see 'hist-show --help')"
}

@test "remote: the newest message comes first, whatever the order of the lines, and no clock that is ahead wins" {
    {
        hist_line ahead0 user 'word 0' 2998-01-01T10:00:00+00:00
        hist_line s1 user 'word 1' 2024-03-01T10:00:00+00:00
        hist_line s2 user 'word 2' 2024-01-01T10:00:00+00:00
        hist_line ahead3 user 'word 3' 2999-01-01T10:00:00+00:00
        hist_line s4 user 'word 4' 2024-02-01T10:00:00+00:00
        hist_line s5 user 'word 5' 2024-04-01T10:00:00+00:00
        hist_line s5 user 'word 6' 2023-04-01T10:00:00+00:00
        hist_line s2 user 'other' 2024-01-01T10:00:01+00:00
    } >times.jsonl
    hist_line titled title 'no message' 2024-06-01T10:00:00+00:00 >>times.jsonl
    hist-sync -q --history times.jsonl --name times push
    read_it() { run_expect 0 hist-sync --name times "$@"; }
    # The time that is ahead counts as the latest before it in the history.
    read_it --search WORD
    [[ $(jq -r .content "$OUT" | tr -dc '0-9\n' | paste -sd ' ') == '5 3 1 4 2 6 0' ]]
    read_it --search word -n 2
    [[ $(jq -r .content "$OUT" | tr -dc '0-9\n' | paste -sd ' ') == '5 3' ]]
    read_it --search word --search 3
    [[ $(jq -r .content "$OUT") == 'word 3' ]]
    read_it --sessions
    [[ $(jq -r .session_id "$OUT" | paste -sd ' ') == 's5 ahead3 s1 s4 s2 ahead0' ]]
    stdout_lacks titled
    read_it --sessions -n 1
    [[ $(jq -r .last_accessed "$OUT") == 2024-04-01* ]]
    read_it --show last
    [[ $(jq -r .session_id "$OUT" | uniq) == s5 ]]
    run_expect 0 sql "SELECT session_id FROM chathist.sessions WHERE history = 'times' AND last_accessed = '2024-01-01 10:00:01+00'"
    stdout_is s2
}
