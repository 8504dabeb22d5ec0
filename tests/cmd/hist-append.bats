#!/usr/bin/env bats
#
# hist-append: stores messages of other programs and prints their ids.

load ../helper
load ../history

# stored FILTER LINE...: what jq -r FILTER makes of the history.
stored() {
    json_is "$HISTORY" "$@"
}

# ---- one message

# lines N: three lines, the second of N bytes.
lines() {
    printf '{"content":"before"}\n{"content":"'
    head -c $(($1 - 14)) /dev/zero | tr '\0' x
    printf '"}\n{"content":"after"}\n'
}

@test "hist-append: --json skips a line that is too long, or would be, and stores the others" {
    local n mib=$((64 << 20))
    export CHAT_FSYNC=0
    for n in $((mib - 40)) $((mib - 1)) $mib $((mib + 1)) $((mib + 70000)); do
        run_expect 2 bash -c "$(declare -f lines); lines $n | hist-append -s s --json"
        lines_are 2
        stderr_matches '^hist-append: cannot store line 2: (the message is )?longer than 64 MiB$'
        stored .content before after
        rm "$HISTORY"
    done
    run_expect 2 bash -c "$(declare -f lines); { lines $mib | head -n 2 | head -c -1; } | hist-append -s s --json"
    lines_are 1
    stderr_is 'hist-append: cannot store line 2: longer than 64 MiB'
    rm "$HISTORY"
    # More than a prompt may have.
    run_expect 0 bash -c "$(declare -f lines); lines $((40 << 20)) | hist-append -s s --json"
    lines_are 3
    stored '.content | length' 6 $(((40 << 20) - 14)) 5
}

# ---- lines

@test "hist-append: --json stores lines as they come" {
    mkfifo pipe
    background bash -c 'exec hist-append --json -s s <pipe'
    exec 5>pipe
    echo '{"content":"one"}' >&5
    wait_for grep -q '"one"' "$HISTORY"
    wait_for test -s "$OUT.bg"
    echo '{"content":"two"}' >&5
    wait_for grep -q '"two"' "$HISTORY"
    exec 5>&-
    finish 0
    lines_are 2
}

@test "hist-append: --json stores everything though nobody reads the ids" {
    seq 3000 | sed 's/.*/{"content":"message &"}/' >lines
    # shellcheck disable=SC2016
    run_expect 0 bash -c '{ head -n 1500 lines; until [[ -e gone ]]; do sleep 0.05; done; tail -n 1500 lines; } |
        hist-append --json -s s | { exec <&-; : >gone; }; echo "${PIPESTATUS[1]}"'
    stdout_is 141
    stderr_empty
    [[ $(wc -l <"$HISTORY") -eq 3000 ]]
    # shellcheck disable=SC2016
    run_expect 0 bash -c '{ head -n 1500 lines; sleep 0.2; tail -n 1500 lines; } | hist-append --json -s t >/dev/full; echo "${PIPESTATUS[1]}"'
    stdout_is 2
    stderr_is 'hist-append: cannot write to standard output: No space left on device'
    [[ $(wc -l <"$HISTORY") -eq 6000 ]]
}

@test "hist-append: a silent standard input is said, but for -q" {
    # The text comes when one of the two has said it, and the other has had as much time.
    # shellcheck disable=SC2016
    run_expect 0 bash -c '{ for ((i = 0; i < 300; i++)); do sleep 0.1; ! grep -q waiting "$0" || break; done
        sleep 0.2; echo late; } | tee >(hist-append -q -s t >quiet 2>&1) | hist-append -s s' "$ERR.new"
    stderr_is 'hist-append: waiting for standard input'
    wait_for test -s quiet
    stored .content late late
    run_expect 0 cat quiet
    stdout_matches '^[0-9]{13}-[0-9a-f]{8}$'
    lines_are 1
}
