#!/usr/bin/env bats
#
# hist-search: messages whose decoded content holds a text.

# shellcheck disable=SC1003,SC2016

load ../helper
load ../history

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
    # Not ${text// /é}: bash takes quadratic time for that.
    yes "$1" | head -n "$2" | tr -d '\n'
}

# ---- what is printed

@test "hist-search: session, message, time, role, snippet, separated by tabs; newest first" {
    put a user 'a Timeout here' 2024-06-27T15:00:00.000000+00:00 '{"id":"m1"}'
    put b assistant 'nothing' 2024-06-27T15:00:01.000000+00:00 '{"id":"m2"}'
    put b tool $'two\nlines,\ttimeout' 2020-06-27T15:00:02.500000+00:00 '{"id":"m3"}'
    run_expect 0 hist-search timeout
    stdout_is $'a\tm1\t2024-06-27T15:00:00.000000+00:00\tuser\ta Timeout here' \
        $'b\tm3\t2020-06-27T15:00:02.500000+00:00\ttool\ttwo lines, timeout'
    stderr_empty
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

@test "hist-search: neither keys nor other fields count" {
    put needle user x 2024-06-27T15:00:00.000000+00:00 '{"id":"needle","model":"needle","files":["needle"],"tool_calls":[{"id":"needle","name":"f","args":{"needle":"value"},"x":"needle"}],"content2":"needle","x":{"content":"needle"},"thinking":[{"content":"needle"}]}'
    put s needle y
    misses needle content session_id user '"' '{' 2024
    put s user 'a needle'
    run_expect 0 hist-search -c needle
    stdout_is 1
}

# called CALL: a message without text that calls tools.
called() {
    put s assistant '' 2024-06-27T15:00:00.000000+00:00 "{\"id\":\"$1\",\"tool_calls\":[$2]}"
}

# found_in ID TEXT...: each text is found in this message alone.
found_in() {
    local text
    for text in "${@:2}"; do
        run_expect 0 hist-search --json -- "$text"
        json_is "$OUT" .id "$1"
    done
}

@test "hist-search: names and arguments of tool calls, in every form" {
    called ours '{"id":"c","name":"Bash","args":{"command":"rm -rf \"build/old\"\nmake","opts":[{"port":8080,"dry":true}]}}'
    called openai '{"id":"c","type":"function","function":{"name":"shell","arguments":"{\"script\":\"say \\\"hi\\\"\\nand \\u00e9 a\\/b\"}"}}'
    called anthropic '{"id":"c","type":"tool_use","name":"Edit","input":{"path":"src/Main.c"}}'
    called broken '{"id":"c","name":"g","args":"{\"unfinish"}'
    found_in ours bash 'RM -RF' '"build/old"' $'old"\nmake' 8080 true
    found_in openai shell 'say "hi"' $'"\nand' É 'a/b'
    found_in anthropic edit src/main.c
    found_in broken '{"unfin'
    misses command port opts script path tool_use function dry null 'Bash rm'
    misses "'" 'a\/b' '\n'
    run_expect 0 hist-search 'rm -rf'
    stdout_is $'s\tours\t2024-06-27T15:00:00.000000+00:00\tassistant\trm -rf "build/old" make'
    run_expect 0 hist-search -o -E 'u.$'
    stdout_is "$(printf 's\t%s\t2024-06-27T15:00:00.000000+00:00\tassistant\t%s\n' ours ue)"
    run_expect 0 hist-search -v -c h
    stdout_is 1
}

@test "hist-search: the same calls in a large history, with and without an index" {
    local i
    called ours '{"id":"c","name":"Bash","args":{"command":"say \"hi/there\"\nmake"}}'
    called openai '{"id":"c","type":"function","function":{"name":"shell","arguments":"{\"script\":\"say \\\"hi\\/there\\\"\\nmake\"}"}}'
    for i in 1 2 3; do
        raw "$(head -c 300000 /dev/zero | tr '\0' x)"
    done
    for i in '"hi/there"' $'re"\nmake' hi/ '"hi' $'\n' 'make'; do
        run_expect 0 hist-search --json -- "$i"
        json_is "$OUT" .id openai ours
        run_expect 0 hist-search -c --in content,tools,model -- "$i"
        stdout_is 2
    done
    misses '\n' '\"' 'hi\/'
}

@test "hist-search: --in says which parts are searched" {
    put one user 'the content' 2024-06-27T15:00:00.000000+00:00 '{"id":"m-1","model":"gpt-x","files":["src/a.c"],"files_modified":["src/b.c"],"tool_calls":[{"id":"c","name":"tool","args":{"k":"argument"}}]}'
    local part
    for part in 'content content' 'tools argument' 'tools tool' 'files a.c' 'files b.c' 'model gpt' 'id m-1' 'id one' \
        'id,model gpt'; do
        run_expect 0 hist-search -c --in "${part% *}" -- "${part#* }"
        run_expect 1 hist-search -c --in "$([[ $part == content* ]] && echo tools || echo content)" -- "${part#* }"
    done
    run_expect 0 hist-search --in content,files content a.c
    run_expect 2 hist-search --in contents x
    stderr_is "hist-search: bad value 'contents' for --in: did you mean content? (see 'hist-search --help')"
    run_expect 2 hist-search --in content, x
    stderr_is "hist-search: bad value '' for --in: content, tools, files, title, model or id is expected (see 'hist-search --help')"
}

@test "hist-search: several texts are all wanted, in any order, each anywhere in the message" {
    put s user 'retry with exponential backoff'
    put s user 'backoff, then give up'
    called both '{"id":"c","name":"retry","args":{"how":"backoff"}}'
    run_expect 0 hist-search -c backoff RETRY
    stdout_is 2
    run_expect 0 hist-search -c retry backoff exponential
    stdout_is 1
    run_expect 1 hist-search retry nothing
    run_expect 0 hist-search -v -c retry backoff
    stdout_is 1
    run_expect 0 hist-search -c -E 'ex.*al' '^retry'
    stdout_is 1
    run_expect 1 hist-search -c -w retry back
    stdout_is 0
    run_expect 2 hist-search -e x y
    stderr_is "hist-search: TEXT cannot be combined with --regexp (see 'hist-search --help')"
    # shellcheck disable=SC2046 # as many words
    run_expect 2 hist-search $(seq 65)
    stderr_is "hist-search: at most 64 texts can be searched for at once (see 'hist-search --help')"
}

# The language itself is tested by query_test.c and in the page.
@test "hist-search: --query beside texts and options, in several histories; what is wrong in it" {
    mkdir -p alpha beta
    hist_line s1 user 'a retry with **exponential** backoff' 2026-11-01T10:00:00.000000+00:00 '{"id":"m1"}' >alpha/h
    hist_line s1 assistant 'backoff in python' 2026-11-02T10:00:00.000000+00:00 '{"id":"m2","model":"opus-4"}' >>alpha/h
    hist_line s2 user 'retry python Retrying backoff' 2026-11-03T10:00:00.000000+00:00 '{"id":"m3"}' >beta/h
    both=(--history alpha/h --history beta/h)
    run_expect 0 hist-search "${both[@]}" --query 'backoff retry'
    stdout_is $'s2\tm3\t2026-11-03T10:00:00.000000+00:00\tuser\tretry python Retrying backoff\tbeta/h' \
        $'s1\tm1\t2026-11-01T10:00:00.000000+00:00\tuser\ta retry with **exponential** backoff\talpha/h'
    run_expect 0 hist-search "${both[@]}" -c --query '"exponential backoff" -python'
    stdout_is 1
    run_expect 0 hist-search "${both[@]}" -l --query 'backoff -role:user'
    stdout_is $'s1\talpha/h'
    run_expect 0 hist-search "${both[@]}" -L --query 'python role:user'
    stdout_is $'s1\talpha/h'
    run_expect 0 hist-search "${both[@]}" --json --query repo:alpha -r user
    stdout_json .id m1
    run_expect 0 hist-search "${both[@]}" -o --query 'title:retry "with exponential"'
    stdout_is $'s1\tm1\t2026-11-01T10:00:00.000000+00:00\tuser\twith **exponential\talpha/h'
    run_expect 0 hist-search "${both[@]}" -w -o --query 'retry python'
    stdout_is $'s2\tm3\t2026-11-03T10:00:00.000000+00:00\tuser\tretry\tbeta/h' \
        $'s2\tm3\t2026-11-03T10:00:00.000000+00:00\tuser\tpython\tbeta/h'
    run_expect 0 hist-search "${both[@]}" -c --case-sensitive --query Retry
    stdout_is 1
    run_expect 0 hist-search "${both[@]}" -c -E --query 'backoff' 'retry|opus' '^r'
    stdout_is 1
    run_expect 0 hist-search "${both[@]}" -v -c --query 'python repo:alpha'
    stdout_is 1
    run_expect 0 hist-search "${both[@]}" --in model -c --query opus
    stdout_is 1
    run_expect 0 hist-search "${both[@]}" -C 1 --query 'model:opus'
    stdout_is $'s1\tm1\t2026-11-01T10:00:00.000000+00:00\tuser\ta retry with **exponential** backoff\t-\talpha/h' \
        $'s1\tm2\t2026-11-02T10:00:00.000000+00:00\tassistant\tbackoff in python\t:\talpha/h'
    run_expect 0 hist-search "${both[@]}" -c --query ''
    stdout_is 3
    hist_line s2 title 'nginx proxy' >>beta/h
    run_expect 0 hist-search "${both[@]}" -l --query 'title:NGINX'
    stdout_is $'s2\tbeta/h'
    run_expect 1 hist-search "${both[@]}" --query 'title:retry repo:beta'
    run_expect 1 hist-search "${both[@]}" --query 'repo:gamma'
    stdout_empty
    stderr_empty
    run_expect 2 hist-search --query 'retry role:'
    stderr_is "hist-search: 'role:' needs a value (see 'hist-search --help')"
    run_expect 2 hist-search --query since:gibberish
    stderr_is "hist-search: bad time 'gibberish' for since: a date, yesterday or 7d is expected (see 'hist-search --help')"
    run_expect 2 hist-search --query -until:7d
    stderr_is "hist-search: '-until:' is not possible: since: is its opposite (see 'hist-search --help')"
}

@test "hist-search: --in-session, texts in different messages; on a terminal the hits of a session stand together" {
    {
        hist_line a user 'how to retry' '' '{"timestamp":"2026-11-01T10:00:00Z","id":"a1"}'
        hist_line b user 'retry at once' '' '{"timestamp":"2026-11-01T10:00:01Z","id":"b1"}'
        hist_line a assistant 'with backoff' '' '{"timestamp":"2026-11-01T10:00:02Z","id":"a2","model":"opus"}'
        hist_line c user 'backoff: retry' '' '{"timestamp":"2026-11-01T10:00:03Z","id":"c1","files":["main.c"]}'
        hist_line a user 'thanks' '' '{"timestamp":"2026-11-01T10:00:04Z","id":"a3"}'
        hist_line c user 'python' '' '{"timestamp":"2026-11-01T10:00:05Z","id":"c2"}'
    } >>"$HISTORY"
    ids() { run_expect 0 hist-search "$@" && cut -f 2 "$OUT" | paste -sd ' ' >got && mv got "$OUT"; }
    ids --in-session backoff retry
    stdout_is 'c1 a2 a1'
    ids --in-session --reverse backoff retry
    stdout_is 'a1 a2 c1'
    ids --in-session -n 2 --query backoff retry
    stdout_is 'c1 a2'
    ids --in-session --query 'retry model:opus'
    stdout_is 'a2 a1'
    ids --in-session --query 'retry file:main.c'
    stdout_is c1
    ids --in-session --query 'retry -python'
    stdout_is 'b1 a1'
    ids --in-session --query 'retry -model:opus -file:main'
    stdout_is b1
    run_expect 1 hist-search --in-session --query 'tool:bash retry'
    stdout_empty
    run_expect 0 hist-search --in-session -l backoff retry
    stdout_is c a
    run_expect 0 hist-search --in-session -l --reverse backoff retry
    stdout_is a c
    run_expect 0 hist-search --in-session -c backoff retry
    stdout_is 3
    run_expect 0 hist-search --in-session -q backoff retry
    stdout_empty
    run_expect 1 hist-search --in-session -q -r user backoff how
    run_expect 0 hist-search --in-session --json backoff retry
    stdout_json .id c1 a2 a1
    run_expect 0 hist-search --in-session -o backoff retry
    cut -f 5 "$OUT" | paste -sd ' ' >got
    [[ $(<got) == 'backoff retry backoff retry' ]]
    ids --in-session -B 1 -A 1 --query 'how backoff'
    stdout_is 'a1 a2 a3'
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never -e retry -e backoff
    sed -E 's/ .*//' "$OUT" | paste -sd ' ' >got
    [[ $(<got) == 'c a a b' ]]
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never --reverse -e retry -e backoff
    sed -E 's/ .*//' "$OUT" | paste -sd ' ' >got
    [[ $(<got) == 'b a a c' ]]
    ids -e retry -e backoff
    stdout_is 'c1 a2 b1 a1'
    run_expect 0 hist-search --in-session --nearly -l backoff retry
    stdout_is c a
    stderr_empty
    run_expect 0 hist-search --in-session --nearly -l backoff nowhere retry
    stdout_is c a
    stderr_is 'hist-search: no session has all of the texts; these have all but one'
    run_expect 0 hist-search --in-session --nearly -c --query 'nowhere retry -python'
    stdout_is 2
    run_expect 1 hist-search --in-session --nearly nowhere none retry
    stderr_empty
    run_expect 1 hist-search --in-session --nearly nowhere
    # Only a person gets the hint.
    run_expect 1 hist-search nowhere retry
    stderr_empty
    run_expect 1 on_tty --raw hist-search --no-pager --query 'nowhere retry'
    stdout_empty
    run_expect 0 hist-search --in-session -l how thanks
    run_expect 1 hist-search how thanks
    stderr_empty
    for texts in 'how thanks' '-E h[o]w thanks' '-w how thanks' '-l how thanks' '-c how thanks' \
        '--json how thanks' '--query=thanks+how'; do
        read -ra words <<<"$texts"
        run_expect 1 on_tty --raw hist-search --no-pager "${words[@]//+/ }"
        [[ $texts != -c* ]] || sed -i 1d "$OUT"
        stdout_is 'hist-search: no message has all of the texts; --in-session finds the sessions that do'
    done
    # It would find nothing with these.
    for texts in '-r assistant how thanks' '-s b how thanks' '-w ho thanks' '--since 2999-01-01 how thanks'; do
        read -ra words <<<"$texts"
        run_expect 1 on_tty --raw hist-search --no-pager "${words[@]}"
        stdout_empty
    done
    run_expect 1 on_tty --raw hist-search --no-pager -q nowhere retry
    stdout_empty
    run_expect 2 hist-search --nearly x
    stderr_is "hist-search: --nearly needs --in-session (see 'hist-search --help')"
    run_expect 2 hist-search --in-session -L x
    stderr_is "hist-search: --in-session goes with neither --invert-match nor --sessions-without-match (see 'hist-search --help')"
    # shellcheck disable=SC2046 # as many words
    run_expect 2 hist-search --in-session $(seq 65)
    stderr_is "hist-search: at most 64 texts can be searched for at once (see 'hist-search --help')"
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
    stderr_is "hist-search: unknown option '--force' (see 'hist-search --help')"
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

@test "hist-search: --limit, all unless told in a pipe and 100 on a terminal; --reverse turns the newest round" {
    jq -cn 'range(1; 121) | {id: "m\(.)", session_id: "s", timestamp: "t", role: "user", content: "hit \(.)"}' >"$HISTORY"
    run_expect 0 hist-search hit
    lines_are 120
    stdout_line 1 $'s\tm120\tt\tuser\thit 120'
    [[ $(hist-search hit | wc -l) == $(hist-search -c hit) ]]
    run_expect 0 hist-search --json hit
    lines_are 120
    run_expect 0 on_tty --raw --fds 1 hist-search --no-pager hit
    lines_are 100
    run_expect 0 on_tty --raw --fds 1 hist-search --json --no-pager hit
    lines_are 100
    run_expect 0 on_tty --raw hist-search --no-pager --limit all hit
    lines_are 120
    run_expect 0 hist-search -m 2 hit
    stdout_is $'s\tm120\tt\tuser\thit 120' $'s\tm119\tt\tuser\thit 119'
    run_expect 0 hist-search --json --limit 3 hit
    stdout_json .content 'hit 120' 'hit 119' 'hit 118'
    run_expect 0 hist-search --json --limit 3 --reverse hit
    stdout_json .content 'hit 118' 'hit 119' 'hit 120'
    run_expect 0 hist-search -n 2 --reverse hit
    stdout_is $'s\tm119\tt\tuser\thit 119' $'s\tm120\tt\tuser\thit 120'
    run_expect 0 hist-search --reverse hit
    lines_are 120
    stdout_line 1 $'s\tm1\tt\tuser\thit 1'
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
    run_expect 2 hist-search --limit 0 x
    stderr_is "hist-search: bad value '0' for --limit: a number from 1 or 'all' is expected (see 'hist-search --help')"
}

# ---- patterns

@test "hist-search: characters are the same when their simple case folding is" {
    put s user 'σίσυφος Σίσυφοσ ß Straße 5 K İx ıx ix'
    finds ΣΊΣΥΦΟΣ σίσυφοσ ΣίσυΦος ẞ STRAẞE '5 k' '5 K' İX ıX IX
    misses strasse İs 'x İ' iİ
    rm "$HISTORY"
    put s user 'İstanbul ısı'
    misses istanbul ISTANBUL ISI isi
    finds İSTANBUL ısı
}

@test "hist-search: --case-sensitive" {
    put s user 'Hello Ωμέγα K'
    finds hello ωμέγα k
    run_expect 0 hist-search -q --case-sensitive Hello
    run_expect 1 hist-search -q --case-sensitive hello
    run_expect 0 hist-search -q --case-sensitive μέγα
    run_expect 1 hist-search -q --case-sensitive ωμέγα
    run_expect 1 hist-search -q --case-sensitive k
    run_expect 0 hist-search -q --case-sensitive -E 'H.l+o'
    run_expect 1 hist-search -q --case-sensitive -E 'h.l+o'
    run_expect 0 hist-search -q --case-sensitive -w Hello
    run_expect 1 hist-search -q --case-sensitive -w HELLO
}

@test "hist-search: -E, regular expressions on the decoded content" {
    raw 'caf\u00e9 \ud83d\ude00x\nsecond line'
    local pattern
    for pattern in 'caf.' '^second' 'x$' 'CAFÉ\s' '^caf\w 😀' '(?s)x.second' '\p{So}X' 'l[i]ne$|absent'; do
        run_expect 0 hist-search -q -E "$pattern"
    done
    for pattern in '^line' 'x.second' 'u00e9' '\\n' 'caf..x' '^$'; do
        run_expect 1 hist-search -q -E "$pattern"
    done
    run_expect 0 hist-search --extended-regexp 'é .x'
    stdout_has $'\tcafé 😀x second line'
    # Without it, and whatever the locale.
    misses 'caf.' '^second'
    for pattern in C POSIX en_US.ISO-8859-1 C.UTF-8; do
        LC_ALL=$pattern run_expect 0 hist-search -q -E 'CAFÉ .x'
        LC_ALL=$pattern run_expect 0 hist-search -q CAFÉ
    done
}

@test "hist-search: -E of what is no regular expression says where" {
    put s user x
    run_expect 2 hist-search -E 'a(b'
    stdout_empty
    stderr_is "hist-search: bad regular expression 'a(b': missing closing parenthesis (offset 3) (see 'hist-search --help')"
    run_expect 2 hist-search -q -E -w -e x -e '[z-a]'
    stderr_has "'[z-a]': range out of order in character class (offset "
    run_expect 2 hist-search -E 'x)|(x' -w
    stderr_has 'unmatched closing parenthesis (offset '
    run_expect 2 hist-search -E '\C'
    stderr_has "bad regular expression '\\C'"
}

@test "hist-search: an expression that takes too long is given up, message by message" {
    put s user aac '' '{"id":"m1"}'
    put s user "$(times a 60)b" '' '{"id":"m2"}'
    put s user aad '' '{"id":"m3"}'
    run_expect 2 hist-search -E '(?:(a+)+)+[cd]'
    cut -f 2 "$OUT" >ids
    is ids ids m3 m1
    stderr_is "hist-search: cannot search message 'm2': match limit exceeded"
    run_expect 2 hist-search -c -E '(?:(a+)+)+[cd]'
    stdout_is 2
    run_expect 2 hist-search -v -c -E '(?:(a+)+)+[cd]'
    stdout_is 0
    run_expect 2 hist-search -C 1 -E '(?:(a+)+)+[cd]'
    cut -f 2,6 "$OUT" >ids
    is ids ids m1$'\t': m2$'\t'- m3$'\t':
    # --quiet is content with a match.
    run_expect 0 hist-search -q -E '(?:(a+)+)+[cd]'
    run_expect 2 hist-search -q -E '(?:(a+)+)+[xy]'
    # Three are named.
    for i in 4 5 6 7; do put s user "$(times a 60)b" '' "{\"id\":\"m$i\"}"; done
    run_expect 2 hist-search -c -E '(?:(a+)+)+[cd]'
    stdout_is 2
    stderr_is "hist-search: cannot search message 'm7': match limit exceeded" \
        "hist-search: cannot search message 'm6': match limit exceeded" \
        "hist-search: cannot search message 'm5': match limit exceeded" 'hist-search: cannot search 2 more messages'
}

@test "hist-search: a long text is found, and one that is too long is refused" {
    put s user "x$(times A 30000)x"
    run_expect 0 hist-search -c "$(times a 30000)"
    stdout_is 1
    run_expect 2 hist-search -c "$(times a 40000)"
    stdout_empty
    stderr_is "hist-search: '$(times a 200)' is too long to be searched for (see 'hist-search --help')"
}

@test "hist-search: -w, whole words in every script" {
    put s user 'this is test_1 étés (naïve) Ωμέγα-3 foo.bar'
    local text
    for text in this IS test_1 ÉTÉS naïve ωμέγα 3 foo bar foo.bar is\ test_1 Ωμέγα-3 '3 foo'; do
        run_expect 0 hist-search -q -w -- "$text"
    done
    for text in his test 1 été na ve μέγα oo 'fo' '3 f' '(n' ' (' . _; do
        run_expect 1 hist-search -q -w -- "$text"
    done
    run_expect 0 hist-search -q -w -E 'f.o'
    run_expect 1 hist-search -q -w -E 'f.'
    run_expect 0 hist-search -q -w -E 'te|this|th'
    run_expect 1 hist-search -q -E --word-regexp 'te|th'
}

@test "hist-search: -e, any of several texts" {
    some
    run_expect 0 hist-search --json -e 'hit 1' -e nothing --regexp='HIT 6'
    stdout_json .content 'hit 6' nothing 'hit 1'
    run_expect 0 hist-search --json -E -e '[12]$' -e ^no
    stdout_json .content nothing 'hit 2' 'hit 1'
    run_expect 1 hist-search -e absent -e missing
    run_expect 0 hist-search -c -e -- -e hit
    stdout_is 6
    run_expect 2 hist-search -e hit text
    stderr_is "hist-search: TEXT cannot be combined with --regexp (see 'hist-search --help')"
}

@test "hist-search: -v, what does not match" {
    some
    run_expect 0 hist-search --json -v 'hit'
    stdout_json .content nothing
    run_expect 0 hist-search -c --invert-match nothing
    stdout_is 6
    run_expect 1 hist-search -v ''
    stdout_empty
    run_expect 0 hist-search -v -r user -l nothing
    stdout_is c a
    run_expect 0 hist-search -v -e 'hit 1' -e 'hit 2' -e 'hit 3' -e 'hit 4' -e 'hit 5' -c
    stdout_is 2
    run_expect 0 hist-search -v -r user -n 1 'hit 1'
    stdout_matches $'\tuser\thit 6$'
    # It selects, but there is no match to print.
    run_expect 0 hist-search -v -o nothing
    stdout_empty
}

@test "hist-search: -o, each match by itself" {
    put s user $'One\n one ÖNE' '' '{"timestamp":"t","id":"m1"}'
    put s tool "two $(times x 300)" '' '{"timestamp":"t","id":"m2"}'
    run_expect 0 hist-search -o one
    stdout_is $'s\tm1\tt\tuser\tOne' $'s\tm1\tt\tuser\tone'
    run_expect 0 hist-search --only-matching -e öne -e one -e two
    stdout_is $'s\tm2\tt\ttool\ttwo' $'s\tm1\tt\tuser\tOne' $'s\tm1\tt\tuser\tone' $'s\tm1\tt\tuser\tÖNE'
    # Whole, on one line.
    run_expect 0 hist-search -o -E 'x+|e\s+o'
    stdout_is $'s\tm2\tt\ttool\t'"$(times x 300)" $'s\tm1\tt\tuser\te o'
    # Nothing is no match to print, and a message all the same.
    run_expect 0 hist-search -o ''
    stdout_empty
    run_expect 0 hist-search -o -E 'z*'
    stdout_empty
    run_expect 0 hist-search -o --reverse -E '\bo|t'
    stdout_is $'s\tm1\tt\tuser\tO' $'s\tm1\tt\tuser\to' $'s\tm2\tt\ttool\tt'
    run_expect 0 hist-search -n 1 -o -e one -e two
    lines_are 1
}

@test "hist-search: many matches in one long message" {
    raw "$(times 'a' 200000)$(times é 100000)"
    run_expect 0 hist-search -o É
    lines_are 100000
    run_expect 0 hist-search -o -E '\w{1000}'
    lines_are 300
    run_expect 1 hist-search -o -w A
    stdout_empty
}

# ---- which messages

# at TIME CONTENT: a message of that time.
at() {
    put s user "$2" "$1"
}

@test "hist-search: --since and --until" {
    at 2024-06-26T23:59:59.999999+00:00 'hit 1'
    at 2024-06-27T00:00:00.000000+00:00 'hit 2'
    at 2024-06-27T23:59:59.999999+00:00 'hit 3'
    at 2024-06-28T00:00:00.000000+00:00 'hit 4'
    hist_line s user 'hit 5' | jq -c '.timestamp = "no time"' >>"$HISTORY"
    run_expect 0 hist-search --json --since 2024-06-27 hit
    stdout_json .content 'hit 4' 'hit 3' 'hit 2'
    run_expect 0 hist-search --json --until=2024-06-27 hit
    stdout_json .content 'hit 3' 'hit 2' 'hit 1'
    run_expect 0 hist-search --json --since 2024-06-27 --until 2024-06-27 hit
    stdout_json .content 'hit 3' 'hit 2'
    run_expect 0 hist-search --json --since 2024-06-27T00:00:01 --until '2024-06-27 23:59' hit
    stdout_json .content 'hit 3'
    run_expect 0 hist-search --json --until 2024-06-27T02:00+02:00 hit
    stdout_json .content 'hit 2' 'hit 1'
    TZ=XXX-2 run_expect 0 hist-search --json --since 2024-06-28 hit
    stdout_json .content 'hit 4' 'hit 3'
    run_expect 1 hist-search --since 2024-06-29 hit
    run_expect 0 hist-search -c hit
    stdout_is 5
}

@test "hist-search: --since and --until as distances and days" {
    at "$(date -u +%FT%T.000000+00:00)" 'hit now'
    at "$(date -u -d '1 day ago' +%FT%T.000000+00:00)" 'hit yesterday'
    at "$(date -u -d '6 days ago' +%FT%T.000000+00:00)" 'hit 6'
    at "$(date -u -d '8 days ago' +%FT%T.000000+00:00)" 'hit 8'
    run_expect 0 hist-search --json --since 7d hit
    stdout_json .content 'hit now' 'hit yesterday' 'hit 6'
    run_expect 0 hist-search --json --until 7d hit
    stdout_json .content 'hit 8'
    run_expect 0 hist-search --json --since yesterday --until 20h hit
    stdout_json .content 'hit yesterday'
    run_expect 0 hist-search -q --since 1h hit
    for week in 1w '1 week ago' 1.week.ago 6d24h "last $(date -u +%A)"; do
        run_expect 0 hist-search --json --since "$week" hit
        stdout_json .content 'hit now' 'hit yesterday' 'hit 6'
    done
    run_expect 2 hist-search --since 7 hit
    stderr_is "hist-search: bad value '7' for --since: a time such as 2024-06-27, 7d, 'monday' or '2 weeks ago' is expected (see 'hist-search --help')"
    run_expect 2 hist-search --until 2024-02-30 hit
    stderr_has "bad value '2024-02-30' for --until"
}

@test "hist-search: --model, --file" {
    put s assistant 'hit 1' '' '{"model":"gpt-5","provider":"openai"}'
    put s assistant 'hit 2' '' '{"model":"qwen3:8b","provider":"ollama","files_modified":["src/a.c"]}'
    put s user 'hit 3' '' '{"files":["./src/a.c","b é"]}'
    put s user 'hit 4 gpt-5 src/a.c' '' '{"reply_to":"gpt-5"}'
    run_expect 0 hist-search --json --model gpt-5 hit
    stdout_json .content 'hit 1'
    run_expect 0 hist-search --json --model openai:gpt-5 --model qwen3:8b hit
    stdout_json .content 'hit 2' 'hit 1'
    run_expect 1 hist-search --model ollama:gpt-5 hit
    run_expect 1 hist-search --model qwen3 hit
    run_expect 0 hist-search --json --file src/a.c hit
    stdout_json .content 'hit 3' 'hit 2'
    run_expect 0 hist-search --json --file=./src/a.c -r user hit
    stdout_json .content 'hit 3'
    run_expect 0 hist-search --json --file 'b é' --file x hit
    stdout_json .content 'hit 3'
    run_expect 1 hist-search --file a.c hit
    run_expect 1 hist-search --file src hit
}

@test "hist-search: -L gives the sessions without a match" {
    some
    run_expect 0 hist-search -L 'hit 6'
    stdout_is a b
    run_expect 0 hist-search --sessions-without-match --reverse 'hit 6'
    stdout_is b a
    run_expect 1 hist-search -L hit
    stdout_empty
    # Of those that have messages that are asked for.
    run_expect 0 hist-search -L -r user hit
    stdout_is b
    run_expect 1 hist-search -L -r system hit
    run_expect 0 hist-search -L -s a -s b 'hit 3'
    stdout_is a
    run_expect 0 hist-search -l --reverse -e 'hit 1' -e 'hit 6'
    stdout_is a c
    jq -cn 'range(1; 121) | {id: "m\(.)", session_id: "s\(.)", timestamp: "t", role: "user", content: "\(.)"}' >"$HISTORY"
    run_expect 0 hist-search -L -n 1 absent
    lines_are 120
}

# ---- context

# talk: two sessions by turns, m1 to m9.
talk() {
    local i
    for i in a:one a:two b:three a:four b:five a:six a:seven b:eight a:nine; do
        put "${i%:*}" user "${i#*:}" '' "{\"timestamp\":\"t\",\"id\":\"m$((LINES_MADE + 1))\"}"
    done
}

# context_is ITEM...: the ids and marks; `--` for a line between two groups.
context_is() {
    awk -F '\t' '{ print $0 == "--" ? $0 : $2 $6 }' "$OUT" >"$BATS_TEST_TMPDIR/context"
    is context "$BATS_TEST_TMPDIR/context" "$@"
}

@test "hist-search: -A, -B, -C print messages of the same session" {
    talk
    run_expect 0 hist-search -C 1 six
    stdout_is $'a\tm4\tt\tuser\tfour\t-' $'a\tm6\tt\tuser\tsix\t:' $'a\tm7\tt\tuser\tseven\t-'
    run_expect 0 hist-search -A 2 two
    context_is m2: m4- m6-
    run_expect 0 hist-search --before-context=2 five
    context_is m3- m5:
    run_expect 0 hist-search -C 100 four
    context_is m1- m2- m4: m6- m7- m9-
    run_expect 0 hist-search -C 1 -A 0 four
    context_is m2- m4:
    run_expect 0 hist-search -C 0 four
    stdout_is $'a\tm4\tt\tuser\tfour'
    run_expect 1 hist-search -C 3 absent
    stdout_empty
    # What is round a match need not be what is asked for.
    put b assistant ten '' '{"timestamp":"t","id":"m10"}'
    run_expect 0 hist-search -r assistant -B 1 e
    context_is m8- m10:
}

@test "hist-search: groups of context, apart and joined" {
    talk
    run_expect 0 hist-search -C 1 -e one -e nine -e three
    context_is m7- m9: -- m3: m5- -- m1: m2-
    run_expect 0 hist-search -C 1 --reverse -e one -e nine -e three
    context_is m1: m2- -- m3: m5- -- m7- m9:
    run_expect 0 hist-search -A 1 -e one -e four
    context_is m1: m2- m4: m6-
    run_expect 0 hist-search -C 1 -e one -e six
    context_is m1: m2- m4- m6: m7-
    run_expect 0 hist-search -B 1 -e two -e seven
    context_is m6- m7: -- m1- m2:
    # The limit is one of matches; a match more is context where it stands near.
    run_expect 0 hist-search -n 1 -B 1 -e six -e seven
    context_is m6- m7:
    run_expect 0 hist-search -n 1 -B 3 -e one -e nine
    context_is m4- m6- m7- m9:
    run_expect 0 hist-search --json -C 1 -e one -e nine
    stdout_json .id m7 m9 m1 m2
    run_expect 0 hist-search -v -A 1 -e one -e two -e four -e six -e seven -e nine
    context_is m3: m5: m8:
}

@test "hist-search: context on a terminal" {
    talk
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never -C 1 two
    sed -i 's/  /|/g' "$OUT"
    stdout_is 'a||user|- one' 'a||user|: two' 'a||user|- four'
    run_expect 0 on_tty --raw hist-search -A 1 two
    stdout_matches $': \e\\[1;31mtwo\e\\[0m' $'^\e\\[2ma    user  - four\e\\[0m'
}

# ---- several histories

@test "hist-search: several histories, each message with its own" {
    mkdir dir
    hist_line a user 'hit 1' '' '{"timestamp":"t","id":"m1"}' >one
    hist_line a user 'hit 2' '' '{"timestamp":"t","id":"m2"}' >dir/two
    hist_line b user 'hit 3' '' '{"timestamp":"t","id":"m3"}' >>dir/two
    run_expect 0 hist-search --history one --history dir/two hit
    stdout_is $'a\tm1\tt\tuser\thit 1\tone' $'b\tm3\tt\tuser\thit 3\tdir/two' $'a\tm2\tt\tuser\thit 2\tdir/two'
    run_expect 0 hist-search --history one hit
    stdout_is $'a\tm1\tt\tuser\thit 1'
    run_expect 0 hist-search --history one --history dir/two -l hit
    stdout_is $'a\tone' $'b\tdir/two' $'a\tdir/two'
    run_expect 0 hist-search --history one --history dir/two -L 'hit 2'
    stdout_is $'a\tone' $'b\tdir/two'
    run_expect 0 hist-search --history one --history dir/two -c hit
    stdout_is 3
    run_expect 0 hist-search --history one --history dir/two --json -n 2 hit
    stdout_json .id m1 m3
    run_expect 0 hist-search --history one --history dir/two -o -E '[13]'
    stdout_is $'a\tm1\tt\tuser\t1\tone' $'b\tm3\tt\tuser\t3\tdir/two'
    run_expect 0 hist-search --history one --history dir/two -C 1 -e 1 -e 2
    stdout_is $'a\tm1\tt\tuser\thit 1\t:\tone' -- $'a\tm2\tt\tuser\thit 2\t:\tdir/two'
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never --history one --history dir/two hit
    sed -i 's/  /|/g' "$OUT"
    stdout_is one 'a||user|hit 1' dir/two 'b||user|hit 3' 'a||user|hit 2'
}

@test "hist-search: a session in one history of several; one that cannot be read" {
    hist_line a user 'hit 1' '' '{"timestamp":"t","id":"m1"}' >one
    hist_line b user 'hit 2' '' '{"timestamp":"t","id":"m2"}' >two
    run_expect 0 hist-search --history one --history two -s b --json hit
    stdout_json .id m2
    stderr_empty
    run_expect 0 hist-search --history one --history two -s last --json hit
    stdout_json .id m1 m2
    echo b >names
    run_expect 0 hist-search --history one --history two -s - --json hit <names
    stdout_json .id m2
    run_expect 1 hist-search --history one --history two -s c -s b --json hit
    stdout_json .id m2
    stderr_is "hist-search: no session 'c'"
    mkdir folder
    run_expect 2 hist-search --history folder --history two --json hit
    stdout_json .id m2
    stderr_is "hist-search: cannot open 'folder': is a directory"
}

@test "hist-search: --all, also the history that is used outside of repositories, from anywhere" {
    unset CHAT_HISTORY
    use_echo
    make_repo repo
    run_expect 0 chat -q 'needle outside'
    (cd repo && chat -q 'needle inside' >/dev/null)
    local place
    for place in . repo; do
        cd "$place"
        run_expect 0 hist-search --all -c needle
        stdout_is 4
        run_expect 0 hist-search --all -r user -o needle
        lines_are 2
    done
    # It is there even if no other history is.
    rm -r "$HOME/.local/state" "$HOME/.local/share/aicoder/repositories"
    run_expect 0 hist-search --all -c needle
    stdout_is 2
}

@test "hist-search: --all, every history of the user, the last one first" {
    unset CHAT_HISTORY
    use_echo
    local name
    for name in one two gone swapped cloned; do
        make_repo "$name"
        (cd "$name" && chat -q -s "$name" "hit $name" >/dev/null)
    done
    touch -d 2024-01-01 one/.git/aicoder/history.jsonl
    touch -d 2024-01-02 two/.git/aicoder/history.jsonl
    touch -d 2024-01-03 gone/.git/aicoder/history.jsonl
    rm -r gone
    mv swapped/.git/aicoder old && cp -r old swapped/.git/aicoder
    touch -d 2024-01-05 swapped/.git/aicoder/history.jsonl
    touch -d 2024-01-04 old/history.jsonl
    make_repo other
    mkdir other/.aicoder
    hist_line x user 'hit x' >other/.aicoder/history.jsonl
    # Only what was never used here is not searched; what is gone was kept.
    run_expect 0 hist-search --all -r user hit
    cut -f 1,6 "$OUT" >found
    kept=$HOME/.local/share/aicoder/repositories/${WORK//\//%}
    is found found cloned$'\t'"$PWD/cloned/.git/aicoder/history.jsonl" \
        swapped$'\t'"$PWD/swapped/.git/aicoder/history.jsonl" swapped$'\t'"$kept%swapped.jsonl" \
        gone$'\t'"$kept%gone.jsonl" two$'\t'"$PWD/two/.git/aicoder/history.jsonl" one$'\t'"$PWD/one/.git/aicoder/history.jsonl"
    run_expect 0 hist-search --all -c hit
    stdout_is 12
    # One that is named counts once.
    rm -r swapped gone cloned "$HOME/.local/share/aicoder/repositories" 2>/dev/null || :
    run_expect 0 hist-search --all --history one/.git/aicoder/history.jsonl --history other/.aicoder/history.jsonl -r user -l hit
    stdout_is "two"$'\t'"$PWD/two/.git/aicoder/history.jsonl" $'one\tone/.git/aicoder/history.jsonl' $'x\tother/.aicoder/history.jsonl'
    # The name is there even when it is the only one.
    rm -r one
    run_expect 0 hist-search --all -l hit
    stdout_is "two"$'\t'"$PWD/two/.git/aicoder/history.jsonl"
    rm -r two
    run_expect 1 hist-search --all hit
    run_expect 1 hist-search --all -c hit
    stdout_is 0
    rm -r "$HOME/.local/state"
    run_expect 1 hist-search --all hit
    stdout_empty
    stderr_empty
}

@test "hist-search: options of grep that do not go together" {
    local options
    for options in '-l -c' '-l -L' '-c -L'; do
        # shellcheck disable=SC2086
        run_expect 2 hist-search $options x
        stderr_is "hist-search: only one of --sessions, --sessions-without-match and --count can be given (see 'hist-search --help')"
    done
    for options in '-o --json' '-o -l' '-o -L' '-o -c'; do
        # shellcheck disable=SC2086
        run_expect 2 hist-search $options x
        stderr_has '--only-matching goes with none of'
    done
    for options in '-A 1 -o' '-B 1 -l' '-C 1 -c' '-C 1 -L'; do
        # shellcheck disable=SC2086
        run_expect 2 hist-search $options x
        stderr_has 'messages of context go with none of'
    done
    run_expect 2 hist-search -L --json x
    stderr_has '--json does not go with --sessions-without-match'
    run_expect 2 hist-search -A x x
    stderr_is "hist-search: bad value 'x' for --after-context: a number is expected (see 'hist-search --help')"
}

@test "hist-search: -q stops at the first match" {
    put s user 'hit early'
    head -c 3000000 /dev/zero | tr '\0' '\n' >>"$HISTORY"
    put s user 'hit late'
    traced -o trace -e trace=pread64 hist-search -q hit
    [[ $(wc -l <trace) -le 3 ]] || fail "$(wc -l <trace) reads"
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
    put s user "$(times x 300)hit$(times y 300)" 2024-06-27T15:00:01.000000+00:00
    run_expect 0 on_tty --raw --size 80x20 hist-search --color=never -n 1 hit
    [[ $(head -n 1 "$OUT" | wc -m) -le 81 ]]
    stdout_matches 'x…?hit|xhity'
}

@test "hist-search: -i and -F say what is the default, the last of -E and -F and of -i and --case-sensitive counts" {
    put s user 'a.B'
    put s user 'axb'
    run_expect 0 hist-search -c -i -F a.b
    stdout_is 1
    run_expect 0 hist-search -c -E a.b
    stdout_is 2
    run_expect 0 hist-search -c -E -F a.b
    stdout_is 1
    run_expect 0 hist-search -c --case-sensitive --ignore-case -F -E a.b
    stdout_is 2
    run_expect 0 hist-search -c -i --case-sensitive -E a.b
    stdout_is 1
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
