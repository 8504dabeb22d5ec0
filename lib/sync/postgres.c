#include "sync/postgres.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#ifndef WITHOUT_POSTGRES
#include <libpq-fe.h>
#endif

#include "chathist/base/json.h"
#include "chathist/base/memory.h"

#ifndef WITHOUT_POSTGRES

/* How long each server of an address may take to answer, in seconds, unless the user says it. */
#define CONNECT_SECONDS "10"
/* COPY data is given to libpq in pieces of this size. */
#define PIECE ((size_t)256 << 10)

struct pg {
    PGconn *conn;
    pg_warn *warn;
    void *arg;
    bool begun;    /* a transaction of pg_begin is open */
    char state[6]; /* SQLSTATE of the last error; empty if the connection failed */
};

/* ---- errors ---- */

/* What an SQLSTATE means to the user, by its beginning. The first that fits is taken.
 * Source: https://www.postgresql.org/docs/current/errcodes-appendix.html */
static const struct {
    const char *state;
    enum err_kind kind;
    const char *hint;
} states[] = {
    {"28", ERR_AUTH, ""},    /* the password is wrong, or the role is unknown */
    {"42501", ERR_AUTH, ""}, /* no permission */
    {"42P01", ERR_USAGE, " (run 'hist-sync init' once for this database)"}, /* no such table */
    {"3F000", ERR_USAGE, " (run 'hist-sync init' once for this database)"}, /* no such schema */
    {"3D000", ERR_USAGE, ""},                                               /* no such database */
    {"0A000", ERR_USAGE, ""},   /* the server is too old, the encoding is wrong */
    {"57014", ERR_TIMEOUT, ""}, /* statement_timeout */
    {"25P03", ERR_TIMEOUT, ""}, /* idle_in_transaction_session_timeout */
    {"08", ERR_NETWORK, ""},
    {"40", ERR_BUSY, ""}, /* deadlock */
    {"53", ERR_BUSY, ""}, /* too many connections, the disk is full */
    {"55", ERR_BUSY, ""}, /* a lock was not free in time */
    {"57", ERR_BUSY, ""}, /* the server starts or ends */
    {"58", ERR_BUSY, ""}, /* input or output of the server failed */
    {"XX", ERR_BUSY, ""},
    {"", ERR_FAILURE, ""},
};

/* Returns the first line of a message of libpq, borrowed from it, without the severity. */
static struct str first_line(const char *message)
{
    static const struct str severities[] = {STR("FATAL:  "), STR("ERROR:  ")};
    struct str rest = str_of(message);
    struct str line = str_trim(str_cut(&rest, '\n'));

    for (size_t i = 0; i < 2; i++)
        if (str_starts(line, severities[i]))
            return str_skip(line, severities[i].n);
    return line;
}

/* Finds `:  SQLSTATE: ` in a message of a connection (libpq has it nowhere else), and sets
 * p->state. */
static void find_state(struct pg *p, const char *message)
{
    p->state[0] = '\0';
    for (const char *at = strstr(message, ":  "); at; at = strstr(at + 1, ":  ")) {
        at += 3;
        if (strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && at[5] == ':') {
            memcpy(p->state, at, 5);
            p->state[5] = '\0';
            return;
        }
    }
}

static int fail_with_message(struct pg *p, struct str message, struct err *e)
{
    size_t i = 0;

    while (!str_starts(str_of(p->state), str_of(states[i].state)))
        i++;
    return err_set(e, states[i].kind, "PostgreSQL: %.*s%s", (int)message.n, message.p,
                   states[i].hint);
}

static int fail_lost(struct pg *p, struct err *e)
{
    struct str message = first_line(PQerrorMessage(p->conn));

    p->state[0] = '\0';
    return err_set(e, ERR_NETWORK, "the connection to PostgreSQL was lost: %.*s", (int)message.n,
                   message.p);
}

static int fail_result(struct pg *p, const PGresult *r, struct err *e)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    size_t n;

    if (!state || !message)
        return fail_lost(p, e);
    n = strnlen(state, sizeof(p->state) - 1);
    memcpy(p->state, state, n);
    p->state[n] = '\0';
    return fail_with_message(p, str_of(message), e);
}

static void pass_notice(void *arg, const PGresult *r)
{
    const struct pg *p = arg;
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

    if (p->warn && severity && message && strcmp(severity, "WARNING") == 0)
        p->warn(p->arg, message);
}

/* ---- connecting ---- */

/* A message about a connection string can quote it, so only its beginning is used. */
static int fail_uri(const char *message, struct err *e)
{
    struct str rest = str_of(message);
    struct str problem = str_trim(str_cut(&rest, '"'));

    while (problem.n > 0 && problem.p[problem.n - 1] == ':')
        problem.n--;
    return err_set(e, ERR_USAGE, "bad address of a database: %.*s", (int)problem.n, problem.p);
}

/* Returns whether a value of the options of a connection has this text. Frees the options. */
static bool has_option(PQconninfoOption *options, const char *keyword, const char *text)
{
    bool found = false;

    for (const PQconninfoOption *o = options; o && o->keyword && !found; o++)
        found = strcmp(o->keyword, keyword) == 0 && o->val && *o->val && strstr(o->val, text);
    PQconninfoFree(options);
    return found;
}

/* Sets *seconds to the time for which each server is waited for, or to NULL if the environment, or
 * a service that the address names, may say it. An address that says it overrides both. */
static int check_uri(const char *place, const char **seconds, struct err *e)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(place, &message);
    int result = options ? 0 : fail_uri(message ? message : "out of memory", e);

    *seconds = CONNECT_SECONDS;
    if (has_option(options, "service", "") || has_option(PQconndefaults(), "connect_timeout", ""))
        *seconds = NULL;
    PQfreemem(message);
    return result;
}

/* An address may name several servers. libpq then has a line for each that could not be used, and
 * lines with advice, which begin with a tab. */
static int fail_connection(struct pg *p, struct err *e)
{
    const char *text = PQerrorMessage(p->conn);
    struct str rest = str_of(text), line = first_line(text);
    struct buf message = BUF_INIT(BUF_SMALL);
    int result;

    find_state(p, text);
    /* libpq reads some values only now: `invalid integer value "pass" for connection option
     * "port"`. */
    if (!p->state[0] && str_starts(line, STR("invalid ")) && str_find(line, STR("\"")))
        return fail_uri(text, e);
    buf_add_str(&message, line);
    (void)str_cut(&rest, '\n');
    while (rest.n > 0) {
        line = str_cut(&rest, '\n');
        if (line.n > 0 && line.p[0] != '\t')
            buf_addf(&message, "; %.*s", ERR_SHOWN(line));
    }
    if (p->state[0])
        result = fail_with_message(p, buf_str(&message), e);
    else
        result = err_set(e, PQconnectionNeedsPassword(p->conn) ? ERR_AUTH : ERR_NETWORK,
                         "cannot connect to PostgreSQL: %s", buf_c(&message));
    buf_release(&message);
    return result;
}

/* Returns 0 if the connection stands, or -1 with *e set. */
static int check_connection(struct pg *p, struct err *e)
{
    /* If a server answered, a verbose message has its SQLSTATE, which libpq tells nowhere else, and
     * only messages of later attempts can be verbose. */
    if (PQstatus(p->conn) != CONNECTION_OK && strstr(PQerrorMessage(p->conn), ":  ")) {
        PQsetErrorVerbosity(p->conn, PQERRORS_VERBOSE);
        PQreset(p->conn);
        PQsetErrorVerbosity(p->conn, PQERRORS_DEFAULT);
    }
    return PQstatus(p->conn) == CONNECTION_OK ? 0 : fail_connection(p, e);
}

/* Prepares the session: names mean the system's own functions, a lock is waited for one minute, and
 * the server ends the session soon if this program is gone. The last setting is new in PostgreSQL
 * 14. */
static const char SETTINGS[] =
    "SET search_path = pg_catalog, pg_temp; SET lock_timeout = '60s'; SET timezone = 'UTC';"
    "SET idle_in_transaction_session_timeout = '60s'; SET tcp_keepalives_idle = 30;"
    "SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;"
    "SELECT set_config(name, '2s', false) FROM pg_settings"
    " WHERE name = 'client_connection_check_interval'";

struct pg *pg_open(const char *place, bool write, pg_warn *warn, void *arg, struct err *e)
{
    /* The string of the user overrides the settings before it. */
    static const char *const names[] = {"fallback_application_name",
                                        "connect_timeout",
                                        "keepalives_idle",
                                        "keepalives_interval",
                                        "keepalives_count",
                                        "tcp_user_timeout",
                                        "dbname",
                                        "client_encoding",
                                        "target_session_attrs",
                                        NULL};
    const char *values[] = {
        "hist-sync", NULL, "30", "10", "3", "60000", place, "UTF8", write ? "read-write" : NULL,
        NULL};
    struct pg *p;

    if (check_uri(place, &values[1], e) < 0)
        return NULL;
    p = mem_zalloc(sizeof(*p));
    p->warn = warn;
    p->arg = arg;
    p->conn = PQconnectdbParams(names, values, 1);
    if (!p->conn)
        mem_exhausted();
    PQsetNoticeReceiver(p->conn, pass_notice, p);
    if (check_connection(p, e) < 0 || pg_run(p, SETTINGS, e) < 0) {
        pg_close(p);
        return NULL;
    }
    return p;
}

bool pg_can_fail_over(const struct pg *p)
{
    static const struct str ending[] = {STR("57P"), STR("25006")};
    bool lost = PQstatus(p->conn) == CONNECTION_BAD;

    for (size_t i = 0; i < 2; i++)
        lost = lost || str_starts(str_of(p->state), ending[i]);
    return lost && (has_option(PQconninfo(p->conn), "host", ",") ||
                    has_option(PQconninfo(p->conn), "hostaddr", ","));
}

void pg_close(struct pg *p)
{
    if (!p)
        return;
    PQfinish(p->conn);
    free(p);
}

/* ---- commands ---- */

static int pass_row(const PGresult *r, int i, pg_row *row, void *arg, struct err *e)
{
    struct str values[16] = {{NULL, 0}}; /* a wrong server may give fewer than were asked for */
    int n = PQnfields(r);

    if (n > 16)
        n = 16;
    for (int f = 0; f < n; f++)
        values[f] = PQgetisnull(r, i, f)
                        ? STR_NONE
                        : (struct str){PQgetvalue(r, i, f), (size_t)PQgetlength(r, i, f)};
    return row(arg, values, e);
}

/* Takes one result. */
static int read_result(struct pg *p, const PGresult *r, pg_row *row, void *arg, struct err *e)
{
    switch (PQresultStatus(r)) {
    case PGRES_COMMAND_OK:
        return 0;
    case PGRES_TUPLES_OK:
    case PGRES_SINGLE_TUPLE:
        for (int i = 0; row && i < PQntuples(r); i++)
            if (pass_row(r, i, row, arg, e) < 0)
                return -1;
        return 0;
    default:
        return fail_result(p, r, e);
    }
}

/* Takes the results of a command up to the first error. After one the caller closes the connection,
 * or runs ROLLBACK, before which PQexec drops the others. */
static int read_results(struct pg *p, pg_row *row, void *arg, struct err *e)
{
    PGresult *r;
    int result = 0;

    while (result == 0 && (r = PQgetResult(p->conn))) {
        result = read_result(p, r, row, arg, e);
        PQclear(r);
    }
    return result;
}

static int query(struct pg *p, const char *sql, const struct str *parameter, size_t count,
                 pg_row *row, void *arg, struct err *e)
{
    const char *values[16] = {0};
    char *copies[16] = {0};
    int sent;

    for (size_t i = 0; i < count && i < 16; i++)
        if (parameter[i].p)
            values[i] = copies[i] = mem_copy(parameter[i].p, parameter[i].n);
    sent = PQsendQueryParams(p->conn, sql, (int)count, NULL, values, NULL, NULL, 0);
    for (size_t i = 0; i < 16; i++)
        free(copies[i]);
    if (!sent)
        return fail_lost(p, e);
    PQsetSingleRowMode(p->conn);
    return read_results(p, row, arg, e);
}

int pg_query(struct pg *p, const char *sql, const struct str *parameter, size_t count, pg_row *row,
             void *arg, struct err *e)
{
    bool begun = p->begun;

    if (!begun && pg_begin(p, e) < 0)
        return -1;
    if (query(p, sql, parameter, count, row, arg, e) < 0)
        return -1;
    return begun ? 0 : pg_commit(p, e);
}

int pg_begin(struct pg *p, struct err *e)
{
    static const char mark[] = "$trust$;";
    const char *trust = strstr(sync_sql, "DO $trust$");
    int n = (int)(strstr(trust, mark) - trust) + (int)sizeof(mark) - 1;
    struct buf sql = BUF_INIT(SIZE_MAX);
    int result;

    /* The lock keeps the schema from being dropped and made again by another role. That may have
     * happened between the first check and the lock, so there is a second check. */
    buf_addf(&sql,
             "BEGIN ISOLATION LEVEL READ COMMITTED;%.*s"
             "LOCK TABLE ONLY chathist.version IN ACCESS SHARE MODE;%.*s",
             n, trust, n, trust);
    result = pg_run(p, buf_c(&sql), e);
    p->begun = result == 0;
    buf_release(&sql);
    return result;
}

int pg_commit(struct pg *p, struct err *e)
{
    p->begun = false;
    return pg_run(p, "COMMIT", e);
}

int pg_run(struct pg *p, const char *sql, struct err *e)
{
    PGresult *r = PQexec(p->conn, sql);
    int result = read_result(p, r, NULL, NULL, e);

    PQclear(r);
    return result;
}

int pg_copy(struct pg *p, const char *sql, struct str data, struct err *e)
{
    PGresult *r = PQexec(p->conn, sql);
    int result = PQresultStatus(r) == PGRES_COPY_IN ? 0 : read_result(p, r, NULL, NULL, e);

    PQclear(r);
    if (result < 0)
        return -1;
    /* An error of the server ends the command early, and is read below. */
    for (; data.n > 0; data = str_skip(data, data.n < PIECE ? data.n : PIECE))
        if (PQputCopyData(p->conn, data.p, (int)(data.n < PIECE ? data.n : PIECE)) < 0)
            return fail_lost(p, e);
    return PQputCopyEnd(p->conn, NULL) < 0 ? fail_lost(p, e) : read_results(p, NULL, NULL, e);
}

#else /* WITHOUT_POSTGRES: the program cannot open a connection, and calls nothing else */

struct pg *pg_open(const char *place, bool write, pg_warn *warn, void *arg, struct err *e)
{
    (void)place, (void)write, (void)warn, (void)arg;
    err_set(e, ERR_USAGE, "this program was built without PostgreSQL");
    return NULL;
}

bool pg_can_fail_over(const struct pg *p)
{
    (void)p;
    return false;
}

void pg_close(struct pg *p)
{
    (void)p;
}

int pg_query(struct pg *p, const char *sql, const struct str *parameter, size_t count, pg_row *row,
             void *arg, struct err *e)
{
    (void)p, (void)sql, (void)parameter, (void)count, (void)row, (void)arg, (void)e;
    return -1;
}

int pg_run(struct pg *p, const char *sql, struct err *e)
{
    (void)p, (void)sql, (void)e;
    return -1;
}

int pg_copy(struct pg *p, const char *sql, struct str data, struct err *e)
{
    (void)p, (void)sql, (void)data, (void)e;
    return -1;
}

int pg_begin(struct pg *p, struct err *e)
{
    (void)p, (void)e;
    return -1;
}

int pg_commit(struct pg *p, struct err *e)
{
    (void)p, (void)e;
    return -1;
}

#endif

/* ---- values ---- */

int64_t pg_number(struct str value)
{
    int64_t n = 0;

    (void)json_int(value, &n);
    return n;
}

void pg_add_number(struct buf *out, int64_t n)
{
    buf_addf(out, "%" PRId64, n);
}

void pg_array_add(struct buf *array, struct str text)
{
    buf_add_c(array, array->len == 0 ? "{\"" : ",\"");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_add_byte(array, '\\');
        buf_add_byte(array, text.p[i]);
    }
    buf_add_byte(array, '"');
}

void pg_array_end(struct buf *array)
{
    buf_add_c(array, array->len == 0 ? "{}" : "}");
}
