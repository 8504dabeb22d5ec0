#!/usr/bin/env bats
#
# What a name means: an id that one program hands to another is exact, and no name stands for another session.

# shellcheck disable=SC1003,SC2016

load ../helper
load ../history
load ../tmux

# Each test has a history of its own.
teardown() {
    tmux_end
    sandbox_end
}

# odd_ids: a line SPAM of each id that could be mistaken, and one line of each that it could be mistaken for.
odd_ids() {
    local id
    for id in 'victim' 'a' 'b c' 'sess_1719500000000_a1b2c3' 'q' 'z' ''\''q'; do
        hist_line "$id" user 'my work'
    done
    for id in 'victim ' ' victim' last current vict im 2c3 $'a\tb' $'a\nb' '"victim"' '"q' 'b  c' '-' '--' '-f' '' \
        ' ' $'z\e[31m' $'z\u202e' $'z\u0085' $'q\r' 'q\' '*' 'a.*'; do
        hist_line "$id" user SPAM
    done
    printf '%s\n' '{"id":"9-aaaaaaaa","session_id":"a\u0000b","timestamp":"2026-11-23T19:00:00.000000+00:00","role":"user","content":"SPAM"}'
    hist_line newest user 'my newest work'
}

# The sessions of the history that are in it with another text than SPAM.
mine_are_left() {
    grep SPAM "$HISTORY" >spam || :
    empty 'SPAM that is left' spam
    json_is "$HISTORY" .session_id victim a 'b c' sess_1719500000000_a1b2c3 q z "'q" newest
}

@test "names: hist-delete - erases the sessions that were listed, and no other" {
    odd_ids >"$HISTORY"
    cp "$HISTORY" odd
    hist-search -l SPAM | run_expect 0 hist-delete --force -
    stderr_empty
    lines_are 25
    mine_are_left
    # The rows of a search and of a list begin with the same ids.
    cp odd "$HISTORY"
    hist-search SPAM | run_expect 0 hist-delete --force -
    mine_are_left
    cp odd "$HISTORY"
    hist-sessions | grep 'SPAM$' | run_expect 0 hist-delete --force -
    mine_are_left
    cp odd "$HISTORY"
    hist-stats --by session | run_expect 1 hist-delete --force -
    stderr_is "hist-delete: no session 'total'"
    run_expect 0 hist-sessions
    stdout_empty
}

@test "names: what a list prints is what - takes, in every program that takes sessions" {
    local id
    odd_ids >"$HISTORY"
    # Whole, in its own order of lines, is the history again.
    run_expect 0 bash -c 'hist-sessions | hist-export -f jsonl -'
    stdout_is_file "$HISTORY"
    hist-sessions >list
    while IFS=$'\t' read -r id _; do
        printf '%s\n' "$id" >one
        run_expect 0 hist-show --json - <one
        lines_are 1
        jq -r '.session_id | tojson' "$OUT" >shown
        run_expect 0 hist-search --json -s - SPAM <one || run_expect 0 hist-search --json -s - my <one
        jq -r '.session_id | tojson' "$OUT" >found
        same "$id" shown found
        # An argument can have the form of the list, too.
        run_expect 0 hist-stats --json -s "$(cat shown)"
        stdout_json .messages 1
    done <list
    echo victim | run_expect 0 hist-fork --detached -
    echo victim | run_expect 0 hist-load --json -
    stdout_json .session_id victim
    echo '"victim"' | run_expect 0 hist-load --json -
    stdout_json .session_id victim
}

@test "names: - takes no beginning, no end, neither last nor current" {
    local name
    hist_line sess_1719500000000_a1b2c3 user mine >"$HISTORY"
    hist-load -q sess_1719500000000_a1b2c3 >/dev/null
    for name in last current sess_ a1b2c3 'sess_1719500000000_a1b2c3 ' ' sess_1719500000000_a1b2c3'; do
        printf '%s\n' "$name" | run_expect 1 hist-delete --force -
        stdout_empty
        stderr_is "hist-delete: no session '$name'"
        printf '%s\tx\n' "$name" | run_expect 1 hist-show -
        printf '%s\n' "$name" | run_expect 1 hist-load -
        printf '%s\n' "$name" | run_expect 1 hist-fork -
        printf '%s\n' "$name" | run_expect 1 hist-export -
        printf '%s\n' "$name" | run_expect 1 hist-search -s - mine
        printf '%s\n' "$name" | run_expect 1 hist-stats -s -
    done
    run_expect 0 hist-show --json last
    lines_are 1
}

@test "names: an id in quotes must be a JSON string" {
    hist_line 'a"' user mine >"$HISTORY"
    for name in '"' '"a' '"a"b' '"\x"' '"a\"'; do
        printf 'a"\n%s\n' "$name" | run_expect 2 hist-delete --force -
        stderr_is "hist-delete: bad session id $name: not a JSON string (see 'hist-delete --help')"
        run_expect 2 hist-show "$name"
    done
    run_expect 0 hist-show --json '"a\""'
    stdout_json .session_id 'a"'
}

@test "names: hist-browse acts on the session that it shows" {
    command -v tmux >/dev/null || skip 'no tmux'
    tmux_begin
    hist_line last user JUNK >"$HISTORY"
    hist_line precious user 'MY WORK' >>"$HISTORY"
    terminal
    type_lines 'hist-browse --print id JUNK >printed; echo "status $?"'
    screen_has 'Esc back' JUNK
    keys Tab
    keys d Q
    screen_has "delete 'JUNK', 1 message? y"
    keys y
    screen_has 'status 130'
    json_is "$HISTORY" .session_id precious
    type_lines 'clear; hist-browse --print id >printed; echo "status $?"'
    screen_has 'Esc '
    hist_line 'precious ' user OTHER >>"$HISTORY"
    keys / C-u
    keys -l OTHER
    screen_has '1/1'
    keys Tab
    keys x
    screen_has 'export to: precious .md'
    keys C-u out.jsonl Enter
    screen_has exported
    json_is out.jsonl .content OTHER
    keys Enter
    screen_has 'status 0'
    is printed printed '"precious "'
}

# ---- chat -s

@test "names: chat -s takes the six digits at the end of exactly one generated id" {
    use_echo
    {
        hist_line sess_1719500000000_a1b2c3 user first
        hist_line sess_1719500000001_d4e5f6 user second
        hist_line sess_1719500000002_d4e5f6 user third
        hist_line my_0a0b0c user 'not generated'
        hist_line 0c0c0c user 'a name of its own'
        hist_line sess_1719500000003_0c0c0c user fourth
    } >"$HISTORY"
    run_expect 0 chat -v -s a1b2c3 more
    stderr_has 'session=sess_1719500000000_a1b2c3 state=existing message_count='
    remember "$HISTORY"
    run_expect 2 chat -s d4e5f6 more
    stdout_empty
    stderr_is "chat: session 'd4e5f6' is ambiguous: sess_1719500000002_d4e5f6, sess_1719500000001_d4e5f6"
    unchanged "$HISTORY"
    # An id comes first, and all else is a name.
    local name
    run_expect 0 chat -v -s 0c0c0c more
    stderr_has 'session=0c0c0c state=existing'
    for name in 0a0b0c a1b2c a1b2c3d _a1b2c3 A1B2C3 sess_171950000000 1b2c3; do
        run_expect 0 chat --json -s "$name" more || run_expect 2 chat -s "$name" more
        [[ $name == _* ]] || stdout_json 'select(.session_id).session_id' "$name" "$name"
    done
    # A variable is exact.
    CHAT_SESSION=a1b2c3 run_expect 0 chat -v more
    stderr_has 'session=a1b2c3 state=new'
    run_expect 0 hist-append -s d4e5f6 more
    json_is "$HISTORY" 'select(.session_id == "d4e5f6").content' more
}

@test "names: a session that a name begins is a hint" {
    use_echo
    run_expect 0 chat -s plan one
    stderr_empty
    run_expect 0 on_tty --raw --fds 2 chat --no-stdin -s other one
    stdout_has "chat: session 'other' begins"
    run_expect 0 on_tty --raw --fds 2 chat --no-stdin -s plan two
    stdout_lacks begins
    run_expect 0 on_tty --raw --fds 2 chat --no-stdin -q -s third one
    stdout_lacks begins
    CHAT_SESSION=fourth run_expect 0 on_tty --raw --fds 2 chat --no-stdin one
    stdout_has "chat: session 'fourth' begins"
    run_expect 0 on_tty --raw --fds 2 hist-append -s fifth one
    stdout_has "hist-append: session 'fifth' begins"
}

@test "names: what is no session id is told with the remedy" {
    use_echo
    run_expect 2 chat -s last x
    stderr_is "chat: bad session id 'last' in -s: leave -s out for the current session, -c continues the one used last (see 'chat --help')"
    run_expect 2 chat -s 'my session' x
    stderr_is "chat: bad session id 'my session' in -s: up to 128 letters, digits and . _ : -, the first a letter or a digit (see 'chat --help')"
    CHAT_SESSION='bad id' run_expect 2 chat x
    stderr_is "chat: bad session id 'bad id' in CHAT_SESSION: up to 128 letters, digits and . _ : -, the first a letter or a digit (see 'chat --help')"
    CHAT_SESSION=current run_expect 2 chat x
    stderr_is "chat: bad session id 'current' in CHAT_SESSION: leave CHAT_SESSION out for the current session (see 'chat --help')"
    run_expect 2 hist-append -s last x
    stderr_is "hist-append: bad session id 'last' in -s: leave -s out for the current session (see 'hist-append --help')"
    [[ ! -e $HISTORY ]]
}

# ---- what does not exist

@test "names: --reset of an id without lines stores nothing and makes nothing current" {
    hist-append -q -s plan one >/dev/null
    hist-load -q plan >/dev/null
    remember "$HISTORY"
    run_expect 0 hist-new --reset plna
    stdout_is plna
    stderr_is "hist-new: session 'plna' has no messages yet: it is not made current"
    unchanged "$HISTORY"
    pointer_is "$HISTORY.session" plan
    run_expect 0 hist-new -q --reset plna -S 'be brief'
    stderr_empty
    pointer_is "$HISTORY.session" plan
    json_is "$HISTORY" 'select(.session_id == "plna") | .content, .reset' 'be brief' null
}

@test "names: a session without lines is neither exported nor forked" {
    local id
    hist-append -q -s plan one >/dev/null
    id=$(hist-new)
    run_expect 1 hist-export
    stdout_empty
    stderr_is "hist-export: session '$id' has no messages"
    run_expect 1 hist-export -o out.md "$id"
    [[ ! -e out.md ]]
    run_expect 1 hist-export "$id" plan
    stdout_has one
    stderr_is "hist-export: session '$id' has no messages"
    run_expect 1 hist-fork
    stderr_is "hist-fork: session '$id' has no messages"
}

# ---- one question

@test "names: chat --once sends no context and stores nothing" {
    start_llm --echo-context
    run_expect 0 chat first
    remember "$HISTORY"
    remember "$HISTORY.session"
    run_expect 0 chat -1 second
    stdout_is user:second
    stderr_empty
    run_expect 0 chat --once -S 'be brief' third
    request_messages_are 3 'system:be brief' user:third
    CHAT_SESSION=pinned run_expect 0 chat -1 fourth
    stdout_is user:fourth
    unchanged "$HISTORY"
    unchanged "$HISTORY.session"
    # Its history need not be one that can be read.
    chmod 0 "$HISTORY"
    run_expect 0 chat -1 fifth
    stdout_is user:fifth
    stderr_empty
    chmod 600 "$HISTORY"
    local option
    for option in --session=x --new --continue --messages=x --regenerate --edit; do
        run_expect 2 chat -1 "$option" x
        stdout_empty
        stderr_is "chat: --once sends no context: it cannot be given with ${option%=*} (see 'chat --help')"
    done
    run_expect 2 on_tty chat -1
    stdout_has 'chat: no prompt'
}

@test "names: many chats at once with --once have nothing of each other" {
    start_llm --echo-context
    seq 12 | run_expect 0 xargs -P 4 -I {} sh -c 'chat -1 "job {}" >answer-{}'
    local i
    for i in {1..12}; do is answer "answer-$i" "user:job $i"; done
    [[ ! -e $HISTORY ]]
}

# ---- standard input

@test "names: -f - attaches standard input, and wants some" {
    start_llm --echo-context
    printf 'one\ntwo\n' | run_expect 0 chat -1 -f - 'count them'
    stdout_is 'user:count them' '' '```/dev/stdin' one two '```'
    printf '\x89PNG\r\n\x1a\n' | run_expect 0 chat -1 -f - 'what is it'
    request 2 | jq -c '.messages[0].content[].type' >types
    is types types '"text"' '"image_url"'
    printf '' | run_expect 2 chat -f - 'summarise'
    stdout_empty
    stderr_is 'chat: standard input is empty'
    run_expect 2 chat -f - 'summarise' </dev/null
    printf x | run_expect 2 chat -f - -f - x
    stderr_is "chat: only one of '--messages -', '--file -' and the prompt '-' can be given (see 'chat --help')"
    printf x | run_expect 2 chat -f - -
    printf x | run_expect 2 chat -f - --messages - x
    requests_are 2
    [[ ! -e $HISTORY ]]
}

@test "names: empty standard input beside arguments is a hint" {
    use_echo
    printf '' | run_expect 0 chat -v summarise
    stderr_has 'chat: standard input is empty'
    printf '' | run_expect 0 chat -v -q summarise
    stderr_lacks 'is empty'
    printf '' | run_expect 0 chat summarise
    stderr_empty
    printf x | run_expect 0 chat -v summarise
    stderr_lacks 'is empty'
    run_expect 0 chat -v summarise </dev/null
    stderr_lacks 'is empty'
}
