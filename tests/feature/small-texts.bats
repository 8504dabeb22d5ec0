#!/usr/bin/env bats
#
# The small texts that people make with an editor: each kind of damage on each kind of text.

load ../helper

setup() {
    sandbox
    CONFIG=$HOME/.config/chathist
    mkdir -p "$CONFIG/keys" "$CONFIG/templates" "$CONFIG/personas"
    export CHAT_API_KEY=secret
}

# One kind of text, good, as the named file of it.
good() {
    case $1 in
    key) echo sk-good-key ;;
    config) printf 'provider = openai\nmodel = m2\n' ;;
    template | persona | input) echo 'a good text' ;;
    prices) echo 'm 1 - - 2 USD' ;;
    schema) echo '{"type":"object"}' ;;
    esac
}

place() {
    case $1 in
    key) echo "$CONFIG/keys/openai" ;;
    config) echo "$CONFIG/config" ;;
    template) echo "$CONFIG/templates/t" ;;
    persona) echo "$CONFIG/personas/t" ;;
    prices) echo "$CONFIG/prices" ;;
    *) echo "$PWD/$1" ;;
    esac
}

damage() {
    case $1 in
    mark) printf '\357\273\277' && cat ;;
    cr) sed 's/$/\r/' ;;
    utf16) printf '\377\376' && iconv -f UTF-8 -t UTF-16LE ;;
    nul) cat && printf '\0' ;;
    bad) cat && printf '\377\n' ;;
    esac
}

make_text() {
    rm -rf "$CONFIG/keys/openai" "$CONFIG/config"
    good "$1" | damage "$2" >"$(place "$1")"
    chmod 600 "$(place "$1")"
}

# Runs what reads the kind of text. The request that it makes is the output.
use() {
    case $1 in
    key) CHAT_API_KEY='' run_expect "$2" chat -1 --no-stdin -m openai:m --base-url http://127.0.0.1:1 --retries 0 x ;;
    config) run_expect "$2" chat --no-stdin -1 --dry-run x ;;
    template) run_expect "$2" chat --no-stdin -1 --dry-run -m openai:m -t t ;;
    prices) run_expect "$2" chat --no-stdin -1 -u -p echo x ;;
    persona) run_expect "$2" chat --no-stdin -1 --dry-run -m openai:m --persona t x ;;
    schema) run_expect "$2" chat --no-stdin -1 --dry-run -m openai:m --schema schema x ;;
    input) run_expect "$2" chat -1 --dry-run -m openai:m <input ;;
    esac
}

@test "a byte order mark and CR are not part of a text" {
    for how in mark cr; do
        for what in config template persona schema input; do
            make_text "$what" "$how"
            use "$what" 0
            stderr_empty
            [[ $(<"$OUT") != *$'\357\273\277'* ]]
        done
        make_text key "$how"
        use key 4
        make_text prices "$how"
        use prices 0
    done
}

@test "UTF-16, zero bytes and bytes that are not UTF-8 are refused, with the file" {
    local how what
    declare -A why=([utf16]='it is UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)'
        [nul]='it is a binary file' [bad]='it is not UTF-8 (iconv converts it)')

    for how in utf16 nul bad; do
        for what in key config template persona prices schema; do
            make_text "$what" "$how"
            file=$(place "$what")
            [ "$what" != schema ] || file=schema
            use "$what" 2
            stderr_is "chat: cannot read '$file': ${why[$how]}"
            rm "$(place "$what")"
        done
    done
}

@test "variables and values have no white space, mark, control character or comment" {
    CHAT_MODEL=$'\357\273\277openai:m\r\n' run_expect 0 chat --no-stdin -1 --dry-run x
    stdout_json .model m
    CHAT_MODEL=$'openai:a\rb' run_expect 2 chat --no-stdin -1 --dry-run x
    stderr_is "chat: bad value 'openai:a b' for CHAT_MODEL: a control character is in it"
    echo 'model = openai:m # note' >"$CONFIG/config"
    run_expect 2 chat --no-stdin -1 --dry-run x
    stderr_is "chat: cannot read '$CONFIG/config': line 1: bad value of model: a comment has a line to itself"
    rm "$CONFIG/config"
    printf -- '---\nmodel = openai:m # note\n---\ntext\n' >"$CONFIG/templates/t"
    run_expect 2 chat --no-stdin -1 --dry-run -t t
    stderr_is "chat: cannot use template 't': line 2: bad value of model: a comment has a line to itself"
}

@test "the variables of other programs have none at their ends, either" {
    OPENAI_BASE_URL=$'\357\273\277http://127.0.0.1:1/v1\r\n' run_expect 4 chat --no-stdin -1 --retries 0 -m openai:m x
    stderr_has "127.0.0.1"
    OLLAMA_HOST=$'127.0.0.1:1\r' run_expect 4 chat --no-stdin -1 --retries 0 -m ollama:m x
    stderr_has "127.0.0.1"
    OPENAI_BASE_URL=$' \r' CHAT_API_KEY='' run_expect 2 chat --no-stdin -1 -m openai:m x
    stderr_has "no key for 'openai'"
}
