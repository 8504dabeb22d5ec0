#!/usr/bin/env bats
#
# The JSON that scripts read: every line of chat --json, of a history and of hist-sessions --json is what the
# schemas in docs/ say, and these, the man page's table and the code name the same events and members.

# shellcheck disable=SC2016

load ../helper

DOCS=$ROOT/docs

# valid SCHEMA FILE: each of its lines, by our own validator, and its texts by the keywords that this does not check.
valid() {
    "$BIN/tests/tools/check-schema" "$DOCS/$1.schema.json" "$2" >report ||
        fail "$1:" "$(cat report)" "$(visible "$2")" || return 1
    jq -c --slurpfile schema "$DOCS/$1.schema.json" '$schema[0]["$defs"] as $defs
        | ($defs[.type // ""] // $schema[0]).properties as $properties
        | to_entries[] | select(.value | type == "string")
        | (.value | length) as $length | ($properties[.key] | objects) as $at
        | (if $at["$ref"] then $defs[$at["$ref"] | ltrimstr("#/$defs/")] else $at end) as $want
        | select(($want.pattern and (.value | test($want.pattern) | not)) or
            $length < ($want.minLength // 0) or $length > ($want.maxLength // infinite))' "$2" >report ||
        fail 'not JSON' || return 1
    [[ ! -s report ]] || fail "$1: texts that do not match:" "$(cat report)"
}

# events_are TYPE...: of stdout, in that order, runs of text as one; each valid, none with a member that the
# schema does not tell of.
events_are() {
    valid events "$OUT" || return 1
    jq -c --slurpfile schema "$DOCS/events.schema.json" \
        'keys - ($schema[0]["$defs"][.type].properties | keys) | select(. != [])' "$OUT" >unknown
    if [[ -s unknown ]]; then
        fail "members that docs/events.schema.json lacks: $(cat unknown)" || return 1
    fi
    jq -r .type "$OUT" | uniq | tr '\n' ' ' >types
    [[ $(<types) == "$* " ]] || fail "events: wanted: $*" "events: got: $(<types)"
}

# ---- events

@test "events: an answer" {
    use_echo
    use_history
    run_expect 0 chat --json 'hello there'
    events_are session_id text usage 'done'
    run_expect 0 chat --json --no-store 'hello there'
    events_are session_id text usage 'done'
    run_expect 0 chat --json --no-stream -s 'a:name' hello
    events_are session_id text usage 'done'
    run_expect 0 chat --json --regenerate
    events_are session_id text usage 'done'
    run_expect 0 chat --json --edit other
    events_are session_id text usage 'done'
    hist-show --json last >messages
    run_expect 0 chat --json --messages messages other
    events_are session_id text usage 'done'
    printf 'caf\xe9 \1 "\\ \x1b[31m\n' | run_expect 0 chat --json
    events_are session_id text usage 'done'
}

@test "events: an answer without usage, one that is empty, one that is long" {
    start_llm openai/normal openai/nothing openai/empty-answer openai/many-deltas
    run_expect 0 chat --json --no-store hello
    events_are session_id text 'done'
    run_expect 4 chat --json --no-store --retries 0 hello
    events_are session_id error
    run_expect 0 chat --json --no-store hello
    events_are session_id notice 'done'
    stderr_is 'chat: the answer is empty'
    run_expect 0 chat --json --no-store hello
    events_are session_id text 'done'
}

@test "events: errors, before the session, before the answer and in it" {
    use_echo
    run_expect 2 chat --json --no-such-option
    events_are error
    run_expect 2 chat --json
    events_are error
    run_expect 2 chat --json -p none-such hello
    events_are error
    run_expect 2 chat --json --schema none-such hello
    events_are error
    for status in 400 401 429 500; do
        case $status in 400) code=1 ;; 401) code=3 ;; *) code=5 ;; esac
        run_expect $code chat --json --no-store -o status=$status hello
        events_are session_id error
    done
    run_expect 7 chat --json --no-store -o cut=4 'hello there'
    events_are session_id text error
    echo '{"type":"object"}' >s.json
    run_expect 1 chat --json --no-store --schema s.json hello
    events_are session_id text usage error
}

@test "events: a refusal, the length limit, a tool that nobody gave" {
    start_llm openai/refusal openai/length openai/calls
    run_expect 6 chat --json --no-store hello
    events_are session_id text error
    run_expect 7 chat --json --no-store hello
    events_are session_id text error
    run_expect 9 chat --json --no-store hello
    grep -v '"tool_' "$OUT" >without
    mv without "$OUT"
    events_are session_id text error
}

@test "events: an answer that could not be stored" {
    use_echo
    run_expect 8 chat --json --history /proc/absent/h.jsonl hello
    events_are session_id text usage 'done' error
}

@test "events: a server that is busy" {
    start_llm openai/http-429-ms --reply yes
    run_expect 0 chat --json --no-store hello
    events_are session_id notice text usage 'done'
}

@test "events: no server" {
    run_expect 4 chat --json --no-store --retries 0 -m openai:m --base-url "http://127.0.0.1:$(unused_port)/v1" hello
    events_are session_id error
}

@test "events: a signal" {
    start_llm openai/slow
    use_history
    background chat --json hello
    wait_for grep -q '"text"' "$OUT.bg"
    kill -INT "$BG"
    finish 130
    events_are session_id text error
    stdout_json 'select(.type == "error") | .code, .retryable' 130 false
    # What was told is what was stored.
    [[ $(jq -j 'select(.type == "text").text' "$OUT") == "$(jq -j 'select(.role == "assistant").content' "$HISTORY")" ]]
}

@test "events: citations" {
    start_llm anthropic/citations
    unset CHAT_MODEL OPENAI_BASE_URL
    export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=k
    run_expect 0 chat --json --no-store -p anthropic -m m hello
    events_are session_id text citation text usage 'done'
}

@test "events: citations are stored, and the pages are a hint" {
    use_history
    printf '%s\n' '# cited' '' \
        'data: {"choices":[{"index":0,"delta":{"content":"It rains.","annotations":[{"type":"url_citation","url_citation":{"url":"https:\/\/example.org/a","title":"A"}}]}}]}' '' \
        'data: {"choices":[{"index":0,"delta":{"annotations":[{"type":"file_citation","file_id":"f"},{"type":"url_citation","url":"https://example.org/b"},{"type":"url_citation","url":"https://example.org/b"}]},"finish_reason":"stop"}]}' '' >cited.http
    start_llm ./cited.http ./cited.http
    run_expect 0 chat -v hello
    stdout_is 'It rains.'
    grep '^chat: ' "$ERR" >hints
    is 'hints' hints 'chat: source: https://example.org/a' 'chat: source: https://example.org/b'
    tail -n 1 history.jsonl >line
    json_is line '.citations | tojson' '[{"type":"url_citation","url_citation":{"url":"https://example.org/a","title":"A"}},{"type":"file_citation","file_id":"f"},{"type":"url_citation","url":"https://example.org/b"},{"type":"url_citation","url":"https://example.org/b"}]'
    valid history-line history.jsonl
    run_expect 0 chat again
    stderr_empty
    request 2 >body
    json_is body '.messages[1] | tojson' '{"role":"assistant","content":"It rains."}'
}

@test "events: models" {
    start_llm --models a,b:c --reply x
    run_expect 0 chat --json --models
    events_are model
    run_expect 4 chat --json --models --base-url "http://127.0.0.1:$(unused_port)/v1"
    events_are error
}

# ---- the schema, the code and the man page

@test "events: the schema has every event that the code has" {
    grep -oE '(begin_event\(&b|add_event\(ev), "[a-z_]+"' "$ROOT/lib/chat/events.c" | grep -oE '"[a-z_]+"$' | tr -d '"' | sort -u >code
    [[ $(wc -l <code) -ge 8 ]]
    jq -r '.anyOf[]["$ref"] | sub(".*/"; "")' "$DOCS/events.schema.json" | sort >schema
    comm -23 code schema >missing
    if [[ -s missing ]]; then fail "docs/events.schema.json lacks: $(tr '\n' ' ' <missing)"; fi
    # And each is told apart by its type.
    jq -r '."$defs" | to_entries[] | select(.key != "id") | select(.value.properties.type.const != .key) | .key' \
        "$DOCS/events.schema.json" >wrong
    empty 'types that are not their names' wrong
}

@test "events: the man page's list has the events and members of the schema" {
    # A line "EVENT MEMBER" for each member that the text below an event's tag names.
    awk '/^\.Ss/ { on = $2 == "Events" } !on { next }
        /^\.El/ { on = 0 }
        $1 == ".It" { event = $3; print $2, event >"tags" }
        $1 == ".Va" { for (i = 2; i <= NF; i++) if ($i ~ /^[a-z_]+$/) print event, $i }' "$ROOT/man/chat.1" | sort >page
    jq -r '."$defs" | to_entries[] | select(.key != "id") | .key as $event | .value.properties | keys[] |
        select(. != "type") | "\($event) \(.)"' "$DOCS/events.schema.json" | sort >schema
    [[ $(wc -l <schema) -ge 24 ]]
    same 'members' schema page
    jq -r '."$defs" | keys[] | select(. != "id") | "Cm \(.)"' "$DOCS/events.schema.json" | sort >wanted
    sort tags >got
    same 'events' wanted got
}

@test "events: chathist.5 has the fields of the schema of a line, with their types" {
    # The list of them begins below the heading of the format.
    awk '/^\.Ss/ { on = $2 == "Format" } !on { next }
        /^\.El/ { on = 0 }
        $1 == ".It" { sub(/^\.It /, ""); print }' "$ROOT/man/chathist.5" >page
    jq -r '."$defs" as $defs |
        def name:
            if ."$ref" then $defs[."$ref" | sub(".*/"; "")] | name
            elif .const == true then "Cm true"
            elif .enum then "string"
            elif .type == "array" then "\(.items.type)s"
            elif .type == "integer" then "number"
            else .type end;
        .properties | to_entries[] | "Va \(.key) Pq \(.value | name)"' "$DOCS/history-line.schema.json" >wanted
    same 'fields' wanted page
}

# ---- lines and sessions

@test "events: the lines of a history" {
    use_history
    use_echo
    run_expect 0 chat -S 'Be brief' hello
    run_expect 0 chat --regenerate
    run_expect 0 chat --edit other
    run_expect 7 chat -o cut=3 hello
    echo text >a.txt
    run_expect 0 chat -f a.txt hello
    hist-append -s s --files a.txt 'more' >ids
    hist-append -s s --json >ids <<'END'
{"role":"assistant","content":"","tool_calls":[{"id":"a","name":"get","args":{}},{"id":"b","name":"get","args":"{"}],"severity":2}
{"role":"tool","content":"x","tool_call_id":"a","timestamp":"2024-06-27T15:00:00Z"}
{"role":"assistant","content":"y","files_modified":["a"],"edit_results":[{"ok":true}]}
END
    hist-new --detached --reset s >ids
    start_llm anthropic/thinking-calls
    unset CHAT_MODEL OPENAI_BASE_URL CHAT_PROVIDER
    export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=k
    run_expect 9 chat -p anthropic -m m hello
    [[ $(wc -l <"$HISTORY") -ge 16 ]]
    valid history-line "$HISTORY"
    # Every optional field that is written today occurs.
    jq -r 'keys[]' "$HISTORY" | sort -u >got
    for field in files files_modified edit_results tool_calls tool_call_id reply_to replaces reset thinking \
        model provider usage finish_reason; do
        grep -qxF $field got || fail "no line with $field"
    done
    hist-show --json --raw s >"$OUT"
    valid history-line "$OUT"
    run_expect 0 hist-sessions --json
    valid session "$OUT"
    jq -c 'keys - ["session_id", "timestamp", "message_count", "preview", "first_role",
        "created_at", "last_accessed"]' "$OUT" | uniq >unknown
    is 'members that docs/session.schema.json lacks' unknown '[]'
}

@test "events: the validator of these tests can fail" {
    echo '{"type":"other"}' >line
    run_expect 1 "$BIN/tests/tools/check-schema" "$DOCS/events.schema.json" line
    run_expect 1 "$BIN/tests/tools/check-schema" "$DOCS/events.schema.json" /dev/null
    echo '{"type":"session_id","session_id":"a b"}' >line
    run_expect 0 "$BIN/tests/tools/check-schema" "$DOCS/events.schema.json" line
    run_expect 1 valid events line
    echo '{"type":"text","text":"a"}' >line
    run_expect 0 valid events line
}
