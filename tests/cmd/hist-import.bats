#!/usr/bin/env bats
#
# hist-import: every format on a file of its own, each message once, whatever happens.

# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    use_history
    FORMATS=$FIXTURES/import
    WANTED=$FORMATS/wanted
}

# database NAME: NAME.db from the statements of NAME.sql.
database() {
    python3 - "$FORMATS/$1.sql" "$1.db" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[2])
db.executescript(open(sys.argv[1]).read())
db.commit()
END
}

# history_is FILE: the same lines.
history_is() {
    same history "$1" "$HISTORY"
}

# again ARGUMENT...: an import that finds nothing new.
again() {
    remember "$HISTORY"
    run_expect 0 hist-import -q "$@"
    stdout_is 0
    stderr_empty
    unchanged "$HISTORY"
}

# bad_lines FILE LINE REASON...: what is said of them.
bad_lines() {
    local file=$1 wanted=()
    shift
    while [[ $# -gt 0 ]]; do
        wanted+=("hist-import: cannot import '$file:$1': $2")
        shift 2
    done
    stderr_is "${wanted[@]}"
}

# contents FILTER LINE...: of the history's lines.
contents() {
    json_is "$HISTORY" "$@"
}

@test "import: Claude Code, with the records of an answer joined" {
    local file=$FORMATS/claude-code/projects/-home-ada-shop/2b1f9a52-6c0e-4a53-9a1c-0d7c4be1f001.jsonl
    run_expect 0 hist-import "$FORMATS/claude-code"
    stdout_is 8
    bad_lines "$file" 11 'not a JSON object' 12 "no 'uuid'"
    grep -v '"session_id":"[^"]*:\(sidechain\|de30ae5d\)"' "$WANTED/claude-code.jsonl" >wanted
    history_is wanted
    contents '"\(.role) \(.content | length) \(.tool_calls // [] | length) \(.images // 0) \(.tool_call_id)"' \
        'user 32 0 0 null' 'assistant 14 2 0 null' 'tool 8 0 0 toolu_01' 'tool 8 0 1 toolu_02' \
        'user 13 0 1 null' 'assistant 14 0 0 null' 'system 49 0 0 null' 'assistant 12 0 0 null'
    again "$FORMATS/claude-code"
    again "$file" "$file"
}

@test "import: subagents of Claude Code are sessions of their own, when they are wanted" {
    run_expect 0 hist-import -q --subagents "$FORMATS/claude-code"
    stdout_is 11
    history_is "$WANTED/claude-code.jsonl"
    again --subagents "$FORMATS/claude-code"
}

@test "import: an answer of Claude Code that grew since" {
    local file=$FORMATS/claude-code/projects/-home-ada-shop/2b1f9a52-6c0e-4a53-9a1c-0d7c4be1f001.jsonl
    head -n 6 "$file" >s.jsonl
    run_expect 0 hist-import s.jsonl
    stdout_is 2
    head -n 8 "$file" >s.jsonl
    run_expect 0 hist-import s.jsonl
    stdout_is 1
    contents '"\(.role):\(.content) \(.tool_calls // [] | map(.id) | join(" "))"' \
        $'user:Why does the test fail?\n"quoted" ' 'assistant:I will run it. ' 'assistant: toolu_01 toolu_02'
    again s.jsonl
}

@test "import: Codex, new and old, a fork, a summary, and what only Codex says" {
    local dir=$FORMATS/codex/sessions/2025/10/02
    run_expect 0 hist-import --subagents "$FORMATS/codex"
    stdout_is 13
    bad_lines "$dir/rollout-2025-10-02T09-00-00-0199a1b2-0000-7000-8000-00000000c0de.jsonl" 17 "no 'type'"
    history_is "$WANTED/codex.jsonl"
    again --subagents "$FORMATS/codex"
    rm "$HISTORY"
    run_expect 0 hist-import -q "$FORMATS/codex"
    stdout_is 12
    grep -v 'asked of a subagent' "$WANTED/codex.jsonl" >wanted
    history_is wanted
}

@test "import: ChatGPT, the branch that is shown, the conversation used last at the end" {
    run_expect 0 hist-import "$FORMATS/chatgpt/conversations.json"
    stdout_is 7
    bad_lines "$FORMATS/chatgpt/conversations.json" 4 'not a JSON object' 3 "no 'mapping'"
    history_is "$WANTED/chatgpt.jsonl"
    again "$FORMATS/chatgpt"
    # A conversation alone, and from a pipe.
    rm "$HISTORY"
    jq -c '.' <<<'{"id":"c1","current_node":"n","create_time":1680000000,"mapping":{"n":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Hi"]}},"parent":null}}}' >one.json
    run_expect 0 hist-import - <one.json
    stdout_is 1
    contents '.session_id, .content, .timestamp' chatgpt:c1 Hi 2023-03-28T10:40:00.000000+00:00
    again one.json
}

@test "import: llm, both generations of its tables" {
    database llm
    database llm-turns
    run_expect 0 hist-import llm.db
    stdout_is 9
    stderr_empty
    history_is "$WANTED/llm.jsonl"
    again llm.db
    rm "$HISTORY"
    run_expect 0 hist-import llm-turns.db
    stdout_is 5
    history_is "$WANTED/llm-turns.jsonl"
    again llm-turns.db llm-turns.db
    run_expect 2 hist-import - <llm.db
    stdout_is 0
    stderr_is "hist-import: cannot import '-': a database must be a file"
    printf 'SQLite format 3\0and no more' >broken.db
    run_expect 2 hist-import broken.db
    stderr_matches "^hist-import: cannot .* 'broken.db': "
}

@test "import: messages as OpenAI and Anthropic take them" {
    cp "$FORMATS"/messages/*.json* .
    touch -d 2024-02-01T12:00:00.5Z openai.json anthropic.json lines.jsonl
    run_expect 0 hist-import openai.json
    stdout_is 5
    bad_lines openai.json 5 "no known 'role'" 6 "no known 'role'" 7 'not a JSON object'
    contents '"\(.timestamp) \(.role):\(.content) \(.images) \(.tool_call_id) \(.tool_calls | tostring)"' \
        '2024-02-01T12:00:00.500000+00:00 system:Be brief null null null' \
        '2024-02-01T12:00:00.500000+00:00 user:What is the weather? 1 null null' \
        '2024-02-01T12:00:00.500000+00:00 assistant: null null [{"id":"call_1","name":"weather","args":{"city":"Paris"}}]' \
        '2024-02-01T12:00:00.500000+00:00 tool:21 degrees null call_1 null' \
        '2024-06-27T15:00:00.000000+00:00 assistant:It is warm. null null null'
    again openai.json
    rm "$HISTORY"
    run_expect 0 hist-import anthropic.json
    stdout_is 6
    contents '"\(.role):\(.content) \(.model) \(.tool_call_id) \(.tool_calls | tostring)"' \
        'system:Be brief null null null' 'user:What is the weather? null null null' \
        'assistant:I ask. claude-opus-4-1 null [{"id":"toolu_1","name":"weather","args":{"city":"Paris"}}]' \
        'tool:21 degrees null toolu_1 null' 'user:And tomorrow? null null null' \
        'assistant:I do not know. claude-opus-4-1 null null'
    again anthropic.json
    rm "$HISTORY"
    run_expect 0 hist-import lines.jsonl
    bad_lines lines.jsonl 3 'not a JSON object'
    contents '"\(.role):\(.content) \(.model)"' 'user:one null' 'assistant:two m'
    # It grows.
    echo '{"role":"user","content":"three"}' >>lines.jsonl
    run_expect 0 hist-import -q lines.jsonl
    stdout_is 1
    contents '.content' one two three
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) -eq 1 ]]
    again lines.jsonl
}

@test "import: messages from a pipe are a session by what they say" {
    run_expect 0 hist-import - <<<'[{"role":"user","content":"one"}]'
    stdout_is 1
    run_expect 0 hist-import - <<<'[{"role":"user","content":"one"}]'
    stdout_is 0
    run_expect 0 hist-import - <<<'[{"role":"user","content":"two"}]'
    stdout_is 1
    contents '.content' one two
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) -eq 2 ]]
}

@test "import: a refusal is what the model said" {
    echo '[{"role":"user","content":"q"},{"role":"assistant","content":null,"refusal":"I cannot"},{"role":"assistant","content":[{"type":"refusal","refusal":"no way"}]},{"role":"assistant","content":"text","refusal":null}]' >a.json
    run_expect 0 hist-import -v a.json
    stdout_is 4
    stderr_is 'a.json: messages, 4 new, 0 known, 0 bad'
    contents '"\(.role):\(.content) \(.finish_reason)"' 'user:q null' 'assistant:I cannot content_filter' \
        'assistant:no way content_filter' 'assistant:text null'
    again a.json
}

# claude TYPE UUID MESSAGE [MORE]: a record of Claude Code.
claude() {
    printf '{"type":"%s","uuid":"%s","sessionId":"s1","timestamp":"2025-09-01T10:00:00Z","message":%s%s}\n' "$1" "$2" "$3" "${4-}"
}

# claude_call UUID MESSAGE CALL OUTPUT: a record of an answer, with the usage of the whole.
claude_call() {
    claude assistant "$1" "{\"id\":\"$2\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"$3\",\"name\":\"f\",\"input\":{}}],\"usage\":{\"input_tokens\":5,\"output_tokens\":$4}}"
}

@test "import: the tokens of an answer of Claude Code count once, whatever parts its records" {
    local result='{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]}'
    {
        claude_call a1 m1 t1 9
        claude user u1 "$result"
        claude_call a2 m1 t2 9
        claude_call a3 m2 t3 4
    } >s.jsonl
    run_expect 0 hist-import s.jsonl
    stdout_is 4
    contents '"\(.role) \(.usage.input_tokens) \(.usage.output_tokens)"' 'assistant 5 9' 'tool null null' \
        'assistant null null' 'assistant 5 4'
    again s.jsonl
    # Records that come with a later import, too; and of more tokens by then what is more.
    cp "$HISTORY" whole
    rm "$HISTORY"
    head -n 2 s.jsonl >t.jsonl
    run_expect 0 hist-import t.jsonl
    stdout_is 2
    run_expect 0 hist-import s.jsonl
    stdout_is 2
    history_is whole
    rm "$HISTORY"
    claude_call a1 m1 t1 1 >t.jsonl
    run_expect 0 hist-import t.jsonl
    { claude_call a2 m1 t2 9; claude_call a3 m1 t3 9; } >>t.jsonl
    run_expect 0 hist-import t.jsonl
    stdout_is 1
    contents '"\(.usage.input_tokens) \(.usage.output_tokens)"' '5 1' 'null 8'
    again t.jsonl
}

@test "import: what Claude Code wrote in the user's name is left out, and nothing else" {
    local n=0 text
    for text in '<local-command-stdout>Set model to opus</local-command-stdout>' '<local-command-stderr>no</local-command-stderr>' \
        '<command-name>/model</command-name>\n            <command-message>model</command-message>\n            <command-args></command-args>' \
        '[Request interrupted by user]' '[Request interrupted by user for tool use]' 'What is <command-name>?' \
        '<command-message>review is running</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>'; do
        n=$((n + 1))
        claude user "u$n" "{\"role\":\"user\",\"content\":\"$text\"}"
        claude user "b$n" "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}"
    done >s.jsonl
    claude user r1 '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[Request interrupted by user]"},{"type":"text","text":"[Request interrupted by user]"}]}' >>s.jsonl
    run_expect 0 hist-import s.jsonl
    stdout_is 5
    contents '"\(.role) \(.content | split("\n")[0])"' 'user What is <command-name>?' 'user What is <command-name>?' \
        'user <command-message>review is running</command-message>' \
        'user <command-message>review is running</command-message>' 'tool [Request interrupted by user]'
    again s.jsonl
}

@test "import: aichat, calls and results, compressed messages, YAML's ways to write text" {
    cp "$FORMATS/aichat/trip.yaml" .
    run_expect 0 hist-import trip.yaml
    stdout_is 9
    bad_lines trip.yaml 44 "'content' is neither a string nor an array"
    contents '"\(.role):\(.content) \(.provider) \(.model) \(.images) \(.tool_call_id) \(.tool_calls | tostring)"' \
        'system:Be brief null null null null null' \
        $'user:Where is "Paris"?\nAnd: Rome? null null null null null' \
        "assistant:In France; it's the capital. openai gpt-4o null null null" \
        $'system:This is a summary of the chat history.\n null null null null null' \
        'user:What is this? null null 1 null null' \
        'assistant:I ask. openai gpt-4o null null [{"id":"call_1","name":"weather","args":{"city":"Paris","days":3}},{"id":"time","name":"time","args":{}}]' \
        'tool:{"degrees":21} null null null call_1 null' \
        'tool:noon null null null time null' \
        'assistant:yes openai gpt-4o null null null'
    again trip.yaml
    printf 'model: m\nmessages:\n- &a {role: user, content: x}\n- *a\n' >alias.yaml
    run_expect 0 hist-import alias.yaml
    stdout_is 0
    bad_lines alias.yaml 4 'an alias'
    printf 'model: m\nmessages: [\n' >torn.yaml
    run_expect 0 hist-import torn.yaml
    stdout_is 0
    stderr_matches "^hist-import: cannot import 'torn.yaml:[0-9]+': not YAML$"
}

@test "import: our own lines come byte for byte" {
    {
        hist_lines good 3
        printf '%s\n' '{"severity": 2, "role":"user","content":"a\/b \u00e9 \ud800","id":"x-1","timestamp":"2024-06-27T17:00:00+02:00","session_id":"other one","a":[1,  2.50]}'
        printf '%s\n' '{"id":"x-2","session_id":"s","timestamp":"t","role":"poet","content":null}'
        # Twice in one history: kept.
        printf '%s\n' '{"id":"x-2","session_id":"s","timestamp":"t","role":"poet","content":"again"}'
    } >other.jsonl
    run_expect 0 hist-import other.jsonl
    stdout_is 6
    stderr_empty
    history_is other.jsonl
    again other.jsonl
    # What is new in it, and only that; bad lines are named.
    {
        cat other.jsonl
        printf 'junk\n\n[]\n{"id":"x-3"}\n'
        hist_line good user 'one more'
        printf '{"id":"torn'
    } >grown.jsonl
    run_expect 0 hist-import grown.jsonl
    stdout_is 1
    bad_lines grown.jsonl 7 'not JSON' 9 'not an object' 10 "no 'session_id'"
    hist_lines good 1 >/dev/null
    [[ $(wc -l <"$HISTORY") -eq 7 ]]
}

# own SESSION ID CONTENT: a line in our own form, all at one time.
own() {
    printf '{"id":"%s","session_id":"%s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"%s"}\n' \
        "$2" "$1" "$3"
}

@test "import: ids of other clients may be the same in every session, twice in one, or empty" {
    local id
    for id in '' 1; do
        rm -f "$HISTORY"
        own A "$id" one >a.jsonl
        own A "$id" two >>a.jsonl
        own B "$id" one >b.jsonl
        own B "${id:+2}" four >>b.jsonl
        run_expect 0 hist-import -v a.jsonl b.jsonl
        stdout_is 4
        stderr_is 'a.jsonl: lines, 2 new, 0 known, 0 bad' 'b.jsonl: lines, 2 new, 0 known, 0 bad'
        cat a.jsonl b.jsonl >both.jsonl
        history_is both.jsonl
        again a.jsonl b.jsonl
        again b.jsonl both.jsonl a.jsonl
        # Spelled otherwise it is the same; another text is another line.
        jq -c 'to_entries | reverse | from_entries' both.jsonl | sed 's/"one"/"\\u006fne"/' >spelled.jsonl
        again spelled.jsonl
        own A "$id" five >c.jsonl
        run_expect 0 hist-import c.jsonl a.jsonl
        stdout_is 1
        cat both.jsonl c.jsonl >wanted
        history_is wanted
    done
}

@test "import: a line comes as often as one file has it" {
    local line more
    line=$(own A '' 'the same')
    more=$(own A 1 'the same')
    printf '%s\n' "$line" "$more" "$line" "$more" "$more" >a.jsonl
    run_expect 0 hist-import a.jsonl a.jsonl
    stdout_is 5
    history_is a.jsonl
    again a.jsonl
    run_expect 0 hist-export --all -f json -o a.json
    again a.json
    again - <<<"$line"
    # It grows, and the other file does not.
    printf '%s\n' "$line" "$line" >>a.jsonl
    run_expect 0 hist-import -v a.json a.jsonl
    stdout_is 2
    stderr_has 'a.json: lines, 0 new, 5 known, 0 bad' 'a.jsonl: lines, 2 new, 5 known, 0 bad'
    history_is a.jsonl
}

@test "import: a message of another program and its line are one" {
    cp "$FORMATS/messages/anthropic.json" .
    touch -d 2024-02-01T12:00:00.5Z anthropic.json
    run_expect 0 hist-import anthropic.json
    stdout_is 6
    cp "$HISTORY" export.jsonl
    again anthropic.json export.jsonl
    # Before either is stored, too; a message of its own beside it is not taken for it.
    own A '' 'the same' >>export.jsonl
    touch -d 2024-02-02 export.jsonl
    rm "$HISTORY"
    run_expect 0 hist-import -v anthropic.json export.jsonl
    stdout_is 7
    stderr_is 'anthropic.json: messages, 6 new, 0 known, 0 bad' 'export.jsonl: lines, 1 new, 6 known, 0 bad'
    history_is export.jsonl
    again export.jsonl anthropic.json
}

@test "import: lines without ids by two at once come once" {
    python3 - >big.jsonl <<'END'
for n in range(30000):
    print('{"id":"","session_id":"s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"text %d %s"}' % (n // 2, "x" * 300))
END
    background hist-import big.jsonl
    run_expect 0 hist-import big.jsonl
    finish 0
    history_is big.jsonl
}

@test "import: a document of our own lines comes byte for byte, and with white space" {
    hist_lines good 3 >other.jsonl
    # shellcheck disable=SC2129
    hist_line talk user 'a "role" and {"messages":[ in it' >>other.jsonl
    hist_line talk assistant '' '' '{"tool_calls":[{"id":"c1","name":"f","args":{"a":[1,2]}}],"x_new":1.50}' >>other.jsonl
    hist_line talk tool $'line\nbreak' '' '{"tool_call_id":"c1"}' >>other.jsonl
    run_expect 0 hist-export --history other.jsonl --all -f json -o other.json
    run_expect 0 hist-import -v other.json
    stdout_is 6
    stderr_is 'other.json: lines, 6 new, 0 known, 0 bad'
    history_is other.jsonl
    again other.json
    printf '\xef\xbb\xbf' >spaced.json
    jq . other.json | sed 's/$/\r/' >>spaced.json
    again spaced.json
    jq '{messages: [.messages[0, 5] | .id += "x"]}' other.json | sed '1,3s/  */ /' >more.json
    run_expect 0 hist-import more.json
    stdout_is 2
    json_is "$HISTORY" 'select(.id | endswith("x")) | .content' 'message 1' $'line\nbreak'
    [[ $(tail -n 1 "$HISTORY") != *null* ]]
    # One that is none spoils no other.
    jq -c '.messages[1] = {"id":"b"} | .messages[2] = 5 | .messages[].id? += "y"' other.json >bad.json
    run_expect 0 hist-import bad.json
    stdout_is 4
    stderr_has "cannot import 'bad.json:2': no 'session_id'" "cannot import 'bad.json:3': not an object"
    printf '{"messages":[]}\n' >empty.json
    again empty.json
}

@test "import: a null that is no addition of an export stays" {
    local field
    for field in tool_calls tool_call_id; do
        printf '{"id":"1","session_id":"s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"assistant","content":"x","%s":[],"model":"m","%s":null}\n' \
            "$field" "$field" >other.jsonl
        hist-export --history other.jsonl --all -f json -o other.json
        rm -f "$HISTORY"
        run_expect 0 hist-import other.json
        stdout_is 1
        history_is other.jsonl
        run_expect 0 hist-export --all -f json
        stdout_is_file other.json
    done
}

@test "import: requests one behind another are a session each" {
    cat >two.jsonl <<'END'
{"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"one"}]}
{"messages":[]}
{"messages":[{"role":"user","content":"two"},{"role":"assistant","content":"answer"}],"model":"m"}
END
    run_expect 0 hist-import two.jsonl
    stdout_is 4
    stderr_empty
    contents '.content' 'Be brief' one two answer
    [[ $(jq -r .session_id "$HISTORY" | uniq | wc -l) == 2 ]] || fail sessions
    again two.jsonl
    # White space may stand anywhere between them.
    jq . two.jsonl >spaced.json
    run_expect 0 hist-import --history spaced.jsonl spaced.json
    stdout_is 4
    json_is spaced.jsonl .content 'Be brief' one two answer
    echo '{"messages":[{"role":"user","content":"three"}]}' >>two.jsonl
    run_expect 0 hist-import two.jsonl
    stdout_is 1
    printf '{"system":"alone","messages":[]}\n' >system.jsonl
    run_expect 0 hist-import system.jsonl
    stdout_is 1
}

@test "import: what was said before a call and what was said with it stay two" {
    cat >a.json <<'END'
{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"text","text":"before"},{"type":"text","text":"with"},{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"},{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}
END
    run_expect 0 hist-import a.json
    stdout_is 5
    contents '"\(.role):\(.content) \(.tool_calls | length)"' 'user:go 0' 'assistant:before 0' 'assistant:with 1' 'tool:r 0' $'user:a\n\nb 0'
    again a.json
}

@test "import: what hist-show prints can be piped in" {
    hist_lines good 4 >other.jsonl
    hist-show --json --history other.jsonl good >shown
    run_expect 0 hist-import - <shown
    stdout_is 4
    history_is other.jsonl
}

@test "import: killed half-way and done again gives the same" {
    python3 - >big.jsonl <<'END'
import json
for n in range(30000):
    print(json.dumps({"type": "user" if n % 2 == 0 else "assistant", "uuid": f"u{n}", "sessionId": "s1",
                      "timestamp": "2025-09-01T10:00:00.000Z",
                      "message": {"id": f"m{n // 4}", "role": "x", "content": f"text {n} " + "x" * 300}}))
END
    run_expect 0 hist-import --history whole.jsonl big.jsonl
    stdout_is 30000
    # In the middle of its third batch.
    : >"$HISTORY"
    run_expect 137 traced -o trace -P "$HISTORY" -e trace=fdatasync -e inject=fdatasync:signal=KILL:when=3 \
        hist-import big.jsonl
    [[ $(wc -l <"$HISTORY") -gt 1000 && $(wc -l <"$HISTORY") -lt 29000 ]]
    run_expect 0 hist-import big.jsonl
    history_is whole.jsonl
    again big.jsonl
}

@test "import: two at once bring everything once" {
    python3 - >big.jsonl <<'END'
for n in range(30000):
    print('{"type":"user","uuid":"u%d","sessionId":"s1","timestamp":"2025-09-01T10:00:00Z","message":{"content":"text %d %s"}}' % (n, n, "x" * 300))
END
    background hist-import big.jsonl
    run_expect 0 hist-import big.jsonl
    finish 0
    [[ $(wc -l <"$HISTORY") -eq 30000 ]]
    [[ $(jq -r .origin "$HISTORY" | sort -u | wc -l) -eq 30000 ]]
}

@test "import: --dry-run stores nothing and lists" {
    cp "$FORMATS/messages/lines.jsonl" .
    run_expect 0 hist-import -q --dry-run lines.jsonl "$FORMATS/chatgpt"
    printf 'chatgpt\t7\t%s\nmessages\t2\tlines.jsonl\n' "$FORMATS/chatgpt/conversations.json" | sort >wanted
    sort "$OUT" | cmp - wanted
    [[ ! -e $HISTORY ]]
    run_expect 0 hist-import -q --dry-run --json "$FORMATS/chatgpt"
    stdout_is_file "$WANTED/chatgpt.jsonl"
    [[ ! -e $HISTORY ]]
}

@test "import: --json prints what is stored" {
    run_expect 0 hist-import -q --json "$FORMATS/chatgpt"
    stdout_is_file "$WANTED/chatgpt.jsonl"
    history_is "$WANTED/chatgpt.jsonl"
    run_expect 0 hist-import -q --json "$FORMATS/chatgpt"
    stdout_empty
}

@test "import: --scan finds what other programs keep, the oldest first" {
    mkdir -p "$HOME/.claude" "$HOME/.config/io.datasette.llm" "$HOME/Library/Application Support/aichat/sessions"
    cp -r "$FORMATS/claude-code/projects" "$HOME/.claude/"
    cp -r "$FORMATS/codex" "$HOME/.codex"
    (cd "$HOME/.config/io.datasette.llm" && database llm && mv llm.db logs.db)
    cp "$FORMATS/aichat/trip.yaml" "$HOME/Library/Application Support/aichat/sessions/"
    echo 'no session' >"$HOME/Library/Application Support/aichat/sessions/other.yaml"
    touch -d 2024-03-02 "$HOME/.config/io.datasette.llm/logs.db"
    run_expect 0 hist-import -q --scan --dry-run
    cut -f 1,2 "$OUT" >found
    run_expect 0 cat found
    stdout_is $'llm\t9' $'codex\t4' $'claude-code\t0' $'claude-code\t8' $'codex\t8' $'codex\t0' $'aichat\t9'
    run_expect 0 hist-import -q --scan
    stdout_is 38
    again --scan
}

@test "import: links in a directory are followed, and lead to no circle" {
    mkdir -p d/e elsewhere/deep
    hist_lines linked 2 >elsewhere/deep/one.jsonl
    hist_lines alone 1 >alone.jsonl
    ln -s ../elsewhere d/link
    ln -s ../../alone.jsonl d/e/alone.jsonl
    ln -s ../../elsewhere d/e/again
    ln -s .. d/e/up
    ln -s ../../../d elsewhere/deep/back
    ln -s nowhere d/gone.jsonl
    ln -s self.jsonl d/self.jsonl
    run_expect 0 hist-import -v d
    stdout_is 3
    [[ $(wc -l <"$ERR") -eq 2 ]] || fail 'each file once' "$(cat "$ERR")"
    again d d
    mkdir -p "$HOME/.claude"
    ln -s "$PWD/d" "$HOME/.claude/projects"
    rm "$HISTORY"
    run_expect 0 hist-import --scan
    stdout_is 3
}

@test "import: a directory that cannot be read keeps no other from being imported" {
    mkdir -p "d/$(printf 'deep/%.0s' {1..40})" d/other
    echo '[{"role":"user","content":"hello"}]' >d/other/one.json
    run_expect 2 hist-import d
    stdout_is 1
    stderr_is "hist-import: cannot read 'd/$(printf 'deep/%.0s' {1..31})deep': File name too long"
}

@test "import: a message over the bound in a document spoils no other" {
    python3 -c '
import json, sys
line = {"id": "1-a", "session_id": "s", "timestamp": "2024-06-27T15:00:00.000000+00:00", "role": "user"}
big, small = ({**line, "id": name, "content": "x" * size} for name, size in (("1-b", 65 << 20), ("1-c", 1)))
for name, messages in ("first", [big, small]), ("second", [small, big]):
    json.dump({"messages": messages}, open(name, "w"), separators=(",", ":"))
'
    for number in 1 2; do
        name=first
        [[ $number == 1 ]] || name=second
        rm -f "$HISTORY"
        run_expect 0 hist-import "$name"
        stdout_is 1
        stderr_is "hist-import: cannot import '$name:$number': longer than 64 MiB"
    done
}

@test "import: a database that is cut short is called that" {
    database llm
    truncate -s 5000 llm.db
    run_expect 2 hist-import llm.db
    stdout_is 0
    stderr_is "hist-import: cannot read 'llm.db': database disk image is malformed"
}

@test "import: --scan goes where the variables say, and finds nothing where nothing is" {
    run_expect 0 hist-import --scan
    stdout_is 0
    stderr_empty
    run_expect 0 hist-import --scan -v
    stderr_is 'hist-import: nothing of another program is where it would be'
    cp -r "$FORMATS/claude-code" c
    cp -r "$FORMATS/codex" x
    mkdir l a s
    (cd l && database llm && mv llm.db logs.db)
    mkdir a/sessions
    cp "$FORMATS/aichat/trip.yaml" a/sessions
    run_expect 0 env CLAUDE_CONFIG_DIR=c CODEX_HOME=x LLM_USER_PATH=l AICHAT_CONFIG_DIR=a hist-import -q --scan
    stdout_is 38
    mv a/sessions/trip.yaml s
    run_expect 0 env AICHAT_SESSIONS_DIR=s AICHAT_CONFIG_DIR=a hist-import -q --scan -n
    stdout_is $'aichat\t9\ts/trip.yaml'
}

@test "import: the format is found out, said on -v, or given" {
    cp "$FORMATS/messages/lines.jsonl" .
    run_expect 0 hist-import -v lines.jsonl
    stderr_is "hist-import: cannot import 'lines.jsonl:3': not a JSON object" \
        'lines.jsonl: messages, 2 new, 0 known, 1 bad'
    echo 'what is this' >odd.jsonl
    run_expect 2 hist-import odd.jsonl
    stdout_is 0
    stderr_is "hist-import: cannot import 'odd.jsonl': its format is none of lines, claude-code, codex, llm, chatgpt, messages, aichat"
    # In a directory there may be anything.
    mkdir d
    cp odd.jsonl d
    run_expect 0 hist-import d
    stdout_is 0
    stderr_empty
    run_expect 0 hist-import -f lines odd.jsonl
    bad_lines odd.jsonl 1 'not JSON'
    run_expect 2 hist-import -f none odd.jsonl
    stdout_empty
    stderr_is "hist-import: unknown format 'none': known are lines, claude-code, codex, llm, chatgpt, messages, aichat (see 'hist-import --help')"
}

@test "import: bad records are named up to a number" {
    seq 1 25 >bad.jsonl
    run_expect 0 hist-import -f claude-code bad.jsonl
    stdout_is 0
    [[ $(wc -l <"$ERR") -eq 11 ]]
    stderr_has "hist-import: cannot import 15 more records of 'bad.jsonl'"
    run_expect 0 hist-import -q -f claude-code bad.jsonl
    stderr_empty
}

@test "import: what is missing or cannot be read is a failure; the rest is imported" {
    run_expect 2 hist-import
    stderr_is "hist-import: a file or directory is expected, or --scan (see 'hist-import --help')"
    hist_lines good 2 >other.jsonl
    run_expect 2 hist-import none.jsonl other.jsonl
    stdout_is 2
    stderr_is "hist-import: cannot read 'none.jsonl': No such file or directory"
    : >empty.jsonl
    run_expect 0 hist-import empty.jsonl
    stdout_is 0
}

@test "import: a full disk is an error" {
    cp "$FORMATS/messages/lines.jsonl" .
    run_expect 2 bash -c 'hist-import -q --json lines.jsonl >/dev/full'
    stderr_has 'cannot write to standard output'
    : >"$HISTORY"
    run_expect 2 traced -o trace -P "$HISTORY" -e trace=write -e inject=write:error=ENOSPC:when=1 \
        hist-import -q lines.jsonl
    stdout_is 0
    stderr_is "hist-import: cannot write '$HISTORY': No space left on device"
    [[ ! -s $HISTORY ]]
}

@test "import: many files are on the disk by one sync, and only then said to be imported" {
    local n
    mkdir many
    for n in $(seq 50); do hist_lines "s$n" 3 >"many/$n.jsonl"; done
    run_expect 0 traced -o trace -e trace=fdatasync,fsync,write hist-import -v many
    stdout_is 150
    [[ $(wc -l <"$HISTORY") -eq 150 ]]
    [[ $(grep -c '^fdatasync' trace) -eq 1 && $(grep -c '^fsync' trace) -le 2 ]] || fail 'synced too often' "$(cat trace)"
    # Nothing is told before: the history's write comes first, its sync second.
    sed -n '/^fdatasync/q; p' trace >before
    [[ $(grep -c '^write' before) -eq 1 ]] || fail 'told before the sync' "$(cat before)"
    stderr_has 'many/7.jsonl: lines, 3 new, 0 known, 0 bad'
    [[ $(wc -l <"$ERR") -eq 50 ]]
    run_expect 0 traced -o trace -e trace=fdatasync hist-import -v many
    stdout_is 0
    [[ $(grep -c 'lines, 0 new, 3 known, 0 bad' "$ERR") -eq 50 && ! -s trace ]]
    # Where it fails nothing was imported, and nothing is said to be.
    : >other.jsonl
    run_expect 2 traced -o trace -P other.jsonl -e trace=fdatasync -e inject=fdatasync:error=EIO \
        hist-import -v --history other.jsonl many
    stdout_is 0
    stderr_has 'many/7.jsonl: lines, 0 new, 0 known, 0 bad' 'cannot write '
    [[ ! -s other.jsonl ]]
    # Killed in it, the lines are whole, and come once.
    run_expect 137 traced -o trace -P other.jsonl -e trace=fdatasync -e inject=fdatasync:signal=KILL:when=1 \
        hist-import --history other.jsonl many
    run_expect 0 hist-import --history other.jsonl many
    same other.jsonl "$HISTORY" other.jsonl
}
