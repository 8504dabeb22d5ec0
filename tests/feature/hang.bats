#!/usr/bin/env bats
#
# Nothing hangs: each way in which a server, a proxy or a network can misbehave ends chat, with its exit code and
# one line that says why. A row is a misbehaviour. What wire.bats asks of fixtures is not repeated here.

# shellcheck disable=SC2016,SC2034

load ../helper
load ../wire

# row STATUS REGEX [OPTION]... <FIXTURE: what chat makes of a server that sends it, with short time-outs.
row() {
    local want=$1 regex=$2
    shift 2
    cat >row.http
    # Where no time-out is wanted a slow machine has time.
    [[ $regex == *time-out* ]] || set -- --connect-timeout 20s --idle-timeout 20s "$@"
    start_llm ./row.http || return 1
    took_less 40000 run_expect "$want" chat --retries 0 --connect-timeout 1s --idle-timeout 1s -N "$@" hello || return 1
    said "$regex"
}

# said REGEX: nothing on stderr but one line that matches, after the program's name.
said() {
    if [[ -z $1 ]]; then
        stderr_empty
    else
        one_line_of_stderr && stderr_matches "^chat: $1\$"
    fi
}

NONE="no answer from '127.0.0.1:[0-9]+': "
CUT='answer is incomplete: '

# ---- silence and trickles

@test "hang: a head that comes byte by byte, line by line, or not to its end" {
    row 4 "${NONE}nothing came within 1 s \\(idle time-out\\)" <<'END'
raw
eol: crlf
chunk: 1
delay: 150ms

HTTP/1.1 200 OK
Content-Type: text/event-stream
END
    row 4 "${NONE}nothing came within 1 s \\(idle time-out\\)" <<'END'
raw
eol: crlf
mark: |
repeat: forever
delay: 150ms

HTTP/1.1 200 OK
|X-More: and more
END
    row 4 "${NONE}nothing came within 1 s \\(idle time-out\\)" <<'END'
raw
eol: crlf
end: stall

HTTP/1.1 200 OK
Content-Type: text/event-stream
END
}

@test "hang: interim answers without end, slowly and fast" {
    row 4 "${NONE}nothing came within 1 s \\(idle time-out\\)" <<'END'
raw
eol: crlf
repeat: forever
delay: 100ms

HTTP/1.1 102 Processing

END
    row 4 "${NONE}its headers are longer than 256 KiB" --idle-timeout 30s <<'END'
raw
eol: crlf
repeat: forever

HTTP/1.1 103 Early Hints
Link: </style.css>; rel=preload; as=style

END
}

@test "hang: header lines without end, and one line without end" {
    row 4 "${NONE}.*" <<'END'
raw
eol: crlf
mark: |
repeat: forever
fill: @ 4000 more

HTTP/1.1 200 OK
|X-More: @
END
    row 4 "${NONE}a line of its headers is too long" <<'END'
raw
eol: crlf
chomp
mark: |
repeat: forever
fill: @ 4000 more

HTTP/1.1 200 OK
X-More: |@
END
}

@test "hang: silence behind the head of an answer and of an error" {
    row 4 "${NONE}nothing came within 1 s \\(idle time-out\\)" <<'END'
raw
eol: crlf
end: stall

HTTP/1.1 200 OK
Content-Type: text/event-stream

END
    row 5 'HTTP 500: no message' --idle-timeout 1s <<'END'
raw
eol: crlf
end: stall

HTTP/1.1 500 No
Content-Type: application/json

END
}

@test "hang: bytes that bring no part of an answer do so for 12 times the idle time-out" {
    use_history
    printf '%s\n' 'mark: |' 'repeat: forever' 'delay: 50ms' '' '|: still there' '' >comments.http
    printf '%s\n' 'mark: |' 'repeat: forever' 'delay: 50ms' '' 'data: {"choices":[{"delta":{"content":"a"}}]}' '' \
        '|data: {"choices":[{"delta":{"content":""}}]}' '' >empty.http
    start_llm ./comments.http
    run_expect 7 timeout 30 chat --idle-timeout 0.2s -s s1 hello
    stderr_has 'no part of the answer came within 2400 ms (idle time-out)'
    start_llm ./empty.http
    run_expect 7 timeout 30 chat --idle-timeout 0.2s -s s2 hello
    stdout_is a
    stderr_has 'no part of the answer came within 2400 ms (idle time-out)'
    json_is history.jsonl 'select(.session_id == "s2" and .role == "assistant") | .finish_reason' error
    # Without that limit it lasts.
    run_expect 124 timeout 4 chat --idle-timeout 0 -s s3 hello
}

# A body that goes on says for a while that the server is alive; a signal ends it, such as that of timeout(1).
@test "hang: comments, empty events, blanks and bytes without end last until a signal" {
    use_history
    printf '%s\n' 'mark: |' 'repeat: forever' 'delay: 50ms' '' '|: still there' '' >comments.http
    printf '%s\n' 'mark: |' 'repeat: forever' 'delay: 50ms' '' '|data: {}' '' >events.http
    printf '%s\n' 'mark: |' 'repeat: forever' 'delay: 50ms' chomp '' 'data: "|x' >bytes.http
    printf '%s\n' 'mark: |' 'repeat: forever' 'delay: 50ms' 'header: Content-Type: application/json' 'transfer: chunked' \
        '' '{|' >blanks.http
    local -A pids
    for name in comments events bytes blanks; do
        start_llm ./$name.http
        OUT=$name.out ERR=$name.err background chat --idle-timeout 4s -s $name hello
        pids[$name]=$BG
        wait_for test -e "$RECORD/1.json"
    done
    # Longer than the limit of the silence.
    sleep 5
    for name in "${!pids[@]}"; do
        OUT=$name.out ERR=$name.err BG=${pids[$name]}
        kill -TERM "$BG"
        finish 143
        stdout_empty
        stderr_empty
        json_is history.jsonl "select(.session_id == \"$name\") | [.role, .content, .finish_reason] | tojson" \
            '["user","hello",null]' '["assistant","","interrupted"]'
    done
    run_expect 143 bash -c 'chat --idle-timeout 20s hello & sleep 1; kill $!; wait $!'
}

# ---- too much

@test "hang: one line, one event, one JSON value without end are bounded" {
    row 7 "${CUT}an event of the stream is longer than 64 MiB" <<'END'
chomp
mark: |
repeat: forever
fill: @ 100000 x

data: |@
END
    row 7 "${CUT}it is longer than [0-9]+ MiB" <<'END'
header: Content-Type: application/json
transfer: chunked
chomp
mark: |
repeat: forever
fill: @ 100000 x

{"choices":"|@
END
    row 5 "the server's answer is neither an event stream nor JSON: 'junk.*" <<'END'
header: Content-Type: text/plain
transfer: chunked
mark: |
repeat: forever
fill: @ 1000 junk

|@
END
}

# ---- ends

@test "hang: closed or reset at once, in the head, in the body" {
    row 4 "${NONE}the connection was closed" <<'END'
raw

END
    row 4 "${NONE}.*" <<'END'
raw
chomp

HTTP/1.1 2
END
    row 4 "${NONE}.*reset.*" <<'END'
raw
end: reset

END
    row 4 "${NONE}.*" <<'END'
raw
eol: crlf
end: reset

HTTP/1.1 200 OK
Content-Type: text/event-stream
END
    row 7 "${CUT}.*" <<'END'
end: reset

data: {"choices":[{"delta":{"content":"so far"}}]}

END
    stdout_is 'so far'
}

@test "hang: the length that was announced is wrong" {
    row 7 "${CUT}.*" <<'END'
raw
eol: crlf

HTTP/1.1 200 OK
Content-Type: application/json
Content-Length: 999

{"choices":[{"message":{"content":"whole"}}]}
END
    row 5 "the server's answer is .*" <<'END'
raw
eol: crlf

HTTP/1.1 200 OK
Content-Type: application/json
Content-Length: 20

{"choices":[{"message":{"content":"whole"}}]}
END
    row 4 "${NONE}.*" <<'END'
raw
eol: crlf

HTTP/1.1 200 OK
Content-Type: application/json
Content-Length: -1

{"choices":[{"message":{"content":"whole"}}]}
END
    row 0 '' <<'END'
raw
eol: crlf

HTTP/1.1 200 OK
Content-Type: application/json
Content-Length: 45

{"choices":[{"message":{"content":"whole"}}]}HTTP/1.1 500 No
Content-Length: 0

END
    stdout_is whole
}

@test "hang: chunk sizes that are none" {
    for size in ZZ -5 '' ffffffffffffffffffff '5 5' 0x5; do
        # shellcheck disable=SC2312
        row 7 "${CUT}.*" < <(printf '%s\n' raw 'eol: crlf' '' 'HTTP/1.1 200 OK' 'Content-Type: text/event-stream' \
            'Transfer-Encoding: chunked' '' "$size" 'data: x' '')
    done
    # The data of a chunk is longer than its size.
    row 7 "${CUT}.*" <<'END'
raw
eol: crlf

HTTP/1.1 200 OK
Content-Type: text/event-stream
Transfer-Encoding: chunked

5
data: and more
0

END
}

# ---- what is no answer

@test "hang: another protocol, an older one, a head that is none" {
    row 4 "${NONE}.*" <<'END'
raw

SSH-2.0-OpenSSH_9.2
END
    row 4 "${NONE}.*" <<'END'
raw

<html>just text, as in HTTP/0.9</html>
END
    row 4 "${NONE}.*" <<'END'
raw
escape: %

%00%01%02%FF%16%03%01
END
    row 4 "${NONE}.*" <<'END'
raw
eol: crlf

HTTP/9.9 200 OK

END
    row 4 "${NONE}.*" <<'END'
raw
eol: crlf
escape: %

HTTP/1.1 200 OK
X-Nul: a%00b

END
}

@test "hang: an answer that is empty, or has no body" {
    for status in 200 202 204 205; do
        row 5 "the server's answer is empty" --idle-timeout 3s < <(printf '%s\n' raw 'eol: crlf' '' "HTTP/1.1 $status X" \
            'Content-Length: 0' '')
    done
    row 5 "the server's answer is empty" <<'END'
raw
eol: crlf

HTTP/1.1 204 No Content

{"choices":[{"message":{"content":"a body that must not be"}}]}
END
    stdout_empty
    row 4 "${NONE}.*" <<'END'
raw
eol: crlf

HTTP/1.1 101 Switching Protocols
Upgrade: websocket
Connection: Upgrade

END
    row 1 'HTTP 304: redirect is not followed' <<'END'
raw
eol: crlf

HTTP/1.1 304 Not Modified

END
}

@test "hang: compressed though nobody asked for it, cut in the middle, and garbage that says it is" {
    printf '{"choices":[{"message":{"content":"whole"}}]}' | gzip -n >body.gz
    # packed BYTES: the answer, of whose whole length only so much is sent.
    packed() {
        printf '%s\n' raw "close-after: $1" '' && printf '%s\r\n' 'HTTP/1.1 200 OK' 'Content-Type: application/json' \
            'Content-Encoding: gzip' 'Connection: close' '' && cat body.gz
    }
    row 0 '' < <(packed 999)
    stdout_is whole
    row 5 "the server's answer is not JSON: '\\{\"choices\":.*" < <(packed 120)
    stdout_empty
    for encoding in gzip deflate compress; do
        row 7 "${CUT}it cannot be decompressed" <<END
header: Content-Type: text/event-stream
header: Content-Encoding: $encoding
transfer: length

not gzip
END
    done
}

# ---- redirects

@test "hang: redirects are not followed: to itself, to another host, to another protocol; no key travels" {
    start_llm --reply stolen
    other=$LLM_PORT thief=$RECORD
    local cases=() status to
    for status in 301 302 303 307 308; do
        for to in 'http://127.0.0.1:${PORT}/v1/chat/completions' "http://127.0.0.1:$other/v1" file:///etc/passwd /loop; do
            cases+=("./$status-${#cases[@]}.http")
            printf '%s\n' "status: $status" "header: Location: $to" '' >"${cases[-1]}"
        done
    done
    start_llm "${cases[@]}"
    for to in "${cases[@]}"; do
        took_less 8000 run_expect 1 chat -N hello
        stdout_empty
        said "HTTP ${to:2:3}: redirect (to '127.0.0.1:[0-9]+' )?is not followed"
    done
    requests_are 20
    RECORD=$thief
    requests_are 0
    printf '%s\n' 'status: 302' 'escape: %' $'header: Location: http://\x1b[31mred.test/' '' >redirect.http
    start_llm ./redirect.http
    run_expect 1 chat -N hello
    one_line_of_stderr
}

# ---- TLS and proxies

# certificate FILE NAME: a key, and a certificate for that name that it has signed itself, in one file.
certificate() {
    need openssl
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test \
        -addext "subjectAltName=$2" -keyout key.pem -out "$1" 2>openssl.log || fail "openssl: $(cat openssl.log)" || return 1
    cat key.pem >>"$1"
}

# relay MODE [CERTIFICATE]: a fake-relay before the server of start_llm. Sets RELAY, its port; what it says is in relay.log.
relay() {
    rm -f relay.port
    "$TESTS/tools/fake-relay" "$1" "$LLM_PORT" "${@:2}" >relay.port 2>relay.log 3>&- 4>&- &
    BACKGROUND+=("$!")
    wait_for test -s relay.port
    RELAY=$(cat relay.port)
}

# fails_at URL REGEX: exit 4, and why. Where no time-out is wanted a slow machine has time.
fails_at() {
    local within=20s
    [[ $2 != *time-out* ]] || within=1s
    took_less 40000 run_expect 4 chat --retries 0 --connect-timeout $within --idle-timeout 1s -N --base-url "$1" hello || return 1
    stdout_empty && said "$2"
}

@test "hang: TLS: a certificate that nobody knows, one for another name, one that is trusted by the environment" {
    certificate ours.pem IP:127.0.0.1
    certificate other.pem DNS:other.test
    start_llm --reply hi
    relay tls ours.pem
    here=https://127.0.0.1:$RELAY/v1
    fails_at "$here" "cannot connect to '127.0.0.1:$RELAY': .*certificate.*"
    requests_are 0
    mkdir hashed
    cp ours.pem "hashed/$(openssl x509 -hash -noout -in ours.pem).0"
    for trust in SSL_CERT_FILE=ours.pem CURL_CA_BUNDLE=ours.pem SSL_CERT_DIR=hashed; do
        run_expect 0 env "$trust" chat -N --base-url "$here" hello
        stdout_is hi
    done
    SSL_CERT_FILE=ours.pem run_expect 0 chat --models --base-url "$here"
    stdout_is openai:test-model
    # As curl does it: the first of them counts.
    CURL_CA_BUNDLE=other.pem SSL_CERT_FILE=ours.pem fails_at "$here" '.*certificate.*'
    CURL_CA_BUNDLE=none.pem fails_at "$here" "cannot connect to '127.0.0.1:$RELAY': .*none.pem.*"
    relay tls other.pem
    SSL_CERT_FILE=other.pem fails_at "https://127.0.0.1:$RELAY/v1" "cannot connect to '127.0.0.1:$RELAY': .*(name|match).*"
}

@test "hang: TLS: plain HTTP to a server that speaks it, it to a plain server, to a silent one, to one that hangs up" {
    certificate ours.pem IP:127.0.0.1
    start_llm --reply hi
    relay tls ours.pem
    fails_at "http://127.0.0.1:$RELAY/v1" "no answer from '127.0.0.1:$RELAY': .*"
    printf '%s\n' raw '' 'HTTP/1.1 400 No' '' >plain.http
    start_llm ./plain.http
    fails_at "https://127.0.0.1:$LLM_PORT/v1" "cannot connect to '127.0.0.1:$LLM_PORT': no connection within 1 s \\(connect time-out\\)"
    start_llm --accept-silent
    fails_at "https://127.0.0.1:$LLM_PORT/v1" "cannot connect to '127.0.0.1:$LLM_PORT': no connection within 1 s \\(connect time-out\\)"
}

@test "hang: TLS: the time that the sync of the prompt takes is no time of the connection" {
    certificate ours.pem IP:127.0.0.1
    start_llm --reply hi
    relay tls ours.pem
    SSL_CERT_FILE=ours.pem run_expect 0 traced -o trace -e trace=fdatasync -e inject=fdatasync:delay_enter=4000000:when=1 \
        chat --retries 0 --connect-timeout 3s -N --base-url "https://127.0.0.1:$RELAY/v1" hello
    stdout_is hi
    stderr_empty
}

@test "hang: TLS: HTTP/2 is offered, and 1.1 will do" {
    certificate ours.pem IP:127.0.0.1
    start_llm --reply hi
    relay alpn ours.pem
    SSL_CERT_FILE=ours.pem run_expect 4 chat --retries 0 -N --base-url "https://127.0.0.1:$RELAY/v1" hello
    is 'what the client agreed to' relay.log h2
}

@test "hang: HTTP/2 is spoken with a server that can" {
    command -v nghttpd >/dev/null || skip 'nghttpd is missing'
    certificate ours.pem IP:127.0.0.1
    port=$(unused_port)
    mkdir -p root/v1
    echo '{"data":[{"id":"over-http-2"}]}' >root/v1/models
    nghttpd -v -d root --address 127.0.0.1 "$port" key.pem ours.pem >nghttpd.log 2>&1 3>&- 4>&- &
    BACKGROUND+=("$!")
    wait_for bash -c "exec 9<>/dev/tcp/127.0.0.1/$port" 2>/dev/null
    SSL_CERT_FILE=ours.pem OPENAI_API_KEY=test-key-1 run_expect 0 chat --models -p openai --base-url "https://127.0.0.1:$port/v1"
    stdout_is openai:over-http-2
    stderr_empty
    grep -q 'The negotiated protocol: h2' nghttpd.log
    # It takes no POST; its answer is an error like any other.
    SSL_CERT_FILE=ours.pem OPENAI_API_KEY=test-key-1 run_expect 1 chat -N -m m -p openai --base-url "https://127.0.0.1:$port/none" hello
    one_line_of_stderr
    stderr_has 'HTTP 404'
}

@test "hang: proxies by the variables of curl, NO_PROXY among them, and never for this machine itself" {
    start_llm --reply hi
    relay proxy
    plain=http://model.test/v1 secure=https://model.test/v1
    for variable in http_proxy all_proxy ALL_PROXY; do
        run_expect 0 env "$variable=http://127.0.0.1:$RELAY" chat -N --insecure --base-url $plain hello
        stdout_is hi
    done
    is 'what the proxy was asked' relay.log 'POST http://model.test/v1/chat/completions HTTP/1.1' \
        'POST http://model.test/v1/chat/completions HTTP/1.1' 'POST http://model.test/v1/chat/completions HTTP/1.1'
    for variable in https_proxy HTTPS_PROXY ALL_PROXY; do
        relay proxy
        run_expect 4 env "$variable=http://127.0.0.1:$RELAY" chat --retries 0 -N --base-url $secure hello
        said "cannot connect to 'model.test:443' through proxy '127.0.0.1:$RELAY': .*"
        is 'what the proxy was asked' relay.log 'CONNECT model.test:443 HTTP/1.1'
    done
    relay socks
    ALL_PROXY=socks5h://127.0.0.1:$RELAY run_expect 0 chat -N --insecure --base-url $plain hello
    is 'what the proxy was asked' relay.log 'SOCKS model.test:80'
    relay proxy
    export http_proxy=http://127.0.0.1:$RELAY
    for variable in NO_PROXY no_proxy; do
        for value in model.test '*' other.test,.test; do
            run_expect 4 env "$variable=$value" chat --retries 0 -N --insecure --base-url $plain hello
            said "cannot connect to 'model.test:80': unknown host"
        done
    done
    run_expect 0 chat -N hello
    empty 'what the proxy was asked' relay.log
}

@test "hang: TLS through a proxy, to the server's own certificate" {
    certificate ours.pem DNS:model.test
    start_llm --reply hi
    relay tls ours.pem
    LLM_PORT=$RELAY
    relay proxy
    HTTPS_PROXY=http://127.0.0.1:$RELAY SSL_CERT_FILE=ours.pem run_expect 0 chat -N --base-url https://model.test/v1 hello
    stdout_is hi
    # The key is for the server, not for the proxy.
    is 'what the proxy was asked' relay.log 'CONNECT model.test:443 HTTP/1.1'
    HTTPS_PROXY=http://127.0.0.1:$RELAY fails_at https://model.test/v1 \
        "cannot connect to 'model.test:443' through proxy '127.0.0.1:$RELAY': .*certificate.*"
}

@test "hang: a proxy that refuses, is not there, is unknown, is silent: the message names it" {
    start_llm --accept-silent
    relay refuse
    export https_proxy=http://user:secret@127.0.0.1:$RELAY
    through="cannot connect to 'model.test:443' through proxy '127.0.0.1"
    fails_at https://model.test/v1 "$through:$RELAY': .*403.*"
    stderr_lacks secret
    port=$(unused_port)
    https_proxy=http://user:secret@127.0.0.1:$port fails_at https://model.test/v1 "$through:$port': Connection refused"
    https_proxy=http://user:secret@proxy.invalid:80 fails_at https://model.test/v1 '.*proxy.invalid'
    stderr_lacks secret
    https_proxy=http://127.0.0.1:$LLM_PORT fails_at https://model.test/v1 \
        "$through:$LLM_PORT': no connection within 1 s \\(connect time-out\\)"
}

# ---- Ctrl-C

# interrupted PHASE COMMAND...: SIGINT once the command succeeds: 130, and how long it took, in the file took.
interrupted() {
    local phase=$1 start
    shift
    wait_for "$@" || return 1
    sleep 0.2
    start=$(date +%s%3N)
    kill -INT "$BG"
    finish 130 || return 1
    echo "$phase: $(($(date +%s%3N) - start)) ms" >>took
    [[ $(($(date +%s%3N) - start)) -lt 20000 ]] || fail "$(cat took)"
}

@test "hang: Ctrl-C ends each phase: connecting, TLS, waiting, streaming, reading an error, waiting to try again" {
    use_history
    start_llm --no-accept
    background chat -s s 'while connecting'
    interrupted connecting grep -q connecting "$HISTORY"
    start_llm --accept-silent
    background chat -s s --base-url "https://127.0.0.1:$LLM_PORT/v1" 'in TLS'
    interrupted TLS grep -q 'in TLS' "$HISTORY"
    background chat -s s 'while waiting'
    interrupted waiting test -e "$RECORD/1.json"
    start_llm openai/endless
    background chat -s s 'while streaming'
    interrupted streaming grep -q word "$OUT.bg"
    printf '%s\n' 'status: 500' 'end: stall' '' 'an error' >error.http
    start_llm ./error.http
    background chat -s s 'in an error'
    interrupted error test -e "$RECORD/1.end"
    printf '%s\n' 'status: 503' 'header: Retry-After: 60' '' busy >busy.http
    start_llm ./busy.http
    background chat -s s 'before another try'
    interrupted retry test -e "$RECORD/1.end"
    stderr_empty
    json_is history.jsonl 'select(.role == "assistant") | .finish_reason' interrupted interrupted interrupted interrupted \
        interrupted interrupted
}

@test "hang: Ctrl-C while a name is looked up" {
    unshare -rmn true 2>/dev/null || skip 'unshare cannot make name spaces'
    # It waits longer for an answer than the test for the end of chat.
    printf '%s\n' 'nameserver 127.0.0.1' 'options timeout:30' >resolv.conf
    cat >silent.py <<'END'
import os, signal, socket, subprocess, sys, time
nobody = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
nobody.bind(('127.0.0.1', 53))
p = subprocess.Popen(['chat', '--no-store', '-m', 'm', '--insecure', '--base-url', 'http://model.test/v1', 'hello'])
nobody.recv(1)
start = time.time()
p.send_signal(signal.SIGINT)
status = p.wait()
print(status == -signal.SIGINT, time.time() - start < 20)
print(f'{(time.time() - start) * 1000:.0f} ms', file=open('took', 'w'))
END
    export OPENAI_API_KEY=k
    run_expect 0 unshare -rmn sh -c 'ip link set lo up && mount --bind resolv.conf /etc/resolv.conf && exec python3 silent.py'
    stdout_is 'True True'
}
