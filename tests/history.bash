# shellcheck shell=bash
#
# history: for .bats files that have loaded `helper` and whose tests all use one explicit history, $HISTORY.

setup() {
    sandbox
    use_history
}
