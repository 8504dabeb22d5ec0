#!/bin/sh
# basic: one question and one answer in a new session.
#
#   basic.sh [QUESTION]...
#
# The exit status of chat gives the kind of failure; `man chat` lists them.
set -u

status=0
chat --new -- "${*:-In one sentence: what is a pipe in Unix?}" || status=$?
case $status in
3) echo "${0##*/}: is the key right?" >&2 ;;
4 | 5) echo "${0##*/}: the server cannot be reached or is busy; it is worth another try" >&2 ;;
7) echo "${0##*/}: the answer is incomplete; what came of it is in the history" >&2 ;;
8) echo "${0##*/}: the answer is complete, but it is not in the history" >&2 ;;
esac
exit "$status"
