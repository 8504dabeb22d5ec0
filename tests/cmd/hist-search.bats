#!/usr/bin/env bats
#
# hist-search: messages whose decoded content holds a text.

# shellcheck disable=SC1003,SC2016

load ../helper

setup() {
    sandbox
    use_history
}

put() {
    hist_line "$@" >>"$HISTORY"
}

# raw CONTENT [MORE]: a line of session s whose content is this JSON, between the quotes as it stands.
raw() {
    printf '{"id":"r%s","session_id":"s","timestamp":"t","role":"user","content":"%s"%s}\n' \
        "$((RAW = ${RAW:-0} + 1))" "$1" "${2:+,$2}" >>"$HISTORY"
}

# finds TEXT..., misses TEXT...: is there a hit for each?
finds() {
    local text
    for text; do run_expect 0 hist-search -q -- "$text" || return 1; done
    stdout_empty
}

misses() {
    local text
    for text; do run_expect 1 hist-search -q -- "$text" || return 1; done
    stdout_empty
}

# times CHARACTER COUNT
times() {
    local text
    printf -v text '%*s' "$2" ''
    printf '%s' "${text// /$1}"
}

# ---- what is printed

@test "hist-search: session, message, time, role, snippet, separated by tabs; newest first" {
    put a user 'a Timeout here' 2024-06-27T15:00:00.000000+00:00 '{"id":"m1"}'
    put b assistant 'nothing' 2024-06-27T15:00:01.000000+00:00 '{"id":"m2"}'
    put b tool $'two\nlines,\ttimeout' 2020-06-27T15:00:02.500000+00:00 '{"id":"m3"}'
    run_expect 0 hist-search timeout
    stdout_is $'b\tm3\t2020-06-27T15:00:02.500000+00:00\ttool\ttwo lines, timeout' \
        $'a\tm1\t2024-06-27T15:00:00.000000+00:00\tuser\ta Timeout here'
    stderr_empty
}

@test "hist-search: exit 1 and nothing else when nothing is found" {
    put s user hello
    run_expect 1 hist-search absent
    stdout_empty
    stderr_empty
    rm "$HISTORY"
    run_expect 1 hist-search hello
    stdout_empty
    stderr_empty
    [[ ! -e $HISTORY ]]
}

@test "hist-search: --json gives the stored lines, byte for byte" {
    raw 'caf\u00e9' '"x": [1,2 ] ,"y":1.0'
    printf '%s\n' '{ "content" : "caf\u00c9", "role":"bot","timestamp":"t","session_id":"s","id":"2" } ' >>"$HISTORY"
    run_expect 0 hist-search --json CAFÉ
    tac "$HISTORY" | sed 's/ $//' >wanted
    stdout_is_file wanted
}

@test "hist-search: a snippet shows the match and its surroundings, cut between characters" {
    put s user "$(times é 300)NEEDLE$(times 漢 300)" '' '{"id":"m1"}'
    run_expect 0 hist-search needle
    cut -f 5 "$OUT" >snippet
    is snippet snippet "…$(times é 77)NEEDLE$(times 漢 77)…"
    put s user "NEEDLE $(times y 300)" '' '{"id":"m2"}'
    run_expect 0 hist-search -n 1 needle
    cut -f 5 "$OUT" >snippet
    is snippet snippet "NEEDLE $(times y 153)…"
    put s user "$(times 😀 200)needle" '' '{"id":"m3"}'
    run_expect 0 hist-search -n 1 needle
    cut -f 5 "$OUT" >snippet
    is snippet snippet "…$(times 😀 154)needle"
}

@test "hist-search: a match longer than the snippet, tabs and line ends in it" {
    put s user $'x\n'"$(times é 400)" '' '{"id":"m1"}'
    run_expect 0 hist-search "$(times É 300)"
    cut -f 5 "$OUT" >snippet
    is snippet snippet "…$(times é 160)…"
    put s user $'a\t\tb\r\n\r\nc' '' '{"id":"m2"}'
    run_expect 0 hist-search $'b\r\n\r\nC'
    stdout_matches $'\ta b c$'
    lines_are 1
}

# ---- what is found

@test "hist-search: without regard to case, in every script" {
    put s user 'Straße ÉCOLE Ωμέγα ὈΔΥΣΣΕΎΣ Привет ǅ K ſ'
    finds STRAßE straße école ωΜΈΓΑ ὀδυσσεύς привет ПРИВЕТ ǆ k K s é É
    misses strasse ecole privet
}

@test "hist-search: the text is taken literally" {
    put s user 'a.b*c [d] $e\f "g" ^h %s'
    finds 'a.b*c' '[d]' '$e\f' '"g"' '^h' %s '\f'
    misses 'axb' '.*' '[a-z]' '\\f' '\"g' '%d'
}

@test "hist-search: escapes are decoded before anything is looked for" {
    raw '\u0063af\u00E9 \ud83d\ude00\ud83d\uDE01 tab\there \/ \u005c \"q\" nul\u0000end'
    finds café CAFÉ 😀 😁 😀😁 $'tab\there' / '\' '"q"' 'é 😀' 'l'
    misses u00e9 '\u00e9' 00e9 ud83d '\t' tthere '\/' '\"' bthere u0000 nulend
}

@test "hist-search: needles across escapes and plain bytes, and parts of characters are none" {
    raw 'a\u0062c\u00e9f'
    raw '\ud83d\ude00x'
    finds abc bcé abcéf 😀X
    misses $'\xa9' $'\xc3'
}

@test "hist-search: a lone surrogate is U+FFFD, in the needle invalid UTF-8 too" {
    raw 'a\ud83db'
    finds $'a\xef\xbf\xbdb' $'\xef\xbf\xbd' $'\xff'
    misses ab
}

@test "hist-search: nothing but the content counts" {
    put needle user x 2024-06-27T15:00:00.000000+00:00 '{"id":"needle","model":"needle","files":["needle"],"tool_calls":[{"id":"needle","name":"needle","args":{"needle":"needle"}}],"content2":"needle","x":{"content":"needle"},"thinking":[{"content":"needle"}]}'
    put s needle y
    misses needle content session_id user '"' '{' 2024
    put s user 'a needle'
    run_expect 0 hist-search -c needle
    stdout_is 1
}

@test "hist-search: of a repeated key the last counts" {
    printf '%s\n' '{"id":"1","session_id":"s","timestamp":"t","role":"user","content":"first","content":"second"}' >"$HISTORY"
    finds second
    misses first
}

@test "hist-search: content null is empty text; empty text is found everywhere" {
    printf '%s\n' '{"id":"1","session_id":"s","timestamp":"t","role":"assistant","content":null}' >"$HISTORY"
    put s user x
    misses null
    run_expect 0 hist-search -c ''
    stdout_is 2
}

@test "hist-search: replaced, reset and unknown roles are found too" {
    put s user 'word one' '' '{"id":"m1"}'
    put s user 'word two' '' '{"replaces":["m1"]}'
    put s system 'word three' '' '{"reset":true}'
    put s robot 'word four'
    run_expect 0 hist-search -c word
    stdout_is 4
}

@test "hist-search: a text that begins with a dash" {
    put s user 'use --force'
    run_expect 0 hist-search -c -- --force
    stdout_is 1
    run_expect 2 hist-search --force
    stderr_is "hist-search: unknown or ambiguous option '--force' (see 'hist-search --help')"
}

@test "hist-search: long content, hits at its very ends" {
    raw "START$(head -c 300000 /dev/zero | tr '\0' x)END"
    finds start end xend startx
    misses startend endx
}

# ---- which are wanted

# some: a history of six hits and others
some() {
    put a user 'hit 1'
    put a assistant 'hit 2'
    put b system 'hit 3'
    put b user nothing
    put b robot 'hit 4'
    put a tool 'hit 5'
    put c user 'hit 6'
}

@test "hist-search: -r ROLE, of any name, and several" {
    some
    run_expect 0 hist-search --json -r user hit
    stdout_json .content 'hit 6' 'hit 1'
    run_expect 0 hist-search --json -r robot --role=tool hit
    stdout_json .content 'hit 5' 'hit 4'
    run_expect 1 hist-search -r USER hit
    stdout_empty
}

@test "hist-search: -s SESSION, an id or what stands for one" {
    some
    put sess-0001 user 'hit 7'
    run_expect 0 hist-search --json -s a hit
    stdout_json .content 'hit 5' 'hit 2' 'hit 1'
    run_expect 0 hist-search --json --session=0001 hit
    stdout_json .content 'hit 7'
    run_expect 0 hist-search --json -s last hit
    stdout_json .content 'hit 7'
    echo b >"$HISTORY.session"
    run_expect 0 hist-search --json -s current -r system hit
    stdout_json .content 'hit 3'
    echo $'c\tx' >name
    run_expect 0 hist-search --json -s - hit <name
    stdout_json .content 'hit 6'
}

@test "hist-search: -s that means none, or several" {
    some
    put another user 'hit 7'
    put anothers user 'hit 8'
    run_expect 1 hist-search -s nope hit
    stdout_empty
    stderr_is "hist-search: no session 'nope'"
    run_expect 2 hist-search -s an hit
    stdout_empty
    stderr_is "hist-search: session 'an' is ambiguous: anothers, another"
}

@test "hist-search: -s - searches every session that is named" {
    some
    printf 'a\tx\nc\n' >names
    run_expect 0 hist-search --json -s - hit <names
    stdout_json .content 'hit 6' 'hit 5' 'hit 2' 'hit 1'
    run_expect 0 hist-search --json -s b -s c hit
    stdout_json .content 'hit 6' 'hit 4' 'hit 3'
    printf 'a\nnope\n' >names
    run_expect 1 hist-search --json -s - hit <names
    stdout_json .content 'hit 5' 'hit 2' 'hit 1'
    stderr_is "hist-search: no session 'nope'"
    run_expect 1 hist-search -s - hit
    stdout_empty
}

@test "hist-search: --limit is 100 unless told; --reverse turns the newest round" {
    jq -cn 'range(1; 121) | {id: "m\(.)", session_id: "s", timestamp: "t", role: "user", content: "hit \(.)"}' >"$HISTORY"
    run_expect 0 hist-search hit
    lines_are 100
    stdout_line 1 $'s\tm120\tt\tuser\thit 120'
    run_expect 0 hist-search --limit all hit
    lines_are 120
    run_expect 0 hist-search --json --limit 3 hit
    stdout_json .content 'hit 120' 'hit 119' 'hit 118'
    run_expect 0 hist-search --json --limit 3 --reverse hit
    stdout_json .content 'hit 118' 'hit 119' 'hit 120'
    run_expect 0 hist-search -n 2 --reverse hit
    stdout_is $'s\tm119\tt\tuser\thit 119' $'s\tm120\tt\tuser\thit 120'
    run_expect 0 hist-search --reverse hit
    lines_are 100
    stdout_line 1 $'s\tm21\tt\tuser\thit 21'
    stderr_empty
}

@test "hist-search: -l gives the sessions, each once, the newest hit first" {
    some
    run_expect 0 hist-search -l hit
    stdout_is c a b
    run_expect 0 hist-search --sessions -r system hit
    stdout_is b
    run_expect 1 hist-search -l absent
    stdout_empty
    run_expect 0 bash -c 'hist-search -l "hit 3" | hist-show --json -'
    stdout_json .content 'hit 3' nothing 'hit 4'
}

@test "hist-search: -l and -c see more than the limit" {
    jq -cn 'range(1; 121) | {id: "m\(.)", session_id: "s\(.)", timestamp: "t", role: "user", content: "hit \(.)"}' >"$HISTORY"
    run_expect 0 hist-search -c hit
    stdout_is 120
    run_expect 0 hist-search -l hit
    lines_are 120
}

@test "hist-search: -c gives their number, 0 too" {
    some
    run_expect 0 hist-search -c hit
    stdout_is 6
    run_expect 0 hist-search --count -s b hit
    stdout_is 2
    run_expect 1 hist-search -c absent
    stdout_is 0
}

@test "hist-search: -q tells by its status alone, with every other option" {
    some
    local option
    for option in '' -l -c --json --reverse '-r user' '-n 1'; do
        # shellcheck disable=SC2086
        run_expect 0 hist-search -q $option hit
        stdout_empty
        stderr_empty
        # shellcheck disable=SC2086
        run_expect 1 hist-search $option --quiet absent
        stdout_empty
        stderr_empty
    done
}

@test "hist-search: what does not go together, and what is missing" {
    run_expect 2 hist-search --json -l x
    stderr_is "hist-search: --json goes with neither --sessions nor --count (see 'hist-search --help')"
    run_expect 2 hist-search -c --json x
    stderr_is "hist-search: --json goes with neither --sessions nor --count (see 'hist-search --help')"
    run_expect 2 hist-search
    stderr_is "hist-search: a text to search for is expected (see 'hist-search --help')"
    run_expect 2 hist-search two words
    stderr_is "hist-search: one text is expected (see 'hist-search --help')"
    run_expect 2 hist-search --limit 0 x
    stderr_is "hist-search: bad value '0' for --limit: a number or 'all' is expected (see 'hist-search --help')"
}

# ---- tolerance and the terminal

@test "hist-search: bad lines are reported once, those that were read" {
    put s user 'hit 1'
    printf 'garbage with a hit\n\n{"content":"hit"}\n[1]\n' >>"$HISTORY"
    put s user 'hit 2'
    remember "$HISTORY"
    run_expect 0 hist-search --json hit
    stdout_json .content 'hit 2' 'hit 1'
    stderr_is "hist-search: skipped 3 bad lines in '$HISTORY'"
    unchanged "$HISTORY"
    run_expect 0 hist-search --json --limit 1 hit
    stdout_json .content 'hit 2'
}

@test "hist-search: a terminal gets columns, the match in colour, and nothing that it could obey" {
    put s user $'\e[2Jan evil \xe2\x80\xaehit' 2024-06-27T15:00:00.000000+00:00
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never hit
    stdout_is 's  2024-06-27 15:00  user  ^[[2Jan evil <U+202E>hit'
    run_expect 0 on_tty --raw hist-search HIT
    stdout_matches $'<U\\+202E>\e\\[[0-9;]+mhit\e\\[0?m$'
    stdout_lacks $'\e[2J'
    run_expect 0 on_tty --raw hist-search --json hit
    stdout_has '\u001b[2Jan evil \u202ehit'
    put s user "$(times x 300)hit$(times y 300)"
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never -n 1 hit
    [[ $(head -n 1 "$OUT" | wc -m) -le 81 ]]
    stdout_matches 'x…?hit|xhity'
}

@test "hist-search: more than the limit is said on a terminal only" {
    put s user 'hit 1'
    put s user 'hit 2'
    run_expect 0 hist-search -n 1 hit
    stderr_empty
    run_expect 0 on_tty --raw --fds 2 hist-search -n 1 hit
    stdout_has 'hist-search: more than 1 messages match (--limit)'
    run_expect 0 on_tty --raw --fds 2 hist-search -n 2 hit
    stdout_lacks limit
}

@test "hist-search: a pipe gets a hit while it still searches, and a closed one ends it quietly" {
    jq -cn 'range(1; 5000) | {id: "m\(.)", session_id: "s", timestamp: "t", role: "user", content: "hit \(.)"}' >"$HISTORY"
    run_expect 0 bash -c 'hist-search --limit all hit | head -n 1; echo "${PIPESTATUS[0]}"'
    stdout_line 2 141
    stderr_empty
}
