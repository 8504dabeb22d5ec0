#!/usr/bin/env bash
# Ctrl-C: the time from the key on a terminal to the end of chat, or in a conversation to its next
# prompt, in each thing that it can be waiting for; of ROUNDS (11) rounds the median and the maximum, in
# milliseconds. Exit status 1 when one takes more than BAR (200) ms.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp/home TERM=xterm
mkdir -p "$HOME/.config/chathist"
unset CHAT_PROVIDER CHAT_BASE_URL CHAT_API_KEY CHAT_API_KEY_COMMAND CHAT_SESSION CHAT_HISTORY "${!XDG_@}"
exec 3<"$PWD/bench/interrupt.py"
cd "$tmp"
python3 - "$BIN/chat" "$OLDPWD/tests" "${ROUNDS:-11}" "${BAR:-200}" <&3
