#!/usr/bin/env bash
# hist-browse: on a history of SIZE (100M; 1G) that was appended line by line, in ROUNDS (11) rounds on a
# terminal of 120x40: the time to the first screen with sessions, and from a key to its answer on the screen -
# while the sessions are being read, while it searches, while nothing goes on. After each key, the same is
# measured for `cat` on a second terminal, as a program that does nothing on this machine.
# Medians, what 99 of 100 do not pass, and the largest, in milliseconds, and the most memory that it took.
# Then keys in a session with a message of MESSAGE (50) MB.
# Exit status 1 when the first screen of 100M takes more than FIRST (50) ms, or 99 of 100 keys more than FRAME (16)
# above cat's.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
size=${SIZE:-100M}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp/home TERM=xterm LC_ALL=C.UTF-8
mkdir -p "$HOME"
unset CHAT_HISTORY "${!XDG_@}"
"$BUILD/bench/corpus" "$size" "$tmp/history"
python3 bench/browse.py "$BIN" "$tmp/history" "$size" "${ROUNDS:-11}" "${FIRST:-50}" "${FRAME:-16}" "${MESSAGE:-50}"
