#!/usr/bin/env bash
# Measures what chat adds to a turn, with a history of ten lines and one of SIZE (1G): from its start to the first byte
# of the request, and from the last byte of the response to its exit, with and without CHAT_FSYNC. Prints medians of
# ROUNDS (41) rounds in microseconds. Between the turns it runs a program that does nothing (linked to the same
# libraries) and syncs a line of another file on the same file system; the ratios and differences compare with these.
# Exit status 1 if a value exceeds its bar:
#   start to request      BAR (1.3) x nothing + an fdatasync
#   response to exit      END_BAR (1500) us + an fdatasync
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
rounds=${ROUNDS:-41} size=${SIZE:-1G}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp OPENAI_API_KEY=bench CHAT_MODEL=openai:bench
unset CHAT_PROVIDER CHAT_BASE_URL CHAT_API_KEY CHAT_SESSION CHAT_HISTORY

"$BUILD/bench/corpus" "$size" "$tmp/large"
head -n 10 "$tmp/large" >"$tmp/small"
for history in small large; do "$BIN/hist-load" -q --history "$tmp/$history" last >/dev/null; done
# Pending writes to the disk would disturb the measurement.
sync "$tmp/large"
libraries=$(readelf -dW "$BIN/chat" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/-l:\1/p')
# Both variables are lists of options.
# shellcheck disable=SC2086
${CC:-cc} -O2 -fPIE -pie -z relro -z now -o "$tmp/nothing" bench/nothing.c -Xlinker --no-as-needed $libraries

printf '%-24s %9s %7s %9s %9s %9s %9s\n' '' request ratio exit 'less sync' nothing fdatasync
over=0
for sync in 1 0; do
    [[ $sync == 1 ]] && synced=$tmp/synced || synced=-
    CHAT_FSYNC=$sync "$BUILD/bench/stream" turn "$rounds" "$tmp/nothing" "$synced" \
        "$BIN/chat" --no-stdin -q --history "$tmp/small" hello -- \
        "$BIN/chat" --no-stdin -q --history "$tmp/large" hello >"$tmp/times"
    awk -v size="$size" -v sync="$sync" -v bar="${BAR:-1.3}" -v end_bar="${END_BAR:-1500}" '{
        slow = $2 > bar
        late = $4 > end_bar
        printf "%-24s %9.0f %7.2f%s %8.0f %9.0f%s %8.0f %9.0f\n", (NR == 1 ? "10 lines" : size) (sync ? ", synced" : ""),
            $1, $2, slow ? "!" : " ", $3, $4, late ? "!" : " ", $5, $6
        failed = failed || slow || late } END { exit failed }' "$tmp/times" || over=1
done
exit $over
