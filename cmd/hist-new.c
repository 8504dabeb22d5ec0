/* hist-new - start a session. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "cli/die.h"
#include "cli/term.h"
#include "front/listing.h"
#include "front/start.h"
#include "hist/store.h"
#include "hist/thread.h"

enum { KEY_DETACHED = OPT_LONG, KEY_RESET };

static const struct opt options[] = {
    {KEY_DETACHED, "detached", OPT_FLAG, NULL, "do not make it the current session"},
    {'S', "system", OPT_TEXT, "TEXT", "give it a system prompt"},
    {KEY_RESET, "reset", OPT_SESSION, "ID", "empty the context of this session, under its id"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print the id as a JSON object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-new", "start a session and print its id", "", OPT_FLAG,
                                       options};

/* The system prompt that a session has now. false when it has no lines at all. */
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
    struct err e = ERR_INIT;
    struct draft d;

    draft_init(&d);
    draft_message(&d, ROLE_SYSTEM, text);
    draft_set_text(&d, FIELD_SESSION_ID, id);
    if (reset)
        draft_set(&d, FIELD_RESET, STR("true"));
    if (store_append(h, &d, 1, &e) < 0)
        die_err(&e);
    draft_release(&d);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct buf id = BUF_INIT(BUF_SMALL), kept = BUF_INIT(BUF_LINE);
    struct out out;
    char *value;
    const char *system = NULL, *reset = NULL;
    bool detached = false;
    size_t operands;
    int key;

    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0) {
        switch (key) {
        case KEY_DETACHED:
            detached = true;
            break;
        case 'S':
            system = value;
            break;
        case KEY_RESET:
            reset = value;
            break;
        }
    }
    if (opt_operands(&args, &operands) && operands > 0)
        die_usage("no argument is expected");
    if (reset && !id_session_valid(str_of(reset)))
        die_usage("'%s' is no session id", reset);
    start_history(&config, &history, &args.common);
    out_start(&out, args.common.color);

    if (reset) {
        buf_add_c(&id, reset);
        if (!present_prompt(&kept, &history, buf_str(&id)) && !args.common.quiet)
            warnf("session '%s' has no messages yet", reset);
    } else {
        id_add_session(&id, clock_now() / 1000);
    }
    if (system) {
        buf_clear(&kept);
        buf_add_c(&kept, system);
    }
    if (system || reset)
        store_system(&history, buf_str(&id), buf_str(&kept), reset != NULL);
    list_id(&out, buf_str(&id), args.common.json);
    if (out_flush(&out) == 0 && !detached)
        start_make_current(&config, &history, buf_str(&id), args.common.quiet);

    buf_release(&id);
    buf_release(&kept);
    history_release(&history);
    config_release(&config);
    return out_close(&out, 0, exit_code(ERR_FAILURE));
}
