#!/usr/bin/env bats
#
# Programs killed at random moments. `make torture` runs the oracle for longer.

load ../helper

@test "kills: what was acknowledged is there once, and what was deleted stays away" {
    RUN_LIMIT=120 run_expect 0 "$TESTS/tools/kill-oracle" 8
    stderr_empty
    stdout_matches '^[0-9]+ runs, [0-9]+ killed, [0-9]+ lines acknowledged and there, [0-9]+ sessions deleted, 0 failed, seed [0-9]+$'
}

# wrong PROGRAM SCRIPT...: the oracle sees that the program does this.
wrong() {
    rm -rf wrong kills.jsonl*
    mkdir wrong
    printf '%s\n' '#!/bin/sh' "$2" >"wrong/$1"
    chmod +x "wrong/$1"
    PATH=$PWD/wrong:$PATH RUN_LIMIT=120 run_expect 1 "$TESTS/tools/kill-oracle" 60
    stderr_empty
}

@test "kills: the oracle sees what is lost, doubled and back" {
    wrong hist-append "cat >/dev/null; echo 1719500000000-\$\$"
    stdout_has 'was acknowledged and is lost'
    wrong hist-append "'$BIN/hist-append' \"\$@\" && tail -n 1 kills.jsonl >>kills.jsonl"
    stdout_has 'is there twice'
    wrong hist-delete "cp kills.jsonl all; '$BIN/hist-delete' \"\$@\" && head -n 1 all >>kills.jsonl"
    stdout_matches 'are left by hist-delete|is back|is there twice'
}
