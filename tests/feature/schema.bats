#!/usr/bin/env bats
#
# chat --schema: what is told to the server, what is said of the answer, what is stored. The validator itself has
# its table in tests/unit/schema_test.c.

# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    cat >item.json <<'END'
{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
  "required": ["name", "price"],
  "additionalProperties": false
}
END
}

# answers STATUS ANSWER [OPTION]...: to a question with item.json.
answers() {
    local status=$1 answer=$2
    shift 2
    start_llm --reply "$answer"
    run_expect "$status" chat --no-store --schema item.json "$@" ask
}

# refused SCHEMA MESSAGE: before anything is sent or stored.
refused() {
    printf '%s' "$1" >s.json
    run_expect 2 chat --schema s.json hello
    stdout_empty
    stderr_is "chat: cannot use schema 's.json': $2"
    [[ ! -e $HISTORY ]] || fail 'stored'
}

# ---- the answer

@test "schema: an answer that holds to it" {
    use_history
    start_llm --reply '{"name": "tea", "price": 2.5}'
    run_expect 0 chat --schema item.json 'what is it?'
    stdout_is '{"name": "tea", "price": 2.5}'
    stderr_empty
    json_is "$HISTORY" '[.role, .content, .finish_reason] | tojson' \
        '["user","what is it?",null]' '["assistant","{\"name\": \"tea\", \"price\": 2.5}","stop"]'
}

@test "schema: an answer that does not hold to it is printed, stored, and exit 1" {
    use_history
    start_llm --reply '{"name":"tea","price":"2.5"}'
    run_expect 1 chat --schema item.json 'what is it?'
    stdout_is '{"name":"tea","price":"2.5"}'
    stderr_is "chat: answer does not match 'item.json': /price: is not a number"
    json_is "$HISTORY" 'select(.role == "assistant") | [.content, .finish_reason] | tojson' \
        '["{\"name\":\"tea\",\"price\":\"2.5\"}","stop"]'
}

@test "schema: control characters of an answer do not reach the terminal in the message" {
    answers 1 '{"name":"tea","price":1,"\u001b[31m":1}'
    stderr_lacks $'\e'
    stderr_matches "^chat: answer does not match 'item.json': /.*: is not allowed$"
}

@test "schema: in one piece" {
    answers 0 '{"name":"tea","price":1}' --no-stream
    stdout_is '{"name":"tea","price":1}'
    answers 1 '{"name":1,"price":1}' --no-stream
    stderr_is "chat: answer does not match 'item.json': /name: is not a string"
}

@test "schema: with --json the error is the last event" {
    answers 1 '{"name":"a"}' --json -s s1
    stderr_is "chat: answer does not match 'item.json': has no \"price\""
    stdout_is '{"type":"session_id","session_id":"s1"}' '{"type":"text","text":"{\"name\":\"a\"}"}' \
        '{"type":"usage","input_tokens":1,"output_tokens":1}' \
        '{"type":"error","code":1,"message":"answer does not match '\''item.json'\'': has no \"price\"","retryable":false}'
    answers 0 '{"name":"a","price":0}' --json -s s1
    stdout_json 'select(.type == "done") | .finish_reason' stop
}

@test "schema: an answer that broke off, was refused or failed keeps its own status" {
    start_llm openai/length
    run_expect 7 chat --no-store --schema item.json ask
    stderr_is "chat: answer is incomplete: the model's length limit was reached"
    start_llm openai/cut
    run_expect 7 chat --no-store --schema item.json ask
    stderr_lacks 'does not match'
    start_llm openai/refusal
    run_expect 6 chat --no-store --schema item.json ask
    stderr_lacks 'does not match'
    start_llm openai/http-401
    run_expect 3 chat --no-store --schema item.json ask
    stderr_lacks 'does not match'
}

@test "schema: an answer that was not stored but does not hold is 1, one that holds 8" {
    start_llm --reply '{"name":"tea","price":1}'
    run_expect 8 chat --history /proc/absent/h.jsonl --schema item.json ask
    start_llm --reply '{}'
    run_expect 1 chat --history /proc/absent/h.jsonl --schema item.json ask
    stderr_has "answer does not match 'item.json'"
}

@test "schema: --regenerate asks for it, too" {
    use_history
    start_llm --reply 'no' --reply '{"name":"tea","price":1}'
    run_expect 1 chat --schema item.json ask
    run_expect 0 chat --regenerate --schema item.json
    stdout_is '{"name":"tea","price":1}'
}

# ---- the request

@test "schema: the request to a compatible server" {
    answers 0 '{"name":"tea","price":1}'
    request 1 | jq -c .response_format >"$OUT"
    stdout_is '{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"name":{"type":"string"},"price":{"type":"number"}},"required":["name","price"],"additionalProperties":false},"strict":true}}'
}

@test "schema: strict only for what servers take as strict" {
    local schema
    use_nothing
    export CHAT_PROVIDER=openai CHAT_BASE_URL=http://127.0.0.1:1/v1 CHAT_MODEL=m
    while read -r strict schema; do
        printf '%s' "$schema" >s.json
        run_expect 0 chat --dry-run --schema s.json hello </dev/null
        stdout_json '.response_format.json_schema.strict' "$strict"
    done <<'END'
true {"type":"object","properties":{},"additionalProperties":false}
true {"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"string"}}]}}}
true {"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"],"additionalProperties":false}
false {"type":"object","properties":{}}
false {"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}
false {"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}
false {"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}
false {"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],"additionalProperties":false}
true {"type":"object","properties":{"a":{"pattern":"^a"},"b":{"multipleOf":2}},"required":["a","b"],"additionalProperties":false}
false {"type":"object","properties":{"a":{"minLength":1}},"required":["a"],"additionalProperties":false}
false {"type":"object","properties":{"a":{"allOf":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}
false {"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{}},"required":["a","b"],"additionalProperties":false}
false {"type":"array","items":{"type":"string"}}
END
}

@test "schema: numbers and names of it travel as they are" {
    use_nothing
    export CHAT_PROVIDER=openai CHAT_BASE_URL=http://127.0.0.1:1/v1 CHAT_MODEL=m
    printf '{"type":"integer","maximum":12345678901234567890123,"title":"\\u00e9"}' >s.json
    run_expect 0 chat --dry-run --schema s.json hello
    stdout_has '{"type":"integer","maximum":12345678901234567890123,"title":"\u00e9"}'
}

@test "schema: Anthropic's field for it" {
    use_nothing
    export ANTHROPIC_API_KEY=k CHAT_PROVIDER=anthropic
    run_expect 0 chat --dry-run -m claude-sonnet-4-5 -S 'Be short' --schema item.json hello
    stdout_json '.output_config, .system | tojson' \
        '{"format":{"type":"json_schema","schema":{"type":"object","properties":{"name":{"type":"string"},"price":{"type":"number"}},"required":["name","price"],"additionalProperties":false}}}' \
        '"Be short"'
    # Its properties need not all be there.
    printf '{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}' >s.json
    run_expect 0 chat --dry-run -m claude-sonnet-4-5 --schema s.json hello
    stdout_json '.output_config != null' true
    run_expect 0 chat --dry-run -m claude-sonnet-4-5 -o 'output_config={"effort":"low"}' --schema s.json hello
    stdout_json '.output_config.effort, .output_config.format.type, .system' low json_schema null
}

@test "schema: where Anthropic's field cannot have it the system prompt has" {
    local model=claude-sonnet-4-5 schema
    use_nothing
    export ANTHROPIC_API_KEY=k CHAT_PROVIDER=anthropic
    while read -r schema; do
        printf '%s' "$schema" >s.json
        run_expect 0 chat --dry-run -m $model -S 'Be short' --schema s.json hello </dev/null
        stdout_json '.output_config | tojson' null
        stdout_json .system 'Be short' '' \
            'Answer with one JSON value and nothing else: no words before or after it, no code fence. It must be valid against this JSON Schema:' \
            "$schema"
    done <<'END'
{"type":"object","properties":{}}
{"type":"integer","minimum":1}
{"type":"array","items":{"type":"string"},"minItems":2}
{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}
{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"n":{"$ref":"#/$defs/a"}},"additionalProperties":false}}}
END
    # Another server may ignore the field.
    ANTHROPIC_BASE_URL=http://127.0.0.1:1 run_expect 0 chat --dry-run -m $model --schema item.json hello
    stdout_json '.output_config.format.type, (.system | contains("JSON Schema"))' json_schema true
}

@test "schema: the echo model is told nothing, and checked" {
    use_echo
    run_expect 0 chat --dry-run --schema item.json hello
    stdout_json 'keys | tojson' '["messages","model","stream"]'
    run_expect 1 chat --no-store --schema item.json hello
    stdout_is 'hello' '[1 message]'
    stderr_is "chat: answer does not match 'item.json': is not JSON at byte 0"
}

# ---- the file

@test "schema: one that is none is found before anything is sent or stored" {
    use_history
    use_echo
    refused '[]' 'is not a schema: neither an object nor a boolean'
    refused '{"properties":{"a":{"type":"numbr"}}}' '/properties/a/type: names no type'
}

@test "schema: keywords that are not checked are sent, and named once" {
    use_history
    printf '{"type":"object","allOf":[{"required":["b"]}],"properties":{"a":{"not":{}},"c":{"not":{}}}}' >s.json
    start_llm --reply '{}' --reply '[]'
    run_expect 0 chat --schema s.json ask
    stdout_is '{}'
    stderr_is "chat: schema 's.json': sent to the server, but not checked here: 'allOf', 'not'"
    request 1 | jq -c .response_format.json_schema.schema.allOf >"$OUT"
    stdout_is '[{"required":["b"]}]'
    run_expect 1 chat -q --schema s.json again
    stderr_is "chat: answer does not match 's.json': is not an object"
}

@test "schema: annotations are accepted without a word" {
    printf '{"$schema":"x","$id":"y","$comment":"z","title":"t","description":"d","default":{},"examples":[1],"deprecated":false,"readOnly":true,"writeOnly":false,"format":"date","type":"string"}' >s.json
    start_llm --reply '"today"'
    run_expect 0 chat --no-store --schema s.json ask
    stdout_is '"today"'
    stderr_empty
}

@test "schema: a file that cannot be read" {
    use_history
    use_echo
    run_expect 2 chat --schema missing.json hello
    stderr_is "chat: cannot open 'missing.json': No such file or directory"
    run_expect 2 chat --schema . hello
    stderr_is "chat: cannot open '.': is a directory"
    [[ ! -e $HISTORY ]]
    run_expect 2 chat --json --schema missing.json hello
    stdout_is '{"type":"error","code":2,"message":"cannot open '\''missing.json'\'': No such file or directory","retryable":false}'
}

@test "schema: from a pipe" {
    start_llm --reply '1'
    run_expect 0 chat --no-store --schema <(echo '{"type":"integer"}') ask
    stdout_is 1
}

@test "schema: not with --extract" {
    use_echo
    run_expect 2 chat -x --schema item.json hello
    stderr_is "chat: only one of --extract and --schema can be given (see 'chat --help')"
}

@test "schema: a line of fields is a schema of an object" {
    printf 'name\nage int: in years\n\nscores [float], bold: a\n' >lines
    start_llm --reply '{"name":"x","age":"old","tags":[]}'
    run_expect 1 chat --no-store --schema 'name, age int: in years, tags [str],' ask
    stderr_is "chat: answer does not match 'name, age int: in years, tags [str],': /age: is not an integer"
    request 1 | jq -c '.response_format.json_schema.schema' >got
    printf '%s\n' '{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","description":"in years"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","age","tags"],"additionalProperties":false}' >wanted
    same schema wanted got
    run_expect 1 chat --no-store --schema $'ok bool\nwhy: first, second' ask
    stderr_has 'has no "ok"'
    request 2 | jq -r '.response_format.json_schema.schema.properties.why.description' >got
    echo 'first, second' >wanted
    same 'a description with a comma' wanted got
    # A file of that name comes first.
    echo '{"type":"object"}' >'a, b'
    run_expect 0 chat --no-store --schema 'a, b' ask
    while IFS='|' read -r line reason; do
        run_expect 2 chat --no-store --schema "$line" ask
        stderr_is "chat: bad value for --schema: $reason"
    done <<'END'
name text|'name' has the type 'text': str, int, float, bool or one of them in brackets is expected
name [int|'name' has the type '[int': str, int, float, bool or one of them in brackets is expected
a b c|'a' has the type 'b c': str, int, float, bool or one of them in brackets is expected
na.me, x|'na.me' is no name: letters, digits, '_' and '-' are expected
x, [int]|'[int]' is no name: letters, digits, '_' and '-' are expected
, |a name is expected
END
    run_expect 2 chat --no-store --schema 'a, b int, a' ask
    stderr_is "chat: cannot use schema 'a, b int, a': /properties/a: is there twice"
}
