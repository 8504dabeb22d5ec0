#!/usr/bin/env bats
#
# Which files, programs and servers are trusted; what a tool can see, and that it ends with the turn.
# shellcheck disable=SC2016,SC2088 # a configuration is not expanded by the shell

load ../helper

setup() {
    sandbox
    CONFIG=$HOME/.config/chathist
    mkdir -p "$CONFIG"
}

teardown() {
    sandbox_end
    if [[ -n ${PUBLIC:-} ]]; then rm -rf "$PUBLIC"; fi
}

# as_other COMMAND...: as another user, whose HOME and working directory is the new directory $PUBLIC.
as_other() {
    HOME=$PUBLIC setpriv --reuid 65534 --regid 65533 --clear-groups env -C "$PUBLIC" "$@"
}

# Makes $PUBLIC; skips the test if it cannot become another user.
need_other() {
    [[ $EUID -eq 0 ]] || skip 'only root can become another user'
    PUBLIC=$(mktemp -d /tmp/chathist-other.XXXXXX)
    chown 65534:65533 "$PUBLIC"
    setpriv --reuid 65534 --regid 65533 --clear-groups test -x "$BIN/chat" || skip 'another user cannot run the programs'
}

# ---- files that decide for the user

@test "owner: a configuration that others can write is refused by every program, with status 2" {
    use_echo
    use_history
    echo 'provider = echo' >"$CONFIG/config"
    run_expect 0 chat -N hello
    chmod 666 "$CONFIG/config"
    run_expect 2 chat -N hello
    stdout_empty
    stderr_is "chat: cannot use '$CONFIG/config': others can write it (chmod go-w)"
    run_expect 2 hist-sessions
    stderr_is "hist-sessions: cannot use '$CONFIG/config': others can write it (chmod go-w)"
    chmod 664 "$CONFIG/config"
    if [[ $(id -gn) == "$(id -un)" ]]; then
        run_expect 0 chat -N hello
    fi
    chmod 644 "$CONFIG/config"
    chmod 777 "$CONFIG"
    run_expect 2 chat -N hello
    stderr_is "chat: cannot use '$CONFIG': others can write it (chmod go-w)"
    chmod 755 "$CONFIG"
    run_expect 0 chat -N hello
}

@test "owner: a configuration of another user is refused; one of root, or a link to it, is not" {
    need_other
    use_echo
    use_history
    echo 'provider = echo' >"$CONFIG/config"
    chown 65534 "$CONFIG/config"
    run_expect 2 chat -N hello
    stderr_is "chat: cannot use '$CONFIG/config': it belongs to another user"
    mv "$CONFIG/config" "$HOME/shared"
    ln -s "$HOME/shared" "$CONFIG/config"
    run_expect 2 chat -N hello
    stderr_is "chat: cannot use '$CONFIG/config': it belongs to another user"
    chown 0 "$HOME/shared"
    run_expect 0 chat -N hello
    mkdir -p "$PUBLIC/.config"
    cp -RP "$CONFIG" "$PUBLIC/.config/"
    ln -sf ../../shared "$PUBLIC/.config/chathist/config"
    cp "$HOME/shared" "$PUBLIC/shared"
    unset CHAT_HISTORY
    run_expect 0 as_other chat -N --no-store hello
    chown 65533 "$PUBLIC/shared"
    run_expect 2 as_other chat -N --no-store hello
    stderr_is "chat: cannot use '$PUBLIC/.config/chathist/config': it belongs to another user"
}

@test "owner: a group that has other members cannot share a configuration" {
    [[ $EUID -eq 0 ]] || skip 'only root can give files away'
    use_echo
    echo 'provider = echo' >"$CONFIG/config"
    chgrp 65533 "$CONFIG/config"
    chmod 664 "$CONFIG/config"
    run_expect 2 chat -N hello
    stderr_is "chat: cannot use '$CONFIG/config': its group can write it (chmod g-w)"
}

@test "owner: templates, personas and tools that others can write are refused by name, not by path" {
    use_echo
    use_history
    mkdir "$CONFIG/templates" "$CONFIG/personas" "$CONFIG/tools"
    echo 'Sum this up: {{input}}' | tee "$CONFIG/templates/t" "$CONFIG/personas/r" >/dev/null
    chmod 666 "$CONFIG/templates/t" "$CONFIG/personas/r"
    run_expect 2 chat -N -t t hello
    stderr_is "chat: cannot use '$CONFIG/templates/t': others can write it (chmod go-w)"
    run_expect 2 chat -N --persona r hello
    stderr_is "chat: cannot use '$CONFIG/personas/r': others can write it (chmod go-w)"
    run_expect 0 chat -N -t "$CONFIG/templates/t" hello
    chmod 644 "$CONFIG/templates/t"
    run_expect 0 chat -N -t t hello
    chmod 777 "$CONFIG/templates"
    run_expect 2 chat -N -t t hello
    stderr_is "chat: cannot use '$CONFIG/templates': others can write it (chmod go-w)"
    # The list says so once.
    cp "$CONFIG/templates/t" "$CONFIG/templates/u"
    run_expect 2 chathist templates
    stdout_empty
    stderr_is "chathist: cannot use '$CONFIG/templates': others can write it (chmod go-w)"

    printf '#!/bin/sh\necho ran >>%q\necho "{\\"name\\":\\"f\\"}"\n' "$WORK/ran" >"$CONFIG/tools/f"
    chmod 777 "$CONFIG/tools/f"
    run_expect 2 chat -N -T f hello
    stderr_is "chat: cannot use '$CONFIG/tools/f': others can write it (chmod go-w)"
    echo "tools = $CONFIG/tools/f" >"$CONFIG/config"
    run_expect 2 chat -N hello
    stderr_is "chat: cannot use '$CONFIG/tools/f': others can write it (chmod go-w)"
    [[ ! -e ran ]]
    run_expect 0 chat -N -T "$CONFIG/tools/f" hello
    chmod 755 "$CONFIG/tools/f"
    run_expect 0 chat -N hello
}

# ---- commands of the configuration, in a repository of other people

# shadow_launchers DIR: fills a repository with programs that leave a mark when one of the launchers that the
# manual names picks them up from the working directory.
shadow_launchers() {
    local name dir=$1 mark="$HOME/ran"
    local package=$dir/node_modules/@modelcontextprotocol/server-filesystem
    mkdir -p "$package" "$dir/node_modules/.bin"
    printf '{"name":"x","version":"1.0.0","scripts":{"preinstall":"touch %s-script","start":"touch %s-script"}}' \
        "$mark" "$mark" >"$dir/package.json"
    printf 'script-shell=%s/evil-shell\nnode-options=--require=%s/evil.js\n' "$dir" "$dir" >"$dir/.npmrc"
    printf '{"name":"@modelcontextprotocol/server-filesystem","version":"99.0.0","bin":{"mcp-server-filesystem":"index.js"}}' \
        >"$package/package.json"
    printf '#!/usr/bin/env node\nrequire("fs").writeFileSync("%s-npx", "")\n' "$mark" |
        tee "$package/index.js" >"$dir/evil.js"
    chmod +x "$package/index.js"
    ln -s ../@modelcontextprotocol/server-filesystem/index.js "$dir/node_modules/.bin/mcp-server-filesystem"
    for name in notes_mcp json keyring runpy; do
        echo "open('$mark-$name', 'w')" >"$dir/$name.py"
    done
    for name in near-server show-key evil-shell node_modules/.bin/near-server; do
        printf '#!/bin/sh\ntouch %s-%s\n' "$mark" "${name##*/}" >"$dir/$name"
        chmod +x "$dir/$name"
    done
}

# clone_shadows: makes such a repository, clones it, and enters the clone.
clone_shadows() {
    git init -q "$BATS_TEST_TMPDIR/theirs"
    shadow_launchers "$BATS_TEST_TMPDIR/theirs"
    git -C "$BATS_TEST_TMPDIR/theirs" add -Af
    git -C "$BATS_TEST_TMPDIR/theirs" -c user.name=x -c user.email=x@example.org commit -qm x
    git clone -q "$BATS_TEST_TMPDIR/theirs" "$WORK/clone"
    cd "$WORK/clone" || return 1
    # Nothing is fetched: the registry refuses connections.
    export npm_config_registry=http://127.0.0.1:9/ npm_config_fetch_retries=0 npm_config_update_notifier=false
    export PYTHONPATH=$HOME/python PYTHONDONTWRITEBYTECODE=1
    PATH=$PATH:.:node_modules/.bin
    mkdir "$HOME/python"
    echo 'import json; print("{}")' >"$HOME/python/installed_mcp.py"
}

nothing_ran() {
    local marks
    marks=$(compgen -G "$HOME/ran*") || :
    [[ -z $marks ]] || fail "the repository's programs ran: $marks"
}

# ran_in DIR: what a command put into ~/where.
ran_in() {
    [[ $(cat "$HOME/where") == "$1" ]] || fail "it ran in $(cat "$HOME/where"), not in $1"
}

# The status is 9: these commands are no servers where they run.
@test "commands: a repository cannot put itself before a server of the configuration" {
    local server
    use_echo
    clone_shadows
    {
        echo "mcp.files = npx -y @modelcontextprotocol/server-filesystem /srv/docs"
        echo "mcp.notes = python3 -m notes_mcp"
        echo "mcp.installed = python3 -m installed_mcp"
        echo "mcp.near = near-server"
        echo "mcp.shell = sh -c 'near-server'"
    } >"$CONFIG/config"
    for server in files notes installed near shell; do
        if [[ $server == files ]] && ! command -v npx >/dev/null; then continue; fi
        run_expect 9 chat --mcp "$server" hello
        run_expect 9 chat --dry-run --mcp "$server" hello
        nothing_ran
    done
    # What the marks are worth: in the working directory each of them runs.
    for server in files notes installed near shell; do
        if [[ $server == files ]] && ! command -v npx >/dev/null; then continue; fi
        echo "mcp.$server.cwd = ." >>"$CONFIG/config"
        run_expect 9 chat --dry-run --mcp "$server" hello
        compgen -G "$HOME/ran*" >/dev/null || fail "nothing of the repository ran for $server"
        rm -f "$HOME"/ran*
    done
}

@test "commands: a repository cannot put itself before a command for a key" {
    clone_shadows
    start_llm --reply hi
    unset OPENAI_API_KEY
    for command in 'python3 -m keyring get openai me' 'python3 -c "import json; print(1)"' show-key 'near-server'; do
        printf 'api_key_command.openai = %s\n' "$command; echo test-key-1" >"$CONFIG/config"
        run_expect 0 chat -N hello
        nothing_ran
        CHAT_API_KEY_COMMAND="$command; echo test-key-1" run_expect 0 chat -N hello
        nothing_ran
    done
    echo 'api_key_command.openai = pwd >$HOME/where; env >$HOME/env; echo test-key-1' >"$CONFIG/config"
    run_expect 0 chat -N hello
    ran_in "$HOME"
    run_expect 1 grep -E '^(OLD)?PWD=.*clone' "$HOME/env"
}

@test "commands: mcp.NAME.cwd says where a server of the configuration runs" {
    use_echo
    printf '#!/bin/sh\npwd >%q/where\nexit 7\n' "$HOME" >"$HOME/server"
    chmod +x "$HOME/server"
    mkdir "$HOME/sub" elsewhere
    runs_in() {
        printf '%s\n' "mcp.a = $HOME/server" ${2:+"mcp.a.cwd = $2"} >"$CONFIG/config"
        run_expect 9 chat --dry-run --mcp a hello
        ran_in "$1"
    }
    runs_in "$HOME"
    runs_in "$WORK" .
    runs_in "$HOME/sub" '~/sub'
    runs_in "$HOME" '~'
    runs_in "$WORK/elsewhere" "$WORK/elsewhere"
    # A command line is the user's own: it runs where it is given.
    run_expect 9 chat --dry-run --mcp "a=$HOME/server" hello
    ran_in "$WORK"
    echo 'mcp.a.cwd = elsewhere' >>"$CONFIG/config"
    run_expect 2 chat --dry-run --mcp a hello
    stderr_is "chat: bad directory 'elsewhere' of 'mcp.a.cwd': a path that begins with '/' or '~/' is expected, or '.' for the working directory"
    echo 'mcp.a.dir = x' >"$CONFIG/config"
    run_expect 0 chat -N hello
    stderr_is "chat: unknown key 'mcp.a.dir' in '$CONFIG/config', line 1"
}

@test "commands: the examples for git and cron use no tools and no servers" {
    clone_shadows
    start_llm --reply 'a subject' --reply 'a summary'
    mkdir "$CONFIG/tools"
    printf '#!/bin/sh\ntouch %q/ran-tool\necho "{\\"name\\":\\"f\\"}"\n' "$HOME" >"$CONFIG/tools/f"
    printf '#!/bin/sh\ntouch %q/ran-server\n' "$HOME" >"$HOME/server"
    chmod +x "$CONFIG/tools/f" "$HOME/server"
    printf '%s\n' 'tools = f' 'mcp = a b' "mcp.a = $HOME/server" 'mcp.b = python3 -m notes_mcp' >"$CONFIG/config"
    install -m 755 "$ROOT/examples/git/prepare-commit-msg" .git/hooks/prepare-commit-msg
    echo more >>evil.js
    git add -A
    GIT_EDITOR=true run_expect 0 git -c user.name=x -c user.email=x@example.org commit -q
    nothing_ran
    git log -1 --format=%s >"$OUT"
    stdout_is 'a subject'
    echo '2024-06-27 disk full' >log
    run_expect 0 "$ROOT/examples/cron/nightly-summary" log 2024-06-27
    nothing_ran
    requests_are 2
    json_is "$RECORD/2.json" '.tools // "none"' none
}

# ---- what a tool sees and leaves

@test "processes: what a tool starts in a session of its own ends with the turn" {
    [[ $(uname) == Linux ]] || skip 'no other system has this'
    use_history
    put_tool away 'setsid sleep 300 & echo $! >one
        (setsid sh -c '\''echo $$ >two; (setsid sleep 300 & echo $! >three); exec sleep 300'\'' >/dev/null 2>&1 &)
        while [ ! -s three ]; do sleep 0.01; done; echo started'
    sleep 300 &
    BACKGROUND+=($!)
    start_llm --call 'away {}' --reply Done.
    run_expect 0 chat --yes -T ./away go
    stdout_is Done.
    json_is "$HISTORY" 'select(.role == "tool").content' started ''
    for name in one two three; do
        if alive "$(cat $name)"; then fail "the process '$name' is alive"; fi
    done
    # Nothing but what a tool started is signalled.
    alive "${BACKGROUND[0]}"
}

@test "processes: what a tool starts ends also when the tool is interrupted or asked for its declaration" {
    [[ $(uname) == Linux ]] || skip 'no other system has this'
    use_history
    put_tool away 'setsid sleep 300 & echo $! >one; echo $$ >began; exec sleep 300'
    start_llm --call 'away {}' --reply Done.
    background chat --yes -T ./away go
    wait_for test -s began
    kill -TERM "$BG"
    finish 143
    if alive "$(cat one)"; then fail 'the process is alive'; fi
    printf '#!/bin/sh\nsetsid sleep 300 >/dev/null 2>&1 & echo $! >one\necho "{\\"name\\":\\"away\\"}"\n' >away
    run_expect 0 chat --no-store -p echo -T ./away go
    if alive "$(cat one)"; then fail 'the process is alive'; fi
}

# A command for a key may start an agent that other programs use.
@test "processes: what a command for a key leaves is not killed" {
    use_history
    put_tool noop 'echo done'
    start_llm --call 'noop {}' --reply Done.
    unset OPENAI_API_KEY
    export CHAT_API_KEY_COMMAND='setsid sleep 300 >/dev/null 2>&1 & echo $! >$HOME/agent; echo test-key-1'
    run_expect 0 chat --yes -T ./noop go
    stdout_is Done.
    alive "$(cat "$HOME/agent")"
    kill "$(cat "$HOME/agent")"
}

@test "secrets: a tool cannot read the key from the process that starts it" {
    need_other
    [[ $(uname) == Linux ]] || skip 'no other system has /proc like this'
    start_llm --call 'look {}' --reply Done.
    cd "$PUBLIC" || return 1
    put_tool look '{ tr "\0" "\n" </proc/$PPID/environ; cat /proc/$PPID/maps; } 2>&1 | head -c 2000'
    unset CHAT_HISTORY
    run_expect 0 as_other env OPENAI_API_KEY=sk-secret-12345678 chat --no-store --json --yes -T ./look go
    stdout_has 'Permission denied'
    if grep -q 'sk-secret' "$OUT"; then fail 'the tool has the key'; fi
    # Its own descriptors stay readable: a pipe given as a file, and standard input by name.
    echo attached >"$PUBLIC/in"
    run_expect 0 as_other bash -c 'chat --dry-run -N -p echo -f <(echo from a pipe) -f /dev/stdin look <in'
    stdout_has 'from a pipe' attached
}

# ---- servers that were not named

# A server with one model: arguments UID PORT. It prints 'ready', and 'asked' for each prompt.
cat_server() {
    cat <<'PYTHON'
import http.server, os, socketserver, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if "LOADING" in os.environ:
            self.answer(b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', 503)
        else:
            self.answer(b'{"data":[{"id":"m"}]}')

    def do_POST(self):
        print("asked", flush=True)
        self.answer(b'{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}')

    def log_message(self, *_):
        pass

os.setresuid(int(sys.argv[1]), int(sys.argv[1]), int(sys.argv[1]))
server = socketserver.TCPServer(("127.0.0.1", int(sys.argv[2])), Handler)
print("ready", flush=True)
server.serve_forever()
PYTHON
}

# beside_server UID COMMAND...: runs it where only a server of that user can be reached, on port 8080 or $FOUND_PORT.
beside_server() {
    local uid=$1
    shift
    cat_server >server.py
    : >said
    timeout 30 unshare -n sh -c 'ip link set lo up
        python3 server.py '"$uid ${FOUND_PORT:-8080}"' >said & server=$!
        for i in $(seq 90); do grep -q ready said || sleep 0.3; done
        "$@"; status=$?
        kill $server; exit $status' sh "$@"
}

@test "found: each server that needs no key, on its usual port" {
    [[ $EUID -eq 0 ]] || skip 'only root can become another user'
    unshare -n ip link set lo up 2>/dev/null || skip 'there are no network name spaces'
    use_history
    for found in lmstudio:1234 vllm:8000 docker:12434; do
        FOUND_PORT=${found#*:} run_expect 0 beside_server 0 chat -N --no-stream hello
        stdout_is hi
        stderr_is "chat: using ${found%:*} at 127.0.0.1:${found#*:}, model m"
        FOUND_PORT=${found#*:} run_expect 2 beside_server 65534 chat -N --no-stream hello
        stderr_has "chat: not using the ${found%:*} server at 127.0.0.1:${found#*:}: it belongs to user nobody"
    done
}

@test "found: llama.cpp while it loads a model" {
    [[ $EUID -eq 0 ]] || skip 'only root can become another user'
    unshare -n ip link set lo up 2>/dev/null || skip 'there are no network name spaces'
    use_history
    LOADING=1 run_expect 5 beside_server 0 chat -N --no-stream hello
    stdout_empty
    stderr_is "chat: using llamacpp at 127.0.0.1:8080
chat: HTTP 503: Loading model"
}

@test "found: a server of another user is not used unless it is named" {
    [[ $EUID -eq 0 ]] || skip 'only root can become another user'
    unshare -n ip link set lo up 2>/dev/null || skip 'there are no network name spaces'
    use_history
    run_expect 2 beside_server 65534 chat -q --no-stream 'my secret'
    stderr_has 'chat: not using the llamacpp server at 127.0.0.1:8080: it belongs to user nobody (-p llamacpp uses it)' \
        'chat: no model server is configured'
    [[ $(cat said) == ready ]]
    run_expect 0 beside_server 65534 chat --no-stream -p llamacpp hello
    stdout_is hi
    stderr_empty
    # One's own, and those of the system's accounts, which root starts.
    run_expect 0 beside_server 0 chat --no-stream hello
    stdout_is hi
    run_expect 0 beside_server 998 chat --no-stream hello
    stdout_is hi
}

# ---- servers and lists that are not as they should be

# put_server TEXT [TOOLS]: ./server writes TEXT, or is an MCP server with these tools.
put_server() {
    if [[ $# -eq 1 ]]; then
        printf '#!/bin/sh\nprintf %q\nexec sleep 60\n' "$1" >server
    else
        printf '#!/bin/sh\n%s\n' 'while read -r line; do case $line in
            *\"initialize\"*) echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}}}}" ;;
            *tools/list*) echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":'"${2//\"/\\\"}"'}}" ;;
            esac; done' >server
    fi
    chmod +x server
}

@test "mcp: an address without TLS and frames with headers are refused with the reason" {
    use_echo
    run_expect 2 chat --dry-run --mcp http://example.org/mcp hello
    stderr_is "chat: cannot use 'http://example.org/mcp' as an MCP server: it is not encrypted; use https, or set 'mcp.NAME.url' in the user configuration"
    put_server 'Content-Length: 14\r\n\r\n{"jsonrpc":""}'
    run_expect 9 chat --dry-run --mcp a=./server hello
    stderr_is "chat: MCP server 'a' cannot be used: it writes what is no message: 'Content-Length: 14'"
    # JSON over several lines is no message, either, also if the server has ended.
    printf '#!/bin/sh\nread -r line\nprintf %q\necho bye >&2\n' '{\n  "jsonrpc": "2.0"\n}\n' >server
    run_expect 9 chat --dry-run --mcp a=./server hello
    stderr_is "chat: MCP server 'a' ended with status 0: it writes what is no message: '{': bye"
}

@test "mcp: a tool whose arguments are no object is left out with a notice" {
    use_echo
    put_server '' '[{"name":"list","inputSchema":{"type":"array"}},{"name":"good","inputSchema":{"type":"object"}}]'
    run_expect 0 chat --dry-run --mcp a=./server hello
    stderr_is "chat: MCP server 'a': tool 'list' is left out, its inputSchema is not for an object"
    stdout_json '.tools[].name' a__good
    run_expect 0 chat -q --dry-run --mcp a=./server hello
    stderr_empty
}

@test "models: a name with a line end is left out" {
    start_llm --models $'good,bad\nname'
    unset CHAT_MODEL
    run_expect 0 chat --models
    stdout_is openai:good
}
