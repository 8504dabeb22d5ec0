#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/id.h"
#include "chathist/base/path.h"
#include "chathist/sync/merge.h"
#include "chathist/sync/sync.h"

/* systemd's machine-id(5); copies of a disk get a new one when they start. */
#define SYSTEM_ID "/etc/machine-id"
#define ID_MOST ((size_t)4096)
#define HOST_MOST 60
/* The longest file of names that is read, and the most of its bytes that a new name leaves. */
#define NAMES_MOST ((size_t)64 << 10)
#define NAMES_KEPT (NAMES_MOST / 2)

/* Returns the path of the directory, or NULL with *e set. The caller frees it. */
static char *state_dir(const struct history *h, struct err *e)
{
    char *dir, *state = h->register_path ? path_parent(h->register_path) : NULL;

    if (!state) {
        err_set(e, ERR_FAILURE,
                "no directory for the state of hist-sync is known: neither HOME nor XDG_STATE_HOME "
                "is an absolute path");
        return NULL;
    }
    dir = path_join(state, "sync");
    free(state);
    return dir;
}

char *sync_state_file(const struct history *h, const char *name, struct err *e)
{
    char *dir = state_dir(h, e), *file = dir ? path_join(dir, name) : NULL;

    free(dir);
    return file;
}

int sync_state_make(const struct history *h, struct err *e)
{
    char *dir = state_dir(h, e);
    int result = dir ? file_make_dirs(dir, e) : -1;

    free(dir);
    return result < 0 ? -1 : 0;
}

char *merge_state_path(const struct history *h, const char *kind, const char *place, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    char *dir = path_parent(h->path), *real = path_real(dir, NULL), *path;
    uint64_t sum = checksum(str_of(path_base(h->path)), 0);

    sum = checksum(str_of(real ? real : dir), sum);
    buf_addf(&name, "%016" PRIx64 ".%s", checksum(str_of(place ? place : ""), sum), kind);
    path = sync_state_file(h, buf_c(&name), e);
    buf_release(&name);
    free(dir);
    free(real);
    return path;
}

/* Adds what distinguishes this machine from others; nothing if the system has no such file. Returns
 * 0, or -1 with *e set: a failure must not look like another machine. */
static int add_system(struct buf *out, struct err *e)
{
    struct buf id = BUF_INIT(ID_MOST);
    struct stat st;
    int result = 0;

    if (stat(SYSTEM_ID, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "cannot open '" SYSTEM_ID "'");
    result = file_read(SYSTEM_ID, &id, e);
    if (result == 0)
        buf_addf(out, "%016" PRIx64, checksum(str_trim(buf_str(&id)), 0));
    buf_release(&id);
    return result;
}

/* Makes a name from the host name and random digits. Returns 0, or -1 with *err set. */
static int make_name(struct buf *out, struct err *e)
{
    struct buf token = BUF_INIT(BUF_SMALL);
    char host[HOST_MOST + 1] = "";
    int result = id_add_token(&token, e);

    (void)gethostname(host, HOST_MOST);
    for (const char *p = host; *p && *p != '.'; p++)
        buf_add_byte(out, ascii_is_letter(*p) || ascii_is_digit(*p) ? ascii_lower(*p) : '-');
    if (out->len == 0 || out->data[0] == '-')
        buf_add_c(out, "machine");
    buf_addf(out, "-%.6s", buf_c(&token));
    buf_release(&token);
    return result;
}

/*
 * A home directory can be that of several machines, one after the other or at the same time. So the
 * file `machine` has two lines for each name: the name, and the text of add_system of the machine
 * that has it. The first name of a machine is the present one, and the others are former ones.
 */
static bool next_name(struct str *rest, struct str system, struct str *name)
{
    while (rest->n > 0) {
        struct str of;

        *name = str_cut(rest, '\n');
        of = str_cut(rest, '\n');
        if (sync_name_valid(*name) && !memchr(name->p, '/', name->n) &&
            str_eq(str_trim(of), system))
            return true;
    }
    return false;
}

/* Makes a new name for this machine from the text `system`, and puts it before the names that
 * the file has. */
static int add_name(const char *path, struct buf *name, struct str system, struct str names,
                    struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    int result = make_name(name, e);

    buf_addf(&text, "%s\n%.*s\n", buf_c(name), (int)system.n, system.n ? system.p : "");
    while (names.n > 0 && text.len < NAMES_KEPT) {
        struct str kept = str_cut(&names, '\n'), of = str_cut(&names, '\n');

        buf_addf(&text, "%.*s\n%.*s\n", (int)kept.n, kept.p, (int)of.n, of.n ? of.p : "");
    }
    if (result == 0 && path)
        result = file_replace_at(FILE_CWD, path, buf_str(&text), true, e);
    buf_release(&text);
    return result;
}

char *sync_machine(const struct history *h, enum machine_name which, struct buf *former,
                   struct err *e)
{
    char *path = sync_state_file(h, "machine", e);
    struct buf text = BUF_INIT(NAMES_MOST), system = BUF_INIT(BUF_SMALL),
               name = BUF_INIT(BUF_SMALL);
    struct str rest, one;
    int result = path ? file_read_state(path, &text, e) : -1;

    if (result >= 0)
        result = add_system(&system, e);
    rest = buf_str(&text);
    if (result == 0 && which != MACHINE_RENAMED && next_name(&rest, buf_str(&system), &one))
        buf_add_str(&name, one);
    else if (result == 0)
        result = add_name(which == MACHINE_UNKEPT ? NULL : path, &name, buf_str(&system),
                          buf_str(&text), e);
    if (former)
        buf_clear(former);
    while (result == 0 && former && next_name(&rest, buf_str(&system), &one))
        buf_addf(former, "%.*s\n", (int)one.n, one.p);
    free(path);
    buf_release(&text);
    buf_release(&system);
    if (result == 0)
        return buf_detach(&name);
    buf_release(&name);
    return NULL;
}
