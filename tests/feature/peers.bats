#!/usr/bin/env bats
#
# What a copy of the history on another machine may change in a conversation, and what chat says of it.

load ../helper

setup() {
    sandbox
    use_echo
    mkdir folder
    as mine
}

# as MACHINE: from here on, commands run on this machine.
as() {
    export HOME=$BATS_TEST_TMPDIR/$1
    mkdir -p "$HOME"
    HISTORY=$HOME/.local/share/aicoder/history.jsonl
}

# plant ROLE TEXT MEMBERS: another machine puts a line into the current session of this one, and both synchronise.
plant() {
    local session
    session=$(head -n 1 "${HISTORY%/*}/session")
    run_expect 0 hist-sync -q folder
    as theirs
    run_expect 0 hist-sync -q folder
    jq -cn --arg s "$session" --arg r "$1" --arg t "$2" "{session_id: \$s, role: \$r, content: \$t} + $3" >line
    run_expect 0 hist-append --json <line
    run_expect 0 hist-sync -q folder
    as mine
    run_expect 0 hist-sync -q folder
}

# names WHAT: the next request of the current session names this, once.
names() {
    local session
    session=$(head -n 1 "${HISTORY%/*}/session")
    run_expect 0 chat --dry-run next
    stderr_is "chat: something other than this chat has changed session '$session': $1; 'hist-show --raw $session' prints its lines"
    run_expect 0 chat -q next
    stderr_is "chat: something other than this chat has changed session '$session': $1; 'hist-show --raw $session' prints its lines"
    run_expect 0 chat -q next
    stderr_empty
}

@test "peers: a reset, a system prompt and replaced messages of another machine are named once before they are sent" {
    run_expect 0 chat -q hello
    plant system EVIL '{}'
    names 'it was given a new system prompt'
    plant system '' '{reset: true}'
    names 'it was reset'
    plant user 'other words' "{replaces: [$(tail -n 2 "$HISTORY" | head -n 1 | jq .id)]}"
    names 'messages were replaced'
    plant system EVIL '{reset: true}'
    plant user words "{replaces: [$(tail -n 2 "$HISTORY" | head -n 1 | jq .id)]}"
    names 'it was reset, it was given a new system prompt, messages were replaced'
    # Other lines are the conversation, and a title is not sent.
    plant user question '{}'
    plant title theirs '{replaces: ["x"]}'
    run_expect 0 chat -q -c next
    stderr_empty
}

@test "peers: chat -c and the name of the current session name it, too" {
    run_expect 0 chat -q hello
    plant system EVIL '{}'
    run_expect 0 chat -q --dry-run -c next
    stderr_has 'a new system prompt'
    run_expect 0 chat -q --dry-run -s "$(head -n 1 "${HISTORY%/*}/session")" next
    stderr_has 'a new system prompt'
    run_expect 0 chat -q -c next
    stderr_has 'a new system prompt'
    run_expect 0 chat -q -c next
    stderr_empty
    # Who reads the session has seen it.
    plant system EVIL '{}'
    run_expect 0 hist-load -q last
    run_expect 0 chat -q next
    stderr_empty
    # A program of this machine is another one, too.
    run_expect 0 hist-append -r system EVIL
    run_expect 0 chat -q next
    stderr_has 'a new system prompt'
}

@test "peers: what the user does on this machine is not named" {
    run_expect 0 chat -q -S 'first prompt' hello
    run_expect 0 chat -q -S 'second prompt' again
    stderr_empty
    run_expect 0 chat -q --edit 'another question'
    run_expect 0 chat -q --regenerate
    stderr_empty
    session=$(head -n 1 "${HISTORY%/*}/session")
    run_expect 0 hist-new -q --reset "$session"
    run_expect 0 chat -q next
    stderr_empty
    run_expect 0 hist-new -q --detached --reset "$session" -S 'third prompt'
    run_expect 0 chat -q --title 'a title' next
    stderr_empty
    run_expect 0 hist-new -q -S 'a prompt'
    run_expect 0 chat -q --edit x --dry-run || true
    run_expect 0 chat -q next
    stderr_empty
    # The prompt that a reset keeps is named.
    plant system EVIL '{}'
    run_expect 0 hist-new -q --reset "$(head -n 1 "${HISTORY%/*}/session")"
    stderr_has 'hist-new: something other than this chat has changed session' 'a new system prompt'
    run_expect 0 chat -q next
    stderr_empty
}

@test "peers: lines that arrive during a turn are named by the next one" {
    run_expect 0 chat -q hello
    session=$(head -n 1 "${HISTORY%/*}/session")
    background chat -q -p echo -o delay_ms=2000 'a slow question'
    wait_for grep -q 'a slow question' "$HISTORY"
    run_expect 0 hist-append -s "$session" -r system EVIL
    finish 0
    run_expect 0 chat -q next
    stderr_has 'a new system prompt'
    run_expect 0 chat -q next
    stderr_empty
}

@test "peers: every program takes the id of a pointer with a mark, and of one without" {
    run_expect 0 chat -q hello
    pointer=${HISTORY%/*}/session
    id=$(head -n 1 "$pointer")
    [[ $(sed -n 2p "$pointer") == $(tail -n 1 "$HISTORY" | jq -r .id) ]]
    for text in "$id" "$id"$'\n' "$id"$'\n\n' "$id"$'\nabsent\n' "$id"$'\r\nx y z\r\n'; do
        printf '%s' "$text" >"$pointer"
        run_expect 0 hist-show --raw --json current
        [[ $(jq -r .session_id "$OUT" | sort -u) == "$id" ]]
        run_expect 0 hist-title
        run_expect 0 chathist info --json
        json_is "$OUT" .session "$id"
        run_expect 0 hist-append more
        [[ $(tail -n 1 "$HISTORY" | jq -r .session_id) == "$id" ]]
        run_expect 0 hist-check -q
        run_expect 0 chat -q next
        stderr_empty
        pointer_is "$pointer" "$id"
    done
    # A pointer that another program has replaced stays as it is.
    [[ $(sed -n 2p "$pointer") == $(tail -n 1 "$HISTORY" | jq -r .id) ]]
    ln "$pointer" hard
    cp "$pointer" before
    run_expect 0 chat -q next
    cmp before hard
}
