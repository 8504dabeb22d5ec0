/* hist-new - start a session. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/choose_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/history/store.h"
#include "chathist/history/thread.h"

enum { KEY_DETACHED = OPT_LONG, KEY_RESET, KEY_HERE };

static const struct opt options[] = {
    {KEY_DETACHED, "detached", OPT_FLAG, NULL, "do not make it the current session"},
    {'S', "system", OPT_TEXT, "TEXT", "give it a system prompt"},
    {KEY_RESET, "reset", OPT_SESSION, "ID", "empty the context of this session, under its id"},
    {KEY_HERE, "here", OPT_FLAG, NULL, "begin a history for this directory, outside of git"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print the id as a JSON object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-new", "start a session and print its id", "", OPT_FLAG,
                                       options};

/* Loads the present system prompt of a session. Returns false if the session has no lines. */
static bool present_prompt(struct buf *out, const struct history *h, struct str id)
{
    struct err e = ERR_INIT;
    struct thread t;
    bool any;

    if (thread_find(&t, h, id, false, &e) < 0)
        die_err(&e);
    for (size_t i = t.count; i-- > 0;) {
        if (t.at[i].role == ROLE_SYSTEM) {
            struct buf scratch = BUF_INIT(BUF_LINE);

            buf_add_str(out, message_content(&t.at[i], &scratch));
            buf_release(&scratch);
            break;
        }
    }
    any = t.all > 0;
    thread_release(&t);
    return any;
}

/* Stores the session's system line. */
static void store_system(struct history *h, struct str id, struct str text, bool reset)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct draft d;

    draft_init(&d);
    draft_message(&d, ROLE_SYSTEM, text);
    draft_set_text(&d, FIELD_SESSION_ID, id);
    if (reset)
        draft_set(&d, FIELD_RESET, STR("true"));
    if (store_append(h, &d, 1, &e) < 0)
        die_err(&e);
    /* The user knows of this line. */
    if (json_decode(buf_str(&d.field[FIELD_ID]), &line))
        session_move_mark(h, id, buf_str(&line));
    buf_release(&line);
    draft_release(&d);
}

/* Makes a history for the working directory. */
static void begin_here(const struct config *c, struct history *h)
{
    struct err e = ERR_INIT;

    if (h->kind == HISTORY_EXPLICIT)
        die_usage("--here cannot be used with --history or CHAT_HISTORY");
    if (!c->cwd)
        die_usage("--here: cannot tell the working directory");
    if (history_make_here(h, c->cwd, &e) < 0 || store_enter(h, &e) < 0)
        die_err(&e);
}

/* A session in a history that is no regular file could never get a message. */
static void refuse_irregular(const struct history *h)
{
    struct err e = ERR_INIT;
    struct stat st;

    if (file_stat(h->dir_fd, h->path, &st) == 0 && !S_ISREG(st.st_mode) &&
        file_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, NULL, NULL, &e) < 0)
        die_err(&e);
}

/* Chooses the id, and stores the reset of an old session and the system prompt. Returns false if
 * the session to reset has no messages. */
static bool begin_session(struct history *h, struct buf *id, const char *reset, const char *system)
{
    struct buf kept = BUF_INIT(BUF_LINE);
    bool seen = true;

    if (reset) {
        struct buf newest = BUF_INIT(BUF_LINE);

        buf_add_c(id, reset);
        /* The prompt that is kept may be such a one. */
        choose_tell_news(h, buf_str(id), &(struct hash_map){0}, &newest);
        buf_release(&newest);
        seen = present_prompt(&kept, h, buf_str(id));
        /* Nothing of a session that came with the repository is kept. */
        if (session_came(h, buf_str(id), NULL) != 0)
            buf_clear(&kept);
    } else {
        id_add_session(id, time_now() / 1000);
    }
    if (system)
        buf_set(&kept, str_of(system));
    if (system || (reset && seen))
        store_system(h, buf_str(id), buf_str(&kept), reset && seen);
    buf_release(&kept);
    return seen;
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct choice choice = {0};
    struct history *h;
    struct buf id = BUF_INIT(BUF_SMALL);
    struct out out;
    char *value;
    const char *system = NULL, *reset = NULL;
    bool seen, detached = false, here = false;
    int key;

    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0) {
        switch (key) {
        case KEY_DETACHED:
            detached = true;
            break;
        case KEY_HERE:
            here = true;
            break;
        case 'S':
            system = value;
            break;
        case KEY_RESET:
            reset = value;
            break;
        }
    }
    if (reset && !id_session_valid(str_of(reset)))
        die_usage("'%s' is no session id", reset);
    choice.common = args.common;
    h = choose_open(&choice, &(struct choose_want){.use = CHOOSE_STORE, .checked = true});
    if (here)
        begin_here(&choice.config, h);
    if (!detached)
        refuse_irregular(h);
    choose_tell_place(h, args.common.quiet);
    out_start(&out, args.common.color);

    seen = begin_session(h, &id, reset, system);
    /* A mistyped id must not become the current session. */
    if (!seen && !args.common.quiet)
        warnf("session '%s' has no messages yet: it is not made current", reset);
    list_id(&out, buf_str(&id), args.common.json);
    if (out_flush(&out) == 0 && !detached && seen)
        choose_make_current(&choice, h, buf_str(&id));

    buf_release(&id);
    choose_release(&choice);
    return out_close(&out, 0);
}
