#!/usr/bin/env bats
#
# hist-sessions: the list of sessions, the last used first.

load ../helper
load ../history

# times CHARACTER COUNT
times() {
    # Not ${text// /é}: bash takes quadratic time for that.
    yes "$1" | head -n "$2" | tr -d '\n'
}

@test "hist-sessions: id, last used, count, preview, separated by tabs" {
    put first user 'what is a monad?' 2024-06-27T15:00:00.000000+00:00
    put second user hello 2024-06-27T16:00:00.123456+00:00
    put first assistant 'a burrito' 2024-06-27T17:00:00.654321+00:00
    run_expect 0 hist-sessions
    stdout_is $'first\t2024-06-27T17:00:00.654321+00:00\t2\twhat is a monad?' \
        $'second\t2024-06-27T16:00:00.123456+00:00\t1\thello'
    stderr_empty
}

@test "hist-sessions: the order is that of the times; a wrong one counts as the latest before it" {
    put early user zero 1998-01-01T00:00:00.000000+00:00
    put future user one 2099-01-01T00:00:00.000000+00:00
    put past user two 1999-01-01T00:00:00.000000+00:00
    put odd user three '' '{"timestamp":"the day before yesterday"}'
    put past user four 1997-01-01T00:00:00.000000+00:00
    put older user five 1996-01-01T00:00:00.000000+00:00
    run_expect 0 hist-sessions
    stdout_is $'past\t1999-01-01T00:00:00.000000+00:00\t2\ttwo' $'odd\tthe day before yesterday\t1\tthree' \
        $'future\t2099-01-01T00:00:00.000000+00:00\t1\tone' $'early\t1998-01-01T00:00:00.000000+00:00\t1\tzero' \
        $'older\t1996-01-01T00:00:00.000000+00:00\t1\tfive'
}

@test "hist-sessions: several histories are listed in one order" {
    put early user one 2025-01-01T00:00:00.000000+00:00
    put back user two 2020-01-01T00:00:00.000000+00:00
    HISTORY=other.jsonl put between user three 2022-01-01T00:00:00.000000+00:00
    run_expect 0 hist-sessions --history other.jsonl --history "$HISTORY"
    [[ $(cut -f 1 "$OUT" | paste -sd ,) == early,between,back ]] || fail order
    run_expect 0 hist-sessions --history "$HISTORY" --history other.jsonl
    [[ $(cut -f 1 "$OUT" | paste -sd ,) == early,between,back ]] || fail order
}

@test "hist-sessions: --limit, all unless told in a pipe and 50 on a terminal" {
    jq -cn 'range(1; 61) | {id: "m\(.)", session_id: "s\(.)", timestamp: "t", role: "user", content: "c"}' >"$HISTORY"
    run_expect 0 hist-sessions
    lines_are 60
    stdout_line 1 $'s60\tt\t1\tc'
    stdout_line 60 $'s1\tt\t1\tc'
    run_expect 0 on_tty --raw hist-sessions
    lines_are 50
    run_expect 0 on_tty --raw hist-sessions -n all
    lines_are 60
    run_expect 0 hist-sessions --limit 2
    stdout_is $'s60\tt\t1\tc' $'s59\tt\t1\tc'
    run_expect 0 hist-sessions -n1 --json
    stdout_json .session_id s60
    run_expect 0 hist-sessions --limit=all
    lines_are 60
    run_expect 0 hist-sessions -n 1000
    lines_are 60
}

@test "hist-sessions: --id lists what a part of an id means" {
    local id
    for id in alpha-1 alpha-2 beta-alpha gamma:lpha; do put "$id" user hello; done
    put alpha-1 user again
    run_expect 0 hist-sessions --id alpha
    cut -f 1,3 "$OUT" >ids
    is ids ids $'alpha-1\t2' $'alpha-2\t1'
    run_expect 0 hist-sessions --id alpha --limit 1 --json
    stdout_json .session_id alpha-1
    # The end, when nothing begins so, and it is long enough.
    run_expect 0 hist-sessions --id=lpha
    cut -f 1 "$OUT" >ids
    is ids ids gamma:lpha beta-alpha
    run_expect 0 hist-sessions --id pha
    stdout_empty
    run_expect 0 hist-sessions --id nothing
    stdout_empty
    run_expect 0 hist-sessions --id ''
    lines_are 4
    run_expect 0 hist-sessions --id alpha-1
    lines_are 1
}

@test "hist-sessions: --since and --until choose by the time of last use" {
    put a user one 2024-06-01T10:00:00.000000+00:00
    put b user two 2024-06-02T10:00:00.000000+00:00
    put a user three 2024-06-03T10:00:00.000000+00:00
    put odd user four '' '{"timestamp":"the day before yesterday"}'
    put c user five 2024-06-04T10:00:00.000000+00:00
    chosen() {
        run_expect 0 hist-sessions "${@:2}" || return 1
        stderr_empty || return 1
        cut -f 1 "$OUT" | tr '\n' ' ' >got
        [[ $(<got) == "$1" ]] || fail "${*:2}: wanted '$1', got '$(<got)'"
    }
    chosen 'c a ' --since 2024-06-03
    chosen 'a b ' --until 2024-06-03
    chosen 'a b ' --since 2024-06-02 --until 2024-06-03T10:00:00
    chosen 'a ' --since 2024-06-02 --until 2024-06-03 -n 1
    chosen 'a ' --until 2024-06-03 --id a
    chosen '' --since '2 weeks ago'
    chosen 'c odd a b '
    run_expect 2 hist-sessions --since nonsense
    stderr_is "hist-sessions: bad value 'nonsense' for --since: a time such as 2024-06-27, 7d, 'monday' or '2 weeks ago' is expected (see 'hist-sessions --help')"
}

@test "hist-sessions: a limit that is no number" {
    local value
    for value in 0 -1 1.5 '' x 5x ' 5' 99999999999999999999999999; do
        run_expect 2 hist-sessions --limit "$value"
        stdout_empty
        stderr_is "hist-sessions: bad value '$value' for --limit: a number from 1 or 'all' is expected (see 'hist-sessions --help')"
    done
    run_expect 2 hist-sessions surplus
    stderr_is "hist-sessions: no argument is expected (see 'hist-sessions --help')"
}

@test "hist-sessions: the preview has 100 characters, each of them whole" {
    put ascii user "$(times a 100)b"
    put two user "$(times é 100)x"
    put three user "$(times 漢 99)語字"
    put four user "x$(times 😀 120)"
    put short user "$(times é 99)"
    put exact user "$(times 漢 100)"
    run_expect 0 hist-sessions
    cut -f 4 "$OUT" >previews
    is previews previews "$(times 漢 100)" "$(times é 99)" "x$(times 😀 99)" "$(times 漢 99)語" "$(times é 100)" "$(times a 100)"
    run_expect 0 hist-sessions --json
    stdout_json .preview "$(times 漢 100)" "$(times é 99)" "x$(times 😀 99)" "$(times 漢 99)語" "$(times é 100)" \
        "$(times a 100)"
}

@test "hist-sessions: the preview counts characters, not their escapes" {
    printf '{"id":"1","session_id":"e","timestamp":"t","role":"user","content":"%s%s"}\n' \
        "$(times '\u00e9' 98)" '\ud83d\ude00\u2713x' >"$HISTORY"
    printf '{"id":"2","session_id":"f","timestamp":"t","role":"user","content":"%s%s"}\n' \
        "$(times '\ud83d\ude00' 99)" '\ud83dx' >>"$HISTORY"
    run_expect 0 hist-sessions
    stdout_is $'f\tt\t1\t'"$(times 😀 99)"$'\xef\xbf\xbd' $'e\tt\t1\t'"$(times é 98)😀✓"
}

@test "hist-sessions: a preview is one line and one field" {
    put s user $'  one\n\ttwo\r\n three\t'
    put empty assistant ''
    run_expect 0 hist-sessions
    stdout_matches $'^empty\t[^\t]*\t1\t$' $'^s\t[^\t]*\t1\tone two three$'
    lines_are 2
}

@test "hist-sessions: the preview is of the first question, however many lines precede it" {
    printf '%s\n' "$(hist_line s system 'be brief')" "$(hist_line s user ' ')" "$(hist_line s assistant hello)" >"$HISTORY"
    run_expect 0 hist-sessions --json
    stdout_json '.first_role, .preview' system 'be brief'
    printf '%s\n' "$(hist_line s user 'why so?')" "$(hist_line s user later)" >>"$HISTORY"
    run_expect 0 hist-sessions --json
    stdout_json '.first_role, .preview, .message_count' system 'why so?' 5
}

@test "hist-sessions: a question that comes after the lines in the index" {
    hist_line s system 'be brief' >"$HISTORY"
    hist_line large user "$(printf 'x%.0s' {1..100000})" >long
    cat long long long >>"$HISTORY"
    run_expect 0 hist-sessions --json
    [[ -f $HISTORY.idx ]] || fail "no index was made"
    hist_line s user 'why so?' >>"$HISTORY"
    run_expect 0 hist-sessions --json
    stdout_json '.session_id, .preview[:7]' s 'why so?' large xxxxxxx
    cat long long long >>"$HISTORY"
    hist_line s user later >>"$HISTORY"
    run_expect 0 hist-sessions --json
    stdout_json '.session_id, .preview[:7]' s 'why so?' large xxxxxxx
}

@test "hist-sessions: the preview is of the first message, whatever its role, if there is no question" {
    put s system 'be brief'
    put s assistant hello
    put t robot beep
    run_expect 0 hist-sessions --json
    stdout_json '.first_role, .preview, .message_count' robot beep 1 system 'be brief' 2
}

@test "hist-sessions: every line counts, replaced and reset ones too" {
    put s user old '' '{"id":"m1"}'
    put s user new '' '{"replaces":["m1"]}'
    put s system '' '' '{"reset":true}'
    run_expect 0 hist-sessions --json
    stdout_json '.message_count, .preview' 3 old
}

@test "hist-sessions: bad lines are reported once and stop nothing" {
    put a user one
    printf 'garbage\n{"id":"x"}\n\000\000\n' >>"$HISTORY"
    put b user two
    remember "$HISTORY"
    run_expect 0 hist-sessions
    lines_are 2
    stderr_is "hist-sessions: skipped 3 bad lines in '$HISTORY'"
    unchanged "$HISTORY"
    sed -i '2,3d' "$HISTORY"
    run_expect 0 hist-sessions
    stderr_is "hist-sessions: skipped 1 bad line in '$HISTORY'"
    run_expect 0 hist-sessions -q
    lines_are 2
    stderr_empty
}

@test "hist-sessions: lines of other writers: any order, white space, BOM, CRLF, null, no last newline" {
    printf '\xef\xbb\xbf{ "role" : "user", "content":null,"timestamp":"t1","session_id":"s\\u0031" ,"id":"1"}\r\n' >"$HISTORY"
    printf '\r\n\n{"content":"x","content":"last counts","role":"user","timestamp":"t2","session_id":"s2","id":"2"}' >>"$HISTORY"
    run_expect 0 hist-sessions
    stdout_is $'s2\tt2\t1\tlast counts' $'s1\tt1\t1\t'
    stderr_empty
}

@test "hist-sessions: a terminal gets columns, its own time zone and nothing that it could obey" {
    put evil user $'\e]0;title\a\xe2\x80\xaereversed' 2024-06-26T23:30:00.000000+00:00
    put s user "$(times m 200)" 2024-06-27T15:00:00.000000+00:00
    export TZ=Europe/Berlin
    run_expect 0 on_tty --raw --size 60x20 hist-sessions --color=never
    stdout_line 1 "s  2024-06-27 17:00     1  $(times m 33)"
    stdout_line 2 'evil  2024-06-27 01:30     1  ^[]0;title^G<U+202E>reversed'
    run_expect 0 on_tty --raw hist-sessions --json
    stdout_has '\u001b]0;title\u0007\u202ereversed'
    stdout_lacks $'\e' $'\xe2\x80\xae'
    run_expect 0 on_tty --raw hist-sessions -n 1
    stdout_matches $'^\e\\[[0-9;]*ms\e\\[0?m'
    NO_COLOR=1 run_expect 0 on_tty --raw hist-sessions -n 1
    stdout_lacks $'\e'
}

@test "hist-sessions: a time and a role with a NUL in them are whole" {
    printf '%s\n' '{"id":"1","session_id":"s","timestamp":"long\u0000ago","role":"ro\u0000bot","content":"x"}' \
        '{"id":"2","session_id":"s","timestamp":"just\u0000now","role":"user","content":"x"}' >"$HISTORY"
    run_expect 0 hist-sessions --json
    stdout_has '"timestamp":"just\u0000now"' '"first_role":"ro\u0000bot","created_at":"long\u0000ago","last_accessed":"just\u0000now"'
    run_expect 0 hist-sessions
    stdout_bytes_are 's\tjust\0000now\t2\tx\n'
    run_expect 0 on_tty hist-sessions
    stdout_has 'just^@now'
}

@test "hist-sessions: an id with a NUL in it is whole, and does not hide another" {
    printf '%s\n' '{"id":"1","session_id":"a\u0000b","timestamp":"t","role":"user","content":"x"}' \
        '{"id":"2","session_id":"a","timestamp":"t","role":"user","content":"y"}' >"$HISTORY"
    run_expect 0 hist-sessions
    stdout_bytes_are 'a\tt\t1\ty\n"a\\u0000b"\tt\t1\tx\n'
    run_expect 0 hist-sessions --json
    stdout_json '.session_id | @json' '"a"' '"a\u0000b"'
    run_expect 0 hist-show --json a
    stdout_json .content y
}

@test "hist-sessions: --role, --model and --session choose sessions" {
    put a user one
    put a assistant two '' '{"model":"big","provider":"openai"}'
    put b user three
    put c assistant four '' '{"model":"small"}'
    chosen() {
        run_expect 0 hist-sessions "${@:2}" || return 1
        stderr_empty || return 1
        cut -f 1 "$OUT" | tr '\n' ' ' >got
        [[ $(<got) == "$1" ]] || fail "${*:2}: wanted '$1', got '$(<got)'"
    }
    chosen 'b a ' -r user
    chosen 'a ' --model openai:big
    chosen 'c a ' --model big --model small
    chosen 'c ' --model big --model small -n 1
    chosen '' -r user --model big
    chosen 'b ' -s b
    chosen 'c a ' -s a -s last
    run_expect 1 hist-sessions -s a -s nosuch
    stderr_is "hist-sessions: no session 'nosuch'"
    [[ $(cut -f 1 "$OUT") == a ]]
}

@test "hist-sessions: --all lists every history of the user, and each row names its own" {
    local home=$HOME/.local/share/aicoder/history.jsonl
    unset CHAT_HISTORY
    git init -q here
    (cd here && run_expect 0 chat -p echo -s one hello)
    run_expect 0 chat -p echo -s two hello
    run_expect 0 hist-sessions --all
    stderr_empty
    [[ $(cut -f 1,5 "$OUT") == "two"$'\t'"$home"$'\n'"one"$'\t'"$PWD/here/.git/aicoder/history.jsonl" ]] ||
        fail "$(<"$OUT")"
    run_expect 0 hist-sessions --all -n 1 --json
    lines_are 1
    stdout_json .history "$home"
    run_expect 0 hist-sessions
    [[ $(awk -F '\t' '{ print NF }' "$OUT") == 4 ]]
    run_expect 0 on_tty --raw hist-sessions --all --color=never
    lines_are 2
    stdout_matches '  ~/.local/share/aicoder +hello' '  ….*/work/here +hello'
    # A session of another history is found there.
    run_expect 0 hist-show --all --json one
    stdout_json .session_id one one
    run_expect 0 hist-show -q --json one
    stdout_json .session_id one one
    run_expect 0 hist-sessions --history "$home" --history here/.git/aicoder/history.jsonl
    lines_are 2
}
