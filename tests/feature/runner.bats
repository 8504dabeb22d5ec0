#!/usr/bin/env bats
# tests/run counts what it should, and takes no death for a success.
# The scripts made here expand their own variables.
# shellcheck disable=SC2016

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    unset V
}

# tap NAME: makes a test file of the lines on standard input.
tap() {
    { echo '#!/bin/sh' && cat; } >"$BATS_TEST_TMPDIR/$1"
    chmod +x "$BATS_TEST_TMPDIR/$1"
}

# expect STATUS LAST_LINE FILE...: runs these files.
expect() {
    local want_status=$1 want_last=$2
    shift 2
    run tests/run "${@/#/$BATS_TEST_TMPDIR/}"
    echo "$output"
    [ "$status" -eq "$want_status" ]
    [ "${lines[-1]}" = "$want_last" ]
}

@test "files are summed in the order given" {
    tap a <<<'sleep 0.3; echo 1..2; echo ok 1 - x; echo ok 2 - y'
    tap b <<<'echo 1..1; echo ok 1 - z'
    expect 0 "3 passed, 0 failed" a b
    [ "${lines[0]}" = "$BATS_TEST_TMPDIR/a: 2 passed, 0 failed" ]
    [ "${lines[1]}" = "$BATS_TEST_TMPDIR/b: 1 passed, 0 failed" ]
}

@test "a failed test is shown with its explanation and its stderr" {
    tap a <<<'echo 1..3; echo ok 1 - x; echo not ok 2 - y; echo "# why"; echo ok 3 - z
              echo "a.c:1: failed" >&2; exit 1'
    expect 1 "2 passed, 1 failed" a
    [ "${lines[1]}" = "not ok 2 - y" ]
    [ "${lines[2]}" = "# why" ]
    [ "${lines[3]}" = "a.c:1: failed" ]
}

@test "a file that dies half way, ends early, fails after its last test, or never ends has failed" {
    tap dies <<<'echo 1..2; echo ok 1 - x; kill -SEGV $$'
    tap early <<<'echo 1..2; echo ok 1 - x'
    tap late <<<'echo 1..1; echo ok 1 - x; exit 99'
    tap never <<<'echo 1..1; exec sleep 60'
    for file in dies early late; do expect 1 "1 passed, 1 failed" "$file"; done
    TEST_TIMEOUT=1 expect 1 "0 passed, 1 failed" never
}

@test "programs under test can be interrupted" {
    tap a <<<'echo 1..1; sh -c "kill -INT \$\$; echo survived" | grep -q survived || echo ok 1 - x'
    expect 0 "1 passed, 0 failed" a
}

@test "no files at all is a failure" {
    expect 1 "0 passed, 0 failed"
    [ "${lines[0]}" = "no tests ran" ]
}
