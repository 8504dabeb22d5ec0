#!/usr/bin/env bats
#
# chat on a terminal without a prompt: the real program in tmux, its screen read, its keys pressed.

# shellcheck disable=SC1003,SC2016,SC2030,SC2031

load ../helper
load ../tmux

setup() {
    sandbox
    use_history
    use_echo
    tmux_begin
}

teardown() {
    tmux_end
    sandbox_end
}

# converse [OPTION]...: chat with a session of the name `talk`, run by $through; its prompt is there.
converse() {
    type_lines "${through:-} chat -s talk $*; echo \"status \$?\""
    screen_has 'talk>'
}

# said N TEXT...: the history has N lines; the last ones have this content.
said() {
    local count=$1
    shift
    soon history_is "$count" || { cat "$HISTORY"; return 1; }
    tail -n $# "$HISTORY" >last
    json_is last .content "$@"
}

history_is() {
    [[ -e $HISTORY && $(wc -l <"$HISTORY") == "$1" ]]
}

# ---- prompts and answers

@test "interactive: prompts are answered and kept in one session, Ctrl-D leaves" {
    terminal
    type_lines 'chat; echo "status $?"'
    screen_has '/help lists the commands, Ctrl-D leaves' 'echo '
    type_lines hello
    screen_has '[1 message]'
    type_lines 'and again'
    screen_has '[3 messages]'
    keys C-d
    screen_has 'status 0'
    json_is "$HISTORY" '"\(.role):\(.content)"' user:hello $'assistant:hello\n[1 message]' 'user:and again' $'assistant:and again\n[3 messages]'
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) == 1 ]]
    # The next program goes on with it.
    run_expect 0 chat more
    stdout_is more '[5 messages]'
}

@test "interactive: -u prints the tokens and the cost of each turn, and of all at the end" {
    prices 'echo:* 1 - - 2 EUR'
    terminal
    converse -u
    type_lines one
    screen_has 'computed_cost='
    type_lines two
    screen_has '[3 messages]'
    keys C-d
    screen_has 'session: input_tokens=' 'status 0'
    read -r input output < <(jq -s -r 'map(.usage // empty) | "\(map(.input_tokens) | add) \(map(.output_tokens) | add)"' "$HISTORY")
    cost=$(printf '0.%06d' $((input + 2 * output)) | sed 's/0*$//')
    screen_has "session: input_tokens=$input output_tokens=$output computed_cost=$cost currency=EUR"
}

@test "interactive: only on a terminal, and only without a prompt" {
    run_expect 2 on_tty --fds 0 chat
    stderr_has 'no prompt'
    run_expect 2 chat
    run_expect 2 on_tty chat --no-stdin
    stdout_has 'no prompt'
    run_expect 2 on_tty chat --json
    run_expect 2 on_tty chat -x
    run_expect 0 on_tty --wait '> ' --eof chat
    run_expect 0 on_tty chat hello
    stdout_is $'hello\r' $'[1 message]\r'
}

@test "interactive: the prompt is stored before it is asked" {
    start_llm --accept-silent
    terminal
    converse
    type_lines hello
    said 1 hello
    keys C-c
    screen_has interrupted
    said 2 hello ''
}

@test "interactive: what is typed before it is there is sent" {
    start_llm --reply one --reply two
    terminal
    type_lines "sleep 1; chat -s talk; echo \"status \$?\""
    type_lines hello again
    said 4 hello one again two
}

@test "interactive: options hold for every turn" {
    start_llm --reply one --reply two --reply three
    echo 'int a;' >a.c
    terminal
    type_lines 'chat -N -S "Be brief" -f a.c -m openai:big -o temperature=0; echo "status $?"'
    screen_has 'big '
    type_lines first
    screen_has one
    type_lines second
    screen_has two
    request_messages_are 2 'system:Be brief' $'user:first\n\n```a.c\nint a;\n```' assistant:one user:second
    [[ $(jq -c '[.model, .temperature]' "$RECORD/2.json") == '["big",0]' ]]
    soon history_is 5
    json_is "$HISTORY" '"\(.role) \(.files)"' 'system null' 'user ["a.c"]' 'assistant null' 'user null' 'assistant null'
    # A new one has it, too.
    type_lines /new third
    screen_has three
    request_messages_are 3 'system:Be brief' user:third
}

@test "interactive: a file that cannot be attached ends it before it begins" {
    run_expect 2 on_tty chat -f missing
    stdout_has missing
}

@test "interactive: a turn that fails is told, and the conversation goes on" {
    start_llm openai/http-400 --reply fine
    terminal
    converse
    type_lines hello
    screen_has 'chat: '
    type_lines again
    screen_has fine
    keys C-d
    screen_has 'status 0'
    said 4 hello '' again fine
}

@test "interactive: a prompt that failed is not sent again, without --no-store and with it" {
    start_llm openai/http-400 --reply fine openai/http-400 --reply fine
    terminal
    converse
    type_lines hello
    screen_has 'chat: '
    type_lines again
    screen_has fine
    keys C-d
    screen_has 'status 0'
    request_messages_are 2 user:again
    converse --no-store
    type_lines hello
    soon requested 3
    type_lines /regenerate
    soon requested 4
    request_messages_are 4 user:again assistant:fine user:hello
    keys C-d
}

@test "interactive: a server that is not there is looked for again with each prompt" {
    local port
    port=$(unused_port)
    export CHAT_PROVIDER=openai OPENAI_BASE_URL=http://127.0.0.1:$port/v1 OPENAI_API_KEY=x
    terminal
    type_lines 'chat -s talk --retries 0; echo "status $?"'
    screen_has 'openai talk>'
    type_lines hello
    screen_has 'cannot connect'
    type_lines /quit
    screen_has 'status 0'
    said 2 hello ''
}

@test "interactive: Ctrl-C stops the answer, what came is kept, the conversation goes on" {
    terminal
    converse -o delay_ms=200
    type_lines "one two $(seq -s ' ' 300 399) last"
    # In the line that was typed, and in the answer.
    screen_counts 2 'one two'
    keys C-c
    screen_has interrupted
    soon history_is 2
    json_is "$HISTORY" .finish_reason null interrupted
    screen_counts 1 last
    type_lines /model
    screen_has '* echo:echo'
    keys C-d
    screen_has 'status 0'
}

@test "interactive: what can be no history ends it before the first prompt" {
    mkdir directory
    mkfifo fifo
    ln -s nowhere link
    terminal
    type_lines 'clear; chat --history directory; echo "status $?"'
    screen_has "chat: cannot open 'directory': is a directory" 'status 1'
    type_lines 'clear; chat --history fifo; echo "status $?"'
    screen_has "chat: cannot open 'fifo': is a FIFO" 'status 1'
    type_lines 'clear; chat --history link; echo "status $?"'
    screen_has "chat: cannot open 'link': is a symbolic link" 'status 1'
    screen_lacks 'lists the commands'
}

@test "interactive: a history that may not be read is not needed to go on" {
    local rights='setpriv --bounding-set=-dac_override,-dac_read_search'
    echo '{"id":"1-a","session_id":"talk","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"old"}' >"$HISTORY"
    chmod 000 "$HISTORY"
    $rights true 2>/dev/null || skip 'cannot give up rights here'
    if $rights cat "$HISTORY" >/dev/null 2>&1; then skip 'everything can be read here'; fi
    terminal
    through=$rights converse
    type_lines one
    screen_has 'nothing is stored from now on' '[1 message]'
    type_lines two
    screen_has '[3 messages]'
    keys C-d
    screen_has 'status 8'
    chmod 600 "$HISTORY"
    [[ $(wc -l <"$HISTORY") == 1 ]]
}

# interrupt_held: chat, which strace has stopped, gets Ctrl-C before it goes on.
interrupt_held() {
    soon held || return 1
    keys C-c
    soon interrupt_waits && signal chat CONT
}

# Has SIGINT, of the value 2 in the mask, come to chat?
interrupt_waits() {
    local pid
    pid=$(descendant chat "$(tmux display-message -p '#{pane_pid}')") &&
        grep -q '^ShdPnd:.*[2367abef]$' "/proc/$pid/status"
}

@test "interactive: Ctrl-C just after Enter stops the answer that has not begun" {
    local prompts=$HOME/.local/state/chathist/prompts
    terminal
    # What is typed is kept before it is asked; there it is stopped.
    through="strace -qq -o trace -P $prompts -e inject=openat:signal=STOP:when=2" \
        converse -o delay_ms=200
    type_lines 'one two three four'
    interrupt_held
    screen_has interrupted
    screen_counts 1 three
    said 2 'one two three four' ''
}

@test "interactive: Ctrl-C at the prompt drops what was typed and says how to leave" {
    terminal
    converse
    keys -l 'not to be sent'
    keys C-c
    screen_has 'not to be sent^C'
    screen_counts 2 'talk>'
    keys C-c
    screen_has 'Ctrl-D or /quit leaves'
    keys C-c
    type_lines hello
    screen_has '[1 message]'
    said 2 hello $'hello\n[1 message]'
}

@test "interactive: what is typed during an answer is the next prompt" {
    terminal
    converse -o delay_ms=300
    type_lines 'a slow one'
    type_lines 'typed ahead'
    screen_has '[3 messages]'
    said 4 'a slow one' $'a slow one\n[1 message]' 'typed ahead' $'typed ahead\n[3 messages]'
}

@test "interactive: an empty line is nothing" {
    terminal
    converse
    type_lines '' '   ' hello
    screen_has '[1 message]'
    said 2 hello $'hello\n[1 message]'
}

@test "interactive: without storing, the model knows the conversation all the same" {
    start_llm --reply one --reply two --reply three --reply four
    hist_line talk user before >"$HISTORY"
    remember "$HISTORY"
    terminal
    converse --no-store
    type_lines first
    screen_has one
    type_lines second
    screen_has two
    request_messages_are 2 $'user:before\n\nfirst' assistant:one user:second
    type_lines /regenerate
    screen_has three
    request_messages_are 3 $'user:before\n\nfirst' assistant:one user:second
    type_lines '/edit third'
    screen_has four
    request_messages_are 4 $'user:before\n\nfirst' assistant:one user:third
    type_lines '/save out.md'
    screen_has 'out.md: saved'
    grep -E '^[a-z]|^## ' out.md | sed 's/ (.*//' | paste -s -d '|' >got
    is got got '## User|before|## User|first|## Assistant|one|## User|third|## Assistant|four'
    keys C-d
    screen_has 'status 0'
    unchanged "$HISTORY"
    [[ ! -e $HISTORY.session && ! -e $HOME/.local/state/chathist/prompts ]]
}

# ---- lines

@test "interactive: a text of several lines" {
    terminal
    converse
    keys -l first
    keys C-j
    keys -l second
    keys M-Enter
    type_lines third
    screen_has '[1 message]'
    said 2 $'first\nsecond\nthird' $'first\nsecond\nthird\n[1 message]'
    type_lines 'one\' 'two\\'
    screen_has '[3 messages]'
    said 4 $'one\ntwo\\\\' $'one\ntwo\\\\\n[3 messages]'
    type_lines '"""' 'in a' '' 'block' '"""'
    screen_has '[5 messages]'
    said 6 $'in a\n\nblock' $'in a\n\nblock\n[5 messages]'
    type_lines '"""short"""'
    screen_has '[7 messages]'
    said 8 short $'short\n[7 messages]'
    # Given up in the middle.
    type_lines 'half\'
    keys -l more
    screen_has '... more'
    keys C-c
    type_lines whole
    screen_has '[9 messages]'
    said 10 whole $'whole\n[9 messages]'
    # Ctrl-D ends the text.
    type_lines '"""cut'
    keys C-d
    screen_has '[11 messages]'
    said 12 cut $'cut\n[11 messages]'
}

# Each line is typed as it stands, with one key in it; the prompt that comes of it is the second column.
key_lines() {
    cat <<'END'
ab cd\e[1;5DX|ab Xcd
ab cd\e[1;3DX|ab Xcd
ab cd\e\e[DX|ab Xcd
ab cd\eOdX|ab Xcd
ab cd\e[H\e[1;5CX|abX cd
ab cd\e[1;2DX|ab cXd
ab cd\e[DX|ab cXd
ab cd\eODX|ab cXd
ab cd\e[HX|Xab cd
ab cd\eOHX|Xab cd
ab cd\e[1~X|Xab cd
ab cd\e[7~X|Xab cd
ab cd\e[1~\e[4~X|ab cdX
ab cd\e[7~\e[8~X|ab cdX
ab cd\e[H\e[FX|ab cdX
ab cd\e[H\e[3~X|Xb cd
ab cd\e[H\e[3;5~X|X cd
ab cd\e[1;5A\e[5~\e[6~\e[2~\e[15;5~\e[24~\e[[A\eOP\e[21^\e[1;2;3ZX|ab cdX
ab cd\x17X|ab X
END
}

@test "interactive: keys with modifiers, and keys without a meaning, in every terminal" {
    key_lines >lines
    cut -d '|' -f 2 lines >wanted
    for term in xterm xterm-256color screen tmux tmux-256color linux rxvt; do
        args=()
        while IFS='|' read -r keys _; do
            args+=(--type "$keys\\r" --wait 'message' --wait '> ')
        done <lines
        run_expect 0 env TERM="$term" "$TESTS/tools/on-tty" --wait '> ' "${args[@]}" --eof chat -q -s talk
        jq -r 'select(.role == "user") | .content' "$HISTORY" >got
        same "what was typed in $term" wanted got
        rm "$HISTORY"
    done
}

@test "interactive: a key that comes in pieces is still one key" {
    terminal
    converse
    keys -l 'ab cd'
    for byte in 1b 5b 31 3b 35 44; do
        tmux send-keys -H "$byte"
        sleep 0.1
    done
    keys -l X
    keys Enter
    screen_has '[1 message]'
    said 2 'ab Xcd' $'ab Xcd\n[1 message]'
    # Ctrl-C ends what is no key.
    keys -l dropped
    tmux send-keys -H 1b 5b 31
    keys C-c
    keys C-Left
    type_lines kept
    screen_has '[3 messages]'
    said 4 kept $'kept\n[3 messages]'
}

@test "interactive: Shift-Enter and Alt-Enter begin a new line" {
    run_expect 0 on_tty --wait '> ' --type 'one\e[13;2utwo\e[27;2;13~three\e\rfour\e[13;5ufive\e[13u' --wait 'message' --eof chat -s talk
    json_is <(head -n 1 "$HISTORY") .content $'one\ntwo\nthree\nfour\nfive'
}

@test "interactive: what ~/.editrc binds to a sequence holds" {
    printf '%s\n' 'bind "\e[15~" ed-move-to-beg' 'bind "\e[A" ed-move-to-beg' 'bind "\e[1;5D" ed-move-to-beg' >"$HOME/.editrc"
    run_expect 0 on_tty --wait '> ' --type 'a b\e[15~1\r' --wait message --wait '> ' --type 'a b\e[A2\r' --wait message --wait '> ' \
        --type 'a b\e[1;5D3\e[1;5C4\r' --wait message --eof chat -q -s talk
    json_is <(jq -c 'select(.role == "user")' "$HISTORY") .content '1a b' '2a b' '3a4 b'
}

@test "interactive: Ctrl-_ takes back changes, word by word" {
    run_expect 0 on_tty --wait '> ' --type 'one two three\x1f\x1ffour\r' --wait message --wait '> ' \
        --type 'lost words\x15\x1f kept\r' --wait message --wait '> ' --type 'abc def\x1f\x1f\x1fx\r' --wait message --wait '> ' \
        --type 'some\x12one\x07\x1fnew\r' --wait message --eof chat -q -s talk
    json_is <(jq -c 'select(.role == "user")' "$HISTORY") .content 'one four' 'lost words kept' x new
}

@test "interactive: keys with the keys of vi" {
    echo 'bind -v' >"$HOME/.editrc"
    run_expect 0 on_tty --wait '> ' --type 'ab cd\e[DX\r' --wait message --wait '> ' --type 'ab cd\e[1;5DX\e[1~Y\e[15~\r' --wait message --wait '> ' \
        --type 'ab\e' --pause 200ms --type '0iX\r' --wait message --eof chat -q -s talk
    json_is <(jq -c 'select(.role == "user")' "$HISTORY") .content 'ab cXd' 'Yab Xcd' 'Xab'
}

@test "interactive: exit, quit and :q leave, help and ? show the commands; nothing is sent" {
    for word in exit quit :q; do
        run_expect 0 on_tty --wait '> ' --type "$word\\r" chat -q -s talk
        [[ ! -e $HISTORY ]]
    done
    for word in help '?'; do
        run_expect 0 on_tty --wait '> ' --type "$word\\r" --wait '/regenerate' --wait '> ' --eof chat -q -s talk
        [[ ! -e $HISTORY ]]
    done
    run_expect 0 on_tty --wait '> ' --type ' exit\r' --wait message --wait '> ' --type 'quit it\r' --wait message --eof chat -q -s talk
    json_is <(jq -c 'select(.role == "user")' "$HISTORY") .content ' exit' 'quit it'
}

@test "interactive: what is pasted is one text, whatever ends its lines" {
    terminal
    converse
    tmux set-buffer $'one\n\ttwo  \nthree\n'
    paste_buffer -p
    screen_has three
    said_nothing
    keys Enter
    screen_has '[1 message]'
    said 2 $'one\n\ttwo  \nthree' $'one\n\ttwo  \nthree\n[1 message]'
    # Between two prompts the terminal does not mark a paste.
    screen_counts 2 'talk>'
    tmux set-buffer $'a\r\nb\nc\rd'
    keys -l 'x '
    paste_buffer -p -r
    keys -l ' y'
    keys Enter
    screen_has '[3 messages]'
    said 4 $'x a\nb\nc\nd y' $'x a\nb\nc\nd y\n[3 messages]'
    # Nothing in it is a key; what a terminal would obey is shown.
    screen_counts 3 'talk>'
    tmux set-buffer $'tab\there \x01 \x03 \x04 \e[2J end'
    paste_buffer -p
    screen_has '^A ^C ^D ^[[2J end'
    keys Enter
    screen_has '[5 messages]'
    said 6 $'tab\there \x01 \x03 \x04 \e[2J end' $'tab\there \x01 \x03 \x04 \e[2J end\n[5 messages]'
}

said_nothing() {
    [[ ! -s $HISTORY ]] || fail 'something was sent already'
}

@test "interactive: a large paste" {
    terminal
    converse
    seq -f 'line %g of a large paste' 1 3000 >large
    tmux load-buffer large
    paste_buffer -p
    screen_has 'line 3000 of'
    keys Enter
    soon history_is 2
    jq -j 'select(.role == "user") | .content, "\n"' "$HISTORY" >got
    same prompt large got
}

@test "interactive: earlier prompts come back, here and in the next program" {
    terminal
    converse
    type_lines first $'second'
    screen_has '[3 messages]'
    keys Up Up Enter
    screen_has '[5 messages]'
    said 6 first $'first\n[5 messages]'
    type_lines first
    screen_has '[7 messages]'
    keys C-d
    screen_has 'status 0'
    same prompts <(printf '"first"\n"second"\n"first"\n') "$HOME/.local/state/chathist/prompts"
    [[ $(stat -c %a "$HOME/.local/state/chathist/prompts") == 600 ]]
    tmux kill-server
    terminal
    converse
    keys C-r
    keys -l sec
    keys C-e Enter
    screen_has '[9 messages]'
    said 10 second $'second\n[9 messages]'
}

@test "interactive: wide characters are edited, in any locale" {
    for locale in C.UTF-8 C; do
        terminal 40x10
        LC_ALL=$locale
        tmux send-keys "export LC_ALL=$locale" Enter
        converse
        keys -l '你好世界'
        keys Left Left
        keys -l 'é'
        keys C-h
        keys -l 'ü'
        keys Enter
        screen_has '你好ü世界'
        soon history_is 2
        json_is <(head -n 1 "$HISTORY") .content '你好ü世界'
        keys C-d
        screen_has 'status 0'
        tmux kill-server
        rm "$HISTORY"
    done
}

@test "interactive: bytes that are no text become U+FFFD" {
    run_expect 0 on_tty --wait '> ' --type 'a\xff\xe4\xbdb\r' --wait 'message' --eof chat -s talk
    json_is <(head -n 1 "$HISTORY") .content $'a\xef\xbf\xbd\xef\xbf\xbdb'
}

@test "interactive: a terminal of another kind, or with hardly any room" {
    for term in dumb vt100 none-such ''; do
        run_expect 0 env TERM="$term" "$TESTS/tools/on-tty" --raw --wait '> ' --type 'hello\r' --wait 'message' --wait '> ' --type '/quit\r' chat -q -s talk
        stdout_has '[1 message]'
        if [[ $term == dumb ]]; then
            stdout_lacks $'\e'
        fi
        rm "$HISTORY"
    done
    run_expect 0 on_tty --size 1x1 --wait '> ?' --type 'hello\r' --wait 'essage' --eof chat -s talk
    run_expect 0 on_tty --size 40x10 --wait '> ' --resize 10x3 --type 'a long line to be typed here\r' --wait 'message' --resize 200x50 --eof chat -s talk
    said 4 'a long line to be typed here' $'a long line to be typed here\n[3 messages]'
}

@test "interactive: a line that is longer than the screen can be continued after its beginning was edited" {
    local x
    x=$(printf 'x%.0s' {1..60})
    # Ctrl-A, Ctrl-E: libedit does not move the cursor below the screen, and wrote behind its copy of it.
    run_expect 0 on_tty --size 20x3 --wait '> ' --type "$x"'\x01' --pause 50ms --type '\x05' --pause 50ms \
        --type "$x"'\r' --wait 'message' --eof chat -s talk
    said 2 "$x$x" "$x$x"$'\n[1 message]'
}

# The screen without what went off it at the top.
rows_are() {
    cat >wanted
    soon rows_are_now || fail "wanted:" "$(cat wanted)" "got:" "$(cat rows)"
}

rows_are_now() {
    tmux capture-pane -p >rows
    cmp -s wanted rows
}

@test "interactive: a draft of many lines: up and down in it, a window on it, the editor, the history at its ends" {
    printf '#!/bin/sh\nsed -i s/five/FIVE/ "$1"\n' >editor
    chmod +x editor
    export EDITOR=$PWD/editor
    terminal 30x5
    converse
    type_lines one
    screen_has '[1 message]'
    # The second Down does nothing, because the draft is not of the history.
    keys -l first
    keys C-j
    keys -l second
    keys Up
    keys -l A
    keys Down Down
    keys -l B
    screen_has 'echo talk> first' 'secondB'
    # The cursor was in the sixth column, and so is A.
    keys Up Up
    screen_has 'echo talk> one'
    keys Down
    screen_has 'echo talk> firstA'
    keys C-u
    tmux set-buffer $'L one\nL two\nL three\nL four\nL five\nL six\nL seven\nL eight'
    paste_buffer -p
    rows_are <<'END'
L four
L five
L six
L seven
L eight
END
    keys C-a
    keys -l XYZ
    rows_are <<'END'
echo talk> XYZL one
L two
L three
L four
L five
END
    keys Down Down Down Down Down
    keys -l '!'
    keys C-x C-e
    rows_are <<'END'
L four
L FIVE
L s!ix
L seven
L eight
END
    tmux resize-window -x 30 -y 4
    rows_are <<'END'
L FIVE
L s!ix
L seven
L eight
END
    keys Enter
    screen_has '[3 messages]'
    said 4 $'XYZL one\nL two\nL three\nL four\nL FIVE\nL s!ix\nL seven\nL eight' \
        $'XYZL one\nL two\nL three\nL four\nL FIVE\nL s!ix\nL seven\nL eight\n[3 messages]'
    # All of it went up, once.
    screen_counts 2 'XYZL one'
    # An editor that fails leaves the draft.
    export EDITOR=false
    keys C-d
    soon shell_waits_now
    type_lines 'EDITOR=false chat -s talk'
    screen_counts 2 '-D leaves'
    keys -l kept
    keys C-x C-e
    screen_has "chat: editor 'false' failed"
    keys Enter
    screen_has '[5 messages]'
    said 6 kept $'kept\n[5 messages]'
}

@test "interactive: the window changes its size" {
    terminal 40x10
    converse
    keys -l 'a line that is longer than forty columns are wide'
    screen_has 'are wide'
    tmux resize-window -x 100 -y 20
    screen_has 'talk> a line that is longer than forty columns are wide'
    tmux resize-window -x 30 -y 20
    keys -l '!'
    keys Enter
    screen_has '[1 message]'
    said 2 'a line that is longer than forty columns are wide!' $'a line that is longer than forty columns are wide!\n[1 message]'
}

# Escape, which in the insert mode of vi moves the cursor to the left as soon as no other key follows.
press_escape() {
    local before
    before=$(tmux display-message -p '#{cursor_x}')
    keys Escape
    soon cursor_has_left "$before"
}

cursor_has_left() {
    [[ $(tmux display-message -p '#{cursor_x}') -lt $1 ]]
}

@test "interactive: keys of vi, when ~/.editrc asks for them" {
    echo 'bind -v' >"$HOME/.editrc"
    terminal
    converse
    tmux set-buffer $'pasted\nlines'
    paste_buffer -p
    screen_has lines
    press_escape
    keys -l 0iX
    screen_has Xpasted
    press_escape
    keys Enter
    screen_has '[1 message]'
    said 2 $'Xpasted\nlines' $'Xpasted\nlines\n[1 message]'
}

@test "interactive: the arrow keys go through earlier prompts in the command mode of vi" {
    echo 'bind -v' >"$HOME/.editrc"
    terminal
    converse
    type_lines first
    screen_has '[1 message]'
    keys -l x
    screen_has 'talk> x'
    press_escape
    keys Up
    screen_counts 2 'talk> first'
    keys Down
    screen_has 'talk> x'
}

# ---- leaving and stopping

@test "interactive: signals end it, the terminal is as it was" {
    local signal status
    for signal in TERM:143 HUP:129 QUIT:131; do
        status=${signal#*:}
        # SIGUSR1 makes the shell send it to chat.
        run_expect 0 on_tty --type 'x' --wait 'talk> x' --type 'y\r' --wait 'message' --wait 'talk> ' --pause 200ms \
            --signal USR1 --wait "ended $status" \
            bash -c 'before=$(stty -g); trap "kill -$0 \$!" USR1; env --default-signal=QUIT chat -s talk <&0 &
                wait "$!"; wait "$!"; echo "ended $?"; [[ $(stty -g) == "$before" ]] && echo same' "${signal%:*}"
        stdout_has same
        rm "$HISTORY"
    done
}

@test "interactive: signals end it though Ctrl-S has stopped the terminal" {
    local signal
    # What was typed makes it write, and that it waits cannot be seen from outside.
    for signal in TERM:143 HUP:129; do
        run_expect "${signal#*:}" on_tty --wait 'talk> ' --type '\x13' --pause 200ms --type hi --pause 300ms \
            --signal "${signal%:*}" chat -s talk
    done
}

@test "interactive: a signal in an answer stores what came first" {
    run_expect 143 on_tty --wait 'talk> ' --type "one two $(seq -s ' ' 100)\\r" --wait 'two' --wait 'two' --signal TERM chat -s talk -o delay_ms=150
    json_is "$HISTORY" .finish_reason null interrupted
}

@test "interactive: the terminal goes away" {
    run_expect 129 on_tty --wait 'talk> ' --hangup chat -s talk
    run_expect 129 on_tty --wait 'talk> ' --type 'one two three\r' --wait 'three' --wait 'one' --hangup chat -s talk -o delay_ms=300
    soon history_is 2
}

@test "interactive: Ctrl-Z stops it, and it goes on" {
    terminal
    converse
    keys -l 'half a '
    keys C-z
    screen_has Stopped
    type_lines 'stty -a | grep -o " echo " && echo do""ne'
    screen_has 'done'
    type_lines fg
    screen_counts 2 'talk> half a'
    type_lines line
    screen_has '[1 message]'
    said 2 'half a line' $'half a line\n[1 message]'
    keys C-d
    soon shell_waits_now
    type_lines 'echo back again'
    screen_has '$ echo back again'
}

# ---- commands

@test "interactive: /help, and what is no command" {
    terminal
    converse
    type_lines /help
    screen_has '/regenerate' '/save [-a] FILE' 'Alt-Enter'
    type_lines '/help load'
    screen_has 'continue a past session'
    type_lines '/help zzz'
    screen_has "there is no command '/zzz'"
    type_lines /serach
    screen_has "unknown command '/serach': did you mean /search? ('//serach' sends it)"
    type_lines /zzz
    screen_has "unknown command '/zzz' (/help lists them, '//zzz' sends it)"
    said_nothing
    type_lines //zzz
    screen_has '[1 message]'
    said 2 /zzz $'/zzz\n[1 message]'
    type_lines '/usr/bin/env is what?'
    screen_has '[3 messages]'
    said 4 '/usr/bin/env is what?' $'/usr/bin/env is what?\n[3 messages]'
    type_lines '/ is the root'
    screen_has '[5 messages]'
    said 6 '/ is the root' $'/ is the root\n[5 messages]'
    type_lines /exit
    screen_has 'status 0'
}

@test "interactive: every command has a line in /help and in the manual" {
    run_expect 0 on_tty --raw --wait '> ' --type '/help\r' --wait 'Ctrl-R' --eof chat --color=never
    sed 's/\x1b\[[0-9;?]*[a-z]//g' "$OUT" | grep -oE '^/[a-z]+' | sort -u >listed
    [[ $(wc -l <listed) -ge 14 ]]
    sed -nE 's/^\.It Cm (\/[a-z]+).*/\1/p; s/^\.It Cm (\/[a-z]+) , (\/[a-z]+)$/\2/p' "$ROOT/man/chat.1" | sort >documented
    sed -nE 's/^\.It Cm \/[a-z]+ , (\/[a-z]+)$/\1/p' "$ROOT/man/chat.1" | sort -u - documented >both
    same commands listed both
}

@test "interactive: /new begins another session, /sessions lists, /load goes back" {
    terminal
    type_lines 'chat; echo "status $?"'
    screen_has 'Ctrl-D leaves'
    type_lines first
    screen_has '[1 message]'
    type_lines '/new Answer in French'
    screen_has 'session sess_'
    type_lines /system
    screen_has 'Answer in French'
    type_lines bonjour
    screen_counts 2 '[1 message]'
    soon history_is 5
    json_is "$HISTORY" .role user assistant system user assistant
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) == 2 ]]
    type_lines /sessions
    screen_has ' 1  sess_' ' 2  sess_' '/load N continues one'
    type_lines '/load 2'
    screen_has '2 messages'
    type_lines back
    screen_has '[3 messages]'
    [[ $(jq -r .session_id "$HISTORY" | sed -n '1p;$p' | sort -u | wc -l) == 1 ]]
    [[ $(head -n 1 "$HISTORY.session") == $(jq -r .session_id "$HISTORY" | head -n 1) ]]
    type_lines '/sessions 1' '/sessions x'
    screen_has '/sessions all lists older ones' "bad number 'x'"
    type_lines '/load zzz' /load '/load 9'
    screen_has "no session 'zzz'" "no session: try '/load ID'" "no session '9'"
}

@test "interactive: /search, and a hit is loaded" {
    { hist_lines one 30; hist_lines two 4; hist_line three user 'a needle'; } >"$HISTORY"
    terminal
    converse
    type_lines '/search NEEDLE'
    screen_has ' 1  three ' '/load N continues the session of one'
    screen_lacks ' 2  '
    type_lines '/load 1'
    screen_has 'session three, 1 message'
    type_lines hello
    screen_has 'a needle'
    said 37 hello $'a needle\n\nhello\n[1 message]'
    json_is <(tail -n 1 "$HISTORY") .session_id three
    type_lines '/search elephant' /search '/search message'
    screen_has 'nothing was found' "no query: try '/search WORD...'" 'there are more; /load N'
}

@test "interactive: /search lists sessions if no message has all words" {
    {
        hist_line one user 'the pool is empty' 2024-01-01T10:00:00.000000+00:00
        hist_line one assistant 'raise its limit' 2024-01-01T10:00:01.000000+00:00
        hist_line two user 'the pool is full' 2024-01-02T10:00:00.000000+00:00
    } >"$HISTORY"
    terminal
    converse
    type_lines '/search limit pool'
    screen_has 'no message has all words; these sessions have them:' ' 1  one ' ' 2  one ' 'raise its' '/load N continues'
    screen_lacks ' two '
    type_lines clear '/search pool lmit'
    screen_has 'no session has all words; these have all but one:' ' 1  two ' ' 2  one '
    type_lines '/search lmit pol' '/search -empty limit pool'
    screen_has 'nothing was found'
}

@test "interactive: Ctrl-C ends /search, also while it looks for sessions" {
    {
        hist_line one user 'the pool is empty'
        hist_line one assistant 'raise its limit'
    } >"$HISTORY"
    terminal
    # The history is read for the prompt, then for messages with both words, and then for each word: here.
    through="strace -qq -o trace -P $HISTORY -e inject=pread64:signal=STOP:when=8" converse
    type_lines '/search limit pool'
    interrupt_held
    screen_has interrupted
    screen_lacks 'these sessions have them' 'nothing was found' '/load N'
    # The next one is not.
    type_lines '/search limit pool'
    screen_has 'no message has all words; these sessions have them:' '/load N continues'
}

@test "interactive: a session that came with the repository is loaded only by its name" {
    unset CHAT_HISTORY
    make_repo
    mkdir -m 700 .git/aicoder
    { hist_line theirs user hello; } >.git/aicoder/history.jsonl
    echo theirs >.git/aicoder/session
    terminal
    type_lines 'chat; echo "status $?"'
    screen_has 'Ctrl-D leaves'
    type_lines '/load last'
    screen_has 'there is no session of yours'
    pointer_is .git/aicoder/session theirs
    type_lines '/load theirs'
    screen_has 'session theirs, 1 message'
    pointer_is .git/aicoder/session theirs
}

@test "interactive: /regenerate and /edit" {
    start_llm --reply one --reply two --reply three --reply four
    cat >editor <<'X'
#!/bin/sh
stty -a <"$(tty)" | grep -q ' echo ' && sed -i 's/question/edited/' "$1"
X
    chmod +x editor
    export VISUAL=$PWD/editor
    terminal
    converse
    type_lines '/regenerate' '/edit'
    screen_has "session 'talk' has no prompt yet" 'there is no prompt yet to be edited'
    type_lines 'the question'
    screen_has one
    type_lines /regenerate
    screen_has two
    request_messages_are 2 'user:the question'
    type_lines '/edit another question'
    screen_has three
    request_messages_are 3 'user:another question'
    type_lines /edit
    screen_has four
    request_messages_are 4 'user:another edited'
    soon history_is 7
    run_expect 0 hist-show --json talk
    stdout_json .content 'another edited' four
}

@test "interactive: /model lists and changes" {
    start_llm --models small,big --reply one --reply two
    export CHAT_MODEL=openai:small
    terminal
    converse
    screen_has 'small talk>'
    type_lines /model
    screen_has '* openai:small' '  openai:big'
    type_lines '/model big'
    screen_has 'model openai:big' 'big talk>'
    type_lines hello
    screen_has one
    [[ $(jq -r .model "$RECORD/2.json") == big ]]
    type_lines '/model echo:echo' hi
    screen_has 'echo talk>' '[3 messages]'
    type_lines '/model anthropic:x'
    screen_has "no key for 'anthropic'"
    type_lines 'still here'
    screen_has '[5 messages]'
}

@test "interactive: /system shows, sets and takes away" {
    start_llm --reply one --reply two --reply three --reply four --reply five
    terminal
    converse
    type_lines /system '/system Be brief' /system first
    screen_has 'there is no system prompt' 'Be brief' one
    type_lines second
    screen_has two
    type_lines '/system ""' third
    screen_has three
    request_messages_are 1 'system:Be brief' user:first
    request_messages_are 2 'system:Be brief' user:first assistant:one user:second
    request_messages_are 3 user:first assistant:one user:second assistant:two user:third
    # Quotation marks around all of it are none of it.
    type_lines '/system "Be terse"' fourth
    screen_has four
    type_lines '/system "a" and "b"' fifth
    screen_has five
    json_is "$HISTORY" 'select(.role == "system") | .content' 'Be brief' '' 'Be terse' '"a" and "b"'
}

@test "interactive: /file attaches, /tools lists none" {
    echo 'int a;' >a.c
    mkdir -p "$HOME/dir"
    echo 'int b;' >"$HOME/dir/b c.c"
    terminal
    converse
    type_lines /tools /file '/file missing' '/file a.c' '/file -' '/file a.c' '/file ~/dir/b c.c'
    screen_has 'no tools were given' 'no file is attached' "missing" 'a.c: goes with the next prompt' 'b c.c: goes with'
    type_lines look
    screen_has '[1 message]'
    soon history_is 2
    json_is <(head -n 1 "$HISTORY") '.content, .files[]' look '' '```a.c' 'int a;' '```' '' '```'"$HOME/dir/b c.c" 'int b;' '```' a.c "$HOME/dir/b c.c"
    type_lines next
    screen_has '[3 messages]'
    said 4 next $'next\n[3 messages]'
    # One that has gone meanwhile: nothing is sent, and it stays attached.
    type_lines '/file a.c'
    screen_counts 4 'a.c: goes with'
    rm a.c
    type_lines hello
    screen_has "cannot open 'a.c'"
    history_is 4
}

@test "interactive: /file does not wait at a FIFO" {
    mkfifo fifo
    terminal
    converse
    type_lines '/file fifo' /file
    screen_has "cannot open 'fifo': is a FIFO" 'no file is attached'
}

@test "interactive: /insert puts what a command prints into the next prompt" {
    terminal
    converse
    type_lines '/insert printf "first\nsecond\n"'
    screen_has 'second'
    type_lines ' and more'
    screen_has '1 message'
    said 2 $'first\nsecond and more' $'first\nsecond and more\n[1 message]'
    type_lines '/insert exit 3' '/insert' '/insert true'
    screen_has 'nothing is inserted: the command ended with status 3' 'a command is expected after /insert' \
        'nothing is inserted: the command printed nothing'
    type_lines next
    screen_has '3 messages'
    said 4 next $'next\n[3 messages]'
}

@test "interactive: /save writes a file, and overwrites none without being told to" {
    hist_line talk assistant calls '' '{"tool_calls":[{"id":"c","name":"ls","args":{"a":1}}],"model":"m"}' >"$HISTORY"
    terminal
    converse
    type_lines /save '/save -a' hello '/save out.md'
    screen_has "no file: try '/save FILE'" 'out.md: saved'
    hist-export -f md talk >wanted
    same saved wanted out.md
    [[ $(stat -c %a out.md) == 600 ]]
    type_lines '/save -a out.md'
    screen_has 'out.md is there: overwrite it? [y/N]'
    type_lines n
    screen_has 'out.md: not saved'
    same saved wanted out.md
    type_lines '/save -a out.md' y
    screen_counts 2 'out.md: saved'
    same answer <(printf 'hello\n[3 messages]\n') out.md
    type_lines '/save missing/out.md'
    screen_has "cannot open 'missing/out.md'"
    mkfifo fifo
    type_lines '/save fifo' '/save .'
    screen_has "cannot open 'fifo': is a FIFO" 'fifo: not saved' "cannot open '.': is a directory"
    # Not the history, of which that would be the end.
    cp "$HISTORY" before
    type_lines "/save $(basename "$HISTORY")" "/save -a $(basename "$HISTORY").session"
    screen_has "'$(basename "$HISTORY")' is the history" 'belongs to the history'
    same history before "$HISTORY"
    type_lines /new '/save empty.md'
    screen_has 'there is nothing yet to be saved'
}

@test "interactive: settings, personas and templates hold for the conversation" {
    start_llm --models tiny,tidy --reply one --reply two --reply three --reply four
    mkdir -p "$HOME/.config/chathist/personas" "$HOME/.config/chathist/templates"
    printf -- '---\nmodel = tidy\neffort = low\noption.temperature = 0.5\n---\nYou are a pirate.\n' \
        >"$HOME/.config/chathist/personas/pirate"
    printf -- '---\nsystem = Be exact.\n---\nInto {{language:English}}: {{input}}\n' >"$HOME/.config/chathist/templates/translate"
    terminal 100x50
    converse
    type_lines '/set max_tokens 100' '/set option.seed 7' first
    screen_has 'max_tokens 100' 'option.seed 7' one
    [[ $(jq -c '[.max_tokens // .max_completion_tokens, .seed, .temperature, .model]' "$RECORD/1.json") == '[100,7,null,"test-model"]' ]]
    keys -l '/persona p'
    keys Tab Enter
    screen_has 'model openai:tidy' 'effort low' 'option.temperature 0.5' "from the next prompt on: persona 'pirate'"
    type_lines '/set max_tokens -' '/set option.seed -' second
    screen_has two
    [[ $(jq -c '[.max_tokens // .max_completion_tokens, .seed, .temperature, .model, .reasoning_effort]' "$RECORD/2.json") == '[null,null,0.5,"tidy","low"]' ]]
    request_messages_are 2 'system:You are a pirate.' user:first assistant:one user:second
    # A word NAME=VALUE is a variable if the template has it.
    type_lines '/template translate language=French x=1 is what'
    screen_has three
    request_messages 3 | tail -n 1 >prompt
    is prompt prompt 'user:Into French: x=1 is what'
    [[ $(request_messages 3 | head -n 1) == 'system:Be exact.' ]]
    type_lines '/set effort lots' '/set nothing 1' '/set effort' '/persona nobody' '/template' '/persona' '/template translate'
    screen_has "bad value 'lots' for effort" "no setting 'nothing': /set lists them" "no value: try '/set effort VALUE'" \
        "no persona 'nobody'" 'translate' "no prompt: template 'translate' is for one"
    requests_are 3
    keys -l '/set e'
    keys Tab
    keys -l 'me'
    keys Tab Enter
    screen_has 'effort medium'
    type_lines /set
    screen_has 'effort medium' 'max_tokens -' 'option.temperature 0.5'
}

@test "interactive: /browse comes back with a session, one of another history too, or with a message" {
    mkdir repo other
    export -n CHAT_HISTORY
    unset CHAT_HISTORY
    git init -q repo
    git init -q other
    (cd other && chat -q -s elsewhere 'a question elsewhere' && hist-title -q elsewhere 'Far away') >/dev/null
    cd repo
    chat -q -s older 'an older question' >/dev/null
    terminal 80x24
    type_lines 'chat -s talk; echo "status $?"'
    screen_has 'talk>'
    type_lines 'hello there'
    screen_has '[1 message]'
    type_lines '/browse older'
    screen_has 'Enter choose' 'an older question'
    keys Tab Enter
    screen_has 'session older, 2 messages'
    type_lines more
    screen_has '[3 messages]'
    # A message goes into the draft.
    type_lines '/browse hello'
    screen_has 'Enter choose' 'hello there'
    keys Tab p
    screen_has 'echo older> hello there'
    keys C-u
    type_lines '/browse elsewhere'
    screen_has 'Ctrl-S: search all histories'
    keys C-s
    screen_has 'a question elsewhere'
    keys Tab Enter
    screen_has ': copy it here? [y/N]'
    type_lines y
    screen_counts 2 ', 2 messages'
    type_lines 'and here'
    screen_has '[3 messages]'
    type_lines /title
    screen_has 'Far away'
    type_lines /browse
    screen_has 'Enter choose'
    keys C-c
    soon screen_lacks_now 'Enter choose'
    type_lines /quit
    screen_has 'status 0'
    run_expect 0 hist-show --json older
    json_is "$OUT" .content 'an older question' $'an older question\n[1 message]' more $'more\n[3 messages]'
}

@test "interactive: a session has a title and a description, the last answer is copied, the last exchange is shown" {
    prices 'echo:* 1 - - 2 EUR'
    mkdir bin
    printf '#!/bin/sh\ncat >copied\n' >bin/pbcopy
    chmod +x bin/pbcopy
    PATH=$PWD/bin:$PATH
    unset DISPLAY WAYLAND_DISPLAY
    terminal 80x50
    type_lines 'unset TMUX; chat -s talk'
    screen_has 'talk>'
    type_lines /copy 'some words'
    screen_has 'there is no answer yet to be copied' '[1 message]'
    type_lines /copy
    printf 'some words\n[1 message]' >wanted
    soon cmp -s wanted copied || same clipboard wanted copied
    type_lines '/title The first one' /info
    screen_has "title 'The first one'" 'session   talk' 'title     The first one' "history   $HISTORY" 'messages  2' \
        'context   about ' 'used      2 input and 4 output tokens' 'cost      0.00001 EUR'
    json_is <(tail -n 1 "$HISTORY") '"\(.role) \(.session_id) \(.content)"' 'title talk The first one'
    type_lines '/title -' /title
    screen_has 'the session has no title now' 'the session has no title'
    keys C-d
    soon shell_waits_now
    type_lines 'clear; chat -s talk'
    screen_has 'the session goes on; its last exchange, just now:' '> some words' '< some words [1 message]'
    type_lines '/search WORDS role:user' '/search role:user since:x'
    screen_has ' 1  talk ' "'x'"
    type_lines /new '/title early'
    screen_has 'no title: the session has no message yet'
}

# ---- completion

@test "interactive: TAB offers no model if the server refuses to list them" {
    # What is asked there gets the answer of the fixture, the list of models as well.
    start_llm openai/http-401
    export OPENAI_BASE_URL=$OPENAI_BASE_URL/other CHAT_MODEL=openai:m
    terminal
    converse
    keys -l '/model op'
    keys Tab
    keys C-u
    type_lines '/help quit'
    screen_has 'leave, as Ctrl-D does'
}

@test "interactive: TAB completes commands and what they take" {
    start_llm --models tiny,tidy,huge --reply one
    { hist_line alpha-1 user x; hist_line alpha-2 user x; hist_line beta-777 user x; } >"$HISTORY"
    mkdir folder
    touch folder/file.txt folder/other.txt .hidden
    terminal
    converse
    keys -l /reg
    keys Tab
    screen_has '> /regenerate'
    keys C-u
    keys -l /s
    keys Tab
    screen_has '/search             /sessions           /save               /system'
    keys C-u
    keys -l '/load al'
    keys Tab
    screen_has '> /load alpha-'
    keys Tab
    screen_has 'alpha-2             alpha-1'
    keys C-u
    keys -l '/load -777'
    keys Tab
    screen_has '> /load beta-777'
    keys C-u
    keys -l '/file fo'
    keys Tab
    screen_has '> /file folder/'
    keys -l f
    keys Tab
    screen_has '> /file folder/file.txt'
    keys C-u
    keys -l '/save -a ./fol'
    keys Tab
    screen_has '> /save -a ./folder/'
    keys C-u
    keys -l '/model t'
    keys Tab
    screen_has '> /model ti'
    keys C-u
    keys -l '/model openai:h'
    keys Tab
    screen_has '> /model openai:huge'
    keys C-u
    keys -l '/help qu'
    keys Tab
    screen_has '> /help quit'
    keys C-u
    # Not in a prompt.
    keys -l 'fold'
    keys Tab Enter
    screen_has one
    request_messages_are 2 user:fold
}

@test "interactive: names that a terminal would obey are shown" {
    touch $'evil\e[2J\xc2\x9b31mfile' $'two\e[2J1' $'two\e[2J2'
    hist_line s user x | sed 's/"s"/"ev\\u001b[2Jil"/' >"$HISTORY"
    run_expect 0 on_tty --raw --wait 'talk> ' --type '/file two\t\t' --wait 'two.*1 .*two.*2' --type '\x15/file evil\t\r' --wait 'goes with' --type '/load ev\t\r' --wait '(?s)2004l.*> ' --type '/sessions\r' --wait '(?s)continues one.*> ' --type '/model\r' --wait '(?s)2004l.*> ' --type '/quit\r' chat -s talk --color=never -m $'echo:\e[2Jm\xc2\x9bx'
    stdout_lacks $'\e[2J' $'\xc2\x9b'
}

# ---- tools and keys

@test "interactive: a call is asked for as on any terminal, and the conversation goes on" {
    put_tool step 'echo ran >>ran; echo ok'
    start_llm --call 'step {"n":1}' --reply Done. --call 'step {"n":2}' --reply 'As you wish.' --reply last
    terminal
    converse -T ./step
    type_lines go
    screen_has "run 'step'? [y]es"
    type_lines yes
    screen_has '(this tool, this run): yes' Done.
    type_lines again
    screen_has '{"n":2}'
    screen_counts 2 "run 'step'? [y]es"
    type_lines n
    screen_has 'As you wish.'
    said 8 'the user refused to have the tool run' 'As you wish.'
    [[ $(cat ran) == ran ]]
    # Behind it the line is edited as before.
    type_lines $'more\\' still
    screen_has last
    said 10 $'more\nstill' last
}

@test "interactive: a key command can ask for a passphrase" {
    start_llm --reply one --reply two
    unset OPENAI_API_KEY
    export GROQ_API_KEY='' CHAT_BASE_URL=$OPENAI_BASE_URL
    mkdir -p "$HOME/.config/chathist"
    for name in openai groq; do
        echo "api_key_command.$name = printf '$name passphrase: ' >/dev/tty; read -r word </dev/tty; echo key-\$word"
    done >"$HOME/.config/chathist/config"
    terminal
    type_lines 'chat -s talk'
    screen_has 'openai passphrase:'
    type_lines 1
    screen_has 'openai passphrase: 1' 'talk>'
    type_lines hello
    screen_has one
    grep -q '^Authorization: Bearer key-1' "$RECORD/1.headers"
    type_lines '/model groq:x'
    screen_has 'groq passphrase:'
    type_lines 2
    screen_has 'groq passphrase: 2' 'model groq:x'
    type_lines again
    screen_has two
    grep -q '^Authorization: Bearer key-2' "$RECORD/2.headers"
}

@test "interactive: Ctrl-C ends a key command of /model, and not the conversation nor the MCP servers" {
    start_llm --reply one --call 'fake__echo {"text":"still here"}' --reply two
    export CHAT_BASE_URL=$OPENAI_BASE_URL
    mkdir -p "$HOME/.config/chathist"
    echo 'api_key_command.groq = printf "passphrase: " >/dev/tty; stty -echo </dev/tty; read -r word </dev/tty; echo key' \
        >"$HOME/.config/chathist/config"
    terminal
    converse --yes --mcp "'fake=$TESTS/tools/fake-mcp --pid pid'"
    type_lines hello
    screen_has one
    type_lines '/model groq:x'
    screen_has 'passphrase:'
    keys C-c
    screen_has interrupted 'test-model talk>'
    # The prompt is as before, and so are model and server.
    type_lines again
    screen_has 'talk> again' two
    said 6 again '' 'still here' two
    keys C-d
    screen_has 'status 0'
    soon gone pid
    # A signal that is for chat ends it properly.
    rm pid
    converse --yes --mcp "'fake=$TESTS/tools/fake-mcp --pid pid'"
    type_lines '/model groq:x'
    screen_counts 2 'passphrase:'
    signal chat HUP
    screen_has 'status 129'
    soon gone pid
}

gone() {
    ! alive "$(cat "$1")"
}

@test "interactive: no key that /model brings is in a tool's environment" {
    put_tool show 'printenv WORK_KEY || echo none'
    start_llm --call 'show {}' --reply one --call 'show {}' --reply two
    export CHAT_BASE_URL=$OPENAI_BASE_URL WORK_KEY=secret-of-work
    configure 'api_key_command.groq = printenv WORK_KEY'
    terminal
    converse --yes -T ./show
    type_lines go
    screen_has one
    type_lines '/model groq:x'
    screen_has 'model groq:x'
    type_lines again
    screen_has two
    json_is "$HISTORY" 'select(.role == "tool").content' secret-of-work '' none ''
    grep -q '^Authorization: Bearer secret-of-work' "$RECORD/3.headers"
}

@test "interactive: what is typed while a key command runs is the next prompt" {
    start_llm --reply one
    export CHAT_BASE_URL=$OPENAI_BASE_URL
    configure 'api_key_command.groq = sleep 1; echo key'
    terminal
    converse
    type_lines '/model groq:x' again
    screen_has one
    said 2 again one
}

@test "interactive: --no-store keeps the conversation after a prompt that no line can hold" {
    use_echo
    # Each byte becomes six in JSON, and a line holds 64 MiB.
    head -c 12000000 /dev/zero | tr '\0' '\033' >long
    terminal
    converse --no-store
    type_lines 'first prompt'
    screen_has '[1 message]'
    type_lines '/file long' 'what is it?'
    screen_has 'longer than 64 MiB'
    screen_lacks_now 'nothing is stored from now on'
    type_lines 'and again'
    screen_has '[3 messages]'
}

@test "interactive: --no-store remembers calls, and what could not be asked changes nothing" {
    put_tool step 'echo ok'
    start_llm --call 'step {"n":1}' --reply Done. --reply more --reply edited
    terminal
    converse --no-store --yes -T ./step
    type_lines go
    screen_has Done.
    echo x >gone
    type_lines '/file gone'
    screen_has 'goes with the next prompt'
    rm gone
    type_lines '/edit other'
    screen_has "cannot open 'gone'"
    type_lines '/file -' next
    screen_has more
    request_messages_are 3 user:go 'assistant:[step {"n":1}]' $'tool:ok\n' assistant:Done. user:next
    type_lines '/edit last'
    screen_has edited
    request_messages_are 4 user:go 'assistant:[step {"n":1}]' $'tool:ok\n' assistant:Done. user:last
}

# ---- a history that cannot be written

@test "interactive: a history that cannot be written: the conversation goes on in memory, exit 8" {
    start_llm --reply one --reply two --reply three --reply four --reply five
    terminal
    ln -s /proc/absent absent
    type_lines 'chat -s talk -S "Be brief" --history absent/h.jsonl; echo "status $?"'
    screen_has 'talk>'
    type_lines first
    screen_has one "chat: not stored: cannot make directory 'absent': File exists" \
        'chat: nothing is stored from now on: the conversation goes on in memory'
    rm absent && mkdir absent
    type_lines second
    screen_has two
    request_messages_are 2 'system:Be brief' user:first assistant:one user:second
    type_lines /regenerate
    screen_has three
    request_messages_are 3 'system:Be brief' user:first assistant:one user:second
    type_lines '/edit third'
    screen_has four
    type_lines fifth
    screen_has five
    request_messages_are 5 'system:Be brief' user:first assistant:one user:third assistant:four user:fifth
    type_lines '/save out.md'
    screen_has 'out.md: saved'
    [[ $(grep -c '^## ' out.md) == 7 ]]
    screen_counts 1 'nothing is stored'
    screen_counts 1 'cannot make directory'
    type_lines /quit
    screen_has 'status 8'
    [[ -z $(ls absent) ]] || fail 'the history was touched'
}

@test "interactive: a disk that is full in the middle: nothing is said twice, nothing is lost" {
    start_llm --reply one --reply "$(head -c 3010 /dev/zero | tr '\0' x) end" --reply three --reply four --reply five
    terminal 250x24
    type_lines 'ulimit -f 2'
    converse
    type_lines first
    screen_has one
    said 2 first one
    # The prompt has room, the answer has not.
    type_lines second
    screen_has ' end' 'File too large' 'nothing is stored from now on'
    said 3 second
    type_lines third
    screen_has three
    [[ $(request_messages 3 | cut -c 1-16 | tr '\n' '|') == 'user:first|assistant:one|user:second|assistant:xxxxxx|user:third|' ]]
    said 3 second
    # A past session can be loaded, a new one begun.
    type_lines /new fourth
    screen_has four
    request_messages_are 4 user:fourth
    type_lines '/load talk' fifth
    screen_has five
    request_messages_are 5 user:first assistant:one $'user:second\n\nfifth'
    said 3 second
    keys C-d
    screen_has 'status 8'
    screen_counts 1 'nothing is stored'
}

@test "interactive: /model and back asks the server of --base-url again, and no other" {
    start_llm --reply one --reply two
    url=$OPENAI_BASE_URL
    export OPENAI_BASE_URL=http://127.0.0.1:9/v1
    terminal
    converse --base-url "$url"
    type_lines hello
    screen_has one
    type_lines '/model echo:echo' '/model openai:test-model'
    screen_has 'model openai:test-model'
    type_lines again
    screen_has two
    requests_are 2
}

@test "interactive: /regenerate leaves attached files for the next prompt" {
    start_llm --reply one --reply two --reply three
    echo 'int a;' >a.c
    terminal
    converse
    type_lines hello
    screen_has one
    type_lines '/file a.c' /regenerate
    screen_has two
    type_lines look
    screen_has three
    said 5 $'look\n\n```a.c\nint a;\n```' three
}

# ---- Markdown

@test "interactive: the terminal reports its background among the keys, and nothing that is typed is lost" {
    run_expect 0 on_tty --wait '11;.' --type 'typed `co\e]11;rgb:ffff/ffff/ffff\e\\de`\r' --wait message --wait '> ' --eof chat -N
    stdout_has $'\e[38;5;90mcode\e[0m'
    COLORFGBG='15;0' run_expect 0 on_tty --wait '> ' --type 'typed `code`\r' --wait message --wait '> ' --eof chat -N
    stdout_has $'\e[38;5;183mcode\e[0m'
    stdout_lacks ']11;'
}

@test "interactive: what is typed for the next program is not taken for a report of the terminal" {
    run_expect 0 on_tty --wait '11;.' --wait '> ' --type '/quit\r' --wait '2004l' --type 'x\n' sh -c 'chat -N; read -r line; echo "next: $line"'
    stdout_has 'next: x'
}

@test "interactive: Markdown is shown on a terminal with colours, each character kept" {
    printf '# Title\n\nA **bold** and *light* `code` in snake_case, 2*3.\n\n```c\nint *a;\n```\nend' >answer
    start_llm --reply "$(cat answer)"
    run_expect 0 on_tty --raw --fds 1 chat hello
    stdout_bytes_are '\e[38;5;243m#\e[0m\e[1m Title\e[0m\n\nA \e[38;5;243m**\e[0m\e[1mbold\e[0m\e[38;5;243m**\e[0m and \e[38;5;243m*\e[0m\e[3mlight\e[0m\e[38;5;243m*\e[0m \e[38;5;243m`\e[0m\e[38;5;98mcode\e[0m\e[38;5;243m`\e[0m in snake_case, 2*3.\n\n\e[38;5;243m```\e[0m\e[38;5;243mc\e[0m\n\e[38;5;163mint\e[0m *a;\n\e[38;5;243m```\e[0m\nend\n'
    for args in --no-markdown --color=never; do
        run_expect 0 on_tty --raw --fds 1 chat "$args" hello
        same answer <(cat answer && echo) "$OUT"
    done
    NO_COLOR=1 run_expect 0 on_tty --raw --fds 1 chat hello
    same answer <(cat answer && echo) "$OUT"
    # Neither in a pipe nor in the history, nor where it is code that is asked for.
    run_expect 0 chat --color=always hello
    same answer <(cat answer && echo) "$OUT"
    run_expect 0 on_tty --raw --fds 1 chat -x hello
    stdout_is 'int *a;'
    tail -n 1 "$HISTORY" | jq -j .content >stored
    same stored answer stored
}

@test "interactive: control characters inside of Markdown are shown all the same" {
    start_llm --reply $'**a\e[2J\xc2\x9b** `\e]52;c;AA\a` # \r'
    run_expect 0 on_tty --raw --fds 1 chat hello
    sed -E $'s/\e\\[(0|1|3|38;5;[0-9]+)m//g' "$OUT" >plain
    same 'without styles' <(printf '**a^[[2J<U+009B>** `^[]52;c;AA^G` # ^M\n') plain
}

@test "interactive: words are wrapped and tables have columns on a terminal, and nowhere else" {
    cat >answer <<'END'
A first line of words that is longer than the window.

| name | what it does |
|---|:-:|
| ls | lists files |
| 世界 | a **bold** word |

```
code that is longer than the window stays
```
see https://example.org/a/very/long/address/of/a/page now
END
    local args answer
    answer=$(cat answer)
    start_llm --reply "$answer" --reply "$answer" --reply "$answer" --reply "$answer" --reply "$answer"
    terminal 32x30
    converse
    type_lines hello
    screen_has ' now'
    tmux capture-pane -p | sed -n '/^A first/,/ now/p' >got
    cat >wanted <<'END'
A first line of words that is
longer than the window.

| name |  what it does   |
|------|:---------------:|
| ls   |   lists files   |
| 世界 | a **bold** word |

```
code that is longer than the win
dow stays
```
see
https://example.org/a/very/long/
address/of/a/page now
END
    same screen wanted got
    soon history_is 2
    jq -r 'select(.role == "assistant").content' "$HISTORY" >stored
    same stored answer stored
    # The next line of an answer has the new width.
    tmux resize-window -x 50 -y 30
    type_lines again
    screen_has 'longer than the window.' '| 世界 | a **bold** word |'
    screen_has 'A first line of words that is longer than the'
    keys C-d
    for args in '' --no-markdown; do
        # shellcheck disable=SC2086
        run_expect 0 chat $args hello
        same pipe answer "$OUT"
    done
    run_expect 0 on_tty --raw --fds 1 --size 32x30 chat --no-markdown hello
    same terminal answer "$OUT"
}

# ---- the sign

@test "interactive: a sign turns on standard error until something comes" {
    run_expect 0 on_tty --raw --fds 2 chat -o delay_ms=1500 hello
    has "$OUT" $'\r|' || fail 'no sign'
    has "$OUT" $'\r/' || fail 'it does not turn'
    [[ $(tail -c 4 "$OUT") == $'\r\e[K' ]] || fail 'it was not erased'
    run_expect 0 on_tty --raw --fds 2 chat -o delay_ms=3900 hello
    has "$OUT" ' 3 s' || fail 'it does not tell how long'
}

@test "interactive: no sign for the quick, nor where nobody sees it" {
    run_expect 0 on_tty --raw --fds 2 chat hello
    stdout_lacks $'\r'
    run_expect 0 on_tty --raw --fds 2 chat -q -o delay_ms=600 hello
    stdout_lacks $'\r'
    run_expect 0 on_tty --raw --fds 2 chat --json -o delay_ms=600 hello
    stdout_lacks $'\r'
    TERM=dumb run_expect 0 on_tty --raw --fds 2 chat -o delay_ms=600 hello
    stdout_lacks $'\r'
    run_expect 0 chat -o delay_ms=600 hello
    stderr_empty
}

@test "interactive: the sign makes way for messages" {
    start_llm --set 'delay-headers: 700ms' openai/http-429 --reply fine
    run_expect 0 on_tty --raw --fds 2 chat hello
    python3 - "$OUT" <<'END' || fail 'a message behind the sign'
import re, sys
for line in open(sys.argv[1], newline='').read().split('\n'):
    before = line.partition('chat:')[0]
    if 'chat:' in line and before and not before.endswith('\r\x1b[K'):
        sys.exit(repr(line))
END
    stdout_has 'chat: HTTP 429'
    run_expect 130 on_tty --raw --fds 2 --wait $'\r/' --signal INT chat -o delay_ms=5000 hello
    [[ $(tail -c 4 "$OUT") == $'\r\e[K' ]] || fail 'it was not erased'
}

@test "/model: the whole name is the model's at a provider on this machine" {
    start_llm --reply one
    terminal
    through="MISTRAL_API_KEY=k CHAT_PROVIDER=vllm CHAT_BASE_URL=http://127.0.0.1:$LLM_PORT/v1" converse -m m
    type_lines '/model mistral:7b'
    screen_has 'model vllm:mistral:7b'
    type_lines hello
    screen_has one
    [[ $(jq -r .model "$RECORD/1.json") == mistral:7b ]]
}

@test "interactive: after /new hist-mcp leaves out the session that is current now" {
    start_llm --reply 'first answer' --call 'hist-mcp__search {"query":"needle"}' --reply found
    export CHAT_BASE_URL=$OPENAI_BASE_URL
    terminal
    converse --yes --mcp hist-mcp
    type_lines 'the needle one'
    screen_has 'first answer'
    type_lines /new
    screen_has 'session sess_'
    type_lines 'the needle two'
    screen_has found
    [[ $(request 3 | jq -r '.messages[-1].content' | jq -r .content) == 'the needle one' ]] || fail "$(request 3 | jq '.messages[-1]')"
}
