#!/usr/bin/env bats
#
# A turn that takes the place of the last one: chat --regenerate and --edit.

# shellcheck disable=SC2016

load ../helper
load ../history

# thread_is LINE...: the current thread, as role:content.
thread_is() {
    hist-show --json "${SESSION:-s}" >"$BATS_TEST_TMPDIR/thread"
    json_is "$BATS_TEST_TMPDIR/thread" '.role + ":" + .content' "$@"
}

# line_ids: those of all lines of the history, by number, in the array ID.
line_ids() {
    mapfile -t ID < <(jq -r .id "$HISTORY")
}

# last_replaces INDEX...: the last line of the history supersedes exactly the lines of these numbers.
last_replaces() {
    local -a want=()
    line_ids
    for i in "$@"; do want+=("${ID[i]}"); done
    tail -n 1 "$HISTORY" >last
    json_is last '.replaces | join(" ")' "${want[*]}"
}

# ---- --regenerate

@test "again: --regenerate answers the last prompt again; the new answer replaces the old one" {
    start_llm --reply one --reply first --reply second --reply third
    run_expect 0 chat -s s zero
    run_expect 0 chat -s s question
    run_expect 0 chat -s s --regenerate
    stdout_is second
    stderr_empty
    cmp "$RECORD/2.json" "$RECORD/3.json"
    thread_is user:zero assistant:one user:question assistant:second
    last_replaces 3
    json_is last '.reply_to' "${ID[2]}"
    # Everything is there still.
    [[ $(($(wc -l <"$HISTORY"))) == 5 ]]
    run_expect 0 hist-show --raw s
    stdout_has first second
    run_expect 0 chat -s s --regenerate
    stdout_is third
    last_replaces 4
    thread_is user:zero assistant:one user:question assistant:third
    run_expect 0 chat -s s next
    request_messages_are 5 user:zero assistant:one user:question assistant:third user:next
}

@test "again: --regenerate of a prompt that failed stores it once; the answer replaces the mark" {
    start_llm openai/http-400 --reply answer
    run_expect 1 chat -s s question
    run_expect 0 chat -s s --regenerate
    stdout_is answer
    request_messages_are 2 user:question
    json_is "$HISTORY" '[.role, .content, .finish_reason, has("replaces")] | tojson' '["user","question",null,false]' \
        '["assistant","","error",false]' '["assistant","answer","stop",true]'
    line_ids
    json_is "$HISTORY" '.reply_to // empty' "${ID[0]}" "${ID[0]}"
    last_replaces 1
    thread_is user:question assistant:answer
}

@test "again: only a finished answer replaces; what came of another is kept beside the old one" {
    start_llm --reply first openai/cut openai/http-400 openai/length openai/content-filter openai/calls --reply last
    run_expect 0 chat -s s question
    run_expect 7 chat -s s --regenerate
    thread_is user:question assistant:first 'assistant:Hello, world.'
    run_expect 1 chat -s s --regenerate
    [[ $(($(wc -l <"$HISTORY"))) == 4 ]]
    run_expect 7 chat -s s --regenerate
    run_expect 6 chat -s s --regenerate
    run_expect 9 chat -s s --regenerate
    if grep -q replaces "$HISTORY"; then fail 'an unfinished answer replaces'; fi
    count=$(($(wc -l <"$HISTORY")))
    for n in 2 3 4 5 6; do request_messages_are $n user:question; done
    run_expect 0 chat -s s --regenerate
    # shellcheck disable=SC2046
    last_replaces $(seq 1 $((count - 1)))
    thread_is user:question assistant:last
}

@test "again: of several answers that were cut the last one is sent, not all joined" {
    start_llm openai/cut openai/length openai/http-400 --reply last
    run_expect 7 chat -s s question
    run_expect 7 chat -s s --regenerate
    run_expect 1 chat -s s --regenerate
    run_expect 0 hist-show --json s
    stdout_json '"\(.role):\(.finish_reason // "")"' user: assistant:error assistant:length assistant:error
    tail -n 2 "$OUT" | head -n 1 >"cut"
    run_expect 0 chat -s s next
    request_messages_are 4 user:question "assistant:$(jq -r .content cut)" user:next
}

@test "again: an interrupted --regenerate loses nothing" {
    start_llm --reply first openai/endless
    run_expect 0 chat -s s question
    background chat -s s --regenerate
    wait_for grep -q word "$OUT.bg"
    kill -INT "$BG"
    finish 130
    tail -n 1 "$HISTORY" >last
    json_is last '.finish_reason, has("replaces")' interrupted false
    run_expect 0 hist-show s
    stdout_has first word
    # What is sent is the answer that stands.
    run_expect 0 chat -s s --dry-run next
    stdout_json '.messages[] | "\(.role):\(.content)"' user:question assistant:first user:next
}

@test "again: --regenerate replaces the tool lines of the turn, and what others answered meanwhile stays" {
    start_llm --reply new
    {
        hist_line s user zero
        hist_line s user list
        hist_line s assistant '' '' '{"tool_calls":[{"id":"c1","name":"ls","args":{}}]}'
        hist_line s tool one '' '{"tool_call_id":"c1"}'
        hist_line other user between
        hist_line s assistant 'One file.'
        hist_line s system 'be brief'
    } >"$HISTORY"
    line_ids
    # An answer to the first prompt that came late.
    hist_line s assistant late '' "{\"reply_to\":\"${ID[0]}\"}" >>"$HISTORY"
    run_expect 0 chat -s s --regenerate
    request_messages_are 1 'system:be brief' user:zero assistant:late user:list
    last_replaces 2 3 5
    thread_is user:zero assistant:late user:list 'system:be brief' assistant:new
}

@test "again: --regenerate with another model, another system prompt, -n, --dry-run, --json" {
    start_llm --reply first --reply new
    run_expect 0 chat -s s question
    remember "$HISTORY"
    run_expect 0 chat -s s --regenerate --no-store
    run_expect 0 chat -s s --regenerate --dry-run
    stdout_json '.messages | tojson' '[{"role":"user","content":"question"}]'
    unchanged "$HISTORY"
    run_expect 0 chat -s s --regenerate -m openai:other -S brief --json
    stdout_json 'select(.type == "done") | .finish_reason' stop
    request_messages_are 3 system:brief user:question
    json_is "$HISTORY" .role user assistant system assistant
    last_replaces 1
    json_is last .model other
}

@test "again: the current session is meant, however long ago it was; --regenerate reads no standard input" {
    start_llm --echo-context
    {
        hist_line old user question 2020-01-01T00:00:00.000000+00:00
        hist_line old assistant answer 2020-01-01T00:00:01.000000+00:00
    } >"$HISTORY"
    echo old >"$HISTORY.session"
    touch -d '2 years ago' "$HISTORY.session"
    echo text | run_expect 0 chat --regenerate
    stdout_is user:question
    SESSION=old thread_is user:question assistant:user:question
    CHAT_SESSION=none run_expect 2 chat --regenerate
    stderr_is "chat: session 'none' has no prompt yet"
}

@test "again: wrong ways to say it" {
    use_echo
    for args in '--regenerate --edit x' '--regenerate -N' '--edit -N x' '--regenerate --messages f' '--edit --messages f x' \
        '--regenerate --models' '--regenerate x' '--regenerate -f f'; do
        # shellcheck disable=SC2086
        run_expect 2 chat $args
        stdout_empty
        stderr_matches "^chat: .* \\(see 'chat --help'\\)\$"
    done
    for args in --regenerate '--edit x' '-c --regenerate' '-s s --edit x'; do
        # shellcheck disable=SC2086
        run_expect 2 chat $args
        stderr_matches "^chat: session '[^']*' has no prompt yet\$"
    done
    [[ ! -e $HISTORY ]]
}

# ---- --edit

@test "again: --edit replaces the last prompt and what came of it" {
    start_llm --reply one --reply first --reply second --reply third
    run_expect 0 chat -s s zero
    run_expect 0 chat -s s question
    run_expect 0 chat -s s --edit better question
    stdout_is second
    stderr_empty
    request_messages_are 3 user:zero assistant:one 'user:better question'
    thread_is user:zero assistant:one 'user:better question' assistant:second
    head -n 5 "$HISTORY" >upto
    line_ids
    tail -n 1 upto >last
    json_is last '.role, (.replaces | join(" "))' user "${ID[2]} ${ID[3]}"
    tail -n 1 "$HISTORY" >last
    json_is last '.reply_to, has("replaces")' "${ID[4]}" false
    # From standard input, with a file, in its place.
    echo text >a.txt
    echo piped | run_expect 0 chat -s s --edit -f a.txt and more
    request_messages_are 4 user:zero assistant:one user:piped '' 'and more' '' '```a.txt' text '```'
    run_expect 0 hist-show --raw s
    stdout_has question 'better question' first second third
}

@test "again: --edit that fails loses nothing of the file, and can be answered again" {
    start_llm --reply first openai/http-400 --reply second
    run_expect 0 chat -s s question
    run_expect 1 chat -s s --edit better
    thread_is user:better assistant:
    run_expect 0 hist-show --raw s
    stdout_has question first better
    run_expect 0 chat -s s --regenerate
    request_messages_are 3 user:better
    thread_is user:better assistant:second
}

@test "again: --edit of a prompt that has no answer" {
    start_llm openai/http-400 --reply answer
    run_expect 1 chat -s s question
    run_expect 0 chat -s s --edit better
    request_messages_are 2 user:better
    thread_is user:better assistant:answer
}

@test "again: --edit whose prompt cannot be stored first has it stored with the answer" {
    use_echo
    run_expect 0 chat -s s question
    line_ids
    run_expect 8 traced -o trace -P "$HISTORY" -e trace=write -e inject=write:error=ENOSPC:when=1 chat -s s --edit better
    thread_is user:better $'assistant:better\n[1 message]'
    json_is "$HISTORY" '.replaces // empty | join(" ")' "${ID[0]} ${ID[1]}"
}

@test "again: --edit without a prompt and without a terminal" {
    use_echo
    run_expect 0 chat -s s question
    remember "$HISTORY"
    export EDITOR='touch called;'
    run_expect 2 chat -s s --edit
    stderr_matches '^chat: no prompt'
    run_expect 2 chat -s s --edit <<<''
    [[ ! -e called ]]
    unchanged "$HISTORY"
}

# An editor that shows what it is given and where, and leaves what is in the file `edited`.
make_editor() {
    cat >'my editor' <<'END'
#!/bin/sh
for file; do :; done
printf '%s\n' "$@" >arguments
stat -c %a "$file" >mode
cp "$file" given
[ ! -e edited ] || cat edited >"$file"
exit "${EDITOR_STATUS:-0}"
END
    chmod +x 'my editor'
}

@test "again: --edit on a terminal gives the last prompt to the editor" {
    start_llm --reply first --reply second --reply third
    make_editor
    run_expect 0 chat -s s $'two\nlines'
    printf 'edited\n\ntext\n' >edited
    EDITOR="'./my editor' --wait" run_expect 0 on_tty chat -s s --edit
    stdout_bytes_are 'second\r\n'
    printf 'two\nlines\n' >want
    same given want given
    is mode mode 600
    [[ $(head -n 1 arguments) == --wait && $(($(wc -l <arguments))) == 2 ]]
    thread_is $'user:edited\n\ntext' assistant:second
    # Nothing is left of it.
    run_expect 0 find "$TMPDIR" -type f
    stdout_empty
    # VISUAL goes first; standard output need not be the terminal.
    VISUAL="'./my editor'" EDITOR=false run_expect 0 on_tty --fds 02 chat -s s --edit
    thread_is $'user:edited\n\ntext' assistant:third
}

@test "again: an editor that fails, is missing, or leaves nothing: nothing is asked" {
    start_llm --reply first
    make_editor
    run_expect 0 chat -s s question
    remember "$HISTORY"
    EDITOR_STATUS=3 EDITOR="'./my editor'" run_expect 1 on_tty chat -s s --edit
    stdout_has "chat: editor ''./my editor'' failed with status 3"
    EDITOR=./none run_expect 1 on_tty chat -s s --edit
    stdout_has "chat: editor './none' failed with status 127"
    : >edited
    EDITOR="'./my editor'" run_expect 2 on_tty chat -s s --edit
    stdout_has 'chat: no prompt: the editor left none'
    printf ' \n\n' >edited
    EDITOR="'./my editor'" run_expect 2 on_tty chat -s s --edit
    stdout_has 'chat: no prompt: the editor left none'
    TMPDIR=$WORK/nowhere run_expect 1 on_tty chat -s s --edit
    stdout_has "chat: cannot make '$WORK/nowhere/chat-prompt."
    unchanged "$HISTORY"
    requests_are 1
    run_expect 0 find "$TMPDIR" -type f
    stdout_empty
    run_expect 2 on_tty chat -s other --edit
    stdout_has "chat: session 'other' has no prompt yet"
}
