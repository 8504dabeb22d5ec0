#!/usr/bin/env bats
#
# The fixtures, and what other tests rely on in fake-llm, the scripted model server, seen by curl.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2154

load ../helper

@test "fixtures: each says what it is and whence, can be loaded, and has an answer that is JSON" {
    run_expect 0 "$TESTS/tools/fake-llm" --expect "$FIXTURES"/*/*.http
    lines_are "$(find "$FIXTURES" -name '*.http' | wc -l)"
    cp "$OUT" table
    run_expect 1 grep -vE $'^[^\t]*\t([0-9]|-)\t[^\t]*$' table
    stdout_empty
    cut -f 3 table | grep -vx -e - | run_expect 0 jq -s 'map(type) | unique | .[]'
    stdout_is '"string"'
    run_expect 0 awk 'FNR == 1 && !/^# ./ { print FILENAME }' "$FIXTURES"/*/*.http
    stdout_empty
    run_expect 0 awk '/^# Source: ./ { n++ } END { print n }' "$FIXTURES"/*/*.http
    stdout_is "$(wc -l <table)"
}
