#include "chat/repl_command.h"

#include <stdint.h>

#include "chathist/chat/chat_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/show.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"
#include "chathist/history/session.h"

/* The number of messages that /load shows. */
#define SHOWN_LAST 4
/* The default length of lists. */
#define LIST_MAX 20

/* Prints the number of a line in a list, and reduces the width that is left. The caller calls
 * out_measure after the line. */
static void add_list_number(struct repl *r, struct str id)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    line_offer(&r->listed, id);
    buf_addf(&text, "%2zu  ", r->listed.count);
    out_raw(r->out, buf_str(&text));
    r->out->columns -= r->out->columns > text.len ? text.len : 0;
    buf_release(&text);
}

/* Reads 1, 2, ... or `all`. Returns 0 for any other text. */
static size_t read_count(struct str text)
{
    size_t n = 0;

    if (str_eq_c(text, "all"))
        return SIZE_MAX;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || n > SIZE_MAX / 100)
            return 0;
        n = n * 10 + (size_t)(text.p[i] - '0');
    }
    return n;
}

void repl_sessions(struct repl *r, struct str text)
{
    struct history *h = &r->chat->history;
    size_t most = text.n > 0 ? read_count(text) : LIST_MAX;
    struct session_list list;
    struct err e = ERR_INIT;

    if (most == 0) {
        warnf("bad number '%.*s': try '/sessions 10' or '/sessions all'", (int)text.n, text.p);
        return;
    }
    if (session_list_newest(&list, h, most == SIZE_MAX ? most : most + 1, &e) < 0) {
        repl_report(&e);
        return;
    }
    line_words_release(&r->listed);
    for (size_t i = 0; i < list.count && i < most; i++) {
        add_list_number(r, (struct str){list.at[i].id, list.at[i].id_len});
        list_session(r->out, &list.at[i], &(struct list_form){0});
        out_measure(r->out);
    }
    if (list.count == 0)
        repl_say(r, "there are no sessions yet");
    else
        repl_say(r, "%s/load N continues one",
                 list.count > most ? "/sessions all lists older ones, " : "");
    start_report_bad(h, list.bad_lines, r->chat->args->common.quiet);
    session_list_release(&list);
}

void repl_search(struct repl *r, struct str text)
{
    struct history *h = &r->chat->history;
    struct hits_form form = {0};
    struct pattern pattern;
    struct search search;
    struct hit hit;
    struct err e = ERR_INIT;
    int found = 0;

    if (text.n == 0) {
        warnf("no text: try '/search TEXT'");
        return;
    }
    pattern_init(&pattern);
    if (pattern_add(&pattern, text, &e) < 0 ||
        search_open(&search, h->dir_fd, h->path, &pattern, NULL, SCAN_BACKWARD, &e) < 0) {
        pattern_release(&pattern);
        repl_report(&e);
        return;
    }
    line_words_release(&r->listed);
    line_signals_forget();
    while (!line_signals_interrupted() && (found = search_next(&search, &hit, &e)) > 0) {
        if (r->listed.count == LIST_MAX)
            break;
        add_list_number(r, hit.message->session_id);
        hits_print(r->out, &hit, &form);
        out_measure(r->out);
    }
    if (found < 0)
        repl_report(&e);
    else if (r->listed.count == 0)
        repl_say(r, "nothing was found");
    else
        repl_say(r, "%s/load N continues the session of one", found > 0 ? "there are more; " : "");
    start_report_bad(h, search.scan.bad, r->chat->args->common.quiet);
    search_close(&search);
    pattern_release(&pattern);
}

/* Finds the session of /load: a number of the last list, or a name. */
static int resolve_listed(struct repl *r, struct str name, struct buf *id, struct err *e)
{
    size_t n = read_count(name);

    if (n > 0 && n <= r->listed.count) {
        buf_add_c(id, r->listed.at[n - 1]);
        return 0;
    }
    return start_resolve_named(&r->chat->history, name, id, e);
}

/* Continues a session of the history. The system prompt for the next turn is dropped, attached
 * files are kept. Returns 0, or -1 with *e set. */
static int continue_session(struct repl *r, const struct buf *id, struct err *e)
{
    struct chat_session *chat = r->chat;

    if (!chat->in_memory && start_try_current(&chat->config, &chat->history, buf_str(id),
                                              chat->args->common.quiet, e) < 0)
        return -1;
    buf_clear(&chat->session.id);
    buf_add_str(&chat->session.id, buf_str(id));
    chat->session.fresh = chat->session.make_current = false;
    repl_forget_system(r);
    return chat->in_memory ? repl_copy_to_memory(chat, e) : 0;
}

void repl_load(struct repl *r, struct str name)
{
    struct history *h = &r->chat->history;
    const struct filter every = {0};
    struct show show = {.last = SHOWN_LAST, .filter = &every};
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    size_t messages;

    if (name.n == 0) {
        warnf("no session: try '/load ID', or '/load N' after a list");
    } else if (resolve_listed(r, name, &id, &e) < 0 || continue_session(r, &id, &e) < 0) {
        repl_report(&e);
    } else {
        messages = show_session(r->out, h, buf_str(&id), &show);
        start_report_bad(h, show.bad_lines, r->chat->args->common.quiet);
        if (messages == SHOW_NOT_COUNTED)
            repl_say(r, "session %s", buf_c(&id));
        else
            repl_say(r, "session %s, %zu message%s", buf_c(&id), messages,
                     messages == 1 ? "" : "s");
    }
    buf_release(&id);
}

/* Begins a new session with a system prompt, by default the one of the command line. */
void repl_new(struct repl *r, struct str system)
{
    struct chat_session *chat = r->chat;
    struct resume_wish wish = {.fresh = true};

    start_session(&chat->session, &wish, &chat->config, &chat->history, false, true);
    chat->settled = false;
    buf_clear(&chat->memory);
    repl_forget_system(r);
    if (system.n > 0)
        repl_set_system(r, system);
    else if (chat->args->system)
        repl_set_system(r, str_of(chat->args->system));
    repl_say(r, "session %s", buf_c(&chat->session.id));
}
