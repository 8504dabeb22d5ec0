# The set of secrets and of harmless text in tests/fixtures/redact: what --redact finds, in every form
# and format, and that it leaves the rest alone.
load ../helper

SET=$FIXTURES/redact/set.py

@test "redact: secrets are found in text, arguments, nested JSON and lists of words" {
    local form
    for form in text string object nested list; do
        python3 "$SET" history secrets "$form" >"$form.jsonl"
        run_expect 0 test "$(wc -l <"$form.jsonl")" -ge 156
        run_expect 0 hist-export -q --redact -f jsonl --messages "$form.jsonl"
        cp "$OUT" redacted.jsonl
        run_expect 0 python3 "$SET" missed "$form" <redacted.jsonl
        stdout_empty
    done
}

@test "redact: harmless text that looks like a secret stays" {
    local form
    for form in text string object nested list; do
        python3 "$SET" history harmless "$form" >"$form.jsonl"
        run_expect 0 test "$(wc -l <"$form.jsonl")" -eq 1000
        run_expect 0 hist-export -q --redact -f jsonl --messages "$form.jsonl"
        cp "$OUT" redacted.jsonl
        run_expect 0 python3 "$SET" changed "$form" <redacted.jsonl
        stdout_empty
    done
}

@test "redact: all formats leave out what is beside its name, also in results, citations and titles" {
    local secret="Tr0ub4""dor784!WATZ" format
    use_history
    {
        hist_line s title "the password is $secret"
        hist_line s user "question"
        hist_line s assistant '' '' "{\"tool_calls\":[{\"id\":\"c\",\"name\":\"run\",\"args\":{\"password\":\"$secret\",\"argv\":[\"mysql\",\"-p$secret\"]}}]}"
        hist_line s tool "{\"name\":\"DB_PASSWORD\",\"value\":\"$secret\"}" '' '{"tool_call_id":"c"}'
        hist_line s assistant 'done' '' "{\"citations\":[{\"url\":\"https://bob:x$secret@h/\",\"title\":\"password=$secret\"}]}"
    } >"$HISTORY"
    for format in md html json jsonl txt openai anthropic claude-code codex atif; do
        run_expect 0 hist-export -q --redact -f "$format" s
        stdout_has '[redacted password]'
        stdout_lacks "$secret" '784!'
    done
    run_expect 0 hist-export -q --redact -f jsonl s
    json_is "$OUT" '.tool_calls | select(.) | .[0].args | tojson' \
        '{"password":"[redacted password]","argv":["mysql","-p[redacted password]"]}'
}
