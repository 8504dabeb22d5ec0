#!/bin/sh
# demo: a short real conversation in a history of its own, which is then listed, searched and loaded.
# Each command is printed before its output; the first that fails ends the demo with its status.
#
# It asks the server that OPENAI_API_KEY or the CHAT_ settings name, else Ollama or llama.cpp on this
# machine, else the built-in echo model. The history goes when the demo ends.
set -eu

say() {
    printf '%s\n' "demo: $*"
}

# A sentence before what is run next.
then_say() {
    echo
    say "$@"
}

# The command as it would be typed.
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

# Sets the model that is asked when none is chosen.
choose_model() {
    if [ -n "${CHAT_MODEL:-}" ]; then
        say "asking $CHAT_MODEL"
    elif [ -n "${OPENAI_API_KEY:-}" ] &&
        [ -z "${CHAT_PROVIDER:-}${CHAT_BASE_URL:-}${OPENAI_BASE_URL:-}" ]; then
        export CHAT_MODEL=openai:gpt-4o-mini
        say "there is a key in OPENAI_API_KEY: asking $CHAT_MODEL (CHAT_MODEL changes that)"
    else
        # What is configured, or a server that answers on a loopback port.
        CHAT_MODEL=$(chat --models 2>"$scratch/why" | head -n 1)
        export CHAT_MODEL
        if [ -n "$CHAT_MODEL" ]; then
            say "found a model server: asking $CHAT_MODEL"
        elif [ -n "${CHAT_PROVIDER:-}${CHAT_BASE_URL:-}${OPENAI_BASE_URL:-}" ]; then
            cat "$scratch/why" >&2
            exit 1
        else
            CHAT_MODEL=echo:echo
            say "found no model server: asking the built-in echo model, which answers with the prompt"
            say "and the number of messages that it was sent"
        fi
    fi
}

choose_model
echo
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
echo
say "done; your own history was not touched"
