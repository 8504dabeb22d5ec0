#!/usr/bin/env bats
#
# hist-stats: messages, sessions and tokens counted.

load ../helper
load ../history

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
    stdout_is $'total\t4\t1\t0\t3\t3' $'unknown\t1\t1\t0\t3\t1' $'unknown\t2\t1\t0\t0\t2'
    run_expect 0 hist-stats
    stdout_is $'total\t4\t1\t0\t3\t3' $'2024-06-27\t3\t1\t0\t3\t3' $'unknown\t1\t1\t0\t0\t0'
    run_expect 0 hist-stats --json --by model
    stdout_json '.rows[] | "\(.key | type) \(.answers_without_usage)"' 'string 1' 'null 2'
}

@test "hist-stats: replaced lines count, copies do not use tokens again" {
    local usage='"usage":{"input_tokens":5,"output_tokens":1}'
    put s assistant one '' "{\"id\":\"m1\",$usage}"
    put s assistant two '' "{\"replaces\":[\"m1\"],$usage}"
    put t assistant one '' "{\"forked_from\":\"m1\",$usage}"
    run_expect 0 hist-stats --by session
    stdout_is $'total\t3\t2\t10\t2\t0' $'s\t2\t1\t10\t2\t0' $'t\t1\t1\t0\t0\t0'
}

@test "hist-stats: more tokens than a number can be exact to are unknown" {
    # jq would round it.
    put s assistant one '' '{"usage":{"input_tokens":5,"output_tokens":1}}'
    sed 's/"input_tokens":5/"input_tokens":9007199254740991/; p; s/740991/740992/' "$HISTORY" >larger
    mv larger "$HISTORY"
    run_expect 0 hist-stats --by role
    stdout_line 1 $'total\t2\t1\t9007199254740991\t2\t1'
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

@test "hist-stats: --newest counts by the times, not by the places of the lines" {
    put new user one 2024-06-01T00:00:00.000000+00:00 '{"model":"new"}'
    put new assistant two 2024-06-01T00:00:01.000000+00:00 '{"model":"new"}'
    put ahead assistant three 9999-06-01T00:00:01.000000+00:00 '{"model":"ahead"}'
    put old assistant four 2023-06-01T00:00:00.000000+00:00 '{"model":"old"}'
    run_expect 0 hist-stats --newest 2 --by model
    stdout_is $'total\t2\t2\t0\t0\t2' $'ahead\t1\t1\t0\t0\t1' $'new\t1\t1\t0\t0\t1'
}

# What is before them is not read, once there is an index.
@test "hist-stats: --newest reads the end of a history" {
    hist_lines s 4000 >"$HISTORY"
    run_expect 0 hist-stats --newest 10
    traced -o trace -y -e trace=pread64,read hist-stats --newest 10 >"$OUT"
    awk -v file="${HISTORY##*/}" 'index($0, file) && $NF > 0 { sum += $NF } END { exit sum > 400000 }' trace ||
        fail "$(grep "${HISTORY##*/}" trace)"
}

@test "hist-stats: nothing to count" {
    : >"$HISTORY"
    run_expect 0 hist-stats
    stdout_is $'total\t0\t0\t0\t0\t0'
    run_expect 0 hist-stats --json
    stdout_json '.messages, has("first"), (.rows | length)' 0 false 0
    NO_COLOR=1 run_expect 0 on_tty --raw hist-stats --quiet
    stdout_is 'day    messages  sessions  tokens in  out  unknown' 'total         0         0          0    0        0'
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
    stdout_line 1 'day         messages  sessions  tokens in  out  unknown'
    stdout_line 2 'total              5         2         17    6        1'
    stdout_matches '^2024-12-29 +2 +1 +10 +4 +0  █+$' '^2025-01-02 +1 +1 +0 +0 +1  █+▌?$'
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

# ---- costs

# Answers on two days: two that the prices below know, one whose server reported its cost, and one of another model.
answers() {
    put a user one 2024-12-29T23:30:00Z
    put a assistant two 2024-12-29T23:30:05Z '{"model":"big-1","provider":"p","usage":{"input_tokens":1000,"output_tokens":100,"cache_read_tokens":600,"cache_write_tokens":200,"reasoning_tokens":50}}'
    put b assistant three 2024-12-30T08:00:00Z '{"model":"small","provider":"p","usage":{"input_tokens":7,"output_tokens":2}}'
    put b assistant four 2024-12-30T08:00:01Z '{"model":"router","provider":"q","usage":{"input_tokens":70,"output_tokens":20,"cost":0.0000125}}'
    put b assistant five 2024-12-30T08:00:02Z '{"model":"other","provider":"q","usage":{"input_tokens":30,"output_tokens":5}}'
    put b assistant six 2024-12-30T08:00:03Z '{"model":"big-1","provider":"p"}'
}

@test "hist-stats: --cost: reported, computed and unknown are separate" {
    prices 'big-* 3 0.3 3.75 15 USD' 'p:small 0.15 - - 0.6 USD'
    answers
    # 200 * 3 + 600 * 0.3 + 200 * 3.75 + 100 * 15 millionths; 7 * 0.15 + 2 * 0.6 millionths
    run_expect 0 hist-stats --cost
    stdout_is $'total\tUSD\t0.00304475\t0.0000125\t0.00303225\t3\t1199' $'total\tunknown\t-\t-\t-\t2\t35' \
        $'2024-12-29\tUSD\t0.00303\t0\t0.00303\t1\t1100' \
        $'2024-12-30\tUSD\t0.00001475\t0.0000125\t0.00000225\t2\t99' $'2024-12-30\tunknown\t-\t-\t-\t2\t35'
    stderr_empty
    run_expect 0 hist-stats --cost --by model
    stdout_is $'total\tUSD\t0.00304475\t0.0000125\t0.00303225\t3\t1199' $'total\tunknown\t-\t-\t-\t2\t35' \
        $'big-1\tUSD\t0.00303\t0\t0.00303\t1\t1100' $'big-1\tunknown\t-\t-\t-\t1\t0' \
        $'router\tUSD\t0.0000125\t0.0000125\t0\t1\t90' $'small\tUSD\t0.00000225\t0\t0.00000225\t1\t9' \
        $'other\tunknown\t-\t-\t-\t1\t35'
    run_expect 0 hist-stats --cost --model small --by month
    stdout_is $'total\tUSD\t0.00000225\t0\t0.00000225\t1\t9' $'2024-12\tUSD\t0.00000225\t0\t0.00000225\t1\t9'
    run_expect 0 hist-stats --cost --until 2024-12-29 --by provider -n 1
    stdout_is $'total\tUSD\t0.00303\t0\t0.00303\t1\t1100' $'p\tUSD\t0.00303\t0\t0.00303\t1\t1100'
    run_expect 0 hist-stats --cost --by role
    stdout_line 3 $'assistant\tUSD\t0.00304475\t0.0000125\t0.00303225\t3\t1199'
    lines_are 4
}

@test "hist-stats: --cost without prices counts the costs that servers reported, and the rest as unknown" {
    answers
    run_expect 0 hist-stats --cost --by provider
    stdout_is $'total\tUSD\t0.0000125\t0.0000125\t0\t1\t90' $'total\tunknown\t-\t-\t-\t4\t1144' \
        $'q\tUSD\t0.0000125\t0.0000125\t0\t1\t90' $'q\tunknown\t-\t-\t-\t1\t35' $'p\tunknown\t-\t-\t-\t3\t1109'
    run_expect 0 hist-stats --cost -r user
    stdout_is $'total\tunknown\t-\t-\t-\t0\t0'
}

@test "hist-stats: --cost --json" {
    prices 'big-* 3 0.3 3.75 15 USD' 'small 1 1 1 1 EUR'
    answers
    run_expect 0 hist-stats --cost --json --by model
    lines_are 1
    # As text, because jq rounds numbers.
    grep -qF '"costs":[{"currency":"USD","cost":0.0030425,"reported":0.0000125,"computed":0.00303,"answers":2,"tokens":1190},{"currency":"EUR","cost":0.000009,"reported":0,"computed":0.000009,"answers":1,"tokens":9}],' "$OUT" ||
        fail 'not these costs'
    stdout_json '.answers_of_unknown_cost, .tokens_of_unknown_cost, .messages, .input_tokens' 2 35 6 1107
    stdout_json '.rows[] | "\(.key) \(.costs | map(.currency) | join(",")) \(.answers_of_unknown_cost)"' \
        'big-1 USD 1' 'router USD 0' 'small EUR 0' 'other  1'
    run_expect 0 hist-stats --json
    stdout_json 'has("costs"), (.rows[0] | has("costs"))' false false
}

@test "hist-stats: --cost: sums are exact" {
    local i
    prices 'm 0.1 - - 0.2 USD'
    for i in 1 2 3; do put s assistant x 2024-12-29T08:00:00Z '{"model":"m","usage":{"input_tokens":1,"output_tokens":0}}'; done
    put s assistant x 2024-12-29T08:00:00Z '{"model":"n","usage":{"input_tokens":1,"output_tokens":0,"cost":0.1}}'
    put s assistant x 2024-12-29T08:00:00Z '{"model":"n","usage":{"input_tokens":1,"output_tokens":0,"cost":0.2}}'
    run_expect 0 hist-stats --cost --by session
    stdout_line 1 $'total\tUSD\t0.3000003\t0.3\t0.0000003\t5\t5'
}

@test "hist-stats: --cost: a file of prices with an error is named with its line" {
    answers
    prices '# MODEL' 'big-* 3 USD'
    run_expect 2 hist-stats --cost
    stdout_empty
    stderr_is "hist-stats: cannot use '$HOME/.config/chathist/prices': line 2 has not six words: MODEL, prices of a million tokens of INPUT, CACHED-INPUT, CACHE-WRITE and OUTPUT, and CURRENCY"
    prices 'big-* 3 x 1 1 USD'
    run_expect 2 hist-stats --cost
    stderr_is "hist-stats: cannot use '$HOME/.config/chathist/prices': line 1: bad price 'x': a number with a point and at most 6 decimals is expected"
    # It is read for --cost only.
    run_expect 0 hist-stats
    rm "$HOME/.config/chathist/prices"
    echo 'prices = ~/mine' >"$HOME/.config/chathist/config"
    run_expect 2 hist-stats --cost
    stderr_is "hist-stats: cannot read '$HOME/mine': No such file or directory"
    echo 'q:* 1 1 1 1 CHF' >"$HOME/mine"
    run_expect 0 hist-stats --cost --by provider
    stdout_line 2 $'total\tCHF\t0.000035\t0\t0.000035\t1\t35'
    echo 'prices = mine' >"$HOME/.config/chathist/config"
    run_expect 2 hist-stats --cost
    stderr_is "hist-stats: bad value 'mine' for prices in '$HOME/.config/chathist/config', line 1: a path that begins with '/' or '~/' is expected"
    run_expect 2 hist-stats --cost --by tool
    stderr_is "hist-stats: --cost counts answers, and --by tool counts calls (see 'hist-stats --help')"
}

@test "hist-stats: --cost on a terminal has totals and a bar for each currency" {
    prices 'big-* 3 0.3 3.75 15 USD' 'small 1 1 1 1 EUR'
    answers
    NO_COLOR=1 COLUMNS=80 run_expect 0 on_tty hist-stats --cost --by model
    stdout_matches '^model +cost +reported +computed +answers  tokens' \
        '^total +USD +0\.0030425 +0\.0000125 +0\.00303 +2 +[0-9]+' '^total +EUR +0\.000009 +0 +0\.000009 +1 +[0-9]+' \
        '^total +unknown +- +- +- +2 +35' '^big-1 +USD +0\.00303 +0 +0\.00303 +1 +[0-9]+  .*█' \
        '^small +EUR +0\.000009 +0 +0\.000009 +1 +[0-9]+  .*█' '^other +unknown +- +- +- +1 '
}

@test "hist-stats: the prices in examples/ are valid" {
    mkdir -p "$HOME/.config/chathist"
    cp "$ROOT/examples/prices" "$HOME/.config/chathist/prices"
    put s assistant x '' '{"model":"gpt-4o-mini-2024-07-18","provider":"openai","usage":{"input_tokens":1000000,"output_tokens":1000000,"cache_read_tokens":500000}}'
    run_expect 0 hist-stats --cost --by session
    stdout_line 1 $'total\tUSD\t0.7125\t0\t0.7125\t1\t2000000'
}

@test "hist-stats: --prices reads the file of LiteLLM as it is, and the total is what arithmetic gives" {
    local map=$FIXTURES/prices/litellm.json
    put s assistant a '' '{"model":"gpt-5.4","provider":"openai","usage":{"input_tokens":1000,"output_tokens":100,"cache_read_tokens":700}}'
    put s assistant b '' '{"model":"gpt-5.4-2026-03-05","provider":"openai-responses","usage":{"input_tokens":1000,"output_tokens":100,"raw":{"service_tier":"priority"}}}'
    put s assistant c '' '{"model":"gpt-5.4","provider":"openai","usage":{"input_tokens":1000,"output_tokens":100,"raw":{"service_tier":"scale"}}}'
    put s assistant d '' '{"model":"claude-sonnet-4-5","provider":"anthropic","usage":{"input_tokens":1100,"output_tokens":40,"cache_write_tokens":1097,"raw":{"cache_creation":{"ephemeral_1h_input_tokens":1000},"server_tool_use":{"web_search_requests":2}}}}'
    put s assistant e '' '{"model":"deepseek-chat","provider":"deepseek","usage":{"input_tokens":1000,"output_tokens":100}}'
    put s assistant f '' '{"model":"gpt-5.4","provider":"other","usage":{"input_tokens":1000,"output_tokens":100}}'
    put s assistant g '' '{"model":"deepseek-chat","provider":"deepseek","usage":{"input_tokens":1,"output_tokens":1,"raw":{"cost_in_usd_ticks":37756000}}}'
    # (300*2.5 + 700*0.25 + 100*15) + (1000*5 + 100*30) + (3*3 + 97*3.75 + 1000*6 + 40*15 + 20000) + (1000*1 + 100*2)
    # millionths, and 0.0037756 that the server reported
    run_expect 0 hist-stats --prices "$map" --by session
    stdout_line 1 $'total\tUSD\t0.04237335\t0.0037756\t0.03859775\t5\t4442'
    stdout_line 2 $'total\tunknown\t-\t-\t-\t2\t2200'
    # The file of the configuration may be it, too.
    mkdir -p "$HOME/.config/chathist"
    cp "$map" "$HOME/.config/chathist/prices"
    run_expect 0 hist-stats --cost --by session
    stdout_line 1 $'total\tUSD\t0.04237335\t0.0037756\t0.03859775\t5\t4442'
    head -c 100 "$map" >part
    run_expect 2 hist-stats --prices part
    stderr_is "hist-stats: cannot use 'part': it is not JSON"
    run_expect 2 hist-stats --prices nowhere
    stderr_is "hist-stats: cannot open 'nowhere': No such file or directory"
    run_expect 2 hist-stats --prices "$map" --by tool
    stdout_empty
}
