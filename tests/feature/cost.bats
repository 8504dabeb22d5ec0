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

# usage_of WIRE HEAD [EVENT]...: what is stored of the usage of an answer that is made of these events.
usage_of() {
    local wire=$1 head=$2
    shift 2
    { printf '# made here\n%s\n\n' "${head:-status: 200}" && printf 'data: %s\n\n' "$@"; } >usage.http
    start_llm ./usage.http
    export ANTHROPIC_BASE_URL=http://127.0.0.1:$LLM_PORT ANTHROPIC_API_KEY=k
    run_expect 0 chat -N -m "$wire:m" hello
    run_expect 0 hist-show --json last
    jq -c 'select(.role == "assistant") | .usage' "$OUT" >stored
}

@test "cost: what the server reports of its usage is stored beside the counts, by every wire, with the tier and the cost in any form" {
    local end='{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}'
    local tokens='"prompt_tokens":10,"completion_tokens":1' stored='{"input_tokens":10,"output_tokens":1'
    local -a cases=(
        # what the last chunk has beside the usage | more members of the usage | the cost | raw
        ',"service_tier":"flex"' '' '' "{$tokens,\"service_tier\":\"flex\"}"
        '' ',"cost":0.5,"is_byok":false,"cost_details":{"upstream_inference_cost":0.5}' ',"cost":0.5' ''
        '' ',"cost":0.0005,"is_byok":true,"cost_details":{"upstream_inference_cost":0.0123}' ',"cost":0.0128' ''
        '' ',"cost_in_usd_ticks":37756000' ',"cost":0.0037756' ''
        '' ',"cost":{"input_tokens_cost":0.1,"total_cost":0.3}' ',"cost":0.3' ''
        ',"_hidden_params":{"response_cost":0.25,"api_base":"u"}' '' ',"cost":0.25' "{$tokens,\"response_cost\":0.25}"
        ',"_hidden_params":{"response_cost":0}' '' '' "{$tokens,\"response_cost\":0}"
        '' ',"prompt_tokens_details":{"audio_tokens":null},"x":null,"service_tier":null' '' \
        "{$tokens,\"prompt_tokens_details\":{\"audio_tokens\":null}}"
    )
    for ((i = 0; i < ${#cases[@]}; i += 4)); do
        usage_of openai '' "$end" "{\"choices\":[]${cases[i]},\"usage\":{$tokens${cases[i + 1]}}}" '[DONE]'
        is "usage $i" stored "$stored${cases[i + 2]},\"raw\":${cases[i + 3]:-{$tokens${cases[i + 1]}\}}}"
    done
    # The head of LiteLLM, whose cost is 0 for a model that it does not know.
    usage_of openai 'header: X-LiteLLM-Response-Cost: 0.125' "$end" "{\"choices\":[],\"usage\":{$tokens}}" '[DONE]'
    is head stored "$stored,\"cost\":0.125,\"raw\":{$tokens,\"response_cost\":0.125}}"
    # Groq and Moonshot report the usage elsewhere.
    usage_of openai '' "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"x_groq\":{\"usage\":{$tokens}}}" '[DONE]'
    is groq stored "$stored,\"raw\":{$tokens}}"
    usage_of openai '' "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\",\"usage\":{$tokens,\"cached_tokens\":4}}]}" '[DONE]'
    is moonshot stored "$stored,\"cache_read_tokens\":4,\"raw\":{$tokens,\"cached_tokens\":4}}"

    usage_of openai-responses '' '{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","action":{"type":"search"}}}' \
        '{"type":"response.output_item.done","output_index":1,"item":{"type":"web_search_call","action":{"type":"open_page"}}}' \
        '{"type":"response.output_text.delta","output_index":2,"delta":"x"}' \
        '{"type":"response.completed","response":{"status":"completed","service_tier":"priority","usage":{"input_tokens":10,"output_tokens":1,"cost_in_usd_ticks":5000000000}}}'
    is responses stored "$stored,\"cost\":0.5,\"raw\":{\"web_search_call\":1,\"input_tokens\":10,\"output_tokens\":1,\"cost_in_usd_ticks\":5000000000,\"service_tier\":\"priority\"}}"

    usage_of anthropic '' '{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":5},"cache_creation_input_tokens":5,"service_tier":"standard"}}}' \
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}' \
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1,"server_tool_use":{"web_search_requests":2},"cache_creation":null}}' \
        '{"type":"message_stop"}'
    is anthropic stored '{"input_tokens":15,"output_tokens":1,"cache_write_tokens":5,"raw":{"input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":5},"cache_creation_input_tokens":5,"service_tier":"standard","output_tokens":1,"server_tool_use":{"web_search_requests":2}}}'
    run_expect 0 "$BIN/tests/tools/check-schema" "$ROOT/docs/history-line.schema.json" "$HISTORY"
}
