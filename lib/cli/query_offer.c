#include "chathist/cli/query_offer.h"

#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/histories.h"
#include "chathist/history/scan.h"
#include "chathist/history/session_list.h"
#include "chathist/search/query.h"

/* How much of a history is read for values, its end, and of how many histories: little enough to be
 * done between two keys. */
#define READ_MOST ((off_t)256 << 10)
#define HISTORIES_READ 8
#define SESSIONS_MOST 40

static const char *const roles[] = {"user", "assistant", "tool", "system"};

struct offers {
    struct words *out;
    struct buf line;      /* the query up to its last term, and one for it */
    size_t head;          /* the length of the first part */
    struct str typed;     /* the typed beginning of the name or the value */
    struct hash_map seen; /* the values that were offered */
};

/* Offers a text in place of the last part of the query. Values that would need quotes are left
 * out. */
static void offer(struct offers *o, struct str text)
{
    struct buf shown = BUF_INIT(SIZE_MAX);

    vis_add_line(&shown, text, true);
    if (text.n > 0 && str_starts(text, o->typed) && str_eq(text, buf_str(&shown)) &&
        !memchr(text.p, ' ', text.n) && !memchr(text.p, '"', text.n) &&
        !memchr(text.p, '\\', text.n) && hash_map_add(&o->seen, text)) {
        buf_truncate(&o->line, o->head);
        buf_add_str(&o->line, text);
        words_add(o->out, buf_str(&o->line));
    }
    buf_release(&shown);
}

static void offer_names(struct offers *o)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        buf_clear(&name);
        buf_addf(&name, "role:%s", roles[i]);
        offer(o, buf_str(&name));
    }
    /* The first one is role: itself. */
    for (size_t i = 1; query_field(i); i++) {
        buf_clear(&name);
        buf_addf(&name, "%s:", query_field(i));
        offer(o, buf_str(&name));
    }
    buf_release(&name);
}

/* Offers the values of a message for a field. */
static void offer_of_message(struct offers *o, struct str field, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE), unpacked = BUF_INIT(BUF_LINE);
    struct json_iter calls = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct message_call call;

    if (str_eq_c(field, "model"))
        offer(o, message_text(m, FIELD_MODEL, &scratch));
    else if (str_eq_c(field, "from"))
        offer(o, message_tool(m, &scratch));
    else
        while (message_next_call(&calls, &call, &unpacked))
            if (json_type(call.name) == JSON_STRING)
                offer(o, json_text(call.name, &scratch));
    buf_release(&scratch);
    buf_release(&unpacked);
}

/* Offers what messages at the end of a history have. */
static void offer_of_messages(struct offers *o, struct str field, const struct history *h)
{
    struct message m = MESSAGE_INIT;
    struct scan all, part;
    off_t end;

    if (scan_open(&all, h->dir_fd, h->path, NULL) < 0)
        return;
    end = all.size;
    if (scan_before(&all, &end, READ_MOST, &part, NULL) > 0) {
        while (scan_message(&part, &m, NULL, NULL) > 0)
            offer_of_message(o, field, &m);
        scan_close(&part);
    }
    message_release(&m);
    scan_close(&all);
}

static void offer_of_history(struct offers *o, struct str field, const struct history *h)
{
    struct buf name = BUF_INIT(BUF_LINE);
    struct session_list list;

    if (str_eq_c(field, "repo") || str_eq_c(field, "in")) {
        history_name_add(&name, h);
        offer(o, buf_str(&name));
    } else if (str_eq_c(field, "session") || str_eq_c(field, "id")) {
        if (session_list_newest(&list, h, SESSIONS_MOST, NULL) == 0) {
            for (size_t i = 0; i < list.count; i++)
                offer(o, list.at[i].id);
            session_list_release(&list);
        }
    } else if (str_eq_c(field, "model") || str_eq_c(field, "from") || str_eq_c(field, "tool")) {
        offer_of_messages(o, field, h);
    }
    buf_release(&name);
}

static void offer_values(struct offers *o, struct str field, const struct history *histories,
                         size_t count)
{
    static const char *const times[] = {"today", "yesterday", "1d", "7d", "30d"};
    bool repo = str_eq_c(field, "repo") || str_eq_c(field, "in");
    bool time = str_eq_c(field, "since") || str_eq_c(field, "after") || str_eq_c(field, "until") ||
                str_eq_c(field, "before");

    for (size_t i = 0; i < sizeof roles / sizeof *roles && str_eq_c(field, "role"); i++)
        offer(o, str_of(roles[i]));
    for (size_t i = 0; i < sizeof times / sizeof *times && time; i++)
        offer(o, str_of(times[i]));
    for (size_t i = 0; i < count && (repo || i < HISTORIES_READ); i++)
        offer_of_history(o, field, &histories[i]);
}

/* Returns where the last term of a query begins, or SIZE_MAX inside quotes. */
static size_t last_term(struct str text)
{
    bool quoted = false;
    size_t begin = 0;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"')
            quoted = !quoted;
        else if (text.p[i] == ' ' && !quoted)
            begin = i + 1;
    }
    return quoted ? SIZE_MAX : begin;
}

void query_offer(struct words *out, struct str query, const struct history *histories, size_t count)
{
    struct offers o = {.out = out, .line = BUF_INIT(SIZE_MAX)};
    size_t begin = last_term(query);
    struct str term, field;

    if (begin == SIZE_MAX)
        return;
    begin += begin < query.n && query.p[begin] == '-';
    term = str_skip(query, begin);
    o.typed = term;
    field = str_cut(&o.typed, ':');
    if (!o.typed.p)
        o.typed = term;
    o.head = (size_t)(query.n - o.typed.n);
    buf_add(&o.line, query.p, o.head);
    if (o.typed.p == term.p)
        offer_names(&o);
    else
        offer_values(&o, field, histories, count);
    hash_map_release(&o.seen);
    buf_release(&o.line);
}
