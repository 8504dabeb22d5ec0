#!/usr/bin/env bats
#
# chat and MCP servers: which are started, what is told of their tools, how they end. The server is fake-mcp; its
# protocol is tested in tests/unit/mcp_test.c, the reading of its messages in tests/unit/mcp_message_test.c.

# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    use_history
    export OPENAI_API_KEY=test-key-1 CHAT_MODEL=openai:test-model
    ln -s "$TESTS/tools/fake-mcp" fake-mcp
}

# offers NAMES [SERVER]...: the tools of these servers, of which the first stands for all of fake-mcp's own.
offers() {
    local server options=()
    for server in "${@:2}"; do options+=(--mcp "$server"); done
    run_expect 0 chat -v --dry-run "${options[@]}" hello
    [[ $(sed -nE 's/^tool=(.*__(echo|tool.*))$/\1/p' "$ERR" | xargs) == "$1" ]] || fail "wanted $1"
}

gone() {
    ! alive "$(cat "$1")"
}

@test "mcp: a server is asked for its tools, and ends with chat" {
    start_llm --reply hi
    run_expect 0 chat --mcp 'fake=./fake-mcp --many 2 --pid pid --log log' hello
    stdout_is hi
    stderr_empty
    gone pid
    json_is log .method initialize notifications/initialized tools/list
}

@test "mcp: names are given or defined in the configuration" {
    configure "mcp.mine = $TESTS/tools/fake-mcp --many 1" "mcp.other = $TESTS/tools/fake-mcp"
    offers mine__tool0 mine
    offers 'a__tool0 a__tool1' 'a=./fake-mcp --many 2'
    offers 'b__echo mine__tool0 a__tool0' "b=$TESTS/tools/fake-mcp" mine 'a=./fake-mcp --many 1'
    offers a__tool0 'a=./fake-mcp --many 1' 'a=./fake-mcp --many 1'
    offers ''
    run_expect 2 chat --mcp './fake-mcp --many 1' hello
    stdout_empty
    stderr_is "chat: bad MCP server './fake-mcp --many 1': NAME=COMMAND, NAME=URL, a URL, or a name from the user configuration, is expected"
    run_expect 2 chat --mcp yours hello
    stderr_is "chat: no MCP server 'yours': the user configuration has no 'mcp.yours', and a command or a URL is given as NAME=COMMAND or NAME=URL"
    [[ ! -e $HISTORY ]]
}

@test "mcp: hist-mcp needs no configuration, and the model finds what was said" {
    hist_line old user 'the nginx logs fill the disk' '' '{"id":"m1"}' >"$HISTORY"
    start_llm --call 'hist-mcp__search {"query":"nginx logs"}' --reply 'rotate them'
    run_expect 0 chat --yes --mcp hist-mcp 'what about the nginx logs?'
    stdout_is 'rotate them'
    # It is not told what it was asked just now.
    [[ $(request 2 | jq -r '.messages[-1].content | fromjson | .id') == m1 ]] || fail "$(request 2 | jq '.messages[-1]')"
    configure 'mcp = hist-mcp'
    run_expect 0 chat -v --dry-run hello
    [[ $(sed -n 's/^tool=//p' "$ERR" | xargs) == 'hist-mcp__files hist-mcp__search hist-mcp__sessions hist-mcp__show' ]] || fail 'the tools'
}

@test "mcp: a signal that ends hist-mcp in a call ends the program that it runs" {
    mkdir beside
    cp "$BIN/hist-mcp" beside/
    printf '#!/bin/sh\necho $$ >searching\nexec sleep 60\n' >beside/hist-search
    chmod +x beside/hist-search
    echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"x"}}}' >calls
    beside/hist-mcp <calls >answers 3>&- 4>&- &
    wait_for test -s searching
    kill -TERM $!
    wait $! || status=$?
    [[ $status == 143 ]] || fail "status $status"
    ended() { ! kill -0 "$(<searching)" 2>/dev/null; }
    wait_for ended
    [[ ! -s answers ]] || fail "$(<answers)"
}

@test "mcp: the configuration has defaults, which an option overrides" {
    configure 'mcp = mine other' "mcp.mine = $TESTS/tools/fake-mcp --many 1" "mcp.other = $TESTS/tools/fake-mcp"
    offers 'mine__tool0 other__echo'
    offers mine__tool0 mine
    offers '' ''
}

@test "mcp: the configuration and -T choose tools of a server" {
    configure "mcp.mine = $TESTS/tools/fake-mcp --many 3" 'mcp.mine.tools = tool2 tool0' "mcp.other = $TESTS/tools/fake-mcp --many 2"
    offers 'mine__tool0 mine__tool2' mine
    offers 'a__tool0 a__tool1' 'a=./fake-mcp --many 2'
    # chosen WANTED OPTION...: -T names tools of servers that --mcp or the configuration have.
    chosen() {
        run_expect 0 chat -v --dry-run "${@:2}" hello
        [[ $(sed -n 's/^tool=//p' "$ERR" | xargs) == "$1" ]] || fail "wanted $1"
    }
    chosen mine__tool1 -T mine:tool1
    chosen 'mine__tool1 other__tool0 other__tool1' --mcp mine --mcp other -T mine:tool1
    chosen 'a__tool0 a__tool1' --mcp 'a=./fake-mcp --many 3' -T a:tool1 -T a:tool0
    chosen 'mine__tool0 mine__tool2 other__tool1' --mcp mine -T other:tool1
    # The name is the one that the server knows, with any characters.
    chosen odd__dots_and_slashes__ --mcp 'odd=./fake-mcp --odd' -T 'odd:dots.and/slashes é'
    configure "mcp = mine" "mcp.mine = $TESTS/tools/fake-mcp --odd" 'mcp.mine.tools = "dots.and/slashes é"'
    chosen mine__dots_and_slashes__
    # -T replaces the executables of the configuration, as a path does.
    configure 'tools = absent' "mcp.mine = $TESTS/tools/fake-mcp --many 3"
    chosen mine__tool1 -T mine:tool1
}

@test "mcp: a tool that a server does not have is an error with -T, and a notice in the configuration" {
    configure "mcp.mine = $TESTS/tools/fake-mcp --many 2 --pid $PWD/pid" 'mcp.mine.tools = tool0 toolx'
    run_expect 0 chat -v --dry-run --mcp mine hello
    grep -Fx "chat: MCP server 'mine' has no tool 'toolx', which 'mcp.mine.tools' names" "$ERR"
    grep -Fx tool=mine__tool0 "$ERR"
    run_expect 0 chat -q --dry-run --mcp mine hello
    stderr_empty
    run_expect 2 chat -T mine:tooly hello
    stdout_empty
    stderr_is "chat: MCP server 'mine' has no tool 'tooly'"
    gone pid
    run_expect 2 chat -T yours:x hello
    stderr_is "chat: no MCP server 'yours': the user configuration has no 'mcp.yours', and a command or a URL is given as NAME=COMMAND or NAME=URL"
    for name in :x mine: : "mine=x:tool"; do
        run_expect 2 chat -T "$name" hello
        stderr_has "chat: bad value '$name' for --tool: SERVER:TOOL is expected"
    done
    configure "mcp.mine = $TESTS/tools/fake-mcp" "mcp.mine.tools = 'a"
    run_expect 2 chat --mcp mine hello
    stderr_is "chat: bad value ''a' of 'mcp.mine.tools': a quote is not closed"
    [[ ! -e $HISTORY ]]
}

@test "mcp: tools that have changed are chosen, too" {
    configure "mcp.fake = $TESTS/tools/fake-mcp" 'mcp.fake.tools = grow grown'
    start_llm --call 'fake__grow {}' --reply hi
    run_expect 0 chat --mcp fake --yes hello
    json_is "$RECORD/1.json" '.tools[].function.name' fake__grow
    json_is "$RECORD/2.json" '.tools[].function.name' fake__grow fake__grown
}

@test "mcp: servers start side by side" {
    offers 'a__tool0 b__tool0' 'a=./fake-mcp --many 1 --meet a b' 'b=./fake-mcp --many 1 --meet b a'
}

@test "mcp: a command is words, and no shell sees it" {
    offers a__tool0 'a=./fake-mcp --many 1 --pid "$(touch pwned) '\''x'\''" ; touch pwned > y'
    [[ -e '$(touch pwned) '\''x'\''' && ! -e pwned && ! -e y ]]
}

@test "mcp: a server that does not start is an error before anything is stored or sent" {
    start_llm --reply hi
    run_expect 9 chat --mcp 'a=./fake-mcp --pid pid' --mcp 'b=./fake-mcp --die' hello
    stdout_empty
    stderr_is "chat: MCP server 'b' ended with status 3: there is no configuration"
    gone pid
    run_expect 9 chat --mcp a=no-such-program hello
    stderr_is "chat: MCP server 'a' cannot be started: cannot run 'no-such-program': No such file or directory"
    run_expect 9 chat --json --mcp 'a=./fake-mcp --refuse' hello
    stdout_json .message "MCP server 'a' refuses to begin: not today (-32600)"
    stdout_json .code 9
    [[ ! -e $HISTORY && ! -e $RECORD/1.json ]]
    configure 'mcp = a' "mcp.a = $TESTS/tools/fake-mcp --list-error"
    run_expect 9 chat hello
    stderr_is "chat: MCP server 'a' cannot list its tools: the list is lost (-32603)"
}

@test "mcp: what babbles is an error, what has a banner is not" {
    run_expect 9 chat --dry-run --mcp 'fake=./fake-mcp --babble' hello
    stderr_is "chat: MCP server 'fake' cannot be used: it writes what is no message: 'babble'"
    offers a__tool0 'a=./fake-mcp --many 1 --banner'
}

# starts_with LINE...: a server that answers its requests with these lines.
starts_with() {
    printf '%s\n' '#!/bin/sh' "$(printf "read -r line && echo '%s'\n" "$@")" 'cat >input' >server
    chmod +x server
    run_expect 9 chat --dry-run --mcp a=./server hello
}

@test "mcp: an answer to initialize that is wrong is reported at once" {
    for result in '{"protocolVersion":5}' '{}' '"x"' null '[]'; do
        starts_with '{"jsonrpc":"2.0","id":1,"result":'"$result}"
        stderr_is "chat: MCP server 'a' cannot be used: its answer to initialize has no protocolVersion"
    done
    starts_with '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1"}}'
    stderr_is "chat: MCP server 'a' speaks protocol version '1', which is not known"
    starts_with '{"jsonrpc":"2.0","id":1}'
    stderr_is "chat: MCP server 'a' cannot be used: its answer has neither a result nor an error"
    starts_with '{"jsonrpc":"2.0","id":"one","result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
    stderr_is "chat: MCP server 'a' cannot be used: its answer does not have the id of the request"
    starts_with '{"jsonrpc":"2.0","id":1,"result":{'
    stderr_is "chat: MCP server 'a' cannot be used: it writes what is no message: '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{'"
    for n in 1 2; do printf '{"jsonrpc":"2.0","id":%s,"error":"bad"}\n' $n; done >answers
    mapfile -t answers <answers
    starts_with "${answers[@]}"
    stderr_is "chat: MCP server 'a' refuses to begin: bad"
    error='{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    starts_with "$error" "$error"
    stderr_is "chat: MCP server 'a' refuses to begin: Parse error (-32700)"
}

@test "mcp: control characters of a server's last words are shown" {
    printf '#!/bin/sh\nprintf "red \\033[31mtext\\n\\007bell" >&2\nexit 4\n' >angry
    chmod +x angry
    run_expect 9 chat --dry-run --mcp angry=./angry hello
    stderr_is "chat: MCP server 'angry' ended with status 4: red ^[[31mtext ^Gbell"
}

@test "mcp: a server without tools is told of" {
    run_expect 0 chat --dry-run --mcp 'fake=./fake-mcp --no-tools' hello
    stderr_is "chat: MCP server 'fake' has no tools"
    stdout_json '.tools' null
    run_expect 0 chat -q --dry-run --mcp 'fake=./fake-mcp --no-tools' hello
    stderr_empty
}

@test "mcp: wrong use" {
    configure "mcp.mine = $TESTS/tools/fake-mcp" 'mcp.two words = x' 'mcp.near = bin/server'
    run_expect 2 chat --mcp 'a=x' --mcp 'a=y' hello
    stderr_is "chat: two MCP servers have the name 'a'"
    run_expect 2 chat --mcp "a=x 'y" hello
    stderr_is "chat: bad command 'x 'y' of an MCP server: a quote is not closed"
    run_expect 2 chat --mcp 'a= ' hello
    stderr_is "chat: bad command ' ' of an MCP server: it is empty"
    run_expect 2 chat --mcp 'two words' hello
    stderr_is "chat: bad name 'two words' of an MCP server: 1 to 30 letters, digits, '_' and '-' are expected"
    run_expect 2 chat --mcp near hello
    stderr_is "chat: bad command 'bin/server' of 'mcp.near': a path has to begin with a slash"
    configure "mcp = 'a" 'mcp.a = x'
    run_expect 2 chat hello
    stderr_is "chat: bad name ''a' of an MCP server: 1 to 30 letters, digits, '_' and '-' are expected"
    configure 'mcp.a = x' 'mcp.a.cwd = /absent'
    run_expect 2 chat --mcp a hello
    stderr_is "chat: bad directory '/absent' of 'mcp.a.cwd': there is no such directory"
    configure 'mcp = yours'
    run_expect 2 chat hello
    stderr_is "chat: no MCP server 'yours': the user configuration has no 'mcp.yours'"
    [[ ! -e $HISTORY ]]
}

@test "mcp: a server does not get to see keys" {
    export ANTHROPIC_API_KEY=a-key CHAT_API_KEY_COMMAND='pass x' COPY='Bearer test-key-1' HARMLESS=yes
    run_expect 0 chat --dry-run --mcp 'fake=./fake-mcp --env env' hello
    has env HARMLESS=yes
    run_expect 1 grep -E '_KEY|COPY|test-key-1' env
    CHAT_API_KEY=any-other-key run_expect 0 chat --dry-run --mcp 'fake=./fake-mcp --env env' hello
    run_expect 1 grep -E 'CHAT_API_KEY|any-other-key' env
}

@test "mcp: a signal while servers start ends them and chat" {
    background chat --mcp 'fake=./fake-mcp --silent --stubborn --pid pid' hello
    wait_for test -s pid
    kill -INT "$BG"
    finish 130
    gone pid
    [[ ! -e $HISTORY ]]
}

@test "mcp: a stubborn server is made to go" {
    start_llm --reply hi
    run_expect 0 chat --mcp 'fake=./fake-mcp --stubborn --pid pid' hello
    stdout_is hi
    gone pid
}

@test "mcp: a server ends with chat when the turn fails or is interrupted" {
    start_llm --accept-silent
    background chat --mcp 'fake=./fake-mcp --pid pid' hello
    wait_for test -s "$RECORD/1.json"
    kill -TERM "$BG"
    finish 143
    gone pid
    rm pid
    OPENAI_BASE_URL=http://127.0.0.1:$(unused_port)/v1 run_expect 4 chat --retries 0 --mcp 'fake=./fake-mcp --pid pid' hello
    gone pid
}

# The answer is there, and so is the server, which is being waited for.
@test "mcp: a signal while servers are ended leaves none behind" {
    for signal in TERM INT; do
        start_llm --reply hi
        background chat --mcp "fake=./fake-mcp --stubborn --pid pid --ended $signal" hello
        finish $((128 + $(kill -l $signal)))
        stdout_is hi
        stderr_empty
        gone pid
    done
    json_is "$HISTORY" .role user assistant user assistant
}

@test "mcp: --models starts no server" {
    start_llm --reply hi
    run_expect 2 chat --models --mcp 'fake=./fake-mcp --pid pid'
    stderr_is "chat: --mcp cannot be given with --models (see 'chat --help')"
    [[ ! -e pid ]]
}

# ---- the terminal

@test "mcp: a server that wants the terminal learns at once that there is none" {
    start_llm --call 'fake__tty {}' --reply finished
    run_expect 0 on_tty --fds 2 --type 'secret\n' chat --yes --tool-timeout 30s --mcp fake=./fake-mcp hello
    stdout_has 'tool_result fake__tty /dev/tty: No such device or address'
    json_is "$HISTORY" 'select(.role == "tool").content' '/dev/tty: No such device or address'
    printf '#!/bin/sh\nread -r word </dev/tty || exit 6\n' >asks
    chmod +x asks
    run_expect 9 on_tty --fds 2 chat --mcp asks=./asks hello
    stdout_has "MCP server 'asks' ended with status 6" '/dev/tty: No such device or address'
}

@test "mcp: a server that is slow is named on a terminal or with -v, once" {
    start_llm --reply hi
    run_expect 0 on_tty --fds 2 chat --no-store --mcp 'slow=./fake-mcp --many 1 --start-ms 1500' --mcp 'quick=./fake-mcp --many 1' hello
    stdout_is hi $'chat: waiting for MCP server \'slow\'\r'
    run_expect 0 chat -v --dry-run --mcp 'slow=./fake-mcp --many 1 --start-ms 1500' hello
    [[ $(grep -c waiting "$ERR") == 1 ]]
    run_expect 0 chat --dry-run --mcp 'slow=./fake-mcp --many 1 --start-ms 1500' hello
    stderr_empty
    run_expect 0 on_tty --fds 2 chat -q --no-store --mcp 'slow=./fake-mcp --many 1 --start-ms 1500' hello
    stdout_is hi
}

# ---- a list that changes

# The names of the tools of the K-th request, those of fake-mcp as they are left out.
told() {
    jq -r '[.tools[].function.name | select(test("grow"))] | join(" ")' "$RECORD/$1.json"
}

@test "mcp: tools that have changed are those of the next request" {
    start_llm --call 'fake__grow {}' --call 'fake__grown {}' --reply finished
    run_expect 0 chat -v --yes --mcp fake=./fake-mcp --mcp 'other=./fake-mcp --many 1' hello
    [[ $(told 1) == fake__grow && $(told 2) == 'fake__grow fake__grown' && $(told 3) == "$(told 2)" ]]
    stderr_has 'chat: tools have changed: the model may call 28 now'
    json_is "$HISTORY" 'select(.role == "tool").content' more 'I am new'
    json_is "$RECORD/3.json" '.tools | length' 28
    # It is asked for once.
    start_llm --call 'fake__grow {}' --call 'fake__echo {"text":"x"}' --reply finished
    run_expect 0 chat --no-store --yes --mcp 'fake=./fake-mcp --log log' hello
    json_is log 'select(.method == "tools/list").method' tools/list tools/list
}

@test "mcp: a list that cannot be read again is the old one" {
    start_llm --call 'fake__grow {}' --call 'fake__echo {"text":"still"}' --reply finished
    run_expect 0 chat --yes --mcp 'fake=./fake-mcp --grow-error' hello
    stdout_is finished
    stderr_is "chat: MCP server 'fake' cannot list its tools anew: the list is lost (-32603)"
    [[ $(told 2) == fake__grow ]]
    json_is "$HISTORY" 'select(.role == "tool").content' more still
}

@test "mcp: what a server logs is shown with -v" {
    start_llm --call 'fake__log {}' --reply finished
    run_expect 0 chat --yes --mcp fake=./fake-mcp hello
    stderr_empty
    start_llm --call 'fake__log {}' --reply finished
    run_expect 0 chat -v --yes --mcp fake=./fake-mcp hello
    stderr_has $'\nmcp_message fake info all is well\nmcp_message fake error disk {"full":"\\u001b[2J"}\n'
}

@test "mcp: progress prolongs its own call, and no other" {
    start_llm --call 'fake__progress {"seconds":7}' --reply finished
    run_expect 0 chat --yes --tool-timeout 3s --mcp fake=./fake-mcp hello
    stdout_is finished
    json_is "$HISTORY" 'select(.role == "tool").content' worked
    rm "$HISTORY"
    start_llm --call 'fake__progress {}' --reply finished
    run_expect 0 chat --yes --tool-timeout 700ms --mcp fake=./fake-mcp hello
    stdout_is finished
    json_is "$HISTORY" 'select(.role == "tool").content' 'the tool was stopped: it took longer than 0.7 s'
}

# ---- calls

@test "mcp: a tool is declared, called, and its result sent and stored" {
    start_llm --call 'fake__echo {"text":"from the server"}' --reply finished
    run_expect 0 chat --yes --mcp fake=./fake-mcp hello
    stdout_is finished
    request 1 >body
    json_is body '.tools[] | .function | select(.name | test("__echo")) | "\(.name): \(.description) \(.parameters.type)"' \
        'fake__echo: The tool echo object'
    request 2 >body
    json_is body '.messages[] | select(.role == "tool").content' 'from the server'
    json_is "$HISTORY" '"\(.role): \(.content)"' 'user: hello' 'assistant: ' 'tool: from the server' 'assistant: finished'
}

@test "mcp: the model is told that a call failed, and a link to a file is a file that was modified" {
    start_llm --call 'fake__fail {}' --call 'fake__blocks {}' --reply finished
    run_expect 0 chat --yes --mcp fake=./fake-mcp hello
    request 3 >body
    json_is body '.messages[] | select(.role == "tool").content' 'the tool failed:' 'no such place' words \
        '[image, image/png, 5 bytes]' '[audio, audio/wav, 3 bytes]' '[resource_link, file:///x, x]' inside
    json_is "$HISTORY" 'select(.role == "tool") | .failed' true null
    json_is "$HISTORY" 'select(.role == "assistant") | .files_modified | tojson' null null '["/x"]'
}

@test "mcp: without consent nothing is called" {
    start_llm --call 'fake__echo {"text":"x"}' --reply finished
    run_expect 0 chat --mcp 'fake=./fake-mcp --log log' hello
    run_expect 1 grep tools/call log
}

@test "mcp: an interrupt in a call cancels it, stores it and ends the server" {
    start_llm --call 'fake__hang {}' --reply finished
    background chat --yes --mcp 'fake=./fake-mcp --log log --pid pid' hello
    wait_for grep -q tools/call log
    kill -INT "$BG"
    finish 130
    grep -q notifications/cancelled log
    gone pid
    json_is "$HISTORY" .role user assistant tool
}
