#!/usr/bin/env bats
#
# hist-sync with OpenSSH's server, from which it is cut off in the middle.

load ../helper
load ../servers

# equal FILE FILE: both have the same lines, each once.
equal() {
    sort "$1" >lines.1
    sort "$2" >lines.2
    same "$1" lines.1 lines.2 || return 1
    run_expect 0 uniq -d lines.1
    stdout_empty
}

@test "sync: over ssh, with clocks ten years apart, after connections that were cut" {
    use_sshd
    use_history
    hist_lines near 3000 >history.jsonl
    mkdir -p "$FAR/.local/share/aicoder"
    far=$FAR/far.jsonl
    {
        hist_line far user 'from the future' 2036-01-01T00:00:00+00:00
        hist_line near assistant 'from the past' 2016-01-01T00:00:00+00:00
        hist_lines far 3000
    } >"$far"
    cat history.jsonl "$far" | sort >wanted
    for bytes in 2000 4000 6000 15000 40000; do
        SSH_CUT_TO=$bytes run_expect 4 hist-sync -q --name work "ssh://anyhost$far"
        SSH_CUT_FROM=$bytes run_expect 4 hist-sync -q --name work "ssh://anyhost$far"
        # Whatever has arrived is whole.
        run_expect 0 hist-check
        run_expect 0 hist-check --history "$far"
    done
    run_expect 0 hist-sync --name work "ssh://anyhost$far"
    stderr_empty
    equal history.jsonl "$far"
    same 'all lines' wanted lines.1
    # The order of each source is kept, whatever the times say.
    jq -r 'select(.session_id == "far") | .content' history.jsonl >got
    jq -r 'select(.session_id == "far") | .content' "$far" >far.order
    same 'the order' far.order got
    remember history.jsonl
    run_expect 0 hist-sync --name work "ssh://anyhost$far"
    stdout_empty
    unchanged history.jsonl
    hist-delete --force -q near
    run_expect 1 hist-sync -q --name work "ssh://anyhost$far"
    stderr_has "hist-sync failed on 'ssh://anyhost"
    mkdir -p "$FAR/.config/chathist"
    echo 'accept_deletions = on' >"$FAR/.config/chathist/config"
    run_expect 0 hist-sync -q --name work "ssh://anyhost$far"
    equal history.jsonl "$far"
    run_expect 1 grep -c '"near"' "$far"
}

@test "sync: only what differs travels over ssh, and compressed" {
    use_sshd
    use_history
    hist_lines common 20000 >history.jsonl
    far=$FAR/far.jsonl
    { cat history.jsonl && hist_lines far 1000; } >"$far"
    new=$(tail -n 1000 "$far" | wc -c)
    SSH_COUNT=1 run_expect 0 hist-sync -q --name work "ssh://anyhost$far"
    equal history.jsonl "$far"
    sent=$(wc -c <"$BATS_TEST_TMPDIR/sshd/sent") received=$(wc -c <"$BATS_TEST_TMPDIR/sshd/received")
    # A line of these has only 138 bytes, and finding it costs as much. All lines would be 20 times that. Since OpenSSH
    # 10.6 compression uses Huffman codes alone.
    ((sent < new && received < new * 3 / 2)) || fail "$sent bytes sent and $received received, for lines of $new bytes"
}
