#!/bin/sh
# pinned-session: a script with a separate session.
#
#   pinned-session.sh FILE...
#
# Asks for a summary of each file, then for what they have in common. $CHAT_SESSION pins every chat in
# here to one session: whatever else runs meanwhile, in other terminals or by cron, nothing of it comes
# into this conversation, and the current session of the user stays what it is.
set -eu

if [ $# -eq 0 ]; then
    echo "usage: ${0##*/} FILE..." >&2
    exit 2
fi

CHAT_SESSION=$(hist-new --detached)
export CHAT_SESSION

for file; do
    echo "== $file"
    chat --no-stdin -f "$file" 'Summarise this file in one sentence.'
done
echo "== all of them"
chat --no-stdin 'What do these files have in common? One sentence.'
echo
echo "the whole conversation: hist-show $CHAT_SESSION"
