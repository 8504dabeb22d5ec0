# shellcheck shell=bash
#
# wire: every fixture of a family (tests/fixtures/FAMILY) asked once through chat, held against the exit code and
# the answer that it says itself, or that the test says for it.
#
#   load helper
#   load wire
#   FAMILY=openai MANY=120    # the provider; more fixtures than that are wanted
#   REQUESTS_EACH=3           # how many requests a prompt takes
#   more_expectations() { … } # what the fixtures leave open

# What ran and its output are for the helper's messages.
# shellcheck disable=SC2034

# start_family STEP...: start_llm, and chat configured for the family's provider alone.
start_family() {
    start_llm "$@" || return 1
    if [[ $FAMILY == anthropic ]]; then
        unset OPENAI_BASE_URL OPENAI_API_KEY
        export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=test-key-1 CHAT_MODEL=anthropic:test-model
    elif [[ $FAMILY == openai-responses ]]; then
        export CHAT_MODEL=openai-responses:test-model
    elif [[ $FAMILY == ollama ]]; then
        unset OPENAI_BASE_URL OPENAI_API_KEY
        export OLLAMA_HOST=127.0.0.1:$LLM_PORT CHAT_MODEL=ollama:test-model
    fi
}

# expectations FILTER: those of all fixtures, NAME EXIT ANSWER by tabs, without those that the extended regular
# expression matches, whole, and without those that have no end or an answer too large to write down.
expectations() {
    "$TESTS/tools/fake-llm" --expect "$FIXTURES/$FAMILY"/*.http >"$BATS_TEST_TMPDIR/said"
    more_expectations | sed 's/ /\t/; s/ /\t/' >"$BATS_TEST_TMPDIR/more"
    awk -F'\t' -v OFS='\t' -v skip="^(endless|stall|big-event|many-deltas|$1)\$" '
        FILENAME == ARGV[1] { exit_code[$1] = $2; answer[$1] = $3; next }
        { sub(".*/", "", $1); sub("[.]http$", "", $1) }
        $1 ~ skip { next }
        $1 in answer { $2 = exit_code[$1]; $3 = answer[$1] }
        $3 == "-" { $3 = "\"\"" }
        { print }' "$BATS_TEST_TMPDIR/more" "$BATS_TEST_TMPDIR/said"
}

# ask_all TABLE [ARGUMENT]...: asks each fixture of the table once, in a session of its name, and looks at what came
# of all of them. The arguments are fake-llm's.
ask_all() {
    local table=$1 name
    shift
    readarray -t names < <(cut -f1 "$table")
    [[ ${#names[@]} -gt $MANY ]] || fail "only ${#names[@]} fixtures" || return 1
    use_history
    start_family "$@" "${names[@]/#/$FAMILY\/}"
    mkdir out err code
    for name in "${names[@]}"; do
        timeout 20 chat --retries 0 -s "$name" 'a question' >"out/$name" 2>"err/$name" 3>&- 4>&- && echo 0 >"code/$name" ||
            echo $? >"code/$name"
    done
    RAN="chat -s NAME 'a question'" OUT=odd ERR=/dev/null
    python3 - "$table" >odd <<'END'
import json, re, sys

def read(kind, name):
    with open(f'{kind}/{name}', 'rb') as file:
        return file.read()

for line in open(sys.argv[1]):
    name, code, answer = line.rstrip('\n').split('\t')
    text = json.loads(answer).encode()
    text += b'\n' if text and not text.endswith(b'\n') else b''
    got, out, err = int(read('code', name)), read('out', name), read('err', name)
    if got != int(code):
        print(f'{name}: status: wanted {code}, got {got}: {err!r}')
    if out != text:
        print(f'{name}: stdout: wanted {text!r}, got {out[:999]!r}')
    # Nothing, or one line from chat, without control characters, that says something, and not the key.
    # An answer without text is no failure, but is mentioned.
    if code == '0' and not text and err == b'chat: the answer is empty\n':
        err = b''
    said = err if code == '0' else b'' if re.fullmatch(rb'chat: [^\0-\x1f\x7f]{9,}\n', err) else err or b'nothing'
    if said or b'test-key-1' in err:
        print(f'{name}: stderr: {err!r}')
END
    empty 'what is odd' odd || return 1
    requests_are $((${#names[@]} * ${REQUESTS_EACH:-1}))
}

# One line, from chat, without control characters, that says something, and not the key.
one_line_of_stderr() {
    [[ $(($(wc -l <"$ERR"))) == 1 ]] || fail 'stderr: wanted one line' || return 1
    stderr_matches '^chat: [^[:cntrl:]]{9,}$' || return 1
    stderr_lacks test-key-1
}

# all_stored TABLE: the answers as they came, each after its question, with how it ended.
all_stored() {
    local count
    count=$(($(wc -l <"$1")))
    # A turn without an answer has a line, too: it marks the prompt as one that failed.
    jq -Rc 'split("\t") | [.[0], (.[2] | fromjson)]' "$1" >wanted
    jq -c 'select(.role == "assistant") | [.session_id, .content]' history.jsonl >got
    same 'the stored answers' wanted got || return 1
    jq -sr --arg family "$FAMILY" 'map(select(.role == "user" and .content == "a question")) | length,
        ([group_by(.session_id)[] | select(length == 2) | select(.[0].role != "user"
            or .[1].reply_to != .[0].id or (.[1].model | type) != "string" or .[1].provider != $family
            or (.[1].finish_reason | type) != "string") | .[0].session_id] | unique | .[])' \
        history.jsonl >got
    is 'questions, and sessions with an odd answer' got "$count" || return 1
    if grep -q test-key-1 history.jsonl; then fail 'the key is in the history'; fi
}

# finish_reasons_are NAME REASON...: of the stored answers of these fixtures.
finish_reasons_are() {
    while [[ $# -gt 0 ]]; do
        json_is history.jsonl "select(.session_id == \"$1\" and .role == \"assistant\") | .finish_reason" "$2" || return 1
        shift 2
    done
}

# took_less MS COMMAND...
took_less() {
    local limit=$1 start
    shift
    start=$(date +%s%3N)
    "$@" || return 1
    [[ $(($(date +%s%3N) - start)) -lt $limit ]] || fail "took more than $limit ms"
}
