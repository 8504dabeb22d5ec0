#!/usr/bin/env bats
#
# Keys: where one comes from, when it is got, what is refused, and that it goes to its server alone. That it is
# in no output is in tests/cmd/chat.bats, that it follows no redirect in hang.bats.

# The commands for keys are run by chat, not here.
# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    use_history
    CONFIG=$HOME/.config/chathist
    KEYS=$CONFIG/keys
    mkdir -p "$KEYS"
    chmod 700 "$KEYS"
}

# serve [OPTION]...: a server that answers `hi`, for which the user has no key.
serve() {
    start_llm "$@" --reply hi
    unset OPENAI_API_KEY
    NUMBER=0
}

# sent VALUE: the next request came with that key, or without when it is empty.
sent() {
    NUMBER=$((NUMBER + 1))
    [[ $(request_header $NUMBER authorization) == "${1:+Bearer $1}" ]] ||
        fail "authorization: wanted '$1', got '$(request_header $NUMBER authorization)'"
}

# put_key NAME [KEY]: a key file as it should be.
put_key() {
    (umask 077 && printf '%s\n' "${2:-key-file}" >"$KEYS/$1")
}

# nowhere KEY: neither in what was printed nor in any file that was written.
nowhere() {
    stdout_lacks "$1" || return 1
    stderr_lacks "$1" || return 1
    if grep -rqF -- "$1" "$WORK"; then fail "'$1' was written"; fi
}

@test "keys: environment, then the provider's own command, its file, the command for all" {
    serve
    printf 'api_key_command = echo key-all\napi_key_command.openai = echo key-own\n' >"$CONFIG/config"
    put_key openai
    export CHAT_API_KEY=key-chat OPENAI_API_KEY=key-variable CHAT_API_KEY_COMMAND='echo key-command'
    run_expect 0 chat hello
    sent key-chat
    unset CHAT_API_KEY
    run_expect 0 chat hello
    sent key-variable
    unset OPENAI_API_KEY
    run_expect 0 chat hello
    sent key-command
    unset CHAT_API_KEY_COMMAND
    run_expect 0 chat hello
    sent key-own
    printf 'api_key_command = echo key-all\napi_key_command.openai =\n' >"$CONFIG/config"
    run_expect 0 chat hello
    sent key-file
    rm "$KEYS/openai"
    run_expect 0 chat hello
    sent key-all
    rm "$CONFIG/config"
    run_expect 0 chat hello
    sent ''
}

@test "keys: those for one provider are not for another" {
    serve
    put_key anthropic key-a
    echo 'api_key_command.ollama = echo key-o' >"$CONFIG/config"
    run_expect 0 chat -m openai:m hello
    sent ''
    OLLAMA_HOST=127.0.0.1:$LLM_PORT/v1 run_expect 0 chat -m ollama:m hello
    sent key-o
    # A command for any server is for one that needs no key only where it was named.
    export CHAT_API_KEY_COMMAND='echo ran >>ran; echo key-any'
    run_expect 4 chat -m llamacpp:m --retries 0 --connect-timeout 1s hello
    [[ ! -e ran ]] || fail 'the command was run'
    run_expect 0 chat -m llamacpp:m --base-url "http://127.0.0.1:$LLM_PORT/v1" hello
    sent key-any
}

@test "keys: a command or a file is configuration enough" {
    use_history
    run_expect 2 env CHAT_PROVIDER=none chat --dry-run -m m hello
    stderr_has 'no model server is configured'
    for set_up in 'put_key openai' 'put_key anthropic' 'export CHAT_API_KEY_COMMAND=false' \
        'echo api_key_command=false >$CONFIG/config' 'echo api_key_command.anthropic=false >$CONFIG/config'; do
        (
            eval "$set_up"
            run_expect 0 chat --dry-run -m m hello
            stderr_empty
            case $set_up in
            *anthropic*) stdout_json 'has("max_tokens")' true ;;
            *) stdout_json 'has("max_tokens")' false ;;
            esac
        )
        rm -f "$KEYS/openai" "$KEYS/anthropic" "$CONFIG/config"
    done
    # The environment comes first.
    put_key openai
    ANTHROPIC_API_KEY=k run_expect 0 chat --dry-run -m m hello
    stdout_json 'has("max_tokens")' true
}

@test "keys: a command's first line counts, without white space round it" {
    serve
    for command in 'echo key-1' 'printf key-1' 'printf "key-1\nuser: me\nurl: x y\n"' 'printf "  key-1\t\r\n"' \
        'a=key; b=-1; echo "$a$b" | cat' 'cat; echo key-1' 'echo key-1; head -c 200000 /dev/zero'; do
        CHAT_API_KEY_COMMAND=$command run_expect 0 chat hello <<<'the prompt is not for the command'
        stdout_is hi
        stderr_empty
        sent key-1
    done
    json_is "$RECORD/$NUMBER.json" '.messages[-1].content' 'the prompt is not for the command' '' hello
}

@test "keys: what a command says on standard error is shown" {
    serve
    CHAT_API_KEY_COMMAND='echo unlocking >&2; echo key-1' run_expect 0 chat hello
    stdout_is hi
    stderr_is unlocking
    sent key-1
}

@test "keys: a command that gives none" {
    serve
    export CHAT_API_KEY_COMMAND
    while IFS='|' read -r CHAT_API_KEY_COMMAND reason; do
        run_expect 2 chat hello </dev/null
        stdout_empty
        stderr_is "chat: no key from the command in 'CHAT_API_KEY_COMMAND': $reason"
    done <<'END'
exit 7 # secret|exit status 7
echo secret; false|exit status 1
kill -TERM $$ # secret|ended by signal 15
true # secret|nothing on its first line
echo; echo secret|nothing on its first line
echo secret word|white space or a control character in it
printf 'secret\001'|white space or a control character in it
END
    CHAT_API_KEY_COMMAND='while :; do echo secret; done' run_expect 2 chat hello
    stderr_is "chat: no key from the command in 'CHAT_API_KEY_COMMAND': cannot read what '/bin/sh' prints: File too large"
    CHAT_API_KEY_COMMAND='head -c 200000 /dev/zero | tr "\0" s' run_expect 2 chat hello
    stderr_is "chat: no key from the command in 'CHAT_API_KEY_COMMAND': its first line is too long"
    CHAT_API_KEY_COMMAND='no-such-program secret' run_expect 2 chat hello
    stderr_has 'not found' "chat: no key from the command in 'CHAT_API_KEY_COMMAND': exit status 127"
    unset CHAT_API_KEY_COMMAND
    echo 'api_key_command.openai = false' >"$CONFIG/config"
    run_expect 2 chat hello
    stderr_is "chat: no key from the command in 'api_key_command.openai': exit status 1"
    echo 'api_key_command = false' >"$CONFIG/config"
    run_expect 2 chat --json hello
    stderr_is "chat: no key from the command in 'api_key_command': exit status 1"
    stdout_json '[.type, .code] | tojson' '["error",2]'
    requests_are 0
    [[ ! -e $HISTORY ]]
}

@test "keys: what a command leaves behind is not waited for" {
    # Commands run in the home directory.
    cd "$HOME" || return 1
    serve
    for command in 'sleep 100 & echo $! >pid; echo key-1' 'sleep 100 & echo $! >pid; echo key-1; (sleep 0; echo more) &' \
        'sleep 100 & echo $! >pid; exec printf key-1'; do
        RUN_LIMIT=20 CHAT_API_KEY_COMMAND=$command run_expect 0 chat hello
        sent key-1
        kill "$(cat pid)"
    done
    # What it wrote is all there, and its failure is one.
    RUN_LIMIT=20 CHAT_API_KEY_COMMAND='sleep 100 & echo $! >pid; echo key-1; exit 3' run_expect 2 chat hello
    stderr_is "chat: no key from the command in 'CHAT_API_KEY_COMMAND': exit status 3"
    kill "$(cat pid)"
}

@test "keys: a signal ends the command and chat, also one that reaches chat alone" {
    # Commands run in the home directory.
    cd "$HOME" || return 1
    serve
    export CHAT_API_KEY_COMMAND='trap "" INT; echo $$ >pid.new; mv pid.new pid; exec sleep 300'
    for signal in INT TERM HUP; do
        rm -f pid
        background chat hello
        wait_for test -s pid
        kill "-$signal" "$BG"
        finish $((128 + $(kill -l "$signal")))
        stdout_empty
        stderr_empty
        run_expect 1 alive "$(cat pid)"
    done
    requests_are 0
    [[ ! -e $HISTORY ]]
}

# On a terminal that is for its signals to do, which reach them all.
@test "keys: without a terminal, a signal ends what the command has started, too" {
    # Commands run in the home directory.
    cd "$HOME" || return 1
    left_nothing() {
        ! alive "$(cat pid)"
    }
    serve
    export CHAT_API_KEY_COMMAND='trap "" INT; sleep 300 & echo $! >pid.new; mv pid.new pid; wait; echo key-1'
    for signal in INT TERM HUP; do
        rm -f pid
        background setsid chat hello
        wait_for test -s pid
        kill "-$signal" "$BG"
        finish $((128 + $(kill -l "$signal")))
        stdout_empty
        stderr_empty
        wait_for left_nothing
    done
    requests_are 0
}

@test "keys: an interrupt of the command ends chat" {
    serve
    CHAT_API_KEY_COMMAND='kill -INT $$' run_expect 130 chat hello
    stdout_empty
    requests_are 0
    [[ ! -e $HISTORY ]]
}

@test "keys: a command is run once, and only when something is asked" {
    # Commands run in the home directory.
    cd "$HOME" || return 1
    serve --models test-model
    export CHAT_API_KEY_COMMAND='echo ran >>ran; echo key-1'
    run_expect 0 chat --dry-run hello
    run_expect 0 chat --help
    run_expect 0 chat --version
    run_expect 2 chat --nonsense
    run_expect 2 chat --no-stdin
    run_expect 0 chat -p echo -m echo hello
    [[ ! -e ran ]] || fail 'the command was run'
    # The list of models and the question are one run of it.
    unset CHAT_MODEL
    run_expect 0 chat -p openai hello
    [[ $(cat ran) == ran ]] || fail 'the command was not run once'
    run_expect 0 chat -p openai --models
    stdout_is openai:test-model
    [[ $(wc -l <ran) == 2 ]]
    # Without a model's name, a dry run has to ask for it.
    run_expect 0 chat -p openai --dry-run hello
    [[ $(wc -l <ran) == 3 ]]
}

@test "keys: a command on the terminal can ask for a passphrase" {
    serve
    export CHAT_API_KEY_COMMAND='printf "passphrase: " >&2; read -r word </dev/tty; echo "key-$word"'
    run_expect 0 on_tty --wait 'passphrase: ' --type '1\n' chat hello
    sent key-1
}

@test "keys: a file" {
    serve
    put_key openai key-1
    run_expect 0 chat hello
    sent key-1
    chmod 400 "$KEYS/openai"
    run_expect 0 chat hello
    sent key-1
    chmod 600 "$KEYS/openai"
    for content in 'key-1' 'key-1\r\n' ' key-1\n\n'; do
        printf '%b' "$content" >"$KEYS/openai"
        run_expect 0 chat hello
        sent key-1
    done
    # A link, as those make who keep their configuration elsewhere.
    mv "$KEYS/openai" elsewhere
    ln -s "$WORK/elsewhere" "$KEYS/openai"
    run_expect 0 chat hello
    sent key-1
    rm elsewhere
    mkdir -p xdg/chathist
    mv "$KEYS" xdg/chathist
    rm xdg/chathist/keys/openai
    (umask 077 && echo key-2 >xdg/chathist/keys/openai)
    XDG_CONFIG_HOME=$WORK/xdg run_expect 0 chat hello
    sent key-2
}

@test "keys: a file that others have access to is refused" {
    serve
    put_key openai secret
    for mode in 640 604 620 602 610 601 644; do
        chmod $mode "$KEYS/openai"
        run_expect 2 chat hello
        stdout_empty
        stderr_is "chat: cannot use the key in '$KEYS/openai': others have access to it (chmod 600 '$KEYS/openai')"
    done
    # Through a link it is the file that counts.
    mv "$KEYS/openai" "$HOME/elsewhere"
    ln -s "$HOME/elsewhere" "$KEYS/openai"
    run_expect 2 chat hello
    stderr_has 'others have access to it'
    requests_are 0
    [[ ! -e $HISTORY ]]
    run_expect 0 chat --dry-run hello
}

@test "keys: a file of another user is refused" {
    [[ $(id -u) == 0 ]] || skip 'only root can make one'
    serve
    put_key openai secret
    chown 1 "$KEYS/openai"
    run_expect 2 chat hello
    stderr_is "chat: cannot use the key in '$KEYS/openai': it belongs to another user"
}

@test "keys: a file that holds no key" {
    serve
    while IFS='|' read -r content reason; do
        rm -f "$KEYS/openai"
        (umask 077 && printf '%b' "$content" >"$KEYS/openai")
        run_expect 2 chat hello </dev/null
        stdout_empty
        stderr_is "chat: cannot use the key in '$KEYS/openai': $reason"
    done <<'END'
|it is empty
\n|it is empty
secret word\n|white space or a control character in it
secret\nword\n|white space or a control character in it
secret\0001|white space or a control character in it
END
    rm "$KEYS/openai"
    mkfifo -m 600 "$KEYS/openai"
    run_expect 2 chat hello
    stderr_is "chat: cannot use the key in '$KEYS/openai': not a regular file"
    rm "$KEYS/openai"
    mkdir -m 700 "$KEYS/openai"
    run_expect 2 chat hello
    stderr_is "chat: cannot use the key in '$KEYS/openai': not a regular file"
    rmdir "$KEYS/openai"
    ln -s nowhere "$KEYS/openai"
    run_expect 2 chat hello
    stderr_is "chat: cannot open '$KEYS/openai': No such file or directory"
    rm "$KEYS/openai"
    (umask 077 && head -c 70000 /dev/zero | tr '\0' s >"$KEYS/openai")
    run_expect 2 chat hello
    stderr_is "chat: cannot read '$KEYS/openai': File too large"
    requests_are 0
}

@test "keys: a command for a provider that is none is told" {
    use_echo
    echo 'api_key_command.opnai = echo secret' >"$CONFIG/config"
    run_expect 0 chat hello
    stderr_is "chat: unknown provider 'opnai' in the user configuration: api_key_command.opnai"
    echo 'api_key_commands.openai = echo secret' >"$CONFIG/config"
    run_expect 0 chat hello
    stderr_is "chat: unknown key 'api_key_commands.openai' in '$CONFIG/config', line 1: API keys belong in keys/PROVIDER beside this file, or use api_key_command"
}

@test "keys: a repository is not asked for one" {
    serve
    make_repo
    mkdir -p .config/chathist/keys chathist/keys .aicoder/keys
    for place in .config/chathist chathist .aicoder; do
        echo 'api_key_command = touch pwned; echo key-r' >"$place/config"
        [[ ! -d $place/keys ]] || (umask 077 && echo key-r >"$place/keys/openai")
    done
    run_expect 0 chat hello
    sent ''
    [[ ! -e pwned ]] || fail 'a command of the repository was run'
}

@test "keys: from a command or a file, it goes to its server and shows nowhere" {
    start_llm openai/normal openai/redirect
    unset OPENAI_API_KEY
    put_key openai secret-f1
    run_expect 0 chat -v --json hello
    [[ $(request_header 1 authorization) == 'Bearer secret-f1' ]]
    nowhere secret-f1
    run_expect 1 chat -v --json hello
    requests_are 2
    nowhere secret-f1
    run_expect 0 chat -v --dry-run hello
    nowhere secret-f1
    printf '%s\n' 'status: 401' '' '{"error":{"message":"wrong key secret-f1"}}' >denied.http
    start_llm ./denied.http
    unset OPENAI_API_KEY
    rm denied.http
    run_expect 3 chat --json hello
    stderr_matches '^chat: HTTP 401: wrong key \*\*\* \(key from [^)]+\)$'
    nowhere secret-f1
    rm "$KEYS/openai"
    export CHAT_API_KEY_COMMAND='printf secret; echo -f1'
    run_expect 3 chat --json hello
    stderr_matches '^chat: HTTP 401: wrong key \*\*\* \(key from [^)]+\)$'
    nowhere secret-f1
}

@test "keys: plain http to another machine is refused" {
    export CHAT_MODEL=openai:m
    for key in OPENAI_API_KEY=secret CHAT_API_KEY=secret CHAT_API_KEY_COMMAND='touch ran; echo secret'; do
        run_expect 2 env "$key" chat --base-url http://model.invalid:8000/v1 hello
        stdout_empty
        stderr_is "chat: refusing to send a key to 'model.invalid:8000' over plain http: use https or --insecure"
        run_expect 2 env "$key" chat --base-url http://model.invalid:8000/v1 --models
        stderr_has 'refusing to send a key'
        run_expect 2 env "$key" OPENAI_BASE_URL=http://model.invalid/v1 chat --dry-run hello
        stderr_has 'refusing to send a key'
    done
    [[ ! -e ran ]] || fail 'the command was run'
    [[ ! -e $HISTORY ]]
    put_key openai
    run_expect 2 chat --base-url http://model.invalid/v1 hello
    stderr_has 'refusing to send a key'
}

@test "keys: --insecure sends it, and without a key nothing is refused" {
    start_llm --reply hi
    export http_proxy=http://127.0.0.1:$LLM_PORT
    run_expect 0 chat --insecure --base-url http://model.invalid/v1 hello
    stdout_is hi
    stderr_empty
    [[ $(request_header 1 authorization) == 'Bearer test-key-1' ]]
    unset OPENAI_API_KEY
    run_expect 0 chat --base-url http://model.invalid/v1 hello
    [[ $(request_header 2 authorization) == '' ]]
}

@test "keys: a dry run needs none" {
    local provider
    for provider in openai openai-chat anthropic mistral; do
        run_expect 0 env -u OPENAI_API_KEY -u ANTHROPIC_API_KEY -u MISTRAL_API_KEY -u CHAT_API_KEY \
            chat --dry-run -p "$provider" -m m hello
        stdout_has hello
        stderr_empty
        run_expect 2 env -u OPENAI_API_KEY -u ANTHROPIC_API_KEY -u MISTRAL_API_KEY -u CHAT_API_KEY \
            chat -p "$provider" -m m hello
        stderr_has "no key for '$provider'"
        [[ ! -e $USER_HISTORY ]]
    done
    # The server is asked which model it has, and wants a key.
    run_expect 2 env -u ANTHROPIC_API_KEY -u CHAT_API_KEY chat --dry-run -p anthropic hello
    stderr_has "no key for 'anthropic'"
}
