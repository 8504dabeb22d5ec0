#!/usr/bin/env bats
#
# The chat history of a coding assistant, walked through with our programs.

# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    make_repo
    HISTORY=$WORK/.aicoder/history.jsonl
}

# stored LINE...: a history of our own with these lines, in a directory that is known to be ours.
stored() {
    hist-append -s first 'made here' >/dev/null
    printf '%s\n' "$@" >"$HISTORY"
}

# ---- the file

@test "E1: one JSONL file per repository, private and never committed" {
    use_echo
    mkdir -p src/deep
    make_repo other
    (cd src/deep && run_expect 0 chat 'from below')
    json_is "$HISTORY" .role user assistant
    (cd other && run_expect 0 chat elsewhere)
    json_is other/.aicoder/history.jsonl .content elsewhere $'elsewhere\n[1 message]'
    run_expect 0 stat -c '%a %n' .git/aicoder .aicoder/history.jsonl .aicoder/session
    stdout_is '700 .git/aicoder' '600 .aicoder/history.jsonl' '600 .aicoder/session'
    run_expect 0 cat .git/info/exclude
    stdout_is '/.aicoder'
}

@test "E2: append: a line has its fields in order and nothing that was not given" {
    run_expect 0 hist-append -s s1 'fix the parser'
    stdout_matches '^[0-9]{13}-[0-9a-f]{8}$'
    lines_are 1
    local id
    id=$(cat "$OUT")
    json_is "$HISTORY" 'keys_unsorted | join(" ")' 'id session_id timestamp role content'
    json_is "$HISTORY" '"\(.id) \(.session_id) \(.role) \(.content)"' "$id s1 user fix the parser"
    run_expect 0 grep -cE '"timestamp":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}\+00:00"' "$HISTORY"
    stdout_is 1
}

@test "E2: append: all fields of a line, by options and as JSON, are read back as they are" {
    run_expect 0 hist-append -s s1 -r assistant --images 1 --files 'src/Größe.c' --files-modified b.c \
        --edit-results '[{"file":"b.c","success":true}]' 'all at once'
    json_is "$HISTORY" 'keys_unsorted | join(" ")' \
        'id session_id timestamp role content images files files_modified edit_results'
    cat >lines <<'JSON'
{"id":"1719500000000-00000001","session_id":"s2","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"run it","images":2,"files":["b.c"]}
{"id":"1719500001000-00000002","session_id":"s2","timestamp":"2024-06-27T15:00:01.000000+00:00","role":"assistant","content":"","tool_calls":[{"id":"c1","name":"run","args":{"command":"make"}}],"reply_to":"1719500000000-00000001","thinking":[{"type":"thinking","thinking":"hm","signature":"x"}],"model":"m1","provider":"p","usage":{"input_tokens":5,"output_tokens":7},"finish_reason":"tool_calls"}
{"id":"1719500002000-00000003","session_id":"s2","timestamp":"2024-06-27T15:00:02.000000+00:00","role":"tool","content":"ok","tool_call_id":"c1"}
{"id":"1719500003000-00000004","session_id":"s2","timestamp":"2024-06-27T15:00:03.000000+00:00","role":"assistant","content":"done","files_modified":["b.c"],"edit_results":[{"file":"b.c","success":false,"error":"no match"}],"replaces":["1719500009000-00000009"],"origin":"elsewhere","unknown":{"kept":[1.0,  2]}}
{"id":"1719500004000-00000005","session_id":"s2","timestamp":"2024-06-27T15:00:04.000000+00:00","role":"system","content":"","reset":true,"forked_from":"1719500000000-00000001"}
JSON
    run_expect 0 hist-append --json <lines
    stdout_is 1719500000000-00000001 1719500001000-00000002 1719500002000-00000003 1719500003000-00000004 1719500004000-00000005
    tail -n 5 "$HISTORY" >got
    same lines lines got
    run_expect 0 hist-show --raw --json s2
    stdout_is_file lines
    # Files are found by what was read and by what was changed.
    run_expect 0 hist-search --json --file b.c --reverse ''
    stdout_json .role user assistant assistant
    run_expect 0 hist-search --json --file src/Größe.c ''
    stdout_json .content 'all at once'
    run_expect 0 hist-search --json --model m1 ''
    stdout_json .id 1719500001000-00000002
}

# ---- search

@test "E3, E4: search finds substrings, whatever their case, the newest first, by role and session, counted" {
    stored "$(hist_line s1 user 'Parse the CONFIG file')" "$(hist_line s1 assistant 'done with config.c')" \
        "$(hist_line s2 user 'Größe der Straße')" "$(hist_line s2 assistant 'nothing here')"
    run_expect 0 hist-search config
    lines_are 2
    stdout_matches '^s1	[0-9]+-[0-9a-f]{8}	2024-06-27T[0-9:.]+\+00:00	assistant	done with config\.c$'
    [[ $(cut -f 4 "$OUT" | tr '\n' ' ') == 'assistant user ' ]]
    run_expect 0 hist-search 'GRÖßE DER'
    stdout_has s2
    lines_are 1
    run_expect 1 hist-search absent
    stdout_empty
    stderr_empty
    run_expect 0 hist-search --reverse config
    [[ $(cut -f 4 "$OUT" | tr '\n' ' ') == 'user assistant ' ]]
    run_expect 0 hist-search -c -r user --limit 100 config
    stdout_is 1
    run_expect 1 hist-search -s s2 config
    run_expect 1 hist-search -s s3 config
    stderr_is "hist-search: no session 's3'"
}

# ---- sessions

@test "E5: sessions with previews, by last use" {
    stored "$(hist_line s1 user $'first\nlines\tof s1')" "$(hist_line s2 user "$(printf 'ä%.0s' {1..150})")" \
        "$(hist_line s1 assistant 'later')"
    run_expect 0 hist-sessions
    lines_are 2
    [[ $(cut -f 1,3 "$OUT" | tr '\t\n' ' ,') == 's1 2,s2 1,' ]]
    [[ $(sed -n 1p "$OUT" | cut -f 4) == 'first lines of s1' ]]
    # A hundred characters, whole ones.
    [[ $(sed -n 2p "$OUT" | cut -f 4) == "$(printf 'ä%.0s' {1..100})" ]]
    run_expect 0 hist-sessions --json
    stdout_json .preview first $'lines\tof s1' "$(printf 'ä%.0s' {1..100})"
    run_expect 0 hist-sessions --limit 1
    lines_are 1
}

@test "E6: get a session by id, prefix, suffix, or by when it was used" {
    stored "$(hist_line sess_1719500000000_aaaaaa user alpha)" "$(hist_line sess_1719500000000_bbbbbb user beta)"
    run_expect 0 hist-show sess_1719500000000_aaaaaa
    stdout_is '[user] 2024-06-27 14:53:21' alpha ''
    run_expect 0 hist-show bbbbbb
    stdout_has beta
    run_expect 0 hist-show last
    stdout_has beta
    run_expect 2 hist-show sess_
    stderr_matches "^hist-show: session 'sess_' is ambiguous"
    run_expect 1 hist-show zzzz
    stdout_empty
    stderr_is "hist-show: no session 'zzzz'"
}

# ---- load

@test "E7: a session is loaded into the context after a year, and what is said then is added to it" {
    start_llm --echo-context
    stored "$(hist_line sess_1719500000000_aaaaaa system 'You know C' 2023-01-01T10:00:00.000000+00:00)" \
        "$(hist_line sess_1719500000000_aaaaaa user 'old question' 2023-01-01T10:00:01.000000+00:00)" \
        "$(hist_line sess_1719500000000_aaaaaa assistant 'old answer' 2023-01-01T10:00:02.000000+00:00)"
    run_expect 0 chat --new 'something else meanwhile'
    run_expect 0 hist-load aaaaaa
    stdout_is '[system] 2023-01-01 10:00:00' 'You know C' '' '[user] 2023-01-01 10:00:01' 'old question' '' \
        '[assistant] 2023-01-01 10:00:02' 'old answer' ''
    stderr_empty
    run_expect 0 chat --json 'new question'
    # The context was cleared of the other session and holds this one.
    request_messages_are 2 'system:You know C' 'user:old question' 'assistant:old answer' 'user:new question'
    stdout_json 'select(.type == "done").session_id' sess_1719500000000_aaaaaa
    run_expect 0 chat 'and another'
    request_messages_are 3 'system:You know C' 'user:old question' 'assistant:old answer' 'user:new question' \
        'assistant:system:You know C|user:old question|assistant:old answer|user:new question' 'user:and another'
    json_is "$HISTORY" 'select(.session_id == "sess_1719500000000_aaaaaa" and .role == "user").content' \
        'old question' 'new question' 'and another'
    # It is the last used now, with the preview of its first message.
    run_expect 0 hist-sessions -n 1
    stdout_matches '^sess_1719500000000_aaaaaa	[^	]+	7	old question$'
}

@test "E8: tokens are counted" {
    use_echo
    run_expect 0 chat 'one two three'
    json_is "$HISTORY" 'select(.role == "assistant").usage | tojson' '{"input_tokens":3,"output_tokens":5}'
    run_expect 0 chat --json four
    stdout_json 'select(.type == "usage") | "\(.input_tokens) \(.output_tokens)"' '9 3'
}

@test "E8: loading counts the messages and tokens that go out with the next prompt" {
    start_llm --reply ok
    local i lines=()
    for ((i = 1; i <= 30; i++)); do
        lines+=("$(hist_line long "$([[ $((i % 2)) == 1 ]] && echo user || echo assistant)" "$(printf '%040d' "$i")")")
    done
    stored "$(hist_line long system 'Be brief. You know C well enough, do you?')" "${lines[@]}"
    hist-load -q long >got
    run_expect 0 hist-load -v long
    lines_are 93
    # 20 messages of 40 bytes and the system prompt of 41, at 4 bytes for a token.
    stderr_is "hist-load: session 'long' is current: 31 messages" \
        'hist-load: 21 messages, about 211 tokens, will be sent with the next prompt'
    run_expect 0 chat 'and now?'
    request 1 | jq '.messages | length' >got
    is sent got 22
    request 1 | jq -r '.messages[:-1] | map(.content | utf8bytelength) | add' >got
    is bytes got 841
    # A window that is set counts, and an empty session.
    CHAT_MAX_MESSAGES=4 run_expect 0 hist-load -v long
    stderr_matches ': 5 messages, about [0-9]+ tokens, will be sent'
    run_expect 0 hist-load -q -v long
    stderr_empty
}

@test "E9: the loaded session is current for every program, and what is appended then belongs to it" {
    use_echo
    stored "$(hist_line old user one 2023-01-01T10:00:00.000000+00:00)" "$(hist_line other user two)"
    run_expect 0 hist-load -q old
    pointer_is "$(dirname "$HISTORY")/session" old
    run_expect 0 hist-show --json current
    stdout_json .content one
    run_expect 0 hist-append -r assistant 'by another program'
    run_expect 0 chat 'by chat'
    stdout_is 'by chat' '[3 messages]'
    json_is "$HISTORY" 'select(.session_id == "old").content' one 'by another program' 'by chat' $'by chat\n[3 messages]'
    json_is "$HISTORY" 'select(.session_id == "other").content' two
    # In a directory below, too.
    mkdir -p sub/dir
    (cd sub/dir && run_expect 0 hist-show --json --limit 1 current)
    stdout_json .content $'by chat\n[3 messages]'
}

@test "E10: a new session" {
    start_llm --echo-context
    run_expect 0 chat before
    run_expect 0 hist-new
    local id
    id=$(cat "$OUT")
    run_expect 0 chat after
    stdout_is user:after
    json_is "$HISTORY" '"\(.session_id) \(.content)"' "$(jq -r .session_id "$HISTORY" | head -n 1) before" \
        "$(jq -r .session_id "$HISTORY" | head -n 1) user:before" "$id after" "$id user:after"
    run_expect 0 hist-show current
    stdout_has after
    stdout_lacks before
}

@test "E7: list, choose, load, go on: programs joined by pipes" {
    use_echo
    run_expect 0 chat -s one 'about parsers'
    run_expect 0 chat -s two 'about lexers'
    hist-search parsers | head -n 1 | run_expect 0 hist-load -
    stdout_has 'about parsers'
    run_expect 0 chat next
    stdout_is next '[3 messages]'
    hist-sessions | sed -n 2p | run_expect 0 hist-show --json -
    stdout_json .session_id two two
    hist-search -l about | run_expect 0 hist-show -
    stdout_has 'about parsers' 'about lexers'
    hist-show --json one | run_expect 0 chat --no-store --new summarise
    stdout_has '"content":"about parsers"' '[1 message]'
}

# ---- the page

@test "E11: the page holds every session and message, is one file, and asks no network" {
    stored "$(hist_line s1 user 'Parse the CONFIG file' '' '{"files":["config.c"]}')" \
        "$(hist_line s1 assistant '' '' '{"tool_calls":[{"id":"c1","name":"read_file","args":{"path":"config.c"}}]}')" \
        "$(hist_line s1 tool 'int x;' '' '{"tool_call_id":"c1"}')" \
        "$(hist_line s2 user '</script><script>alert(1)</script> <img src=http://elsewhere/x>')" 'no JSON'
    run_expect 0 hist-export -q --all-sessions -o page.html
    stdout_empty
    run_expect 0 ls -A
    stdout_is .aicoder .git page.html
    [[ $(stat -c %a page.html) == 600 ]]
    # What the page reads are the lines of the history: nothing is lost on the way there.
    sed -n '/<script type="application\/x-ndjson"/,/<\/script>/p' page.html | sed '1d;$d' >data
    json_is data 'select(has("content")).content' 'Parse the CONFIG file' '' 'int x;' \
        '</script><script>alert(1)</script> <img src=http://elsewhere/x>'
    json_is data 'select(.tool_calls).tool_calls[0].args.path' config.c
    [[ $(grep -c '<script' page.html) == 2 ]] || fail 'a message became a script'
    grep -q "Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-.*; script-src 'sha256-" page.html
    # No address but in what was said.
    sed '/<script type="application\/x-ndjson"/,/<\/script>/d' page.html >rest
    if grep -Eo '(src|href)="?[a-z]+://[^ ]*|@import|url\([^)]*' rest >"$OUT"; then fail 'the page asks the network'; fi
}

@test "E11: the page has a search, a list of sessions, their messages, roles and a button to copy" {
    stored "$(hist_line s1 user hello)"
    run_expect 0 hist-export -q -f html s1
    stdout_matches '<input [^>]*id="query"' 'id="side-list"' 'id="messages"' 'id="roles"'
    stdout_has 'clipboard' 'setTimeout('
}

# ---- what else is done with the same history

# A repository where people have worked for a while: three sessions, the last one current.
worked() {
    stored "$(hist_line plan user 'plan the parser' 2024-01-01T10:00:00.000000+00:00)" \
        "$(hist_line plan assistant 'first a lexer' 2024-01-01T10:00:05.000000+00:00 \
            '{"model":"m1","usage":{"input_tokens":10,"output_tokens":4}}')" \
        "$(hist_line fix user 'fix config.c' 2024-02-01T10:00:00.000000+00:00 '{"files":["config.c"]}')" \
        "$(hist_line fix assistant '' 2024-02-01T10:00:01.000000+00:00 \
            '{"tool_calls":[{"id":"c1","name":"edit","args":{"path":"config.c"}}],"model":"m2","usage":{"input_tokens":20,"output_tokens":5}}')" \
        "$(hist_line fix tool edited 2024-02-01T10:00:02.000000+00:00 '{"tool_call_id":"c1"}')" \
        "$(hist_line fix assistant 'config.c is fixed' 2024-02-01T10:00:03.000000+00:00 \
            '{"files_modified":["config.c"],"model":"m2","usage":{"input_tokens":30,"output_tokens":6}}')" \
        "$(hist_line now user 'write tests' 2024-03-01T10:00:00.000000+00:00)"
    hist-load -q now >/dev/null
}

@test "E12: export: a session as Markdown and as a request, all of them as lines" {
    worked
    run_expect 0 hist-export -q plan
    stdout_line 1 '# plan the parser'
    stdout_has 'first a lexer'
    stdout_lacks 'config.c'
    run_expect 0 hist-export -q -f openai fix
    stdout_json '.messages[1].tool_calls[0].function.name, .messages[2].tool_call_id' edit c1
    run_expect 0 hist-export -q --all-sessions -f jsonl
    stdout_is_file "$HISTORY"
    # A change log of what was done to one file.
    hist-search --json --reverse --file config.c '' | run_expect 0 hist-export -q -f md --messages -
    stdout_has 'fix config.c' 'config.c is fixed'
    stdout_lacks lexer
}

@test "E13: import: a colleague's history comes into one's own once, and the other way it is the same bytes" {
    worked
    hist-export -q --all-sessions -f jsonl -o all.jsonl
    make_repo fresh
    (cd fresh && run_expect 0 hist-import -q ../all.jsonl)
    stdout_is 7
    same 'imported history' "$HISTORY" fresh/.aicoder/history.jsonl
    (cd fresh && run_expect 0 hist-import -q ../all.jsonl)
    stdout_is 0
    (cd fresh && run_expect 0 hist-load --json fix)
    stdout_json .role user assistant tool assistant
}

@test "E14: fork: another way from an earlier message on, the first one stays" {
    use_echo
    worked
    local id from
    from=$(jq -r 'select(.session_id == "plan" and .role == "user").id' "$HISTORY")
    id=$(hist-fork --at "$from" plan)
    run_expect 0 chat 'without a lexer'
    # Two prompts in a row are one turn of the user.
    stdout_is 'plan the parser' '' 'without a lexer' '[1 message]'
    json_is "$HISTORY" "select(.session_id == \"$id\" and .role == \"user\").content" 'plan the parser' 'without a lexer'
    json_is "$HISTORY" 'select(.session_id == "plan").content' 'plan the parser' 'first a lexer'
    json_is "$HISTORY" "select(.session_id == \"$id\" and .forked_from).forked_from" "$from"
}

@test "E15: delete: old sessions go, the current one stays, and the rest is what it was" {
    use_echo
    worked
    cp "$HISTORY" before
    run_expect 0 hist-delete --dry-run --older-than 2024-03-01 --keep 2
    cut -f 1 "$OUT" >got
    is 'to go' got plan
    same history before "$HISTORY"
    run_expect 0 hist-delete --force --older-than 2024-03-01
    cut -f 1 "$OUT" >got
    is gone got fix plan
    tail -n 1 before >wanted
    same history wanted "$HISTORY"
    run_expect 1 hist-search -q lexer
    # One's own still, and the same session.
    run_expect 0 chat more
    stdout_is 'write tests' '' more '[1 message]'
    stderr_empty
    pointer_is .aicoder/session now
}

@test "E16: check: what a crash left is told, put right, and the work goes on" {
    use_echo
    worked
    cp "$HISTORY" before
    printf '{"id":"1719500000000-ffffffff","session_id":"now","timest' >>"$HISTORY"
    run_expect 1 hist-check
    stdout_line 1 "$WORK/.git/aicoder/history.jsonl:8: torn: it ends within a message, and has no newline"
    run_expect 0 hist-search -c lexer
    run_expect 0 hist-check -q --repair
    same history before "$HISTORY"
    run_expect 0 cat "$HISTORY.quarantine"
    stdout_is '{"id":"1719500000000-ffffffff","session_id":"now","timest'
    run_expect 0 chat go
    stderr_empty
    run_expect 0 hist-check
    stdout_has '9 messages' '0 problems'
    run_expect 0 git init -q .
    run_expect 0 git status --porcelain --untracked-files=all
    stdout_lacks .aicoder
}

@test "E17: stats: days, models, tools, sessions, and the tokens they took" {
    worked
    run_expect 0 hist-stats
    stdout_line 1 $'total\t7\t3\t60\t15\t0'
    stdout_line 3 $'2024-02-01\t4\t1\t50\t11\t0'
    run_expect 0 hist-stats --by model
    stdout_matches '^m2	2	1	50	11	0$' '^m1	1	1	10	4	0$'
    run_expect 0 hist-stats --by tool
    stdout_matches '^edit	1	'
    run_expect 0 hist-stats --by session --json
    stdout_json '.rows[].key' fix plan now
}

# ---- the browser of two panels

load ../tmux

# browser [ARGUMENT]...: hist-browse in a terminal of its own, what it prints in the file `printed`.
browser() {
    type_lines "hist-browse $* >printed; echo \"status \$?\""
    screen_has 'Esc '
}

@test "E18: browser: search as one types, the hit in view, stale results dropped, sessions read when they change" {
    worked
    tmux_begin
    export SCREEN_FROM=0
    terminal 100x20
    browser
    # Two panels: sessions by last use with their previews, the messages of the chosen one.
    screen_has '2024-03-01    1  write tests' '2024-02-01    4  fix config.c' '2024-01-01    2  plan the parser' ' now  1/1 '
    # One search for what was typed last; the hit is scrolled to.
    keys lexxxx
    keys BSpace BSpace BSpace
    screen_has '1/1' ' plan  2/2 ' 'first a lexer'
    # A new session is seen, one that is gone is not.
    keys C-u
    screen_has '1/3'
    hist-append -q -s later -r user 'asked meanwhile' >/dev/null
    screen_has 'asked meanwhile'
    hist-delete -q --force later
    soon lacks_now 'asked meanwhile'
    keys Escape
    screen_has 'status 130'
    tmux_end
}

lacks_now() {
    screen
    ! grep -qF -e "$1" "$BATS_TEST_TMPDIR/screen"
}

@test "E19: browser: copy, to prompt, load; what was chosen is chosen again" {
    worked
    use_echo
    tmux_begin
    export SCREEN_FROM=0
    terminal 100x20
    tmux set-option -g set-clipboard on
    browser lexer
    keys Enter y
    screen_has copied
    tmux show-buffer >got
    printf 'first a lexer' >wanted
    same buffer wanted got
    keys C-c
    screen_has 'status 130'
    # Opened again: the query, the hit, the message.
    type_lines clear
    browser
    screen_has '> lexer' '1/1' ' plan  2/2 ' 'first a lexer'
    keys Enter p
    screen_has 'status 0'
    is printed printed 'first a lexer'
    # Load: the session is current, and the next prompt belongs to it.
    type_lines clear
    browser
    keys C-o
    screen_has 'status 0'
    is printed printed plan
    run_expect 0 chat 'and then?'
    stdout_is 'and then?' '[3 messages]'
    json_is "$HISTORY" 'select(.content == "and then?" and .role == "user").session_id' plan
    tmux_end
}
