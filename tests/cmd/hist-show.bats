#!/usr/bin/env bats
#
# hist-show: the messages of sessions; and the session arguments that all readers share.

load ../helper
load ../history

# one SESSION...: a session with one message that says its id, for each.
one() {
    local id
    for id; do put "$id" user "in $id" 2024-06-27T15:00:00.000000+00:00; done
}

# shown SESSION...: these sessions of `one`, and nothing else.
shown() {
    local id
    for id; do printf '[user] 2024-06-27 15:00:00\nin %s\n\n' "$id"; done >wanted
    stdout_is_file wanted
}

# ---- what is printed

@test "hist-show: role and time, the text, a blank line" {
    put s user $'one\n\ttwo ' 2024-06-27T15:00:00.999999+00:00
    put s assistant $'line\n' 2024-06-27T17:00:00+02:00
    put other user no
    put s assistant '' 2024-06-27T15:00:03.000000+00:00
    put s robot beep '' '{"timestamp":"some time"}'
    run_expect 0 hist-show s
    stdout_is '[user] 2024-06-27 15:00:00' one $'\ttwo ' '' '[assistant] 2024-06-27 15:00:00' line '' \
        '[assistant] 2024-06-27 15:00:03' '' '[robot] some time' beep ''
    stderr_empty
}

@test "hist-show: tool calls" {
    put s assistant 'let me see' 2024-06-27T15:00:00.000000+00:00 \
        '{"tool_calls":[{"id":"c1","name":"ls","args":{"dir":"/tmp"}},{"id":"c2","name":"odd","args":"{broken"}]}'
    put s tool $'a\nb' 2024-06-27T15:00:01.000000+00:00 '{"tool_call_id":"c1"}'
    run_expect 0 hist-show s
    stdout_is '[assistant] 2024-06-27 15:00:00' 'let me see' '[tool call] ls {"dir":"/tmp"}' '[tool call] odd "{broken"' '' \
        '[tool] 2024-06-27 15:00:01' a b ''
}

@test "hist-show: tool calls in the forms of OpenAI and Anthropic" {
    put s assistant '' 2024-06-27T15:00:00.000000+00:00 \
        '{"tool_calls":[{"id":"c1","type":"function","function":{"name":"list_dir","arguments":"{\"path\":\"src\"}"}},{"id":"c2","type":"function","function":{"name":"odd","arguments":"{cut"}},{"type":"tool_use","id":"c3","name":"read_file","input":{"file":"x.c"}},{"id":"c4","type":"function","function":{"name":"now"}}]}'
    run_expect 0 hist-show s
    stdout_is '[assistant] 2024-06-27 15:00:00' '[tool call] list_dir {"path":"src"}' '[tool call] odd "{cut"' \
        '[tool call] read_file {"file":"x.c"}' '[tool call] now ' ''
    run_expect 0 hist-export -f txt s
    stdout_has '[tool call] list_dir {"path":"src"}' '[tool call] read_file {"file":"x.c"}'
    run_expect 0 hist-export -f md s
    # shellcheck disable=SC2016
    stdout_has 'Tool call `list_dir`:' '{"path":"src"}' 'Tool call `odd`:' '{cut' 'Tool call `read_file`:' '{"file":"x.c"}'
}

@test "hist-show: the pages that an answer cites, each once" {
    put s assistant 'It rains.' 2024-06-27T15:00:00.000000+00:00 \
        '{"finish_reason":"length","citations":[{"type":"url_citation","url_citation":{"url":"https://b.org/?q=1"}},{"type":"file_citation"},{"url":"https://a.org/\n\u001b[31m"},{"url":"https:\/\/b.org/?q=1"}]}'
    run_expect 0 hist-show s
    stdout_is '[assistant] 2024-06-27 15:00:00' 'It rains.' '[source] https://b.org/?q=1' $'[source] https://a.org/ \e[31m' \
        '[ended] length' ''
    run_expect 0 on_tty --raw hist-show --color=never s
    stdout_has '[source] https://a.org/ ^[[31m'
}

@test "hist-show: --json gives the stored lines, byte for byte" {
    cat >"$HISTORY" <<'END'
{ "x_new":{"deep": [1 , 2.50e1,12345678901234567890]}, "role":"user","content":"\u00e9 \/ \ud83d\ude00 \u0000","timestamp":"t","session_id":"s","id":"1","x_new":1 }
{"id":"2","session_id":"\u0073","timestamp":"t","role":"bot","content":null,"usage":"none"}
{"id":"3","session_id":"t","timestamp":"t","role":"user","content":"another"}
END
    run_expect 0 hist-show --json s
    head -n 2 "$HISTORY" >wanted
    stdout_is_file wanted
    stderr_empty
    remember "$HISTORY"
    sed -i 's/$/\r/' "$HISTORY"
    run_expect 0 hist-show --json s
    stdout_is_file wanted
}

@test "hist-show: content is exact: escapes, NUL, lone surrogates, invalid UTF-8 never" {
    printf '{"id":"1","session_id":"s","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"\\u00e9\\t\\u0000\\ud83d\\ude00\\ud83d|\\ude00\\u001b[1m"}\n' >"$HISTORY"
    run_expect 0 hist-show s
    stdout_bytes_are '[user] 2024-06-27 15:00:00\n\xc3\xa9\t\0000\xf0\x9f\x98\x80\xef\xbf\xbd|\xef\xbf\xbd\x1b[1m\n\n'
}

@test "hist-show: -n N, the last N messages of each session" {
    hist_lines s 3 >>"$HISTORY"
    hist_lines t 3 >>"$HISTORY"
    run_expect 0 hist-show --json -n 1 s t
    stdout_json '.session_id, .content' s 'message 3' t 'message 3'
    run_expect 0 hist-show --json --limit=2 s
    stdout_json .content 'message 2' 'message 3'
    run_expect 0 hist-show --json --limit all s
    lines_are 3
    run_expect 0 hist-show --json --limit 9 s
    lines_are 3
    run_expect 2 hist-show --limit 0 s
    stderr_is "hist-show: bad value '0' for --limit: a number from 1 or 'all' is expected (see 'hist-show --help')"
}

@test "hist-show: the thread leaves out what was replaced and what came before a reset; --raw does not" {
    put s user 'before the reset' '' '{"id":"m0"}'
    put s system 'be brief' '' '{"reset":true}'
    put s user typo '' '{"id":"m1"}'
    put s assistant 'what?' '' '{"id":"m2"}'
    put s user question '' '{"replaces":["m1","m2"]}'
    put s assistant answer
    run_expect 0 hist-show --json s
    stdout_json .content 'be brief' question answer
    run_expect 0 hist-show --json --raw s
    stdout_json .content 'before the reset' 'be brief' typo 'what?' question answer
    run_expect 0 hist-show --json --raw -n 2 s
    stdout_json .content question answer
    run_expect 0 hist-show s
    stdout_lacks typo before
    run_expect 0 hist-show --raw s
    stdout_has typo before
}

@test "hist-show: a replaces or reset that means another session or nothing changes nothing" {
    put s user one '' '{"id":"m1"}'
    put t user two '' '{"replaces":["m1","m9"],"id":"m2"}'
    put s assistant three '' '{"replaces":["nowhere"],"reset":true}'
    put t system '' '' '{"reset":false}'
    put t user four '' '{"replaces":"m2"}'
    run_expect 0 hist-show --json s t
    stdout_json .content one three two '' four
}

@test "hist-show: two turns that ran at once stand apart" {
    put s user 'first question' '' '{"id":"q1"}'
    put s user 'second question' '' '{"id":"q2"}'
    put s assistant 'second answer' '' '{"reply_to":"q2"}'
    put s assistant 'first answer' '' '{"reply_to":"q1"}'
    run_expect 0 hist-show --json s
    stdout_json .content 'first question' 'first answer' 'second question' 'second answer'
    run_expect 0 hist-show --json --raw s
    stdout_json .content 'first question' 'second question' 'second answer' 'first answer'
}

@test "hist-show: bad lines are reported once, and change nothing" {
    put s user one
    printf '{"session_id":"s","torn\n' >>"$HISTORY"
    put s user two
    remember "$HISTORY"
    run_expect 0 hist-show --json s
    stdout_json .content one two
    stderr_is "hist-show: skipped 1 bad line in '$HISTORY'"
    unchanged "$HISTORY"
}

# ---- session arguments

@test "sessions: by id, prefix and suffix" {
    one sess_1719500000000_f0e1d2 sess_1719500000001_a0b0c0 8b1e7f5e-7c4b-4a8e-9d1c-000000000001 work
    run_expect 0 hist-show work
    shown work
    run_expect 0 hist-show w
    shown work
    run_expect 0 hist-show sess_1719500000001
    shown sess_1719500000001_a0b0c0
    run_expect 0 hist-show e1d2
    shown sess_1719500000000_f0e1d2
    run_expect 0 hist-show 8b1
    shown 8b1e7f5e-7c4b-4a8e-9d1c-000000000001
    run_expect 0 hist-show 0001
    shown 8b1e7f5e-7c4b-4a8e-9d1c-000000000001
}

@test "sessions: a suffix has four characters at least, and is looked for last" {
    one alpha-1234 beta-5678 5678-gamma
    run_expect 1 hist-show 234
    stdout_empty
    stderr_is "hist-show: no session '234'"
    run_expect 0 hist-show 1234
    shown alpha-1234
    run_expect 0 hist-show 5678
    shown 5678-gamma
    run_expect 0 hist-show -- -5678
    shown beta-5678
    run_expect 1 hist-show lpha
    stderr_is "hist-show: no session 'lpha'"
}

@test "sessions: a whole id is meant before those that it begins or ends" {
    one work work2 homework
    run_expect 0 hist-show work
    shown work
    run_expect 2 hist-show wor
    stdout_empty
    stderr_is "hist-show: session 'wor' is ambiguous: work2, work"
    run_expect 0 hist-show homew
    shown homework
}

@test "sessions: ambiguous names are an error and name some candidates" {
    one aa-0001 ab-0001 ac-0001 ad-0001
    run_expect 2 hist-show a
    stdout_empty
    stderr_is "hist-show: session 'a' is ambiguous: ad-0001, ac-0001, ab-0001, …"
    run_expect 2 hist-show 0001
    stderr_is "hist-show: session '0001' is ambiguous: ad-0001, ac-0001, ab-0001, …"
    run_expect 2 hist-show ab-0001 a
    stderr_is "hist-show: session 'a' is ambiguous: ad-0001, ac-0001, ab-0001, …"
}

@test "sessions: names are exact: case, no patterns, not empty" {
    one Work
    run_expect 1 hist-show work
    stderr_is "hist-show: no session 'work'"
    run_expect 1 hist-show 'W*'
    stderr_is "hist-show: no session 'W*'"
    run_expect 1 hist-show ''
    stderr_is "hist-show: no session ''"
}

@test "sessions: several; an absent one is said, the others are shown" {
    one a b c
    run_expect 0 hist-show c a
    shown c a
    run_expect 1 hist-show c nope a
    shown c a
    stderr_is "hist-show: no session 'nope'"
}

@test "sessions: last is the one of the last valid line" {
    one a b a
    printf '{"session_id":"b","torn' >>"$HISTORY"
    run_expect 0 hist-show last
    shown a a
    stderr_empty
    : >"$HISTORY"
    run_expect 1 hist-show last
    stdout_empty
    stderr_is 'hist-show: there is no session'
}

@test "sessions: current is what the pointer names, and what hist-show shows by itself" {
    one a b
    run_expect 1 hist-show current
    stdout_empty
    stderr_is 'hist-show: there is no current session'
    run_expect 1 hist-show
    stderr_is 'hist-show: there is no current session'
    echo a >"$HISTORY.session"
    run_expect 0 hist-show current
    shown a
    run_expect 0 hist-show
    shown a
    run_expect 0 hist-show last current
    shown b a
}

@test "sessions: the current one is there before its first message" {
    one a
    run_expect 0 hist-new
    id=$(cat "$OUT")
    run_expect 0 hist-show
    stdout_empty
    run_expect 0 hist-show current
    stdout_empty
    run_expect 0 hist-show "$id"
    stdout_empty
    run_expect 1 hist-show "${id:0:6}"
    stderr_is "hist-show: no session '${id:0:6}'"
}

@test "sessions: a pointer that holds no id points nowhere" {
    one a
    local content
    for content in '' 'a b' '../a' "$(printf '%0300d' 1)" current last $'\001'; do
        printf '%s\n' "$content" >"$HISTORY.session"
        run_expect 1 hist-show
        stderr_is 'hist-show: there is no current session'
    done
    printf 'a' >"$HISTORY.session"
    run_expect 0 hist-show
    shown a
}

@test "sessions: - reads them from standard input, each line up to its first tab" {
    one aa-0001 ab-0002 current-not
    printf 'ab-0002\twhen\tpreview ab\naa-0001\n\n\tx\ncurrent-not\n' >names
    run_expect 0 hist-show - <names
    shown ab-0002 aa-0001 current-not
    printf 'aa-0001' >names
    run_expect 0 hist-show ab-0002 - <names
    shown ab-0002 aa-0001
    printf 'nope\tx\nab-0002\n' >names
    run_expect 1 hist-show - <names
    shown ab-0002
    stderr_is "hist-show: no session 'nope'"
    run_expect 0 hist-show -
    stdout_empty
    stderr_empty
    # shellcheck disable=SC2016
    run_expect 0 bash -c 'hist-sessions --limit 2 | hist-show -'
    shown current-not ab-0002
}

@test "sessions: ids of other clients, with escapes in the file" {
    printf '%s\n' '{"id":"1","session_id":"caf\u00e9 \"x\"","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"in café"}' >"$HISTORY"
    one caf
    run_expect 0 hist-show 'café "x"'
    shown café
    run_expect 0 hist-show 'é "x"'
    shown café
}

@test "hist-show: nothing is written, whatever is shown" {
    make_repo
    unset CHAT_HISTORY
    run_expect 0 hist-append -s s hello
    remember .aicoder/history.jsonl
    find . "$HOME" >"$TMPDIR/before"
    run_expect 0 hist-show s
    run_expect 0 hist-show --json last
    find . "$HOME" >"$TMPDIR/after"
    same 'list of files' "$TMPDIR/before" "$TMPDIR/after"
    unchanged .aicoder/history.jsonl
}

@test "hist-show: a pipe that does not block is waited for" {
    head -c 300000 /dev/zero | tr '\0' a | hist-append -q -s s >id
    cat >look.py <<'END'
import fcntl, os, subprocess, time
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK)
p = subprocess.Popen(['hist-show', 's'], stdout=w)
os.close(w)
time.sleep(0.2)
n = 0
while True:
    got = os.read(r, 65536)
    if not got:
        break
    n += len(got)
print(n, p.wait())
END
    run_expect 0 hist-show s
    n=$(wc -c <"$OUT")
    run_expect 0 python3 look.py
    stdout_is "$n 0"
}

@test "hist-show: --role, and the last of that role" {
    { hist_lines s 4
      hist_line s tool result
      hist_line s system prompt
      hist_line s developer odd; } >"$HISTORY"
    run_expect 0 hist-show --json -r assistant s
    stdout_json .content 'message 2' 'message 4'
    run_expect 0 hist-show --json --role=assistant --limit 1 s
    stdout_json .content 'message 4'
    run_expect 0 hist-show --json -n 2 -r user -r tool s
    stdout_json .content 'message 3' result
    run_expect 0 hist-show --json --role developer --role system s
    stdout_json .content prompt odd
    run_expect 0 hist-show -r nobody s
    stdout_empty
    stderr_empty
    run_expect 1 hist-show -r user nope
    stdout_empty
    stderr_is "hist-show: no session 'nope'"
}

@test "hist-show: calls that are none are not shown, in no format" {
    put s assistant x 2024-06-27T15:00:00.000000+00:00 '{"tool_calls":[5,"c",{"id":"c1","name":"ls","args":{}},[{"name":"no"}]]}'
    put s assistant y 2024-06-27T15:00:00.000000+00:00 '{"tool_calls":{"a":{"id":"c2","name":"no","args":{}}}}'
    run_expect 0 hist-show s
    stdout_is '[assistant] 2024-06-27 15:00:00' x '[tool call] ls {}' '' '[assistant] 2024-06-27 15:00:00' y ''
    run_expect 0 hist-export -f txt s
    stdout_lacks no
    [[ $(grep -c 'tool call' "$OUT") == 1 ]] || fail text
    run_expect 0 hist-show -f md s
    stdout_lacks no
    [[ $(grep -c 'Tool call' "$OUT") == 1 ]] || fail Markdown
}

# ---- formats

# A session with all that a message can have, one that was edited and reset, and one more.
rich_history() {
    put s system 'be brief'
    put s user $'# title\n\n```c\nleft open <!--' '' '{"id":"m1","files":["a.c"],"images":2}'
    put s assistant 'gone' '' '{"id":"m2"}'
    put s assistant $'Title\n===\nlet me see' '' \
        '{"replaces":["m2"],"tool_calls":[{"id":"c1","name":"ls","args":{"dir":"/tmp"}}],"model":"m-1","finish_reason":"length"}'
    put s tool $'a\n```\nb' '' '{"tool_call_id":"c1"}'
    put t user 'old'
    put t system 'anew' '' '{"reset":true}'
    put t user $'a <b> \u00e9'
    put t robot beep
}

# as_exported FORMAT OPTION...: hist-show prints of these sessions what hist-export makes of the same lines.
as_exported() {
    local format=$1
    shift
    run_expect 0 hist-show --json "$@"
    cp "$OUT" lines
    run_expect 0 hist-export -f "$format" --messages lines
    cp "$OUT" wanted
    run_expect 0 hist-show --format "$format" "$@"
    stdout_is_file wanted
    stderr_empty
}

@test "hist-show: --format md and json are what hist-export writes of these messages" {
    rich_history
    for format in md json; do
        for options in '' '--raw' '-n 2' '-n 1' '-r user' '-r user -n 1 --raw' '-r tool -r assistant' '-r robot'; do
            # shellcheck disable=SC2086
            as_exported "$format" $options s t
            # shellcheck disable=SC2086
            as_exported "$format" $options t
        done
        run_expect 0 hist-export -f "$format" t s
        cp "$OUT" wanted
        run_expect 0 hist-show -f "$format" - <<<$'t\tx\ns'
        stdout_is_file wanted
    done
    run_expect 0 hist-show -f json -r assistant s t
    stdout_json '.messages[] | .content' $'Title\n===\nlet me see'
    run_expect 0 hist-show --format=md -n 1 t
    # shellcheck disable=SC2016
    stdout_is '# beep' '' '- session: `t`' '- time: 2024-06-27 14:53:29 UTC' '' '## robot (2024-06-27 14:53:29)' '' beep
    run_expect 0 hist-show s t
    cp "$OUT" wanted
    run_expect 0 hist-show --format text s t
    stdout_is_file wanted
}

@test "hist-show: a format of nothing, and beside sessions that are absent" {
    rich_history
    run_expect 0 hist-show --format json -r nobody s
    stdout_is '{"messages":[]}'
    run_expect 0 hist-show --format md -r nobody s
    stdout_empty
    run_expect 1 hist-show --format json nope
    stdout_empty
    stderr_is "hist-show: no session 'nope'"
    run_expect 1 hist-show --format json nope t
    stdout_json '.messages[] | .content' anew 'a <b> é' beep
    stderr_is "hist-show: no session 'nope'"
}

@test "hist-show: a format on a terminal is shown, not obeyed, and goes through the pager" {
    put s user $'x\e[31my\xe2\x80\xae' 2024-06-27T15:00:00.000000+00:00
    run_expect 0 on_tty --raw hist-show --format md s
    stdout_has 'x^[[31my<U+202E>'
    stdout_lacks $'\e'
    run_expect 0 on_tty --raw hist-show --format json s
    stdout_has 'x\u001b[31my\u202e'
    stdout_lacks $'\e' $'\xe2\x80\xae'
    hist_lines t 40 >>"$HISTORY"
    PAGER='grep -c ^##' run_expect 0 on_tty --raw hist-show -f md t
    stdout_is 40
    PAGER='grep -c "^{.id"' run_expect 0 on_tty --raw hist-show -f json t
    stdout_is 40
}

@test "hist-show: a full disk is an error in every format" {
    rich_history
    for format in text md json; do
        # shellcheck disable=SC2016
        run_expect 2 bash -c 'hist-show --format "$1" s >/dev/full' - "$format"
        stderr_is 'hist-show: cannot write to standard output: No space left on device'
    done
}

@test "hist-show: no ids on standard input are no sessions" {
    put s user hello
    run_expect 0 hist-show -f json - </dev/null
    stdout_json . '{' '  "messages": []' '}'
    stderr_empty
    run_expect 0 hist-show - </dev/null
    stdout_empty
    run_expect 1 hist-show -f json absent
    stdout_empty
}

@test "hist-show: --since, --until, --model and -s" {
    put a user one 2024-06-01T10:00:00.000000+00:00
    put a assistant two 2024-06-02T10:00:00.000000+00:00 '{"model":"big"}'
    put a user three 2024-06-03T10:00:00.000000+00:00
    put b user four 2024-06-03T10:00:00.000000+00:00
    chosen() {
        run_expect 0 hist-show --json "${@:2}" || return 1
        stderr_empty || return 1
        [[ $(jq -r .content "$OUT" | xargs) == "$1" ]] || fail "${*:2}: wanted '$1', got '$(<"$OUT")'"
    }
    chosen 'two three' a --since 2024-06-02
    chosen 'one two' a --until 2024-06-02
    chosen 'two' a --since 2024-06-02 --until 2024-06-02
    chosen 'two' a --model big
    chosen 'one three four' -s a b -r user
    chosen 'three' a -n 1 --until 2024-06-03
}
