#!/usr/bin/env bats
#
# helper.bash and on-tty: each assert holds when it should and fails when it should.

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

@test "helper: a program that hangs is ended" {
    RUN_LIMIT=0.2 run_expect 124 sleep 10
}

@test "helper: nothing of the user's comes into a test" {
    OPENAI_API_KEY=x CHAT_MODEL=y https_proxy=z XDG_DATA_HOME=/x LANG=de_DE.UTF-8 \
        run_expect 0 bash -c 'source "$1"; BATS_TEST_TMPDIR=$2; sandbox; env' - "$TESTS/helper.bash" "$BATS_TEST_TMPDIR"
    stdout_lacks OPENAI_API_KEY= CHAT_MODEL= https_proxy= XDG_DATA_HOME= LANG=
    stdout_has "HOME=$BATS_TEST_TMPDIR/home" "PATH=$BIN:" LC_ALL=C.UTF-8 TZ=UTC
    [[ $PWD == "$BATS_TEST_TMPDIR/work" && -z $(ls -A) ]]
    run_expect 0 cat
    stdout_empty
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

@test "helper: asserts on what occurs" {
    run_expect 0 sh -c 'printf "one [two]\nthree\n"; echo wrong >&2'
    stdout_has '[two]' $'two]\nthree' one
    fails stdout_has one four
    stdout_lacks four
    fails stdout_lacks four three
    stdout_matches '^t.*e$' '^one'
    fails stdout_matches '^one' '^two'
    stderr_is wrong
    stderr_has rong
    stderr_matches '^w'
    stderr_lacks right
    fails stderr_empty
    fails stderr_is right
    fails stderr_has right
    fails stderr_matches '^r'
    fails stderr_lacks wrong
}

@test "helper: JSON, remembered files" {
    run_expect 0 echo '{"a":[1,"x"]}'
    stdout_json '.a[]' 1 x
    fails stdout_json '.a[]' 1
    echo 'not json' >file
    fails json_is file .
    remember file
    unchanged file
    echo >>file
    fails unchanged file
}

@test "helper: histories are valid lines in the documented order of keys" {
    hist_line s1 user $'two\nlines "quoted"' >>h.jsonl
    hist_line s1 assistant 'später' 2024-06-27T15:00:01.250000+00:00 '{"model":"m"}' >>h.jsonl
    hist_lines s2 3 >>h.jsonl
    json_is h.jsonl 'keys_unsorted | join(" ")' 'id session_id timestamp role content' \
        'id session_id timestamp role content model' 'id session_id timestamp role content' \
        'id session_id timestamp role content' 'id session_id timestamp role content'
    json_is h.jsonl '.content' two 'lines "quoted"' später 'message 1' 'message 2' 'message 3'
    json_is h.jsonl '.role' user assistant user assistant user
    run_expect 0 grep -cE '^\{"id":"[0-9]{13}-[0-9a-f]{8}",.*"timestamp":"[-0-9]{10}T[:0-9]{8}\.[0-9]{6}\+00:00"' h.jsonl
    stdout_is 5
    run_expect 0 jq -r .timestamp h.jsonl
    stdout_line 2 2024-06-27T15:00:01.250000+00:00
    [[ $(jq -r .id h.jsonl | sort -u | wc -l) -eq 5 ]]
}

@test "helper: a background program gets its signals" {
    background sh -c 'trap "echo caught; exit 5" INT; echo ready; while :; do sleep 0.05; done'
    wait_for grep -q ready "$OUT.bg"
    kill -INT "$BG"
    finish 5
    stdout_is ready caught
}

@test "helper: waiting has an end" {
    run_expect 1 nested 'sleep() { :; }' 'wait_for false'
    stdout_has 'waited in vain for: false'
}

@test "on-tty: descriptors are a terminal of the given size, LF becomes CR LF" {
    run_expect 3 on_tty --size 100x30 sh -c 'test -t 0 && test -t 1 && test -t 2 && stty size; exit 3'
    stdout_bytes_are '30 100\r\n'
    stderr_empty
    run_expect 0 on_tty --raw printf 'a\n'
    stdout_bytes_are 'a\n'
}

@test "on-tty: only the descriptors that are named are the terminal, /dev/tty always is" {
    run_expect 0 on_tty --fds 1 sh -c 'test ! -t 0 && test -t 1 && test ! -t 2 && cat; echo err >&2; echo tty >/dev/tty' <<<in
    stdout_bytes_are 'in\r\ntty\r\n'
    stderr_is err
}

@test "on-tty: types when it is asked to, and shows what was typed" {
    run_expect 0 on_tty --wait 'name\? ' --type 'b\x6fb\n' --wait 'more\? ' --eof sh -c \
        'printf "name? "; read -r n; echo "hi $n"; printf "more? "; cat'
    stdout_bytes_are 'name? bob\r\nhi bob\r\nmore? '
    run_expect 0 on_tty --no-echo --type 'x\n' head -n 1
    stdout_bytes_are 'x\r\n'
    run_expect 125 on_tty --wait never echo no
    stderr_has "'never' never came"
}

@test "on-tty: signals, the end of the terminal, a new size, statuses, time-out" {
    run_expect 143 on_tty sh -c 'kill -TERM $$'
    run_expect 130 on_tty --wait ready --signal INT sh -c 'echo ready; exec sleep 10'
    run_expect 129 on_tty --wait ready --hangup sh -c 'echo ready; exec sleep 10'
    run_expect 0 on_tty --wait ready --resize 40x9 --type '\n' sh -c 'echo ready; read -r _; stty size'
    stdout_has '9 40'
    run_expect 127 on_tty nonsense
    run_expect 124 on_tty --timeout 200ms sleep 10
    stderr_is 'on-tty: timed out'
    run_expect 141 on_tty bash -c 'sh -c "kill -PIPE \$\$"'
    run_expect 125 on_tty --nonsense x
}
