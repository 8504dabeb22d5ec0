#!/usr/bin/env bats
# tests/run and tests/play take no death, and no test that did not run, for a success.
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
    run tests/run "${@:3}"
    echo "$output"
    [ "$status" -eq "$1" ]
    [ "${lines[-1]}" = "$2" ]
}

@test "run: a file that dies half way, ends early, fails after its last test, or never ends has failed" {
    cd "$BATS_TEST_TMPDIR" || return 1
    tap dies <<<'echo 1..2; echo ok 1 - x; kill -SEGV $$'
    tap early <<<'echo 1..2; echo ok 1 - x'
    tap late <<<'echo 1..1; echo ok 1 - x; exit 99'
    tap never <<<'echo 1..1; exec sleep 60'
    cd "$OLDPWD" || return 1
    for file in dies early late; do expect 1 "1 passed, 1 failed" "$BATS_TEST_TMPDIR/$file"; done
    TEST_TIMEOUT=1 expect 1 "0 passed, 1 failed" "$BATS_TEST_TMPDIR/never"
    expect 1 "0 passed, 0 failed"
}

# play LINE...: one case of these lines; its report is $output.
play() {
    printf '%s\n' '== name' "$@" >"$BATS_TEST_TMPDIR/x.case"
    run tests/play "$BATS_TEST_TMPDIR/x.case"
    echo "$output"
}

@test "play: whole outputs and the status count, and a case that did not run to its end has failed" {
    play '$ printf "a\n \x1b\x00b"; echo " c" >&2; exit_with() { return $1; }; exit_with 3' \
        '| a' '|% \x20\e\x00b' '!  c' '? 3' '$ echo $$ $HOME' '|~ [0-9]+ \$HOME'
    [ "$output" = $'1..1\nok 1 - name' ]
    [ "$status" -eq 0 ]
    local lines
    for lines in '$ echo a' $'$ echo a\n| b' $'$ echo a\n| a\n| ' $'$ printf a\n| a' $'$ echo a >&2\n| a' \
        $'$ echo a\n|~ b' $'$ echo ab\n|~ a' '$ echo a >&2' $'$ :\n! a' '$ false' $'$ :\n? 1' '$ exit' '$ (' \
        $'$ exit 0\n$ :' '$ sh -c "kill -SEGV \$\$"' $'$ sh -c "exit 99"\n? 99' '$ false | cat' \
        '$ echo report >"$WORK/../../sanitizer.1"'; do
        play "$lines"
        [ "$status" -eq 1 ]
    done
    PLAY_LIMIT=0.5 play '$ sleep 60'
    [ "${lines[1]}" = 'not ok 1 - name' ]
    for lines in '' 'text' '| a' '> a' $'$ :\n|a' $'$ :\n? x'; do
        play "$lines"
        [ "$status" -eq 1 ]
        [[ $output != *ok* ]]
    done
}
