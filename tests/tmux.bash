# shellcheck shell=bash
#
# tmux: the real programs on a terminal, its screen read, its keys pressed. For .bats files that have loaded
# `helper`; tmux_begin in their setup, tmux_end in their teardown.

tmux_begin() {
    # These would lead tmux to the server of the terminal in which the tests were started, and kill-server to its end.
    unset TMUX TMUX_PANE
    # A socket's path must be short.
    TMUX_TMPDIR=$(mktemp -d /tmp/chathist.XXXXXX)
    export TMUX_TMPDIR
}

tmux_end() {
    tmux -f /dev/null kill-server 2>/dev/null || :
    rm -rf "$TMUX_TMPDIR"
}

# terminal [SIZE]: a shell in a terminal of that size.
terminal() {
    local size=${1:-80x24}
    # A server that is just ending takes no session.
    soon new_session "$size"
    tmux set-option -g history-limit 10000
    tmux set-option -g default-terminal "$TERM"
    screen_has '$'
}

new_session() {
    local size=$1
    tmux -u -f /dev/null new-session -d -x "${size%x*}" -y "${size#*x}" \
        'stty -ixon; exec env "PS1=\$ " bash --norc --noprofile' 3>&- 4>&-
}

# soon COMMAND...: until it succeeds, for a minute: the search of a gigabyte takes its time on a busy machine.
soon() {
    local i
    for ((i = 0; i < 1200; i++)); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    printf 'waited in vain for: %s\n' "$*" >&2
    return 1
}

# descendant NAME PID: prints the id of the program NAME among the processes that PID started.
descendant() {
    local child
    pgrep -x -P "$2" "$1" && return
    for child in $(pgrep -P "$2"); do
        descendant "$1" "$child" && return
    done
    return 1
}

# signal NAME SIGNAL: sends it to the program NAME that runs in this terminal.
signal() {
    local pid
    pid=$(descendant "$1" "$(tmux display-message -p '#{pane_pid}')") || return 1
    kill -s "$2" "$pid"
}

keys() {
    tmux send-keys "$@"
}

# type TEXT...: each of them, and Enter.
type_lines() {
    local text
    for text; do
        tmux send-keys -l "$text"
        tmux send-keys Enter
    done
}

# The screen with what went off it at the top, without blank ends of lines; SCREEN_FROM=0: without that.
screen() {
    tmux capture-pane -p -S "${SCREEN_FROM:--}" >"$BATS_TEST_TMPDIR/screen"
}

screen_has_now() {
    screen
    grep -qF -e "$1" "$BATS_TEST_TMPDIR/screen"
}

# screen_has TEXT...: each of them on a line, soon.
screen_has() {
    local text
    for text; do
        soon screen_has_now "$text" || { screen; cat "$BATS_TEST_TMPDIR/screen"; return 1; }
    done
}

screen_lacks() {
    local text
    screen
    for text; do
        if grep -qF -e "$text" "$BATS_TEST_TMPDIR/screen"; then
            cat "$BATS_TEST_TMPDIR/screen"
            fail "not wanted on the screen: $text" || return 1
        fi
    done
}

# Does no line of the screen have that text?
screen_lacks_now() {
    screen
    ! grep -qF -e "$1" "$BATS_TEST_TMPDIR/screen"
}

# The shell waits for a command. What is typed while a program leaves the terminal can be lost.
shell_waits_now() {
    screen
    [[ $(grep . "$BATS_TEST_TMPDIR/screen" | tail -n 1) == '$' ]]
}

# The screen has so many lines with that text.
screen_count_now() {
    screen
    [[ $(grep -cF -e "$2" "$BATS_TEST_TMPDIR/screen") == "$1" ]]
}

screen_counts() {
    soon screen_count_now "$@" || { cat "$BATS_TEST_TMPDIR/screen"; return 1; }
}

# paste_buffer [OPTION...]: pastes the buffer as it is; newer versions of tmux escape control characters unless
# told -S.
paste_buffer() {
    if tmux list-commands paste-buffer | grep -q 'S'; then set -- -S "$@"; fi
    tmux paste-buffer "$@"
}
