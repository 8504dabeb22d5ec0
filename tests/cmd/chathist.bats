#!/usr/bin/env bats
#
# chathist: the programs with a line each, and where everything is.

# shellcheck disable=SC2016

load ../helper

@test "chathist: lists every program with the purpose that its --help names" {
    for source in "$ROOT"/cmd/*.c; do
        program=$(basename "$source" .c)
        run_expect 0 "$program" --help
        sed -n "s/^$program - \(.*\)/$program|\1/p" "$OUT"
    done | sort >wanted
    run_expect 0 chathist
    stderr_empty
    sed 's/  */|/' "$OUT" | sort >got
    same programs wanted got
    run_expect 0 chathist --json
    stderr_empty
    jq -r '"\(.name)|\(.purpose)"' "$OUT" | sort >got
    same 'programs as JSON' wanted got
}

@test "chathist: a word that is none, and one too many" {
    run_expect 2 chathist inof
    stdout_empty
    stderr_is "chathist: unknown command 'inof': did you mean info? (see 'chathist --help')"
    run_expect 2 chathist sessions
    stderr_is "chathist: unknown command 'sessions': info, models, templates or personas is expected (see 'chathist --help')"
    for args in '-p echo' 'info --cached' 'templates --base-url=http://127.0.0.1'; do
        # shellcheck disable=SC2086 # words
        run_expect 2 chathist $args
        stderr_matches '^chathist: --(provider|cached|base-url) is only for models '
        stdout_empty
    done
    run_expect 2 chathist --json personas
    stderr_is "chathist: --json is not for personas (see 'chathist --help')"
    run_expect 2 chathist info more
    stderr_is "chathist: 'more' is one argument too many (see 'chathist --help')"
    run_expect 2 chathist --jsn
    stderr_is "chathist: unknown option '--jsn': did you mean --json? (see 'chathist --help')"
    for arg in '' info --json --help --version; do
        run_expect 2 sh -c "chathist $arg >/dev/full"
        stderr_has 'cannot write to standard output'
    done
}

@test "chathist: models, templates and personas are those of chat" {
    start_llm --reply Yes.
    run_expect 0 chathist models
    stdout_is openai:test-model
    run_expect 0 chathist models -p echo --json
    stdout_is '{"type":"model","model":"echo:echo"}'
    run_expect 2 chathist models --provider=nobody
    stderr_has "chat: unknown provider 'nobody'"
    run_expect 4 chathist models --base-url "http://127.0.0.1:$(unused_port)/v1" --insecure --header 'X-A: b'
    stdout_empty
    stderr_has 'chat: cannot connect to'
    put_template() { mkdir -p "$HOME/.config/chathist/$1" && printf '%s\n' "$3" >"$HOME/.config/chathist/$1/$2"; }
    put_template templates fix 'Mend this: {{prompt}}'
    put_template personas pirate Arr.
    run_expect 0 chathist templates
    stdout_is $'fix\tMend this: {{prompt}}'
    run_expect 0 chathist personas
    stdout_is $'pirate\tArr.'
    # The program beside this one, whatever stands in the way.
    mkdir other
    printf '#!/bin/sh\necho wrong\n' >other/chat
    chmod +x other/chat
    PATH=$PWD/other:$PATH run_expect 0 "$BIN/chathist" personas
    stdout_is $'pirate\tArr.'
}

@test "chathist: info: a repository with a conversation" {
    use_echo
    make_repo
    run_expect 0 chat -s talk hello
    run_expect 0 hist-load -q talk
    run_expect 0 chathist info --json
    stderr_empty
    cp "$OUT" report
    size=$(stat -c %s .git/aicoder/history.jsonl)
    json_is report '.version, .history, .history_kind, .history_exists, .history_bytes, .history_trusted' \
        "$(chathist --version | sed 's/.* //')" "$WORK/.git/aicoder/history.jsonl" repository true "$size" true
    json_is report '.session, .files["history.jsonl"], .provider, .model, .key_from' talk "$size" echo null null
    json_is report '.environment, .configuration, .register' CHAT_PROVIDER null \
        "$HOME/.local/state/chathist/histories"
    [[ $(jq -r .second_name report) -ef .git/aicoder/history.jsonl ]] || fail 'the second name is another file'
    run_expect 0 chathist info
    stderr_empty
    stdout_has "history           $WORK/.git/aicoder/history.jsonl" 'history bytes     '"$size" 'session           talk' \
        "file              history.jsonl, $size bytes" 'configuration     none'
}

@test "chathist: info: histories that another program left beside this one" {
    use_echo
    make_repo
    run_expect 0 chat -q hello
    mkdir .aicoder.other
    hist_line s user other >.aicoder.other/history.jsonl
    rm .aicoder
    mv .aicoder.other .aicoder
    hist_line s user set-aside >.git/aicoder/foreign.jsonl
    run_expect 0 chathist info --json
    stderr_empty
    json_is "$OUT" '.foreign_histories | join(" ")' "$WORK/.git/aicoder/foreign.jsonl $WORK/.aicoder/history.jsonl"
    run_expect 0 chathist info
    stdout_has "foreign histories $WORK/.git/aicoder/foreign.jsonl" "foreign histories $WORK/.aicoder/history.jsonl"
}

@test "chathist: info: where nothing is yet, and a named file" {
    use_nothing
    run_expect 0 chathist info --json
    stderr_empty
    json_is "$OUT" '.history, .history_kind, .history_exists, .session, .provider' \
        "$HOME/.local/share/aicoder/history.jsonl" user false null null
    [[ -z $(ls -A "$HOME") ]] || fail 'something was made'
    use_echo
    hist_line s user hello >x.jsonl
    hist_line s user hello >y.jsonl
    run_expect 0 chathist --history x.jsonl info --json
    json_is "$OUT" '.history, .history_kind, (.files | keys | join(" "))' x.jsonl file x.jsonl
    run_expect 0 env CHAT_HISTORY="$WORK/none" chathist info
    stdout_has "history           $WORK/none" 'history exists    no'
}

@test "chathist: info: a history that is a directory or a link is an error" {
    mkdir dir
    ln -s h.jsonl link
    run_expect 2 chathist info --history dir
    stdout_empty
    stderr_is "chathist: cannot open 'dir': is a directory"
    run_expect 2 chathist info --history link --json
    stdout_empty
    stderr_is "chathist: cannot open 'link': is a symbolic link"
}

@test "chathist: info prints no key and no password, wherever they come from" {
    secret=sk-0123456789abcdef
    mkdir -p "$HOME/.config/chathist/keys"
    report() {
        run_expect 0 env "$@" chathist info --json || return 1
        stderr_empty || return 1
        stdout_lacks "$secret" || return 1
        cp "$OUT" report
        run_expect 0 env "$@" chathist info || return 1
        stdout_lacks "$secret"
    }
    report OPENAI_API_KEY=$secret
    json_is report '.provider, .server, .key_from, .environment' openai api.openai.com:443 OPENAI_API_KEY OPENAI_API_KEY
    report CHAT_BASE_URL="https://user:$secret@example.org/v1?key=$secret" CHAT_API_KEY=$secret
    json_is report '.server, .key_from' example.org:443 CHAT_API_KEY
    configure "api_key_command = echo $secret; touch $WORK/ran"
    report CHAT_PROVIDER=anthropic
    json_is report '.key_from, .configuration' 'the command in api_key_command' "$HOME/.config/chathist/config"
    [[ ! -e ran ]] || fail 'the command was run'
    (umask 077 && echo $secret >"$HOME/.config/chathist/keys/openai")
    report CHAT_PROVIDER=openai
    json_is report '.key_from' "$HOME/.config/chathist/keys/openai"
}

@test "chathist: info says what chat says about a key file that cannot be used" {
    file=$HOME/.config/chathist/keys/openai
    mkdir -p "${file%/*}"
    echo sk-0123456789abcdef >"$file"
    chmod 644 "$file"
    run_expect 2 chat -p openai --base-url http://127.0.0.1:9 -m m hello
    stderr_is "chat: cannot use the key in '$file': others have access to it (chmod 600 '$file')"
    run_expect 0 chathist info --json
    stdout_json '.key_from, .key_error' "$file" "cannot use the key in '$file': others have access to it (chmod 600 '$file')"
    run_expect 0 chathist info
    stdout_matches "^key error +cannot use the key in '$file': others have access to it"
    chmod 600 "$file"
    run_expect 0 chathist info --json
    stdout_json .key_error null
    : >"$file"
    run_expect 0 chathist info --json
    stdout_json .key_error "cannot use the key in '$file': it is empty"
}

@test "chathist: info: a configuration that is wrong" {
    use_echo
    configure 'no equals sign'
    run_expect 2 chathist info
    stdout_empty
    stderr_matches '^chathist: cannot read .*line 1'
}

@test "chathist: text of others is made visible" {
    use_echo
    mkdir $'a\e[31mb'
    cd $'a\e[31mb'
    hist_line s user hello >x.jsonl
    run_expect 0 chathist info --history "$PWD/x.jsonl"
    stdout_lacks $'\e'
}
