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

@test "hist-export: --messages skips a line that is longer than any of a history" {
    { hist_line s user one; head -c 150M /dev/zero; echo; hist_line s user two; head -c 70M /dev/zero; } |
        run_expect 0 hist-export -f jsonl --messages -
    stdout_json .content one two
    stderr_is 'hist-export: skipped 2 bad entries on standard input'
}

@test "hist-export: a page that most browsers do not open is said to be large before it is written" {
    large() {
        printf '{"id":"m","session_id":"s","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"'
        head -c "$1" /dev/zero | tr '\0' x
        printf '"}\n'
    }
    large 50M >"$HISTORY"
    run_expect 0 hist-export -f html -o page.html s
    stderr_is 'hist-export: the page has 52.4 MB or more, too much for most browsers: --since or -n N takes less, and a directory for --output gets a page for each session'
    run_expect 0 hist-export -q -f html -o page.html s
    stderr_empty
    run_expect 0 hist-export -f md -o page.md s
    stderr_empty
    run_expect 0 hist-export -f html -o pages/ s
    stderr_empty
    large 40M >"$HISTORY"
    run_expect 0 hist-export -f html -o page.html s
    stderr_empty
}
