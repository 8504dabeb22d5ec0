/* hist-append - store messages written by other programs. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/choose_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/chat/prompt.h"
#include "chathist/history/store.h"

enum { KEY_IMAGES = OPT_LONG, KEY_FILES, KEY_FILES_MODIFIED, KEY_EDIT_RESULTS };

static const struct opt options[] = {
    {'s', "session", OPT_SESSION, "ID", "store in this session, taken literally"},
    {'r', "role", OPT_ROLE, "ROLE", "role: user (the default), assistant, system, tool"},
    {KEY_IMAGES, "images", OPT_NUMBER, "N", "how many images were attached"},
    {KEY_FILES, "files", OPT_FILE, "FILE", "a file in context; may be repeated"},
    {KEY_FILES_MODIFIED, "files-modified", OPT_FILE, "FILE",
     "a file that was changed; may be repeated"},
    {KEY_EDIT_RESULTS, "edit-results", OPT_TEXT, "JSON",
     "results of edit blocks, an array of objects"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "store JSON lines from standard input"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-append", "store a message and print its id", "[TEXT]",
                                       OPT_TEXT, options};

/* The history and session that a run stores into. */
struct target {
    struct choice choice;
    struct history *history; /* the first of the choice */
    struct resume resume;
    struct resume_request request;
    struct out out;
    bool quiet;
    int status;
};

/* Sets the session of a message that has none. The session is looked up at the first such
 * message. */
static void fill_session(struct target *t, struct draft *d)
{
    if (draft_has(d, FIELD_SESSION_ID))
        return;
    if (t->resume.id.len == 0) {
        choose_session(&t->resume, t->request, &t->choice, false, t->quiet);
        /* Storing a message is no consent to send a session that came with the repository. */
        t->resume.adopt = false;
        /* A failure is reported when the message is stored, or by resume_finish. */
        (void)resume_claim(&t->resume, t->history, NULL);
    }
    draft_set_text(d, FIELD_SESSION_ID, buf_str(&t->resume.id));
}

/* Stores messages, makes a new session current, prints the ids. */
static void store_messages(struct target *t, struct draft *drafts, size_t count)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    for (size_t i = 0; i < count; i++)
        fill_session(t, &drafts[i]);
    if (store_append(t->history, drafts, count, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < count; i++) {
        buf_clear(&id);
        json_decode(buf_str(&drafts[i].field[FIELD_ID]), &id);
        buf_add_byte(&id, '\n');
        out_text(&t->out, buf_str(&id));
    }
    buf_release(&id);
    /* The messages are stored even if the session cannot be made current. */
    if (resume_finish(&t->resume, t->history, &e) < 0) {
        warn_err(&e);
        t->status = exit_code(e.kind);
        err_release(&e);
    }
    t->resume.make_current = false;
}

/* ---- one message from the command line ---- */

static void set_number(struct draft *d, const char *value)
{
    struct str number;
    int64_t n;

    if (!json_check(str_of(value), &number, NULL) || !json_int(number, &n) || n < 0)
        die_usage("bad value '%s' for --images: a number is expected", value);
    draft_set_int(d, FIELD_IMAGES, n);
}

static void set_results(struct draft *d, const char *value)
{
    struct str array;
    struct json_iter it;

    if (!json_check(str_of(value), &array, NULL) || json_type(array) != JSON_ARRAY)
        die_usage("bad value for --edit-results: a JSON array is expected");
    it = json_iter(array);
    while (json_next(&it))
        if (json_type(it.value) != JSON_OBJECT)
            die_usage("bad value for --edit-results: its elements must be objects");
    draft_set(d, FIELD_EDIT_RESULTS, array);
}

static void append_text(struct target *t, struct draft *d, char **words, size_t count)
{
    struct buf text = BUF_INIT(PROMPT_MAX);
    struct err e = ERR_INIT;

    if (prompt_is_dash(words, count))
        count = 0;
    if (count == 0 &&
        prompt_add_stdin(&text, t->quiet ? NULL : "waiting for standard input", false, &e) < 0)
        die_err(&e);
    if (count == 0 && text.len == 0)
        die_usage("no text: give it as an argument or on standard input");
    prompt_add_words(&text, words, count);
    draft_set_text(d, FIELD_CONTENT, buf_str(&text));
    store_messages(t, d, 1);
    buf_release(&text);
}

/* ---- lines from standard input ---- */

/* Messages of another program as JSON lines. They are stored in batches as they arrive, while a
 * slow writer still writes. A line that cannot be stored is reported and skipped. */
struct input {
    struct draft *drafts; /* the current batch; each draft has a role and content */
    size_t count, cap;
    bool refused;  /* a line was skipped */
    bool too_long; /* the rest of the line is skipped, too */
    struct buf pending;
    size_t number; /* the number of the last line */
    bool ended;
};

/* More than the fields take that storing adds to a line: id, session, time and role. */
#define ADDED_MAX 1024

static void read_message_line(struct input *in, struct str line, const char *role)
{
    struct buf repaired = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct draft *d;
    int result;

    in->number++;
    if (str_trim(line).n == 0)
        return;
    if (utf8_valid(line) < line.n) {
        utf8_add_repaired(&repaired, line);
        line = buf_str(&repaired);
    }
    in->drafts = mem_grow(in->drafts, &in->cap, in->count + 1, sizeof *in->drafts);
    d = &in->drafts[in->count];
    draft_init(d);
    result = draft_from_json(d, line, &e);
    if (result == 0 && !draft_has(d, FIELD_CONTENT))
        result = err_set(&e, ERR_USAGE, "no 'content'");
    /* The store would refuse the whole batch for one bad line. */
    if (result == 0 && draft_fits(d, ADDED_MAX, &e) == 0 && draft_storable(d, &e) == 0) {
        if (!draft_has(d, FIELD_ROLE))
            draft_set_text(d, FIELD_ROLE, str_of(role));
        in->count++;
    } else {
        warnf("cannot store line %zu: %s", in->number, err_text(&e));
        draft_release(d);
        in->refused = true;
    }
    err_release(&e);
    buf_release(&repaired);
}

static void release_batch(struct input *in)
{
    for (size_t i = 0; i < in->count; i++)
        draft_release(&in->drafts[i]);
    in->count = 0;
}

/* Skips the part that was read of a line that does not fit into the buffer. */
static void skip_long_line(struct input *in)
{
    const char *end = memchr(in->pending.data, '\n', in->pending.len);

    if (!in->too_long && !end && in->pending.len == in->pending.max) {
        warnf("cannot store line %zu: longer than %zu MiB", ++in->number, BUF_LINE >> 20);
        in->too_long = in->refused = true;
    }
    if (in->too_long) {
        buf_consume(&in->pending, end ? (size_t)(end - in->pending.data) + 1 : in->pending.len);
        in->too_long = !end;
    }
}

/* Waits for the next batch. Lines without a role get `role`. Returns false at the end. A read error
 * ends the program. */
static bool read_batch(struct input *in, const char *role)
{
    struct err e = ERR_INIT;
    struct str rest;
    size_t before = in->pending.len; /* these bytes are the beginning of a line */
    int more;

    release_batch(in);
    if (in->ended)
        return false;
    more = file_read_some(STDIN_FILENO, &in->pending);
    if (more < 0) {
        err_sys(&e, errno, "cannot read line %zu from standard input", in->number + 1);
        die_err(&e);
    }
    if (in->too_long || in->pending.len == in->pending.max)
        skip_long_line(in);
    rest = buf_str(&in->pending);
    while (rest.n > before && memchr(rest.p + before, '\n', rest.n - before)) {
        read_message_line(in, str_cut(&rest, '\n'), role);
        before = 0;
    }
    in->ended = more == 0;
    if (in->ended && rest.n > 0)
        read_message_line(in, rest, role);
    buf_consume(&in->pending, in->pending.len - (in->ended ? 0 : rest.n));
    return true;
}

static int append_lines(struct target *t, const char *role)
{
    struct input in = {.pending = BUF_INIT(BUF_LINE)};

    while (read_batch(&in, role)) {
        if (in.count > 0)
            store_messages(t, in.drafts, in.count);
        /* If the ids cannot be printed, the lines are stored anyway; out_close reports it. */
        (void)out_flush(&t->out);
    }
    release_batch(&in);
    free(in.drafts);
    buf_release(&in.pending);
    return in.refused ? exit_code(ERR_USAGE) : 0;
}

/* ---- the program ---- */

/* Sets the fields of a message from the options. Returns whether any but session and role is
 * set. */
static bool read_message_options(struct opt_parser *args, struct draft *d,
                                 struct resume_request *request, const char **role)
{
    char *value;
    bool fields = false;
    int key;

    while ((key = opt_next(args, &value)) != 0) {
        fields |= key >= OPT_LONG;
        switch (key) {
        case 's':
            request->named = value;
            break;
        case 'r':
            *role = value;
            break;
        case KEY_IMAGES:
            set_number(d, value);
            break;
        case KEY_FILES:
            draft_push_text(d, FIELD_FILES, str_of(value));
            break;
        case KEY_FILES_MODIFIED:
            draft_push_text(d, FIELD_FILES_MODIFIED, str_of(value));
            break;
        case KEY_EDIT_RESULTS:
            set_results(d, value);
            break;
        }
    }
    return fields;
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct target t = {.resume = RESUME_INIT};
    struct draft d;
    const char *role = "user";
    char **words;
    size_t count;
    bool fields;
    int status = 0;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    draft_init(&d);
    fields = read_message_options(&args, &d, &t.request, &role);
    words = opt_operands(&args, &count);
    if (args.common.json && (count > 0 || fields))
        die_usage("--json takes lines from standard input: no text, no fields");
    if (role_of(str_of(role)) == ROLE_OTHER)
        die_usage("bad value '%s' for --role: user, assistant, system or tool is expected", role);
    t.choice.common = args.common;
    t.history = choose_open(&t.choice, &(struct choose_want){.use = CHOOSE_STORE, .checked = true});
    out_start(&t.out, args.common.color);
    t.quiet = args.common.quiet;

    if (args.common.json) {
        status = append_lines(&t, role);
    } else {
        draft_set_text(&d, FIELD_ROLE, str_of(role));
        append_text(&t, &d, words, count);
    }

    draft_release(&d);
    resume_release(&t.resume);
    choose_release(&t.choice);
    return out_close(&t.out, t.status ? t.status : status);
}
