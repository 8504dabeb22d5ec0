#!/usr/bin/env bats
#
# hist-fork: a session that begins as another one did.

load ../helper
load ../history

# copies FILTER LINE...: what jq makes of the lines of the new session.
copies() {
    local filter=$1
    shift
    json_is "$HISTORY" "select(.session_id == \"$ID\") | $filter" "$@"
}

@test "hist-fork: copies a session, makes the copy current, and leaves the old one alone" {
    hist_lines s 4 >"$HISTORY"
    hist_lines other 2 >>"$HISTORY"
    cp "$HISTORY" before
    run_expect 0 hist-fork s
    made
    stderr_empty
    cmp -n "$(stat -c %s before)" before "$HISTORY"
    pointer_is "$HISTORY.session" "$ID"
    copies .content 'message 1' 'message 2' 'message 3' 'message 4'
    copies .role user assistant user assistant
    mapfile -t ids < <(jq -r 'select(.session_id == "s") | .id' before)
    copies .forked_from "${ids[@]}"
    # Ids and times of their own.
    [[ $(jq -r .id "$HISTORY" | sort -u | wc -l) -eq 10 ]]
    [[ $(jq -r '.timestamp[:4]' "$HISTORY" | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ') == '6 4 ' ]]
    use_echo
    run_expect 0 chat next
    stdout_has '[5 messages]'
}

@test "hist-fork: --at a message, by id, beginning or end" {
    hist_lines s 4 >"$HISTORY"
    local id
    id=$(sed -n 2p "$HISTORY" | jq -r .id)
    for name in "$id" "${id%?}" "${id: -4}"; do
        run_expect 0 hist-fork --detached --at "$name" s
        made
        copies .content 'message 1' 'message 2'
    done
    [[ ! -e $HISTORY.session ]]
    remember "$HISTORY"
    run_expect 2 hist-fork --at "${id:0:5}" s
    stdout_empty
    stderr_is "hist-fork: message '${id:0:5}' is ambiguous: 4 are called so"
    for name in nothing "${id: -3}" ''; do
        run_expect 1 hist-fork --at "$name" s
        stdout_empty
        stderr_is "hist-fork: no message '$name' in the session"
    done
    unchanged "$HISTORY"
}

@test "hist-fork: what is copied is the thread, and replies name the copied prompts" {
    {
        hist_line s system old
        hist_line s system prompt '' '{"reset":true}'
        hist_line s user one '' '{"id":"u1"}'
        hist_line s user two '' '{"id":"u2"}'
        hist_line s assistant wrong '' '{"id":"a1","reply_to":"u1"}'
        hist_line s assistant 'to two' '' '{"id":"a2","reply_to":"u2"}'
        hist_line s assistant 'to one' '' '{"id":"a3","reply_to":"u1","replaces":["a1"]}'
        hist_line s assistant lost '' '{"id":"a4","reply_to":"nobody"}'
    } | jq -c . >"$HISTORY"
    run_expect 0 hist-fork s
    made
    copies .content prompt one 'to one' two 'to two' lost
    copies '.reset // empty' true
    [[ -z $(jq "select(.session_id == \"$ID\") | .replaces // empty" "$HISTORY") ]]
    [[ $(jq -s --arg id "$ID" '[.[] | select(.session_id == $id)] | .[2].reply_to == .[1].id and .[4].reply_to == .[3].id
        and .[5].reply_to == null' "$HISTORY") == true ]]
    run_expect 0 hist-show --json "$ID"
    stdout_json .content prompt one 'to one' two 'to two' lost
    run_expect 0 hist-check
    stdout_lacks "$ID"
}

@test "hist-fork: --at a message that was replaced or reset goes back to before that" {
    {
        hist_line s user one '' '{"id":"u1"}'
        hist_line s assistant first '' '{"id":"a1","reply_to":"u1"}'
        hist_line s user two '' '{"id":"u2"}'
        hist_line s assistant second '' '{"id":"a2","reply_to":"u2"}'
        hist_line s assistant 'first again' '' '{"id":"a3","reply_to":"u1","replaces":["a1"]}'
        hist_line s user three '' '{"id":"u3","replaces":["u2","a2"]}'
        hist_line s system '' '' '{"id":"r1","reset":true}'
        hist_line s user new '' '{"id":"u4"}'
    } >"$HISTORY"
    run_expect 0 hist-fork --at a1 s
    made
    copies .content one first
    run_expect 0 hist-fork --at a2 s
    made
    copies .content one 'first again' two second
    run_expect 0 hist-fork --at u3 s
    made
    copies .content one 'first again' three
    run_expect 0 hist-fork s
    made
    copies .content '' new
    # What the thread has comes first; of the other lines, too, a part must be that of one only.
    run_expect 0 hist-fork --at u s
    made
    copies .content '' new
    remember "$HISTORY"
    run_expect 2 hist-fork --at a s
    stderr_is "hist-fork: message 'a' is ambiguous: 3 are called so"
    stdout_empty
    unchanged "$HISTORY"
}

@test "hist-fork: --at the whole id of a message that was replaced is not the beginning of another one" {
    {
        hist_line s user one '' '{"id":"1"}'
        hist_line s assistant first '' '{"id":"2"}'
        hist_line s user 'one again' '' '{"id":"3","replaces":["1","2"]}'
        hist_line s assistant second '' '{"id":"10"}'
    } >"$HISTORY"
    run_expect 0 hist-fork --at 1 s
    made
    copies .content one
    run_expect 0 hist-fork --at 10 s
    made
    copies .content 'one again' second
}

@test "hist-fork: a call is not parted from its results" {
    {
        hist_line s user question
        hist_line s assistant '' '' '{"id":"call","tool_calls":[{"id":"c1","name":"a","args":{}},{"id":"c2","name":"b","args":{}}]}'
        hist_line s tool one '' '{"id":"r1","tool_call_id":"c1"}'
        hist_line s tool two '' '{"id":"r2","tool_call_id":"c2"}'
        hist_line s assistant answer
    } >"$HISTORY"
    local name
    for name in call r1 r2; do
        run_expect 0 hist-fork --at "$name" s
        made
        copies '.content + "|" + (.tool_call_id // "")' 'question|' '|' 'one|c1' 'two|c2'
    done
    copies '.tool_calls // empty | tojson' '[{"id":"c1","name":"a","args":{}},{"id":"c2","name":"b","args":{}}]'
}

@test "hist-fork: fields that nobody knows are copied byte for byte, and escapes" {
    printf '%s\n' '{"id":"x","x_new":{"a": [1,2.50e1]},"session_id":"s","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"\u00e9\u0000","model":"m","forked_from":"w"}' >"$HISTORY"
    run_expect 0 hist-fork s
    made
    run_expect 0 hist-show --json "$ID"
    stdout_has '"content":"\u00e9\u0000","forked_from":"x","model":"m","x_new":{"a": [1,2.50e1]}}'
}

@test "hist-fork: the current session, current, last, -, a part of a name; --json" {
    hist_lines alpha 2 >"$HISTORY"
    hist_lines beta 1 >>"$HISTORY"
    run_expect 1 hist-fork
    stdout_empty
    stderr_is 'hist-fork: there is no current session'
    run_expect 0 hist-load -q alpha
    run_expect 0 hist-fork --detached
    made
    copies .content 'message 1' 'message 2'
    run_expect 0 hist-fork --detached current
    run_expect 0 hist-fork --detached lpha
    run_expect 0 hist-fork --detached last
    echo $'beta\tx' | run_expect 0 hist-fork -
    made
    copies .content 'message 1'
    run_expect 0 hist-fork --detached --json beta
    stdout_matches '^\{"session_id":"sess_[0-9]{13}_[0-9a-f]{6}"\}$'
    remember "$HISTORY"
    run_expect 2 hist-fork alpha beta
    stderr_is "hist-fork: one session is expected (see 'hist-fork --help')"
    printf 'alpha\nbeta\n' | run_expect 2 hist-fork -
    run_expect 1 hist-fork - </dev/null
    stderr_is 'hist-fork: no session was given'
    run_expect 1 hist-fork nobody
    stderr_is "hist-fork: no session 'nobody'"
    run_expect 0 hist-new
    run_expect 1 hist-fork
    stderr_matches "^hist-fork: session 'sess_.*' has no messages\$"
    unchanged "$HISTORY"
}

@test "hist-fork: a line that could not be written again is not copied, nor are the others" {
    hist_line s user fine >"$HISTORY"
    hist_line s user odd '' '{"id":"odd","images":"two"}' >>"$HISTORY"
    remember "$HISTORY"
    run_expect 2 hist-fork s
    stdout_empty
    stderr_is "hist-fork: cannot copy message 'odd': 'images' is not a number"
    unchanged "$HISTORY"
    [[ ! -e $HISTORY.session ]]
}

@test "hist-fork: nothing is current that nobody got the id of" {
    hist_lines s 2 >"$HISTORY"
    run_expect 2 sh -c 'hist-fork s >/dev/full'
    [[ ! -e $HISTORY.session ]]
}
