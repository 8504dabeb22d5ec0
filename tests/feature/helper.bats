#!/usr/bin/env bats
#
# helper.bash: an assert that does not hold fails, wherever it stands.

# shellcheck disable=SC2016,SC2129

load ../helper

# fails COMMAND...: does it, in a shell of its own?
fails() {
    local status=0
    ("$@") >"$BATS_TEST_TMPDIR/said" 2>&1 || status=$?
    [[ $status == 1 ]]
}

# nested LINE...: a test file with one test of these lines, and the status of bats for it.
nested() {
    {
        printf 'load %q\n@test "t" {\n' "$TESTS/helper"
        printf '%s\n' "$@"
        printf '}\n'
    } >"$BATS_TEST_TMPDIR/nested.bats"
    env -i PATH="$PATH" TMPDIR="$TMPDIR" "$BATS_ROOT/bin/bats" "$BATS_TEST_TMPDIR/nested.bats"
}

@test "helper: a failed assert ends the test, wherever it stands" {
    run_expect 0 nested 'run_expect 0 echo a' 'stdout_is a' 'run_expect 3 sh -c "exit 3"'
    run_expect 1 nested 'run_expect 0 echo a' 'stdout_is b' 'true'
    stdout_has 'wanted' 'b$' 'got' 'a$'
    run_expect 1 nested 'run_expect 0 false' 'true'
    stdout_has 'status: wanted 0, got 1'
    run_expect 1 nested 'echo a | run_expect 1 cat' 'true'
    stdout_has 'status: wanted 1, got 0'
    run_expect 1 nested 'stdout_is x' 'true'
    stdout_has 'stdout: wanted:'
    run_expect 1 nested 'start_llm nonsense' 'true'
    stdout_has "'nonsense': there is no such file"
}

@test "helper: a crash fails, even one that was wanted" {
    fails run_expect 139 sh -c 'kill -SEGV $$'
    fails run_expect 99 sh -c 'exit 99'
    fails run_expect 0 sh -c 'echo "x.c:1:2: runtime error: bad" >&2'
    run_expect 143 sh -c 'kill -TERM $$'
}

@test "helper: a sanitizer's report in a file fails, also one of a background process" {
    echo report >"$REPORTS.1"
    fails run_expect 0 true
    grep -q report "$BATS_TEST_TMPDIR/said"
    rm "$REPORTS.1"
    run_expect 1 nested 'echo a report >"$REPORTS.2"'
    stdout_has 'a sanitizer reports:' 'a report'
}

@test "helper: asserts on stdout see every byte" {
    run_expect 0 printf 'a\nb\n'
    stdout_is a b
    fails stdout_is a
    fails stdout_is a b ''
    stdout_bytes_are 'a\nb\n'
    fails stdout_bytes_are 'a\nb'
    lines_are 2
    fails lines_are 1
    stdout_line 2 b
    fails stdout_line 3 ''
    run_expect 0 printf 'a'
    fails stdout_is a
    stdout_bytes_are a
    run_expect 0 printf 'x\000y\xff\r\n'
    stdout_bytes_are 'x\0000y\xff\r\n'
    fails stdout_bytes_are 'xy\xff\r\n'
    run_expect 0 true
    stdout_empty
    fails stdout_is ''
    printf 'a\n' >wanted
    run_expect 0 echo a
    stdout_is_file wanted
    fails stdout_empty
    printf 'b\n' >wanted
    fails stdout_is_file wanted
}
