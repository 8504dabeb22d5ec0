#!/usr/bin/env bash
# chat beside curl, llm and aichat, those that are installed, on one scripted server (bench/clients.py): from the
# start to the first byte of the request, a token on its way, and from the last byte to the exit; medians of ROUNDS
# (11) in microseconds. Without llm and aichat nothing but curl is compared.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
exec python3 bench/clients.py "$BIN/chat" "${ROUNDS:-11}"
