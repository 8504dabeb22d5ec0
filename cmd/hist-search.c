/* hist-search - search the content of messages. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/die.h"
#include "cli/term.h"
#include "front/hits.h"
#include "front/sessions.h"
#include "front/start.h"

enum { KEY_REVERSE = OPT_LONG };

static const struct opt options[] = {
    {'r', "role", OPT_ROLE, "ROLE", "only messages of this role; may be repeated"},
    {'s', "session", OPT_SESSION, "SESSION", "only messages of this session; may be repeated"},
    {'n', "limit", OPT_NUMBER, "N", "print at most N messages (100), or all"},
    {'l', "sessions", OPT_FLAG, NULL, "print the ids of the sessions with a match"},
    {'c', "count", OPT_FLAG, NULL, "print how many messages match"},
    {OPT_QUIET, "quiet", OPT_FLAG, NULL, "print nothing, tell by the exit code"},
    {KEY_REVERSE, "reverse", OPT_FLAG, NULL, "print the oldest of the messages first"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {
    "hist-search", "search the content of messages, the newest first", "TEXT", OPT_TEXT, options};

#define LIMIT 100

enum what { WHAT_MESSAGES, WHAT_SESSIONS, WHAT_COUNT, WHAT_NOTHING };

struct request {
    struct filter filter;
    char **names; /* of sessions, as given */
    size_t names_count, names_cap;
    struct session_args sessions;
    size_t limit;
    enum what what;
    bool reverse, json, quiet;
};

static void parse(struct request *r, struct opt_parser *args)
{
    char *value;
    int key;

    *r = (struct request){.limit = LIMIT};
    while ((key = opt_next(args, &value)) != 0) {
        switch (key) {
        case 'r':
            filter_add_role(&r->filter, value);
            break;
        case 's':
            r->names = mem_grow(r->names, &r->names_cap, r->names_count + 1, sizeof *r->names);
            r->names[r->names_count++] = value;
            break;
        case 'n':
            r->limit = opt_count("--limit", value);
            break;
        case 'l':
            r->what = WHAT_SESSIONS;
            break;
        case 'c':
            r->what = WHAT_COUNT;
            break;
        case KEY_REVERSE:
            r->reverse = true;
            break;
        }
    }
    r->json = args->common.json;
    r->quiet = args->common.quiet;
    if (r->json && (r->what == WHAT_SESSIONS || r->what == WHAT_COUNT))
        die_usage("--json goes with neither --sessions nor --count");
    if (args->common.quiet)
        r->what = WHAT_NOTHING;
}

static void print(struct out *out, const struct request *r, const struct hit *hit)
{
    if (r->json)
        out_json_line(out, hit->message->line);
    else
        hits_print(out, hit);
}

/* Prints what was kept, the oldest first. */
static void print_kept(struct out *out, const struct request *r, struct search *s,
                       const struct hits *kept)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct hit hit;

    for (size_t i = kept->count; i-- > 0;) {
        if (hits_again(kept, i, s, &line, &hit, &e) < 0)
            die_err(&e);
        print(out, r, &hit);
    }
    buf_release(&line);
}

/* Goes through the hits, the newest first, and prints what was asked for. Gives how many there
 * were. */
static uint64_t run(struct out *out, const struct request *r, struct search *s)
{
    struct hits kept = {0};
    struct hits_sessions sessions = {0};
    struct err e = ERR_INIT;
    struct hit hit;
    uint64_t count = 0;
    int found;

    while ((found = search_next(s, &hit, &e)) > 0) {
        if (r->names_count > 0 && !session_args_has(&r->sessions, hit.message->session_id))
            continue;
        if (r->what == WHAT_MESSAGES && count == r->limit) {
            hintf(false, "more than %zu messages match (--limit)", r->limit);
            break;
        }
        count++;
        if (r->what == WHAT_NOTHING)
            break;
        if (r->what == WHAT_MESSAGES && r->reverse) {
            hits_keep(&kept, &hit);
        } else if (r->what == WHAT_MESSAGES) {
            print(out, r, &hit);
        } else if (r->what == WHAT_SESSIONS &&
                   hits_new_session(&sessions, hit.message->session_id)) {
            hits_print_session(out, hit.message->session_id);
        }
    }
    if (found < 0)
        die_err(&e);
    print_kept(out, r, s, &kept);
    hits_release(&kept);
    hits_sessions_release(&sessions);
    return count;
}

/* Searches one history and prints what was asked for. Gives how many hits there were. */
static uint64_t look(struct out *out, struct request *r, const struct history *h, const char *text)
{
    struct buf number = BUF_INIT(BUF_SMALL);
    struct search search;
    struct err e = ERR_INIT;
    uint64_t hits;

    /* Of one session alone the lines are found fast. */
    if (r->sessions.count == 1)
        r->filter.session = str_of(r->sessions.ids[0]);
    if (search_open(&search, h->path, str_of(text), &r->filter, SCAN_BACKWARD, &e) < 0)
        die_err(&e);
    hits = run(out, r, &search);
    if (r->what == WHAT_COUNT) {
        buf_addf(&number, "%" PRIu64 "\n", hits);
        out_raw(out, buf_str(&number));
    }
    start_report_bad(h, search.scan.bad, r->quiet);
    buf_release(&number);
    search_close(&search);
    return hits;
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct request request;
    struct out out;
    char **words;
    size_t count;
    int status;

    opt_start(&args, &program, argc, argv);
    parse(&request, &args);
    words = opt_operands(&args, &count);
    if (count != 1)
        die_usage(count == 0 ? "a text to search for is expected" : "one text is expected");
    start_history(&config, &history, &args.common);
    out_start(&out, args.common.color);
    status = exit_code(ERR_ABSENT);

    if (request.names_count > 0)
        session_args_load(&request.sessions, &history, request.names, request.names_count, NULL);
    if (request.names_count == 0 || request.sessions.count > 0)
        if (look(&out, &request, &history, words[0]) > 0)
            status = request.sessions.status;

    filter_release(&request.filter);
    session_args_release(&request.sessions);
    free(request.names);
    history_release(&history);
    config_release(&config);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
