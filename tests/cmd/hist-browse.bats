#!/usr/bin/env bats
#
# hist-browse: the real program in tmux, its screens compared, its keys pressed.

# shellcheck disable=SC1003,SC2016,SC2030,SC2031

load ../helper
load ../tmux

setup() {
    sandbox
    use_history
    tmux_begin
    export SCREEN_FROM=0
}

teardown() {
    tmux_end
    sandbox_end
}

# Three sessions: plan (2 messages), fix (4, with a tool), now (1, the last used).
worked() {
    {
        hist_line plan user 'plan the parser' 2024-01-01T10:00:00.000000+00:00
        hist_line plan assistant 'First a **lexer**, then `parse()`.' 2024-01-01T10:00:05.000000+00:00
        hist_line fix user 'fix config.c' 2024-02-01T10:00:00.000000+00:00
        hist_line fix assistant '' 2024-02-01T10:00:01.000000+00:00 \
            '{"tool_calls":[{"id":"c1","name":"edit","args":{"path":"config.c"}}]}'
        hist_line fix tool 'edited three lines' 2024-02-01T10:00:02.000000+00:00 '{"tool_call_id":"c1"}'
        hist_line fix assistant 'config.c parses again' 2024-02-01T10:00:03.000000+00:00
        hist_line now user 'write tests' 2024-03-01T10:00:00.000000+00:00
    } >"$HISTORY"
}

# A session `long` of so many messages, `message 1` and so on.
long() {
    hist_lines long "$1" >>"$HISTORY"
}

# browse [ARGUMENT]...: hist-browse in the terminal, what it prints in the file `printed`; it is there. Its
# status stands below it when it has ended.
browse() {
    local word line=
    for word; do printf -v line '%s %q' "$line" "$word"; done
    type_lines "hist-browse$line >printed; echo \"status \$?\""
    screen_has 'Esc '
}

# ended STATUS: it ended with it, and the terminal is the shell's again.
ended() {
    screen_has "status $1"
    type_lines 'clear; stty -a | grep -o " icanon" && echo ba""ck'
    screen_has back
}

# delete_chosen: leaves, and deletes the chosen session.
delete_chosen() {
    keys d
    screen_has 'is deleted when you leave; u: undo'
    keys Q
    screen_has '? y: for ever  n: keep  Esc: back'
    keys y
}

# export_to FILE: the same of x.
export_to() {
    keys x
    screen_has 'export to: '
    keys C-u "$1" Enter
}

printed_is() {
    is printed printed "$@"
}

# The screen is exactly this, blank ends of lines and empty lines at the end left out.
screen_is_now() {
    screen
    [[ $(sed 's/ *$//' "$BATS_TEST_TMPDIR/screen") == "$1" ]]
}

screen_is() {
    soon screen_is_now "$1" || {
        diff <(printf '%s\n' "$1") "$BATS_TEST_TMPDIR/screen"
        return 1
    }
}

# The screen has not changed for a while; it is in the file `before`.
screen_rests_now() {
    screen
    cp "$BATS_TEST_TMPDIR/screen" before
    sleep 0.2
    screen
    cmp -s before "$BATS_TEST_TMPDIR/screen"
}

# colours_have REGEX: the screen with its colours has a line that matches.
colours_have() {
    tmux capture-pane -p -e >colours
    grep -qE "$1" colours
}

# is_as_left close|back: closed and opened again it is the same screen, but for the foot, which tells of the box.
is_as_left() {
    soon screen_rests_now
    keys C-c
    ended 130
    browse
    screen_is "$(sed 's/ *$//; $d' before; echo "type to search  F1 help  Enter open  Tab panel  ^O load  Esc $1")"
}

@test "hist-browse: the first screen" {
    worked
    terminal 80x10
    browse
    screen_is '> retry "a phrase" -word since:7d file:main.c                                1/3
─ sessions ─────────────────────── now  1/1 ────────────────────────────────────
24-03-01    1  write tests      │ user  2024-03-01 10:00
24-02-01    4  fix config.c     │ write tests
24-01-01    2  plan the parser  │
                                │
                                │
                                │
                                │
type to search  F1 help  Enter open  Tab panel  ^O load  Esc close'
    keys Down
    screen_is '> retry "a phrase" -word since:7d file:main.c                                2/3
─ sessions ─────────────────────── fix  1/4 ────────────────────────────────────
24-03-01    1  write tests      │ user  2024-02-01 10:00
24-02-01    4  fix config.c     │ fix config.c
24-01-01    2  plan the parser  │
                                │ assistant  2024-02-01 10:00
                                │ ▸ edit {"path":"config.c"}
                                │
                                │ tool  2024-02-01 10:00
type to search  F1 help  Enter open  Tab panel  ^O load  Esc close'
    keys C-c
    ended 130
    printed_empty
}

printed_empty() {
    empty printed printed
}

@test "hist-browse: typing searches, the hit is shown and marked, Enter and the way back" {
    worked
    hist_line plan tool 'it parses' 2024-03-02T10:00:00.000000+00:00 >>"$HISTORY"
    terminal 80x10
    browse
    keys '"CONFIG.C P"'
    screen_is '> "CONFIG.C P"                                                               1/1
─ hits ─────────────────────────── fix  4/4  hit 1 of 1 ────────────────────────
24-02-01 asst config.c parses a…│
                                │ tool  2024-02-01 10:00
                                │ ▸ result of edit edited three lines
                                │
                                │ assistant  2024-02-01 10:00
                                │ config.c parses again
                                │
type to search  F1 help  Enter open  Tab panel  ^O load  Esc back'
    keys C-u
    screen_has ' sessions '
    # Those of one session stand together, although another one is between them.
    keys pars
    screen_has '1/4' '24-03-02 tool it parses' '       └ asst …then' '       └ user plan' '24-02-01 asst config.c'
    screen
    sed -n '3,6s/^\(.\{13\}\).*/\1/p' "$BATS_TEST_TMPDIR/screen" >rows
    is rows rows '24-03-02 tool' '       └ asst' '       └ user' '24-02-01 asst'
    # The list's hit and the one that is looked at.
    soon colours_have $'config.c .*\e\\[[0-9;]*mpars'
    keys Down Down
    screen_has ' plan  1/3  hit 1 of 3 ' 'plan the parser'
    keys Enter
    screen_has '? help' 'Enter load'
    keys n
    screen_has ' plan  2/3  hit 2 of 3 '
    keys N N
    screen_has ' plan  3/3  hit 3 of 3 ' 'search wrapped: on from the end'
    # Another text, in this session only; then the search again.
    keys / lexer Enter
    screen_has ' plan  2/3  hit 1 of 1 ' '> pars'
    keys n
    screen_has 'search wrapped: on from the beginning'
    keys / nowhere Enter
    screen_has 'no hit in these messages'
    keys Escape
    soon screen_lacks_now 'no hit in these'
    keys n
    screen_has ' of 3 '
    # Back: to the list, to the sessions with the one that was chosen, and out.
    keys q
    screen_has 'Enter open' 'Esc back'
    keys q
    screen_has ' sessions ' ' plan  ' 'Esc close'
    keys i zzz
    screen_has '> zzz ' ' no hit '
    keys Escape
    screen_has ' sessions ' 'Esc close'
    keys Escape
    ended 130
}

@test "hist-browse: load makes the session current, prints its id and leaves" {
    worked
    terminal
    browse
    keys Down Enter L
    ended 0
    printed_is fix
    pointer_is "$HISTORY.session" fix
    # From the box, too.
    browse plan
    keys C-o
    ended 0
    printed_is plan
    pointer_is "$HISTORY.session" plan
}

@test "hist-browse: what is chosen goes into a command" {
    worked
    use_echo
    terminal
    type_lines 'chat -N "$(hist-browse lexer)" >answer; echo "status $?"'
    screen_has 'Esc ' 'lexer'
    keys Enter p
    screen_has 'status 0'
    is answer answer 'First a **lexer**, then `parse()`.' '[1 message]'
}

@test "hist-browse: Enter chooses with --print" {
    worked
    terminal
    # Typed ahead: it waits for what it was asked for.
    browse --print id
    keys lexer Enter
    ended 0
    printed_is plan
    browse --print id ''
    keys Down Enter
    ended 0
    printed_is fix
    browse --print text lexer
    keys Enter
    ended 0
    printed_is 'First a **lexer**, then `parse()`.'
    browse --json edited
    keys Enter
    ended 0
    sed -n 5p "$HISTORY" >wanted
    same printed wanted printed
    # Nothing was made current by it.
    [[ ! -e $HISTORY.session ]]
}

@test "hist-browse: if no message has all words, the list has sessions that have them" {
    worked
    terminal
    browse --print id
    keys 'again edited'
    screen_has ' sessions with all words ' '1/2' 'no message has all words; these sessions have them' \
        '24-02-01 asst …arses again' '└ tool edited three' ' fix  4/4  hit 2 of 2 '
    keys Down
    screen_has '2/2' ' fix  3/4  hit 1 of 2 ' 'Esc back'
    screen_lacks 'no message has'
    # A word that no session has; nothing at all.
    keys C-u
    screen_has ' sessions '
    keys 'again zqxjkv plan'
    screen_has ' no hit '
    keys BSpace BSpace BSpace BSpace BSpace
    screen_has ' all words but one ' '1/1' 'no session has all words; these have all but one'
    keys C-u
    screen_has ' sessions '
    keys 'again tool:edit'
    screen_has ' sessions with all words ' '1/2'
    keys Enter
    ended 0
    printed_is fix
}

@test "hist-browse: Tab completes the field at the end of the box, and says which values there are" {
    worked
    terminal
    browse
    keys 'parser ro'
    keys Tab
    screen_has '> parser role: ' 'role:user role:assistant role:tool role:system'
    # Another one puts the values into the box, one after the other; letters do not become keys.
    keys Tab
    screen_has '> parser role:user ' 'role:user role:assistant role:tool role:system'
    keys Tab Tab
    screen_has '> parser role:tool '
    keys BTab
    screen_has '> parser role:assistant ' ' hits '
    keys Tab Tab Tab BTab
    screen_has '> parser role:system '
    keys x
    screen_has '> parser role:systemx '
    keys C-u 'parser role:as' Tab
    screen_has '> parser role:assistant ' ' hits '
    keys ' tool:' Tab
    screen_has '> parser role:assistant tool:edit'
    # What cannot be completed, and the whole name of a field, which may be a word, go to the list.
    keys C-u 'tool' Tab
    screen_has '> tool ' '? help'
    keys i C-u 'parser' Tab
    screen_has '> parser ' '? help'
    keys Escape Escape C-c
    ended 130
}

@test "hist-browse: Tab completes up to a letter in whose first byte the values agree" {
    printf '%s\n' '{"id":"1","session_id":"s","timestamp":"2024-06-27T15:00:00Z","role":"assistant","model":"mé1","content":"c"}' \
        '{"id":"2","session_id":"s","timestamp":"2024-06-27T15:00:01Z","role":"assistant","model":"mè2","content":"c"}' >accents
    terminal
    browse --history accents
    keys 'model:' Tab
    screen_has '> model:m ' 'model:mé1 model:mè2'
    keys Escape Escape C-c
    ended 130
}

@test "hist-browse: a text after ~ is searched for by its meaning" {
    worked
    start_llm --embed car=plan
    unset CHAT_MODEL OPENAI_BASE_URL
    configure 'embed.model = openai:small' "embed.base_url = http://127.0.0.1:$LLM_PORT/v1"
    terminal 100x24
    browse --print id
    keys '~car'
    screen_has ' by meaning ' 'plan the parser'
    # Another text in its place is a search for words again.
    keys C-u 'tests'
    screen_has ' hits ' 'write tests' '1/1'
    keys C-u '~car'
    screen_has ' by meaning '
    keys Enter
    ended 0
    printed_is plan
    # Without a model a sentence says how.
    configure
    browse --print id
    keys C-u '~other'
    screen_has ' no hit ' 'model that makes vectors' 'set embed.model in the'
    keys C-c
    ended 130
}

@test "hist-browse: a query of fields alone counts no hits in the messages" {
    worked
    terminal 80x10
    browse
    keys 'role:user'
    screen_has ' hits ' 'user'
    screen_lacks ' of 0 '
    keys C-c
    ended 130
}

@test "hist-browse: what a search of a whole history has learned is in its skip index afterwards" {
    jq -cn 'range(14000) | {id: "m\(.)", session_id: "s", timestamp: "2024-06-27T15:00:00.000000+00:00", role: "user", content: ("some words \(.) " * 60)}' >big
    sleep 0.1
    terminal
    browse --history big
    keys 'zzqqxx'
    screen_has ' no hit '
    [[ ! -e big.skip ]] || fail 'it was written before the end'
    keys C-c
    ended 130
    [[ -s big.skip ]] || fail "$(ls -l)"
}

@test "hist-browse: of several words the best come first, as with --sort best, and results of tools fold" {
    local i
    {
        hist_line old user 'the cart has no price' 2024-01-01T10:00:00.000000+00:00
        for i in 1 2 3; do hist_line old tool "listing $i: cart, price" "2024-01-01T10:00:0$i.000000+00:00"; done
        hist_line new assistant 'a price for the cart' 2024-02-01T10:00:00.000000+00:00
        for i in 1 2; do hist_line results tool "found $i: cart price" "2024-03-01T10:00:0$i.000000+00:00"; done
    } >"$HISTORY"
    run_expect 0 hist-search -l --sort best --query 'cart price'
    stdout_is new old results
    terminal
    browse
    keys 'cart price'
    screen_has '1/7' '└ +3 in results of tools'
    screen
    sed -n '3,7s/ *│.*//p' "$BATS_TEST_TMPDIR/screen" | sed 's/^24-\(0.\)-01 .*/\1/; s/^  *//' >rows
    is rows rows 02 01 '└ +3 in results of tools' 03 '└ tool found 1: cart pri…'
    keys Tab j j
    screen_has 'z unfold' '3/7'
    keys Enter
    screen_has '└ tool listing 1: cart,' '└ tool listing 3: cart,'
    screen_lacks 'in results of tools'
    keys z
    screen_has '└ +3 in results of tools' '3/7'
    # With one role there is nothing to fold.
    keys r r r r
    screen_has 'role tool' '└ tool listing 1: cart,'
    keys C-c
    ended 130
}

@test "hist-browse: nothing to choose is 1, cancelled is 130" {
    worked
    terminal
    browse --print id nowhere
    screen_has ' no hit '
    keys Enter
    screen_has 'hist-browse: nothing was chosen'
    ended 1
    printed_empty
    : >"$HISTORY"
    browse ''
    screen_has 'no session yet'
    keys Enter j k G y
    screen_has 'there is no message to copy'
    keys v
    screen_has 'there is nothing to open'
    keys f x d z n L
    ended 1
    printed_empty
    browse
    screen_has 'no session yet'
    keys C-c
    ended 130
}

@test "hist-browse: it is laid out anew when the terminal changes its size" {
    worked
    long 30
    terminal 100x30
    browse plan
    screen_has '│'
    tmux resize-window -x 40 -y 10
    screen_has '> plan'
    soon no_bar
    tmux resize-window -x 200 -y 50
    screen_has '│'
    tmux resize-window -x 400 -y 100
    screen_has '│'
    tmux resize-window -x 20 -y 4
    screen_has '> plan'
    tmux resize-window -x 80 -y 24
    screen_has '│' 'plan the parser'
    keys C-c
    ended 130
}

no_bar() {
    screen
    ! grep -qF '│' "$BATS_TEST_TMPDIR/screen"
}

@test "hist-browse: a screen of 40x10" {
    worked
    terminal 40x10
    type_lines 'hist-browse >printed; echo "status $?"'
    screen_is '>                                    1/3
─ sessions ─────────────────────────────
2024-03-01    1  write tests
2024-02-01    4  fix config.c
─ now  1/1 ─────────────────────────────
user  2024-03-01 10:00
write tests


type to search  F1 help  Esc close'
    keys Down Tab Tab z
    screen_has 'fix config.c' ' fix  1/4 '
    keys '?'
    screen_has 'hist-browse: keys'
    keys q C-c
    ended 130
}

@test "hist-browse: tool calls and results unfold" {
    worked
    terminal
    browse
    keys Down Tab Tab
    screen_has '▸ edit {"path":"config.c"}' '▸ result of edit edited three lines'
    keys J z
    screen_has '▾ edit' 'path: config.c' '▸ result'
    keys Z
    screen_has '▾ result'
    keys Z
    screen_has '▸ edit' '▸ result'
    keys J z
    screen_has '▾ result'
    keys C-c
    ended 130
}

# literal BYTES...: in one go, as a terminal sends them for a key.
literal() {
    tmux send-keys -l "$(printf '%b' "$@")"
}

@test "hist-browse: arrow keys of both modes of a terminal, Escape twice" {
    worked
    terminal
    browse
    literal '\e[B\e[B\e[A'
    screen_has '2/3'
    literal '\eOB'
    screen_has '3/3'
    keys Tab
    literal '\e[H'
    screen_has '1/3'
    literal '\eOF'
    screen_has '3/3'
    literal '\e[1~'
    screen_has '1/3'
    literal '\e[4~'
    screen_has '3/3'
    literal '\e\e'
    ended 130
    # Escape, and Ctrl-C before it is known that no sequence follows.
    browse
    keys F1
    screen_has 'hist-browse: keys'
    tmux send-keys -H 1b 03
    ended 130
}

# in_path NAME LINE: a program of that name, found before any other, that does this.
in_path() {
    mkdir -p bin
    printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
    PATH=$PWD/bin:$PATH
}

@test "hist-browse: the message is copied by the terminal, and by the program of the desktop" {
    worked
    in_path xclip 'cat >copied; echo "$0 $*" >by'
    in_path wl-copy 'cat >copied; echo "$0 $*" >by'
    terminal
    tmux set-option -g set-clipboard on
    browse lexer
    keys Enter y
    screen_has copied
    tmux show-buffer >buffer
    printf '%s' 'First a **lexer**, then `parse()`.' >wanted
    same buffer wanted buffer
    [[ ! -e copied ]]
    keys C-c
    ended 130
    type_lines 'export DISPLAY=:9'
    browse lexer
    keys Enter y
    screen_has copied
    soon test -e by
    same copied wanted copied
    is by by "$PWD/bin/xclip -selection clipboard"
    keys C-c
    ended 130
    type_lines 'export WAYLAND_DISPLAY=w'
    browse lexer
    keys Enter y
    screen_has copied
    soon grep -q wl-copy by
    keys C-c
    ended 130
}

@test "hist-browse: a paste goes into the box, and none of it is a key" {
    worked
    terminal
    browse
    # Enter, d and y: the question whether to delete, and yes.
    tmux set-buffer $'write\n tests\r\nd\ny\e[A\x03\n'
    paste_buffer -p
    screen_has '> write  tests d y'
    screen_lacks 'for ever' 'deleting'
    keys C-u
    screen_has 'plan the parser'
    # From the list, too.
    keys Tab
    tmux set-buffer $'\nlexer\n'
    paste_buffer -p
    screen_has '> lexer' '1/1'
    # Neither the answer to a question nor its commands.
    keys Enter d
    screen_has '1 to delete'
    keys Q
    screen_has '? y: for ever'
    tmux set-buffer y
    paste_buffer -p
    sleep 0.3
    screen_has '? y: for ever'
    keys Escape
    soon screen_lacks_now 'for ever'
    keys u
    screen_has 'stays'
    # The name of a file.
    keys x
    screen_has 'export to: plan.md'
    keys C-u
    tmux set-buffer $'out\n.md\n'
    paste_buffer -p
    screen_has 'export to: out .md'
    [[ ! -e 'out .md' ]]
    keys Enter
    screen_has "exported to 'out .md'"
    [[ -e 'out .md' && $(wc -l <"$HISTORY") == 7 ]]
    keys C-c
    ended 130
}

@test "hist-browse: a paste that ends in an unfinished sequence" {
    local end
    worked
    terminal
    browse
    for end in $'\e' $'\e['; do
        keys -l $'\e[200~lexer'"$end"$'\e[201~'
        screen_has '> lexer'
        # A key, not a part of the paste.
        keys C-a x
        screen_has '> xlexer'
        keys C-e C-u
    done
}

@test "hist-browse: the marks of a paste in pieces" {
    worked
    terminal
    # However slow the machine is, no piece is the Escape key.
    type_lines 'export ESCDELAY=3000'
    browse
    for bytes in '1b 5b' '32 30 30' '7e 64 0d' '64 1b' '5b 32 30 31' '7e 21'; do
        # shellcheck disable=SC2086
        tmux send-keys -H $bytes
        sleep 0.1
    done
    screen_has '> d d!'
    keys C-c
    ended 130
}

@test "hist-browse: it says copied when it was, and what was not" {
    {
        hist_line s user 'a text' '' '{"id":"u1"}'
        hist_line s assistant '' '' '{"id":"a1","tool_calls":[{"id":"c","name":"ls","args":{}}]}'
        jq -cn '{id: "u2", session_id: "s", timestamp: "2024-06-27T15:00:09.000000+00:00", role: "user", content: ("x" * 80000)}'
    } >"$HISTORY"
    terminal
    # tmux drops the sequence of a program by default; its own command does not.
    browse 'a text'
    keys Tab Tab y
    screen_has 'copied'
    tmux show-buffer >buffer
    [[ $(cat buffer) == 'a text' ]]
    # Nothing is no text for the clipboard.
    keys J y
    screen_has 'nothing to copy: the message has no text'
    tmux show-buffer >buffer
    [[ $(cat buffer) == 'a text' ]]
    keys C-c
    ended 130
    # Elsewhere the terminal does not say what becomes of it, and the reason why not is told.
    type_lines 'unset TMUX; clear'
    browse 'a text'
    keys Tab Tab y
    screen_has 'sent to the terminal'
    keys J J y
    screen_has 'cannot copy 80000 bytes: terminals take 74994'
    keys C-c
    ended 130
    run_expect 130 env -u TMUX -u STY "$TESTS/tools/on-tty" --wait 'close' --type 'a text\t\ty' --wait '\]52;c;YSB0ZXh0\x07' --type Q hist-browse ''
    stdout_lacks $'\eP'
    # screen passes on what is wrapped.
    run_expect 130 env -u TMUX STY=1.x TERM=screen "$TESTS/tools/on-tty" --wait 'close' --type 'a text\t\ty' --wait '\x1bP\x1b\]52;c;YSB0ZXh0\x07\x1b\\' --type Q \
        hist-browse ''
}

@test "hist-browse: a program of the desktop that takes nothing does not hold up the keys" {
    worked
    hist_line large user "$(seq 18000)" >>"$HISTORY"
    in_path wl-copy 'echo $$ >by; exec sleep 1000'
    export WAYLAND_DISPLAY=w
    terminal
    type_lines "unset TMUX"
    browse
    screen_has '1/4'
    keys Tab
    for ((i = 0; i < 9; i++)); do
        rm -f by
        keys y
        soon test -s by
        keys j
        screen_has '2/4'
        # It is ended after two seconds, in which a busy machine may not have done that much.
        alive "$(<by)" && break
        keys k
        screen_has '1/4'
    done
    ((i < 9)) || fail 'the keys were held up'
    screen_has 'cannot copy'
    alive "$(<by)" && return 1
    keys C-c
    ended 130
}

# Has the history locked until something is written to `go`, and then does this with it.
locked() {
    rm -f locked go
    mkfifo go
    flock "$HISTORY" sh -c "echo locked >locked; read -r _ <go; $1" 3>&- 4>&- &
    soon test -s locked
}

@test "hist-browse: who leaves while something waits for its turn is told, and can give it up" {
    worked
    locked ':'
    terminal
    browse
    screen_has '/3'
    keys Tab g
    delete_chosen
    screen_has 'hist-browse: waiting for what was to be done; Ctrl-C gives it up'
    keys C-c
    screen_has "hist-browse: not deleted: 'now'"
    ended 2
    echo >go
    wait
    [[ $(wc -l <"$HISTORY") == 7 ]]
    # A terminal of another size is no reason.
    locked ':'
    browse
    screen_has '/3'
    keys Tab g
    delete_chosen
    screen_has 'hist-browse: waiting for'
    tmux resize-window -x 90 -y 30
    tmux resize-window -x 80 -y 24
    echo >go
    ended 130
    [[ $(wc -l <"$HISTORY") == 6 ]]
    # A signal is one, and ends it as it always does.
    locked ':'
    browse
    screen_has '/2'
    keys Tab g
    delete_chosen
    screen_has 'hist-browse: waiting for'
    signal hist-browse TERM
    ended 143
    echo >go
    wait
    [[ $(wc -l <"$HISTORY") == 6 ]]
    # Nobody is there to give it up.
    locked ':'
    browse
    screen_has '/2'
    keys Tab g
    delete_chosen
    screen_has 'hist-browse: waiting for'
    signal hist-browse HUP
    ended 129
    echo >go
    wait
    [[ $(wc -l <"$HISTORY") == 6 ]]
}

@test "hist-browse: what could not be done is told when it is left meanwhile" {
    worked
    locked 'rm "$CHAT_HISTORY"; mkdir "$CHAT_HISTORY"'
    terminal
    browse
    screen_has '/3'
    keys Tab g
    delete_chosen
    screen_has 'hist-browse: waiting for'
    echo >go
    screen_has "hist-browse: hist-delete: cannot"
    ended 2
}

@test "hist-browse: closed and opened again it is as it was" {
    worked
    long 100
    terminal 80x16
    browse
    keys Tab j j Tab
    screen_has ' fix  1/4 '
    keys C-c
    ended 130
    browse
    screen_has '3/4' ' fix  1/4 '
    keys Tab k k Tab
    screen_has ' long  1/100 '
    keys C-d C-d C-d J
    screen_has ' long  8/100 '
    is_as_left close
    # A search, its role, the hit that was chosen and its place.
    keys C-r '"message 5"'
    screen_has '> "message 5"' 'role user' '1/6'
    keys Down Down
    screen_has '3/6'
    soon screen_rests_now
    keys C-c
    ended 130
    browse
    screen_is "$(sed 's/ *$//' before)"
    keys C-c
    ended 130
    # What is typed takes the place of the old text.
    browse
    keys lex
    screen_has '> lex ' ' no hit '
    keys C-r C-r C-r C-r
    screen_has ' plan  2/2 '
    keys C-c
    ended 130
    # Each history has its own, and a query given is a new search.
    browse lexer
    screen_has '> lexer'
    keys C-c
    ended 130
    hist_line yours user 'another one' >other
    browse --history other
    screen_has 'another one'
    screen_lacks 'lexer' 'role user'
    keys C-c
    ended 130
    [[ $(stat -c %a "$HOME/.local/state/chathist/browse") == 600 ]]
}

@test "hist-browse: where nothing can be remembered it says so, and works" {
    worked
    mkdir -p "$HOME/.local/state/chathist/browse"
    terminal 120x20
    type_lines 'hist-browse >printed; echo "status $?"'
    screen_has 'write tests' "cannot open '$HOME/.local/state/chathist/browse': is a directory"
    keys C-o
    screen_has "hist-browse: " 'status 0'
    printed_is now
    type_lines 'clear; hist-browse -q >printed; echo "status $?"'
    screen_has 'write tests'
    keys C-o
    screen_has 'status 0'
    screen_lacks 'hist-browse: '
}

@test "hist-browse: a history that grows is followed without losing the place" {
    worked
    long 40
    terminal 80x14
    browse
    keys Tab Down
    screen_has ' now  1/1 '
    hist_line fresh user 'a new session' >>"$HISTORY"
    screen_has 'a new session' '3/5' ' now  1/1 '
    hist_line now assistant 'an answer to it' >>"$HISTORY"
    screen_has 'an answer to it' ' now  1/2 ' '1/5'
    # In the messages as well.
    keys Down Down Tab PageDown
    screen_has ' long  4/40 '
    soon screen_rests_now
    sed -n '3,$s/.*│//p' before >wanted
    hist_line long user 'one more' >>"$HISTORY"
    screen_has '/41 '
    soon screen_rests_now
    sed -n '3,$s/.*│//p' before >got
    same messages wanted got
    # And the hits.
    keys i one
    screen_has 'one more' '1/1'
    hist_line fresh assistant 'none is like this one' >>"$HISTORY"
    screen_has 'none is like this' '2/2'
    keys C-c
    ended 130
}

@test "hist-browse: a history that is rewritten is read again" {
    worked
    terminal
    browse
    screen_has '1/3'
    hist-delete -q --force now
    screen_has '1/2' ' fix  1/4 '
    soon screen_lacks_now 'write tests'
    # In its place, by one that is longer: nothing is left of what was there.
    hist_lines another 40 >other
    cp other "$HISTORY"
    screen_has '1/1' ' another  1/40 '
    soon screen_lacks_now 'fix config.c'
    keys C-c
    ended 130
}

@test "hist-browse: export, fork and delete by the programs beside it" {
    worked
    terminal
    browse
    keys Down Enter x
    screen_has 'export to: fix.md'
    keys C-u 'out.txt' Enter
    screen_has "exported to 'out.txt'"
    hist-export -q -f txt fix >wanted
    same out.txt wanted out.txt
    echo mine >mine.txt
    export_to mine.txt
    screen_has 'mine.txt is there: overwrite it? y or n'
    keys n
    soon screen_lacks_now 'overwrite it'
    [[ $(<mine.txt) == mine ]]
    export_to mine.txt
    screen_has 'mine.txt is there: overwrite it? y or n'
    keys y
    screen_has "exported to 'mine.txt'"
    same mine.txt wanted mine.txt
    # A directory has the file of the usual name in it, and ~ is the home directory.
    mkdir dir
    echo mine >dir/fix.md
    export_to dir
    screen_has 'dir/fix.md is there: overwrite it? y or n'
    keys n
    soon screen_lacks_now 'overwrite it'
    [[ $(<dir/fix.md) == mine ]]
    # shellcheck disable=SC2088  # it is typed
    export_to '~/home.txt'
    screen_has "exported to '$HOME"
    same home.txt wanted "$HOME/home.txt"
    export_to /no/x.md
    screen_has 'No such file or directory'
    keys J J f
    screen_has 'forked: ' '/4'
    [[ $(tail -n 1 "$HISTORY" | jq -r .content) == 'edited three lines' ]]
    # It is chosen now, and was not made current.
    screen_has '1/4' '/3 '
    [[ ! -e $HISTORY.session ]]
    # Nothing is deleted before the browser is left, and what is undone stays.
    keys d
    screen_has "'fix config.c' is deleted when you leave; u: undo" '1 to delete' 'D  ' '  24-03-01'
    keys u
    screen_has "'fix config.c' stays"
    keys d Q
    screen_has "delete 'fix config.c', 3 messages? y: for ever  n: keep  Esc: back"
    keys Escape
    soon screen_lacks_now 'for ever'
    keys Q
    screen_has 'for ever'
    keys n
    ended 130
    [[ $(wc -l <"$HISTORY") == 10 ]]
    browse
    keys Tab g
    delete_chosen
    ended 130
    [[ $(wc -l <"$HISTORY") == 7 ]]
}

@test "hist-browse: sessions are marked, and exported, printed and deleted together" {
    worked
    terminal
    browse
    keys Tab '*'
    screen_has '3 marked' '* 24-01-01' 'd delete  x export'
    keys Space Space
    screen_has '1 marked' '* 24-01-01' '  24-02-01'
    keys '*'
    screen_has '3 marked'
    export_to all.md
    screen_has "3 sessions exported to 'all.md'"
    grep -q 'write tests' all.md
    grep -q 'plan the parser' all.md
    keys p
    ended 0
    grep -q 'plan the parser' printed
    grep -q 'edited three lines' printed
    browse --print id
    keys Tab g Space Space Enter
    ended 0
    is printed printed now fix
    browse --print json
    keys Tab g Space Space Enter
    ended 0
    [[ $(wc -l <printed) == 5 ]]
    browse
    keys Tab '*' d
    screen_has '3 sessions are deleted when you leave; u: undo' 'D 24-01-01'
    # Neither Ctrl-C nor a signal deletes.
    keys C-c
    screen_has 'hist-browse: nothing was deleted: 3 sessions were to be deleted'
    ended 130
    [[ $(wc -l <"$HISTORY") == 7 ]]
    browse
    keys Tab d
    screen_has 'is deleted when you leave'
    signal hist-browse HUP
    ended 129
    [[ $(wc -l <"$HISTORY") == 7 ]]
    browse
    keys Tab '*' d
    screen_has '3 to delete'
    keys u
    screen_has '3 sessions stay'
    keys g Space Space d Q
    screen_has 'delete 2 sessions, 5 messages? y: for ever'
    keys y
    ended 130
    [[ $(wc -l <"$HISTORY") == 2 ]]
}

@test "hist-browse: messages that came after the question about deletions go only after another" {
    worked
    terminal
    browse
    keys Tab g d Q
    screen_has "delete 'write tests', 1 message? y: for ever"
    run_expect 0 hist-append -s now 'one more'
    keys y
    screen_has "delete 'write tests', 2 messages? y: for ever"
    [[ $(wc -l <"$HISTORY") == 8 ]]
    keys y
    ended 130
    [[ $(wc -l <"$HISTORY") == 6 ]]
}

@test "hist-browse: who does not wait for deletions is told what was not deleted" {
    worked
    mkdir bin
    printf '#!/bin/sh\n: >waits\nexec sleep 60\n' >bin/hist-delete
    chmod +x bin/hist-delete
    PATH=$PWD/bin:$PATH
    terminal
    browse
    keys Tab g Space Space d Q
    screen_has 'delete 2 sessions, 5 messages? y: for ever'
    keys y
    soon test -e waits
    keys C-c
    screen_has "hist-browse: not deleted: 'now', 'fix'"
    ended 2
    [[ $(wc -l <"$HISTORY") == 7 ]]
}

@test "hist-browse: a fork is chosen though the list had it first" {
    worked
    mkdir bin
    printf '#!/bin/sh\n"%s/hist-fork" "$@" || exit\nwhile [ ! -e seen ]; do sleep 0.05; done\n' "$BIN" >bin/hist-fork
    chmod +x bin/hist-fork
    PATH=$PWD/bin:$PATH
    terminal
    browse
    keys Tab j j f
    screen_has '4/4'
    : >seen
    screen_has 'forked: ' '1/4'
    keys C-c
    ended 130
}

@test "hist-browse: what is done at once is done with what is chosen by then" {
    worked
    in_path wl-copy 'cat >copied'
    export WAYLAND_DISPLAY=w
    terminal
    type_lines "unset TMUX"
    browse
    screen_has 'write tests' '1/3'
    keys Tab j y
    screen_has copied
    printf '%s' 'fix config.c' >wanted
    soon cmp -s copied wanted
    keys C-c
    ended 130
}

@test "hist-browse: the message or the session in the pager and the editor" {
    worked
    printf '#!/bin/sh\ncat >paged; echo the pager has it; read -r line </dev/tty\n' >page
    printf '#!/bin/sh\ncp "$1" edited; echo the editor has it; read -r line\n' >edit
    chmod +x page edit
    terminal
    type_lines "export PAGER='$PWD/page' EDITOR='$PWD/edit'; unset VISUAL"
    browse lexer
    keys Tab Tab v
    screen_counts 1 'the pager has it'
    is paged paged 'First a **lexer**, then `parse()`.'
    keys Enter
    screen_has '> lexer'
    keys e
    screen_has 'the editor has it'
    is edited edited 'First a **lexer**, then `parse()`.'
    keys Enter
    screen_has '> lexer'
    keys h v
    screen_counts 2 'the pager has it'
    hist-show plan >wanted
    same paged wanted paged
    keys Enter
    screen_has '> lexer'
    keys C-c
    ended 130
    [[ -z $(ls "$TMPDIR") ]]
}

@test "hist-browse: the pager and the editor get what a terminal is shown, not what it would obey" {
    jq -cn '{id: "1-a", session_id: "s", timestamp: "2024-01-01T10:00:00.000000+00:00", role: "user",
        content: "a\u001b]0;title\u0007b\u001b]52;c;eA==\u0007c\u009b\u202e\t\u00e9\nd"}' >"$HISTORY"
    printf '#!/bin/sh\ncat >paged; echo the pager has it; read -r line </dev/tty\n' >page
    printf '#!/bin/sh\ncp "$1" edited; echo the editor has it; read -r line\n' >edit
    chmod +x page edit
    terminal
    type_lines "export PAGER='$PWD/page' EDITOR='$PWD/edit'; unset VISUAL"
    browse
    screen_has ' s  1/1 '
    hist-show s >raw
    keys Tab v
    screen_counts 1 'the pager has it'
    run_expect 1 grep -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' paged
    run_expect 0 grep -F '^[]0;title^Gb^[]52;c;eA==^Gc' paged
    [[ $(wc -l <paged) == $(wc -l <raw) ]]
    keys Enter
    screen_has ' s  1/1 '
    keys Tab v
    screen_counts 2 'the pager has it'
    run_expect 1 grep -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' paged
    run_expect 0 grep -F '^[]0;title^Gb^[]52;c;eA==^Gc' paged
    keys Enter
    screen_has ' s  1/1 '
    keys e
    screen_has 'the editor has it'
    same edited paged edited
    keys Enter
    screen_has ' s  1/1 '
    keys C-c
    ended 130
    [[ -z $(ls "$TMPDIR") ]]
    # As hist-show's own pager does.
    run_expect 0 env NO_COLOR=1 PAGER="cat >paged; :" TERM=xterm "$TESTS/tools/on-tty" --size 80x2 hist-show s
    run_expect 0 grep -F '^[]0;title^Gb^[]52;c;eA==^Gc' paged
    run_expect 1 grep -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' paged
}

@test "hist-browse: n goes on to the next session with a hit, N back; the pager begins where it is" {
    worked
    printf '#!/bin/sh\nprintf "%%s\\n" "$LESS" >from; cat >paged; echo the pager has it; read -r line </dev/tty\n' >page
    printf '#!/bin/sh\nprintf "%%s %%s " "$1" "$2" >edited; cat "$3" >>edited; echo the editor has it; read -r line\n' >vim
    chmod +x page vim
    hist_line fix user $'no\nparser\nhere' 2024-02-01T11:00:00.000000+00:00 >>"$HISTORY"
    terminal
    type_lines "export LESS=-R PAGER='$PWD/page' EDITOR='$PWD/vim'; unset VISUAL"
    browse pars
    screen_has '1/4' ' fix  5/5  hit 2 of 2 '
    keys Tab Tab N
    screen_has ' fix  4/5  hit 1 of 2 '
    keys n
    screen_has ' fix  5/5  hit 2 of 2 '
    # The match is in the second line of the message.
    keys v
    screen_counts 1 'the pager has it'
    is from from '+2g$ -R'
    keys Enter
    screen_has '> pars'
    keys e
    screen_has 'the editor has it'
    is edited edited '-c 2 no' parser here
    keys Enter
    screen_has '> pars'
    keys n
    screen_has ' plan  1/2  hit 1 of 2 ' '4/4' 'the next session with a hit'
    keys n n
    screen_has ' plan  1/2  hit 1 of 2 ' 'search wrapped: on from the beginning'
    keys N
    screen_has ' fix  5/5  hit 2 of 2 ' '1/4' 'the session with a hit before'
    # The whole session begins at the message that is shown.
    keys h v
    screen_counts 2 'the pager has it'
    [[ $(sed -n "$(sed 's/.*+//; s/g.*//' from)p" paged) == '[user] '* ]]
    [[ $(sed -n "$(($(sed 's/.*+//; s/g.*//' from) + 2))p" paged) == parser ]]
    keys Enter
    screen_has '> pars'
    keys C-c
    ended 130
}

@test "hist-browse: Ctrl-C in the pager is for the pager" {
    worked
    printf '#!/bin/sh\necho the pager has it; read -r line </dev/tty\n' >page
    chmod +x page
    terminal
    printf '%s\n' 'trap : INT' 'hist-browse lexer; echo "status $?"' >run
    type_lines "export PAGER='$PWD/page'" 'sh run'
    screen_has 'Esc '
    keys Tab Tab v
    screen_counts 1 'the pager has it'
    keys C-c
    screen_has '> lexer' 'the pager failed with status 130'
    # A signal for the browser is its own again, and was none before.
    keys v
    screen_counts 2 'the pager has it'
    signal hist-browse INT
    keys Enter
    screen_has '> lexer' '? help'
    soon screen_lacks_now 'the pager has it'
    signal hist-browse INT
    ended 130
}

@test "hist-browse: in a narrow list, repositories of one name differ" {
    for place in src/gateway old/gateway alone; do
        mkdir -p "${place%/*}"
        make_repo "$place"
        (cd "$place" && unset CHAT_HISTORY && hist-append -q -r user "said in $place" >/dev/null)
    done
    unset CHAT_HISTORY
    terminal
    type_lines 'cd alone'
    browse
    keys C-s
    screen_has 'src/gat… said in' 'old/gat… said in'
}

@test "hist-browse: other histories" {
    make_repo one
    make_repo two
    unset CHAT_HISTORY
    (cd one && hist-append -q -s first -r user 'said in one' >/dev/null)
    (cd two && hist-append -q -s second -r user 'said in two' >/dev/null)
    one=one/.git/aicoder two=two/.git/aicoder
    terminal 160x24
    type_lines 'cd one'
    browse
    screen_has 'said in one'
    screen_lacks 'said in two'
    keys C-s
    # Each row names its history.
    screen_has 'all histories' 'work/two ' 'work/one ' 'said in two' 'said in one' '/2'
    keys said
    screen_has '/2'
    keys 'Space' 'in two'
    # The title names the history, and so does the question.
    screen_has '1/1' " second  $WORK/two  1/1 "
    # An action is done where the session is.
    keys Enter f
    screen_has 'forked: '
    [[ $(wc -l <"$two/history.jsonl") == 2 ]]
    [[ $(wc -l <"$one/history.jsonl") == 1 ]]
    keys d Q
    screen_has "? y: for ever" "delete 'said in two' of $WORK/two, 1 message"
    keys Escape
    soon screen_lacks_now 'for ever'
    keys u
    # What it makes current is not current here, and it says so.
    keys L
    screen_has "hist-browse: session 'second' is current in '$WORK/two', not here"
    ended 0
    [[ ! -s one/printed ]]
    pointer_is "$two/session" second
    [[ ! -e $one/session ]]
    # The id would be that of another session here.
    browse --print id
    screen_has ' second '
    keys Enter
    screen_has "hist-browse: session 'second' is not of this history but of '$WORK/two'"
    ended 2
    [[ ! -s one/printed ]]
    browse --print text
    screen_has ' second '
    keys Enter
    ended 0
    is printed one/printed 'said in two'
    # Also when one's own is named by the environment.
    : >own
    type_lines "export CHAT_HISTORY=$WORK/own" 'cd ..'
    browse ''
    keys C-s
    screen_has 'all histories' '/3'
    keys 'in two'
    screen_has '/2'
    keys Enter f
    screen_has 'forked: '
    [[ $(wc -l <"$two/history.jsonl") == 3 && ! -s own ]]
    keys C-c
    ended 130
}

@test "hist-browse: a hit that was replaced or reset is shown among every line, and acted on" {
    {
        hist_line s user 'the first needle' '' '{"id":"u1"}'
        hist_line s assistant 'answer one' '' '{"id":"a1","reply_to":"u1"}'
        hist_line s user 'another needle' '' '{"id":"u2","replaces":["u1","a1"]}'
        hist_line s system '' '' '{"id":"r","reset":true}'
        hist_line s user 'the last needle' '' '{"id":"u3"}'
    } >"$HISTORY"
    terminal 80x14
    browse needle
    screen_has ' s  2/2 ' 'the last needle'
    keys Tab G
    screen_has ' s  1/5  every line ' 'the first needle'
    keys f
    screen_has 'forked: '
    [[ $(tail -n 1 "$HISTORY" | jq -r .content) == 'the first needle' ]]
    # The session as it is now, as soon as nothing else is looked at.
    keys g
    soon screen_lacks_now 'every line'
    keys G
    screen_has 'every line'
    keys p
    ended 0
    printed_is 'the first needle'
    browse ''
    keys Down
    screen_has ' s  1/2 '
    soon screen_lacks_now 'every line'
    keys C-c
    ended 130
}

@test "hist-browse: a message that is changed by hand is shown as it is" {
    hist_line s user 'before it' >"$HISTORY"
    terminal
    browse
    screen_has ' s  1/1 ' 'before it'
    printf 'behind' | dd of="$HISTORY" conv=notrunc bs=1 status=none \
        seek="$(grep -bo before "$HISTORY" | cut -d : -f 1)"
    screen_counts 2 'behind it'
    soon screen_lacks_now 'before it'
    keys C-c
    ended 130
}

@test "hist-browse: what a message holds is shown, never obeyed, and breaks no panel" {
    {
        hist_line s1 user $'a\e[2J\e]0;title\ab \u009b31m \u202eRTL\u202c end'
        hist_line s1 assistant $'日本語のテキスト、とても長い行なので折り返されるはずです。それでも壊れない。'
        hist_line s1 user $'e\u0301\u0302\u0303 👨‍👩‍👧 👍🏽 🇩🇪 ❤️ שלום עולם مرحبا ก็ 한국어'
        hist_line s1 assistant $'a\tb\rc\x01d\x7f'
        printf '{"id":"5","session_id":"s\\u001b[2J","timestamp":"t","role":"us\\u0007er","content":"\\u0000\\ud800"}\n'
        printf '{"id":"torn'
    } >"$HISTORY"
    terminal 140x30
    browse
    keys Down Tab Tab
    screen_has 'a^[[2J^[]0;title^Gb <U+009B>31m <U+202E>RTL<U+202C> end' 'a       b^Mc^Ad^?' '日本語' 'שלום'
    screen
    # In every line the bar stands in one column.
    python3 - "$BATS_TEST_TMPDIR/screen" >bars <<'END'
import sys, unicodedata
for line in open(sys.argv[1], encoding='utf-8').read().split('\n')[2:29]:
    column = 0
    for c in line:
        if c == '│':
            break
        column += 0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in 'WF' else 1
    print(column)
END
    is bars <(sort -u bars) 56
    keys h k
    screen_has 's^[[2J' 'us^Ger'
    keys C-c
    ended 130
}

@test "hist-browse: a locale without UTF-8" {
    worked
    hist_line s user $'grüße 日本' >>"$HISTORY"
    terminal
    type_lines 'export LC_ALL=C'
    browse grü
    screen_has 'grüße 日本' '│'
    keys C-c
    ended 130
    type_lines 'export LC_ALL=POSIX TERM=vt100 NO_COLOR=1'
    browse plan
    screen_has 'plan the parser'
    keys C-c
    ended 130
}

@test "hist-browse: no terminal that it could draw on" {
    worked
    terminal
    type_lines 'TERM=dumb hist-browse; echo "status $?"'
    screen_has "hist-browse: cannot browse on a terminal of the type 'dumb': see hist-sessions," 'status 2'
    type_lines 'clear; env -u TERM hist-browse; echo "status $?"'
    screen_has 'hist-browse: TERM, the type of the terminal, is not set: see hist-sessions,' 'status 2'
    # curses loses some memory when it does not know a terminal.
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
    type_lines "export ASAN_OPTIONS='$ASAN_OPTIONS'"
    # One that this system does not know is taken for a usual one.
    type_lines 'clear; TERM=none-such hist-browse; echo "status $?"'
    screen_has 'Esc close' 'plan the parser'
    keys Escape
    screen_has 'status 130'
    type_lines 'clear; env -u TERM hist-browse 2>said; echo "status $?"'
    screen_has 'status 2'
    run_expect 2 setsid -w hist-browse
    stdout_empty
    stderr_is 'hist-browse: there is no terminal to browse on: see hist-sessions, hist-search'
    run_expect 2 setsid -w hist-browse --print 12345
    stderr_has "bad value '12345' for --print: id, text, json or chat is expected"
}

@test "hist-browse: a signal ends it, and the terminal is as it was" {
    local signal
    worked
    terminal
    # A shell that leaves the terminal alone, unlike the one that is typed to.
    printf '%s\n' 'trap : INT' 'stty -g >before' 'hist-browse plan; echo "status $?"' 'stty -g >after' >run
    for signal in TERM INT HUP; do
        type_lines 'clear; sh run'
        screen_has 'Esc '
        [[ $(tmux display-message -p '#{alternate_on}') == 1 ]]
        signal hist-browse "$signal"
        ended $((128 + $(kill -l "$signal")))
        same modes before after
        [[ $(tmux display-message -p '#{alternate_on} #{mouse_any_flag}') == '0 0' ]]
        rm before after
    done
}

@test "hist-browse: stopped and continued" {
    worked
    terminal
    browse
    keys C-z
    screen_has Stopped
    type_lines 'clear; stty -a | grep -o " icanon" && echo ba""ck'
    screen_has back
    type_lines fg
    screen_has 'Esc ' 'write tests'
    signal hist-browse TSTP
    screen_has Stopped
    type_lines fg
    screen_has 'Esc ' 'write tests'
    keys Escape
    soon screen_lacks_now 'Esc '
    soon shell_waits_now
    type_lines 'echo "status $?"'
    screen_has 'status 130'
}

@test "hist-browse: the help screen has every key of the manual" {
    worked
    terminal 100x60
    browse
    keys F1
    screen_has 'hist-browse: keys' '/expression/' 'since:7d role:user' 'load: make the session current' \
        'by words' '?: all keys'
    screen_lacks 'copy the message' 'this history, or all'
    keys '?'
    screen_has 'copy the message' 'export the session' 'fork it at this message' 'to prompt' \
        'undo: the sessions of the last d stay'
    screen_lacks '?: all keys'
    keys Escape
    screen_has 'Esc close'
    keys C-c
    ended 130
}

@test "hist-browse: the mouse" {
    worked
    terminal 80x12
    type_lines 'export TERM=xterm-256color'
    browse
    screen_has ' now  1/1 '
    # What curses does not know closes nothing.
    tmux send-keys -l $'\e[99;9z'
    tmux send-keys M-x
    # A press with the first button on line 5; the wheel over the messages.
    tmux send-keys -l $'\e[<0;3;5M\e[<0;3;5m'
    screen_has ' plan  1/2 ' '? help'
    tmux send-keys -l $'\e[<0;3;4M\e[<0;3;4m'
    screen_has ' fix  1/4 '
    tmux send-keys -l $'\e[<65;60;6M'
    screen_has 'config.c parses again'
    keys C-c
    ended 130
}

@test "hist-browse: a session by its id, its files, tokens and tools; find, zoom, follow, copy a part" {
    {
        hist_line sess_1_abc123 user 'read main.c' 2024-01-01T10:00:00.000000+00:00 '{"files":["src/main.c","a.h"]}'
        hist_line sess_1_abc123 assistant '' 2024-01-01T10:00:01.000000+00:00 \
            '{"tool_calls":[{"id":"c1","name":"grep","args":{"text":"needle in main"}}]}'
        hist_line sess_1_abc123 tool 'line 7' 2024-01-01T10:00:02.000000+00:00 '{"tool_call_id":"c1"}'
        hist_line sess_1_abc123 assistant $'Do this:\n```c\nint x;\n```\nmain' 2024-01-01T10:00:03.000000+00:00 \
            '{"files_modified":["b.c"],"edit_results":[{"file":"b.c","applied":true}],"usage":{"input_tokens":12,"output_tokens":34},"citations":[{"url":"https://c.org/"},{"url":"https://c.org/"}]}'
        hist_line other user 'write tests' 2024-03-01T10:00:00.000000+00:00
    } >"$HISTORY"
    in_path wl-copy 'cat >copied'
    export WAYLAND_DISPLAY=w
    terminal 100x30
    type_lines 'unset TMUX'
    # The end of the id; the focus is in the messages, on its session.
    browse abc123
    screen_has '2/2' ' sess_1_abc123  1/4 ' 'files: src/main.c, a.h' '▸ grep {"text":"needle in main"}' \
        '▸ result of grep line 7' '12 tokens in, 34 out' 'source: https://c.org/' 'changed: b.c' '▸ edits [{"file"' 'Enter load'
    # A hit in a call is found, unfolded and marked.
    keys / needle Enter
    screen_has ' hit 1 of 1 ' '▾ grep' 'text: needle in main'
    soon colours_have $'text: (\e\\[[0-9;]*m)+needle'
    keys / main Enter
    screen_has ' hit 2 of 3 ' '  2/4 '
    keys n n
    screen_has ' hit 1 of 3 ' 'search wrapped'
    keys G +
    screen_has 'changed: b.c'
    soon screen_lacks_now 'write tests'
    keys Y
    screen_has 'copy: m message  c its first code block  i id of the session  s session'
    keys c
    screen_has copied
    printf 'int x;\n' >wanted
    soon cmp -s copied wanted
    keys Y i
    printf 'sess_1_abc123' >wanted
    soon cmp -s copied wanted
    keys Y s
    hist-show sess_1_abc123 >wanted
    soon cmp -s copied wanted
    keys Escape
    screen_has 'write tests'
    # What comes below the visible messages is told, or followed.
    keys g
    seq 40 | tr '\n' ' ' | fold -w 9 >long
    hist_line sess_1_abc123 user "$(cat long long long)" >>"$HISTORY"
    screen_has ' 1 new below '
    keys F
    screen_has ' following '
    soon screen_lacks_now 'new below'
    hist_line sess_1_abc123 user 'the newest' >>"$HISTORY"
    screen_has 'the newest'
    keys k
    soon screen_lacks_now ' following '
    keys C-c
    ended 130
}

@test "hist-browse: the query language, a bad value, and a role that nothing has" {
    worked
    terminal 100x20
    browse
    keys '"config.c parses" role:assistant'
    screen_has '1/1' '24-02-01 asst config.c parses again'
    keys C-u 'tool:edit until:2024-02-15'
    screen_has '1/1' ' fix  2/4 '
    keys C-u 'parser the'
    screen_has '1/1' ' plan  1/2 '
    soon colours_have '48;5;221mparser'
    [[ $(grep -o $'[0-9;]*48;5;221m\(the\|parser\)' colours | sort -u | wc -l) -ge 2 ]]
    keys C-u 'since:never'
    screen_has "since:" 'never'
    keys C-u
    screen_has ' sessions ' '1/3'
    keys C-r C-r C-r
    screen_has 'role system' 'No system message in this session; Ctrl-R: next role'
    keys Escape
    soon screen_lacks_now 'role system'
    keys Escape
    ended 130
}

@test "hist-browse: what to do when there is nothing, bad lines, chat from the browser, a choice for chat" {
    use_echo
    terminal 100x20
    : >"$HISTORY"
    browse
    screen_has 'no session yet' 'No conversation is stored here.' "chat 'a question'" 'hist-import'
    keys Tab d
    screen_has 'there is no session to delete'
    keys x
    screen_has 'there is no session to export'
    worked
    echo broken >>"$HISTORY"
    screen_has ' 1 bad line ' 'write tests'
    keys g j c
    screen_has 'echo fix>'
    type_lines 'and this?' /exit
    screen_has 'and this?' ' fix  ' 'Enter open'
    [[ $(tail -n 2 "$HISTORY" | head -n 1 | jq -r '.session_id + .content') == 'fixand this?' ]]
    keys C-c
    ended 130
    browse --print chat plan
    keys Enter
    ended 0
    is printed printed "{\"action\":\"session\",\"history\":\"$(realpath "$HISTORY")\",\"session_id\":\"plan\"}"
    browse --print chat lexer
    screen_has 'Enter choose' ' plan  2/2 '
    keys Tab Tab Enter
    ended 0
    is content <(jq -r .action,.content printed) message 'First a **lexer**, then `parse()`.'
    [[ ! -e $HISTORY.session ]]
}

# colours_for ANSWER TEXT [VARIABLE=VALUE]: what it writes to a terminal that answers so to the question for its
# background, until the text has come.
colours_for() {
    env -u TMUX -u STY TERM=xterm-256color "${@:3}" "$TESTS/tools/on-tty" --wait 'write tests' --type "$1" --wait "$2" \
        --type '\x03' hist-browse
}

@test "hist-browse: colours for the background that the terminal has, and for any" {
    worked
    # Not known: one that can be read on both.
    run_expect 130 colours_for '' '38;5;63muser'
    run_expect 130 colours_for '\e]11;rgb:ffff/ffff/dddd\e\\\e[?62;22c' '38;5;25muser'
    run_expect 130 colours_for '\e]11;rgb:00/10/20\x07\e[?6c' '38;5;81muser'
    run_expect 130 colours_for '' '38;5;25muser' 'COLORFGBG=0;15'
    stdout_lacks ']11;?'
    run_expect 130 colours_for '' user NO_COLOR=1
    stdout_lacks '38;5'
    run_expect 130 env TERM=xterm-256color "$TESTS/tools/on-tty" --wait 'write tests' --type '\x03' hist-browse --no-mouse
    stdout_lacks '1006;1000h'
}

@test "hist-browse: a message of a megabyte, and one hit far inside" {
    {
        hist_line big user "$(head -c 100 /dev/zero | tr '\0' a)"
        # Not join() of jq, which takes quadratic time.
        seq -f 'word%.0f' 0 149999 | paste -s -d ' ' |
            jq -cR '{id: "x", session_id: "big", timestamp: "2024-06-27T15:00:00Z", role: "assistant", content: .}'
    } >"$HISTORY"
    terminal
    browse word140000
    screen_has 'word140001'
    soon screen_lacks_now '1/1+'
    keys Tab Tab g
    screen_has 'aaaaaaaaaa'
    keys J
    screen_has 'word0 word1 word2'
    keys G
    screen_has word149999
    # All of it can be read, and it is gone back to where it was.
    keys PageUp PageUp
    screen_has word149763
    is_as_left back
    keys C-c
    ended 130
}

# gigabyte: a history of 1 GB, of 100,000 sessions; the oldest line alone has `haystack`.
gigabyte() {
    hist_line first user 'a needle in the haystack' 2020-01-01T10:00:00.000000+00:00 >"$HISTORY"
    python3 - >>"$HISTORY" <<'END'
import json, sys
text = 'the quick brown fox jumps over the lazy dog and comes back to look at it again. ' * 12
lines = ''.join(json.dumps({'id': f'1-@@@{n}', 'session_id': f's@@@{n // 10}',
                            'timestamp': '2024-06-27T15:00:00.000000+00:00',
                            'role': 'assistant' if n % 2 else 'user', 'content': f'@@@{n} {text}'}) + '\n'
                for n in range(1000, 9600))
for number in range(100, 216):
    sys.stdout.write(lines.replace('@@@', str(number)))
END
    [[ $(stat -c %s "$HISTORY") -gt 1000000000 ]]
}

# Its peak, in MB.
browse_memory() {
    awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$(browse_pid)/status"
}

# A key is answered on the screen, and what is looked for has not been looked through yet.
answered_meanwhile() {
    local i
    keys C-u
    screen_has ' sessions '
    keys zz
    # Longer than the pause that starts a search.
    sleep 0.1
    keys Q
    for ((i = 0; i < 100; i++)); do
        screen
        if grep -qF -e '> zzQ' "$BATS_TEST_TMPDIR/screen"; then
            screen_lacks_now_of_file ' no hit '
            return
        fi
    done
    return 1
}

screen_lacks_now_of_file() {
    ! grep -qF -e "$1" "$BATS_TEST_TMPDIR/screen"
}

@test "hist-browse: a history of 1 GB: it is searched beside the keys, and not held" {
    local i
    [[ ${CHATHIST_BIG_TESTS:-yes} == yes ]] || skip 'CHATHIST_BIG_TESTS is not yes'
    [[ $VARIANT != asan ]] || skip 'the sanitizer has its own idea of memory and speed'
    [[ $(df --output=avail -BM "$BATS_TEST_TMPDIR" | tail -n 1 | tr -dc 0-9) -gt 2500 ]] ||
        skip 'there are no 2.5 GB left on the disk for it'
    gigabyte
    terminal 100x20
    # Without an index.
    browse
    screen_has '2159590 the' ' s215959  ' '1/99761'
    keys Tab G
    screen_has '99761/99761' 'a needle in the hays' ' first  1/1 '
    keys g
    screen_has '1/99761' ' s215959  '
    keys C-c
    ended 130
    # With it, as from now on.
    browse
    screen_has ' s215959  ' '1/99761'
    for ((i = 0; i < 20; i++)); do
        if answered_meanwhile; then break; fi
    done
    ((i < 20)) || fail 'no key was answered while it searched'
    screen_has ' no hit '
    keys C-u
    screen_has ' sessions '
    keys HAYSTACK
    screen_has '1/1' ' first  1/1 ' 'a needle in the haystack'
    # Of all that, 14 MB are usual: the list alone would be 30 MB.
    [[ $(browse_memory) -lt 28 ]] || fail "it took $(browse_memory) MB"
    keys C-c
    ended 130
    rm "$HISTORY"*
}

@test "hist-browse: garbage among the lines" {
    worked
    {
        head -c 20000 /dev/urandom
        printf '\n%5000s\n' '' | tr ' ' '\0'
        printf '{"id":1}\n[]\n%s\n' "$(head -c 100000 /dev/zero | tr '\0' '[')"
        hist_line last user 'behind it' 2024-04-01T10:00:00.000000+00:00
        printf '{"id":"7","session_id":"last","timestamp":[],"role":"user","content":"x"}\n{"id":"8","sess'
    } >>"$HISTORY"
    remember "$HISTORY"
    terminal
    browse
    screen_has 'behind it' 'write tests' '1/4'
    keys 'behind'
    screen_has '1/1' ' last  1/1 '
    keys C-c
    screen_has "hist-browse: skipped $(hist-sessions 2>&1 >/dev/null | grep -o '[0-9]* bad lines') in"
    ended 130
    unchanged "$HISTORY"
}

# Presses Ctrl-U; the shell's line is empty. While a program ends, the terminal drops the key, so that it is
# pressed until it works.
line_emptied_now() {
    keys C-u
    sleep 0.05
    shell_waits_now
}

@test "hist-browse: the example of a key: Ctrl-G in bash, in zsh, and with fzf" {
    local shell
    worked
    in_path fzf 'grep plan'
    terminal
    for shell in 'bash --norc --noprofile' 'zsh -f'; do
        type -P "${shell%% *}" >where || continue
        type_lines "clear; exec env 'PS1=\$ ' $shell" ". $ROOT/examples/browse-key.sh" clear
        soon screen_lacks_now browse-key
        keys C-g
        screen_has 'Esc '
        keys C-u lexer
        screen_has 'plan  2/2  hit 1 of 1'
        keys Enter
        screen_has '$ hist-show -- plan'
        soon line_emptied_now
        keys 'echo ' C-g
        screen_has 'Esc '
        keys C-u edited
        screen_has 'fix  3/4  hit 1 of 1'
        keys Enter
        screen_has '$ echo fix'
        soon line_emptied_now
        keys 'printf "%s" "' C-g
        screen_has 'Esc '
        keys C-u lexer
        screen_has 'plan  2/2  hit 1 of 1'
        keys Enter
        screen_has "printf \"%s\" 'First a **lexer**, then \`parse()\`.'"
        soon line_emptied_now
        # Without a choice the line stays.
        keys 'echo stays ' C-g
        screen_has 'Esc '
        keys C-c
        soon screen_lacks_now 'Esc '
        screen_has 'echo stays'
        soon line_emptied_now
        type_lines 'CHATHIST_BROWSE=fzf'
        keys C-g
        screen_has '$ hist-show -- plan'
        soon line_emptied_now
        keys 'echo "' C-g
        screen_has "echo 'plan the parser'"
        soon line_emptied_now
    done
}
