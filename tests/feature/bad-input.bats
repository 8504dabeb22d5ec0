#!/usr/bin/env bats
#
# Bad input, for every program: one table, and what must hold for each row of it.

load ../helper

# PROGRAM | arguments that work on the history of `good_history` | reads or writes | its status for failures
TABLE='
chat          | -s good hello | writes | 1
hist-append   | -s good hello | writes | 2
hist-check    |               | reads  | 2
hist-delete   | --dry-run good | reads | 2
hist-export   | -f txt good   | reads  | 2
hist-fork     | --detached good | writes | 2
hist-import   | INCOMING      | writes | 2
hist-load     | good          | reads  | 2
hist-new      | -q --reset good | writes | 2
hist-search   | needle        | reads  | 2
hist-sessions |               | reads  | 2
hist-show     | good          | reads  | 2
hist-stats    | -s good       | reads  | 2
hist-title    | --json good   | reads  | 2
'

setup_file() {
    export GARBAGE=$BATS_FILE_TMPDIR/garbage
    mkdir "$GARBAGE"
    # What there is to import.
    export INCOMING=$BATS_FILE_TMPDIR/incoming.jsonl
    echo '{"id":"in-1","session_id":"brought","timestamp":"2024-06-28T15:00:00Z","role":"user","content":"brought"}' >"$INCOMING"
    python3 - "$GARBAGE" <<'END'
import json, os, random, sys

def line(**fields):
    value = {"id": "1", "session_id": "other", "timestamp": "2024-06-27T15:00:00Z", "role": "user", "content": "x"}
    value.update(fields)
    return json.dumps({k: v for k, v in value.items() if v is not ...}).encode()

def good(text):
    return line(session_id="good", content=text) + b"\n"

# NAME: (bytes, how many bad lines they are; None: it is not said)
random.seed(5)
whole = line()
kinds = {
    "nothing": (b"", 0),
    "random bytes": (bytes(random.randrange(256) for _ in range(20000)), None),
    "NULs": (bytes(5000), 1),
    "NULs on lines": (b"\0\0\0\n" * 10, 10),
    "torn lines": (b"\n".join(whole[:n] for n in range(1, len(whole))), len(whole) - 1),
    "70 MiB line": (line(content="y" * (70 << 20)), 1),
    "70 MiB of braces": (b'{"a":' * (14 << 20), 1),
    "blank lines": (b"\n \n\t\n\r\n" * 1000, 0),
    "no objects": (b'[]\n"text"\n17\nnull\ntrue\n[{"id":"1"}]', 6),
    "two values": (whole + whole + b"\n" + whole + b" 1\n" + whole + b",", 3),
    "deep nesting": (b"[" * 200000 + b"\n" + b'{"a":' * 200000 + b"\n" + line()[:-1] + b',"x":' + b"[" * 100000 + b"]" * 100000 + b"}", None),
    "missing fields": (b"\n".join([b"{}"] + [line(**{f: ...}) for f in ("id", "session_id", "timestamp", "role", "content")]), 6),
    "wrong types": (b"\n".join(line(**{f: v}) for f in ("id", "session_id", "timestamp", "role") for v in (None, 5, [], {}, True)), 20),
    "wrong content": (b"\n".join(line(content=v) for v in (5, [], {}, ["x"], False)), 5),
    "odd optional fields": (b"\n".join(line(**{f: v}) for f in ("images", "files", "tool_calls", "replaces", "reset", "reply_to", "usage")
                                       for v in (None, 5, "x", [5], {"a": 1}, True)), 0),
    "broken JSON": (b'{"id":"1",}\n{id:1}\n{"a":NaN}\n{"a":01}\n{"a":"\\x"}\n{"a":"\t"}\n{"a":"\\u12"}\n{"a" "b"}\n{"a":tru}', 9),
    "invalid UTF-8": (whole.replace(b'"x"', b'"\xff\xc0\x80\xed\xa0\x80\xf5"'), None),
    "duplicate keys": (whole[:-1] + b',"role":"tool","content":"z","content":"last"}', 0),
    "lone surrogates": (whole.replace(b'"x"', b'"\\ud800 \\udc00 \\udc00\\ud800"'), 0),
    "CRLF": (whole + b"\r\n" + whole + b"\r", 0),
    "long ids": (line(id="i" * 100000, session_id="s" * 100000, role="r" * 100000), 0),
    "NULs in fields": (line(id="a\0b", session_id="a\0b", role="a\0b", timestamp="\0"), 0),
    "control characters": (line(id="\x1b[2J", session_id="\x1b]0;x\x07", role="\n\t", timestamp="\x9b"), 0),
}
for name, (text, bad) in kinds.items():
    directory = os.path.join(sys.argv[1], name)
    os.mkdir(directory)
    bom = b"\xef\xbb\xbf" if name == "CRLF" else b""
    with open(os.path.join(directory, "between"), "wb") as f:
        f.write(bom + good("a needle") + text + b"\n" + good("two needles"))
    with open(os.path.join(directory, "alone"), "wb") as f:
        f.write(text)
    with open(os.path.join(directory, "bad"), "w") as f:
        f.write("" if bad is None else str(bad))
END
}

setup() {
    sandbox
    use_echo
    use_history
    TOOLS=() TOOL='' ARGS=()
    mapfile -t TOOLS < <(sed -n 's/^\([a-z-]*\) *|.*/\1/p' <<<"$TABLE")
}

# row TOOL: what the table says of it, in TOOL, ARGS, KIND and FAILURE.
row() {
    local line words
    TOOL=$1
    line=$(grep "^$1 *|" <<<"$TABLE")
    IFS='|' read -r _ words KIND FAILURE <<<"$line"
    read -ra ARGS <<<"${words/INCOMING/$INCOMING}"
    KIND=${KIND// /} FAILURE=${FAILURE// /}
    # What it stores is in that session, but for one that makes its own.
    STORED='.session_id == "good"'
    [[ $TOOL != hist-fork ]] || STORED='.forked_from == "1"'
    [[ $TOOL != hist-import ]] || STORED='.session_id == "brought"'
}

# stores_alone: the row of a program, with arguments by which it also stores something where there is no session
# `good`: a reset of a session without messages stores nothing but a system prompt.
stores_alone() {
    [[ $TOOL != hist-new ]] || ARGS+=(-S 'Be brief')
}

# Two lines of session `good`, each with a needle.
good_history() {
    cp "$GARBAGE/nothing/between" "$HISTORY"
}

# kept FILE: does the history still begin with these bytes, and for a reader end there?
kept() {
    local size
    size=$(stat -c %s "$1")
    cmp -s -n "$size" "$1" "$HISTORY" || fail 'the history changed' || return 1
    [[ $KIND == writes || $(stat -c %s "$HISTORY") == "$size" ]] || fail 'the history grew'
}

# has_stored: a writer added whole lines to the good history.
has_stored() {
    [[ $(wc -l <"$HISTORY") -gt 2 ]] || fail 'nothing was stored' || return 1
    jq -e .content "$HISTORY" >/dev/null || fail 'the history is damaged'
}

# complains TEXT: one line on stderr, of the documented form, that has this in it.
complains() {
    [[ $(wc -l <"$ERR") -eq 1 ]] || fail 'stderr: wanted one line' || return 1
    stderr_matches "^$TOOL: [^A-Z ].*[^.]\$" || return 1
    stderr_has "$1"
}

# shows_nothing: of an empty history; hist-check says that it is one.
shows_nothing() {
    if [[ $TOOL == hist-check ]]; then
        stdout_is '0 lines, 0 messages, 0 sessions: 0 problems, 0 warnings'
    else
        stdout_empty
    fi
}

# with REDIRECTION COMMAND...: the command with that, in the shell's words.
with() {
    local redirection=$1
    shift
    # shellcheck disable=SC2016
    bash -c 'exec "$@" '"$redirection" - "$@"
}

# options_of TOOL: `LETTER|--NAME KIND` a line, from the table that feeds its parser.
options_of() {
    "$1" --completion-table | awk -F '\t' '$2 != "" { kind = $3 == "flag" ? "flag" : "value"
        print $2, kind; if ($1 != "") print $1, kind }'
}

@test "bad input: every program has its row" {
    local file
    for file in "$ROOT"/cmd/*.c; do
        file=$(basename "$file" .c)
        # One works on a terminal only, one reads no history, one needs a place, one runs others of these: they have
        # tests of their own.
        [[ $file != hist-browse && $file != chathist && $file != hist-sync && $file != hist-mcp ]] || continue
        [[ " ${TOOLS[*]} " == *" $file "* ]] || fail "no row for $file"
    done
    [[ ${#TOOLS[@]} -ge 7 ]]
}

@test "bad input: the arguments of the table work, and readers read" {
    local tool
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        good_history
        run_expect 0 "$TOOL" "${ARGS[@]}"
        stderr_empty
        [[ -s $OUT ]] || fail 'no output'
        kept "$GARBAGE/nothing/between"
        if [[ $KIND == writes ]]; then has_stored; fi
    done
}

@test "bad input: a history that is named and absent is an error of every program that makes none" {
    local tool empty
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        rm -f "$HISTORY"* && : >"$HISTORY"
        "$TOOL" "${ARGS[@]}" >output 2>&1 && empty=0 || empty=$?
        rm "$HISTORY" output
        case $TOOL in
        chat | hist-append | hist-import | hist-new) run_expect 0 "$TOOL" "${ARGS[@]}" && stderr_empty ;;
        *)
            run_expect 2 "$TOOL" "${ARGS[@]}"
            stdout_empty
            stderr_is "$TOOL: no history '$HISTORY'"
            run_expect 2 "$TOOL" --quiet "${ARGS[@]}"
            stdout_empty
            stderr_is "$TOOL: no history '$HISTORY'"
            run_expect 2 env -u CHAT_HISTORY "$TOOL" --history typo "${ARGS[@]}"
            stdout_empty
            stderr_is "$TOOL: no history 'typo'"
            # In its usual place it may be still to come.
            run_expect "$empty" env -u CHAT_HISTORY "$TOOL" "${ARGS[@]}"
            stderr_lacks 'no history'
            ;;
        esac
    done
    good_history
    run_expect 2 hist-search --history "$HISTORY" --history slip needle
    stdout_empty
    stderr_is "hist-search: no history 'slip'"
    run_expect 2 hist-export -q --history typo --incremental state -o archive.jsonl
    stderr_is "hist-export: no history 'typo'"
    [[ ! -e archive.jsonl && ! -e state ]]
    rm "$HISTORY"
    run_expect 2 on_tty hist-browse
    stdout_has "hist-browse: no history '$HISTORY'"
    # What reads no history misses none.
    run_expect 0 hist-export -f txt --messages "$INCOMING"
    stderr_empty
}

@test "bad input: an option that is mistyped, shortened too far, or a text" {
    run_expect 2 chat --modle x hi
    stderr_is "chat: unknown option '--modle': did you mean --model? (see 'chat --help')"
    # Of those that are as similar, the one that was typed and more.
    run_expect 2 chat --modell x
    stderr_is "chat: unknown option '--modell': did you mean --model? (see 'chat --help')"
    run_expect 2 chat --modelss
    stderr_is "chat: unknown option '--modelss': did you mean --models? (see 'chat --help')"
    run_expect 2 hist-search --sinc1 x
    stderr_is "hist-search: unknown option '--sinc1': did you mean --since? (see 'hist-search --help')"
    run_expect 2 chat --list-models=x
    stderr_is "chat: unknown option '--list-models': did you mean --models? (see 'chat --help')"
    run_expect 2 hist-search --ignorecase x
    stderr_is "hist-search: unknown option '--ignorecase': did you mean --ignore-case? (see 'hist-search --help')"
    run_expect 2 hist-sessions --ilmit 3
    stderr_is "hist-sessions: unknown option '--ilmit': did you mean --limit? (see 'hist-sessions --help')"
    # A letter means one thing in all programs, or nothing.
    for command in 'chat -n hi' 'hist-delete -f s' 'hist-import -n x'; do
        # Words.
        # shellcheck disable=SC2086
        run_expect 2 $command
        stdout_empty
        stderr_matches "^${command%% *}: unknown option '-[nf]'|option '-f' needs"
    done
    run_expect 2 hist-sessions --xyzzy
    stderr_is "hist-sessions: unknown option '--xyzzy' (see 'hist-sessions --help')"
    run_expect 2 chat --mo x hi
    stderr_is "chat: option '--mo' is ambiguous: --model, --models (see 'chat --help')"
    run_expect 2 chat --js --mo=x hi
    stderr_is "chat: option '--mo' is ambiguous: --model, --models (see 'chat --help')"
    run_expect 2 chat '-v is what?'
    stderr_is "chat: unknown option '- ' in '-v is what?': put -- before a text that begins with - (see 'chat --help')"
    run_expect 2 chat --usage -vQ
    stderr_is "chat: unknown option '-Q' (see 'chat --help')"
    run_expect 2 chat --usage=x
    stderr_is "chat: option '--usage=x' takes no argument (see 'chat --help')"
    run_expect 2 hist-search -e foo bar
    stderr_is "hist-search: TEXT cannot be combined with --regexp (see 'hist-search --help')"
}

@test "bad input: unknown options" {
    local tool option
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        for option in --no-such-option --no-such=option -@ -@x; do
            run_expect 2 "$TOOL" "$option" "${ARGS[@]}"
            stdout_empty
            complains "unknown "
            stderr_has "'${option:0:2}" "(see '$TOOL --help')"
        done
    done
    [[ -z $(ls -A) && -z $(ls -A "$HOME") ]]
}

@test "bad input: options without their argument, flags with one" {
    local tool option kind
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        options_of "$TOOL" >"$TMPDIR/options"
        [[ $(wc -l <"$TMPDIR/options") -ge 8 ]] || fail "no options of $TOOL"
        while read -r option kind; do
            [[ $kind == value || $option == --* ]] || continue
            if [[ $kind == value ]]; then
                run_expect 2 "$TOOL" "$option"
                complains "option '$option' needs an argument"
            else
                run_expect 2 "$TOOL" "$option=x"
                complains "option '$option=x' takes no argument"
            fi
            stdout_empty
        done <"$TMPDIR/options"
    done
    [[ -z $(ls -A) && -z $(ls -A "$HOME") ]]
}

@test "bad input: formats that there are not, or that do not go with --json" {
    local tool
    good_history
    for tool in hist-show hist-load hist-export; do
        row "$tool"
        for format in xml '' 'md ' MD text,md $'\e[2J'; do
            run_expect 2 "$TOOL" good --format "$format"
            stdout_empty
            complains 'for --format: '
            stderr_matches "bad value .*(is expected|did you mean (md|text|txt)\\?)"
        done
        run_expect 2 "$TOOL" --json --format md good
        stdout_empty
        complains 'cannot be combined with '
    done
    for tool in hist-show hist-load; do
        row "$tool"
        run_expect 2 "$TOOL" --format text --json good
        complains '--json prints the stored lines: it cannot be combined with --format'
    done
    [[ ! -e $HISTORY.session ]]
}

@test "bad input: --help and --version need nothing and go to stdout" {
    local tool
    mkdir "$HISTORY"
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        CHAT_SESSION='not an id' run_expect 0 "$TOOL" --help
        stderr_empty
        stdout_line 1 "$(grep -m 1 '^usage: ' "$OUT")"
        stdout_matches "^usage: $TOOL " "^$TOOL - " '^  -h, --help ' '^  -V, --version '
        run_expect 0 "$TOOL" -V
        stderr_empty
        stdout_matches "^$TOOL \\(chathist\\) [0-9]+\\.[0-9]+\\.[0-9]+\$"
        lines_are 1
        run_expect "$FAILURE" with '>/dev/full' "$TOOL" --help
        complains 'cannot write to standard output'
    done
}

# ---- a history that is none

@test "bad input: a directory, link, FIFO, socket or device as history" {
    local tool file what
    mkdir directory
    mkfifo fifo
    good_history
    ln -s "$HISTORY" link
    ln -s nowhere dangling
    ln -s link second-link
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
    find . | sort >"$TMPDIR/before"
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        for what in 'directory is a directory' 'fifo is a FIFO' 'link is a symbolic link' 'dangling is a symbolic link' \
            'second-link is a symbolic link' 'socket is a socket' '/dev/null is a device' '/dev/full is a device' '/dev/tty '; do
            file=${what%% *}
            run_expect "$FAILURE" "$TOOL" --history "$file" "${ARGS[@]}"
            stdout_empty
            complains "cannot open '$file': ${what#* }"
        done
    done
    find . | sort >"$TMPDIR/after"
    same 'list of files' "$TMPDIR/before" "$TMPDIR/after"
    same history "$GARBAGE/nothing/between" "$HISTORY"
}

@test "bad input: a name that is too long, a file as directory, no name" {
    local tool name
    name=$(printf '%0300d' 1)
    good_history
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        run_expect "$FAILURE" "$TOOL" --history "$name" "${ARGS[@]}"
        stdout_empty
        complains "cannot open '$name': File name too long"
        run_expect "$FAILURE" "$TOOL" --history "$HISTORY/x" "${ARGS[@]}"
        stdout_empty
        complains "cannot open '$HISTORY/x': Not a directory"
    done
    same history "$GARBAGE/nothing/between" "$HISTORY"
}

@test "bad input: a history that may not be read" {
    local tool
    good_history
    chmod 000 "$HISTORY"
    without_rights true || skip 'cannot give up rights here'
    if without_rights cat "$HISTORY" >/dev/null 2>&1; then skip 'everything can be read here'; fi
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        # A question is asked all the same.
        if [[ $tool == chat ]]; then
            run_expect 8 without_rights chat "${ARGS[@]}"
            stdout_is hello '[1 message]'
        else
            run_expect "$FAILURE" without_rights "$TOOL" "${ARGS[@]}"
            stdout_empty
        fi
        complains "cannot open '$HISTORY': Permission denied"
    done
    chmod 600 "$HISTORY"
    same history "$GARBAGE/nothing/between" "$HISTORY"
}

@test "bad input: a history that may not be written: readers read, writers say so" {
    local tool
    good_history
    chmod 400 "$HISTORY"
    without_rights true || skip 'cannot give up rights here'
    if without_rights sh -c ": 2>/dev/null >>'$HISTORY'"; then skip 'everything can be written here'; fi
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        if [[ $KIND == reads ]]; then
            run_expect 0 without_rights "$TOOL" "${ARGS[@]}"
            stderr_empty
            [[ -s $OUT ]]
        else
            [[ $TOOL != chat ]] || FAILURE=8
            run_expect "$FAILURE" without_rights "$TOOL" "${ARGS[@]}"
            stderr_has "cannot open '$HISTORY': Permission denied"
        fi
    done
    same history "$GARBAGE/nothing/between" "$HISTORY"
}

@test "bad input: an empty history, and none" {
    local tool status
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        stores_alone
        case $TOOL in
        hist-search) status=1 ;;
        hist-show | hist-load | hist-export | hist-delete | hist-fork | hist-stats | hist-title) status=1 ;;
        *) status=0 ;;
        esac
        rm -f "$HISTORY.session"
        : >"$HISTORY"
        run_expect "$status" "$TOOL" "${ARGS[@]}"
        case $TOOL in
        hist-show | hist-load | hist-export | hist-delete | hist-fork | hist-stats | hist-title)
            complains "no session 'good'"
            ;;
        *) stderr_empty ;;
        esac
        if [[ $KIND == reads ]]; then
            shows_nothing
            [[ ! -s $HISTORY ]]
        fi
        rm -f "$HISTORY" "$HISTORY.session"
        if [[ $KIND == reads || $TOOL == hist-fork ]]; then
            run_expect 2 "$TOOL" "${ARGS[@]}"
            stdout_empty
            complains "no history '$HISTORY'"
            [[ ! -e $HISTORY ]]
        else
            run_expect 0 "$TOOL" "${ARGS[@]}"
            stderr_empty
            [[ $(stat -c %a "$HISTORY") == 600 ]]
        fi
    done
}

# ---- a history of garbage

# found: what the program shows of the two good lines.
found() {
    case $TOOL in
    hist-sessions) stdout_matches $'^good\t2024-06-27T15:00:00Z\t[23]\ta needle$' ;;
    hist-search)
        stdout_has $'good\t1\t2024-06-27T15:00:00Z\tuser\ta needle\n' $'good\t1\t2024-06-27T15:00:00Z\tuser\ttwo needles\n' || return 1
        lines_are 2
        ;;
    hist-stats) stdout_matches $'^total\t[23]\t1\t0\t0\t0$' $'^2024-06-27\t2\t1\t0\t0\t0$' ;;
    hist-show | hist-load) stdout_is '[user] 2024-06-27 15:00:00' 'a needle' '' '[user] 2024-06-27 15:00:00' 'two needles' '' ;;
    hist-export)
        stdout_is '=== a needle' '=== session good, 2024-06-27 15:00:00' '' '[user] 2024-06-27 15:00:00' 'a needle' '' \
            '[user] 2024-06-27 15:00:00' 'two needles' ''
        ;;
    chat) stdout_has 'a needle' 'two needles' 'hello' ;;
    hist-append | hist-new | hist-fork | hist-import) lines_are 1 ;;
    hist-delete) stdout_matches $'^good\t2024-06-27T15:00:00Z\t[23]\ta needle$' ;;
    hist-title) stdout_is '{"session_id":"good","title":""}' ;;
    hist-check) stdout_matches '^[0-9]+ lines, [0-9]+ messages, [0-9]+ sessions?: [0-9]+ problems?, [0-9]+ warnings?$' ;;
    esac
}

# status_for BAD: hist-check says by its status that lines are bad; of ? ones it may be either.
status_for() {
    if [[ $TOOL != hist-check || $1 == 0 ]]; then echo 0; else echo 1; fi
}

# said BAD: the number of bad lines, or fewer when it did not parse them all; hist-sessions parses them all.
said() {
    local line="skipped $1 bad lines in '$HISTORY'"
    [[ $1 != 1 ]] || line=${line/lines/line}
    case $TOOL:$1 in
    hist-check:0) stderr_empty && stdout_has ' 0 problems, ' ;;
    hist-check:1) stderr_empty && stdout_has ' 1 problem, ' ;;
    hist-check:?*) stderr_empty && stdout_has " $1 problems, " ;;
    hist-append:* | *:0 | hist-check:*) stderr_empty ;;
    hist-sessions:?* | hist-delete:?* | hist-import:?*) stderr_is "$TOOL: $line" ;;
    *) if [[ -s $ERR ]]; then complains "skipped "; fi ;;
    esac
}

@test "bad input: garbage among the lines changes nothing and is left as it is" {
    local tool kind
    for kind in "$GARBAGE"/*; do
        for tool in "${TOOLS[@]}"; do
            row "$tool"
            cp "$kind/between" "$HISTORY"
            run_expect "$(status_for "$(cat "$kind/bad")")" "$TOOL" "${ARGS[@]}" || fail "garbage: $kind"
            found || fail "garbage: $kind"
            said "$(cat "$kind/bad")" || fail "garbage: $kind"
            kept "$kind/between" || fail "garbage: $kind"
            if [[ $KIND == writes ]]; then
                tail -n 1 "$HISTORY" | jq -e "$STORED" >"$TMPDIR/jq" || fail "garbage: $kind, nothing stored"
            fi
        done
    done
}

@test "bad input: CR LF, blanks and a BOM round a line are no part of it, in every program that prints it" {
    local padding
    for padding in 10 100000; do
        { hist_line s user 'a needle' && hist_line s assistant "$(printf "%${padding}s" needle)"; } >wanted
        { printf '\xef\xbb\xbf' && sed '1s/$/ \r/; 2s/^/\t/; 2s/$/\r/' wanted; } >"$HISTORY"
        run_expect 0 hist-show --json s
        stdout_is_file wanted
        run_expect 0 hist-load --json s
        stdout_is_file wanted
        for way in '' -E -w '--context 1'; do
            # shellcheck disable=SC2086
            run_expect 0 hist-search --json --reverse $way needle
            stdout_is_file wanted
        done
        run_expect 0 hist-search --json needle
        tac wanted >backwards
        stdout_is_file backwards
        run_expect 0 hist-export --json s
        stdout_is_file wanted
        run_expect 0 hist-export --json --messages "$HISTORY"
        stdout_is_file wanted
        run_expect 0 hist-import --json --history other.jsonl "$HISTORY"
        stdout_is_file wanted
        same other.jsonl wanted other.jsonl
        rm other.jsonl
        # What rewrites keeps them.
        hist_line t user gone >>"$HISTORY"
        head -n 2 "$HISTORY" >kept
        run_expect 0 hist-delete --force t
        same "$HISTORY" kept "$HISTORY"
    done
}

# A program that writes refuses the file, before it asks, stores or makes anything.
@test "bad input: a file without any message is not a history: everything that writes refuses it" {
    local tool kind before
    for kind in "$GARBAGE"/{'random bytes',NULs,'two values','deep nesting'}/alone notes object other; do
        case $kind in
        notes) printf 'milk\nbread\n' ;;
        object) printf '{\n  "id": 1\n}\n' ;;
        other) printf '{"id":"a","name":"b"}\n{"id":"c","session_id":"d"}\n' ;;
        *) cat "$kind" ;;
        esac >wanted
        cp wanted "$HISTORY"
        before=$(ls -A)
        for tool in 'chat hello' 'chat -s s hello' 'chat --dry-run hello' 'hist-append text' 'hist-append -s s text' \
            'hist-import other.json' 'hist-title s title' 'hist-fork s' 'hist-delete --force s' 'hist-delete --force --keep 0' \
            'hist-check --repair' 'hist-sync --name n .' 'hist-new' 'hist-new --reset s' 'hist-new --detached -S prompt'; do
            # shellcheck disable=SC2086
            run_expect 2 $tool || fail "$kind" || return 1
            stdout_empty
            stderr_is "${tool%% *}: '$HISTORY' is not a history"
        done
        same "$kind" wanted "$HISTORY"
        [[ $(ls -A) == "$before" ]] || fail "$kind: $(ls -A)" || return 1
    done
}

@test "bad input: the beginning of a line, which a killed program left, is a history, and so is an empty file" {
    local text
    hist_line s user hello >line
    for text in '' '{' '{"id":"17' "$(head -c 60 line)" "$(head -c 60 line)"$'\n{"i' "$(cat line line | tr -d '\n')" $'milk\n'"$(cat line)"; do
        printf %s "$text" >"$HISTORY"
        rm -f "$HISTORY".?*
        run_expect 0 hist-append -q -s s text
        tail -n 1 "$HISTORY" | jq -e '.content == "text"' >"$TMPDIR/jq" || fail "after: $text" || return 1
        printf %s "$text" >"$HISTORY"
        run_expect 0 hist-check --repair -q
    done
}

# ---- standard streams

@test "bad input: a full disk behind stdout and a closed one are errors, and what was to be stored is" {
    local tool redirection
    for redirection in '>/dev/full No space left on device' '>&- Bad file descriptor'; do
        for tool in "${TOOLS[@]}"; do
            row "$tool"
            good_history
            run_expect "$FAILURE" with "${redirection%% *}" "$TOOL" "${ARGS[@]}"
            complains "cannot write to standard output: ${redirection#* }"
            kept "$GARBAGE/nothing/between"
            if [[ $KIND == writes ]]; then has_stored; fi
        done
    done
}

@test "bad input: a closed stdin is no input" {
    local tool
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        good_history
        run_expect 0 with '<&-' "$TOOL" "${ARGS[@]}"
        stderr_empty
        found
        kept "$GARBAGE/nothing/between"
        if [[ $KIND == writes ]]; then has_stored; fi
    done
    TOOL=chat
    run_expect 2 with '<&-' chat
    complains 'no prompt'
}

@test "bad input: a closed stdin and a directory as stdin, where there is something to read" {
    local tool redirection
    good_history
    mkdir directory
    for redirection in '<&- Bad file descriptor' '<directory Is a directory'; do
        for tool in 'hist-append -s s' 'hist-append --json' 'hist-delete --force -' 'hist-export -' 'hist-export --messages -' \
            'hist-fork -' 'hist-show -' 'hist-load -' 'hist-search -s - x'; do
            TOOL=${tool%% *}
            # shellcheck disable=SC2086
            run_expect 2 with "${redirection%% *}" $tool
            stdout_empty
            complains "standard input: ${redirection#* }"
        done
    done
    same history "$GARBAGE/nothing/between" "$HISTORY"
}

@test "bad input: a closed or full stderr loses the message and nothing else" {
    local tool redirection
    for redirection in '2>&-' '2>/dev/full'; do
        for tool in "${TOOLS[@]}"; do
            row "$tool"
            # With something to say.
            cp "$GARBAGE/broken JSON/between" "$HISTORY"
            CHAT_SESSION=pinned run_expect "$(status_for 9)" with "$redirection" "$TOOL" "${ARGS[@]}"
            found
            kept "$GARBAGE/broken JSON/between"
            if [[ $KIND == writes ]]; then
                tail -n 1 "$HISTORY" | jq -e "$STORED" >"$TMPDIR/jq"
            fi
            run_expect 2 with "$redirection" "$TOOL" --no-such-option
            stdout_empty
        done
    done
}

@test "bad input: descriptors that cannot be looked at or replaced" {
    need_strace
    for command in 'chat -p echo hello' 'hist-sessions' 'hist-search hello'; do
        read -ra words <<<"$command"
        # Any other error than EBADF says nothing of a closed descriptor.
        for which in 1 2 3; do
            run_expect 0 strace -qq -o trace -e trace=fcntl -e "inject=fcntl:error=EIO:when=$which" "${words[@]}"
            grep -q 'F_GETFD) .*INJECTED' trace
            stderr_empty
        done
        # As in a chroot without /dev.
        run_expect 2 sh -c 'exec strace -qq -o trace -P /dev/null -e trace=openat -e inject=openat:error=ENOENT sh -c "exec $* <&-"' sh "${words[@]}"
        stdout_empty
        stderr_is "${words[0]}: cannot open '/dev/null' in place of a closed descriptor: No such file or directory"
    done
}

@test "bad input: all three closed" {
    local tool
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        cp "$GARBAGE/broken JSON/between" "$HISTORY"
        run_expect "$FAILURE" with '<&- >&- 2>&-' "$TOOL" "${ARGS[@]}"
        kept "$GARBAGE/broken JSON/between"
        if [[ $KIND == writes ]]; then
            tail -n 1 "$HISTORY" | jq -e "$STORED" >"$TMPDIR/jq"
            run_expect 0 hist-show --json "$([[ $TOOL == hist-import ]] && echo brought || echo good)"
            case $TOOL in
            hist-import | hist-new) lines_are 1 ;;
            hist-fork) lines_are 2 ;;
            *) [[ $(wc -l <"$OUT") -gt 2 ]] ;;
            esac
        fi
    done
}

@test "bad input: a pipe that nobody reads ends a program quietly, with what was to be stored" {
    local tool
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        good_history
        # shellcheck disable=SC2016
        run_expect 141 bash -c 'exec 5> >(exec <&-); wait $!; exec "$@" >&5 5>&-' - "$TOOL" "${ARGS[@]}"
        stderr_empty
        kept "$GARBAGE/nothing/between"
        if [[ $KIND == writes ]]; then has_stored; fi
        # Also for those whose parents ignore the signal.
        good_history
        # shellcheck disable=SC2016
        run_expect 141 bash -c 'trap "" PIPE; exec 5> >(exec <&-); wait $!; exec "$@" >&5 5>&-' - "$TOOL" "${ARGS[@]}"
        stderr_empty
        kept "$GARBAGE/nothing/between"
        if [[ $KIND == writes ]]; then has_stored; fi
    done
}

# ---- what else is read

@test "bad input: a configuration that cannot be read" {
    local tool config=$HOME/.config/chathist/config
    good_history
    mkdir -p "$config"
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        run_expect 2 "$TOOL" "${ARGS[@]}"
        stdout_empty
        complains "cannot open '$config': is a directory"
    done
    rmdir "$config"
    printf '# comment\n\nno setting\n' >"$config"
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        run_expect 2 "$TOOL" "${ARGS[@]}"
        stdout_empty
        complains "cannot read '$config': line 3 is not 'key = value'"
    done
    same history "$GARBAGE/nothing/between" "$HISTORY"
    echo 'nonsense = 1' >"$config"
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        run_expect 0 "$TOOL" "${ARGS[@]}"
        complains "unknown key 'nonsense' in '$config', line 1"
    done
}

# WHAT IS IN THE CONFIGURATION | status | what chat says of it, CONFIG for its path
CONFIGURATIONS='
session_timeout = 5 apples|2|bad value '\''5 apples'\'' for session_timeout in '\''CONFIG'\'', line 2: a time such as 90s, 30min, 2h, or '\''off'\'' is expected
max_messages = few|2|bad value '\''few'\'' for max_messages in '\''CONFIG'\'', line 2: a number or '\''all'\'' is expected
fsync = maybe|2|bad value '\''maybe'\'' for fsync in '\''CONFIG'\'', line 2: 1, 0, on or off is expected
model = "gpt-4o"|2|cannot read '\''CONFIG'\'': line 2: the value of model takes no quotes
provider = '\''echo'\''|2|cannot read '\''CONFIG'\'': line 2: the value of provider takes no quotes
api_key = sk-123|0|unknown key '\''api_key'\'' in '\''CONFIG'\'', line 2: API keys belong in keys/PROVIDER beside this file, or use api_key_command
api_key.openai = sk-123|0|unknown key '\''api_key.openai'\'' in '\''CONFIG'\'', line 2: API keys belong in keys/PROVIDER beside this file, or use api_key_command
color.id = pink|2|bad value '\''pink'\'' for color.id in '\''CONFIG'\'', line 2: a number below 256, the name of one of the first 8 colours, or default is expected
color.ids = 5|0|unknown key '\''color.ids'\'' in '\''CONFIG'\'', line 2
openai_api_key = sk-123|0|unknown key '\''openai_api_key'\'' in '\''CONFIG'\'', line 2: API keys belong in keys/PROVIDER beside this file, or use api_key_command
'

@test "bad input: a bad setting is reported with its file and line" {
    local line status message config=$HOME/.config/chathist/config
    mkdir -p "${config%/*}"
    while IFS='|' read -r line status message; do
        [[ -n $line ]] || continue
        printf '# mine\n%s\n' "$line" >"$config"
        run_expect "$status" chat hello </dev/null
        stderr_is "chat: ${message//CONFIG/$config}"
        if [[ $status == 2 ]]; then stdout_empty; fi
    done <<<"$CONFIGURATIONS"
    # A command may begin and end with a quoted word. A duration may have blanks.
    printf 'api_key_command = "echo" "key"\nfsync = on\nsession_timeout = 5 minutes\n' >"$config"
    run_expect 0 chat hello
    stderr_empty
}

@test "bad input: CHAT_FSYNC is a switch" {
    CHAT_FSYNC=maybe run_expect 2 chat hello
    stderr_is "chat: bad value 'maybe' for CHAT_FSYNC: 1, 0, on or off is expected"
    CHAT_FSYNC=on run_expect 0 chat hello
    stderr_empty
}

@test "bad input: messages show control characters of names, and stay on one line" {
    local tool
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        run_expect "$FAILURE" "$TOOL" --history $'/dev/null/no\nsuch\e[2J\xe2\x80\xaefile' "${ARGS[@]}"
        stdout_empty
        complains 'cannot open'
        stderr_has 'no such^[[2J<U+202E>file'
    done
}

@test "bad input: a working directory that is gone" {
    local tool
    for tool in "${TOOLS[@]}"; do
        row "$tool"
        mkdir -p gone
        good_history
        # Its question is answered all the same: tests/cmd/chat.bats.
        [[ $tool == chat ]] && continue
        # shellcheck disable=SC2016
        run_expect "$FAILURE" env -u CHAT_HISTORY bash -c 'cd gone && rmdir ../gone && exec "$@"' - "$TOOL" "${ARGS[@]}"
        stdout_empty
        complains 'cannot tell the working directory'
    done
}

@test "bad input: a working directory that is gone does not matter to an explicit history" {
    mkdir gone
    good_history
    # shellcheck disable=SC2016
    run_expect 0 env CHAT_HISTORY="$HISTORY" bash -c 'cd gone && rmdir ../gone && hist-sessions'
    lines_are 1
    # shellcheck disable=SC2016
    CHAT_HISTORY='' run_expect 0 bash -c 'mkdir gone && cd gone && rmdir ../gone && exec hist-append --history "$1" -s s text' - "$WORK/new"
    [[ $(jq -r .content "$WORK/new") == text ]]
}

# ---- what people type

# COMMAND, without quotes but blanks escaped | status | its message, a regular expression
MISTAKES='
chat --schema {} hello | 2 | chat: bad value .\{\}. for --schema: a file is expected
chat -T ./directory hello | 2 | chat: cannot use the tool .\./directory.: is a directory
chat --mcp typo hello | 2 | chat: no MCP server .typo.: the user configuration has no .mcp\.typo., and a command is given as NAME=COMMAND
chat -p openai --base-url notaurl hello | 2 | chat: bad base URL .notaurl.: not of the form http\[s\]://HOST\[:PORT\]/PATH
chat -p openai --base-url http:/me:secret@host/v1?key=secret hello | 2 | chat: bad base URL .\*\*\*@host/v1.: not of the form http\[s\]://HOST\[:PORT\]/PATH
chat -p none hello | 2 | chat: no model server is configured: set .*, or try .-p echo. \(it answers with your own prompt\)
hist-export --all-sessions -o x.pdf | 2 | hist-export: no format has the ending .\.pdf.: choose one with --format \(see .hist-export --help.\)
hist-search -r usr needle | 1 | hist-search: no message has the role .usr.
hist-search --model typo needle | 1 | hist-search: no answer is from the model .typo.
hist-search -c -r user -r usr nothing | 1 | hist-search: no message has the role .usr.
hist-search -q -r usr needle | 1 |
hist-search -r user nothing | 1 |
hist-search -v -r user e | 1 |
'

@test "bad input: what people mistype is answered with what is wrong and what would be right" {
    local command status message words
    good_history
    mkdir directory
    while IFS='|' read -r command status message; do
        [[ -n $command ]] || continue
        read -ra words <<<"$command"
        run_expect "${status// /}" "${words[@]}"
        [[ -s $OUT ]] && stdout_is 0
        if [[ -n ${message// /} ]]; then
            lines_of_stderr=$(wc -l <"$ERR")
            [[ $lines_of_stderr == 1 ]] || fail "$lines_of_stderr lines"
            stderr_matches "^${message# }( \\(see .chat --help.\\))?\$"
        else
            stderr_empty
        fi
    done <<<"$MISTAKES"
    [[ ! -e x.pdf ]]
    same history "$GARBAGE/nothing/between" "$HISTORY"
    # Endings that mean nothing: there is one format, or it is a directory.
    mkdir notes.d
    run_expect 0 hist-export --all-sessions -o notes.d
    run_expect 0 hist-export -q --all-sessions -f txt -o x.log
    run_expect 0 hist-export -q --all-sessions -o notes.d/plain
}

@test "bad input: messages of which none can be used are refused" {
    run_expect 2 chat --messages - hello <<<'{}'
    stdout_empty
    stderr_is 'chat: skipped 1 bad entry on standard input' 'chat: no usable message on standard input'
    echo '[7]' >given
    run_expect 2 chat -q --messages given hello
    stderr_is "chat: no usable message in 'given'"
    # No entry is not a bad one.
    run_expect 0 chat --messages - hello <<<'[]'
    stderr_empty
}
