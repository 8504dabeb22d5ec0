#!/bin/sh
# demo: holds a short conversation in a temporary history, then lists, searches and loads it. Each
# command is printed before its output; the first one that fails ends the demo with its status.
#
# It asks the server that OPENAI_API_KEY or the CHAT_ settings name, else Ollama or llama.cpp on this
# machine. Without any of them it shows recorded conversations (conversations.jsonl) and continues one
# with the built-in echo model. The temporary history is removed when the demo ends.
set -eu

say() {
    printf '%s\n' "demo: $*"
}

# Prints a sentence about the next command.
then_say() {
    echo
    say "$@"
}

# Prints the command as it would be typed, and runs it.
run() {
    printf '$ %s\n' "$1"
    eval "$1" || {
        status=$?
        echo "demo: '$1' ended with status $status" >&2
        exit "$status"
    }
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
export CHAT_HISTORY="$scratch/history.jsonl"
unset CHAT_SESSION CHAT_SESSION_TIMEOUT CHAT_MAX_MESSAGES CHAT_MAX_BYTES

# Sets CHAT_MODEL if it is not set.
choose_model() {
    if [ "${CHAT_PROVIDER:-}" = echo ] || [ "${CHAT_PROVIDER:-}" = none ]; then
        export CHAT_MODEL=echo:echo
        unset CHAT_PROVIDER
        say "no model was chosen: showing recorded conversations"
    elif [ -n "${CHAT_MODEL:-}" ]; then
        say "asking $CHAT_MODEL"
    elif [ -n "${OPENAI_API_KEY:-}" ] &&
        [ -z "${CHAT_PROVIDER:-}${CHAT_BASE_URL:-}${OPENAI_BASE_URL:-}" ]; then
        export CHAT_MODEL=openai:gpt-4o-mini
        say "there is a key in OPENAI_API_KEY: asking $CHAT_MODEL (CHAT_MODEL changes that)"
    else
        # The configured server, or one that answers on a loopback port.
        CHAT_MODEL=$(chat --models 2>"$scratch/why" | head -n 1)
        export CHAT_MODEL
        if [ -n "$CHAT_MODEL" ]; then
            say "found a model server: asking $CHAT_MODEL"
        elif [ -n "${CHAT_PROVIDER:-}${CHAT_BASE_URL:-}${OPENAI_BASE_URL:-}" ]; then
            cat "$scratch/why" >&2
            exit 1
        else
            CHAT_MODEL=echo:echo
            say "found no model server: showing recorded conversations"
        fi
    fi
}

# A conversation with the model in CHAT_MODEL.
hold_conversation() {
    run "chat 'My name is Ada, and I have three apples and two pears. Reply in one short sentence.'"
    then_say "the next command is another process; it continues the conversation"
    run "chat 'What is my name, and how many fruits do I have? Reply in one short sentence.'"
    then_say "standard input and arguments together, in a new session"
    run "printf 'apple\npear\ngrape\n' | chat --new 'Which of these grows on a vine? One word.'"
    then_say "every message is kept: sessions can be listed, searched and loaded again"
    run "hist-sessions"
    echo
    run "hist-search --role user apples"
    echo
    run "hist-search --sessions 'my name' | hist-load -"
    run "chat 'I eat one pear. How many are left? Reply in one short sentence.'"
}

# The recorded conversations, found, read and continued.
show_recording() {
    cd "$(dirname "$0")"
    say "hist-import reads the conversations of other programs; these were recorded"
    run 'hist-import conversations.jsonl'
    run "hist-sessions"
    then_say "somewhere there was an answer about a connection pool"
    run "hist-search 'connection pool'"
    then_say "the whole conversation, with the tool that the model called"
    run "hist-search --sessions 'pool hang' | hist-show -"
    then_say "continue it: the next chat sends these messages with the new prompt"
    run "hist-search --sessions 'pool hang' | hist-load --limit 1 - >/dev/null"
    run "chat 'How do I test that?'"
    say "(the echo model answers with the prompt and the number of messages that it received)"
}

# The same history on the whole terminal.
browse() {
    [ -t 0 ] && [ -t 1 ] || return 0
    then_say "press Enter to search it with hist-browse; Ctrl-C closes hist-browse"
    read -r _ || return 0
    hist-browse "$1" || [ $? -eq 130 ]
}

choose_model
echo
case $CHAT_MODEL in
echo | echo:*)
    show_recording
    browse connection
    ;;
*)
    hold_conversation
    browse fruits
    ;;
esac
echo
say "done; your own history was not touched"
