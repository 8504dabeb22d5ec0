#!/bin/sh
# conversation: several turns, two sessions that know nothing of each other, a restart, and a later run
# that goes on.
#
#   conversation.sh                  makes two sessions and prints their ids
#   conversation.sh ID [PROMPT]...   continues one of them
#
# The ids are made here, not by chat: the same id is always the same conversation, so a program can keep
# one for each of its users.
set -eu

new_id() {
    uuidgen 2>/dev/null || cat /proc/sys/kernel/random/uuid
}

# ask ID PROMPT
ask() {
    printf '\n%s> %s\n' "$(printf %.8s "$1")" "$2"
    chat --no-stdin -s "$1" -- "$2"
}

if [ $# -gt 0 ]; then
    id=$1
    shift
    ask "$id" "${*:-What was my first message to you?}"
    exit
fi

ada=$(new_id)
bob=$(new_id)

echo "== several turns"
ask "$ada" 'My name is Ada. Remember the number 36.'
ask "$ada" 'Which number did I give you?'

echo
echo "== isolation: another id knows nothing of it"
ask "$bob" 'My name is Bob. Which number did I give you?'
ask "$ada" 'What is my name?'

echo
echo "== restart: the same id, an empty context"
hist-new --detached --reset "$ada"
ask "$ada" 'Do you know my name?'
ask "$bob" 'And mine?'

echo
echo "== what was said before the restart is no longer sent, but still found"
hist-search --session "$ada" --role user 'number 36'

echo
echo "go on at any time with:"
echo "  $0 $ada"
echo "  $0 $bob"
