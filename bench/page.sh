#!/usr/bin/env bash
# The HTML page of MESSAGES (10000) messages in Chromium: the milliseconds of scripts, and of all that
# its thread did, to open it and to search in it. Exit status 1 when the scripts of one take more than
# BAR (200).
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${BIN:-${BUILD:-$PWD/build/release}}
messages=${MESSAGES:-10000} bar=${BAR:-200}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
jq -cn --argjson n "$messages" 'range(0; $n) | {id: "m\(.)", session_id: "s\(. / 5000 | floor)",
    timestamp: (1719500000 + . | todate | sub("Z"; ".000000+00:00")),
    role: (if . % 2 == 0 then "user" else "assistant" end),
    content: "Number \(.) of many, and **some** more words"}' >"$tmp/history.jsonl"
"$BIN/hist-export" --history "$tmp/history.jsonl" --all-sessions -o "$tmp/page.html"

status=0
tests/tools/in-browser "$tmp/page.html" --cost --key / --type "number $((messages / 2 - 1))" \
    --wait 'document.querySelector("mark")' --cost >"$tmp/costs" || status=$?
if [ "$status" = 77 ]; then
    echo 'page: skipped, there is no Chromium here'
    exit 0
elif [ "$status" != 0 ]; then
    exit "$status"
fi

# A line `script=N task=N` for each.
printf '%-16s %10s %10s\n' 'page: to' script/ms task/ms
paste -d ' ' <(printf '%s\n' open search) "$tmp/costs" | tr '=' ' ' | awk -v bar="$bar" '
    { is_over = ($3 > bar)
      over = over || is_over
      printf "%-16s %10d %10d%s\n", $1, $3, $5, is_over ? "  over " bar : "" }
    END { exit (over || NR != 2) }'
