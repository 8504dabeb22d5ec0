#!/usr/bin/env bats
# tests/layers sees each kind of offence, in a small tree that is otherwise in order.

setup() {
    cp "$BATS_TEST_DIRNAME/../layers" "$BATS_TEST_TMPDIR/"
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -p tests cmd build {lib,include/chathist}/{base,history,llm,cli}
    mv layers tests/
    module base/buf 'int buf_len(void) { return 1; }'
    module history/message 'int message_len(void) { return 2; }'
    module history/store 'int store_len(void) { return 3; }'
    module llm/context 'int context_len(void) { return 4; }'
    module cli/die 'void die_now(void) { exit(getenv("HOME") == NULL); }' '<stdlib.h>'
    echo 'int main(void) { return 0; }' >cmd/hist-new.c
}

# module ROOM/NAME TEXT [HEADER]...: a source and the public header that declares its function.
module() {
    local include=chathist/$1.h guard text=$2 header
    guard=$(tr 'a-z/' 'A-Z_' <<<"$1")_H
    printf '#ifndef %s\n#define %s\n%s;\n#endif\n' "$guard" "$guard" "${2%% \{*}" >"include/$include"
    echo "#include \"$include\"" >"lib/$1.c"
    for header in "${@:3}"; do echo "#include $header" >>"lib/$1.c"; done
    echo "$text" >>"lib/$1.c"
}

# Compiles what can be and runs the check.
layers() {
    local source object
    for source in lib/*/*.c cmd/*.c; do
        object=build/${source%.c}.o
        mkdir -p "${object%/*}"
        ${CC:-cc} -w -Iinclude -Ilib -c -o "$object" "$source"
    done
    ${CC:-cc} -o build/hist-new cmd/hist-new.c
    BUILD=build BIN=build run tests/layers
    echo "$output"
    [ "$status" -eq 0 ]
}

# offence LINE: there is this explanation and no other offence.
offence() {
    layers
    [ "$(grep -c '^not ok' <<<"$output")" -eq 1 ]
    grep -qxF "# $1" <<<"$output"
}

@test "a tree in order passes" {
    layers
    run grep -c '^not ok' <<<"$output"
    [ "$output" = 0 ]
}

@test "base does not know history" {
    module base/file 'int file_len(void) { return 1; }' '"chathist/history/store.h"'
    offence 'lib/base/file.c includes "chathist/history/store.h"'
}

@test "modules do not include each other in a cycle" {
    module history/thread 'int thread_len(void) { return 1; }' '"chathist/history/store.h"'
    module history/store 'int store_len(void) { return 3; }' '"chathist/history/thread.h"'
    run layers
    grep -qxF '# tsort: history/store' <<<"$output"
    grep -qxF '# tsort: history/thread' <<<"$output"
}

@test "a private header stays in its room" {
    echo '#include "base/hidden.h"' >lib/base/file.c
    touch lib/base/hidden.h
    layers
    run grep -c '^not ok' <<<"$output"
    [ "$output" = 0 ]
    module history/scan 'int scan_len(void) { return 1; }' '"base/hidden.h"'
    offence 'lib/history/scan.c includes "base/hidden.h", which is private to base'
}

@test "a header that needs another" {
    echo 'size_t buf_size(void);' >>include/chathist/base/buf.h
    sed -i '1i #include <stddef.h>' lib/base/buf.c
    layers
    grep -q '^not ok .* each header compiles alone' <<<"$output"
}

@test "the header of a library in a file that does not own it" {
    module history/scan 'int scan_len(void) { return 1; }' '<openssl/sha.h>' '<cjson/cJSON.h>'
    layers
    grep -qxF '# lib/history/scan.c includes <openssl/sha.h>' <<<"$output"
    grep -qxF '# lib/history/scan.c includes <cjson/cJSON.h>' <<<"$output"
}

# What a file calls that belongs to another one, and the header that declares it.
FOREIGN='
curl_version|int scan_len(void) { int curl_version(void); return curl_version(); }|stddef.h
getenv|int scan_len(void) { return getenv("HOME") == 0; }|stdlib.h
_exit|void scan_len(void) { _exit(2); }|unistd.h
puts|void scan_len(void) { printf("x\n"); }|stdio.h
stderr|void scan_len(void) { fputs("x", stderr); }|stdio.h
'

@test "a library, the environment, the end of the process, printing: in files that do not own them" {
    local what text header
    while IFS='|' read -r what text header; do
        [ -n "$what" ] || continue
        module history/scan "$text" "<$header>"
        offence "lib/history/scan.c uses $what"
    done <<<"$FOREIGN"
}

@test "writable variables, but not constant tables" {
    module history/scan 'const char *scan_name(void) { static const char *const n[] = {"a"}; return n[0]; }'
    layers
    run grep -c '^not ok' <<<"$output"
    [ "$output" = 0 ]
    module history/scan 'int scan_len(void) { static int calls; return ++calls; }'
    layers
    grep -q '^# lib/history/scan.c has the writable variable calls' <<<"$output"
}

