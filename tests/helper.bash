# shellcheck shell=bash
#
# helper: what every .bats file loads: a private place to run in, commands with the status that they
# must have, asserts on their exact output, the scripted model server, histories, terminals.
#
#   load ../helper
#
#   @test "chat: answers" {
#       start_llm --reply 'Hello there'
#       run_expect 0 chat hello
#       stdout_is 'Hello there'
#       stderr_empty
#       request_messages_are 1 'user:hello'
#   }
#
# Every function here returns 1 when it does not hold and says what it wanted and what it got, so that the
# test ends there. Therefore never call it after `!`, `if`, `&&`, `||`, or on the left of a pipe.
#
# The programs are those in $BIN (build/debug of this repository).

TESTS=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
ROOT=${TESTS%/*}
export FIXTURES=$TESTS/fixtures
BIN=$(cd "${BIN:-$ROOT/build/debug}" 2>/dev/null && pwd || printf '%s' "${BIN:-$ROOT/build/debug}")
export BIN
# shellcheck source=tests/common.bash
source "$TESTS/common.bash"
# release, debug or asan: make says it; without make, the folder of the programs does.
VARIANT=${VARIANT:-${BIN##*/}}

# A test file that defines setup or teardown calls these two in it.
setup() {
    sandbox
}

teardown() {
    sandbox_end
}

# ---- the place

# Nothing of the user's: own HOME, empty working directory $WORK, no variable that the programs read,
# UTF-8, UTC, programs from $BIN first, standard input /dev/null unless redirected. Servers such as nghttpd are
# in sbin, which Debian leaves out of the PATH of a plain user.
sandbox() {
    # One command: bats traces each command of a test, and a loop over all variables took longer than most tests.
    unset "${!CHAT_@}" "${!OPENAI_@}" "${!ANTHROPIC_@}" "${!OLLAMA_@}" "${!LLAMA_@}" "${!OPENROUTER_@}" \
        "${!GROQ_@}" "${!MISTRAL_@}" "${!DEEPSEEK_@}" "${!GEMINI_@}" "${!XDG_@}" {http,https,ftp,all,no}_proxy \
        {HTTP,HTTPS,FTP,ALL,NO}_PROXY "${!CURL_@}" "${!SSL_CERT_@}" "${!GIT_@}" "${!PG@}" "${!CLAUDE_@}" \
        "${!CODEX_@}" LLM_USER_PATH "${!AICHAT_@}" "${!LC_@}" LANG LANGUAGE NO_COLOR "${!CLICOLOR@}" \
        "${!FORCE_COLOR@}" COLUMNS LINES PAGER LESS MANPAGER EDITOR VISUAL TMUX TMUX_PANE STY
    export HOME=$BATS_TEST_TMPDIR/home TMPDIR=$BATS_TEST_TMPDIR/tmp
    if type -P strace >/dev/null; then PATH=$TESTS/tools/path:$PATH; fi
    export LC_ALL=C.UTF-8 TZ=UTC TERM=xterm-256color PATH="$BIN:$PATH:/usr/sbin:/sbin"
    WORK=$BATS_TEST_TMPDIR/work
    OUT=$BATS_TEST_TMPDIR/stdout ERR=$BATS_TEST_TMPDIR/stderr RAN='nothing yet'
    REPORTS=$BATS_TEST_TMPDIR/sanitizer
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99:log_path=$REPORTS"
    UBSAN_OPTIONS="${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}halt_on_error=1:print_stacktrace=1"
    export UBSAN_OPTIONS="$UBSAN_OPTIONS:exitcode=99:log_path=$REPORTS"
    LLM_PIDS=() LLM_LOGS=() BACKGROUND=() LINES_MADE=0
    umask 022
    set +T
    mkdir -p "$HOME" "$TMPDIR" "$WORK"
    cd "$WORK" || return 1
    exec </dev/null
}

# Ends what the test started; fails when any process, also one in the background, left a sanitizer's report.
sandbox_end() {
    local pid log
    for pid in "${LLM_PIDS[@]}" "${BACKGROUND[@]}"; do
        kill "$pid" 2>/dev/null || :
        # strace does not end while the program that it has stopped does not.
        pkill -CONT -P "$pid" || :
        wait "$pid" 2>/dev/null || :
    done
    for log in "${LLM_LOGS[@]}"; do
        if [[ -s $log ]]; then
            echo '--- fake-llm said:'
            cat "$log"
        fi
    done
    no_report
}

# No model at all; nothing is searched for on the loopback ports.
use_nothing() {
    export CHAT_PROVIDER=none
}

# One explicit history for all programs: $HISTORY, FILE or history.jsonl in the working directory.
use_history() {
    HISTORY=${1:-history.jsonl}
    [[ $HISTORY == /* ]] || HISTORY=$PWD/$HISTORY
    export CHAT_HISTORY=$HISTORY
}

# Skips a test that needs Chromium.
need_browser() {
    local name
    for name in ${CHROMIUM:-chromium chromium-headless-shell chromium-browser google-chrome}; do
        command -v "$name" >/dev/null && return
    done
    skip 'no Chromium: mk/deps browser'
}

# ---- commands

# A file with what cannot be seen in it made visible: line ends as $, CR, ESC, NUL.
# shellcheck disable=SC2016,SC1003
visible() {
    local last='s/$/$/'
    [[ -s $1 ]] || return 0
    [[ $(tail -c 1 "$1" | od -An -tx1) == *0a ]] || last='$!s/$/$/; $s/$/(no newline)/'
    tr '\000' '\001' <"$1" | head -c 5000 |
        sed -e $'s/\r/\\\\r/g; s/\033/\\\\e/g; s/\001/\\\\0/g' -e "$last" -e '$a\'
}

# Prints the last command with all that it wrote, and fails.
fail() {
    {
        printf '%s\n' "$@"
        printf -- '--- command: %.2000s\n--- stdout:\n' "$RAN"
        [[ -e $OUT ]] && visible "$OUT"
        printf -- '--- stderr:\n'
        [[ -e $ERR ]] && visible "$ERR"
    } >&2
    return 1
}

# A process that is killed while it looks for leaks leaves one line, which is no report.
no_report() {
    local reports=("$REPORTS"*)
    if [[ -e ${reports[0]} ]] && grep -qv 'Unable to get registers from thread' "${reports[@]}"; then
        fail 'a sanitizer reports:' "$(cat "${reports[0]}")"
    fi
}

# judge STATUS WANTED: is it that, and no crash, whatever was wanted?
judge() {
    no_report || return 1
    case $1 in
    99 | 132 | 134 | 135 | 136 | 139)
        fail "crashed: status $1"
        return ;;
    esac
    if [[ -s $ERR ]] && grep -aqE 'ERROR: (Address|Leak|Memory|Thread)Sanitizer|runtime error: ' "$ERR"; then
        fail 'a sanitizer reports on stderr'
    elif [[ $1 != "$2" ]]; then
        fail "status: wanted $2, got $1"
    fi
}

# run_expect STATUS COMMAND...: runs it, its output in the files $OUT and $ERR; its status must be STATUS.
# Standard input can be redirected or piped in; the command may read the $OUT of the one before. A program that
# hangs is ended after RUN_LIMIT (60) seconds: 124.
run_expect() {
    local want=$1 got=0 new=
    shift
    printf -v RAN '%q ' "$@"
    if declare -F "$1" >/dev/null || [[ $* == *"$OUT"* || $* == *"$ERR"* || -p /dev/stdin || /dev/stdin -ef $OUT ]]; then
        new=.new
    fi
    if ! declare -F "$1" >/dev/null && type -P timeout "$1" >/dev/null; then
        set -- timeout --foreground -k 5 "${RUN_LIMIT:-60}" "$@"
    fi
    "$@" >"$OUT$new" 2>"$ERR$new" 3>&- 4>&- || got=$?
    if [[ -n $new ]]; then
        mv "$OUT.new" "$OUT"
        mv "$ERR.new" "$ERR"
    fi
    judge "$got" "$want"
}

# background COMMAND...: starts a program, its process id in $BG; at most one at a time. Signals reach it: a
# shell without job control starts its background commands with SIGINT and SIGQUIT ignored.
background() {
    printf -v RAN '%q ' "$@"
    # They are there even when it is killed before it has begun.
    : >"$OUT.bg" 2>"$ERR.bg"
    # <&0: bash gives a background command /dev/null unless its standard input is redirected here.
    env --default-signal=INT,QUIT,PIPE "$@" <&0 >"$OUT.bg" 2>"$ERR.bg" 3>&- 4>&- &
    BG=$!
    BACKGROUND+=("$BG")
}

# finish STATUS: waits for it; the asserts are about it from now on.
finish() {
    local got=0
    wait "$BG" || got=$?
    BACKGROUND=()
    mv "$OUT.bg" "$OUT"
    mv "$ERR.bg" "$ERR"
    judge "$got" "$1"
}

# wait_for COMMAND...: until it succeeds, for 30 seconds.
wait_for() {
    local i
    for ((i = 0; i < 600; i++)); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    fail "waited in vain for: $*"
}

# traced ARGUMENT...: strace with these arguments.
traced() {
    strace -qq "$@"
}

# need PROGRAM: skips the test where it is missing; where the tests must be complete it fails.
need() {
    if ! command -v "$1" >/dev/null; then
        [[ -z ${CI:-} ]] || fail "$1 is missing"
        skip "$1 is missing"
    fi
}

# need_strace: skips the test where strace is missing or cannot trace.
need_strace() {
    strace -qq -o /dev/null true 2>/dev/null || skip 'strace cannot trace here'
}

# without_rights COMMAND...: root, too, must ask for permission.
without_rights() {
    if [[ $EUID -eq 0 ]]; then
        setpriv --bounding-set=-dac_override,-dac_read_search "$@"
    else
        "$@"
    fi
}

# alive PID...: do all of these processes exist, and has none of them ended? The first process of a container may
# never reap an orphan that has ended.
alive() {
    local pid stat
    for pid; do
        kill -0 "$pid" 2>/dev/null || return 1
        stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
        [[ ${stat##*) } != Z* ]] || return 1
    done
}

# held: has strace, which writes to the file `trace`, stopped the program by -e inject=CALL:signal=STOP? It goes on
# with SIGCONT. Unlike a delay, that holds the program as long as the test needs.
held() {
    grep -qs 'stopped by SIGSTOP' trace
}

# appends PID: has the process, or one that it started, opened $HISTORY to append to it? It does so before it waits for
# the lock.
appends() {
    local pid fd
    for pid in "$1" $(pgrep -P "$1"); do
        for fd in /proc/"$pid"/fd/*; do
            [[ $fd -ef $HISTORY ]] && grep -qE '^flags:.*[2367][0-7]{3}$' "/proc/$pid/fdinfo/${fd##*/}" && return
        done
    done
    return 1
}

# ---- asserts on $OUT and $ERR of the last command

# is FILE LINE...: these lines, each ended by a newline, and nothing else.
is() {
    local name=$1 file=$2
    shift 2
    printf '%s\n' "$@" >"$BATS_TEST_TMPDIR/wanted"
    same "$name" "$BATS_TEST_TMPDIR/wanted" "$file"
}

# pointer_is FILE ID: the pointer names the session; its second line may be a mark.
pointer_is() {
    head -n 1 "$1" >"$BATS_TEST_TMPDIR/pointer"
    is pointer "$BATS_TEST_TMPDIR/pointer" "$2"
}

# same NAME WANTED GOT: two files.
same() {
    if ! cmp -s "$2" "$3"; then
        fail "$1: wanted:" "$(visible "$2")" "$1: got:" "$(visible "$3")"
    fi
}

# has FILE TEXT: does it occur, as bytes?
has() {
    local LC_ALL=C content
    content=$(tr '\000' '\001' <"$1" && printf .)
    [[ ${content%.} == *"$2"* ]]
}

empty() {
    if [[ ! -e $2 || -s $2 ]]; then fail "$1: wanted nothing, got:" "$(visible "$2")"; fi
}

# stdout_is LINE...: exactly these lines.
stdout_is() {
    is stdout "$OUT" "$@"
}

stderr_is() {
    is stderr "$ERR" "$@"
}

# stdout_bytes_are STRING: exactly these bytes, with the escapes of printf %b; no newline is added.
stdout_bytes_are() {
    printf '%b' "$1" >"$BATS_TEST_TMPDIR/wanted"
    same stdout "$BATS_TEST_TMPDIR/wanted" "$OUT"
}

stdout_is_file() {
    same stdout "$1" "$OUT"
}

stdout_empty() {
    empty stdout "$OUT"
}

stderr_empty() {
    empty stderr "$ERR"
}

# stdout_has TEXT...: each of them occurs; they may span lines.
stdout_has() {
    local text
    for text; do has "$OUT" "$text" || fail "stdout: wanted somewhere: $text" || return 1; done
}

stderr_has() {
    local text
    for text; do has "$ERR" "$text" || fail "stderr: wanted somewhere: $text" || return 1; done
}

stdout_lacks() {
    local text
    for text; do if has "$OUT" "$text"; then fail "stdout: not wanted: $text" || return 1; fi; done
}

stderr_lacks() {
    local text
    for text; do if has "$ERR" "$text"; then fail "stderr: not wanted: $text" || return 1; fi; done
}

# stdout_matches REGEX...: for each there is a line that matches the extended regular expression.
stdout_matches() {
    local regex
    for regex; do grep -aqE -e "$regex" "$OUT" || fail "stdout: no line matches: $regex" || return 1; done
}

stderr_matches() {
    local regex
    for regex; do grep -aqE -e "$regex" "$ERR" || fail "stderr: no line matches: $regex" || return 1; done
}

# progress_and_gone NAME: a line said how far this task is, and the last that is there of it takes it away.
progress_and_gone() {
    stdout_matches $'\r'"$1 ([0-9]+ s|[0-9]+ % of [0-9.]+ ([kM]B|bytes))" || return 1
    [[ $(tail -c 4 "$OUT") == $'\r\e[K' ]] || fail 'it is still there'
}

# stdout_line N TEXT: the N-th line is exactly that.
stdout_line() {
    local got
    got=$(sed -n "$1p" "$OUT" && printf .)
    [[ $got == "$2"$'\n.' ]] || fail "stdout, line $1: wanted: $2"
}

# lines_are N: stdout has this many lines.
lines_are() {
    local got
    got=$(($(wc -l <"$OUT")))
    [[ $got == "$1" ]] || fail "lines: wanted $1, got $got"
}

# stdout_json FILTER LINE...: what jq -r FILTER makes of stdout.
stdout_json() {
    local filter=$1
    shift
    json_is "$OUT" "$filter" "$@"
}

# json_is FILE FILTER LINE...: what jq -r FILTER makes of FILE, a history for example.
json_is() {
    local file=$1 filter=$2
    shift 2
    jq -r "$filter" "$file" >"$BATS_TEST_TMPDIR/filtered" || fail "jq cannot read $file with $filter" || return 1
    is "jq $filter" "$BATS_TEST_TMPDIR/filtered" "$@"
}

# remember FILE, unchanged FILE: its bytes are what they were.
remember() {
    cp "$1" "$BATS_TEST_TMPDIR/remembered.${1//\//%}"
}

unchanged() {
    same "$1" "$BATS_TEST_TMPDIR/remembered.${1//\//%}" "$1"
}

# ---- the scripted model server

# start_llm STEP...: fake-llm with these arguments (`fake-llm --help`; fixtures by name: openai/normal). From then
# on chat is configured for it. Sets LLM_PORT, LLM_PID and RECORD, the directory of recorded requests.
start_llm() {
    local home names=(openai{,-chat,-responses} anthropic openrouter groq mistral deepseek gemini ollama)
    home=$(mktemp -d "$BATS_TEST_TMPDIR/llm.XXXXXX")
    RECORD=$home/record
    # -S: it needs no package, and looking for them takes longer than its own start.
    python3 -S "$TESTS/tools/fake-llm" --record "$RECORD" --port-file "$home/port" "$@" \
        </dev/null >"$home/log" 2>&1 3>&- 4>&- &
    LLM_PID=$!
    LLM_PIDS+=("$LLM_PID")
    LLM_LOGS+=("$home/log")
    RAN="fake-llm $*"
    wait_for llm_ready "$home/port"
    LLM_PORT=$(<"$home/port") || fail 'fake-llm did not start' || return 1
    export OPENAI_BASE_URL=http://127.0.0.1:$LLM_PORT/v1 OPENAI_API_KEY=test-key-1 CHAT_MODEL=openai:test-model
    # After a long conversation chat requests the list of models once a day. It counts as known for each
    # provider, so that the numbers of requests are those of the turns.
    mkdir -p "$HOME/.cache/chathist/models"
    names=("${names[@]/#/$HOME/.cache/chathist/models/}")
    names=("${names[@]/%/@127.0.0.1:$LLM_PORT}")
    touch "${names[@]}" "${names[@]/%/%v1}"
}

# It listens, or it is gone.
llm_ready() {
    [[ -s $1 ]] || ! kill -0 "$LLM_PID" 2>/dev/null
}

# A port of 127.0.0.1 where no process listens.
unused_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# server_moved FILE: the lines of the history are from the server that was started last.
server_moved() {
    sed -i "s/\"server\":\"[^\"]*\"/\"server\":\"127.0.0.1:$LLM_PORT\"/" "$1"
}

# request K: the body of the K-th request.
request() {
    cat "$RECORD/$1.json"
}

# request_header K NAME: the value of a header of the K-th request, an empty line when it was not sent.
request_header() {
    tr -d '\r' <"$RECORD/$1.headers" | awk -v name="$2" '
        BEGIN { name = tolower(name) ":" }
        tolower(substr($0, 1, length(name))) == name { sub(/^[^:]*: */, ""); value = $0 }
        END { print value }'
}

# request_messages K: its messages, a line role:content each; calls as [name arguments].
request_messages() {
    jq -r '.messages[] | "\(.role):\(
            if (.content | type) == "array" then .content | map(.text // "[\(.type)]") | add
            else .content // "" end)\(
            [.tool_calls // [] | .[] | "[\(.function.name) \(.function.arguments)]"] | add // "")"' "$RECORD/$1.json"
}

request_messages_are() {
    local number=$1
    shift
    requested "$number" || return 1
    request_messages "$number" >"$BATS_TEST_TMPDIR/messages"
    is "messages of request $number" "$BATS_TEST_TMPDIR/messages" "$@"
}

# requested K: was there a K-th request?
requested() {
    [[ -e $RECORD/$1.json ]] || fail "there was no request $1"
}

# requests_are N: this many have arrived.
requests_are() {
    local got
    got=$(find "$RECORD" -name '*.json' | wc -l)
    [[ $((got)) == "$1" ]] || fail "requests: wanted $1, got $((got))"
}
