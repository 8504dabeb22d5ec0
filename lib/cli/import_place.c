#include "chathist/cli/import_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"
#include "chathist/history/move.h"
#include "chathist/history/scan.h"
#include "chathist/history/session.h"
#include "chathist/history/session_list.h"
#include "chathist/history/store.h"

#define NONE SIZE_MAX

/* A history, and what is stored in it. */
struct import_place {
    struct history *history;
    bool owned;
    struct import *import; /* NULL until it stores something */
    bool failed;           /* nothing can be stored in it */
    bool listed;
    struct hash_map sessions; /* that it has and may continue, once listed */
    struct hash_map strays;   /* those among them that were met and belong elsewhere */
};

static void report_place_failure(struct import_places *p, struct err *e)
{
    p->failed(p->arg, e);
}

/* ---- the histories ---- */

static size_t add_place(struct import_places *p, struct history *h, bool owned)
{
    p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof(struct import_place *));
    p->at[p->count] = mem_zalloc(sizeof(struct import_place));
    *p->at[p->count] = (struct import_place){.history = h, .owned = owned};
    return p->count++;
}

/* Returns the number of the place with the same history, which is added if it is new, and taken
 * over in any case. */
static size_t place_of(struct import_places *p, struct history h)
{
    struct history *kept;
    struct err e = ERR_INIT;

    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->at[i]->history->path, h.path) == 0) {
            history_release(&h);
            return i;
        }
    if (choose_prepare(p->choice, &h, &e) < 0)
        die_err(&e);
    kept = mem_zalloc(sizeof *kept);
    *kept = h;
    return add_place(p, kept, true);
}

void import_places_open(struct import_places *p)
{
    struct histories all = {0};
    struct err e = ERR_INIT;

    if (config_excluded(&p->choice->config, &p->excluded, &e) < 0)
        die_err(&e);
    p->here = add_place(p, &p->choice->histories.at[0], false);
    p->own = p->here;
    if (p->choice->config.data_home)
        histories_add_own(&all, &p->choice->config);
    if (p->choice->config.state_home)
        histories_add_all(&all, &p->choice->config);
    if (p->choice->config.data_home)
        p->own = place_of(p, all.at[0]);
    for (size_t i = p->choice->config.data_home ? 1 : 0; i < all.count; i++)
        (void)place_of(p, all.at[i]);
    free(all.at);
}

/* ---- the history of a directory ---- */

/* Returns the nearest parent of a directory, or itself, that exists, without links; NULL if it
 * cannot be examined. The caller frees it. */
static char *existing_dir(struct str cwd)
{
    char *dir = mem_copy(cwd.p, cwd.n), *parent, *real;
    struct stat st;

    while (strcmp(dir, "/") != 0 &&
           (stat(dir, &st) < 0 ? errno == ENOENT || errno == ENOTDIR : !S_ISDIR(st.st_mode))) {
        parent = path_parent(dir);
        free(dir);
        dir = parent;
    }
    real = path_real(dir, NULL);
    free(dir);
    return real;
}

/* Finds the history that chat would use in a directory of the user. Returns its number: that of the
 * user's own history if there is no other that is the user's alone. */
static size_t find_place(struct import_places *p, struct str cwd)
{
    struct locate_from from = start_from(&p->choice->config);
    char *dir = existing_dir(cwd);
    size_t found = p->own;
    struct history h;
    struct stat st;

    from.cwd = dir;
    from.git_dir = from.git_common_dir = NULL;
    if (dir && stat(dir, &st) == 0 && st.st_uid == geteuid() && locate(&h, &from, NULL) == 0) {
        if (h.kind == HISTORY_USER || !h.safe)
            history_release(&h);
        else
            found = place_of(p, h);
    }
    free(dir);
    return found;
}

/* Returns the number of the history that conversations of a directory belong to, or NONE if the
 * directory is excluded. A directory of another system has no history. */
static size_t find_home(struct import_places *p, struct str cwd)
{
    if (config_excludes(&p->excluded, cwd))
        return NONE;
    /* What /proc says is about this process. */
    return cwd.n > 0 && cwd.p[0] == '/' && !str_starts(cwd, STR("/proc/")) ? find_place(p, cwd)
                                                                           : p->own;
}

size_t import_places_dir(struct import_places *p, struct str cwd)
{
    size_t count = p->cwds.count, dir = hash_map_number(&p->cwds, &cwd);

    if (dir == count) {
        p->homes = mem_grow(p->homes, &p->homes_cap, dir + 1, sizeof *p->homes);
        p->homes[dir] = find_home(p, cwd);
    }
    return dir;
}

bool import_places_wants(const struct import_places *p, const struct import_said *said)
{
    return said->place != NONE &&
           (p->all || p->homes[said->dir] == p->here || said->place == p->here);
}

/* ---- the history of a session ---- */

/* Returns whether a session of a history is moved to the one of its directory. A directory that is
 * gone may have been renamed with its repository, whose history has the session. */
static bool may_move(const struct import_places *p, size_t number, size_t dir)
{
    struct stat st;

    return p->homes[dir] != NONE && p->homes[dir] != number &&
           (number == p->own || stat(p->cwds.entries[dir].key.p, &st) == 0);
}

/* Lists what a history has. Sessions that came with it are not continued. */
static void list_sessions_of_place(struct import_places *p, struct import_place *place)
{
    struct session_list list;
    struct err e = ERR_INIT;

    place->listed = true;
    if (!place->history->safe)
        return;
    if (session_list_newest(&list, place->history, SIZE_MAX, &e) < 0) {
        report_place_failure(p, &e);
        return;
    }
    for (size_t i = 0; i < list.count; i++)
        if (!list.at[i].came)
            hash_map_add(&place->sessions, list.at[i].id);
    session_list_release(&list);
}

static bool has_session(struct import_places *p, size_t number, struct str session)
{
    struct import_place *place = p->at[number];

    if (!place->listed)
        list_sessions_of_place(p, place);
    return hash_map_find(&place->sessions, session) != NULL;
}

/* Returns the number of the history that holds a session: `home` if that one does; or NONE. */
static size_t holder_of(struct import_places *p, struct str session, size_t home)
{
    if (has_session(p, home, session))
        return home;
    for (size_t i = 0; i < p->count; i++)
        if (has_session(p, i, session))
            return i;
    return NONE;
}

/* Chooses the history that stores a session. */
static struct import_said choose_history_of(struct import_places *p, struct str session,
                                            struct str cwd)
{
    struct import_said said = {.dir = import_places_dir(p, cwd), .place = NONE};
    size_t home = p->homes[said.dir], holder = home == NONE ? NONE : holder_of(p, session, home);

    said.place = holder == NONE ? home : holder;
    said.stored = import_places_wants(p, &said);
    if (said.stored && may_move(p, said.place, said.dir))
        hash_map_add(&p->at[holder]->strays, session);
    return said;
}

/* Returns the import of a history, or NULL if nothing can be stored there. */
static struct import *import_in(struct import_places *p, struct import_place *place)
{
    uint64_t bad = 0;
    struct err e = ERR_INIT;

    if (place->import || place->failed)
        return place->import;
    if (store_check(place->history, &e) == 0)
        place->import = import_new(place->history, &p->options, &bad, &e);
    start_report_bad(place->history, bad, p->choice->common.quiet);
    place->failed = !place->import;
    if (place->failed)
        report_place_failure(p, &e);
    return place->import;
}

/* Notes what the present file has. */
static void add_first_message(struct import_places *p, const struct import_said *said)
{
    for (size_t i = p->said_count; i-- > 0;)
        if (p->said[i].dir == said->dir && p->said[i].place == said->place &&
            p->said[i].stored == said->stored)
            return;
    p->said = mem_grow(p->said, &p->said_cap, p->said_count + 1, sizeof *p->said);
    p->said[p->said_count++] = *said;
}

void import_places_begin(struct import_places *p)
{
    p->said_count = 0;
}

struct import *import_places_choose(void *arg, struct str session, struct str cwd)
{
    struct import_places *p = arg;
    size_t count = p->sessions.count, n = hash_map_number(&p->sessions, &session);
    struct import_said said;

    if (n == count) {
        p->chosen = mem_grow(p->chosen, &p->chosen_cap, n + 1, sizeof *p->chosen);
        p->chosen[n] = choose_history_of(p, session, cwd);
    }
    said = p->chosen[n];
    add_first_message(p, &said);
    return said.stored ? import_in(p, p->at[said.place]) : NULL;
}

size_t import_places_elsewhere(const struct import_places *p)
{
    size_t count = 0;

    for (size_t i = 0; i < p->sessions.count; i++)
        count += !p->chosen[i].stored && p->chosen[i].place != NONE;
    return count;
}

/* ---- the cache ---- */

struct import_stored import_places_stored(const struct import_places *p, size_t number)
{
    const struct history *h = p->at[number]->history;
    struct import_stored now = {.path = str_of(h->path)};
    struct stat st;
    int fd = file_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, &st, NULL, NULL);

    if (fd >= 0) {
        now.inode = (int64_t)st.st_ino;
        now.born = system_birth(fd);
        now.size = (int64_t)st.st_size;
    }
    file_close(fd);
    return now;
}

size_t import_places_find(const struct import_places *p, const struct import_stored *then)
{
    struct import_stored now;
    size_t i = 0;

    while (i < p->count && !str_eq_c(then->path, p->at[i]->history->path))
        i++;
    if (i == p->count)
        return NONE;
    now = import_places_stored(p, i);
    return now.inode == then->inode && now.born == then->born && now.size >= then->size ? i : NONE;
}

/* ---- moving ---- */

/* Maps the imported sessions of a history that belong to other ones to the numbers of these. */
static int list_strays(struct import_places *p, size_t number, struct hash_map *homes,
                       struct err *e)
{
    const struct history *h = p->at[number]->history;
    struct buf current = BUF_INIT(BUF_SMALL), cwd = BUF_INIT(BUF_LINE);
    struct message m = MESSAGE_INIT;
    struct hash_map seen = {0};
    struct scan scan;
    int got;

    if (scan_open(&scan, h->dir_fd, h->path, e) < 0)
        return -1;
    if (session_current(h, &current, NULL, NULL) <= 0)
        buf_clear(&current);
    while ((got = scan_message(&scan, &m, NULL, e)) > 0) {
        struct str dir = message_text(&m, FIELD_CWD, &cwd);
        size_t at, home;

        /* The current session is in use. */
        if (!dir.p || m.field[FIELD_ORIGIN].n == 0 || str_eq(m.session_id, buf_str(&current)) ||
            !has_session(p, number, m.session_id) || !hash_map_add(&seen, m.session_id))
            continue;
        at = import_places_dir(p, dir);
        home = p->homes[at];
        if (!may_move(p, number, at) || (!p->all && home != p->here))
            continue;
        hash_map_add(homes, m.session_id);
        *hash_map_find(homes, m.session_id) = home;
    }
    scan_close(&scan);
    message_release(&m);
    hash_map_release(&seen);
    buf_release(&current);
    buf_release(&cwd);
    return got;
}

/* Moves the sessions of a history that belong to another one. Returns 0, or -1 with *e set. */
static int move_to(struct import_places *p, size_t number, size_t home,
                   const struct hash_map *homes, uint64_t *moved, struct err *e)
{
    struct history *from = p->at[number]->history, *to = p->at[home]->history;
    struct hash_map sessions = {0};
    uint64_t lines = 1;
    int result = 0;

    for (size_t i = 0; i < homes->count; i++)
        if (homes->entries[i].value == home)
            hash_map_add(&sessions, homes->entries[i].key);
    if (sessions.count > 0 && !p->options.dry_run)
        result = store_check(to, e) < 0 ? -1 : history_move(from, to, &sessions, &lines, e);
    if (result == 0 && lines > 0)
        *moved += sessions.count;
    for (size_t i = 0; result == 0 && !p->options.dry_run && i < sessions.count; i++)
        hash_map_add(&p->at[home]->sessions, sessions.entries[i].key);
    hash_map_release(&sessions);
    return result;
}

int import_places_move(struct import_places *p, uint64_t *moved)
{
    int result = 0;

    *moved = 0;
    p->moved = true;
    /* Other histories may be found in the directories of the sessions. */
    for (size_t i = 0; i < p->count; i++) {
        struct hash_map homes = {0};
        struct err e = ERR_INIT;
        int done = list_strays(p, i, &homes, &e);

        for (size_t home = 0; done == 0 && homes.count > 0 && home < p->count; home++)
            done = move_to(p, i, home, &homes, moved, &e);
        hash_map_release(&homes);
        if (done < 0) {
            report_place_failure(p, &e);
            result = -1;
        }
    }
    return result;
}

/* ---- the end ---- */

/* Names a history that holds sessions of others. What is there after a move has to stay. */
static void report_strays(const struct import_place *place, bool moved)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    size_t n = place->strays.count;

    history_name_add(&name, place->history);
    warnf("%zu session%s of other directories continue%s in %s%s", n, n == 1 ? "" : "s",
          n == 1 ? "s" : "", buf_c(&name),
          moved    ? ""
          : n == 1 ? ": --move moves it"
                   : ": --move moves them");
    buf_release(&name);
}

int import_places_finish(struct import_places *p)
{
    int result = 0;

    for (size_t i = 0; i < p->count; i++) {
        struct import_place *place = p->at[i];
        struct err e = ERR_INIT;

        if (place->import && import_finish(place->import, &e) < 0)
            report_place_failure(p, &e);
        if (place->failed || (place->import && import_lost(place->import)))
            result = -1;
        if (p->at[i]->strays.count > 0 && !p->choice->common.quiet)
            report_strays(p->at[i], p->moved);
    }
    return result;
}

void import_places_release(struct import_places *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct import_place *place = p->at[i];

        import_free(place->import);
        if (place->owned) {
            history_release(place->history);
            free(place->history);
        }
        hash_map_release(&place->sessions);
        hash_map_release(&place->strays);
        free(place);
    }
    words_release(&p->excluded);
    free(p->at);
    free(p->homes);
    free(p->chosen);
    free(p->said);
    hash_map_release(&p->cwds);
    hash_map_release(&p->sessions);
}
