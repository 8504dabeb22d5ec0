#!/usr/bin/env bash
# The index: what lists and opens sessions of a history of SIZE (100M) that was appended line by line, in ROUNDS
# (21) rounds; medians of whole processes in milliseconds, against a program that does nothing (linked to the
# same libraries), the same command with a history of ten lines, or the floor (every byte read and added up).
# Exit status 1 when something is over its bar:
#   completion of models              3 ms
#   50 sessions, a session, also by a part of its id, what completion lists
#                                     2.2 x nothing, 3 ms
#   those that write                  1.3 x the same with ten lines
#   all sessions                      50 ms for 70,000
#   making it                         4 x floor; 64 MiB of memory
#   two lines that it does not cover  0.3 ms more than without them
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
rounds=${ROUNDS:-21} size=${SIZE:-100M}
export LC_ALL=C.UTF-8 CHAT_PROVIDER=echo

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/bench/corpus" "$size" "$tmp/large"
# Pending writes to the disk would disturb the measurement.
sync "$tmp/large"
head -n 10 "$tmp/large" >"$tmp/small"
libraries=$(readelf -dW "$BIN/hist-sessions" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/-l:\1/p')
# Both variables are lists of options.
# shellcheck disable=SC2086
${CC:-cc} -O2 -fPIE -pie -z relro -z now -o "$tmp/nothing" bench/nothing.c -Xlinker --no-as-needed $libraries
over=0

# times COMMAND... [-- COMMAND...]...: of `runs` (1) runs a round, into the array `ms`, from 1 on; the most memory
# that one took, in KiB, into `kib`.
times() {
    local line most
    ms=('') kib=('')
    "$BUILD/bench/spawn" -m "$rounds" "${runs:-1}" "$@" >"$tmp/times" 2>"$tmp/said"
    while read -r line most; do
        ms+=("$(awk -v us="$line" 'BEGIN { printf "%.3f", us / 1000 }')")
        kib+=("$most")
    done <"$tmp/times"
}

# row NAME MS OTHER BAR MOST: the ratio of two times; `-` for no bar on it, or on the time itself.
row() {
    awk -v name="$1" -v ms="$2" -v other="$3" -v bar="$4" -v most="$5" 'BEGIN {
        ratio = other > 0 ? ms / other : 0
        slow = bar != "-" && ratio > bar
        late = most != "-" && ms > most
        printf "%-30s %9.2f%s %9.2f %8.2f%s\n", name, ms, late ? "!" : " ", other, ratio, slow ? "!" : " "
        exit slow || late }' || over=1
}

# reader NAME BAR COMMAND...: over nothing.
reader() {
    runs=5 times "${@:3}" -- "$tmp/nothing"
    row "$1" "${ms[1]}" "${ms[2]}" "$2" 3
}

# writer NAME COMMAND...: over the same with ten lines.
writer() {
    times "${@:2}" --history "$tmp/large" -- "${@:2}" --history "$tmp/small"
    row "$1" "${ms[1]}" "${ms[2]}" 1.3 -
}

printf '%s, %s rounds; what is over its bar has a !\n' "$size" "$rounds"
printf '%-30s %9s %10s %8s\n' '' ms other ratio

h=(--history "$tmp/large")
# shellcheck disable=SC2016
times "$BUILD/bench/floor" "$tmp/large" -- \
    sh -c 'rm -f "$1"; exec "$2" --history "$3"' sh "$tmp/large.idx" "$BIN/hist-sessions" "$tmp/large" -- \
    sh -c 'rm -f "$1"; exec "$2" --history "$3"' sh "$tmp/no.idx" "$tmp/nothing" "$tmp/large"
row 'made, over the floor' "$(awk -v a="${ms[2]}" -v b="${ms[3]}" 'BEGIN { print a - b }')" "${ms[1]}" 4 -
row 'its memory, KiB' "${kib[2]}" 65536 1 -

"$BIN/hist-sessions" "${h[@]}" --limit all >"$tmp/list"
count=$(wc -l <"$tmp/list")
oldest=$(tail -n 1 "$tmp/list" | cut -f 1) some=$(sed -n "$((count / 3))p" "$tmp/list" | cut -f 1)
reader '50 sessions' 2.2 "$BIN/hist-sessions" "${h[@]}" --limit 50
reader 'the oldest session' 2.2 "$BIN/hist-show" "${h[@]}" --json "$oldest"
reader 'some session' 2.2 "$BIN/hist-show" "${h[@]}" --json "$some"
reader 'by the beginning of its id' 2.2 "$BIN/hist-show" "${h[@]}" "${some%???}"
reader 'by the end of its id' 2.2 "$BIN/hist-show" "${h[@]}" "${some: -9}"
# The commands that completions of an id run, if all ids begin with the typed text, and if some do.
reader 'completion of all ids' 2.2 "$BIN/hist-sessions" "${h[@]}" --limit 51 --id "${some%%_*}"
reader 'completion of some ids' 2.2 "$BIN/hist-sessions" "${h[@]}" --limit 51 --id "${some:0:8}"
reader 'completion of models' - "$BIN/hist-stats" "${h[@]}" --by model --newest 500
reader 'one that is not there' 2.2 "$BIN/hist-show" "${h[@]}" nowhere

times "$BIN/hist-sessions" "${h[@]}" --limit all
row "all $count sessions" "${ms[1]}" "$(awk -v n="$count" 'BEGIN { print 50 * n / 70000 }')" 1 -

"$BIN/hist-append" --history "$tmp/small" -q -s "$some" hello >/dev/null
writer 'hist-load, over ten lines' "$BIN/hist-load" -q "$some"
writer 'hist-new, over ten lines' "$BIN/hist-new"
writer 'hist-append, over ten lines' "$BIN/hist-append" -s "$some" text
writer 'chat, over ten lines' "$BIN/chat" --dry-run -s new hello

# The cost of two lines that the index does not cover: the same file by two names, one with an index that was
# made before these lines, and one with an index that was made after them.
"$BIN/hist-sessions" "${h[@]}" --limit 50 >/dev/null
tail -n 2 "$tmp/large" >"$tmp/two"
cat "$tmp/two" >>"$tmp/large"
ln "$tmp/large" "$tmp/more"
"$BIN/hist-sessions" --history "$tmp/more" --limit 50 >/dev/null
runs=5 times "$BIN/hist-sessions" "${h[@]}" --limit 50 -- "$BIN/hist-sessions" --history "$tmp/more" --limit 50
late=$(awk -v a="${ms[1]}" -v b="${ms[2]}" 'BEGIN { printf "%.3f", a - b }')
row 'two lines more' "$late" 0 - 0.3
exit $over
