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
    stderr_is "chathist: unknown command 'sessions': info, models, templates, personas, key or setup is expected (see 'chathist --help')"
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

# configure LINE...: the user's configuration.
configure() {
    mkdir -p "$HOME/.config/chathist"
    printf '%s\n' "$@" >"$HOME/.config/chathist/config"
}

# stored FILE TEXT: only the user can read the file, which has this line.
stored() {
    [[ $(stat -c %a "$1") == 600 ]] || fail "mode of $1: $(stat -c %a "$1")"
    printf '%s\n' "$2" >wanted
    same "$1" wanted "$1"
}

@test "chathist: key stores a key from standard input or a terminal, which does not show it" {
    local keys=$HOME/.config/chathist/keys
    run_expect 0 chathist key openai <<<' sk-one '
    stdout_empty
    stderr_is "the key of openai is in '$keys/openai'"
    stored "$keys/openai" sk-one
    run_expect 0 on_tty --wait 'not shown\): ' --type 'sk-two\n' chathist key openai
    stdout_lacks sk-two
    stored "$keys/openai" sk-two
    OPENAI_API_KEY=sk-three run_expect 0 chathist key openai < <(printf 'sk-four\r\nrest\n')
    stderr_has 'chathist: OPENAI_API_KEY is set, and comes first'
    stored "$keys/openai" sk-four
    # Ctrl-C stores nothing, and the terminal shows what is typed again.
    run_expect 0 on_tty --wait 'not shown\): ' --type '\x03' --wait 'status 130' --type 'visible\n' \
        --wait 'visible\s+read visible' bash -c 'trap : INT; chathist key openai; echo status $?; read -r line; echo "read $line"'
    stored "$keys/openai" sk-four
    configure 'service.own.base_url = https://own.example/v1'
    run_expect 0 chathist key own <<<sk-own
    stored "$keys/own" sk-own
}

@test "chathist: key refuses what is no key and no provider, and keeps the old one" {
    local keys=$HOME/.config/chathist/keys row
    run_expect 0 chathist key openai <<<sk-old
    while IFS='|' read -r row line; do
        run_expect 2 chathist key openai < <(printf '%b' "$row")
        stderr_is "chathist: cannot store the key: $line"
    done <<'END'
\n|it is empty
|it is empty
a b\n|white space or a control character in it
a\001b\n|white space or a control character in it
END
    stored "$keys/openai" sk-old
    run_expect 2 chathist key opneai <<<x
    stderr_is "chathist: unknown provider 'opneai' (see 'chathist --help')"
    run_expect 2 chathist key openai-chat <<<x
    stderr_has "'openai-chat' has the key of 'openai': chathist key openai"
    run_expect 2 chathist key echo <<<x
    stderr_has "'echo' asks no server and has no key"
    run_expect 2 chathist key <<<x
    stderr_has 'the name of a provider is expected after key'
    run_expect 2 chathist key openai more <<<x
    stderr_has "'more' is one argument too many"
    rm "$keys/openai"
    mkfifo "$keys/openai"
    run_expect 2 chathist key openai <<<sk-new
    stderr_is "chathist: cannot write '$keys/openai': is a FIFO"
}

@test "chathist: setup asks for provider, key and model, and keeps other lines of the configuration" {
    local config=$HOME/.config/chathist/config
    start_llm --models m-one,m-two
    unset OPENAI_API_KEY OPENAI_BASE_URL CHAT_MODEL
    configure '# mine' 'model = old' 'max_messages = 5' "service.near.base_url = http://127.0.0.1:$LLM_PORT/v1" 'service.far.base_url = https://far.example/v1'
    run_expect 0 on_tty --wait 'Number or name' --type 'nowhere\n' --wait 'is none of them' --type 'near\n' \
        --wait '(?s)m-two.*number or name' --type '2\n' --wait 'other programs' --type '\n' --wait 'Try' chathist setup
    printf '%s\n' '# mine' 'model = near:m-two' 'max_messages = 5' "service.near.base_url = http://127.0.0.1:$LLM_PORT/v1" \
        'service.far.base_url = https://far.example/v1' >wanted
    same configuration wanted "$config"
    run_expect 0 on_tty --wait 'Number or name' --type 'far\n' --wait 'not shown\): ' --type 'a b\n' \
        --wait 'no white space.*\n.*not shown\): ' --type 'sk-far\n' --wait 'number or name' --type 'big\n' --wait 'other programs' --type '\n' chathist setup
    stdout_lacks sk-far
    stored "$HOME/.config/chathist/keys/far" sk-far
    grep -qx 'model = far:big' "$config"
    # An empty answer leaves everything as it is.
    cp "$config" before
    run_expect 0 on_tty --wait 'Number or name' --type 'far\n' --wait 'number or name' --type '\n' --wait 'other programs' --type '\n' --wait 'Try: .*chat hello' chathist setup
    cp before "$config"
    rm "$HOME/.config/chathist/keys/far"
    run_expect 0 on_tty --wait 'Number or name' --type '\n' --wait 'other programs' --type '\n' --wait 'No service was chosen' chathist setup
    run_expect 130 on_tty --wait 'Number or name' --type '\x03' chathist setup
    run_expect 130 on_tty --wait 'Number or name' --type '\x04' chathist setup
    same configuration before "$config"
    run_expect 2 setsid chathist setup
    stderr_has "chathist: setup asks questions and needs a terminal"
}

@test "chathist: setup leaves the key to a program, and the configuration prints it" {
    local config=$HOME/.config/chathist/config
    mkdir bin
    cat >bin/pass <<'END'
#!/bin/sh
case $1 in
insert) cat >"$HOME/kept" ;;
*) cat "$HOME/kept" ;;
esac
END
    chmod +x bin/pass
    configure 'service.far.base_url = https://far.example/v1'
    mv "$config" kept-elsewhere
    ln -s "$PWD/kept-elsewhere" "$config"
    PATH=$PWD/bin:$PATH run_expect 0 on_tty --wait 'Number or name' --type 'far\n' --wait 'not shown\): ' \
        --type 'sk-far\n' --wait 'by pass\s+Number \[1\]' --type 'pass\n' --wait 'number or name' --type 'big\n' \
        --wait 'other programs' --type '\n' chathist setup
    [[ ! -e $HOME/.config/chathist/keys/far ]] || fail 'the key is in a file as well'
    [[ -L $config ]] || fail 'the configuration is no link any more'
    grep -qx 'api_key_command.far = pass chathist/far' "$config"
    [[ $(<"$HOME/kept") == sk-far ]] || fail "kept: $(<"$HOME/kept")"
}
