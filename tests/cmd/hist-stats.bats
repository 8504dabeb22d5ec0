#!/usr/bin/env bats
#
# hist-stats: messages, sessions and tokens counted.

load ../helper

setup() {
    sandbox
    use_history
}

put() {
    hist_line "$@" >>"$HISTORY"
}

# Five messages of two sessions on three days, of two months and years of weeks.
some() {
    put a user one 2024-12-29T23:30:00Z
    put a assistant two 2024-12-29T23:30:05Z '{"model":"big","provider":"p","usage":{"input_tokens":10,"output_tokens":4}}'
    put b user three 2024-12-30T08:00:00Z
    put b assistant '' 2024-12-30T08:00:01Z '{"model":"small","provider":"p","usage":{"input_tokens":7,"output_tokens":2},"tool_calls":[{"id":"1","name":"ls","args":{}},{"id":"2","name":"cat","args":{}},{"id":"3","name":"ls","args":{}}]}'
    put a assistant four 2025-01-02T10:00:00Z '{"model":"big","provider":"p"}'
}

@test "hist-stats: by day, the total first" {
    some
    run_expect 0 hist-stats
    stdout_is $'total\t5\t2\t17\t6\t1' $'2024-12-29\t2\t1\t10\t4\t0' $'2024-12-30\t2\t1\t7\t2\t0' $'2025-01-02\t1\t1\t0\t0\t1'
    stderr_empty
    run_expect 0 hist-stats --by=day
    stdout_line 1 $'total\t5\t2\t17\t6\t1'
}

@test "hist-stats: days are local ones" {
    some
    TZ=Asia/Tokyo run_expect 0 hist-stats
    stdout_is $'total\t5\t2\t17\t6\t1' $'2024-12-30\t4\t2\t17\t6\t0' $'2025-01-02\t1\t1\t0\t0\t1'
    TZ=America/New_York run_expect 0 hist-stats --json
    stdout_json '.time_zone, .rows[].key' EST 2024-12-29 2024-12-30 2025-01-02
}

# hourly FROM HOURS: a message for each hour from then on.
hourly() {
    jq -cn --arg from "$1" --argjson hours "$2" '($from | fromdate) as $from | range($hours) | ($from + . * 3600) as $at
        | {id: "\($at)-00000000", session_id: "s", timestamp: ($at | todate | sub("Z"; ".000000+00:00")), role: "user", content: "x"}'
}

# days_are ZONE LINE...: `KEY MESSAGES` by day, without the total.
days_are() {
    TZ=$1 run_expect 0 hist-stats --by "${BY:-day}"
    shift
    sed 1d "$OUT" | cut -f 1,2 | tr '\t' ' ' >got
    is days got "$@"
}

@test "hist-stats: a day has 23 hours, or 25, when the clocks change" {
    hourly 2024-03-29T23:00:00Z 71 >"$HISTORY"
    days_are Europe/Berlin '2024-03-30 24' '2024-03-31 23' '2024-04-01 24'
    days_are UTC '2024-03-29 1' '2024-03-30 24' '2024-03-31 24' '2024-04-01 22'
    BY=month days_are Europe/Berlin '2024-03 47' '2024-04 24'
    hourly 2024-10-25T22:00:00Z 73 >"$HISTORY"
    days_are Europe/Berlin '2024-10-26 24' '2024-10-27 25' '2024-10-28 24'
    BY=week days_are Europe/Berlin '2024-W43 49' '2024-W44 24'
    # One day of it, from midnight to midnight.
    TZ=Europe/Berlin run_expect 0 hist-stats --since 2024-10-27 --until 2024-10-27
    stdout_line 2 $'2024-10-27\t25\t1\t0\t0\t0'
    lines_are 2
    # In the south, where it is half an hour only, and a zone between the hours.
    hourly 2024-10-04T13:30:00Z 72 >"$HISTORY"
    days_are Australia/Lord_Howe '2024-10-05 24' '2024-10-06 24' '2024-10-07 24'
    hourly 2024-06-26T18:00:00Z 25 >"$HISTORY"
    days_are Asia/Kolkata '2024-06-26 1' '2024-06-27 24'
}

@test "hist-stats: by week and month" {
    some
    run_expect 0 hist-stats --by week
    stdout_is $'total\t5\t2\t17\t6\t1' $'2024-W52\t2\t1\t10\t4\t0' $'2025-W01\t3\t2\t7\t2\t1'
    run_expect 0 hist-stats --by month
    stdout_is $'total\t5\t2\t17\t6\t1' $'2024-12\t4\t2\t17\t6\t0' $'2025-01\t1\t1\t0\t0\t1'
}

@test "hist-stats: by model, provider, role, session: the largest first" {
    some
    run_expect 0 hist-stats --by model
    stdout_is $'total\t5\t2\t17\t6\t1' $'big\t2\t1\t10\t4\t1' $'small\t1\t1\t7\t2\t0'
    run_expect 0 hist-stats --by provider
    stdout_is $'total\t5\t2\t17\t6\t1' $'p\t3\t2\t17\t6\t1'
    run_expect 0 hist-stats --by role
    stdout_is $'total\t5\t2\t17\t6\t1' $'assistant\t3\t2\t17\t6\t1' $'user\t2\t2\t0\t0\t0'
    run_expect 0 hist-stats --by session
    stdout_is $'total\t5\t2\t17\t6\t1' $'a\t3\t1\t10\t4\t1' $'b\t2\t1\t7\t2\t0'
}

@test "hist-stats: by tool calls are counted" {
    some
    run_expect 0 hist-stats --by tool
    stdout_is $'total\t3\t2' $'ls\t2\t1' $'cat\t1\t1'
    run_expect 0 hist-stats --by tool --json
    stdout_json '.tool_calls, (.rows[] | "\(.key) \(.calls) \(.sessions) \(has("messages"))")' 3 'ls 2 1 false' 'cat 1 1 false'
}

@test "hist-stats: what a message does not tell is unknown, and last" {
    put s assistant x
    put s assistant y '' '{"model":5,"usage":{"input_tokens":"many"}}'
    put s assistant z '' '{"model":"unknown","usage":{"input_tokens":-1,"output_tokens":3}}'
    echo '{"id":"1","session_id":"s","timestamp":"once","role":"user","content":""}' >>"$HISTORY"
    run_expect 0 hist-stats --by model
    stdout_is $'total\t4\t1\t0\t3\t2' $'unknown\t1\t1\t0\t3\t0' $'unknown\t2\t1\t0\t0\t2'
    run_expect 0 hist-stats
    stdout_is $'total\t4\t1\t0\t3\t2' $'2024-06-27\t3\t1\t0\t3\t2' $'unknown\t1\t1\t0\t0\t0'
    run_expect 0 hist-stats --json --by model
    stdout_json '.rows[] | "\(.key | type) \(.answers_without_usage)"' 'string 0' 'null 2'
}

@test "hist-stats: replaced lines count, copies do not use tokens again" {
    local usage='"usage":{"input_tokens":5,"output_tokens":1}'
    put s assistant one '' "{\"id\":\"m1\",$usage}"
    put s assistant two '' "{\"replaces\":[\"m1\"],$usage}"
    put t assistant one '' "{\"forked_from\":\"m1\",$usage}"
    run_expect 0 hist-stats --by session
    stdout_is $'total\t3\t2\t10\t2\t0' $'s\t2\t1\t10\t2\t0' $'t\t1\t1\t0\t0\t0'
}

@test "hist-stats: tokens beyond all bounds stay at the end" {
    # jq would round it.
    put s assistant one '' '{"usage":{"input_tokens":5,"output_tokens":1}}'
    sed 's/"input_tokens":5/"input_tokens":9223372036854775807/; p; p' "$HISTORY" >larger
    mv larger "$HISTORY"
    run_expect 0 hist-stats --by role
    stdout_line 1 $'total\t3\t1\t18446744073709551615\t3\t0'
    run_expect 0 hist-stats --json
    grep -q '"input_tokens":9223372036854775807,' "$OUT" || fail 'not at the end'
}

@test "hist-stats: --json" {
    some
    run_expect 0 hist-stats --json
    lines_are 1
    stdout_json 'del(.rows) | to_entries[] | "\(.key)=\(.value)"' messages=5 sessions=2 answers=3 tool_calls=3 \
        input_tokens=17 output_tokens=6 answers_without_usage=1 first=2024-12-29T23:30:00.000000+00:00 \
        last=2025-01-02T10:00:00.000000+00:00 time_zone=UTC by=day
    stdout_json '.rows[0] | tojson' '{"key":"2024-12-29","messages":2,"sessions":1,"input_tokens":10,"output_tokens":4,"answers_without_usage":0}'
}

@test "hist-stats: --since, --until, -s, -n" {
    some
    run_expect 0 hist-stats --since 2024-12-30 --until 2024-12-31
    stdout_is $'total\t2\t1\t7\t2\t0' $'2024-12-30\t2\t1\t7\t2\t0'
    run_expect 0 hist-stats -s a --by role
    stdout_is $'total\t3\t1\t10\t4\t1' $'assistant\t2\t1\t10\t4\t1' $'user\t1\t1\t0\t0\t0'
    run_expect 0 hist-stats -s a -s b
    stdout_line 1 $'total\t5\t2\t17\t6\t1'
    # shellcheck disable=SC2016
    run_expect 0 bash -c 'hist-sessions --limit 1 | hist-stats -s -'
    stdout_line 1 $'total\t3\t1\t10\t4\t1'
    run_expect 0 hist-stats -n 1
    stdout_is $'total\t5\t2\t17\t6\t1' $'2025-01-02\t1\t1\t0\t0\t1'
    run_expect 0 hist-stats --limit=1 --by session
    stdout_is $'total\t5\t2\t17\t6\t1' $'a\t3\t1\t10\t4\t1'
    run_expect 1 hist-stats -s nope
    stdout_empty
    stderr_is "hist-stats: no session 'nope'"
    run_expect 1 hist-stats -s nope -s b
    stdout_line 1 $'total\t2\t1\t7\t2\t0'
    run_expect 2 hist-stats --by colour
    stdout_empty
    stderr_has "hist-stats: bad value 'colour' for --by: day, week, "
    run_expect 2 hist-stats what
    stderr_is "hist-stats: no argument is expected (see 'hist-stats --help')"
}

@test "hist-stats: --newest, of what else is wanted" {
    some
    run_expect 0 hist-stats --newest 2 --by model
    stdout_is $'total\t2\t2\t7\t2\t1' $'big\t1\t1\t0\t0\t1' $'small\t1\t1\t7\t2\t0'
    run_expect 0 hist-stats --newest=2
    stdout_is $'total\t2\t2\t7\t2\t1' $'2024-12-30\t1\t1\t7\t2\t0' $'2025-01-02\t1\t1\t0\t0\t1'
    run_expect 0 hist-stats --newest 1 -s b --by role
    stdout_is $'total\t1\t1\t7\t2\t0' $'assistant\t1\t1\t7\t2\t0'
    run_expect 0 hist-stats --newest all --by role
    stdout_line 1 $'total\t5\t2\t17\t6\t1'
    run_expect 0 hist-stats --newest 9
    stdout_line 1 $'total\t5\t2\t17\t6\t1'
    run_expect 2 hist-stats --newest few
    stdout_empty
    stderr_has "hist-stats: bad value 'few' for --newest"
}

# What is before them is not read.
@test "hist-stats: --newest reads the end of a history" {
    hist_lines s 4000 >"$HISTORY"
    traced -o trace -y -e trace=pread64,read hist-stats --newest 10 >"$OUT"
    awk -v file="${HISTORY##*/}" 'index($0, file) && $NF > 0 { sum += $NF } END { exit sum > 300000 }' trace ||
        fail "$(grep "${HISTORY##*/}" trace)"
}

@test "hist-stats: nothing to count" {
    : >"$HISTORY"
    run_expect 0 hist-stats
    stdout_is $'total\t0\t0\t0\t0\t0'
    run_expect 0 hist-stats --json
    stdout_json '.messages, has("first"), (.rows | length)' 0 false 0
    run_expect 0 on_tty --raw hist-stats --quiet
    stdout_is '0 messages in 0 sessions' '0 answers' ''
}

@test "hist-stats: several histories, and all of the register" {
    some
    hist_line c user other 2025-01-02T10:00:00Z >other.jsonl
    run_expect 0 hist-stats --history other.jsonl --history "$HISTORY"
    stdout_line 1 $'total\t6\t3\t17\t6\t1'
    stdout_line 4 $'2025-01-02\t2\t2\t0\t0\t1'
    run_expect 0 hist-stats --history other.jsonl --history "$HISTORY" -s c
    stdout_line 1 $'total\t1\t1\t0\t0\t0'
    unset CHAT_HISTORY
    make_repo repo
    (cd repo && hist-append -q -s mine hello) >/dev/null
    run_expect 0 hist-stats --all --by session
    stdout_is $'total\t1\t1\t0\t0\t0' $'mine\t1\t1\t0\t0\t0'
}

@test "hist-stats: bad lines are told" {
    some
    echo bad >>"$HISTORY"
    run_expect 0 hist-stats
    stderr_is "hist-stats: skipped 1 bad line in '$HISTORY'"
    run_expect 0 hist-stats -q
    stderr_empty
}

@test "hist-stats: on a terminal totals and bars that fit" {
    some
    NO_COLOR=1 run_expect 0 on_tty --raw --fds 1 hist-stats --until 2025-01-05
    stdout_line 1 '5 messages in 2 sessions, 2024-12-29 to 2025-01-02 (UTC)'
    stdout_line 2 '3 answers, 17 tokens in, 6 out, tokens unknown of 1, 3 tool calls'
    stdout_matches '^day +messages  tokens in  out$' '^2024-12-29 +2 +10 +4  █+$' '^2025-01-02 +1 +- +-  █+▌?$'
    [[ $(grep -c '^2' "$OUT") == 3 ]]
    run_expect 0 on_tty --raw --fds 1 hist-stats --by model
    stdout_has $'\e[32m█' $'\e[2mmodel '
    for columns in 1 5 20 33 50 80 133; do
        NO_COLOR=1 PAGER='' run_expect 0 on_tty --raw --fds 1 --size "${columns}x50" hist-stats --until 2025-01-05
        [[ $(wc -L <"$OUT") -le $columns ]] ||
            fail "wider than $columns"
    done
}

@test "hist-stats: on a terminal nothing is obeyed, and long output is paged" {
    put s assistant x '' '{"model":"\u001b[2Jm\u202e"}'
    NO_COLOR=1 run_expect 0 on_tty --raw hist-stats --by model
    stdout_has '^[[2Jm<U+202E>'
    stdout_lacks $'\e'
    run_expect 0 on_tty --raw hist-stats --by model --json
    stdout_lacks $'\e'
    for i in {10..70}; do put "session-$i" user x; done
    PAGER='grep -c session-' run_expect 0 on_tty --raw hist-stats --by session
    stdout_is 61
    run_expect 0 on_tty --raw hist-stats --by session --no-pager
    [[ $(grep -c session- "$OUT") == 61 ]]
}
