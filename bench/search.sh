#!/usr/bin/env bash
# Search: hist-search -c on one and on two threads against rg, grep and the floor (every byte read and added
# up), on a history of SIZE (100M) that was appended line by line, in ROUNDS (21) rounds; medians of whole
# processes in milliseconds, and ratios. The counts of rg and grep are of lines, so they are compared for
# texts that stand in contents alone. Exit status 1 when a ratio is over its bar:
#   a rare word   one thread 1.5 x floor and 0.9 x rg, two threads 0.95 x floor and 0.6 x rg
#   a common one  one thread 1.6 x rg, two threads 1.2 x rg
#   none          one thread 1.2 x rg
#   the search that begins the skip index (search/skip_index) 1.2 x rg
#   by a complete skip index a rare word 0.1 x rg
#   expressions (-E), on two threads as rg: with texts that each match holds 0.6 x rg; without, the ratio is printed
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
rounds=${ROUNDS:-21} size=${SIZE:-100M}
export LC_ALL=C.UTF-8

command -v rg >/dev/null || { echo 'bench/search.sh: rg is missing: skipped' && exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$BUILD/bench/corpus" "$size" "$tmp/history"
mkdir "$tmp/history.skip"
over=0

# count TEXT: prints the number, which must be the same for every program.
count() {
    local ours=0 two=0 theirs=0 greps=0
    ours=$("$BIN/hist-search" --history "$tmp/history" -j 1 -c "$1") || :
    two=$("$BIN/hist-search" --history "$tmp/history" -j 2 -c "$1") || :
    theirs=$(rg -iF -c "$1" "$tmp/history") || :
    greps=$(grep -ciF "$1" "$tmp/history") || :
    if [[ $ours/$ours/$ours != "$two/${theirs:-0}/$greps" ]]; then
        echo "bench/search.sh: '$1': hist-search $ours and $two, rg ${theirs:-0}, grep $greps" >&2
        exit 2
    fi
    echo "$ours"
}

# measure TEXT BARS: one thread over floor and rg, two threads over floor and rg; - for none.
measure() {
    local hits
    hits=$(count "$1")
    # grep stops at the first match when its output is /dev/null.
    # shellcheck disable=SC2016
    "$BUILD/bench/spawn" -m "$rounds" 1 "$BUILD/bench/floor" "$tmp/history" \
        -- "$BIN/hist-search" --history "$tmp/history" -j 1 -c "$1" \
        -- "$BIN/hist-search" --history "$tmp/history" -j 2 -c "$1" \
        -- rg -j 1 -iF -c "$1" "$tmp/history" \
        -- sh -c 'grep -ciF "$1" "$2" >"$3"' sh "$1" "$tmp/history" "$tmp/grep" >"$tmp/times"
    awk -v text="$1" -v hits="$hits" -v bars="$2" '
        { ms[NR] = $1 / 1000 }
        function ratio(i, of, k) {
            r = ms[i] / ms[of]
            bad = bar[k] != "-" && r > bar[k]
            failed = failed || bad
            return sprintf("%.2f%s", r, bad ? "!" : "")
        }
        END {
            split(bars, bar, " ")
            printf "%-16s %8d %8.1f %8.1f %8.1f %8.1f %8.1f   %7s %7s %7s %7s\n", text, hits, ms[1], ms[2], ms[3],
                ms[4], ms[5], ratio(2, 1, 1), ratio(2, 4, 2), ratio(3, 1, 3), ratio(3, 4, 4)
            exit failed
        }' "$tmp/times" || over=1
}

# measure_expression EXPRESSION BAR: two threads over rg on two threads; - for no bar. rg counts lines, whatever is
# around the content, so the counts are not compared.
measure_expression() {
    local hits
    hits=$("$BIN/hist-search" --history "$tmp/history" -E -c "$1") || :
    "$BUILD/bench/spawn" -m "$rounds" 1 rg -j 2 -i -c -e "$1" "$tmp/history" \
        -- "$BIN/hist-search" --history "$tmp/history" -j 1 -E -c "$1" \
        -- "$BIN/hist-search" --history "$tmp/history" -j 2 -E -c "$1" >"$tmp/times"
    awk -v text="$1" -v hits="$hits" -v bar="$2" '
        { ms[NR] = $1 / 1000 }
        END {
            bad = bar != "-" && ms[3] / ms[1] > bar
            printf "%-32s %8d %8.1f %8.1f %8.1f   %7.2f %7.2f%s\n", text, hits, ms[1], ms[2], ms[3], ms[2] / ms[1],
                ms[3] / ms[1], bad ? "!" : ""
            exit bad
        }' "$tmp/times" || over=1
}

# measure_expressions BAR
measure_expressions() {
    printf '%-32s %8s %8s %8s %8s   %7s %7s\n' expression hits rg '-j 1' '-j 2' 1/rg 2/rg
    measure_expression 'zanzibar[a-z]+z' "$1"
    measure_expression 'flummoxed|zanzibarquartz' "$1"
    measure_expression 'retr(y|ies) .*backoff' "$1"
    measure_expression '[a-z]+ing\s+because' "$1"
    measure_expression 'quick\w+ (because|zero)' -
    measure_expression 'the|and' -
    measure_expression '[0-9]{4}-[0-9]{2}' -
    measure_expression '\w+ \w+$' -
}

printf '%s, %s rounds; a ratio over its bar has a !\n' "$size" "$rounds"
printf '%-16s %8s %8s %8s %8s %8s %8s   %7s %7s %7s %7s\n' text hits floor '-j 1' '-j 2' rg grep '1/floor' 1/rg 2/floor 2/rg
measure 'zanzibarquartz' '1.5 0.9 0.95 0.6'
measure 'flummoxed' '- - - -'
measure 'because' '- 1.6 - 1.2'
measure 'the' '- 1.6 - 1.2'
measure 'retentively' '- 1.2 - -'
measure_expressions 0.6

rmdir "$tmp/history.skip"
# A search without an index begins one after its hits.
# shellcheck disable=SC2016
"$BUILD/bench/spawn" -m "$rounds" 1 rg -j 1 -iF -c retentively "$tmp/history" \
    -- sh -c 'rm -f "$2"/history.skip; exec "$1" --history "$2/history" -j 1 -c retentively' sh "$BIN/hist-search" "$tmp" |
    awk '{ ms[NR] = $1 / 1000; kib[NR] = $2 }
        END { r = ms[2] / ms[1]
            printf "the search that begins the skip index: %.1f ms, %.2f%s x rg, %d KiB of memory\n", ms[2], r, (r > 1.2 ? "!" : ""), kib[2]
            exit (r > 1.2) }' || over=1
begun=$(stat -c %Y.%s "$tmp/history.skip") searches=1
while "$BIN/hist-search" --history "$tmp/history" -q retentively || [[ $? == 1 ]]; do
    sum=$(cksum <"$tmp/history.skip")
    [[ $sum != "$begun" ]] || break
    begun=$sum searches=$((searches + 1))
done
stat -c %s "$tmp/history.skip" | awk -v n="$searches" '{ printf "by the skip index, %.1f MB after %d searches\n", $1 / 1e6, n }'
measure 'zanzibarquartz' '- 0.1 - 0.1'
measure 'flummoxed' '- - - -'
measure 'because' '- 1.6 - 1.2'
measure 'the' '- 1.6 - 1.2'
measure 'retentively' '- 0.1 - 0.1'
measure_expressions 0.6
exit $over
