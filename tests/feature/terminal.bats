#!/usr/bin/env bats
#
# What models and histories contain is shown on a terminal, never obeyed; in a pipe it is the exact bytes. Colours
# and widths.

# shellcheck disable=SC2086

load ../helper
load ../history

# harmless FILE [COLOR]: UTF-8 without anything that a terminal obeys or that is not seen: no control character but
# the newline and the tab, no bidi control. With COLOR the styles that are ours may be there, and must.
harmless() {
    python3 - "$@" >"$BATS_TEST_TMPDIR/harm" <<'END' || fail "not for a terminal: $(cat "$BATS_TEST_TMPDIR/harm")"
import re, sys, unicodedata
text = open(sys.argv[1], 'rb').read().decode()
if len(sys.argv) > 2:
    text, styles = re.subn('\x1b\\[(0|1|(1;)?38;5;[0-9]+(;48;5;221)?)m', '', text)
    if not styles:
        sys.exit(print('no colour'))
for c in text:
    if unicodedata.category(c) in ('Cc', 'Cs', 'Zl', 'Zp') and c not in '\n\t' or \
            unicodedata.bidirectional(c) in ('LRE', 'RLE', 'LRO', 'RLO', 'PDF', 'LRI', 'RLI', 'FSI', 'PDI') or \
            c in '\u061c\u200e\u200f\ufeff' or 0xfff9 <= ord(c) <= 0xfffb or 0xe0000 <= ord(c) <= 0xe007f:
        print(f'U+{ord(c):04X}', end=' ')
        bad = True
sys.exit('bad' in globals())
END
}

# fits FILE COLUMNS: no line is wider.
fits() {
    python3 - "$@" >"$BATS_TEST_TMPDIR/wide" <<'END' || fail "wider than $2: $(cat "$BATS_TEST_TMPDIR/wide")"
import sys, unicodedata
def width(c):
    return 0 if unicodedata.combining(c) or c in '\u200d\ufe0f' else 2 if unicodedata.east_asian_width(c) in 'WF' else 1
wide = [line for line in open(sys.argv[1], encoding='utf-8').read().split('\n') if sum(map(width, line)) > int(sys.argv[2])]
print(wide)
sys.exit(bool(wide))
END
}

# on_terminal [OPTION]... COMMAND...: status 0, its output as a terminal gets it in $OUT, standard error in $ERR.
on_terminal() {
    run_expect 0 on_tty --raw --fds 1 "$@"
}

# The text of the fixture `escapes`, and what a terminal shows of it.
ESCAPES='a\x1b[2J\x1b[31mred\x1b[0m\x1b]52;c;ZXZpbA==\a\x1b]0;title\x1b\\\xc2\x9b31m\xc2\x9d52;c;AA\xc2\x9c\xe2\x80\xaedesrever\xe2\x80\xac\xe2\x81\xa6x\xe2\x81\xa9x\b\x7fy\rz\0.\n'
SHOWN='a^[[2J^[[31mred^[[0m^[]52;c;ZXZpbA==^G^[]0;title^[\\<U+009B>31m<U+009D>52;c;AA<U+009C><U+202E>desrever<U+202C><U+2066>x<U+2069>x^H^?y^Mz^@.\n'

# A history with an enemy in every field. What is escaped in JSON and what is not must not matter.
hostile_history() {
    local evil='\u001b[2J\u001b]52;c;ZXZpbA==\u0007\u009b31m\u202e\u2066\b\u007f\r\u0000' raw=$'\xc2\x9b31m\xc2\x9d0;x\xe2\x80\xae\xe2\x80\xa8\x7f\xef\xbb\xbf\xf3\xa0\x81\x81'
    {
        printf '{"id":"1%s%s","session_id":"evil%s%s","timestamp":"2024-06-27%s%s","role":"user%s%s","content":"needle %s%s end"}\n' \
            "$evil" "$raw" "${evil%??????}" "$raw" "$evil" "$raw" "$evil" "$raw" "$evil" "$raw"
        printf '{"id":"2","session_id":"s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"assistant","content":"%s needle %s","tool_calls":[{"id":"%s","name":"f%s%s","args":{"a":"%s%s"}}],"model":"m%s"}\n' \
            "$evil" "$raw" "$evil" "$evil" "$raw" "$evil" "$raw" "$evil"
        printf '{"id":"3","session_id":"s","timestamp":"2024-06-27T15:00:01.000000+00:00","role":"tool","content":"%s%s","tool_call_id":"%s"}\n' \
            "$raw" "$evil" "$evil"
    } >"$HISTORY"
}

# ---- answers

@test "terminal: escape sequences in an answer are shown; a pipe and a file get the bytes" {
    start_llm openai/escapes
    on_terminal chat -N hello
    stdout_bytes_are "$SHOWN"
    harmless "$OUT"
    run_expect 0 chat -N hello
    stdout_bytes_are "$ESCAPES"
    run_expect 0 bash -c 'chat -N hello | cat'
    stdout_bytes_are "$ESCAPES"
    jq -j 'select(.role == "assistant") | .content, "\n"' "$HISTORY" >stored
    printf '%b' "$ESCAPES$ESCAPES$ESCAPES" >wanted
    same 'what is stored' wanted stored
}

@test "terminal: the same when every byte comes by itself, and in one piece" {
    start_llm --set 'chunk: 1' openai/escapes
    on_terminal chat -N hello
    stdout_bytes_are "$SHOWN"
    on_terminal chat -N hello --color=always
    stdout_bytes_are "$SHOWN"
}

@test "terminal: sequences and code points that are split between deltas" {
    start_llm openai/escapes-split
    on_terminal chat -N hello
    stdout_bytes_are 'a^[[2J^[]52;c;ZXZpbA==^G^[^[[31mb<U+009B>31m<U+202E>c\n'
    run_expect 0 chat -N hello
    stdout_bytes_are 'a\x1b[2J\x1b]52;c;ZXZpbA==\a\x1b\x1b[31mb\xc2\x9b31m\xe2\x80\xaec\n'
    # With delta text of one byte each: a CR that waits for its newline, at the end too.
    { printf 'escape: %%\nexit: 0\n\n'
      for text in 'a' '\r' '\n' 'b' '\r' 'c' '\u001b' '[' '2' 'J' '\r'; do
          printf 'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' "$text"
      done
      printf 'data: [DONE]\n\n'; } >split.http
    start_llm ./split.http
    on_terminal chat -N hello
    stdout_bytes_are 'a\r\nb^Mc^[[2J^M\n'
}

@test "terminal: each piece is there at once" {
    start_llm --set 'chunk: event' --set 'delay: 150ms' --reply $'one \xe4\xbd\xa0 two'
    run_expect 0 on_tty --wait 'one' --wait $'\xe4\xbd\xa0' --wait 'two' chat hello
    stdout_is $'one \xe4\xbd\xa0 two\r'
}

# deltas JSON...: a stream with these deltas.
deltas() {
    printf 'status: 200\n\n'
    printf 'data: {"choices":[{"delta":%s}]}\n\n' "$@"
    printf 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
}

@test "terminal: a notice in the middle of an answer is a line, and the answer goes on below it" {
    local image='{"images":[{"type":"image_url"}]}' audio='{"audio":{"id":"a","data":"AAAA"}}' args
    deltas '{"content":"one lo"}' "$image" "$audio" '{"content":"ok"}' >word.http
    deltas '{"content":"one\n"}' "$image" '{"content":"two\n"}' "$audio" >line.http
    deltas '{"content":"| one | b |\n|---|---|\n| 1 "}' "$image" '{"content":"| 2 |\n"}' >table.http
    deltas '{"reasoning":"hm"}' "$image" '{"content":"one"}' >thinks.http
    for args in '' --no-markdown; do
        start_llm ./word.http ./line.http
        run_expect 0 on_tty --fds 12 chat -N $args hello
        stdout_is $'one lo\r' $'chat: the answer has an image, which is not kept\r' \
            $'chat: the answer has sound, which is not kept\r' $'ok\r'
        run_expect 0 on_tty --fds 12 chat -N $args hello
        stdout_is $'one\r' $'chat: the answer has an image, which is not kept\r' $'two\r' \
            $'chat: the answer has sound, which is not kept\r'
    done
    start_llm ./table.http ./thinks.http ./word.http
    run_expect 0 on_tty --fds 12 chat -N --color=never hello
    stdout_is $'chat: the answer has an image, which is not kept\r' $'| one | b |\r' $'|-----|---|\r' $'| 1   | 2 |\r'
    run_expect 0 on_tty --fds 12 chat -N --color=never --reasoning hello
    stdout_is $'hm\r' $'chat: the answer has an image, which is not kept\r' $'one\r'
    # A file or a pipe gets the answer unchanged.
    run_expect 0 chat -N hello
    stdout_is 'one look'
}

@test "terminal: what a server says of its error is shown, on standard error of any kind" {
    start_llm openai/http-400-escapes
    run_expect 1 chat -N hello
    harmless "$ERR"
    stderr_has '^[[2J^[]52;c;AAAA^G' '<U+202E>' '<U+009B>31m'
    run_expect 1 on_tty --raw --fds 2 chat -N hello
    harmless "$OUT"
}

@test "terminal: what the user's own arguments hold is shown in messages" {
    use_echo
    run_expect 2 chat -p $'\e[2Jx' hello
    harmless "$ERR"
    run_expect 2 chat $'--\e[2Jx'
    harmless "$ERR"
    : >"$HISTORY"
    run_expect 1 hist-show $'\e[2J\xc2\x9bx'
    harmless "$ERR"
    mkdir $'dir\e[2J'
    run_expect 2 hist-search $'--history=dir\e[2J' x
    harmless "$ERR"
    stderr_has 'dir^[[2J'
}

@test "terminal: chat does not read a terminal, and its answer ends with a newline" {
    use_echo
    run_expect 0 on_tty chat hello
    stdout_is $'hello\r' $'[1 message]\r'
}

# ---- histories

@test "terminal: hist-show and hist-load of a hostile history" {
    hostile_history
    for args in 's' '--raw s' 'evil' 's evil'; do
        NO_COLOR=1 on_terminal hist-show $args
        harmless "$OUT"
        stdout_has '^[[2J^[]52;c;ZXZpbA==^G<U+009B>31m<U+202E><U+2066>^H^?'
        on_terminal hist-show $args
        harmless "$OUT" color
    done
    # Its id is none that chat takes.
    run_expect 2 env NO_COLOR=1 "$TESTS/tools/on-tty" --raw hist-load evil
    harmless "$OUT"
    stdout_has 'cannot continue session' '<U+202E>'
    hist_line s user $'needle \e[31m\xe2\x80\xae' >>"$HISTORY"
    run_expect 0 env NO_COLOR=1 "$TESTS/tools/on-tty" --raw hist-load s
    harmless "$OUT"
    stdout_has 'tool call' 'needle ^[[31m<U+202E>'
}

@test "terminal: times are local there, and in UTC in a pipe" {
    use_history
    hist_line s user hello '2026-01-02T03:04:05.000000+00:00' >"$HISTORY"
    TZ=Asia/Tokyo run_expect 0 hist-show s
    stdout_is '[user] 2026-01-02 03:04:05' hello ''
    NO_COLOR=1 TZ=Asia/Tokyo run_expect 0 on_tty hist-show s
    stdout_is $'[user] 2026-01-02 12:04\r' $'hello\r' $'\r'
}

@test "terminal: hist-sessions of a hostile history" {
    hostile_history
    NO_COLOR=1 on_terminal hist-sessions
    harmless "$OUT"
    lines_are 3
    stdout_has '^[[2J' '<U+202E>'
    on_terminal hist-sessions
    harmless "$OUT" color
}

@test "terminal: hist-search of a hostile history" {
    hostile_history
    for args in needle '-l needle' '-c needle' '-s s needle' '--reverse needle' '-r assistant needle'; do
        NO_COLOR=1 on_terminal hist-search $args
        harmless "$OUT"
    done
    on_terminal hist-search needle
    harmless "$OUT" color
    lines_are 2
    # The hit itself may be the enemy.
    on_terminal hist-search $'\e[2J'
    harmless "$OUT" color
    stdout_has '^[[2J'
}

@test "terminal: ids that hist-append refuses" {
    printf '{"id":"x\\u001b[2J\\u009b","session_id":"s","role":"user","content":"hello"}\n' >line
    run_expect 2 on_tty --raw --fds 2 hist-append --json <line
    harmless "$OUT"
    stdout_has '^[[2J<U+009B>'
}

@test "terminal: names that are not found or ambiguous" {
    hostile_history
    hist_line 'evila' user x >>"$HISTORY"
    run_expect 2 hist-show evil
    harmless "$ERR"
    stderr_has ambiguous
}

@test "terminal: bad lines and strange paths in messages" {
    mkdir $'d\e[2J\n\xc2\x9b'
    use_history $'d\e[2J\n\xc2\x9b/h.jsonl'
    { hist_line s user hello; echo bad; } >"$HISTORY"
    run_expect 0 hist-sessions
    stderr_has 'bad line' '^[[2J'
    harmless "$ERR"
}

# ---- pipes and files

@test "terminal: a pipe and a file get the same bytes, whatever is in them" {
    hostile_history
    for command in 'hist-show s' 'hist-show --raw s evil' 'hist-sessions' 'hist-search needle' 'hist-show --json s' \
        'hist-search --json needle' 'hist-sessions --json' 'hist-load s'; do
        $command >file
        $command | cat >pipe
        TERM=xterm COLUMNS=20 $command | cat >other
        cmp file pipe
        cmp file other
        [[ -s file ]]
    done
    # Content unchanged.
    hist-show --raw evil s >file
    for id in 2 3; do
        jq -j "select(.id == \"$id\") | .content" "$HISTORY" >content
        LC_ALL=C python3 -c 'import sys; sys.exit(open("content", "rb").read() not in open("file", "rb").read())'
    done
}

@test "terminal: --json in a pipe is the stored lines byte for byte" {
    hostile_history
    hist-show --json --raw s >file
    grep -a '"session_id":"s"' "$HISTORY" | cmp - file
    hist-search --json --reverse needle >file
    head -n 2 "$HISTORY" | cmp - file
}

# ---- --json on a terminal

@test "terminal: --json has \\uXXXX for what a terminal obeys, and means the same" {
    hostile_history
    hist-show --json --raw s >file
    on_terminal hist-show --json --raw s
    harmless "$OUT"
    cmp <(jq -cS . file) <(jq -cS . "$OUT")
    stdout_has '\u009b' '\u202e' '\u007f' '\udb40\udc41'
    for command in 'hist-search --json needle' 'hist-sessions --json'; do
        $command >file
        on_terminal $command
        harmless "$OUT"
        cmp <(jq -cS . file) <(jq -cS . "$OUT")
    done
}

@test "terminal: chat --json and --dry-run likewise" {
    start_llm openai/escapes openai/escapes-split openai/http-400-escapes
    on_terminal chat -N --json hello
    harmless "$OUT"
    jq -j 'select(.type == "text") | .text' "$OUT" >text
    printf '%b' "${ESCAPES%\\n}" | cmp - text
    on_terminal chat -N --json hello
    harmless "$OUT"
    run_expect 1 on_tty --raw --fds 1 chat -N --json hello
    harmless "$OUT"
    on_terminal chat --dry-run $'\xc2\x9b31m\xe2\x80\xae\x7f'
    harmless "$OUT"
    stdout_json '.messages[-1].content | endswith("\u009b31m\u202e\u007f")' true
}

# ---- colours

# coloured, plain: has the output escape sequences?
coloured() {
    has "$OUT" $'\e[' || fail 'no colour'
}

plain() {
    if has "$OUT" $'\e'; then fail 'coloured'; fi
}

@test "terminal: colour on a terminal that has it, unless told otherwise" {
    { hist_line s user needle; hist_line s assistant answer; } >"$HISTORY"
    for command in 'hist-show s' 'hist-sessions' 'hist-search needle'; do
        on_terminal $command
        coloured
        run_expect 0 $command
        plain
        [[ $command == hist-sessions ]] || { run_expect 0 $command --color=always && coloured; }
        NO_COLOR=1 on_terminal $command
        plain
        NO_COLOR='' on_terminal $command
        coloured
        NO_COLOR=1 on_terminal $command --color=always
        coloured
        TERM=dumb on_terminal $command
        plain
        TERM='' on_terminal $command
        plain
        on_terminal $command --color=never
        plain
        on_terminal $command --color=auto
        coloured
        # JSON never has any.
        on_terminal $command --json --color=always
        plain
        run_expect 2 $command --color=sometimes
        stdout_empty
        stderr_has "bad value 'sometimes' for --color: auto, always or never is expected"
    done
    use_echo
    on_terminal chat --no-store --color=always hello
    stdout_is hello '[1 message]'
}

# ---- widths

@test "terminal: hist-sessions fits the terminal, wide characters counted" {
    wide=$(printf '\u4f60\u597d\uff01%.0s' {1..40})
    { hist_line s1 user "$wide"
      hist_line s2 user "$(printf 'e\u0301%.0s' {1..90})"
      hist_line s3 user "$(printf 'word %.0s' {1..40})"
      hist_line s4 user "$(printf '\U1f600%.0s' {1..60})"
      hist_line s5 user $'two\nlines\tand a tab'; } >"$HISTORY"
    for columns in 40 41 57 80 133; do
        NO_COLOR=1 on_terminal --size ${columns}x24 hist-sessions
        lines_are 6
        fits "$OUT" "$columns"
        stdout_has 'two li'
    done
    # As much of the preview as there is room for.
    NO_COLOR=1 on_terminal --size 300x24 hist-sessions
    stdout_has "${wide:0:100}" 'two lines and a tab'
    NO_COLOR=1 on_terminal --size 60x24 hist-sessions
    grep s1 "$OUT" >line
    if fits line 57; then fail 'there was room for more'; fi
    # $COLUMNS overrides.
    COLUMNS=45 NO_COLOR=1 on_terminal --size 200x24 hist-sessions
    fits "$OUT" 45
}

@test "terminal: hist-search fits the terminal, with the hit in sight" {
    { hist_line s1 user "$(printf '\u4f60\u597d%.0s' {1..80}) needle $(printf '\u4f60\u597d%.0s' {1..80})"
      hist_line s2 user "$(printf 'word %.0s' {1..60})needle$(printf ' word%.0s' {1..60})"
      hist_line s3 user 'needle'; } >"$HISTORY"
    for columns in 70 80 81 133; do
        NO_COLOR=1 on_terminal --size ${columns}x24 hist-search needle
        lines_are 3
        fits "$OUT" "$columns"
        [[ $(grep -c needle "$OUT") == 3 ]]
    done
}

@test "terminal: one with hardly any width" {
    hostile_history
    for size in 1x1 5x2 20x3; do
        NO_COLOR=1 on_terminal --size $size hist-sessions --no-pager
        lines_are 3
        harmless "$OUT"
        NO_COLOR=1 on_terminal --size $size hist-search --no-pager needle
        lines_are 2
        harmless "$OUT"
    done
    COLUMNS=nonsense NO_COLOR=1 on_terminal hist-sessions
    COLUMNS=99999999999999999999 NO_COLOR=1 on_terminal hist-sessions
}

# ---- the pager

# A `less` that leaves in the file `asked` its options, in `paged` what it got.
put_less() {
    mkdir bin
    # shellcheck disable=SC2016
    printf '%s\n' '#!/bin/sh' 'printf "%s" "$LESS" >asked; exec cat >paged' >bin/less
    chmod +x bin/less
    PATH=$PWD/bin:$PATH
}

@test "pager: what is longer than the terminal goes through it, with colours" {
    put_less
    hist_lines s 40 >"$HISTORY"
    on_terminal hist-show s
    stdout_empty
    [[ $(cat asked) == FRX ]]
    mv paged first
    has first $'\e[1;38;5;63m[user]\e[0m'
    has first 'message 40'
    PAGER='cat' on_terminal hist-show s
    stdout_is_file first
    for more in 'LESS=' 'LESS=-i'; do
        run_expect 0 env "$more" "$TESTS/tools/on-tty" --raw --fds 1 hist-show s
        [[ $(cat asked) == "${more#*=}" ]]
        rm paged
    done
}

@test "pager: not for what fits, for a pipe or a file, or when none is wanted" {
    put_less
    hist_lines s 8 >"$HISTORY"
    # Eight times three lines, and one for the prompt.
    on_terminal --size 80x25 hist-show s
    lines_are 24
    [[ ! -e paged ]]
    on_terminal --size 80x24 hist-show s
    stdout_empty
    [[ $(wc -l <paged) == 24 ]]
    rm paged
    run_expect 0 hist-show s
    lines_are 24
    on_terminal --size 80x24 hist-show --no-pager s
    lines_are 24
    PAGER='' on_terminal --size 80x24 hist-show s
    lines_are 24
    PAGER='cat' on_terminal --size 80x24 hist-show s
    lines_are 24
    TERM=dumb on_terminal --size 80x24 hist-show s
    lines_are 24
    [[ ! -e paged ]]
    # A long line takes several rows, and a tab several columns.
    hist_line t user "$(printf 'x%.0s' {1..400})" >"$HISTORY"
    on_terminal --size 80x7 hist-show t
    [[ -e paged ]]
    rm paged
    on_terminal --size 80x8 hist-show t
    [[ ! -e paged ]]
    hist_line t user "$(printf '\t%.0s' {1..50})" >"$HISTORY"
    on_terminal --size 80x7 hist-show t
    [[ -e paged ]]
}

@test "pager: PAGER is a command, of the shell if need be" {
    hist_lines s 40 >"$HISTORY"
    PAGER='grep -c "message 4"' on_terminal hist-show s
    stdout_is 2
    PAGER='cat | grep -c message' on_terminal hist-show s
    stdout_is 40
    # shellcheck disable=SC2016
    PAGER='x=9; echo $((x + 1)); cat >rest' on_terminal hist-show s
    stdout_is 10
    has rest 'message 40'
    # On a dumb terminal, too, when it is asked for.
    TERM=dumb PAGER='grep -c message' on_terminal hist-show s
    stdout_is 40
}

@test "pager: one that is not there" {
    hist_lines s 40 >"$HISTORY"
    PAGER=no-such-pager on_terminal hist-show s
    lines_are 120
    stderr_is "hist-show: cannot run 'no-such-pager': No such file or directory"
    PAGER='no-such-pager | cat >rest; exit 127' run_expect 2 on_tty --raw --fds 1 hist-show s
    stdout_empty
    stderr_has "hist-show: pager 'no-such-pager | cat >rest; exit 127' failed with status 127"
    # That there is no less is nobody's fault.
    on_terminal env PATH=/nowhere "$BIN/hist-show" s
    lines_are 120
    stderr_empty
}

@test "pager: leaving it early is no failure, and is quiet" {
    hist_lines s 20000 >"$HISTORY"
    PAGER='head -n 1' run_expect 0 on_tty --raw hist-show --color=never s
    stdout_is '[user] 2024-06-27 14:53'
    PAGER=true on_terminal hist-show s
    stdout_empty
    stderr_empty
    PAGER=false on_terminal hist-show s
    # The status is the program's.
    PAGER='head -n 1' run_expect 1 on_tty --raw hist-show --color=never s nope
    stdout_is '[user] 2024-06-27 14:53' "hist-show: no session 'nope'"
}

# in_less STATUS SCRIPT... COMMAND: on a terminal, from the moment when less asks for a key.
in_less() {
    local status=$1
    shift
    run_expect "$status" on_tty --raw --wait 'message 8' --wait ':\x1b' --pause 200ms "$@"
}

@test "pager: less" {
    type -P less || skip 'less is missing'
    hist_lines s 40 >"$HISTORY"
    in_less 0 --type q hist-show s
    stdout_lacks 'message 9'
    in_less 0 --type G --wait 'message 40' --type q hist-show s
    # Ctrl-C is for less, which goes on, when all has been written …
    in_less 0 --type '\x03' --pause 200ms --type G --wait 'message 40' --type q hist-show s
    # … and ends a program that has not done so, but not before less.
    hist_lines s 20000 >"$HISTORY"
    in_less 130 --type '\x03' --pause 200ms --type q hist-show s
    in_less 143 --signal TERM --pause 200ms --type q hist-show s
    in_less 129 --signal HUP --pause 200ms --type q hist-show s
}

@test "pager: the program waits for it, and what is said then stands below it" {
    { hist_lines s 40; echo '{"session_id":"s"}'; } >"$HISTORY"
    PAGER='cat >/dev/null; sleep 0.3; echo end of the pager' run_expect 0 on_tty --raw bash -c 'hist-show s; echo behind'
    stdout_is 'end of the pager' "hist-show: skipped 1 bad line in '$HISTORY'" behind
}

@test "pager: hist-search, with colours, and what it says below" {
    put_less
    hist_lines s 40 >"$HISTORY"
    echo '{"session_id":"s"}' >>"$HISTORY"
    on_terminal hist-search message
    stdout_empty
    [[ $(cat asked) == FRX ]]
    mv paged first
    [[ $(wc -l <first) == 40 ]]
    has first $'\e[38;5;16;48;5;221mmessage\e[0m 40'
    stderr_is "hist-search: skipped 1 bad line in '$HISTORY'"
    for none in 'PAGER=cat' 'PAGER='; do
        run_expect 0 env "$none" "$TESTS/tools/on-tty" --raw --fds 1 hist-search message
        stdout_is_file first
    done
    on_terminal hist-search --no-pager message
    stdout_is_file first
    on_terminal --size 80x41 hist-search message
    stdout_is_file first
    [[ ! -e paged ]]
    on_terminal --size 80x40 hist-search message
    stdout_empty
    same paged first paged
    rm paged
    on_terminal hist-search -c message
    stdout_is 40
    run_expect 0 hist-search message
    lines_are 40
    [[ ! -e paged ]]
}

@test "pager: hist-search tells what it says when the reader has left" {
    hist_lines s 40 >"$HISTORY"
    echo '{"session_id":"s"}' >>"$HISTORY"
    PAGER='cat >/dev/null; sleep 0.3; echo end of the pager' \
        run_expect 1 on_tty --raw hist-search -n 30 -s s -s nope message
    stdout_is 'end of the pager' 'hist-search: more than 30 messages match (--limit)' \
        "hist-search: skipped 1 bad line in '$HISTORY'" "hist-search: no session 'nope'"
    for form in '--reverse' '-C 1' '-o' '--json'; do
        PAGER='head -n 1 >/dev/null' run_expect 0 on_tty --raw hist-search -q $form message
        PAGER='wc -l' run_expect 0 on_tty --raw hist-search $form -n 25 message
        stdout_matches '^ *2[56]'
    done
    PAGER='head -n 1' run_expect 0 on_tty --raw hist-search --color=never message
    lines_are 2
    PAGER='exit 127;' run_expect 2 on_tty --raw --fds 1 hist-search message
    stderr_has "pager 'exit 127;' failed with status 127"
}

# ---- progress

# slowly N: so many history lines, ten in a second; the first four are what the format is told by.
slowly() {
    local n text
    text=$(printf 'x%.0s' {1..20000})
    for ((n = 0; n < $1; n++)); do
        printf '{"id":"p%d","session_id":"s","timestamp":"2024-06-27T15:00:00Z","role":"user","content":"%s"}\n' "$n" "$text"
        sleep 0.1
    done
}

@test "progress: an import that takes over a second, on a terminal only" {
    slowly 20 | run_expect 0 on_tty --raw --fds 2 hist-import --history a.jsonl -
    progress_and_gone import
    # A tenth of a second.
    slowly 5 | run_expect 0 on_tty --raw --fds 2 hist-import --history b.jsonl -
    stdout_is 5
    slowly 20 | run_expect 0 on_tty --raw --fds 2 hist-import -q --history c.jsonl -
    stdout_is 20
    slowly 20 | TERM=dumb run_expect 0 on_tty --raw --fds 2 hist-import --history d.jsonl -
    stdout_is 20
    slowly 18 | run_expect 0 hist-import --history e.jsonl -
    stdout_is 18
    stderr_empty
    # Without one it can be asked for: a line for each file, when it is done.
    slowly 2 | run_expect 0 hist-import -v --history f.jsonl -
    stdout_is 2
    stderr_is '-: lines, 2 new, 0 known, 0 bad'
}

@test "progress: an export that takes over a second, on a terminal only" {
    jq -cn '("x" * 2000) as $x | range(2000) | {id: "m\(.)", session_id: "s", timestamp: "t", role: "user", content: $x}' >"$HISTORY"
    # Its reader takes nothing for a while.
    for wait in 1.4 0.1; do
        # shellcheck disable=SC2016
        run_expect 0 on_tty --raw --fds 2 bash -c '"$@" | { sleep "$0"; wc -l >lines; }' "$wait" hist-export --all-sessions -f jsonl
        is lines lines 2000
        if [[ $wait == 1.4 ]]; then progress_and_gone write; else stdout_empty; fi
    done
    # shellcheck disable=SC2016
    for options in -q ''; do
        run_expect 0 bash -c "hist-export --all-sessions -f jsonl $options 2>said | { sleep 1.3; wc -l; }"
        stdout_is 2000
        [[ ! -s said ]]
    done
    # Beside an output on the same terminal it would be in the way.
    run_expect 0 on_tty --raw hist-export --all-sessions -f txt
    stdout_lacks $'\r'
}

# slow_reads COMMAND...: its first 30 reads of the history, or $READS, take 60 ms each in each thread.
slow_reads() {
    run_expect 0 on_tty --raw --fds 2 strace -qq -f -o trace -P "$HISTORY" -e trace=pread64 \
        -e inject=pread64:delay_exit=60000:when=1.."${READS:-30}" "$@"
}

@test "progress: everything that reads a history for over a second says how far it is, and -q does not" {
    jq -cn '("x" * 20000) as $x | range(300) | {id: "m\(.)", session_id: "s\(. % 30)",
        timestamp: "2024-06-27T15:00:00.000000+00:00", role: "user", content: $x}' >"$HISTORY"
    mkdir there
    slow_reads hist-check
    progress_and_gone check
    slow_reads hist-stats
    progress_and_gone count
    stdout_matches ' of 6.0 MB, '
    slow_reads hist-sync --name n there
    progress_and_gone read
    READS=60 slow_reads hist-delete --force s1
    progress_and_gone '(read|index|rewrite)'
    slow_reads hist-check -q
    stdout_empty
}
