#!/usr/bin/env bats
#
# hist-stats: messages, sessions and tokens counted.

load ../helper
load ../history

# What is before them is not read, once there is an index.
@test "hist-stats: --newest reads the end of a history" {
    hist_lines s 4000 >"$HISTORY"
    run_expect 0 hist-stats --newest 10
    traced -o trace -y -e trace=pread64,read hist-stats --newest 10 >"$OUT"
    awk -v file="${HISTORY##*/}" 'index($0, file) && $NF > 0 { sum += $NF } END { exit sum > 400000 }' trace ||
        fail "$(grep "${HISTORY##*/}" trace)"
}

@test "hist-stats: the page fits a telephone, loads nothing, and axe-core finds no fault (AXE=.../axe.min.js)" {
    local -a axe=()
    hist_lines s 40 >"$HISTORY"
    hist_line s assistant x '' '{"model":"some-model-with-a-rather-long-name-70b","usage":{"cost":0.5},"tool_calls":[{"id":"1","name":"ls","args":{}}]}' >>"$HISTORY"
    run_expect 0 hist-stats -f html -o page.html
    [[ -z ${AXE:-} ]] || axe=(--run "$AXE" --run "$TESTS/fixtures/page/axe.js")
    for look in '--size 1280x800' '--dark --size 390x844'; do
        # shellcheck disable=SC2086
        "$TESTS/tools/in-browser" $look page.html --eval 'document.documentElement.scrollWidth <= innerWidth' "${axe[@]}" >got || {
            [[ $? == 77 ]] && skip 'no Chromium'
            fail "$(cat got)"
        }
        grep -vx -e true -e 'enough rules' got >left || :
        [[ ! -s left ]] || fail "$(cat left)"
        [[ -z ${AXE:-} ]] || grep -qx 'enough rules' got
    done
}
