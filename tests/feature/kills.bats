#!/usr/bin/env bats
#
# Programs killed at a random call or moment, and file systems that stop in the middle of work. `make torture` runs both
# oracles for longer.

load ../helper

@test "kills: what was acknowledged is there once, and what was deleted stays away" {
    RUN_LIMIT=120 run_expect 0 "$TESTS/tools/kill-oracle" 8
    stderr_empty
    stdout_matches '^[0-9]+ runs, [0-9]+ killed, [0-9]+ histories, [0-9]+ lines acknowledged and there, [0-9]+ sessions deleted, 0 failed, seed [0-9]+$'
}

# wrong PROGRAM SCRIPT...: the oracle sees that the program does this.
wrong() {
    rm -rf wrong kills.*
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
    # One that is killed leaves its program at work, which then deletes what has been counted.
    stdout_matches 'are left by hist-delete|is back|is there twice|is lost'
}

# cuts STATUS: power-cuts, which needs root, loop devices and a file system that it can make.
cuts() {
    run_expect 0 "$TESTS/tools/power-cuts" 0
    if has "$OUT" 'left out'; then skip "$(cat "$OUT")"; fi
    RUN_LIMIT=120 run_expect "$1" "$TESTS/tools/power-cuts" "$2" 1
    stderr_empty
}

@test "kills: after a power cut, what was acknowledged is there once, and what was deleted stays away" {
    cuts 0 4
    stdout_matches '^4 cuts, [0-9]+ lines acknowledged, [0-9]+ sessions deleted, [0-9]+ acknowledgements too late to count, 0 failed, seed 1$'
}

@test "kills: the oracle sees lines that were acknowledged before they were on the disk" {
    export CHAT_FSYNC=0
    cuts 1 8
    stdout_has 'lines are lost'
}
