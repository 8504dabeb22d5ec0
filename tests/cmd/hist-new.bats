#!/usr/bin/env bats
#
# hist-new: starts a session, makes it current, prints its id.

load ../helper
load ../history

@test "hist-new: prints a new id, which is current, and stores no line" {
    run_expect 0 hist-new
    made
    stderr_empty
    current "$ID"
    [[ ! -e $HISTORY ]]
    first=$ID
    run_expect 0 hist-new
    made
    [[ $ID != "$first" ]]
    current "$ID"
    run_expect 0 hist-append hello
    json_is "$HISTORY" .session_id "$ID"
}

@test "hist-new: the id holds the time in milliseconds" {
    before=$(date +%s%3N)
    run_expect 0 hist-new
    made
    [[ ${ID:5:13} -ge $before && ${ID:5:13} -le $(date +%s%3N) ]]
}

@test "hist-new: --json" {
    run_expect 0 hist-new --json
    stdout_matches '^\{"session_id":"sess_[0-9]{13}_[0-9a-f]{6}"\}$'
    lines_are 1
    current "$(jq -r .session_id "$OUT")"
}

@test "hist-new: --detached leaves the current session and writes nothing" {
    run_expect 0 hist-new --detached
    made
    [[ -z $(ls -A) ]]
    run_expect 0 hist-new
    made
    run_expect 0 hist-new --detached
    current "$ID"
}

@test "hist-new: -S stores a system prompt" {
    run_expect 0 hist-new -S $'be "brief"\n\xff'
    made
    current "$ID"
    json_is "$HISTORY" '[.session_id, .role, .content, .reset] | @json' "[\"$ID\",\"system\",\"be \\\"brief\\\"\\n"$'\xef\xbf\xbd",null]'
    run_expect 0 hist-new --detached --system=x
    made
    json_is "$HISTORY" '.content' $'be "brief"\n\xef\xbf\xbd' x
}

@test "hist-new: --reset empties the context of a session under its id, and keeps the system prompt" {
    hist_line s system 'be brief' >"$HISTORY"
    hist_line s user 'remember me' >>"$HISTORY"
    hist_line t user 'another' >>"$HISTORY"
    cp "$HISTORY" before
    run_expect 0 hist-new --reset s
    stdout_is s
    stderr_empty
    current s
    head -n 3 "$HISTORY" >kept
    same 'lines before' before kept
    tail -n 1 "$HISTORY" >added
    json_is added '[.session_id, .role, .content, .reset] | @json' '["s","system","be brief",true]'
    run_expect 0 hist-show --json s
    stdout_json .content 'be brief'
    run_expect 0 hist-search -c 'remember me'
    stdout_is 1
    run_expect 0 hist-show --json t
    stdout_json .content another
}

@test "hist-new: --reset with another system prompt, with none, of a new id, detached" {
    hist_line s user hello >"$HISTORY"
    run_expect 0 hist-new --reset s -S 'be kind'
    run_expect 0 hist-show --json s
    stdout_json '.content, .reset' 'be kind' true
    run_expect 0 hist-new --reset s -S ''
    run_expect 0 hist-show --json s
    stdout_json '.content, .reset' '' true
    id=8b1e7f5e-7c4b-4a8e-9d1c-0123456789ab
    run_expect 0 hist-new --detached --reset "$id"
    stdout_is "$id"
    current s
    stderr_is "hist-new: session '$id' has no messages yet: it is not made current"
    run_expect 1 hist-show "$id"
}

@test "hist-new: --reset again and again keeps the prompt" {
    run_expect 0 hist-new -S 'be brief'
    made
    run_expect 0 hist-new --reset "$ID"
    run_expect 0 hist-new --reset "$ID"
    run_expect 0 hist-show --json "$ID"
    stdout_json '.content, .reset' 'be brief' true
}

@test "hist-new: --reset takes an id literally" {
    hist_line session-0001 user hello >"$HISTORY"
    run_expect 0 hist-new --reset 0001 -S 'be brief'
    stdout_is 0001
    json_is "$HISTORY" .session_id session-0001 0001
    local id
    for id in current last '' -x 'a b' a/b é "$(printf '%0129d' 1)"; do
        run_expect 2 hist-new --reset "$id"
        stdout_empty
        stderr_is "hist-new: '$id' is no session id (see 'hist-new --help')"
    done
    [[ $(wc -l <"$HISTORY") -eq 2 ]]
    run_expect 0 hist-new --reset "$(printf '%0128d' 1)"
}

@test "hist-new: CHAT_SESSION overrides the new session, and that is said" {
    CHAT_SESSION=pinned run_expect 0 hist-new
    made
    stderr_is "hist-new: CHAT_SESSION is set to 'pinned' and overrides the current session"
    current "$ID"
    CHAT_SESSION=pinned run_expect 0 hist-new --detached
    stderr_empty
    CHAT_SESSION=pinned run_expect 0 hist-new -q --reset pinned
    stderr_empty
    CHAT_SESSION=pinned run_expect 0 hist-new -q
    stderr_empty
    made
}

@test "hist-new: no session becomes current in a history that is no regular file" {
    mkfifo fifo
    for file in fifo /dev/null .; do
        run_expect 2 hist-new --history "$file"
        stdout_empty
        [[ $(<"$ERR") == "hist-new: cannot open '$file': is a "* ]]
        [[ ! -e $file.session ]]
    done
    run_expect 0 hist-new --detached --history fifo
}

@test "hist-new: takes no argument" {
    run_expect 2 hist-new name
    stdout_empty
    stderr_is "hist-new: no argument is expected (see 'hist-new --help')"
    [[ -z $(ls -A) ]]
}

@test "hist-new: an id that nobody got is not made current" {
    use_history
    run_expect 2 sh -c 'hist-new >/dev/full'
    [[ ! -e $HISTORY.session ]]
}
