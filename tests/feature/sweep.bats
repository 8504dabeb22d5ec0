#!/usr/bin/env bats
#
# The search of large histories (search/parallel_scan): what it finds is what a search of a few lines of Python
# finds, in windows of any size, on any number of threads, with vectors of either size.

# shellcheck disable=SC2016

load ../helper
load ../history

# Under a sanitizer it takes longer.
@test "sweep: 10,000 needles on fuzzed lines give the same as the oracle" {
    SEARCH_LINES=$BUILD/tests/tools/search-lines RUN_LIMIT=300 run_expect 0 "$TESTS/tools/sweep-oracle" 10000
    stdout_is '10000 needles, 0 wrong answers'
    stderr_empty
}

# The oracle is no oracle if it agrees with everything.
@test "sweep: the oracle sees what is wrong" {
    printf '#!/bin/sh\n"%s" "$1" | sed "s/^[0-9]* //"\n' "$BUILD/tests/tools/search-lines" >wrong
    chmod +x wrong
    SEARCH_LINES=$PWD/wrong run_expect 1 "$TESTS/tools/sweep-oracle" 1000
    stdout_has 'seed ' wanted
}

# make_large: 12 MB, in small writes as histories come to be; `rare` in three messages, another in a field.
make_large() {
    jq -cn '("lorem ipsum dolor " * 100) as $text | range(6000) | {id: "m\(.)", session_id: "s\(. % 7)",
        timestamp: "2024-06-27T15:00:00.000000+00:00", role: (if . % 2 == 0 then "user" else "assistant" end),
        content: ("number \(.) \($text)" + (if . % 2500 == 1 then " a RARE word" else "" end)),
        files: [if . == 77 then "rare" else "f" end]}' >"$HISTORY"
}

@test "sweep: the number of threads changes nothing" {
    local j args
    make_large
    for args in rare '-c lorem' '-c number -r user' '-l rare' '-n 7 lorem' '--limit all -s s3 NUMBER' '-o --reverse rare' \
        '-q rare' '-w -c 5' '-e rare -e 2500'; do
        # shellcheck disable=SC2086
        run_expect 0 hist-search -j 1 $args
        cp "$OUT" one
        stderr_empty
        for j in 0 2 4 100; do
            # shellcheck disable=SC2086
            run_expect 0 hist-search -j "$j" $args
            cmp one "$OUT"
            stderr_empty
        done
    done
    run_expect 0 hist-search --json rare
    stdout_json .id m5001 m2501 m1
    run_expect 1 hist-search -j 2 -c nothing
    stdout_is 0
}

# threads N ARGS...: hist-search starts so many.
threads() {
    traced -f -o trace -e trace=clone,clone3 hist-search "${@:2}" >"$OUT"
    [[ $(grep -c 'clone.*(' trace) == "$1" ]] || fail "wanted $1 threads:" "$(<trace)"
}

@test "sweep: helpers are threads where they pay only" {
    make_large
    head -c 3000000 "$HISTORY" >small
    threads 3 -j 4 -c rare
    threads 0 -j 4 -q lorem
    threads 0 -j 1 -c rare
    threads 0 -j 4 --history small -c rare
}

@test "sweep: the newest hits of a large history are found without reading the rest" {
    make_large
    # The times of its parts are in the session index.
    hist-sessions -q >"$OUT"
    traced -o trace -e trace=pread64 hist-search -n 1 lorem >"$OUT"
    [[ $(wc -l <trace) -le 20 && $(awk -F'= ' '{ n += $NF } END { print n }' trace) -le 200000 ]] || fail "$(<trace)"
}

@test "sweep: bad lines are told where they were read" {
    make_large
    printf 'rare garbage\n[1]\n\xff rare \xff\n' >>"$HISTORY"
    printf '{"torn rare' >>"$HISTORY"
    run_expect 0 hist-search -c rare
    stdout_is 3
    stderr_is "hist-search: skipped 2 bad lines in '$HISTORY'"
    run_expect 0 hist-search --json -j 2 rare
    stdout_json .id m5001 m2501 m1
    stderr_is "hist-search: skipped 2 bad lines in '$HISTORY'"
    run_expect 0 hist-search -c 'number 5999'
    stderr_empty
}

@test "sweep: a file that becomes shorter or longer meanwhile ends where it does" {
    make_large
    run_expect 0 bash -c 'hist-search --limit all -j 2 lorem | { read -r line; truncate -s 5000000 "$0"; wc -l; }' "$HISTORY"
    stderr_empty
    [[ $(<"$OUT") -lt 5999 ]] || fail "$(<"$OUT") lines"
    make_large
    run_expect 0 bash -c 'hist-search --limit all -j 2 lorem | { read -r line; head -n 50 "$0" >>"$0.more"; cat "$0.more" >>"$0"; wc -l; }' "$HISTORY"
    stdout_is 5999
    stderr_empty
}

# big ID BEFORE SIZE AFTER: a message whose content has so many bytes between two texts.
big() {
    printf '{"id":"%s","session_id":"s","timestamp":"t","role":"user","content":"%s' "$1" "$2"
    head -c "$3" /dev/zero | tr '\0' x
    printf '%s"}\n' "$4"
}

@test "sweep: lines of megabytes are searched, those over 64 MiB are bad" {
    {
        big m1 '' 8000000 ' needle'
        jq -cn 'range(2000) | {id: "n\(.)", session_id: "s", timestamp: "t", role: "user", content: "small"}'
        big m2 'needle ' 70000000 ''
    } >"$HISTORY"
    run_expect 0 hist-search -c needle
    stdout_is 1
    stderr_is "hist-search: skipped 1 bad line in '$HISTORY'"
    run_expect 0 hist-search --json needle
    [[ $(jq -r .id "$OUT") == m1 ]]
}
