#!/usr/bin/env bats
#
# chat and MCP servers over HTTP. The server is fake-mcp-http; the rules of the configuration are also in mcp.bats and
# safety.bats, the headers that repeat a message in tests/unit/mcp_mirror_test.c.

# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    use_history
    export OPENAI_API_KEY=test-key-1 CHAT_MODEL=openai:test-model
}

teardown() {
    local pid
    for pid in "${PIDS[@]}"; do kill "$pid" 2>/dev/null || :; done
    sandbox_end
}

# start_mcp OPTION...: the server, at $MCP, whose requests are in `log`.
start_mcp() {
    rm -f url log
    "$TESTS/tools/fake-mcp-http" "$@" --url url --log log </dev/null >/dev/null 2>&1 3>&- 4>&- &
    PIDS+=($!)
    wait_for test -s url
    MCP=$(cat url)
}

# requests FILTER LINE...: what jq -r FILTER makes of the array of all requests.
requests() {
    jq -s . log >all
    json_is all "$@"
}

# methods WANTED...: what the server was sent, HTTP method and JSON-RPC method.
methods() {
    json_is log '"\(.method) \(.body.method // (.body | if . then "answer" else "" end))"' "$@"
}

# result WANTED: what the model got as the last result of a tool.
result() {
    jq -s . "$HISTORY" >all
    json_is all 'map(select(.role == "tool"))[-1].content' "$1"
}

# refuses STATUS TEXT: chat ends so, before anything is stored.
refuses() {
    run_expect "$1" chat --mcp "fake=$MCP" hello
    stdout_empty
    stderr_is "chat: MCP server 'fake' $2"
    [[ ! -e $HISTORY ]]
}

@test "mcp_http: a tool of a server is called, answered as JSON, on one connection" {
    start_mcp
    start_llm --call 'fake__echo {"text":"one"}' --call 'fake__echo {"text":"two"}' --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    stdout_is finished
    result two
    methods 'POST server/discover' 'POST initialize' 'POST notifications/initialized' 'POST tools/list' \
        'POST tools/call' 'POST tools/call'
    [[ $(jq .port log | sort -u | wc -l) == 1 ]]
    requests '.[4].headers | .accept, .["content-type"], .["mcp-protocol-version"], .["mcp-method"], .["mcp-name"]' \
        'application/json, text/event-stream' application/json 2025-11-25 tools/call echo
}

@test "mcp_http: answers come as streams, and requests in them are answered" {
    start_mcp --sse --ask
    start_llm --call 'fake__echo {"text":"streamed"}' --reply finished
    run_expect 0 chat --yes -v --mcp "fake=$MCP" hello
    grep -q 'mcp_message fake info so far' "$ERR"
    result streamed
    requests 'map(select(.body.id == "are you there"))[-1].body.result | tojson' '{}'
    requests 'map(select(.body.id == "a model"))[-1].body.error.code' -32601
}

@test "mcp_http: a session is kept, ended, and begun anew when the server has lost it" {
    start_mcp --session --forget 5
    start_llm --call 'fake__echo {"text":"again"}' --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    result again
    methods 'POST server/discover' 'POST initialize' 'POST notifications/initialized' 'POST tools/list' \
        'POST tools/call' 'POST initialize' 'POST notifications/initialized' 'POST tools/call' 'POST tools/list' 'DELETE '
    requests '[.[].headers["mcp-session-id"]] | map(. // "") | join(" ")' \
        '  session-0 session-0 session-0  session-1 session-1 session-1 session-1'
}

@test "mcp_http: a call whose connection ends without an answer is not sent again" {
    start_mcp
    start_llm --call 'fake__drop {}' --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    stdout_is finished
    result "the tool cannot be called: no answer from '${MCP:7:-4}': the connection was closed"
    requests 'map(select(.body.method == "tools/call")) | length' 1
}

@test "mcp_http: 2026-07-28 has no session, and parameters are repeated in headers" {
    start_mcp --stateless --extra Text
    start_llm --call 'fake__echo {"text":"für"}' --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    result für
    methods 'POST server/discover' 'POST tools/list' 'POST tools/call'
    requests '.[-1].headers["mcp-param-text"]' '=?base64?ZsO8cg==?='
    start_mcp --stateless --extra 'not a name'
    run_expect 0 chat --dry-run --mcp "fake=$MCP" hello
    stderr_is "chat: MCP server 'fake': tool 'echo' is left out, an x-mcp-header of it is not valid"
}

@test "mcp_http: a server that only knows the transport of 2024-11-05 is named, with a remedy" {
    start_mcp --status 405
    refuses 9 "refuses to begin: HTTP 405: as told (if it only speaks HTTP+SSE, the transport of 2024-11-05, start it as 'mcp.fake = npx -y mcp-remote URL')"
    requests '[.[] | "\(.method) \(.body.method)"] | join(", ")' 'POST server/discover, POST initialize'
}

@test "mcp_http: a stream that breaks off is resumed" {
    start_mcp --session
    start_llm --call 'fake__break {}' --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    result resumed
    requests 'map(select(.method == "GET"))[].headers | .accept, .["last-event-id"], .["mcp-session-id"]' \
        text/event-stream first session-0
    # A server that wants that at once, for ever, is not asked all the time.
    start_mcp
    start_llm --call 'fake__crumble {}' --reply finished
    run_expect 0 chat --yes --tool-timeout 1s --mcp "fake=$MCP" hello
    requests 'map(select(.method == "GET")) | length | . > 1 and . < 12' true
}

@test "mcp_http: calls that get no answer fail, and the server can be used further" {
    start_mcp
    start_llm --call 'fake__lost {}' --call 'fake__silent {}' --call 'fake__die {}' --call 'fake__echo {"text":"here"}' \
        --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    json_is "$HISTORY" 'select(.role == "tool").content' 'the tool cannot be called: the stream ended without an answer' \
        'the tool cannot be called: HTTP 202 without an answer' \
        'the tool cannot be called: HTTP 500: it cannot go on' here
}

@test "mcp_http: a call that takes too long is cancelled" {
    start_mcp --session
    start_llm --call 'fake__hang {}' --call 'fake__cancelled {}' --reply finished
    run_expect 0 chat --yes --tool-timeout 2s --mcp "fake=$MCP" hello
    result 1
    jq -s . "$HISTORY" >all
    json_is all 'map(select(.role == "tool"))[0].content' 'the tool was stopped: it took longer than 2.0 s'
}

@test "mcp_http: a server that does not accept that a call is cancelled can be used further" {
    start_mcp --deaf
    start_llm --call 'fake__hang {}' --call 'fake__cancelled {}' --reply finished
    run_expect 0 chat --yes --tool-timeout 4s --mcp "fake=$MCP" hello
    result 1
}

@test "mcp_http: an interrupt in a call cancels it and ends the session, also of a server that hangs then" {
    local deaf
    for deaf in '' --deaf; do
        rm -f log "$HISTORY"
        start_mcp --session ${deaf:+"$deaf"}
        start_llm --call 'fake__hang {}' --reply finished
        background chat --yes --mcp "fake=$MCP" hello
        wait_for grep -q tools/call log
        kill -INT "$BG"
        finish 130
        wait_for grep -q DELETE log
        wait_for grep -q cancelled log
        requests '.[-2:] | map("\(.method) \(.body.method)") | sort[]' 'DELETE null' 'POST notifications/cancelled'
        json_is "$HISTORY" .role user assistant tool
    done
}

@test "mcp_http: a server that floods is given up" {
    start_mcp
    start_llm --call 'fake__flood {}' --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    result "MCP server 'fake' cannot be used: it sent 10000 messages and no answer"
    # An answer to an earlier request does not count.
    start_llm --call 'fake__repeat {}' --reply finished
    run_expect 0 chat --yes --tool-timeout 50s --mcp "fake=$MCP" hello
    result "MCP server 'fake' cannot be used: it sent 10000 messages and no answer"
}

@test "mcp_http: a server that refuses, is not there or is none" {
    start_mcp --status 401 --challenge 'Bearer resource_metadata="https://auth.test/x"'
    refuses 3 "refuses access: HTTP 401: as told (set 'mcp.fake.header_command.Authorization' or another header; who gives access is described at https://auth.test/x)"
    start_mcp --status 503
    refuses 5 "refuses to begin: HTTP 503: as told"
    start_mcp --page
    refuses 9 "refuses to begin: HTTP 200 without an answer, of type text/html"
    start_mcp --status 404
    refuses 9 "refuses to begin: HTTP 404: as told (if it only speaks HTTP+SSE, the transport of 2024-11-05, start it as 'mcp.fake = npx -y mcp-remote URL')"
    MCP=http://127.0.0.1:1/mcp
    refuses 4 "cannot be reached: cannot connect to '127.0.0.1:1': Connection refused"
}

@test "mcp_http: redirects are followed within the server only" {
    local other
    start_mcp --log other.log
    other=$MCP
    start_mcp --slash
    start_llm --call 'fake__echo {"text":"moved"}' --reply finished
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    result moved
    [[ $(jq -r .path log | sort | uniq -c | xargs) == '1 /mcp 5 /mcp/' ]]
    rm "$HISTORY" log
    start_mcp --redirect "$other"
    configure "mcp.fake.url = $MCP" 'mcp.fake.header.X-Secret = very-secret-1'
    run_expect 9 chat --mcp fake hello
    other=${other#http://}
    stderr_is "chat: MCP server 'fake' refuses to begin: HTTP 307: redirect to '${other%/mcp}' is not followed"
    requests 'map(.headers["x-secret"]) | unique[]' very-secret-1
    [[ ! -e other.log ]]
}

@test "mcp_http: a server that cannot be used is a failed tool server, whatever it sends" {
    start_mcp --cut
    refuses 9 'cannot be used: the stream ended without an answer'
    start_mcp --session-id $'one\x01two'
    refuses 9 "cannot be used: it sent a bad header 'Mcp-Session-Id': a control character in its value"
}

@test "mcp_http: the instructions of a server are part of each request, and are not stored" {
    start_mcp --instructions $'Ask for few words.\nUse echo \e[2J.'
    start_llm --call 'fake__echo {"text":"x"}' --reply one --reply two
    configure "mcp.fake.url = $MCP"
    local part=$'About the tools of the MCP server \'fake\' (fake__*):\nAsk for few words.\nUse echo \e[2J.'
    run_expect 0 chat --yes -v -S 'Be brief.' --mcp fake hello
    grep -q 'mcp_instructions fake Ask for few words\. Use echo ^\[\[2J' "$ERR"
    run_expect 0 chat --yes --mcp fake again
    for i in 1 2 3; do
        request "$i" >body
        json_is body '.messages[] | select(.role == "system").content | @json' "$(jq -n --arg p $'Be brief.\n\n'"$part" '$p | @json' -r)"
    done
    json_is "$HISTORY" 'select(.role == "system").content' 'Be brief.'
    configure "mcp.fake.url = $MCP" 'mcp.fake.instructions = off'
    run_expect 0 chat --dry-run --mcp fake hello
    stdout_json '.messages[0].content' 'Be brief.'
    configure "mcp.fake.url = $MCP" 'mcp.fake.instructions = none'
    run_expect 2 chat --dry-run --mcp fake hello
    stderr_is "chat: bad value 'none' of 'mcp.fake.instructions': on or off is expected"
}

@test "mcp_http: headers are sent to their server and shown nowhere" {
    start_mcp --require X-Secret
    configure "mcp.fake.url = $MCP" 'mcp.fake.header.X-Secret = very-secret-1' \
        'mcp.fake.header_command.Authorization = echo Bearer token-12345678' 'mcp.fake.header.X-Region = eu-west-1-frankfurt'
    start_llm --call 'fake__headers {}' --reply finished
    run_expect 0 chat --yes -v --mcp fake hello
    requests 'map(.headers["x-secret"], .headers.authorization) | unique[]' 'Bearer token-12345678' very-secret-1
    run_expect 1 grep -rE 'very-secret-1|token-12345678' "$HISTORY" "$OUT" "$ERR" "$RECORD"
    json_is "$HISTORY" 'select(.role == "tool").content | split("\n")[] | select(test("^(X-|Auth)"))' \
        'Authorization: Bearer ***' 'X-Region: eu-west-1-frankfurt' 'X-Secret: ***'
    run_expect 0 chat --dry-run --mcp fake hello
    run_expect 1 grep -E 'very-secret-1|token-12345678' "$OUT" "$ERR"
    # Another server of that name gets none of them.
    run_expect 3 chat --mcp "fake=$MCP?x" hello
    configure "mcp.fake.url = $MCP" 'mcp.fake.header_command.X-Secret = false'
    run_expect 2 chat --mcp fake hello
    stderr_is "chat: no value from the command in 'mcp.fake.header_command.X-Secret': exit status 1"
    configure "mcp.fake.url = $MCP" 'mcp.fake.header.Content-Length = 5'
    run_expect 2 chat --mcp fake hello
    stderr_is "chat: cannot use 'mcp.fake.header.Content-Length': bad header 'Content-Length': it cannot be set"
    configure "mcp.fake.url = $MCP" 'mcp.fake.header.X A = 1'
    run_expect 2 chat --mcp fake hello
    stderr_is "chat: cannot use 'mcp.fake.header.X A': bad header: letters, digits and '-' are expected in its name"
    configure 'mcp.far.url = http://mcp.invalid/mcp' 'mcp.far.header_command.X = touch pwned'
    run_expect 2 chat --mcp far hello
    stderr_is "chat: cannot use 'mcp.far.header_command.X': refusing to send a header to 'http://mcp.invalid/mcp' over plain http: use https"
    [[ ! -e ~/pwned ]]
}

@test "mcp_http: a header that the server repeats with escapes in its JSON is masked" {
    start_mcp --escape
    configure "mcp.fake.url = $MCP" 'mcp.fake.header.X-Secret = very+secret/1' \
        'mcp.fake.header_command.Authorization = echo "Bearer token&12345678"'
    start_llm --call 'fake__headers {}' --call 'fake__echo {"text":"\\+/ very+secret/1\n\\u002B"}' --reply finished
    run_expect 0 chat --yes --mcp fake hello
    json_is "$HISTORY" 'select(.role == "tool").content | split("\n")[] | select(test("^(X-Secret|Auth|.*very)|u002B|[*]"))' \
        'Authorization: Bearer ***' 'X-Secret: ***' '\+/ ***' '\u002B'
}

@test "mcp_http: a header that the server repeats with escapes in an error is masked" {
    start_mcp --escape --status 500
    configure "mcp.fake.url = $MCP" 'mcp.fake.header.X-Secret = very+secret/1'
    run_expect 5 chat --mcp fake hello
    stderr_is "chat: MCP server 'fake' refuses to begin: HTTP 500: {\"got\":\"***\"}"
}

@test "mcp_http: a URL alone has the name of its host; http is for this machine and the configuration" {
    start_mcp
    run_expect 0 chat -v --dry-run --mcp "$MCP" hello
    grep -q '^tool=127_0_0_1__echo$' "$ERR"
    run_expect 2 chat --mcp http://mcp.invalid/mcp hello
    stderr_is "chat: cannot use 'http://mcp.invalid/mcp' as an MCP server: it is not encrypted; use https, or set 'mcp.NAME.url' in the user configuration"
    configure 'mcp.far.url = http://mcp.invalid/mcp'
    run_expect 4 chat --mcp far hello
    stderr_is "chat: MCP server 'far' cannot be reached: cannot connect to 'mcp.invalid:80': unknown host"
    configure 'mcp = far' 'mcp.far = http://mcp.invalid/ x'
    run_expect 2 chat hello
    stderr_is "chat: bad URL 'http://mcp.invalid/ x' of an MCP server: not of the form http[s]://HOST[:PORT]/PATH"
    run_expect 2 chat --mcp https:// hello
    stderr_is "chat: bad URL 'https://' of an MCP server: not of the form http[s]://HOST[:PORT]/PATH"
}

# ---- images

# The picture of fake-mcp-http: its PNG in base64 begins so.
PNG=iVBORw0KGgo

@test "mcp_http: an image of a result goes to the model, after the results, and not into the history" {
    start_mcp
    start_llm --call 'fake__picture {}' --call 'fake__echo {"text":"x"}' --reply seen
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    stdout_is seen
    request 2 >body
    json_is body '.messages[] | "\(.role): \(.content | if type == "string" then . else map(.text // .image_url.url[0:33]) | join("|") end)"' \
        'user: hello' 'assistant: ' 'tool: a dot' '[image, image/png, 70 bytes]' \
        "user: The images of the results of the tools:|data:image/png;base64,$PNG"
    # It is sent again in the later rounds of the turn, and not in later turns.
    request 3 >body
    json_is body '[.messages[].role] | join(" ")' 'user assistant tool user assistant tool'
    run_expect 1 grep "$PNG" "$HISTORY"
    run_expect 0 chat --dry-run more
    run_expect 1 grep "$PNG" "$OUT"
}

@test "mcp_http: an image of a result is part of it where the provider can take that" {
    start_mcp
    sed 's/get_weather/fake__picture/g' "$TESTS/fixtures/anthropic/calls.http" >pictures.http
    start_llm "$PWD/pictures.http" anthropic/normal
    export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=test-key-1
    run_expect 0 chat --yes -m anthropic:test-model --mcp "fake=$MCP" hello
    request 2 >body
    json_is body '[.messages[-1].content[] | select(.type == "tool_result")][0].content[] | "\(.type): \(.text // "\(.source.media_type) \(.source.data[0:11])")"' \
        'text: a dot' '[image, image/png, 70 bytes]' "image: image/png $PNG"
}

@test "mcp_http: an image of a result is part of the output of a call of the Responses API" {
    start_mcp
    sed 's/"f"/"fake__picture"/g' "$TESTS/fixtures/openai-responses/call.http" >pictures.http
    start_llm "$PWD/pictures.http" openai-responses/normal
    run_expect 0 chat --yes -m openai-responses:test-model --mcp "fake=$MCP" hello
    request 2 >body
    json_is body '[.input[] | select(.type == "function_call_output")][0].output[] | "\(.type): \(.text // .image_url[0:33])"' \
        'input_text: a dot' '[image, image/png, 70 bytes]' "input_image: data:image/png;base64,$PNG"
}

@test "mcp_http: a model that refuses images of results gets their text" {
    start_mcp
    start_llm --refuse 'image_url=openai/http-400' --call 'fake__picture {}' --call 'fake__picture {}' --reply 'not seen'
    run_expect 0 chat --yes --mcp "fake=$MCP" hello
    stdout_is 'not seen'
    stderr_is 'chat: sent the results of tools again without their images'
    # The first round learns it, the second knows it.
    json_is "$RECORD/2.json" '[.messages[].role] | join(" ")' 'user assistant tool user'
    json_is "$RECORD/3.json" '[.messages[].role] | join(" ")' 'user assistant tool'
    json_is "$RECORD/4.json" '[.messages[].role] | join(" ")' 'user assistant tool assistant tool'
    [[ ! -e $RECORD/5.json ]]
}

@test "mcp_http: calls of a response that failed because of an image are not carried out" {
    local from=$TESTS/fixtures/openai-responses
    start_mcp
    sed 's/"f"/"fake__picture"/g' "$from/call.http" >pictures.http
    { sed -e 's/"f"/"fake__die"/g' -e '/response.completed/d' "$from/call.http"; grep -A1 '^event: response.failed' "$from/failed-image.http"; echo; } \
        >failed.http
    start_llm --refuse "input_image=$PWD/failed.http" "$PWD/pictures.http" openai-responses/normal
    run_expect 0 chat --yes -m openai-responses:test-model --mcp "fake=$MCP" hello
    stderr_is 'chat: sent the results of tools again without their images'
    json_is "$HISTORY" 'select(.tool_calls).tool_calls[].name' fake__picture
}

@test "mcp_http: a tool inherits its standard streams alone, also while connections are open" {
    [[ -d /proc/self/fd ]] || skip 'there is no /proc here'
    put_tool fds 'cat >/dev/null; ls /proc/$$/fd'
    start_mcp
    start_llm --call 'fds {}' --reply finished
    run_expect 0 bash -c 'exec 7</dev/null; exec chat --yes --mcp "fake=$0" -T ./fds hello' "$MCP"
    stdout_is finished
    # A shell has the script open, dash as 10 and bash as 255.
    json_is "$HISTORY" 'select(.role == "tool").content | split("\n") | map(select(. != "10" and . != "255" and . != "")) | join(" ")' '0 1 2'
}
