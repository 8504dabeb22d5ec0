#!/usr/bin/env bash
# Streaming: the time from a token's bytes leaving the server to the standard output of chat, against
# a bare socket client and `curl -N` on the same server; medians of ROUNDS (21) rounds of TOKENS (200),
# in microseconds. Then what an answer of 10,000 and of 100,000 tokens costs: processor time for each
# token, and peak memory; stored, too.
# Exit status 1 when chat takes more than BAR (1.5) times as long as the bare client, or a token of the
# long answer more than CPU_BAR (1.25) times that of the short one, or when memory grows by more than
# MEMORY_BAR (8) bytes for each byte of the answer.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
rounds=${ROUNDS:-21} tokens=${TOKENS:-200}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp OPENAI_API_KEY=bench CHAT_MODEL=openai:bench
unset CHAT_PROVIDER CHAT_BASE_URL CHAT_API_KEY CHAT_SESSION CHAT_HISTORY
stream=$BUILD/bench/stream
over=0

"$stream" latency "$rounds" "$tokens" "$BUILD/bench/recv" PORT \
    -- curl -sN --json '{}' URL \
    -- "$BIN/chat" --no-store --no-stdin hello >"$tmp/latency"
printf '%-16s %10s %7s\n' 'one token' us ratio
awk -v bar="${BAR:-1.5}" 'NR == 1 { bare = $1 } {
    sub(".*/", "", $2)
    ratio = $1 / bare
    over = $2 == "chat" && ratio > bar
    printf "%-16s %10.1f %7.2f%s\n", $2, $1, ratio, over ? "  over " bar : ""
    failed = failed || over } END { exit failed }' "$tmp/latency" || over=1

# flood TOKENS OPTION...: of five runs, the least of each figure.
flood() {
    for _ in 1 2 3 4 5; do
        rm -f "$tmp/history"
        "$stream" flood "$1" "$BIN/chat" --no-stdin "${@:2}" hello
    done | awk '{ if (!n++ || $2 < us) us = $2; if (n == 1 || $3 < kb) kb = $3; bytes = $1 }
        END { print bytes, us, kb }'
}

printf '\n%-16s %10s %10s %10s %10s\n' answer us/token KiB 'growth' ratio
for how in '--no-store' "--history $tmp/history -s bench"; do
    # Options, several of them.
    # shellcheck disable=SC2086
    { flood 10000 $how && flood 100000 $how; } >"$tmp/flood"
    awk -v how="${how%% *}" -v cpu_bar="${CPU_BAR:-1.25}" -v memory_bar="${MEMORY_BAR:-8}" '
        { bytes[NR] = $1; us[NR] = $2 / ($1 / 6); kb[NR] = $3 }
        END {
            name = how == "--no-store" ? "not stored" : "stored"
            growth = (kb[2] - kb[1]) * 1024 / (bytes[2] - bytes[1])
            ratio = us[2] / us[1]
            printf "%-16s %10.2f %10d\n", "10k, " name, us[1], kb[1]
            printf "%-16s %10.2f %10d %10.2f %10.2f%s%s\n", "100k, " name, us[2], kb[2], growth, ratio,
                (growth > memory_bar ? "  memory over " memory_bar : ""), (ratio > cpu_bar ? "  time over " cpu_bar : "")
            exit growth > memory_bar || ratio > cpu_bar }' "$tmp/flood" || over=1
done
exit $over
