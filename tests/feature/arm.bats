#!/usr/bin/env bats
#
# Another processor: what tries base/simd, made for ARM and run by an emulator. On ARM itself, the tests of
# those modules do the same.

load ../helper

setup() {
    sandbox
    [ "$(uname -m)" != aarch64 ] || skip 'the tests of the modules do it here'
    local name
    for name in aarch64-linux-gnu-gcc qemu-aarch64; do
        command -v "$name" >/dev/null || skip "$name is missing"
    done
}

# on_arm NAME: runs tests/unit/NAME_test.c, linked with the modules that it needs.
on_arm() {
    run_expect 0 aarch64-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -O2 -static -ffunction-sections \
        -Wl,--gc-sections -I"$ROOT/include" -I"$ROOT/lib" -o "$1" "$ROOT/tests/unit/$1_test.c" \
        "$ROOT/lib/search/literal_scan.c" "$ROOT"/lib/base/*.c
    run_expect 0 qemu-aarch64 "./$1"
    stderr_empty
    run_expect 1 grep -q '^not ok' "$OUT"
}

@test "arm: places are found by the vectors of the processor" {
    on_arm literal_scan
}

@test "arm: the ends of strings and lines are found by the vectors of the processor" {
    on_arm simd
}
