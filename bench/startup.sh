#!/usr/bin/env bash
# Start-up: the time of `PROGRAM --version` against a program that does nothing and is linked to the
# same libraries. ROUNDS (21) rounds of RUNS (50) processes each; medians in microseconds.
# Exit status 1 when a program takes more than BAR (1.3) times as long.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
rounds=${ROUNDS:-21} runs=${RUNS:-50} bar=${BAR:-1.3}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

printf '%-16s %10s %10s %7s\n' program us nothing ratio
slow=0
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
