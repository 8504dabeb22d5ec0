#!/usr/bin/env bats
#
# hist-export: the formats, what is selected, files and directories, incremental runs, secrets.

# shellcheck disable=SC2016

load ../helper
load ../history

# Two sessions whose lines are mixed; `talk` is the last used.
two_sessions() {
    {
        hist_line talk user 'What is a pipe?' 2024-06-27T15:00:00.000000+00:00
        hist_line other user 'Something else' 2024-06-27T15:00:01.000000+00:00
        hist_line talk assistant 'A `|` joins two commands.' 2024-06-27T15:00:02.000000+00:00 \
            '{"model":"m-1","provider":"openai","finish_reason":"stop"}'
    } >"$HISTORY"
}

# A session with a call of a tool and its result.
with_tool() {
    {
        hist_line t system 'Be brief' 2024-06-27T15:00:00.000000+00:00
        hist_line t user 'List it' 2024-06-27T15:00:01.000000+00:00 '{"files":["a.c","b_c"],"images":2}'
        hist_line t assistant '' 2024-06-27T15:00:02.000000+00:00 \
            '{"tool_calls":[{"id":"c1","name":"list","args":{"path":"."}}],"model":"m-1","finish_reason":"tool_calls"}'
        hist_line t tool $'a\n```\nb' 2024-06-27T15:00:03.000000+00:00 '{"tool_call_id":"c1"}'
        hist_line t assistant 'Two' 2024-06-27T15:00:04.000000+00:00 '{"model":"m-2","finish_reason":"length"}'
    } >"$HISTORY"
}

# ---- formats

@test "hist-export: Markdown is the default" {
    two_sessions
    run_expect 0 hist-export talk
    stderr_empty
    stdout_is '# What is a pipe?' '' '- session: `talk`' '- time: 2024-06-27 15:00:00 to 2024-06-27 15:00:02 UTC' \
        '- model: `m-1`' '' '## User (2024-06-27 15:00:00)' '' 'What is a pipe?' '' \
        '## Assistant (2024-06-27 15:00:02)' '' 'A `|` joins two commands.'
}

@test "hist-export: Markdown of tools, files, and an answer that was cut" {
    with_tool
    run_expect 0 hist-export -f md t
    stdout_is '# List it' '' '- session: `t`' '- time: 2024-06-27 15:00:00 to 2024-06-27 15:00:04 UTC' \
        '- model: `m-2`' '' '## System (2024-06-27 15:00:00)' '' 'Be brief' '' '## User (2024-06-27 15:00:01)' '' \
        'List it' '' '*images: 2*' '' '*files: a.c, b\_c*' '' '## Assistant (2024-06-27 15:00:02)' '' \
        'Tool call `list`:' '' '```json' '{"path":"."}' '```' '' '## Tool (2024-06-27 15:00:03)' '' \
        '````' 'a' '```' 'b' '````' '' '## Assistant (2024-06-27 15:00:04)' '' 'Two' '' '*ended: length*'
}

@test "hist-export: the pages that an answer cites are links" {
    hist_line s assistant 'It rains.' 2024-06-27T15:00:00.000000+00:00 \
        '{"citations":[{"url":"https://a.org/x_y?a=1&b=2"},{"url":"https://a.org/x_y?a=1&b=2"},{"url":"http://b.org/ <b>"},{"url":"javascript:alert(*1*)"}]}' >"$HISTORY"
    run_expect 0 hist-export -f md s
    tail -n 9 "$OUT" >end
    is 'the end' end '## Assistant (2024-06-27 15:00:00)' '' 'It rains.' '' 'Sources:' '' '- <https://a.org/x_y?a=1&b=2>' \
        '- http://b.org/ \<b\>' '- javascript:alert(\*1\*)'
    run_expect 0 hist-export -f txt s
    stdout_has 'It rains.' '[source] https://a.org/x_y?a=1&b=2' '[source] http://b.org/ <b>' '[source] javascript:alert(*1*)'
    run_expect 0 hist-export -f html s
    stdout_has '"sources":["https://a.org/x_y?a=1&b=2","http://b.org/ \u003cb>","javascript:alert(*1*)"]}'
}

@test "hist-export: no content breaks a Markdown document" {
    local content
    for content in $'# one\n## two\n###### six\n#no heading' $'Title\n===\n\ntext\n---\n\n---' $'```sh\n# code\nopen' \
        $'~~~~\n~~~\n```' $'<!-- open\n# x' $'<pre>\n# x' $'<pre>\nx</pre>\n# y' $'<script>x\n# y' '<?php' $'a\r# b\r```' $'   # three\n    # code'; do
        hist_line s user "$content" >"$HISTORY"
        hist_line s assistant end >>"$HISTORY"
        run_expect 0 hist-export s
        cp "$OUT" document
        run_expect 0 python3 - document <<'PYTHON'
# The headings of levels 1 and 2 of the document, by the rules of CommonMark that matter here.
import re, sys
fence, html, para = None, None, False
for line in re.split("\r\n|\n|\r", open(sys.argv[1], newline="").read()):
    text = line.lstrip(" ") if len(line) - len(line.lstrip(" ")) <= 3 else "    "
    if html:
        html = None if html in line else html
        continue
    m = re.match(r"(`{3,})[^`]*$|(~{3,})", text)
    if fence:
        if re.match(r"%s{%d,}\s*$" % (fence[0], len(fence)), text):
            fence = None
        continue
    if m:
        fence, para = m.group(1) or m.group(2), False
        continue
    for start, end in ("<!--", "-->"), ("<?", "?>"), ("<pre", "</pre>"), ("<script", "</script>"):
        if text.startswith(start) and end not in text:
            html = end
    if re.match(r"##?(\s|$)", text) or (para and re.match(r"(=+|-+)\s*$", text)):
        print(text.split(" (")[0])
    para = bool(text.strip()) and not text.startswith("#")
if fence or html:
    print("left open", fence or html)
PYTHON
        [[ $(sed 1d "$OUT") == $'## User\n## Assistant' ]] || fail "content: $content" "$(cat document)"
    done
}

@test "hist-export: Markdown that breaks nothing is not changed" {
    hist_line s user $'words\n\n- a list\n1. another\n| a | table |\n\n    code\n```c\nint i;\n---\n```\n---\nÄ **word**\n> quoted\n\n---\nend' >"$HISTORY"
    run_expect 0 hist-export s
    sed 1,7d "$OUT" >got
    jq -r .content "$HISTORY" | cmp - got
    hist_line s user $'a\nword\n===\n9\n--\nÄ\n=' >"$HISTORY"
    run_expect 0 hist-export s
    sed 1,7d "$OUT" >got
    printf '%s\n' a word '\===' 9 '\--' Ä '\=' | cmp - got
}

@test "hist-export: times are in UTC, whatever form the line has" {
    local time
    for time in 2024-06-27T15:00:07.250000+00:00 2024-06-27T15:00:07Z 2024-06-27T17:00:07.123456+02:00; do
        hist_line s user hello "$time" >"$HISTORY"
        run_expect 0 hist-export s
        stdout_has '- time: 2024-06-27 15:00:07 UTC' '## User (2024-06-27 15:00:07)'
    done
    hist_line s user hello 2024-06-30T23:59:60.000000+00:00 >"$HISTORY"
    run_expect 0 hist-export s
    stdout_has '## User (2024-07-01 00:00:00)'
    sed 's/2024-06-30.*+00:00/a *time*/' "$HISTORY" >bad.jsonl
    run_expect 0 hist-export --history bad.jsonl s
    stdout_has '- time: a \*time\* UTC' '## User (a \*time\*)'
}

@test "hist-export: json has the calls and their ids in every message" {
    with_tool
    run_expect 0 hist-export -f json t
    stderr_empty
    json_is "$OUT" '.messages | length' 5
    json_is "$OUT" '.messages[] | [.role, has("tool_calls"), has("tool_call_id")] | @csv' '"system",true,true' \
        '"user",true,true' '"assistant",true,true' '"tool",true,true' '"assistant",true,true'
    jq -c '.messages[] | del(.tool_calls | nulls) | del(.tool_call_id | nulls)' "$OUT" >got
    same lines "$HISTORY" got
    : >none.jsonl
    run_expect 0 hist-export -f json --all-sessions --history none.jsonl
    stdout_is '{"messages":[]}'
}

@test "hist-export: jsonl is the history, byte for byte, in its order" {
    two_sessions
    printf '%s\n' '{ "x" : 1e400,"id":"1","session_id":"talk","timestamp":"t","role":"odd","content":null, "é\u00e9":[ ] }' >>"$HISTORY"
    hist_line talk user again '' '{"replaces":["1"]}' >>"$HISTORY"
    run_expect 0 hist-export --all-sessions -f jsonl
    stdout_is_file "$HISTORY"
    run_expect 0 hist-export --json talk
    grep -v '"other"' "$HISTORY" >wanted
    stdout_is_file wanted
}

@test "hist-export: text is what hist-show prints, with a head" {
    two_sessions
    run_expect 0 hist-show talk
    { printf '%s\n' '=== What is a pipe?' '=== session talk, 2024-06-27 15:00:00 to 2024-06-27 15:00:02, m-1' ''; cat "$OUT"; } >wanted
    run_expect 0 hist-export -f txt talk
    stdout_is_file wanted
}

@test "hist-export: messages as the servers want them, a line for each session" {
    with_tool
    hist_line x user hello 2024-06-28T15:00:00.000000+00:00 >>"$HISTORY"
    run_expect 0 hist-export -f openai --all-sessions
    stdout_is '{"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"List it"},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"list","arguments":"{\"path\":\".\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"a\n```\nb"},{"role":"assistant","content":"Two"}]}' \
        '{"messages":[{"role":"user","content":"hello"}]}'
    run_expect 0 hist-export -f anthropic --all-sessions
    stdout_is '{"system":"Be brief","messages":[{"role":"user","content":"List it"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"list","input":{"path":"."}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a\n```\nb"}]},{"role":"assistant","content":"Two"}],"tools":[{"name":"list","input_schema":{"type":"object"}}]}' \
        '{"messages":[{"role":"user","content":"hello"}]}'
}

@test "hist-export: a session in which nothing is said has no line for a server" {
    { hist_line s robot beep; hist_line s user ' '; hist_line t user hello; } >"$HISTORY"
    for format in openai anthropic; do
        run_expect 0 hist-export -f "$format" --all-sessions
        stdout_is '{"messages":[{"role":"user","content":"hello"}]}'
        run_expect 0 hist-export -f "$format" s
        stdout_empty
        hist_line blank system ' ' >"$WORK/blank.jsonl"
        run_expect 0 hist-export --history "$WORK/blank.jsonl" -f "$format" --all-sessions
        stdout_empty
    done
}

@test "hist-export: what chat would send is what is exported" {
    use_echo
    run_expect 0 chat -s s first
    run_expect 0 chat -s s second
    run_expect 0 hist-export -f openai s
    jq -c '.messages' "$OUT" >wanted
    CHAT_PROVIDER=openai-chat OPENAI_API_KEY=x run_expect 0 chat --dry-run -m m -s s third
    jq -c '.messages[:-1]' "$OUT" >got
    same messages wanted got
}

@test "hist-export: the thread, or with --raw every line" {
    hist_line s user first >"$HISTORY"
    id=$(jq -r .id "$HISTORY")
    hist_line s user second '' "{\"replaces\":[\"$id\"]}" >>"$HISTORY"
    run_expect 0 hist-export -f json s
    json_is "$OUT" '.messages[].content' second
    run_expect 0 hist-export -f json --raw s
    json_is "$OUT" '.messages[].content' first second
}

@test "hist-export: on a terminal nothing is obeyed" {
    hist_line s user $'\033[31mred' >"$HISTORY"
    run_expect 0 on_tty hist-export -f md s
    stdout_has '^[[31mred'
    stdout_lacks $'\033[31m'
    run_expect 0 on_tty hist-export -f jsonl s
    stdout_has '\u001b[31mred'
    run_expect 0 hist-export -f md s
    stdout_has $'\033[31mred'
}

# ---- what is selected

@test "hist-export: the current session, named ones in their order, all of them the last used last" {
    two_sessions
    run_expect 1 hist-export
    stderr_is 'hist-export: there is no current session'
    stdout_empty
    run_expect 0 hist-load -q other
    run_expect 0 hist-export -f openai
    stdout_has 'Something else'
    lines_are 1
    run_expect 0 hist-export -f openai talk other
    json_is "$OUT" '.messages[0].content' 'What is a pipe?' 'Something else'
    run_expect 0 hist-export -f openai --all-sessions
    json_is "$OUT" '.messages[0].content' 'Something else' 'What is a pipe?'
    echo $'talk\tx' | run_expect 0 hist-export -f openai -
    json_is "$OUT" '.messages[0].content' 'What is a pipe?'
    run_expect 1 hist-export -f openai nobody talk
    stderr_is "hist-export: no session 'nobody'"
    json_is "$OUT" '.messages[0].content' 'What is a pipe?'
}

@test "hist-export: --since has the sessions that were used since, whole" {
    hist_line old user before 2024-06-26T10:00:00.000000+00:00 >"$HISTORY"
    hist_line both user early 2024-06-26T10:00:00.000000+00:00 >>"$HISTORY"
    hist_line both user late 2024-06-28T00:00:00.000000+00:00 >>"$HISTORY"
    run_expect 0 hist-export --since 2024-06-28 -f jsonl
    json_is "$OUT" .content early late
    run_expect 0 hist-export --since 2024-06-28 -f jsonl old
    stdout_empty
    run_expect 0 hist-export --since 1d -f jsonl
    stdout_empty
    # A session's time is that of its latest message, wherever it stands.
    hist_line both user again 2024-06-27T00:00:00.000000+00:00 >>"$HISTORY"
    run_expect 0 hist-export --since 2024-06-28 -f jsonl
    json_is "$OUT" .content early late again
    run_expect 0 hist-export --until 2024-06-28 -f jsonl
    json_is "$OUT" .content before early late again
    run_expect 0 hist-export --until 2024-06-27 -f jsonl
    json_is "$OUT" .content before
    run_expect 0 hist-export --since 2024-06-28 --until 2024-06-27 -f jsonl
    stdout_empty
    run_expect 2 hist-export --until nonsense
    stderr_has "bad value 'nonsense' for --until"
    run_expect 2 hist-export --since nonsense
    stderr_is "hist-export: bad value 'nonsense' for --since: a time such as 2024-06-27, 7d, 'monday' or '2 weeks ago' is expected (see 'hist-export --help')"
}

@test "hist-export: --role, --model, -s and -n choose sessions, each whole" {
    {
        hist_line a user one
        hist_line a assistant two '' '{"model":"big"}'
        hist_line b user three
        hist_line c tool four
    } >"$HISTORY"
    exported() {
        run_expect 0 hist-export -f jsonl "${@:2}" || return 1
        [[ $(jq -r .content "$OUT" | xargs) == "$1" ]] || fail "${*:2}: wanted '$1', got '$(<"$OUT")'"
    }
    exported 'one two' --model big
    exported 'one two three' -r user
    exported 'four' -n 1
    exported 'three' -n 1 -r user
    exported 'one two' -s a
    exported '' b --model big
    exported 'three four' -n 2
}

@test "hist-export: --messages exports exactly these lines in this order" {
    two_sessions
    tac "$HISTORY" >lines
    run_expect 0 hist-export -f jsonl --messages lines
    stdout_is_file lines
    printf '%s\n' '' 'not JSON' '{"role":"user","content":"no id"}' >>lines
    run_expect 0 hist-export -f json --messages - <lines
    json_is "$OUT" '.messages[].content' 'A `|` joins two commands.' 'Something else' 'What is a pipe?'
    stderr_is 'hist-export: skipped 2 bad entries on standard input'
    run_expect 0 hist-export -q -f json --messages - <lines
    stderr_empty
    run_expect 0 hist-search --json --reverse i
    run_expect 0 hist-export -f md --messages - <"$OUT"
    [[ $(grep -c '^# ' "$OUT") == 3 ]]
    run_expect 2 hist-export --messages nowhere
    stderr_is "hist-export: cannot open 'nowhere': No such file or directory"
}

@test "hist-export: what does not go together is refused" {
    two_sessions
    remember "$HISTORY"
    local words
    for words in '--all-sessions talk' '--all talk' '--messages x talk' '--messages x --all-sessions' '--messages x --all' '--messages x --since 1d' '--messages x -n 1' '--messages x --model m' '--messages x --raw' \
        '--messages x --incremental s' '--messages x -o ./' '--incremental s --since 1d' '--incremental s -n 1' '--incremental s current' '-f nonsense' '-f html2' \
        '--incremental s -o x.json' '--json -f md'; do
        # shellcheck disable=SC2086
        run_expect 2 hist-export $words
        stdout_empty
        stderr_matches '^hist-export: '
    done
    run_expect 2 hist-export -o ''
    [[ ! -e s && ! -e x.json ]]
    unchanged "$HISTORY"
}

# ---- files

@test "hist-export: a file gets the format of its name, is private, and is replaced as a whole" {
    two_sessions
    run_expect 0 hist-export -o talk.json talk
    stdout_empty
    stderr_empty
    [[ $(stat -c %a talk.json) == 600 ]]
    json_is talk.json '.messages | length' 2
    run_expect 0 hist-export -o talk.md talk
    head -n 1 talk.md >got
    is 'first line' got '# What is a pipe?'
    run_expect 0 hist-export -o talk.markdown talk
    same 'another name of it' talk.md talk.markdown
    run_expect 0 hist-export -o talk.htm talk
    run_expect 0 hist-export -o talk.html talk
    same 'another name of it' talk.html talk.htm
    [[ $(head -c 15 talk.htm) == '<!doctype html>' ]]
    echo old >plain
    chmod 644 plain
    run_expect 0 hist-export -o plain -f jsonl other
    [[ $(stat -c %a plain) == 600 ]]
    grep other "$HISTORY" >wanted
    same plain wanted plain
    run_expect 0 hist-export -f jsonl -o - other
    stdout_is_file wanted
    ln -s plain link
    run_expect 2 hist-export -o link talk
    stderr_is "hist-export: cannot write 'link': is a symbolic link"
    mkfifo fifo
    run_expect 2 hist-export -o fifo talk
    stderr_is "hist-export: cannot write 'fifo': is a FIFO"
    run_expect 2 hist-export -o no/such talk
    stderr_is "hist-export: cannot write 'no/such': No such file or directory"
    same plain wanted plain
    run_expect 1 hist-export -o plain nobody
    same plain wanted plain
    no_temporaries
}

no_temporaries() {
    [[ -z $(find . -name '*.tmp') ]] || fail 'left behind:' "$(find . -name '*.tmp')"
}

@test "hist-export: a full disk leaves the old file" {
    two_sessions
    hist_lines many 2000 >>"$HISTORY"
    echo old >file
    RUN_LIMIT=20 run_expect 2 bash -c 'ulimit -f 16; exec hist-export -f jsonl --all-sessions -o file'
    stderr_is "hist-export: cannot write 'file': File too large"
    [[ $(cat file) == old ]]
    no_temporaries
    run_expect 2 bash -c 'exec hist-export talk >/dev/full'
    stderr_is 'hist-export: cannot write to standard output: No space left on device'
}

@test "hist-export: a directory gets a file for each session, and only what changed is written" {
    two_sessions
    printf '%s\n' '{"id":"9","session_id":"a/b\u0000 c","timestamp":"no time","role":"user","content":"odd"}' >>"$HISTORY"
    run_expect 0 hist-export --all-sessions -o out/
    stdout_empty
    stderr_empty
    run_expect 0 find out -type f -printf '%f %m\n'
    sort "$OUT" >got
    is names got '2024-06-27_other.md 600' '2024-06-27_talk.md 600' 'undated_a%2Fb%00%20c.md 600'
    [[ $(stat -c %a out) == 700 ]]
    run_expect 0 hist-export -f md talk
    same talk "$OUT" out/2024-06-27_talk.md
    local before
    before=$(stat -c '%i' out/2024-06-27_other.md out/2024-06-27_talk.md)
    hist_line talk user 'And more' 2024-06-28T15:00:03.000000+00:00 >>"$HISTORY"
    run_expect 0 hist-export --all-sessions -o out
    [[ $(stat -c '%i' out/2024-06-27_other.md) == "${before%%$'\n'*}" ]]
    [[ $(stat -c '%i' out/2024-06-27_talk.md) != "${before##*$'\n'}" ]]
    grep -q 'And more' out/2024-06-27_talk.md
    no_temporaries
    run_expect 0 hist-export --all-sessions -f openai -o out
    [[ -e out/2024-06-27_talk.openai.jsonl ]]
}

@test "hist-export: two ids that differ in case alone never share a file, whatever the file system" {
    hist_line notes user small 2024-06-27T15:00:00.000000+00:00 >"$HISTORY"
    hist_line Notes user capital 2024-06-27T15:00:00.000000+00:00 >>"$HISTORY"
    hist_line NOTES user loud 2024-06-27T15:00:00.000000+00:00 >>"$HISTORY"
    run_expect 0 hist-export --all-sessions -o out/
    [[ -e out/2024-06-27_notes.md ]]
    [[ $(find out -type f | tr '[:upper:]' '[:lower:]' | sort -u | wc -l) -eq 3 ]]
    run_expect 0 find out -name '*_Notes~????????????????.md'
    lines_are 1
    grep -q capital "$(cat "$OUT")"
}

@test "hist-export: two long ids never share a file" {
    local long
    long=$(printf 'x%.0s' {1..300})
    hist_line "${long}1" user one 2024-06-27T15:00:00.000000+00:00 >"$HISTORY"
    hist_line "${long}2" user two 2024-06-27T15:00:00.000000+00:00 >>"$HISTORY"
    run_expect 0 hist-export --all-sessions -f jsonl -o out/
    cat out/* | sort >got
    sort "$HISTORY" >wanted
    same lines wanted got
    [[ $(find out -type f | wc -l) == 2 ]]
}

# ---- incremental

@test "hist-export: --incremental adds what is new to a file" {
    two_sessions
    run_expect 0 hist-export --incremental state -o archive.jsonl
    stdout_empty
    stderr_empty
    same archive "$HISTORY" archive.jsonl
    [[ $(stat -c %a state archive.jsonl) == $'600\n600' ]]
    remember state
    run_expect 0 hist-export --incremental state -o archive.jsonl
    unchanged state
    hist_line talk user 'And more' >>"$HISTORY"
    printf '%s\n' 'not JSON' >>"$HISTORY"
    run_expect 0 hist-export --incremental state -o archive.jsonl
    stderr_is "hist-export: skipped 1 bad line in '$HISTORY'"
    grep -v 'not JSON' "$HISTORY" >wanted
    same archive wanted archive.jsonl
    # A line that is being written waits.
    hist_line other user torn | tr -d '\n' >>"$HISTORY"
    run_expect 0 hist-export -q --incremental state -o archive.jsonl
    same archive wanted archive.jsonl
    echo >>"$HISTORY"
    run_expect 0 hist-export -q --incremental state -o archive.jsonl
    grep -v 'not JSON' "$HISTORY" >wanted
    same archive wanted archive.jsonl
    # The archive is moved away: a new one begins.
    mv archive.jsonl old.jsonl
    run_expect 0 hist-export -q --incremental state -o archive.jsonl
    [[ ! -e archive.jsonl ]]
    hist_line other user newest >>"$HISTORY"
    run_expect 0 hist-export -q --incremental state -o archive.jsonl
    json_is archive.jsonl .content newest
}

@test "hist-export: --incremental to standard output and as Markdown" {
    two_sessions
    run_expect 0 hist-export --incremental state -f jsonl
    stdout_is_file "$HISTORY"
    run_expect 0 hist-export --incremental state -f jsonl
    stdout_empty
    hist_line talk user 'And more' >>"$HISTORY"
    run_expect 2 bash -c 'exec hist-export --incremental state -f jsonl >/dev/full'
    run_expect 0 hist-export --incremental state -f jsonl
    json_is "$OUT" .content 'And more'
    run_expect 0 hist-export --incremental other -o notes.md
    hist_line talk user 'And that' >>"$HISTORY"
    run_expect 0 hist-export --incremental other -o notes.md
    [[ $(grep -c '^# ' notes.md) == 3 ]]
    [[ $(grep -c -x 'And that' notes.md) == 1 ]]
}

@test "hist-export: --incremental with a directory writes the sessions with something new" {
    two_sessions
    run_expect 0 hist-export --incremental state -f json -o out/
    rm out/*
    hist_line talk user 'And more' >>"$HISTORY"
    run_expect 0 hist-export --incremental state -f json -o out/
    [[ $(ls out) == 2024-06-27_talk.json ]]
    json_is out/2024-06-27_talk.json '.messages | length' 3
}

@test "hist-export: --incremental after a rewrite has what is new, and loses nothing" {
    hist_lines gone 3 >"$HISTORY"
    hist_lines kept 3 >>"$HISTORY"
    hist_lines last 2 >>"$HISTORY"
    cp "$HISTORY" before
    run_expect 0 hist-export --incremental state -o archive.jsonl
    # A whole session goes, with the last line of the file and the first one.
    hist_lines kept 2 >later
    hist_lines new 2 >>later
    { grep '"kept"' before; cat later; } >"$HISTORY"
    run_expect 0 hist-export --incremental state -o archive.jsonl
    stderr_empty
    cat before later >wanted
    same archive wanted archive.jsonl
    hist_line gone user 'begins again' >again
    cat again >>"$HISTORY"
    run_expect 0 hist-export --incremental state -o archive.jsonl
    cat before later again >wanted
    same archive wanted archive.jsonl
    # Another history altogether.
    hist_lines elsewhere 2 >"$HISTORY"
    run_expect 0 hist-export --incremental state -o archive.jsonl
    cat before later again "$HISTORY" >wanted
    same archive wanted archive.jsonl
}

@test "hist-export: --incremental exports no line twice after a repair" {
    {
        hist_line s user one
        printf '%s%s\n' '{"torn' "$(hist_line s user recovered)"
        printf '%s%s\n' '{"torn' "$(hist_line other user only)"
        hist_line s user last
    } >"$HISTORY"
    run_expect 0 hist-export -q --incremental state -o archive.jsonl
    json_is archive.jsonl .content one last
    run_expect 0 hist-check -q --repair
    hist_line s user after >>"$HISTORY"
    for _ in 1 2; do run_expect 0 hist-export --incremental state -o archive.jsonl; done
    stderr_empty
    # What is recovered before the last exported line of its session is left to a full export.
    json_is archive.jsonl .content one last only after
    run_expect 0 hist-export --all-sessions -f jsonl
    stdout_is_file "$HISTORY"
}

@test "hist-export: what is no state is not used" {
    two_sessions
    local text
    # The last one has ids of lines, as they were remembered once.
    for text in '[]' 'x' '{"format":2}' '{"format":1,"offset":5}' '{"format":1,"growing":{}}' \
        '{"format":1,"offset":5,"line":0,"length":4,"id":"1-a","sessions":{"talk":"1719500000000-a1b2c3d4"}}'; do
        echo "$text" >state
        run_expect 2 hist-export --incremental state -f jsonl
        stdout_empty
        stderr_is "hist-export: cannot use 'state': it is no state of an export"
        [[ $(cat state) == "$text" ]]
    done
    : >state
    run_expect 0 hist-export --incremental state -f jsonl
    stdout_is_file "$HISTORY"
}

@test "hist-export: what is read is not written over" {
    use_history
    { hist_line s user one; hist_line s assistant two; } >"$HISTORY"
    cp "$HISTORY" before
    ln -s "$HISTORY" link
    for output in "$HISTORY" link "./$(basename "$HISTORY")"; do
        for how in '--all-sessions -f txt' '-f jsonl --incremental state' "--messages before -f jsonl"; do
            eval "run_expect 2 hist-export $how -o $output"
            stderr_has "'$output' is the history"
        done
    done
    for output in "$HISTORY.session" "$HISTORY.idx" "$HISTORY.deleted" "$HISTORY.quarantine"; do
        run_expect 2 hist-export --all-sessions -f md -o "$output"
        stderr_has 'belongs to the history'
    done
    run_expect 2 hist-export --incremental "$HISTORY"
    run_expect 2 hist-export -f txt --incremental st -o ./st
    stderr_has "cannot be both"
    same history before "$HISTORY"
    [[ ! -e st && ! -e state ]]
    # The mark of a repository's history, without which it is a stranger's.
    unset CHAT_HISTORY
    make_repo
    run_expect 0 chat -p echo -s s hello
    run_expect 2 hist-export -o .git/aicoder/owner s
    stderr_has 'belongs to the history'
}

@test "hist-export: --incremental after a rewrite knows lines of one id apart" {
    use_history
    { hist_line gone user bye; for k in 0 1 2 3; do hist_line twice user "e$k"; done; } | jq -c '.id = "same"' >"$HISTORY"
    run_expect 0 hist-export --incremental state -o archive.jsonl
    run_expect 0 hist-delete --force gone
    hist_line twice user e4 | jq -c '.id = "same"' >>"$HISTORY"
    run_expect 0 hist-export --incremental state -o archive.jsonl
    json_is archive.jsonl .content bye e0 e1 e2 e3 e4
}

# Also while it writes one session, which it has read.
@test "hist-export: a signal ends it with the old file, and without the new one" {
    use_history
    need_strace
    python3 -c 'for i in range(4000): print("""{"id":"%d","session_id":"s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"%s"}""" % (i, "x" * 2000))' >"$HISTORY"
    mkdir out
    echo old >out/page.html
    for signal in INT TERM HUP; do
        rm -f trace
        background strace -qq -o trace -e trace=write -e inject=write:signal=STOP:when=3 hist-export --all-sessions -o out/page.html
        wait_for held
        compgen -G 'out/page.html.*.tmp' >/dev/null
        pkill "-$signal" -P "$BG" -x hist-export
        pkill -CONT -P "$BG" -x hist-export
        finish $((128 + $(kill -l "$signal")))
        [[ $(ls out) == page.html && $(<out/page.html) == old ]]
    done
}

@test "hist-export: what a killed run has left is removed by the next one, and nothing else" {
    two_sessions
    need_strace
    run_expect 137 traced -f -o trace -e inject=rename,renameat:signal=KILL hist-export --all-sessions -o docs/
    run_expect 137 traced -f -o trace -e inject=rename,renameat:signal=KILL hist-export --all-sessions -o page.html
    [[ $(find . -name '*.[0-9]*.0.tmp' | wc -l) == 2 ]] || fail "$(find .)"
    echo busy >docs/x.md.77.0.tmp
    echo mine | tee docs/notes.2024.11.tmp docs/x.html.1.2.tmp >docs/x.md.1.tmp
    run_expect 0 flock docs/x.md.77.0.tmp hist-export --all-sessions -o docs/
    run_expect 0 hist-export --all-sessions -o page.html
    find . -name '*.tmp' | LC_ALL=C sort >left
    is left left ./docs/notes.2024.11.tmp ./docs/x.html.1.2.tmp ./docs/x.md.1.tmp ./docs/x.md.77.0.tmp
}

@test "hist-export: two runs at once export each line once" {
    hist_lines a 500 >"$HISTORY"
    local i pids=()
    for i in 1 2 3 4; do
        hist-export --incremental state -o archive.jsonl 2>"errors.$i" &
        pids+=("$!")
    done
    for i in "${pids[@]}"; do wait "$i"; done
    same archive "$HISTORY" archive.jsonl
}

@test "hist-export: an archive that cannot grow stays as it was, and the next run makes it good" {
    hist_lines a 3 >"$HISTORY"
    run_expect 0 hist-export --incremental state -o archive.jsonl
    cp archive.jsonl before
    hist_lines a 2000 >>"$HISTORY"
    run_expect 2 bash -c 'ulimit -f 100; exec hist-export --incremental state -o archive.jsonl'
    stderr_is "hist-export: cannot write 'archive.jsonl': File too large"
    same archive before archive.jsonl
    run_expect 0 hist-export --incremental state -o archive.jsonl
    same archive "$HISTORY" archive.jsonl
}

# killed_at CALL N: a run that ends at the N-th such call. Fails when it made no N-th one.
killed_at() {
    local got=0
    traced -f -o trace -e trace="$1" -e inject="$1":signal=KILL:when="$2" \
        hist-export --incremental state -o archive.jsonl >killed.out 2>killed.err || got=$?
    [[ $got != 0 ]]
}

@test "hist-export: killed at any system call, each line is exported exactly once" {
    need_strace
    hist_lines a 3 >first
    { cat first; hist_lines a 2; } >both
    local call n killed=0
    for call in write fsync rename ftruncate flock fcntl close; do
        for ((n = 1; n < 40; n++)); do
            rm -f state archive.jsonl ./*.tmp
            cp first "$HISTORY"
            hist-export --incremental state -o archive.jsonl
            cp both "$HISTORY"
            killed_at "$call" "$n" || break
            killed=$((killed + 1))
            # The next one may end at the same place.
            killed_at "$call" "$n" || :
            run_expect 0 hist-export --incremental state -o archive.jsonl
            same "archive after $call $n" both archive.jsonl
            run_expect 0 hist-export --incremental state -o archive.jsonl
            same "archive after $call $n, again" both archive.jsonl
        done
    done
    [[ $killed -ge 12 ]]
}

# ---- secrets, locks

# Put together here, so that nobody takes this file for a leak.
secrets() {
    GITHUB=ghp_$(printf 'aB3%.0s' {1..12})
    OPENAI=sk-proj-$(printf 'xY7z%.0s' {1..10})
}

@test "hist-export: --redact leaves out keys in every format, and lines stay valid" {
    secrets
    hist_line s user "a $GITHUB"$'\n'"\"b\" $OPENAI." >"$HISTORY"
    hist_line s assistant 'plain é "text"' '' "{\"x\":{\"$GITHUB\":[1]},\"tool_calls\":[{\"id\":\"c\",\"name\":\"n\",\"args\":{\"url\":\"https://u:pw@h/\"}}],\"citations\":[{\"url\":\"https://u:pw@h/$GITHUB\"}]}" >>"$HISTORY"
    remember "$HISTORY"
    local format
    for format in md html json jsonl txt openai anthropic; do
        run_expect 0 hist-export --redact -f "$format" s
        stdout_has '[redacted github-token]' '[redacted api-key].' 'plain é'
        stdout_lacks "$GITHUB" "$OPENAI" u:pw@
    done
    run_expect 0 hist-export --redact -f jsonl s
    json_is "$OUT" .content 'a [redacted github-token]' '"b" [redacted api-key].' 'plain é "text"'
    json_is "$OUT" '.x | select(.) | tojson' '{"[redacted github-token]":[1]}'
    run_expect 0 hist-export --redact -f jsonl --messages "$HISTORY"
    stdout_lacks "$GITHUB" "$OPENAI"
    run_expect 0 hist-export -f jsonl s
    stdout_is_file "$HISTORY"
    unchanged "$HISTORY"
}

@test "hist-export: --redact leaves out what stands behind escapes, line numbers and in headers" {
    local hex=0123456789abcdef0123456789abcdef begin="-----BEGIN PRIVATE"" KEY-----"
    secrets
    {
        hist_line s user $'\e[32m'"$GITHUB"$'\n'"{\"a\":\"\\u003d$GITHUB\"}"
        hist_line s user "     1→$begin"$'\n'"     2→MIIE$hex"$'\n'"     3→${begin/BEGIN/END}"$'\n     4→rest'
        hist_line s user "x-api-key: $hex Authorization: Basic dXNlcjpodW50ZXIy"
        hist_line s user "postgres://bob:%40hunter2@db/x git@host:a/b $hex"
    } >"$HISTORY"
    local format
    for format in md html json jsonl txt openai anthropic; do
        run_expect 0 hist-export --redact -f "$format" s
        stdout_has '[redacted github-token]' '[redacted private-key]' '4→rest' "git@host:a/b $hex" \
            'x-api-key: [redacted api-key] Authorization: Basic [redacted basic-auth]' \
            'postgres://bob:[redacted password]@db/x'
        stdout_lacks "$GITHUB" "MIIE" "$begin" hunter2 dXNlcj
    done
    run_expect 0 hist-export --redact -f jsonl s
    jq -e . "$OUT" >/dev/null
    json_is "$OUT" .content $'\e[32m[redacted github-token]' '{"a":"\u003d[redacted github-token]"}' \
        '     1→[redacted private-key]' '     4→rest' \
        'x-api-key: [redacted api-key] Authorization: Basic [redacted basic-auth]' \
        "postgres://bob:[redacted password]@db/x git@host:a/b $hex"
}

@test "hist-export: --redact reports how many secrets it replaced, -q does not" {
    secrets
    {
        hist_line s user "$GITHUB $OPENAI"
        hist_line s assistant 'DB_PASSWORD=hunter2'
    } >"$HISTORY"
    local count='hist-export: 3 redacted; secrets of another form remain'
    run_expect 0 hist-export --redact -f jsonl s
    stderr_is "$count"
    json_is "$OUT" .content '[redacted github-token] [redacted api-key]' 'DB_PASSWORD=[redacted password]'
    run_expect 0 hist-export --redact -o dir/ --all-sessions
    stderr_is "$count"
    run_expect 0 hist-export --redact -f jsonl --messages "$HISTORY"
    stderr_is "$count"
    run_expect 0 hist-export --redact -q s
    stderr_empty
    run_expect 0 hist-export s
    stderr_empty
    hist_line s user 'nothing' >"$HISTORY"
    run_expect 0 hist-export --redact s
    stderr_is 'hist-export: 0 redacted; secrets of another form remain'
}

# 60 sessions, six at a time, 4 MB; one has a line of 10 MB; the first ones have no message.
many_sessions() {
    python3 - "$HISTORY" <<'PYTHON'
import json, random, sys
draw = random.Random(5)
with open(sys.argv[1], "w") as out:
    for n in range(6000):
        batch = n // 600
        session = "s%03d" % (batch * 6 + draw.randrange(6)) if n >= 20 else "titled%d" % (n % 2)
        role = "title" if n < 20 else draw.choice(["user", "assistant"])
        text = "key sk-proj-xY7zxY7zxY7zxY7zxY7zxY7zxY7zxY7z%04d\r\n# part\n" % n + "text \u00e9\n" * draw.randrange(80)
        if n == 3000:
            text = "wide " * 2000000
        print(json.dumps({"id": "m%d" % n, "session_id": session, "role": role, "content": text if n >= 20 else "A title",
                          "timestamp": "2024-06-27T%02d:%02d:%02d.000000+00:00" % (n // 3600, n // 60 % 60, n % 60)},
                         separators=(",", ":"), ensure_ascii=n % 3 == 0), file=out)
        if n == 4000:
            print("no line", file=out)
PYTHON
}

@test "hist-export: several threads write what one does, in its order" {
    local format
    many_sessions
    run_expect 0 hist-export -f jsonl --all-sessions -o lines.jsonl
    stderr_has "1 bad line"
    run_expect 0 cmp <(grep -v '^no line' "$HISTORY") lines.jsonl
    # Each session alone is written by one thread.
    run_expect 0 hist-sessions -n all --reverse
    cut -f 1 "$OUT" | grep -v titled >ids
    run_expect 0 test "$(wc -l <ids)" -eq 60
    for format in md txt; do
        while read -r id; do hist-export -q -f "$format" "$id" || return 1; done <ids >"alone.$format"
        run_expect 0 hist-export -q -f "$format" --all-sessions -o "all.$format"
        run_expect 0 cmp <(grep . "alone.$format") <(grep . "all.$format")
        run_expect 0 hist-export -q -f "$format" --all-sessions -o "$format"/
        run_expect 0 test "$(find "$format" -type f | wc -l)" -eq 60
        run_expect 0 cmp <(sort "alone.$format") <(find "$format" -type f -exec sort {} +)
    done
    run_expect 0 hist-export -q -f json --all-sessions
    run_expect 0 jq -e '.messages | length == 5980' "$OUT"
    run_expect 0 hist-export -f jsonl --all-sessions --redact -o clean.jsonl
    stderr_has "5979 redacted"
    run_expect 1 grep -c sk-proj clean.jsonl
}

@test "hist-export: no ids on standard input are no sessions" {
    local format
    for format in md html json jsonl txt openai anthropic; do
        : >"$HISTORY"
        run_expect 0 hist-export -f "$format" --all-sessions
        cp "$OUT" nothing
        hist_line s user hello >"$HISTORY"
        run_expect 0 hist-export -f "$format" - </dev/null
        stderr_empty
        stdout_is_file nothing
        printf '\n' >ids
        run_expect 0 hist-export -f "$format" -o "out.$format" - <ids
        cmp "out.$format" nothing
    done
    run_expect 0 hist-export -f json - </dev/null
    stdout_json . '{' '  "messages": []' '}'
    # One that is absent is another thing.
    run_expect 1 hist-export -f json absent
    stdout_empty
}

@test "hist-export: --messages skips a line that is longer than any of a history" {
    { hist_line s user one; head -c 150M /dev/zero; echo; hist_line s user two; head -c 70M /dev/zero; } |
        run_expect 0 hist-export -f jsonl --messages -
    stdout_json .content one two
    stderr_is 'hist-export: skipped 2 bad entries on standard input'
}
