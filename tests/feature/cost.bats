#!/usr/bin/env bats
#
# What an answer cost: reported by the server, or computed from the user's prices, in chat and hist-stats.

load ../helper
load ../history
load ../wire

@test "cost: -u and the usage event have the cost that the server reported, and compute none" {
    prices '* 1 1 1 1 EUR'
    start_llm openai/openrouter openai/openrouter
    run_expect 0 chat -N -u hello
    stderr_is 'input_tokens=11 output_tokens=9 cost=0.0001'
    run_expect 0 chat -N --json hello
    stdout_json 'select(.type == "usage") | del(.type) | tojson' '{"input_tokens":11,"output_tokens":9,"cost":0.0001}'
    run_expect 0 hist-stats --cost --by role
    stdout_is $'total\tUSD\t0.0002\t0.0002\t0\t2\t40' $'assistant\tUSD\t0.0002\t0.0002\t0\t2\t40'
}

@test "cost: a cost that is not reported is computed from the prices, cached tokens once" {
    prices 'openai:test-* 10 1 - 50 USD'
    start_llm openai/usage-last-chunk openai/usage-last-chunk openai/normal
    # 3 * 10 + 8 * 1 + 2 * 50 millionths
    run_expect 0 chat -N -u hello
    stderr_is 'input_tokens=11 output_tokens=2 cache_read_tokens=8 computed_cost=0.000138 currency=USD'
    run_expect 0 chat -N --json hello
    grep -qF '"cache_read_tokens":8,"computed_cost":0.000138,"currency":"USD"}' "$OUT" || fail 'no such usage'
    run_expect 0 "$BIN/tests/tools/check-schema" "$ROOT/docs/events.schema.json" "$OUT"
    # A server that reports no tokens.
    run_expect 0 chat -N -u hello
    stderr_is 'input_tokens=unknown output_tokens=unknown'
}

@test "cost: a turn of which one response reports no cost has none" {
    put_tool f 'echo r'
    start_llm --call 'f {}' openai/openrouter
    run_expect 0 chat -N -u -T ./f --yes hello
    stderr_has 'cost=unknown'
    stderr_lacks 'cost=0.0001'
}

@test "cost: a server of Anthropic's form counts cached tokens beside the input" {
    prices 'anthropic:* 10 1 12.5 50 USD'
    FAMILY=anthropic start_family anthropic/usage-cache
    # 3 * 10 + 500 * 1 + 40 * 12.5 + 12 * 50 millionths
    run_expect 0 chat -N -u hello
    stderr_is 'input_tokens=543 output_tokens=12 cache_read_tokens=500 cache_write_tokens=40 computed_cost=0.00163 currency=USD'
    run_expect 0 hist-stats --cost --by provider
    stdout_line 2 $'anthropic\tUSD\t0.00163\t0\t0.00163\t1\t555'
}

@test "cost: a bad file of prices ends chat before anything is sent, with -u and --json only" {
    prices 'nothing'
    use_echo
    for option in -u --json; do
        run_expect 2 chat -N $option hello
        grep -qF "cannot use '$HOME/.config/chathist/prices': line 1 has not six words" "$ERR"
    done
    [[ ! -e $HISTORY ]]
    run_expect 0 chat -N hello
    stderr_empty
}
