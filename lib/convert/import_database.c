#include "convert/import_database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chathist/base/memory.h"
#include "chathist/base/path.h"

/* How long to wait for a lock, because the program may be writing. */
#define BUSY_MS 5000
/* SQLite's virtual machine may execute WORK_MIN instructions, and WORK_PER_BYTE more for each byte
 * of the file. Real databases need less than a hundredth of that. */
#define WORK_MIN INT64_C(100000000)
#define WORK_PER_BYTE 300
#define WORK_STEP 100000

struct database {
    sqlite3 *db;
    const char *name; /* of the source */
    char *path;
    char *const *tables;
    size_t count;
    int64_t work, work_max;
    struct stat before;
    bool unlocked; /* other programs can write while the database is read */
};

bool database_is(struct str head)
{
    return str_starts(head, (struct str){"SQLite format 3", sizeof "SQLite format 3"});
}

static int fail(const struct database *d, struct err *e)
{
    if (sqlite3_errcode(d->db) == SQLITE_INTERRUPT)
        return err_set(e, ERR_FAILURE, "cannot read '%s': it takes too much work for its size",
                       d->name);
    return err_set(e, ERR_FAILURE, "cannot read '%s': %s", d->name, sqlite3_errmsg(d->db));
}

/* ---- opening ---- */

/* Called every WORK_STEP instructions. Returning 1 ends the statement. */
static int count_work(void *arg)
{
    struct database *d = arg;

    d->work += WORK_STEP;
    return d->work > d->work_max;
}

/* Appends a path as a URI for SQLite. */
static void add_uri(struct buf *uri, const char *path)
{
    buf_add_c(uri, "file:");
    for (; *path; path++) {
        if (*path == '%' || *path == '?' || *path == '#')
            buf_addf(uri, "%%%02X", (unsigned)*path);
        else
            buf_add_byte(uri, *path);
    }
}

static bool exists(const char *path, const char *suffix, bool empty_too)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct stat st;
    bool is;

    buf_addf(&name, "%s%s", path, suffix);
    is = stat(buf_c(&name), &st) == 0 && (empty_too || st.st_size > 0);
    buf_release(&name);
    return is;
}

/*
 * Connects to the database for reading. Returns 0, or -1 with *e set.
 *
 * SQLite creates the files -wal and -shm beside a database in WAL mode, and a connection that only
 * reads does not remove them (https://sqlite.org/wal.html#readonly). If both exist, another program
 * may be writing, and they are used. Without a -wal file, the database is complete and no
 * program has it open; it is opened as `immutable`. If there is only a -wal file, left by a crash
 * or a copy, its index must be in memory. That needs the exclusive mode, but a descriptor that can
 * only read cannot get its lock, so the database is opened without locks.
 */
static int connect_database(struct database *d, struct source *s, struct err *e)
{
    const char *path = d->path;
    struct buf name = BUF_INIT(BUF_SMALL);
    bool wal_mode = false, wal = exists(path, "-wal", false), shm = exists(path, "-shm", true);
    bool alone;
    struct str head;
    int opened;

    if (source_head(s, &head, e) < 0)
        return -1;
    wal_mode = head.n > 19 && head.p[18] == 2;
    alone = wal_mode && wal && !shm;
    d->unlocked = wal_mode && !shm;
    add_uri(&name, path);
    if (wal_mode && !wal && !shm)
        buf_add_c(&name, "?immutable=1");
    opened = sqlite3_open_v2(buf_c(&name), &d->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                             alone ? "unix-none" : NULL);
    buf_release(&name);
    if (opened != SQLITE_OK)
        return fail(d, e);
    sqlite3_busy_timeout(d->db, BUSY_MS);
    sqlite3_progress_handler(d->db, WORK_STEP, count_work, d);
    sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, (int)SOURCE_VALUE_MAX);
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if ((alone && sqlite3_exec(d->db, "PRAGMA locking_mode = exclusive", NULL, NULL, NULL)) ||
        sqlite3_exec(d->db, "PRAGMA query_only = on", NULL, NULL, NULL))
        return fail(d, e);
    return 0;
}

/* Runs a query of our own with up to two texts. Returns 1 if it has a row, 0 if not, -1 on failure.
 */
static int look(struct database *d, const char *sql, const char *one, const char *two)
{
    sqlite3_stmt *q;
    int got;

    if (sqlite3_prepare_v2(d->db, sql, -1, &q, NULL) != SQLITE_OK)
        return -1;
    if (one)
        sqlite3_bind_text(q, 1, one, -1, SQLITE_TRANSIENT);
    if (two)
        sqlite3_bind_text(q, 2, two, -1, SQLITE_TRANSIENT);
    got = sqlite3_step(q);
    sqlite3_finalize(q);
    return got == SQLITE_ROW ? 1 : got == SQLITE_DONE ? 0 : -1;
}

int database_open(struct source *s, char *const *tables, size_t count, struct database **d,
                  struct err *e)
{
    struct database *new;
    int result = -1;

    *d = NULL;
    if (!s->path)
        return err_set(e, ERR_USAGE, "cannot import '%s': a database must be a file", s->name);
    new = mem_zalloc(sizeof *new);
    new->name = s->name;
    new->tables = tables;
    new->count = count;
    new->path = path_real(s->path, e);
    if (new->path && stat(new->path, &new->before) < 0)
        err_sys(e, errno, "cannot read '%s'", s->name);
    else if (new->path) {
        new->work_max = WORK_MIN + WORK_PER_BYTE *(int64_t) new->before.st_size;
        result = connect_database(new, s, e);
        if (result == 0 && look(new, "SELECT 1 FROM sqlite_master", NULL, NULL) < 0)
            result = fail(new, e);
    }
    if (result == 0)
        *d = new;
    else
        database_close(new);
    return result;
}

void database_close(struct database *d)
{
    if (!d)
        return;
    sqlite3_close(d->db);
    free(d->path);
    free(d);
}

int database_unchanged(const struct database *d, struct err *e)
{
    struct stat after;

    if (d->unlocked && (stat(d->path, &after) < 0 || after.st_size != d->before.st_size ||
                        after.st_mtime != d->before.st_mtime || exists(d->path, "-shm", true)))
        return err_set(e, ERR_FAILURE, "'%s' changed while it was read: import it again", d->name);
    return 0;
}

/* ---- tables ---- */

bool database_has_table(struct database *d, const char *name)
{
    return look(d, "SELECT 1 FROM sqlite_master WHERE lower(name) = ?1", name, NULL) > 0;
}

bool database_has_column(struct database *d, const char *table, const char *name)
{
    return look(d, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", table, name) > 0;
}

int database_check(struct database *d, struct err *e)
{
    static const char odd[] =
        "SELECT name FROM pragma_table_list AS l WHERE schema = 'main' AND lower(name) = ?1 AND"
        " (type <> 'table' OR EXISTS (SELECT 1 FROM pragma_table_xinfo(l.name) WHERE hidden <> 0))";
    int got = 0;

    for (size_t i = 0; i < d->count && got >= 0; i++) {
        got = look(d, odd, d->tables[i], NULL);
        if (got > 0)
            return err_set(e, ERR_FAILURE, "cannot import '%s': '%s' in it is not a plain table",
                           d->name, d->tables[i]);
    }
    return got < 0 ? fail(d, e) : 0;
}

/* ---- statements ---- */

/* Refuses to read a table that the importer does not declare. */
static int authorize(void *arg, int action, const char *table, const char *column,
                     const char *schema, const char *view)
{
    const struct database *d = arg;

    (void)column;
    (void)schema;
    (void)view;
    for (size_t i = 0; i < d->count && action == SQLITE_READ; i++)
        if (str_eq_lower(str_of(table), d->tables[i]))
            return SQLITE_OK;
    return action == SQLITE_SELECT || action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE ||
                   (action == SQLITE_READ && *table == '\0')
               ? SQLITE_OK
               : SQLITE_DENY;
}

int database_query(struct database *d, const char *sql, sqlite3_stmt **statement, struct err *e)
{
    const char *problem;
    int result;

    *statement = NULL;
    sqlite3_set_authorizer(d->db, authorize, d);
    result = sqlite3_prepare_v2(d->db, sql, -1, statement, NULL);
    sqlite3_set_authorizer(d->db, NULL, NULL);
    problem = sqlite3_errmsg(d->db);
    if (result == SQLITE_OK)
        return 0;
    if (result != SQLITE_ERROR && result != SQLITE_AUTH)
        return fail(d, e);
    return str_starts(str_of(problem), STR("no such table"))
               ? 0
               : err_set(e, ERR_FAILURE, "cannot import '%s': %s", d->name, problem);
}

int database_step(const struct database *d, sqlite3_stmt *statement, struct err *e)
{
    int got = statement ? sqlite3_step(statement) : SQLITE_DONE;

    return got == SQLITE_ROW ? 1 : got == SQLITE_DONE ? 0 : fail(d, e);
}
