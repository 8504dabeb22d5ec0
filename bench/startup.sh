#!/usr/bin/env bash
# Start-up. Two tables, both from commands that take turns on the same data:
# 1. from the start to the first byte of the request, of chat beside curl and one fdatasync, and of `chat --once`
#    beside a client that only opens a socket (bench/bare_client.c). Medians and minima of REQUESTS (101) rounds in
#    microseconds. CHAT names the chat to measure, such as a static one. STATIC=yes holds the bar of a static chat.
# 2. `PROGRAM --version` against a program that does nothing and is linked to the same libraries. ROUNDS (21) rounds
#    of RUNS (50) processes each; medians in microseconds. `startup.sh request` leaves this table out.
# Exit status 1 if a ratio is over its bar: 1.1 of chat -N, 1.3 of a static chat --once, BAR (1.3) of a program.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
rounds=${ROUNDS:-21} runs=${RUNS:-50} bar=${BAR:-1.3}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

slow=0

# first_bytes: prints for each client the median, the minimum and its name.
first_bytes() {
    local chat=${CHAT:-$BIN/chat} url=http://127.0.0.1:@PORT@/v1
    local body='{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true}'

    mkdir -p "$tmp/data"
    env -u CHAT_PROVIDER -u CHAT_BASE_URL -u CHAT_API_KEY -u CHAT_SESSION -u CHAT_HISTORY -u CHAT_FSYNC \
        HOME="$tmp" OPENAI_API_KEY=bench OPENAI_BASE_URL=$url CHAT_MODEL=openai:m \
        "$BUILD/bench/first_byte" "${REQUESTS:-101}" "$tmp/data" \
        bare "$BUILD/bench/bare_client" @PORT@ -- \
        curl curl -qsN --json "$body" $url/chat/completions -- \
        chat-N "$chat" --no-stdin --history "$tmp/data/h.jsonl" -N hello -- \
        chat-n "$chat" --no-stdin --no-store hello -- \
        chat--once "$chat" --no-stdin --once hello
}

# ratio NAME BASE BAR: by the medians and by the minima. An empty BAR only prints.
ratio() {
    awk -v name="$1" -v base="$2" -v bar="$3" '
        { median[$3] = $1; least[$3] = $2 }
        END {
            n = split(base, part, "+")
            for (i = 1; i <= n; i++) { m += median[part[i]]; l += least[part[i]] }
            over = (bar != "" && median[name] / m > bar)
            printf "%-12s / %-16s %6.2f %6.2f%s\n", name, base, median[name] / m, least[name] / l,
                   over ? "  over " bar : ""
            exit over }' "$tmp/bytes" || slow=1
}

first_bytes >"$tmp/bytes"
printf '%-12s %10s %10s\n' 'first byte' median least
awk '{ printf "%-12s %10.0f %10.0f\n", $3, $1, $2 }' "$tmp/bytes"
printf '%-31s %6s %6s\n' ratio median least
ratio chat-N curl+fdatasync 1.1
ratio chat-n curl ''
ratio chat--once bare "${STATIC:+1.3}"
[[ ${1:-} != request ]] || exit $slow

printf '\n%-16s %10s %10s %7s\n' program us nothing ratio
for source in cmd/*.c; do
    name=$(basename "$source" .c)
    program=$BIN/$name
    libraries=$(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/-l:\1/p')
    # Both variables are lists of options.
    # shellcheck disable=SC2086
    ${CC:-cc} -O2 -fPIE -pie -z relro -z now -o "$tmp/nothing" bench/nothing.c \
        -Xlinker --no-as-needed $libraries
    "$BUILD/bench/spawn" "$rounds" "$runs" "$program" --version -- "$tmp/nothing" >"$tmp/times"
    read -r us _ <"$tmp/times"
    read -r nothing _ < <(sed 1d "$tmp/times")
    awk -v name="$name" -v us="$us" -v nothing="$nothing" -v bar="$bar" 'BEGIN {
        ratio = us / nothing
        over = (ratio > bar)
        printf "%-16s %10.1f %10.1f %7.2f%s\n", name, us, nothing, ratio, over ? "  over " bar : ""
        exit over }' || slow=1
done
exit $slow
