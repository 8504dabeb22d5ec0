#!/bin/sh
# demo: imports recorded conversations into a temporary history, lists, searches, reads and continues
# them. Each command is printed before its output; the first one that fails ends the demo with its status.
#
# It asks no model, whatever is set or configured: it shows recorded conversations (conversations.jsonl)
# and continues one with the built-in echo model. The temporary history is removed when the demo ends.
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

# The same history on the whole terminal.
browse() {
    [ -t 0 ] && [ -t 1 ] || return 0
    then_say "press Enter to search it with hist-browse; Ctrl-C closes hist-browse"
    read -r _ || return 0
    hist-browse connection || [ $? -eq 130 ]
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# No variable and no file of the user chooses a model, a tool or a place.
for name in $(env | sed -n 's/^\(CHAT_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
export CHAT_PROVIDER=echo CHAT_HISTORY="$scratch/history.jsonl"
export XDG_CONFIG_HOME="$scratch" XDG_STATE_HOME="$scratch" XDG_CACHE_HOME="$scratch" XDG_DATA_HOME="$scratch"
cd "$(dirname "$0")"

say "no model is asked: these conversations were recorded, and hist-import reads them"
run 'hist-import conversations.jsonl'
run 'hist-sessions'
then_say "somewhere there was an answer about a connection pool"
run "hist-search 'connection pool'"
then_say "the whole conversation, with the tool that the model called"
run "hist-search --sessions 'pool hang' | hist-show -"
then_say "continue it: the next chat sends these messages with the new prompt"
run "hist-search --sessions 'pool hang' | hist-load --limit 1 - >/dev/null"
run "chat 'How do I test that?'"
say "(the echo model answers with the prompt and the number of messages that it received)"
browse
echo
say "done; your own history was not touched"
