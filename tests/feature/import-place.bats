#!/usr/bin/env bats
#
# Conversations with other programs and the repositories in which they were held: what cases cannot show.

load ../helper

setup() {
    sandbox
    use_echo
    cd "$HOME" || return 1
    make_repo mine
    unset CHAT_HISTORY
}

# said SESSION DIRECTORY: a prompt in a transcript of Claude Code.
said() {
    mkdir -p "$HOME/.claude/projects/p"
    printf '{"type":"user","uuid":"%s","sessionId":"%s","cwd":"%s","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"said in %s"}}\n' \
        "$1" "$1" "$2" "$1" >>"$HOME/.claude/projects/p/$1.jsonl"
}

@test "import: nothing is stored in a repository or a directory of another user" {
    ((EUID == 0)) || skip 'only root can give files away'
    make_repo theirs
    make_repo taken
    mkdir -p mine/sub/deep
    chown -R 65534 theirs mine/sub
    mkdir -m 700 taken/.git/aicoder
    chown 65534 taken/.git/aicoder
    for place in theirs taken mine/sub/deep; do said "${place//\//-}" "$HOME/$place"; done
    git init -q mine/sub/deep/own
    chown -R 65534 mine/sub/deep/own
    said own "$HOME/mine/sub/deep/own"
    run_expect 0 hist-import --scan --all
    stdout_is 4
    stderr_empty
    run_expect 0 hist-sessions --json
    [[ $(jq -r .session_id "$OUT" | cut -d : -f 2 | sort | paste -sd ' ') == 'mine-sub-deep own taken theirs' ]]
    [[ -z $(find theirs mine taken -name 'history*') ]]
}

@test "import: on a terminal the number has a name, and sessions of other places are told" {
    cd mine || return 1
    make_repo "$HOME/other"
    for i in 1 2; do said "here-$i" "$PWD"; said "there-$i" "$HOME/other"; done
    run_expect 0 on_tty --raw hist-import --scan
    stdout_is '2 new messages
hist-import: 2 sessions were held elsewhere: --scan --all stores them there'
    run_expect 0 on_tty --raw hist-import --scan --all
    stdout_is '2 new messages'
    said there-3 "$HOME/other"
    said here-3 "$PWD"
    run_expect 0 on_tty --raw --fds 012 hist-import --scan -q
    stdout_is '1 new message'
    said there-4 "$HOME/other"
    run_expect 0 hist-import --scan
    stdout_is 0
    stderr_empty
}

@test "import: a terminal is told once of conversations that belong to this repository" {
    local told='(1 message of|conversations with) claude-code, which erases them after 30 days, belong to this repository: hist-import --scan brings them here'

    cd mine || return 1
    # There are none, and it is not looked for them again that day.
    run_expect 1 on_tty --raw hist-search something
    ! grep -q 'belong to' "$OUT" || fail 'nothing to tell'
    said here "$PWD"
    run_expect 1 on_tty --raw hist-search something
    ! grep -q 'belong to' "$OUT" || fail 'looked again'
    touch -d '2 days ago' "$HOME/.local/state/chathist/import-hint"
    # No terminal, no words; and a history that is named is not this repository's.
    run_expect 1 hist-search something
    stderr_empty
    CHAT_HISTORY=h.jsonl run_expect 2 on_tty --raw hist-search something
    ! grep -q 'belong to' "$OUT" || fail 'a file'
    run_expect 1 on_tty --raw hist-search something
    grep -qE "^hist-search: $told" "$OUT"
    run_expect 1 on_tty --raw hist-search something
    ! grep -q 'belong to' "$OUT" || fail 'told twice'
    rm "$HOME/.local/state/chathist/import-hint"
    run_expect 0 on_tty --raw chat -N hello
    grep -qE "^chat: $told" "$OUT"
    # After a scan nobody needs it.
    rm "$HOME/.local/state/chathist/import-hint"
    run_expect 0 hist-import --scan
    stdout_is 1
    run_expect 1 on_tty --raw hist-search nothing-like-it
    ! grep -q 'belong to' "$OUT" || fail 'after a scan'
}
