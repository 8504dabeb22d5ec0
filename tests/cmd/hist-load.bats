#!/usr/bin/env bats
#
# hist-load: a past session becomes current, and the next message continues it.

load ../helper
load ../history

@test "hist-load: prints the session and makes it current" {
    put old user question 2024-06-27T15:00:00.000000+00:00
    put old assistant answer 2024-06-27T15:00:01.000000+00:00
    put new user other
    remember "$HISTORY"
    run_expect 0 hist-load old
    stdout_is '[user] 2024-06-27 15:00:00' question '' '[assistant] 2024-06-27 15:00:01' answer ''
    stderr_empty
    current old
    unchanged "$HISTORY"
    run_expect 0 hist-show --json
    stdout_json .content question answer
}

@test "hist-load: the last session, when none is named" {
    put a user one
    put b user two
    run_expect 0 hist-load --json
    stdout_json .content two
    current b
    : >empty.jsonl
    run_expect 1 hist-load --history empty.jsonl
    stdout_empty
    stderr_is 'hist-load: there is no session'
    [[ ! -e empty.jsonl.session ]]
}

@test "hist-load: a session that is absent, ambiguous or one of several leaves the current one" {
    put aa-0001 user one
    put ab-0002 user two
    put b user three
    run_expect 0 hist-load b
    run_expect 1 hist-load nope
    stdout_empty
    stderr_is "hist-load: no session 'nope'"
    current b
    run_expect 2 hist-load a
    stdout_empty
    stderr_is "hist-load: session 'a' is ambiguous: ab-0002, aa-0001"
    current b
    run_expect 2 hist-load aa-0001 ab-0002
    stdout_empty
    stderr_is "hist-load: one session is expected (see 'hist-load --help')"
    current b
    printf 'aa-0001\nab-0002\n' >names
    run_expect 2 hist-load - <names
    stdout_empty
    stderr_is "hist-load: one session is expected, 2 were given (see 'hist-load --help')"
    hist-load --help >help
    run_expect 1 grep -q -e '--session=.*repeated' help
    current b
    printf 'nope\naa-0001\n' >names
    run_expect 1 hist-load - <names
    stdout_empty
    stderr_is "hist-load: no session 'nope'"
    current b
    run_expect 1 hist-load -
    stdout_empty
    stderr_is 'hist-load: no session was given'
    current b
}

@test "hist-load: --json, -n" {
    hist_lines s 4 >"$HISTORY"
    run_expect 0 hist-load --json s
    stdout_is_file "$HISTORY"
    run_expect 0 hist-load --json -n 2 s
    stdout_json .content 'message 3' 'message 4'
    run_expect 0 hist-load --limit=1 s
    stdout_has 'message 4'
    stdout_lacks 'message 3'
    run_expect 2 hist-load --limit x s
    stderr_is "hist-load: bad value 'x' for --limit: a number from 1 or 'all' is expected (see 'hist-load --help')"
}

@test "hist-load: CHAT_SESSION overrides, and that is said" {
    put a user one
    put b user two
    CHAT_SESSION=b run_expect 0 hist-load --json a
    stdout_json .content one
    stderr_is "hist-load: CHAT_SESSION is set to 'b' and overrides the current session"
    current a
    CHAT_SESSION=a run_expect 0 hist-load a
    stderr_empty
    CHAT_SESSION='' run_expect 0 hist-load a
    stderr_empty
    CHAT_SESSION=b run_expect 0 hist-load -q a
    stderr_empty
}

@test "hist-load: a pointer that is a link is not followed" {
    put a user one
    echo precious >file
    ln -s file "$HISTORY.session"
    run_expect 2 hist-load a
    stdout_empty
    stderr_is "hist-load: cannot write '$HISTORY.session': is a symbolic link"
    is file file precious
}

@test "hist-load: the current session is loaded again before its first message" {
    put a user one
    run_expect 0 hist-new
    id=$(cat "$OUT")
    run_expect 0 hist-load "$id"
    stdout_empty
    current "$id"
}

@test "hist-load: --role, --raw" {
    put s user old '' '{"id":"m1"}'
    put s user new '' '{"replaces":["m1"]}'
    put s assistant answer
    run_expect 0 hist-load --json --raw s
    stdout_json .content old new answer
    run_expect 0 hist-load --json -r assistant s
    stdout_json .content answer
    run_expect 0 hist-load --json --role user -n 5 s
    stdout_json .content new
    current s
}

@test "hist-load: says what the next chat will send" {
    hist_lines s 30 >"$HISTORY"
    run_expect 0 hist-load -v --json s
    lines_are 30
    # Of ten bytes each, from "message 11" on.
    stderr_is "hist-load: session 's' is current: 30 messages" \
        'hist-load: 20 messages, about 50 tokens, will be sent with the next prompt'
    CHAT_MAX_MESSAGES=all run_expect 0 hist-load -v s
    stderr_has 'hist-load: 30 messages, about 73 tokens, will be'
    CHAT_MAX_BYTES=25 run_expect 0 hist-load --verbose s
    stderr_has 'hist-load: 2 messages, about 5 tokens, will be'
    CHAT_MAX_MESSAGES=few run_expect 0 hist-load -v s
    stderr_has "hist-load: cannot tell what will be sent: bad value 'few'"
    current s
    run_expect 0 hist-load -v -q s
    stderr_empty
    run_expect 0 hist-load s
    stderr_empty
    run_expect 0 on_tty --raw --fds 2 hist-load s
    stdout_has '20 messages, about 50 tokens, will be sent with the next prompt'
}

@test "hist-load: what it says is what chat sends" {
    use_echo
    put s system 'Be brief'
    put s user question '' '{"id":"m1"}'
    put s user question2 '' '{"replaces":["m1"]}'
    put s assistant '' '' '{"tool_calls":[{"id":"c1","name":"f","args":{}}]}'
    put s tool result '' '{"tool_call_id":"c1"}'
    put s assistant answer
    put s developer odd
    run_expect 0 hist-load -v s
    stderr_has 'current: 6 messages' '5 messages, about'
    run_expect 0 chat -v --no-store -c again
    stderr_has 'session=s state=existing message_count=6'
    put s system '' '' '{"reset":true}'
    run_expect 0 hist-load -v s
    stderr_has 'current: 1 message' '0 messages, about 0 tokens, will be sent'
    put s user x
    put s assistant yz
    run_expect 0 hist-load -v s
    stderr_has '2 messages, about 1 token, will be sent'
}

@test "hist-load: long output goes through the pager, what it says stands below" {
    hist_lines s 30 >"$HISTORY"
    PAGER='grep -c message' run_expect 0 on_tty --raw hist-load s
    stdout_is 30 "hist-load: session 's' is current: 30 messages" \
        'hist-load: 20 messages, about 50 tokens, will be sent with the next prompt'
    PAGER='grep -c message' run_expect 0 on_tty --raw --fds 1 hist-load --no-pager s
    lines_are 90
}

@test "hist-load: --format" {
    put s user $'# old' '' '{"id":"m1"}'
    put s user $'# new' '' '{"replaces":["m1"]}'
    put s assistant answer
    for format in md json; do
        for options in '' '--raw' '-n 1' '-r user'; do
            # shellcheck disable=SC2086
            run_expect 0 hist-show --format "$format" $options s
            cp "$OUT" wanted
            # shellcheck disable=SC2086
            run_expect 0 hist-load --format "$format" $options s
            stdout_is_file wanted
            stderr_empty
            current s
            rm "$HISTORY.session"
        done
    done
    run_expect 0 hist-load -f json - <<<$'s\tx'
    stdout_json '.messages[] | .content' '# new' answer
    run_expect 0 hist-load -f text s
    stdout_has '[assistant] ' answer
    run_expect 1 hist-load --format json nope
    stdout_empty
    run_expect 0 hist-load -v --format md -n 1 s
    stderr_has "session 's' is current: 2 messages"
}
