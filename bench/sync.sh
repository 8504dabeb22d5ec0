#!/usr/bin/env bash
# Measures hist-sync: between two histories, and with PostgreSQL; leaves out what needs a server that is not
# installed. Prints the best of ROUNDS (3) rounds. Exit status 1 if a value exceeds its bar, 2 if messages were lost.
#
#   bench/sync.sh [ssh] [postgres]     both, if none is named
#
# ssh: two histories of SIZE (1G) that differ in 1,000 lines. Both sides and OpenSSH's server run on this machine, so
# the times are those of all together; the bytes are those that ssh sends and receives. Of `ssh`, a connection alone is
# measured.
#   the first meeting             2 s, 1 MB
#   new lines after that          2 s, 1 MB
#   nothing is new                0.2 s
# postgres: MESSAGES (1000000) are pushed into an empty database, and pulled into an empty history, which must then
# have the same lines. In turns of 50,000 messages, psql runs the statements of the same push on another database.
#   push                          0.7 x the speed of psql
#   searches                      3 s, and 1.5 x the same query in psql
# CORPUS names another program that makes a history: `CORPUS SIZE FILE`.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-$PWD/build/release}
BIN=${BIN:-$BUILD}
corpus=${CORPUS:-$BUILD/bench/corpus} size=${SIZE:-1G} rounds=${ROUNDS:-3} messages=${MESSAGES:-1000000}
parts=" ${*:-ssh postgres} "

tmp=$(mktemp -d)
server=
trap 'kill "$server" 2>/dev/null || :; wait; rm -rf "$tmp"' EXIT
export PATH=$BIN:$PATH LC_ALL=C HOME=$tmp/near TIMEFORMAT=%R
unset CHAT_REMOTE CHAT_HISTORY CHAT_SESSION "${!PG@}" "${!XDG_@}"
mkdir "$tmp/near" "$tmp/far"
over=0

# row NAME VALUE UNIT BAR: prints a value and its bar (`-`: none).
row() {
    awk -v name="$1" -v value="$2" -v unit="$3" -v bar="$4" 'BEGIN {
        slow = bar != "-" && value + 0 > bar + 0
        printf "%-36s %12s%s %-5s %s\n", name, value, slow ? "!" : " ", unit, bar == "-" ? "" : "bar " bar
        exit slow }' || over=1
}

# seconds COMMAND...: runs a command, whose output goes to `said`. Sets `took`.
seconds() {
    took=$({ time "$@" >"$tmp/said" 2>&1; } 2>&1) || {
        cat "$tmp/said" >&2
        exit 2
    }
}

# ---- two histories

declare -A best bytes
# keep NAME: keeps the best time.
keep() {
    if [[ -z ${best[$1]-} || $(awk -v a="$took" -v b="${best[$1]}" 'BEGIN { print a < b }') == 1 ]]; then
        best[$1]=$took
    fi
}

# meet NAME: synchronises both; keeps the best time for NAME, and its bytes.
meet() {
    rm -f "$tmp/sshd"/{sent,received}
    SSH_COUNT=1 seconds hist-sync --name bench --history "$tmp/near/h" "ssh://far$tmp/far/h"
    keep "$1"
    bytes[$1]=$(cat "$tmp/sshd"/{sent,received} | wc -c)
}

measure_ssh() {
    local i step
    tests/tools/sshd "$tmp/sshd" "HOME=$tmp/far" "PATH=$PATH" || return 0
    export PATH=$tmp/sshd/bin:$PATH
    "$corpus" "$size" "$tmp/all"
    # 500 lines are missing here and 500 there, and there are 500 for each side in each round.
    tail -n $((rounds * 1000)) "$tmp/all" >"$tmp/new"
    step=$(($(wc -l <"$tmp/all") / 500))
    awk -v step="$step" 'NR % step != 1' "$tmp/all" >"$tmp/near/first"
    awk -v step="$step" 'NR % step != 2' "$tmp/all" >"$tmp/far/first"
    rm "$tmp/all"
    for ((i = 0; i < rounds; i++)); do
        rm -rf "$tmp"/{near,far}/{h,h.deleted,.local}
        cp "$tmp/near/first" "$tmp/near/h"
        cp "$tmp/far/first" "$tmp/far/h"
        sync "$tmp/near/h" "$tmp/far/h"
        meet first
    done
    rm "$tmp"/*/first
    for ((i = 0; i < rounds; i++)); do
        # The ids are new, so that the lines are.
        sed -n "$((1000 * i + 1)),$((1000 * i + 500))p" "$tmp/new" | sed "s/^{\"id\": *\"/&near-/" >>"$tmp/near/h"
        sed -n "$((1000 * i + 501)),$((1000 * i + 1000))p" "$tmp/new" | sed "s/^{\"id\": *\"/&far-/" >>"$tmp/far/h"
        meet new
        meet none
        seconds ssh far true
        keep ssh
    done
    sort "$tmp/near/h" | cksum >"$tmp/near/sum"
    sort "$tmp/far/h" | cksum >"$tmp/far/sum"
    cmp "$tmp/near/sum" "$tmp/far/sum" || exit 2
    printf '%s, two histories\n' "$size"
    row 'first meeting, 1,000 lines differ' "${best[first]}" s 2
    row '' "$(awk -v n="${bytes[first]}" 'BEGIN { print n / 1e6 }')" MB 1
    row '1,000 new lines' "${best[new]}" s 2
    row '' "$(awk -v n="${bytes[new]}" 'BEGIN { print n / 1e6 }')" MB 1
    row 'nothing new' "${best[none]}" s 0.2
    row '' "$(awk -v n="${bytes[none]}" 'BEGIN { print n / 1e6 }')" MB -
    row 'ssh alone' "${best[ssh]}" s -
    rm "$tmp"/{near,far}/h
}

# ---- PostgreSQL

# sql DATABASE [ARGUMENT]...
sql() {
    psql -qXAt -v ON_ERROR_STOP=1 -U postgres -d "$1" "${@:2}"
}

# statement NAME: prints an SQL text of the source.
statement() {
    python3 -S - "$1" <<'END'
import ast, re, sys
source = re.sub(r"/\*.*?\*/", "", open("lib/sync/postgres_sync.c").read(), flags=re.S)
text = re.search(r"char %s\[\] =(.*?\");" % sys.argv[1], source, re.S)[1]
print("".join(ast.literal_eval(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"', text)))
END
}

# reference FROM: writes the statements of the push of all rows after FROM, batch by batch, for psql.
reference() {
    local name first last
    {
        echo 'SET search_path = pg_catalog, pg_temp;'
        echo "$(statement BATCH_TABLE);"
        echo "PREPARE numbers AS $(statement TAKE_NUMBERS);"
        echo "PREPARE lines AS $(statement INSERT_LINES);"
        echo "PREPARE conflicts AS $(statement FIND_CONFLICTS);"
    } >"$tmp/psql"
    # A batch is a transaction.
    sql pushed -c "SELECT min(number), max(number) FROM chathist.messages WHERE number > $1 GROUP BY xmin::text ORDER BY 1" >"$tmp/batches"
    while IFS='|' read -r first last; do
        name=$tmp/batch.$first
        sql pushed -c "\\copy (SELECT (number - $first + 1)::integer, session, id, mark, role, stamp, line, folded FROM chathist.messages WHERE number BETWEEN $first AND $last ORDER BY number) TO '$name' (FORMAT binary)"
        cat >>"$tmp/psql" <<END
BEGIN;
EXECUTE numbers($((last - first + 1)));
\\copy pg_temp.chathist_batch FROM '$name' (FORMAT binary)
EXECUTE lines('own', $((first - 1)));
EXECUTE conflicts('own');
COMMIT;
END
    done <"$tmp/batches"
}

measure_push() {
    local here there all=0 push=0 psql=0 slice=50000
    "$corpus" "$((messages * 1300))" "$tmp/all"
    head -n "$messages" "$tmp/all" >"$tmp/lines"
    rm "$tmp/all"
    while ((all < messages)); do
        tail -n +$((all + 1)) "$tmp/lines" | head -n "$slice" >>"$tmp/near/h" || :
        seconds hist-sync --name own --history "$tmp/near/h" push "$place/pushed?host=$PGHOST"
        here=$took
        reference "$all"
        seconds sql psql -f "$tmp/psql"
        there=$took
        rm "$tmp"/batch.*
        all=$((all + slice))
        push=$(awk -v a="$push" -v b="$here" 'BEGIN { print a + b }')
        psql=$(awk -v a="$psql" -v b="$there" 'BEGIN { print a + b }')
        [[ ! -t 2 ]] || echo "$all: $here s, psql $there s" >&2
    done
    [[ $(sql psql -c 'SELECT count(*) FROM chathist.messages') == "$messages" ]] || exit 2
    row "push of $messages messages" "$push" s -
    row 'the same statements in psql' "$psql" s -
    row '  ratio of the times' "$(awk -v a="$push" -v b="$psql" 'BEGIN { print a / b }')" '' "$(awk 'BEGIN { print 1 / 0.7 }')"
    row 'the lines' "$(($(wc -c <"$tmp/lines") / 1000000))" MB -
    row 'the database' "$(($(sql pushed -c "SELECT pg_database_size('pushed')") / 1000000))" MB -
}

measure_pull() {
    seconds hist-sync --name own --history "$tmp/far/h" pull "$place/pushed?host=$PGHOST"
    row 'pull into an empty history' "$took" s -
    sort "$tmp/lines" >"$tmp/sorted"
    sort "$tmp/far/h" | cmp - "$tmp/sorted" || exit 2
    seconds hist-sync --name own --history "$tmp/far/h" "$place/pushed?host=$PGHOST"
    row 'nothing new' "$took" s 0.2
}

# search TEXT: prints the median times of the same search in three programs: hist-search asks hist-sync, and writes
# what it says to a file, which it searches as if it were a history.
search() {
    local here there whole
    local query="SELECT line FROM chathist.messages WHERE owner = current_user AND history = 'own' AND role <> 'title'
        AND strpos(folded, '$1') > 0 ORDER BY stamp DESC, number DESC"
    hist-sync --name own --search "$1" "$place/pushed?host=$PGHOST" >"$tmp/here"
    sql pushed -c "$query" >"$tmp/there"
    cmp "$tmp/here" "$tmp/there" || exit 2
    cd / # not in a repository, whose history would have another name
    export CHAT_REMOTE="$place/pushed?host=$PGHOST"
    [[ $(hist-search --remote "$1" | wc -l) == $(wc -l <"$tmp/here") ]] || exit 2
    "$BUILD/bench/spawn" "$((10 * rounds + 1))" 1 \
        hist-sync --name own --search "$1" "$place/pushed?host=$PGHOST" -- \
        psql -qXAt -U postgres -d pushed -c "$query" -- \
        hist-search --remote "$1" >"$tmp/times"
    { read -r here _; read -r there _; read -r whole _; } <"$tmp/times"
    unset CHAT_REMOTE
    cd "$OLDPWD"
    row "search '$1', $(wc -l <"$tmp/here") lines" "$(awk -v a="$here" 'BEGIN { print a / 1e6 }')" s 3
    row '  hist-sync over psql' "$(awk -v a="$here" -v b="$there" 'BEGIN { print a / b }')" '' 1.5
    row '  hist-search --remote over psql' "$(awk -v a="$whole" -v b="$there" 'BEGIN { print a / b }')" '' 1.5
}

measure_postgres() {
    local text line=
    # The server may run as another user, who must be able to enter the directory.
    chmod 755 "$tmp"
    exec {ready}< <(exec tests/tools/postgres "$tmp/postgres" -c shared_buffers=1GB -c max_wal_size=8GB 2>&1)
    server=$!
    read -r -t 120 -u "$ready" line || :
    [[ $line == ready ]] || exit 2
    export PGHOST=$tmp/postgres/socket
    place=postgresql://postgres@
    for text in pushed psql; do
        sql postgres -c "CREATE DATABASE $text"
        hist-sync init "$place/$text?host=$PGHOST"
    done
    measure_push
    measure_pull
    for text in ${SEARCHES:-zanzibarquartz flummoxed}; do search "$text"; done
}

[[ $parts != *' ssh '* ]] || measure_ssh
if [[ $parts == *' postgres '* ]]; then
    if tests/tools/postgres --where >/dev/null 2>&1 && type -P psql >/dev/null; then
        measure_postgres
    else
        echo 'PostgreSQL is not installed: not measured'
    fi
fi
exit $over
