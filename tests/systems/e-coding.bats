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

teardown() {
    sandbox_end
}

# stored LINE...: a history of our own with these lines, in a directory that is known to be ours.
stored() {
    hist-append -s first 'made here' >/dev/null
    printf '%s\n' "$@" >"$HISTORY"
}

# ---- the file

@test "E: one JSONL file per repository, private and never committed" {
    use_echo
    mkdir -p src/deep other/.git
    (cd src/deep && run_expect 0 chat 'from below')
    json_is "$HISTORY" .role user assistant
    (cd other && run_expect 0 chat elsewhere)
    json_is other/.aicoder/history.jsonl .content elsewhere $'elsewhere\n[1 message]'
    run_expect 0 stat -c '%a %n' .aicoder .aicoder/history.jsonl .aicoder/session
    stdout_is '700 .aicoder' '600 .aicoder/history.jsonl' '600 .aicoder/session'
    run_expect 0 cat .aicoder/.gitignore
    stdout_is '*'
}

@test "E: git sees nothing of the history" {
    use_echo
    rm -rf .git
    git init -q .
    run_expect 0 chat hello
    run_expect 0 git status --porcelain --untracked-files=all
    stdout_empty
}

@test "E: a line has its fields in order and nothing that was not given" {
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

@test "E: images, files, files_modified and edit_results" {
    run_expect 0 hist-append -s s1 --images 2 --files a.c --files 'dir with space/b.c' 'see these'
    run_expect 0 hist-append -s s1 -r assistant --files-modified a.c --files-modified b.c \
        --edit-results '[{"file":"a.c","success":true,"hunks":[1,2]},{"file":"b.c","success":false,"error":"no match"}]' \
        'I changed both'
    json_is "$HISTORY" 'del(.id, .timestamp) | tojson' \
        '{"session_id":"s1","role":"user","content":"see these","images":2,"files":["a.c","dir with space/b.c"]}' \
        '{"session_id":"s1","role":"assistant","content":"I changed both","files_modified":["a.c","b.c"],"edit_results":[{"file":"a.c","success":true,"hunks":[1,2]},{"file":"b.c","success":false,"error":"no match"}]}'
    remember "$HISTORY"
    run_expect 2 hist-append -s s1 --images many x
    run_expect 2 hist-append -s s1 --images -1 x
    run_expect 2 hist-append -s s1 --edit-results '{"file":"a.c"}' x
    run_expect 2 hist-append -s s1 --edit-results '[1]' x
    run_expect 2 hist-append -s s1 --edit-results '[' x
    run_expect 2 hist-append -s s1 -r narrator x
    unchanged "$HISTORY"
}

@test "E: content from standard input, any text" {
    printf 'line one\n\n  "quoted" \\ \t😀\n' | run_expect 0 hist-append -s s1
    jq -j .content "$HISTORY" >got
    printf 'line one\n\n  "quoted" \\ \t😀' >want
    same content want got
    printf 'bad \xff byte' | run_expect 0 hist-append -s s1
    run_expect 0 jq -rs '.[1].content' "$HISTORY"
    stdout_is 'bad � byte'
}

@test "E: lines of other programs: id, session and time are filled in, what is unknown stays" {
    hist-append -s s1 --json >"$OUT" <<'JSON'
{"content":"plain"}
{"role":"assistant","content":"with more","weight":1.0,"tags":["a",  "b"]}
{"id":"1719500000000-a1b2c3d4","session_id":"s2","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"tool","content":"whole"}
JSON
    lines_are 3
    stdout_line 3 1719500000000-a1b2c3d4
    json_is "$HISTORY" '"\(.session_id) \(.role) \(.content)"' 's1 user plain' 's1 assistant with more' 's2 tool whole'
    run_expect 0 sed -n 2p "$HISTORY"
    stdout_has '"weight":1.0,"tags":["a",  "b"]}'
    printf '%s\n' '{"content":"good"}' '{"content":7}' 'junk' '{"content":"also good"}' |
        run_expect 2 hist-append -s s3 --json
    lines_are 2
    stderr_matches '^hist-append: cannot store line 2: ' '^hist-append: cannot store line 3: '
    run_expect 0 hist-show --json s3
    stdout_json .content good 'also good'
}

# ---- search

@test "E: search finds substrings, whatever their case, the newest first" {
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
}

@test "E: search by role, by session, counted, limited to 100" {
    mapfile -t lines < <(hist_lines s1 240)
    stored "${lines[@]}"
    run_expect 0 hist-search message
    lines_are 100
    stdout_matches '	message 240$' '	message 141$'
    stdout_lacks 'message 140'
    run_expect 0 hist-search --limit all message
    lines_are 240
    run_expect 0 hist-search --limit 3 -r assistant message
    [[ $(cut -f 5 "$OUT" | tr '\n' ,) == 'message 240,message 238,message 236,' ]]
    run_expect 0 hist-search -c -r user message
    stdout_is 120
    run_expect 1 hist-search -s s2 message
    stderr_is "hist-search: no session 's2'"
    # Only the content is searched, not the names of fields or sessions.
    run_expect 1 hist-search session_id
    run_expect 1 hist-search s1
}

# ---- sessions

@test "E: sessions with previews, by last use" {
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

@test "E: 60 sessions: 50 are listed, or all" {
    local i
    for ((i = 1; i <= 60; i++)); do
        printf '{"id":"%d-00000000","session_id":"s%d","timestamp":"2024-06-27T15:00:%02d.000000+00:00","role":"user","content":"talk %d"}\n' "$i" "$i" $((i % 60)) "$i"
    done >many
    hist-append -s s0 x >/dev/null
    cp many "$HISTORY"
    run_expect 0 hist-sessions
    lines_are 50
    stdout_matches '^s60	'
    run_expect 0 hist-sessions -n all
    lines_are 60
}

@test "E: get a session by id, prefix, suffix, or by when it was used" {
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

@test "E: a session is loaded into the context after a year, and what is said then is added to it" {
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
    stdout_matches '^sess_1719500000000_aaaaaa	[^	]+	7	You know C$'
}

@test "E: tokens are counted" {
    use_echo
    run_expect 0 chat 'one two three'
    json_is "$HISTORY" 'select(.role == "assistant").usage | tojson' '{"input_tokens":3,"output_tokens":5}'
    run_expect 0 chat --json four
    stdout_json 'select(.type == "usage") | "\(.input_tokens) \(.output_tokens)"' '9 3'
}

@test "E: what cannot be loaded changes nothing" {
    use_echo
    run_expect 0 chat hello
    remember .aicoder/session
    run_expect 1 hist-load nonsense
    stdout_empty
    stderr_is "hist-load: no session 'nonsense'"
    unchanged .aicoder/session
    run_expect 0 chat again
    stdout_is again '[3 messages]'
}

@test "E: a new session" {
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

@test "E: list, choose, load, go on: programs joined by pipes" {
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

# ---- many writers

# The lines of writer $1, a few at a time, so that the others come in between.
written() {
    local i
    for ((i = 1; i <= 1000; i++)); do
        printf '{"role":"user","content":"writer %s line %s %0*d"}\n' "$1" "$i" $((i % 300 + 1)) 0
        ((i % 25)) || sleep 0.01
    done
}

@test "E: 8 processes append 1,000 lines each and lose and mix nothing" {
    local w pids=() pid
    for w in 1 2 3 4 5 6 7 8; do
        (written "$w" | hist-append -s "w$w" --json >"ids.$w") &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    run_expect 0 jq -r '"\(.session_id) \(.content | sub(" 0+$"; ""))"' "$HISTORY"
    lines_are 8000
    for w in 1 2 3 4 5 6 7 8; do
        # In its own session, all of them, in its order.
        grep "^w$w " "$OUT" >got
        for ((i = 1; i <= 1000; i++)); do echo "w$w writer $w line $i"; done >want
        same "lines of writer $w" want got
        cmp <(jq -r "select(.session_id == \"w$w\").id" "$HISTORY") "ids.$w"
    done
    [[ $(jq -r .id "$HISTORY" | sort -u | wc -l) -eq 8000 ]]
    # They did come in between each other.
    [[ $(jq -r .session_id "$HISTORY" | uniq | wc -l) -gt 8 ]]
    run_expect 0 hist-sessions
    [[ $(cut -f 3 "$OUT" | sort -u) == 1000 ]]
    stderr_empty
}

@test "E: programs that start at once in a new repository share one history" {
    local w i pids=() pid
    for w in 1 2 3 4 5 6 7 8; do
        (for i in 1 2 3 4 5; do hist-append -s "w$w" "line $i" >/dev/null || exit; done) &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    for w in 1 2 3 4 5 6 7 8; do
        json_is "$HISTORY" "select(.session_id == \"w$w\").content" 'line 1' 'line 2' 'line 3' 'line 4' 'line 5'
    done
    run_expect 0 ls -A .
    stdout_is .aicoder .git
}
