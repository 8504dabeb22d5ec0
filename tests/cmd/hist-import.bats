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

# again ARGUMENT...: an import that finds nothing new. $LEFT_OUT is 1 where it leaves records out.
again() {
    remember "$HISTORY"
    run_expect "${LEFT_OUT:-0}" hist-import -q "$@"
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

# contents FILTER LINE...: of the history's messages.
contents() {
    grep -v '"role":"title"' "$HISTORY" >"$TMPDIR/messages"
    json_is "$TMPDIR/messages" "$@"
}

@test "import: Claude Code, with the records of an answer joined" {
    local file=$FORMATS/claude-code/projects/-home-ada-shop/2b1f9a52-6c0e-4a53-9a1c-0d7c4be1f001.jsonl
    LEFT_OUT=1
    run_expect 1 hist-import "$FORMATS/claude-code"
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
    cp -r "$FORMATS/claude-code" .
    find claude-code -name 'agent-*' -exec touch -d 2025-09-01 {} +
    run_expect 1 hist-import -q --subagents claude-code
    stdout_is 11
    history_is "$WANTED/claude-code.jsonl"
    LEFT_OUT=1 again --subagents claude-code
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

@test "import: the cost that Claude Code wrote until June 2025, once for each answer" {
    record() { # TEXT OUTPUT COST
        jq -cn --arg text "$1" --argjson tokens "$2" --argjson cost "$3" --arg uuid "00000000-0000-4000-8000-00000000000$((++records))" \
            '{parentUuid: null, sessionId: "s", type: "assistant", uuid: $uuid, timestamp: "2025-05-27T09:00:00.000Z", costUSD: $cost,
              message: {id: "msg_1", role: "assistant", model: "claude-opus-4", content: [{type: "text", text: $text}],
                        usage: {input_tokens: 4, cache_read_input_tokens: 6, output_tokens: $tokens}}}'
    }
    record one 1 0.0105 >s.jsonl
    record two 9 0.021 >>s.jsonl
    run_expect 0 hist-import s.jsonl
    contents '.usage | tojson' '{"input_tokens":10,"output_tokens":9,"cache_read_tokens":6,"cost":0.021}'
    run_expect 0 hist-stats --cost --by role
    stdout_line 1 $'total\tUSD\t0.021\t0.021\t0\t1\t19'
}

@test "import: Codex, new and old, a fork, a summary, and what only Codex says" {
    local dir=$FORMATS/codex/sessions/2025/10/02
    run_expect 1 hist-import --subagents "$FORMATS/codex"
    stdout_is 13
    bad_lines "$dir/rollout-2025-10-02T09-00-00-0199a1b2-0000-7000-8000-00000000c0de.jsonl" 17 "no 'type'"
    history_is "$WANTED/codex.jsonl"
    LEFT_OUT=1 again --subagents "$FORMATS/codex"
    rm "$HISTORY"
    run_expect 1 hist-import -q "$FORMATS/codex"
    stdout_is 12
    grep -v 'asked of a subagent' "$WANTED/codex.jsonl" >wanted
    history_is wanted
}

@test "import: ChatGPT, the branch that is shown, the conversation used last at the end" {
    run_expect 1 hist-import "$FORMATS/chatgpt/conversations.json"
    stdout_is 7
    bad_lines "$FORMATS/chatgpt/conversations.json" 4 'not a JSON object' 3 "no 'mapping'"
    history_is "$WANTED/chatgpt.jsonl"
    LEFT_OUT=1 again "$FORMATS/chatgpt"
    # A conversation alone, and from a pipe.
    rm "$HISTORY"
    jq -c '.' <<<'{"id":"c1","current_node":"n","create_time":1680000000,"mapping":{"n":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Hi"]}},"parent":null}}}' >one.json
    run_expect 0 hist-import - <one.json
    stdout_is 1
    contents '.session_id, .content, .timestamp' chatgpt:c1 Hi 2023-03-28T10:40:00.000000+00:00
    again one.json
}

@test "import: a zip archive, as ChatGPT exports it, is to be unzipped" {
    python3 -c 'import zipfile; zipfile.ZipFile("export.zip", "w").writestr("conversations.json", "[]")'
    for format in '' '-f chatgpt'; do
        # shellcheck disable=SC2086
        run_expect 2 hist-import $format export.zip
        stdout_empty
        stderr_is "hist-import: cannot import 'export.zip': it is a zip archive: unzip it and import its conversations.json"
    done
    run_expect 2 hist-import - <export.zip
    stderr_has 'unzip it'
}

@test "import: titles that other programs gave, once each" {
    local id=11111111-2222-4333-8444-555555555555 uuid=aaaaaaaa-2222-4333-8444-555555555555
    printf '%s\n' '{"type":"summary","summary":"of another file","leafUuid":"x"}' \
        "{\"type\":\"summary\",\"summary\":\"A summary\",\"leafUuid\":\"$uuid\"}" \
        "{\"type\":\"user\",\"uuid\":\"$uuid\",\"sessionId\":\"$id\",\"timestamp\":\"2025-01-01T00:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"hello\"}}" >"$id.jsonl"
    run_expect 0 hist-import "$id.jsonl"
    stdout_is 1
    run_expect 0 hist-title "claude-code:$id"
    stdout_is 'A summary'
    again "$id.jsonl"
    # A title that the user gave there later, and one that was given here.
    printf '{"type":"custom-title","customTitle":"My %s","sessionId":"%s"}\n' first "$id" second "$id" >>"$id.jsonl"
    run_expect 0 hist-import "$id.jsonl"
    stdout_is 0
    run_expect 0 hist-title "claude-code:$id"
    stdout_is 'My second'
    run_expect 0 hist-title "claude-code:$id" 'given here'
    again "$id.jsonl"
    run_expect 0 hist-title "claude-code:$id"
    stdout_is 'given here'
    # After a title of the last microsecond of the year 9999 no time is left.
    hist_line "claude-code:$id" title 'the last' 9999-12-31T23:59:59.999999+00:00 >>"$HISTORY"
    printf '{"type":"custom-title","customTitle":"My third","sessionId":"%s"}\n' "$id" >>"$id.jsonl"
    run_expect 0 hist-import "$id.jsonl"
    stdout_is 0
    [[ $(jq -r 'select(.role == "title").content' "$HISTORY" | tail -n 1) == 'My third' ]]
    again "$id.jsonl"
    printf '%s\n' '{"timestamp":"2025-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c-1"}}' \
        '{"timestamp":"2025-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}' \
        '{"timestamp":"2025-01-01T00:00:02Z","type":"event_msg","payload":{"type":"thread_name_updated","thread_id":"c-1","thread_name":"From codex"}}' >rollout.jsonl
    run_expect 0 hist-import rollout.jsonl
    run_expect 0 hist-title codex:c-1
    stdout_is 'From codex'
    again rollout.jsonl
    cp "$FORMATS/aichat/trip.yaml" .
    run_expect 1 hist-import -q trip.yaml
    run_expect 0 hist-search --in title trip
    stdout_has $'\ttitle\ttrip\n'
    LEFT_OUT=1 again trip.yaml
}

@test "import: llm, the older tables" {
    database llm
    run_expect 0 hist-import llm.db
    stdout_is 9
    stderr_empty
    history_is "$WANTED/llm.jsonl"
    again llm.db
    run_expect 2 hist-import - <llm.db
    stdout_empty
    stderr_is "hist-import: cannot import '-': a database must be a file"
    run_expect 2 hist-import -f llm -
    stdout_empty
    stderr_is "hist-import: cannot import '-': a database must be a file"
    printf 'SQLite format 3\0and no more' >broken.db
    run_expect 2 hist-import broken.db
    stderr_matches "^hist-import: cannot .* 'broken.db': "
}

# said FILTER LINE...: role and content of the lines that the filter takes, with images and calls; of the answers of
# the echo model the prompt that they repeat.
said() {
    local filter=$1
    shift
    contents "$filter"' | "\(.role):" + (.content | if startswith("{\n") then "to " + (fromjson.prompt) else . end)
        + (if .images then " +\(.images)" else "" end)
        + (.tool_calls // [] | map(" \(.name) \(.args.n)") | add // "")' "$@"
}

@test "import: llm 0.36, a database that llm wrote: prompts, system prompts, fragments, images, tools" {
    local answer='{"prompt":"Double them","tool_calls":[{"name":"double","arguments":{"n":21}},{"name":"double","arguments":{"n":4}}]}'
    local ids
    database llm-turns
    run_expect 0 hist-import llm-turns.db
    stdout_is 17
    stderr_empty
    said . 'system:Be brief' 'user:What is a pipe?' 'assistant:to What is a pipe?' 'user:And a socket?' \
        'assistant:to And a socket?' 'system:Answer in French.' $'user:A fragment of text.\n\nLook at this +1' \
        $'assistant:to A fragment of text.\n\nLook at this' "user:$answer" \
        'assistant:to Double them double 21 double 4' 'tool:42' 'tool:8' 'assistant:to ' 'user:Thank you' \
        'assistant:to Thank you' 'user:Think' 'assistant:to Think'
    # Results name their calls, and only answers have a model and tokens.
    mapfile -t ids < <(jq -r 'select(.tool_call_id) | .tool_call_id' "$HISTORY")
    contents 'select(.tool_calls) | .tool_calls[].id' "${ids[@]}"
    [[ $(jq -r 'select((.role == "assistant") != (.model == "echo" and .usage.output_tokens > 0)) | .id' "$HISTORY") == '' ]]
    [[ $(jq -r 'select(.role != "title") | .session_id' "$HISTORY" | uniq | wc -l) == 4 ]]
    history_is "$WANTED/llm-turns.jsonl"
    again llm-turns.db llm-turns.db
}

@test "import: llm, a conversation of the older tables that a present version continued" {
    local thread
    database llm-upgraded
    thread=$(python3 -c 'import sqlite3
print(sqlite3.connect("llm-upgraded.db").execute("SELECT thread_id FROM turns").fetchone()[0])')
    run_expect 0 hist-import llm-upgraded.db
    stdout_is 19
    stderr_empty
    said "select(.session_id == \"llm:$thread\")" 'system:Be brief' 'user:What is a pipe?' \
        'assistant:to What is a pipe?' 'user:And a socket?' 'assistant:to And a socket?' 'user:After the upgrade' \
        'assistant:to After the upgrade' 'user:And again' 'assistant:to And again'
    again llm-upgraded.db
}

@test "import: llm, a turn that comes later is added once" {
    database llm-turns
    run_expect 0 hist-import llm-turns.db
    python3 - <<'END'
import sqlite3
db = sqlite3.connect("llm-turns.db")
thread, tip = db.execute("SELECT id, tip_message_hash FROM threads ORDER BY id LIMIT 1").fetchone()
db.execute("INSERT INTO messages (hash, parent_hash, role) VALUES ('p', ?, 'user'), ('a', 'p', 'assistant')", [tip])
db.execute("INSERT INTO parts (message_hash, position, type, text) VALUES ('p', 0, 'text', 'more'), ('a', 0, 'text', 'yes')")
db.execute("INSERT INTO turns (id, thread_id, parent_message_hash, tip_message_hash, model, datetime_utc)"
           " VALUES ('t', ?, 'p', 'a', 'echo', '2030-01-01T00:00:00+00:00')", [thread])
db.commit()
END
    run_expect 0 hist-import llm-turns.db
    stdout_is 2
    stderr_empty
    again llm-turns.db
}

# hostile NAME SQL: NAME.db, made by these statements.
hostile() {
    python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript(sys.argv[2])
db.commit()' "$1.db" "$2"
}

# bounded STATUS ARGUMENT...: an import in 400 MB of memory, which a sanitizer needs for itself, that ends by itself.
bounded() {
    local status=$1 limit='ulimit -v 400000;'
    shift
    [[ $VARIANT != asan ]] || limit=''
    # shellcheck disable=SC2016
    run_expect "$status" bash -c "$limit"' exec hist-import "$@"' import "$@"
}

RESPONSES='CREATE TABLE responses(id TEXT, model TEXT, prompt TEXT, system TEXT, response TEXT, conversation_id TEXT,
    datetime_utc TEXT);'
MESSAGES='CREATE TABLE messages(hash TEXT, parent_hash TEXT, role TEXT);
    CREATE TABLE parts(id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, text TEXT, payload TEXT);
    CREATE TABLE turns(id TEXT, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
        resolved_model TEXT, input_tokens INTEGER, output_tokens INTEGER, datetime_utc TEXT);'

@test "import: llm, tokens of the cache and of reasoning" {
    hostile tokens "$RESPONSES$MESSAGES
        ALTER TABLE responses ADD input_tokens INTEGER;
        ALTER TABLE responses ADD output_tokens INTEGER;
        ALTER TABLE responses ADD token_details TEXT;
        ALTER TABLE turns ADD token_details TEXT;
        INSERT INTO responses VALUES ('r1', 'gpt', 'a', NULL, 'one', 'c', '2025-01-01', 20, 10,
            '{\"prompt_tokens_details\":{\"cached_tokens\":16},\"completion_tokens_details\":{\"reasoning_tokens\":4}}');
        INSERT INTO responses VALUES ('r2', 'claude', 'b', NULL, 'two', 'c', '2025-01-02', 5, 3,
            '{\"cache_read_input_tokens\":7,\"cache_creation_input_tokens\":2}');
        INSERT INTO responses VALUES ('r3', 'm', 'c', NULL, 'three', 'c', '2025-01-03', 1, 2, 'no JSON');
        INSERT INTO messages VALUES ('h', NULL, 'assistant');
        INSERT INTO parts VALUES (1, 'h', 0, 'text', 'four', NULL);
        INSERT INTO turns VALUES ('t', 'th', NULL, 'h', 'm', NULL, 9, 8, '2025-01-04',
            '{\"prompt_tokens_details\":{\"cached_tokens\":0}}');"
    run_expect 0 hist-import tokens.db
    stderr_empty
    contents 'select(.role == "assistant") | .content + " " + (.usage | tojson)' \
        'one {"input_tokens":20,"output_tokens":10,"cache_read_tokens":16,"reasoning_tokens":4}' \
        'two {"input_tokens":14,"output_tokens":3,"cache_read_tokens":7,"cache_write_tokens":2}' \
        'three {"input_tokens":1,"output_tokens":2}' \
        'four {"input_tokens":9,"output_tokens":8,"cache_read_tokens":0}'
}

@test "import: llm, tables whose messages cannot be read are an error, and not an empty database" {
    local error="hist-import: cannot import 'new.db': no such column:"
    hostile new "$MESSAGES ALTER TABLE turns RENAME COLUMN tip_message_hash TO tip;
        INSERT INTO turns VALUES ('t', 'th', NULL, 'h', 'm', NULL, 1, 2, '2025-01-01');"
    run_expect 2 hist-import new.db
    stdout_empty
    stderr_is "$error tip_message_hash"
    rm new.db
    hostile new "$RESPONSES ALTER TABLE responses RENAME COLUMN response TO answer;
        INSERT INTO responses VALUES ('r', 'm', 'a', NULL, 'b', 'c', '2025-01-01');"
    run_expect 2 hist-import new.db
    stdout_empty
    stderr_is "$error response"
    rm new.db
    hostile new "$RESPONSES CREATE TABLE tool_calls(id INTEGER, response_id TEXT, name TEXT, args TEXT);
        INSERT INTO responses VALUES ('r', 'm', 'a', NULL, 'b', 'c', '2025-01-01');"
    run_expect 2 hist-import new.db
    stdout_empty
    stderr_is "$error tool_call_id"
}

@test "import: lines that differ in few digits are different" {
    # A checksum of these ids, after this session, is the same.
    local id line='{"id":"%s","session_id":"s","timestamp":"2024-06-27T15:00:00.000000+00:00","role":"user","content":"yes"}\n'
    # shellcheck disable=SC2059
    for id in m-00006000950037 m-00006500940036; do
        printf "$line" "$id" >"$id.jsonl"
        run_expect 0 hist-import -q "$id.jsonl"
        stdout_is 1
        stderr_empty
    done
    history_is <(cat m-*.jsonl)
    again m-*.jsonl
}

@test "import: a database of another program in a directory is left alone" {
    mkdir dir
    cp "$FORMATS/messages/anthropic.json" dir
    python3 -c 'import sqlite3
db = sqlite3.connect("dir/other.db")
db.executescript("CREATE TABLE t(a); CREATE VIEW messages AS SELECT a FROM t;")'
    run_expect 0 hist-import --dry-run dir
    stdout_is $'messages\t6\tdir/anthropic.json'
    stderr_empty
    run_expect 0 hist-import dir
    stdout_is 6
    run_expect 0 hist-import -v dir
    stdout_is 0
    stderr_has 'dir/other.db: no known format'
    run_expect 2 hist-import dir/other.db
    stderr_has "cannot import 'dir/other.db': its format is none of "
    run_expect 2 hist-import -f llm dir/other.db
    stderr_is "hist-import: cannot import 'dir/other.db': it is no database of llm"
}

@test "import: a database of llm whose tables are views, generated or virtual is refused at once" {
    local columns="'m' AS model, NULL AS prompt, NULL AS system, NULL AS conversation_id, '' AS datetime_utc" name
    local endless="CREATE VIEW responses AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT i AS id, 'x' AS response, $columns FROM n;"
    hostile endless "$endless"
    hostile wide "CREATE TABLE n(i); WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000)
        INSERT INTO n SELECT i FROM c;
        CREATE VIEW responses AS SELECT i AS id, hex(zeroblob(5000000)) AS response, $columns FROM n;"
    hostile huge "CREATE VIEW responses AS SELECT 1 AS id, hex(zeroblob(400000000)) AS response, $columns;"
    hostile generated "CREATE TABLE responses(id TEXT, model TEXT, prompt TEXT, system TEXT, conversation_id TEXT,
        datetime_utc TEXT, response TEXT AS (hex(zeroblob(400000000)))); INSERT INTO responses(id) VALUES ('a');"
    hostile virtual "CREATE VIRTUAL TABLE responses USING fts5(id, model, prompt, system, response, conversation_id,
        datetime_utc);"
    # A view that the schema calls a table.
    hostile posing "$endless PRAGMA writable_schema = on;
        UPDATE sqlite_master SET type = 'table' WHERE name = 'responses';"
    for name in endless wide huge generated virtual; do
        bounded 2 "$name.db"
        stdout_empty
        stderr_is "hist-import: cannot import '$name.db': 'responses' in it is not a plain table"
    done
    bounded 2 posing.db
    stdout_empty
    stderr_matches "^hist-import: cannot (read|import) 'posing.db': "
}

@test "import: values of a database of llm that are too long are named, and the rest comes" {
    hostile long "$RESPONSES INSERT INTO responses VALUES ('a', 'm', 'one', NULL, 'first', 'c', '2024-01-01'),
        ('b', 'm', 'two', NULL, hex(zeroblob(35000000)), 'c', '2024-01-02'),
        ('c', 'm', 'three', NULL, 'third', 'c', '2024-01-03');"
    bounded 1 long.db
    stdout_is 5
    stderr_is "hist-import: cannot import 'long.db:2': longer than 64 MiB"
    contents .content one first two three third
    hostile fragments "$RESPONSES INSERT INTO responses VALUES ('a', 'm', 'one', NULL, 'first', 'c', '2024-01-01');
        CREATE TABLE fragments(id INTEGER PRIMARY KEY, content TEXT);
        INSERT INTO fragments VALUES (1, hex(zeroblob(5000000)));
        CREATE TABLE prompt_fragments(response_id TEXT, fragment_id INTEGER, \"order\" INTEGER);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        INSERT INTO prompt_fragments SELECT 'a', 1, i FROM n;"
    rm "$HISTORY"
    bounded 1 fragments.db
    stdout_is 1
    stderr_is "hist-import: cannot import 'fragments.db:1': longer than 64 MiB"
    hostile part "$MESSAGES INSERT INTO messages VALUES ('p', NULL, 'user'), ('a', 'p', 'assistant');
        INSERT INTO parts VALUES (1, 'p', 0, 'text', hex(zeroblob(35000000)), NULL), (2, 'a', 0, 'text', 'yes', NULL);
        INSERT INTO turns VALUES ('t', 'c', 'p', 'a', 'm', NULL, 1, 1, '2024-01-01');"
    rm "$HISTORY"
    bounded 1 part.db
    stdout_is 1
    stderr_is "hist-import: cannot import 'part.db:1': longer than 64 MiB"
    LEFT_OUT=1 again part.db
}

@test "import: circles and gaps in a thread of llm end it" {
    hostile circle "$MESSAGES INSERT INTO messages VALUES ('a', 'a', 'user'), ('a', 'b', 'user'), ('b', 'a', 'assistant'),
            ('b', 'b', 'assistant');
        INSERT INTO parts VALUES (1, 'a', 0, 'text', 'one', NULL), (2, 'b', 0, 'text', 'two', NULL);
        INSERT INTO turns VALUES ('t', 'c', 'a', 'b', 'm', NULL, 1, 1, '2024-01-01');"
    bounded 0 circle.db
    stdout_is 2
    contents .content one two
    again circle.db
    hostile gap "$MESSAGES INSERT INTO messages VALUES ('b', 'gone', 'assistant');
        INSERT INTO parts VALUES (2, 'b', 0, 'text', 'two', NULL);
        INSERT INTO turns VALUES ('t', 'c', 'gone', 'b', 'm', NULL, 1, 1, '2024-01-01');"
    rm "$HISTORY"
    bounded 1 gap.db
    stdout_is 1
    stderr_is "hist-import: cannot import 'gap.db:1': a message of it is missing"
}

@test "import: a database of llm that takes too much work is given up" {
    # Without an index each message is looked for among all of them.
    hostile slow "$MESSAGES WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 14000)
            INSERT INTO messages SELECT i, nullif(i - 1, 0), 'user' FROM n;
        INSERT INTO turns VALUES ('t', 'c', '14000', '14000', 'm', NULL, 1, 1, '2024-01-01');"
    bounded 2 slow.db
    stdout_empty
    stderr_is "hist-import: cannot read 'slow.db': it takes too much work for its size"
}

@test "import: a database of llm in WAL mode is read, and no file is left beside it" {
    local name
    hostile one "$RESPONSES INSERT INTO responses VALUES ('a', 'm', 'one', NULL, 'first', 'c', '2024-01-01');
        PRAGMA journal_mode = wal;"
    bounded 0 one.db
    stdout_is 2
    again one.db
    [[ ! -e one.db-wal && ! -e one.db-shm ]]
    # A name that SQLite could take for something else.
    cp one.db 'file:a?mode=memory#%41.db'
    again 'file:a?mode=memory#%41.db'
    # A program has it open, and what it wrote is not in the database yet; and a copy of that.
    coproc WRITER { python3 -c '
import sqlite3, sys
db = sqlite3.connect("one.db")
db.execute("INSERT INTO responses VALUES (\"b\", \"m\", \"two\", NULL, \"second\", \"c\", \"2024-01-02\")")
db.commit()
print("ready", flush=True)
sys.stdin.readline()' 3>&-; }
    # shellcheck disable=SC2153
    read -r _ <&"${WRITER[0]}"
    cp one.db copy.db
    cp one.db-wal copy.db-wal
    for name in copy one; do
        rm -f "$HISTORY"*
        ls -A >"$TMPDIR/before"
        bounded 0 "$name.db"
        stdout_is 4
        contents .content one first two second
        rm -f "$HISTORY"*
        ls -A >"$TMPDIR/after"
        same "$name" "$TMPDIR/before" "$TMPDIR/after"
    done
    echo >&"${WRITER[1]}"
    wait "$WRITER_PID"
    bounded 0 one.db
    stdout_is 4
    [[ ! -e one.db-wal && ! -e one.db-shm ]]
}

@test "import: messages as OpenAI and Anthropic take them" {
    cp "$FORMATS"/messages/*.json* .
    touch -d 2024-02-01T12:00:00.5Z openai.json anthropic.json lines.jsonl
    run_expect 1 hist-import openai.json
    stdout_is 5
    bad_lines openai.json 5 "no known 'role'" 6 "no known 'role'" 7 'not a JSON object'
    contents '"\(.timestamp) \(.role):\(.content) \(.images) \(.tool_call_id) \(.tool_calls | tostring)"' \
        '2024-02-01T12:00:00.500000+00:00 system:Be brief null null null' \
        '2024-02-01T12:00:00.500000+00:00 user:What is the weather? 1 null null' \
        '2024-02-01T12:00:00.500000+00:00 assistant: null null [{"id":"call_1","name":"weather","args":{"city":"Paris"}}]' \
        '2024-02-01T12:00:00.500000+00:00 tool:21 degrees null call_1 null' \
        '2024-06-27T15:00:00.000000+00:00 assistant:It is warm. null null null'
    LEFT_OUT=1 again openai.json
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
    run_expect 1 hist-import lines.jsonl
    bad_lines lines.jsonl 3 'not a JSON object'
    contents '"\(.role):\(.content) \(.model)"' 'user:one null' 'assistant:two m'
    # It grows.
    echo '{"role":"user","content":"three"}' >>lines.jsonl
    run_expect 1 hist-import -q lines.jsonl
    stdout_is 1
    contents '.content' one two three
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) -eq 1 ]]
    LEFT_OUT=1 again lines.jsonl
}

@test "import: a file without ids has the same session wherever it lies" {
    local name status
    cp "$FORMATS"/messages/*.json* "$FORMATS"/aichat/*.yaml .
    mkdir elsewhere
    for name in anthropic.json openai.json lines.jsonl *.yaml; do
        # It is moved, and the same machine imports it again.
        rm -f "$HISTORY"
        # Some records of these cannot be read.
        status=0
        [[ $name != [olt]* ]] || status=1
        run_expect $status hist-import -q "$name"
        jq -c '[.id, .session_id, .origin]' "$HISTORY" >here
        cp -p "$name" elsewhere/
        run_expect $status hist-import -q "elsewhere/$name"
        stdout_is 0
        # Another machine has the same lines.
        rm "$HISTORY"
        run_expect $status hist-import -q "elsewhere/$name"
        jq -c '[.id, .session_id, .origin]' "$HISTORY" >there
        cmp here there
    done
    # Another conversation in a file of that name is another session.
    rm "$HISTORY"
    echo '[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]' >same.json
    echo '[{"role":"user","content":"q"},{"role":"assistant","content":"b"}]' >elsewhere/same.json
    run_expect 0 hist-import same.json elsewhere/same.json
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) -eq 2 ]]
    # A prompt whose answer comes later, and a file without a prompt.
    echo '{"role":"user","content":"first"}' >later.jsonl
    echo '{"role":"system","content":"only"}' >system.jsonl
    run_expect 0 hist-import -q later.jsonl system.jsonl
    stdout_is 2
    echo '{"role":"assistant","content":"answer"}' >>later.jsonl
    run_expect 0 hist-import -q later.jsonl system.jsonl
    stdout_is 1
    [[ $(jq -r .session_id "$HISTORY" | sort -u | wc -l) -eq 4 ]]
    # What is no file is read once.
    run_expect 0 hist-import -q <(cat same.json)
    stdout_is 2
}

@test "import: a session that an earlier version named after the place of its file keeps its name" {
    local name hash status=0
    cp "$FORMATS/messages/anthropic.json" "$FORMATS/aichat/trip.yaml" .
    for name in anthropic.json trip.yaml; do
        rm -f "$HISTORY"
        run_expect $status hist-import -q "$name"
        hash=$(printf %s "$(realpath "$name")" | python3 -c '
import sys
h = 0xcbf29ce484222325
for byte in sys.stdin.buffer.read():
    h = (h ^ byte) * 0x100000001b3 % 2**64
h = (h ^ h >> 33) * 0xff51afd7ed558ccd % 2**64
h ^= h >> 33
print("%016x" % h)')
        sed -Ei "s/((messages|aichat):[A-Za-z0-9_.-]*)-[0-9a-f]{16}/\\1-$hash/g" "$HISTORY"
        grep -q -- "-$hash" "$HISTORY"
        run_expect $status hist-import -q "$name"
        stdout_is 0
        status=1 # one record of trip.yaml cannot be read
    done
}

@test "import: a result of a call that failed says so, and goes back as one" {
    echo '[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r","is_error":true},{"type":"tool_result","tool_use_id":"t2","content":"s"}]}]' >a.json
    run_expect 0 hist-import a.json
    contents '"\(.role) \(.content) \(.failed)"' 'user q null' 'assistant  null' 'tool r true' 'tool s null'
    run_expect 0 hist-export -f anthropic --all-sessions
    json_is "$OUT" '[.messages[2].content[] | [.content, .is_error]] | tojson' '[["r",true],["s",null]]'
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
    contents '"\(.usage.input_tokens) \(.usage.output_tokens)"' '5 1' '0 8'
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
    run_expect 1 hist-import trip.yaml
    stdout_is 9
    bad_lines trip.yaml 8 "'content' is neither a string nor an array"
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
    LEFT_OUT=1 again trip.yaml
    printf 'model: m\nmessages:\n- &a {role: user, content: x}\n- *a\n' >alias.yaml
    run_expect 1 hist-import alias.yaml
    stdout_is 0
    bad_lines alias.yaml 4 'an alias'
    printf 'model: m\nmessages: [\n' >torn.yaml
    run_expect 1 hist-import torn.yaml
    stdout_is 0
    stderr_matches "^hist-import: cannot import 'torn.yaml:[0-9]+': not YAML$"
}

@test "import: our own lines come byte for byte" {
    {
        hist_lines good 3
        printf '%s\n' '{"severity": 2, "role":"user","content":"a\/b \u00e9 \ud800","id":"x-1","timestamp":"2024-06-27T17:00:00+02:00","session_id":"other:one","a":[1,  2.50]}'
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
    run_expect 1 hist-import grown.jsonl
    stdout_is 1
    stderr_is "hist-import: cannot import 'grown.jsonl:7': not JSON" \
        "hist-import: cannot import 'grown.jsonl:9': not an object" \
        "hist-import: cannot import 'grown.jsonl:10': no 'session_id'" \
        "hist-import: added 1 line to the existing session 'good'"
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
    run_expect 0 hist-export --all-sessions -f json -o a.json
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
    run_expect 0 hist-export --history other.jsonl --all-sessions -f json -o other.json
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
    run_expect 1 hist-import bad.json
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
        hist-export --history other.jsonl --all-sessions -f json -o other.json
        rm -f "$HISTORY"
        run_expect 0 hist-import other.json
        stdout_is 1
        history_is other.jsonl
        run_expect 0 hist-export --all-sessions -f json
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

@test "import: a message over the bound is named in every form, and the rest comes" {
    python3 -c '
import json
big = "z" * (65 << 20)
json.dump([{"role": "user", "content": big}, {"role": "assistant", "content": "ok"}], open("openai.json", "w"))
json.dump([{"role": "user", "content": [{"type": "text", "text": big}]}, {"role": "assistant", "content": "ok"}],
          open("anthropic.json", "w"))
def node(role, text, parent):
    return {"message": {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}, "parent": parent}
json.dump([{"id": "c", "create_time": 1, "current_node": "b",
            "mapping": {"a": node("user", big, None), "b": node("assistant", "ok", "a")}}], open("chatgpt.json", "w"))
'
    local name
    for name in openai anthropic chatgpt; do
        rm -f "$HISTORY"
        run_expect 1 hist-import "$name.json"
        stdout_is 1
        stderr_is "hist-import: cannot import '$name.json:1': longer than 64 MiB"
        contents .content ok
    done
}

@test "import: ChatGPT, parts that are objects; those of an unknown kind are named" {
    cat >a.json <<'END'
[{"id":"c","create_time":1,"current_node":"d","mapping":{
"a":{"message":{"author":{"role":"user"},"content":{"content_type":"multimodal_text","parts":[{"content_type":"text","text":"one"},"two",{"content_type":"image_asset_pointer"},{"content_type":"audio_asset_pointer"}]}},"parent":null},
"b":{"message":{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["three",{"content_type":"hologram","data":1}]}},"parent":"a"},
"c":{"message":{"author":{"role":"user"},"content":{"content_type":"smell","data":1}},"parent":"b"},
"d":{"message":{"author":{"role":"assistant"},"content":{"content_type":"text","parts":[""]}},"parent":"c"}}}]
END
    run_expect 1 hist-import a.json
    stdout_is 2
    bad_lines a.json 1 'a part of a message is of an unknown kind' 1 'a message is of an unknown kind'
    contents '"\(.content) \(.images)"' $'one\n\ntwo 1' 'three null'
}

@test "import: Claude Code, a message in a record of an unknown type is named" {
    claude user u1 '{"role":"user","content":"one"}' >s.jsonl
    claude tool_result u2 '{"role":"user","content":"two"}' >>s.jsonl
    printf '%s\n' '{"type":"new-title","uuid":"u3","sessionId":"s1","title":"x"}' \
        '{"type":"progress","uuid":"u4","sessionId":"s1","message":{"content":"x"}}' >>s.jsonl
    run_expect 1 hist-import s.jsonl
    stdout_is 1
    bad_lines s.jsonl 2 'a message of an unknown type'
}

@test "import: the second time as many messages are known as were new the first time" {
    database llm
    for file in "$FORMATS"/{chatgpt/*.json,codex/sessions/2025/10/02/*c0de.jsonl,aichat/*.yaml,messages/*} llm.db \
        "$FORMATS"/claude-code/projects/*/*.jsonl; do
        hist-import -qv "$file" >new 2>first || :
        hist-import -qv "$file" >none 2>second || :
        [[ $(<none) == 0 && $(<new) -gt 0 ]]
        sed 's/\([0-9]*\) new, 0 known/0 new, \1 known/' first >wanted
        same "$file" wanted second
    done
}

# codex TYPE PAYLOAD: a record of Codex, a second after the one before.
codex() {
    CODEX_TIME=$((${CODEX_TIME:-9} + 1))
    printf '{"timestamp":"2025-10-02T09:00:%02dZ","type":"%s","payload":%s}\n' "$CODEX_TIME" "$1" "$2"
}

codex_says() {
    codex response_item '{"type":"message","role":"'"$1"'","content":[{"type":"'"${3:-input_text}"'","text":"'"$2"'"}]}'
}

@test "import: Codex, turns that were taken back are replaced by the next message" {
    {
        codex session_meta '{"id":"s1","timestamp":"2025-10-02T09:00:00Z"}'
        codex_says user one
        codex_says assistant first output_text
        codex_says user two
        codex response_item '{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}'
        codex response_item '{"type":"function_call_output","call_id":"c","output":"r"}'
        codex_says assistant second output_text
        codex event_msg '{"type":"thread_rolled_back","num_turns":1}'
    } >r.jsonl
    cp r.jsonl before.jsonl
    CODEX_TIME=30
    {
        codex_says user three
        codex_says assistant third output_text
        codex event_msg '{"type":"thread_rolled_back","num_turns":2}'
        codex_says user four
    } >>r.jsonl
    run_expect 0 hist-import r.jsonl
    stdout_is 9
    contents '"\(.content) \(.replaces // [] | length)"' 'one 0' 'first 0' 'two 0' ' 0' 'r 0' 'second 0' 'three 4' \
        'third 0' 'four 4'
    hist-show --json codex:s1 | jq -r .content >shown
    is shown shown four
    again r.jsonl
    # The same where what was taken back was imported before.
    run_expect 0 hist-import --history other.jsonl before.jsonl
    cp r.jsonl before.jsonl
    run_expect 0 hist-import --history other.jsonl before.jsonl
    same other "$HISTORY" other.jsonl
}

@test "import: Codex, a prompt that only an event has, once" {
    {
        codex session_meta '{"id":"s1","timestamp":"2025-10-02T09:00:00Z"}'
        codex event_msg '{"type":"user_message","message":"one","images":[]}'
        codex event_msg '{"type":"user_message","message":"<environment_context>x"}'
        codex_says assistant first output_text
        codex event_msg '{"type":"user_message","message":"two"}'
    } >only.jsonl
    run_expect 0 hist-import only.jsonl
    stdout_is 3
    contents '"\(.role):\(.content) \(.timestamp[17:19])"' 'user:one 11' 'assistant:first 13' 'user:two 14'
    again only.jsonl
    rm "$HISTORY"
    CODEX_TIME=9
    {
        codex session_meta '{"id":"s2","timestamp":"2025-10-02T09:00:00Z"}'
        codex_says user one
        codex event_msg '{"type":"user_message","message":"one"}'
        codex_says assistant first output_text
        codex event_msg '{"type":"user_message","message":"two"}'
        codex_says user two
        codex_says assistant second output_text
        codex event_msg '{"type":"user_message","message":"three"}'
    } >both.jsonl
    run_expect 0 hist-import both.jsonl
    stdout_is 4
    contents .content one first two second
    again both.jsonl
}

@test "import: Codex, records and items of an unknown type are named" {
    {
        codex session_meta '{"id":"s1","timestamp":"2025-10-02T09:00:00Z"}'
        codex_says user one
        codex response_item '{"type":"reasoning","summary":[]}'
        codex response_item '{"type":"telepathy","text":"x"}'
        codex world_state '{}'
        codex dream '{}'
    } >r.jsonl
    run_expect 1 hist-import r.jsonl
    stdout_is 1
    bad_lines r.jsonl 4 'an item of an unknown type' 6 'a record of an unknown type'
}

@test "import: a session whose name programs would take for another, or for none, gets another" {
    local name
    for name in last current 'other one' '-x' ''; do own "$name" "$((++LINES_MADE))" "in $name"; done >a.jsonl
    run_expect 0 hist-import a.jsonl
    stdout_is 5
    stderr_is "hist-import: \"last\" cannot be the name of a session: it is imported as 'lines:last'" \
        "hist-import: \"current\" cannot be the name of a session: it is imported as 'lines:current'" \
        "hist-import: \"other one\" cannot be the name of a session: it is imported as 'lines:other_one-534741baed4f9a63'" \
        "hist-import: \"-x\" cannot be the name of a session: it is imported as 'lines:-x'" \
        "hist-import: \"\" cannot be the name of a session: it is imported as 'lines:-ecba3df2c3383c52'"
    contents '"\(.session_id) \(.content)"' 'lines:last in last' 'lines:current in current' \
        'lines:other_one-534741baed4f9a63 in other one' 'lines:-x in -x' 'lines:-ecba3df2c3383c52 in '
    again a.jsonl
    run_expect 0 hist-show -q --json lines:last
    lines_are 1
    # The other members stay as they are, those of an unusual type too.
    sed 's/"role":"user"/"role":"user","files":5, "x":1.50/; s/"id":"[0-9]*"/"id":"b"/; q' a.jsonl >b.jsonl
    run_expect 0 hist-import --json b.jsonl
    stdout_is "$(sed 's/"session_id":"last"/"session_id":"lines:last"/; s/, "x"/,"x"/' b.jsonl)"
    contents 'select(.id == "b") | "\(.session_id) \(.files)"' 'lines:last 5'
}

@test "import: lines act only on lines that their file has" {
    own s 1 one >"$HISTORY"
    own s 2 two >>"$HISTORY"
    # Neither a reset nor a replacement of what only the history has.
    own s 3 three | sed 's/"user"/"system"/; s/}$/,"reset":true,"x":"\\u0031"}/' >a.jsonl
    own s 4 four | sed 's/}$/,"replaces":["2","3"]}/' >>a.jsonl
    own s 5 five | sed 's/}$/,"replaces":["1"]}/' >>a.jsonl
    run_expect 1 hist-import a.jsonl
    stdout_is 3
    stderr_is "hist-import: 'a.jsonl:1' is imported without 'reset': it would act on lines that only the history has" \
        "hist-import: 'a.jsonl:2' is imported without 'replaces': it would act on lines that only the history has" \
        "hist-import: 'a.jsonl:3' is imported without 'replaces': it would act on lines that only the history has" \
        "hist-import: added 3 lines to the existing session 's'"
    contents '"\(.content) \(.reset) \(.replaces) \(.x)"' 'one null null null' 'two null null null' \
        'three null null 1' 'four null ["3"] null' 'five null null null'
    grep -qF '"x":"\u0031"' "$HISTORY"
    again a.jsonl
    # A line that takes the id of one in the history does not open the way to it.
    own s 1 another >b.jsonl
    own s 6 six | sed 's/}$/,"replaces":["1"]}/' >>b.jsonl
    run_expect 1 hist-import b.jsonl
    stderr_has "'b.jsonl:2' is imported without 'replaces'"
    # A file that has the lines may: a history that went on elsewhere.
    own t 1 one >c.jsonl
    run_expect 0 hist-import c.jsonl
    own t 2 two | sed 's/}$/,"replaces":["1"]}/' >>c.jsonl
    own t 3 three | sed 's/"user"/"system"/; s/}$/,"reset":true}/' >>c.jsonl
    run_expect 0 hist-import c.jsonl
    stdout_is 2
    stderr_is "hist-import: added 2 lines to the existing session 't'"
    tail -n 2 "$HISTORY" >got
    tail -n 2 c.jsonl >wanted
    same 'byte for byte' wanted got
    again c.jsonl
    # Two files of one import are two files.
    own u 1 one >d.jsonl
    own u 2 two | sed 's/}$/,"replaces":["1"]}/' >e.jsonl
    touch -d 2024-01-01 d.jsonl
    run_expect 1 hist-import -q d.jsonl e.jsonl
    stdout_is 2
    contents 'select(.session_id == "u") | .replaces' null null
}

@test "import: a path that cannot be resolved is an error, not another origin" {
    cp "$FORMATS/messages/anthropic.json" .
    run_expect 0 hist-import anthropic.json
    remember "$HISTORY"
    run_expect 2 traced -o trace -e trace=readlink -e inject=readlink:error=EIO hist-import anthropic.json
    stdout_empty
    stderr_has 'Input/output error'
    unchanged "$HISTORY"
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
    run_expect 1 hist-import -q --dry-run lines.jsonl "$FORMATS/chatgpt"
    printf 'chatgpt\t7\t%s\nmessages\t2\tlines.jsonl\n' "$FORMATS/chatgpt/conversations.json" | sort >wanted
    sort "$OUT" | cmp - wanted
    [[ ! -e $HISTORY ]]
    run_expect 1 hist-import -q --dry-run --json "$FORMATS/chatgpt"
    stdout_is_file "$WANTED/chatgpt.jsonl"
    [[ ! -e $HISTORY ]]
}

@test "import: --json prints what is stored" {
    run_expect 1 hist-import -q --json "$FORMATS/chatgpt"
    stdout_is_file "$WANTED/chatgpt.jsonl"
    history_is "$WANTED/chatgpt.jsonl"
    run_expect 1 hist-import -q --json "$FORMATS/chatgpt"
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
    find "$HOME/.codex" -name '*.jsonl' -exec touch -d 2025-10-02 {} +
    find "$HOME/.claude" -name '*.jsonl' -exec touch -d 2025-10-01 {} +
    run_expect 1 hist-import -q --scan --dry-run
    cut -f 1,2 "$OUT" >found
    run_expect 0 cat found
    stdout_is $'llm\t9' $'claude-code\t8' $'claude-code\t0' $'codex\t4' $'codex\t8' $'codex\t0' $'aichat\t9'
    run_expect 1 hist-import -q --scan
    stdout_is 38
    LEFT_OUT=1 again --scan
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
        run_expect 1 hist-import "$name"
        stdout_is 1
        stderr_is "hist-import: cannot import '$name:$number': longer than 64 MiB"
    done
}

@test "import: a database that is cut short is called that" {
    database llm
    truncate -s 5000 llm.db
    run_expect 2 hist-import llm.db
    stdout_empty
    stderr_is "hist-import: cannot read 'llm.db': database disk image is malformed"
}

@test "import: --scan goes where the variables say, and finds nothing where nothing is" {
    run_expect 0 hist-import --scan
    stdout_is 0
    stderr_empty
    run_expect 0 hist-import --scan -v
    stderr_is 'hist-import: no conversations of another program were found'
    cp -r "$FORMATS/claude-code" c
    cp -r "$FORMATS/codex" x
    mkdir l a s
    (cd l && database llm && mv llm.db logs.db)
    mkdir a/sessions
    cp "$FORMATS/aichat/trip.yaml" a/sessions
    run_expect 1 env CLAUDE_CONFIG_DIR=c CODEX_HOME=x LLM_USER_PATH=l AICHAT_CONFIG_DIR=a hist-import -q --scan
    stdout_is 38
    mv a/sessions/trip.yaml s
    run_expect 1 env AICHAT_SESSIONS_DIR=s AICHAT_CONFIG_DIR=a hist-import -q --scan --dry-run
    # It is the conversation that was imported from the other place.
    stdout_is $'aichat\t0\ts/trip.yaml'
}

@test "import: the format is found out, said on -v, or given" {
    cp "$FORMATS/messages/lines.jsonl" .
    run_expect 1 hist-import -v lines.jsonl
    stderr_is "hist-import: cannot import 'lines.jsonl:3': not a JSON object" \
        'lines.jsonl: messages, 2 new, 0 known, 1 bad'
    echo 'what is this' >odd.jsonl
    run_expect 2 hist-import odd.jsonl
    stdout_empty
    stderr_is "hist-import: cannot import 'odd.jsonl': its format is none of lines, claude-code, codex, llm, chatgpt, messages, aichat"
    # In a directory there may be anything.
    mkdir d
    cp odd.jsonl d
    run_expect 0 hist-import d
    stdout_is 0
    stderr_empty
    run_expect 1 hist-import -f lines odd.jsonl
    bad_lines odd.jsonl 1 'not JSON'
    run_expect 2 hist-import -f none odd.jsonl
    stdout_empty
    stderr_is "hist-import: bad value 'none' for --format: lines, claude-code, codex, llm, chatgpt, messages or aichat is expected (see 'hist-import --help')"
}

@test "import: bad records are named up to a number" {
    seq 1 25 >bad.jsonl
    run_expect 1 hist-import -f claude-code bad.jsonl
    stdout_is 0
    [[ $(wc -l <"$ERR") -eq 11 ]]
    stderr_has "hist-import: cannot import 15 more records of 'bad.jsonl'"
    run_expect 1 hist-import -q -f claude-code bad.jsonl
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
    # Where nothing was read there is no number.
    run_expect 2 hist-import none.jsonl
    stdout_empty
    stderr_is "hist-import: cannot read 'none.jsonl': No such file or directory"
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
