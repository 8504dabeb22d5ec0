#!/usr/bin/env bats
#
# The session store of an agent on PostgreSQL, walked through with our programs and a real database. b-sessions.bats
# does the same with a history alone.

# shellcheck disable=SC2016

load ../helper
load ../servers
load ../postgres

# Two machines that share the history `work` through a database. Each request of a test may come to another of them.
setup() {
    sandbox
    use_remote
    one=$WORK/one.jsonl two=$WORK/two.jsonl
}

teardown() {
    sandbox_end
}

# sync_machine FILE [push|pull]: brings the history of a machine to the database, or the other way.
sync_machine() {
    run_expect 0 hist-sync -q --name work --history "$@"
    stderr_empty
}

@test "B with PostgreSQL: a session has created_at, last_accessed, message_count and its conversation as JSONB" {
    put_tool weather 'echo sunny' get_weather
    start_llm --call 'get_weather {"city":"Paris"}' --reply 'It is sunny.' --reply 'You asked for the weather.'
    run_expect 0 chat --history "$one" -s s1 --yes -T ./weather 'How is it in Paris?'
    sync_machine "$one" push
    run_expect 0 sql "SELECT session_id, message_count, pg_typeof(conversation), jsonb_path_query_array(conversation, '\$[*].role'),
        conversation -> 1 -> 'tool_calls' -> 0 -> 'args' ->> 'city', conversation -> 2 ->> 'content' FROM chathist.sessions"
    stdout_is 's1|4|jsonb|["user", "assistant", "tool", "assistant"]|Paris|sunny' ''
    # The times are those of the first and the last line.
    run_expect 0 sql "SELECT to_char(created_at, 'YYYY-MM-DD\"T\"HH24:MI:SS.US+00:00'), to_char(last_accessed, 'YYYY-MM-DD\"T\"HH24:MI:SS.US+00:00') FROM chathist.sessions"
    stdout_is "$(jq -rs '.[0].timestamp + "|" + .[-1].timestamp' "$one")"
    sql 'SELECT message_count, created_at, last_accessed FROM chathist.sessions' >before
    run_expect 0 chat --history "$one" -s s1 'What did I ask?'
    sync_machine "$one" push
    run_expect 0 sql "SELECT message_count, created_at = '$(cut -d '|' -f 2 before)', last_accessed > '$(cut -d '|' -f 3 before)' FROM chathist.sessions"
    stdout_is '6|t|t'
}

@test "B with PostgreSQL: a fresh agent on another machine restores the session for each request" {
    start_llm --reply 'answer one' --reply 'answer two' --reply 'answer three'
    run_expect 0 chat --history "$one" -s s1 one
    sync_machine "$one" push
    CHAT_HISTORY=$two run_expect 0 hist-load -q --remote s1
    run_expect 0 chat --history "$two" two
    request_messages_are 2 user:one 'assistant:answer one' user:two
    sync_machine "$two" push
    sync_machine "$one" pull
    run_expect 0 chat --history "$one" -s s1 three
    request_messages_are 3 user:one 'assistant:answer one' user:two 'assistant:answer two' user:three
    sync_machine "$one" push
    run_expect 0 sql "SELECT jsonb_path_query_array(conversation, '\$[*].content') FROM chathist.sessions"
    stdout_is '["one", "answer one", "two", "answer two", "three", "answer three"]'
}

@test "B with PostgreSQL: ten rounds of tools are kept, and replayed in the form of each provider" {
    put_tool step 'echo done'
    local calls=() i
    for ((i = 0; i < 11; i++)); do calls+=(--call "step {\"n\":$i}"); done
    start_llm "${calls[@]}"
    run_expect 9 chat --history "$one" -s s1 --yes -T ./step go
    requests_are 11
    sync_machine "$one" push
    run_expect 0 sql "SELECT message_count, jsonb_array_length(jsonb_path_query_array(conversation, '\$[*].tool_call_id')) FROM chathist.sessions"
    stdout_is '22|10'
    sync_machine "$two" pull
    export CHAT_MAX_MESSAGES=all OPENAI_API_KEY=k ANTHROPIC_API_KEY=k
    unset OPENAI_BASE_URL
    run_expect 0 chat --history "$two" -m openai-chat:m -s s1 --dry-run more
    stdout_json '[.messages[] | select(.role == "tool")] | length' 11
    run_expect 0 chat --history "$two" -m anthropic:m -s s1 --dry-run more
    stdout_json '[.messages[].content | arrays | .[] | select(.type == "tool_result")] | length' 11
}

@test "B with PostgreSQL: create, list, chat in and delete a session" {
    export CHAT_PROVIDER=echo
    run_expect 0 hist-new --history "$one" --detached
    id=$(cat "$OUT")
    run_expect 0 chat --history "$one" -s "$id" hello
    run_expect 0 chat --history "$one" -s other 'something else'
    sync_machine "$one" push
    run_expect 0 hist-sessions --remote --all
    stdout_matches "^$id	[0-9T:.+-]+	2	hello\$"
    lines_are 2
    sync_machine "$two" pull
    run_expect 0 chat --history "$two" -s "$id" again
    sync_machine "$two"
    run_expect 0 sql "SELECT message_count FROM chathist.sessions WHERE session_id = '$id'"
    stdout_is 4
    # It was deleted on one machine: the other one and the database lose what was known when it was.
    sync_machine "$one" pull
    run_expect 0 hist-delete --history "$one" --force "$id"
    sync_machine "$one" push
    run_expect 0 sql 'SELECT session_id FROM chathist.sessions'
    stdout_is other
    sync_machine "$two"
    run_expect 0 hist-sessions --history "$two"
    stdout_matches '^other	'
    lines_are 1
    run_expect 0 sql 'SELECT session_id FROM chathist.sessions'
    stdout_is other
}

@test "B with PostgreSQL: the operator cleans up by age, number and size" {
    for i in 1 2 3 4 5 6; do hist_line "s$i" user "text $i" "202$i-01-01T00:00:00+00:00"; done >"$one"
    sync_machine "$one"
    sync_machine "$two"
    left() {
        sync_machine "$one"
        run_expect 0 sql 'SELECT session_id FROM chathist.sessions ORDER BY 1'
        stdout_is "$@"
        sync_machine "$two"
        run_expect 0 jq -r .session_id "$two"
        stdout_is "$@"
    }
    run_expect 0 hist-delete --history "$one" --force --older-than 2022-06-01
    left s3 s4 s5 s6
    run_expect 0 hist-delete --history "$one" --force --keep 3
    left s4 s5 s6
    run_expect 0 hist-delete --history "$one" --force --max-size "$(($(wc -c <"$one") - 1))"
    left s5 s6
}
