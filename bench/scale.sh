#!/usr/bin/env bash
# Cost over size: every program on histories of SIZES (10M 100M 1G) that were appended line by line, beside
# rg, grep, jq, sqlite3 (LIKE and FTS5), the floor (every byte read and added up) and a program that does
# nothing; medians of ROUNDS (21) rounds in turns of whole processes. Those that count must give the same
# counts. A peer that is not installed is skipped. ROWS is an expression for the names of rows, if not all are
# wanted; the floor must be one.
# Writes a table and a plot to OUT (build/bench): scale.md, scale.svg. Exit status 2 when counts differ.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
export BUILD BIN=${BIN:-$BUILD} LC_ALL=C.UTF-8 CHAT_FSYNC=0 CHAT_PROVIDER=echo
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp
unset CHAT_SESSION CHAT_HISTORY CHAT_MODEL "${!XDG_@}"
out=${OUT:-build/bench}
mkdir -p "$out"
# shellcheck disable=SC2086
python3 bench/scale.py "$tmp" "$out" "${ROUNDS:-21}" ${SIZES:-10M 100M 1G}
