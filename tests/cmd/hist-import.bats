#!/usr/bin/env bats
#
# hist-import: every format on a file of its own, each message once, whatever happens.

# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    use_history
    FORMATS=$FIXTURES/import
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

# contents FILTER LINE...: of the history's messages.
contents() {
    grep -v '"role":"title"' "$HISTORY" >"$TMPDIR/messages"
    json_is "$TMPDIR/messages" "$@"
}

# hostile NAME SQL: NAME.db, made by these statements.
hostile() {
    python3 -S -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])' "$1.db" "$2"
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

@test "hist-import: what another import stored is not stored again after a rewrite" {
    hist_line c1 user text | jq -c '{role, content: ("padding " * 40), timestamp}' >other.jsonl
    printf '{"role":"user","content":"%s"}\n' one two three >own.jsonl
    run_expect 0 hist-import own.jsonl
    cp "$HISTORY" new
    run_expect 0 hist-import other.jsonl
    tail -n 1 "$HISTORY" >>new
    hist_line c9 user before >"$HISTORY"
    exec 8<>"$HISTORY"
    flock 8
    hist-import own.jsonl >"$OUT" 2>"$ERR" 8>&- &
    sleep 0.5
    mv new "$HISTORY"
    exec 8>&-
    wait $!
    stdout_is 0
    [[ $(wc -l <"$HISTORY") == 4 ]]
}
