#include "chathist/chat/events.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/terminal/markdown.h"
#include "chathist/terminal/markdown_out.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/wide.h"

/* The maximum width of a line without a terminal. */
#define LINE_COLUMNS 200

/* One write, so that the output of another program never gets our style. */
static void write_stderr(const struct buf *b)
{
    if (file_write_all(STDERR_FILENO, buf_c(b), b->len) < 0)
        errno = 0; /* an error of stderr is ignored */
}

static void add_style(const struct stderr_text *a, enum style s, struct buf *out)
{
    if (a->color)
        term_add_style(out, s);
}

static void add_laid(void *arg, unsigned styles, struct str text, size_t at)
{
    struct stderr_text *a = arg;

    (void)styles;
    (void)at;
    buf_add_str(&a->laid, text);
}

static size_t stderr_columns(void *arg)
{
    (void)arg;
    return term_columns(STDERR_FILENO);
}

static void stderr_text_init(struct stderr_text *a, enum color_when color)
{
    *a = (struct stderr_text){.terminal = isatty(STDERR_FILENO), .laid = BUF_INIT(SIZE_MAX)};
    a->color = term_wants_color(a->terminal, color);
    markdown_layout_init(&a->layout, add_laid, a, stderr_columns);
    a->layout.plain = true;
}

/* Writes the lines of the layout. */
static void write_laid(struct stderr_text *a)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    if (a->laid.len == 0)
        return;
    add_style(a, STYLE_DIM, &b);
    buf_add_str(&b, buf_str(&a->laid));
    add_style(a, STYLE_NONE, &b);
    write_stderr(&b);
    a->ends_line = a->laid.data[a->laid.len - 1] == '\n';
    buf_clear(&a->laid);
    buf_release(&b);
}

static void stderr_text_text(struct stderr_text *a, struct str text)
{
    if (a->terminal)
        markdown_layout_feed(&a->layout, text);
    else
        buf_add_str(&a->laid, text);
    write_laid(a);
    a->open = true;
}

static void stderr_text_end(struct stderr_text *a)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    if (!a->open)
        return;
    (void)markdown_layout_end(&a->layout);
    write_laid(a);
    if (!a->ends_line)
        buf_add_byte(&b, '\n');
    write_stderr(&b);
    a->open = false;
    buf_release(&b);
}

static void stderr_text_line(struct stderr_text *a, bool wanted, struct str text)
{
    size_t columns = a->terminal ? term_columns(STDERR_FILENO) : LINE_COLUMNS;
    struct buf visible = BUF_INIT(8 * BUF_LINE), line = BUF_INIT(8 * BUF_LINE);

    if (!a->terminal && !wanted)
        return;
    vis_add_line(&visible, text, true);
    add_style(a, STYLE_DIM, &line);
    wide_add_fitted(&line, buf_str(&visible), columns);
    add_style(a, STYLE_NONE, &line);
    buf_add_byte(&line, '\n');
    write_stderr(&line);
    buf_release(&visible);
    buf_release(&line);
}

/* ---- events ---- */

static void begin_event(struct buf *b, const char *type)
{
    buf_add_byte(b, '{');
    json_add_member(b, "type", str_of(type));
}

static void end_event(struct events *ev, struct buf *b)
{
    buf_add_byte(b, '}');
    out_json_line(&ev->out, buf_str(b));
    buf_release(b);
    out_flush(&ev->out);
}

/* Prints an event with one text, with --json only. */
static void add_event(struct events *ev, const char *type, const char *name, struct str text)
{
    struct buf b = BUF_INIT(8 * BUF_LINE);

    if (!ev->json)
        return;
    begin_event(&b, type);
    json_add_member(&b, name, text);
    end_event(ev, &b);
}

/* If the reader is gone, or a signal arrived while a slow reader was waited for, the turn ends. If
 * the disk is full, the answer still goes to the history. */
static int check_reader(const struct events *ev)
{
    return ev->out.error == EPIPE || ev->out.error == EINTR ? -1 : 0;
}

void events_session(struct events *ev, struct str id)
{
    add_event(ev, "session_id", "session_id", id);
}

/* Returns the cost of a turn by the user's prices: that of each of its responses, because prices
 * depend on the length of a request. If the server reported one, or one is unknown, no currency is
 * set. */
static struct cost computed_cost(const struct events *ev, const struct turn *t)
{
    struct str model = str_of(t->answer.model ? t->answer.model : t->ask.model);
    struct str rest = buf_str(&t->usages);
    struct cost sum = {0};

    while (ev->prices && rest.n > 0) {
        struct cost cost =
            prices_cost(ev->prices, str_of(t->provider->name), model, str_cut(&rest, '\n'));

        if (cost.reported || cost.currency == PRICES_UNKNOWN ||
            (sum.currency != PRICES_UNKNOWN && sum.currency != cost.currency))
            return (struct cost){0};
        sum.currency = cost.currency;
        amount_add(&sum.amount, cost.amount);
    }
    return sum;
}

void events_spent(struct events *ev, const struct turn *t)
{
    struct cost cost = computed_cost(ev, t);
    struct buf b = BUF_INIT(BUF_SMALL);

    if (!ev->json || !usage_known(&t->usage))
        return;
    begin_event(&b, "usage");
    usage_add_members(&t->usage, &b);
    if (cost.currency != PRICES_UNKNOWN) {
        json_add_key(&b, "computed_cost");
        amount_add_text(&b, cost.amount);
        json_add_member(&b, "currency", str_of(prices_currency(ev->prices, cost.currency)));
    }
    end_event(ev, &b);
}

void events_model(struct events *ev, const char *provider, const char *model)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    buf_addf(&name, "%s:%s", provider, model);
    add_event(ev, "model", "model", buf_str(&name));
    buf_add_byte(&name, '\n');
    if (!ev->json)
        out_text(&ev->out, buf_str(&name));
    buf_release(&name);
}

/* ---- the context ---- */

static void print_sent_message(size_t index, const char *role, size_t length, bool calls,
                               const struct context_message *m)
{
    size_t images = m ? attachment_images(m->attachments, m->attachments_count) : 0;
    struct buf more = BUF_INIT(BUF_SMALL);

    if (images > 0)
        buf_addf(&more, " images=%zu", images);
    if (m && m->attachments_count > images)
        buf_addf(&more, " documents=%zu", m->attachments_count - images);
    notef("index=%zu role=%s content_length=%zu has_tool_calls=%s%s", index, role, length,
          calls ? "true" : "false", buf_c(&more));
    buf_release(&more);
}

static void print_sent_context(const struct turn *t)
{
    const struct context *c = &t->context;
    size_t system = c->system ? 1 : 0;

    notef("session=%.*s state=%s message_count=%zu", (int)t->session.n, t->session.p,
          t->is_new ? "new" : "existing", c->count + system);
    if (c->system)
        print_sent_message(0, role_name(ROLE_SYSTEM), c->system_len, false, NULL);
    for (size_t i = 0; i < c->count; i++)
        print_sent_message(i + system, role_name(c->at[i].role), c->at[i].n,
                           c->at[i].tool_calls != NULL, &c->at[i]);
}

static void add_limit_name(struct buf *b, const char *name, size_t limit)
{
    if (limit == CONTEXT_ALL)
        return;
    buf_addf(b, "%s%s=%zu", b->len > 0 ? ", " : "", name, limit);
}

/* Warns once that a session exceeds the limits, on a terminal or not, because the model no longer
 * knows its beginning. */
static void warn_of_cut(struct events *ev, const struct turn *t)
{
    bool first = t->kind == TURN_NEXT && !t->messages.p && !t->was_cut;
    const char *command = ev->interactive ? "/new" : "-N";
    struct buf limits = BUF_INIT(BUF_SMALL);

    add_limit_name(&limits, "CHAT_MAX_INPUT_TOKENS", t->limits.tokens);
    add_limit_name(&limits, "CHAT_MAX_MESSAGES", t->limits.messages);
    add_limit_name(&limits, "CHAT_MAX_BYTES", t->limits.bytes);
    if (first)
        warnf("the oldest messages are no longer sent: the limits are %s (%smax_messages, "
              "max_bytes); %s starts a new session",
              buf_c(&limits), t->limits.tokens == CONTEXT_ALL ? "" : "max_input_tokens, ", command);
    else
        hintf(ev->verbose || ev->interactive, "the oldest messages are not sent (%s)",
              buf_c(&limits));
    ev->cut = true;
    buf_release(&limits);
}

void events_context(struct events *ev, const struct turn *t)
{
    if (ev->verbose)
        print_sent_context(t);
    if (ev->quiet || (ev->interactive && (t->context.dropped > 0 ? ev->cut : ev->hinted)))
        return;
    if (t->context.dropped > 0) {
        warn_of_cut(ev, t);
        return;
    }
    ev->hinted = t->before >= CONTEXT_HINT;
    if (t->before >= CONTEXT_HINT)
        hintf(ev->verbose, "the conversation has %zu messages (%s starts a new session)", t->before,
              ev->interactive ? "/new" : "-N");
}

/* ---- the text ---- */

/* Ends a line of the answer before standard error is written to. Answer and standard error are
 * on separate lines of a terminal that shows both. */
static void leave_line(struct events *ev)
{
    if (ev->json || !ev->any_text || !ev->out.terminal || !ev->reasoning.terminal)
        return;
    if (ev->marked)
        ev->ends_line = markdown_layout_pause(&ev->layout);
    if (!ev->ends_line)
        out_byte(&ev->out, '\n');
    ev->ends_line = true;
    out_flush(&ev->out);
}

static int receive_reasoning(void *arg, struct str delta)
{
    struct events *ev = arg;

    if (!ev->show_reasoning) {
        if (ev->thinking_since == 0) {
            ev->thinking_since = time_ticks();
            ev->thought = 1;
        }
        ev->thought += str_count(delta, '\n');
        return 0;
    }
    add_event(ev, "reasoning", "text", delta);
    if (ev->json)
        return check_reader(ev);
    progress_end();
    leave_line(ev);
    stderr_text_text(&ev->reasoning, delta);
    return 0;
}

/* Ends reasoning: says how long it was if it is not shown. */
static void end_reasoning(struct events *ev)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    progress_end();
    if (ev->thinking_since != 0 && !ev->quiet && !ev->json && ev->reasoning.terminal) {
        leave_line(ev);
        buf_addf(&line, "reasoning: %zu line%s, %" PRId64 " s (%s shows it)", ev->thought,
                 ev->thought == 1 ? "" : "s", (time_ticks() - ev->thinking_since) / 1000,
                 ev->interactive ? "/set reasoning on" : "--reasoning");
        stderr_text_line(&ev->reasoning, false, buf_str(&line));
    }
    ev->thinking_since = 0;
    stderr_text_end(&ev->reasoning);
    buf_release(&line);
}

static int print_text(void *arg, struct str delta)
{
    struct events *ev = arg;

    /* The file has the text first, so that printed text survives SIGKILL. */
    if (ev->partial)
        partial_add(ev->partial, delta);
    if (ev->held)
        return 0;
    end_reasoning(ev);
    add_event(ev, "text", "text", delta);
    if (ev->marked)
        markdown_layout_feed(&ev->layout, delta);
    else if (!ev->json)
        out_text(&ev->out, delta);
    ev->any_text = true;
    ev->ends_line = delta.p[delta.n - 1] == '\n';
    if (!ev->out.whole)
        out_flush(&ev->out);
    return check_reader(ev);
}

static int add_citation(void *arg, struct str json)
{
    struct events *ev = arg;
    struct buf b = BUF_INIT(BUF_LINE);

    if (!ev->json)
        return 0;
    begin_event(&b, "citation");
    json_add_key(&b, "citation");
    json_add_compact(&b, json);
    end_event(ev, &b);
    return check_reader(ev);
}

void events_end_text(struct events *ev)
{
    end_reasoning(ev);
    if (ev->json || !ev->any_text)
        return;
    if (ev->marked)
        ev->ends_line = markdown_layout_end(&ev->layout) || ev->ends_line;
    out_text_end(&ev->out);
    if (!ev->ends_line)
        out_byte(&ev->out, '\n');
    ev->any_text = false;
    if (!ev->out.whole)
        out_flush(&ev->out);
}

void events_pause(struct events *ev)
{
    events_end_text(ev);
    out_flush(&ev->out);
}

/* ---- tools ---- */

void events_call(struct events *ev, const struct tool_job *job)
{
    struct buf b = BUF_INIT(8 * BUF_LINE);

    if (!ev->json)
        return;
    begin_event(&b, "tool_call");
    response_add_members(job->call, &b);
    end_event(ev, &b);
}

void events_call_line(struct events *ev, const struct tool_job *job, bool seen)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    if (ev->quiet || (seen && !ev->verbose))
        return;
    buf_addf(&line, "tool_call %s ", buf_c(&job->call->name));
    buf_add_str(&line, buf_str(&job->call->args));
    stderr_text_line(&ev->reasoning, ev->verbose, buf_str(&line));
    buf_release(&line);
}

void events_result(struct events *ev, const struct tool_job *job)
{
    struct buf b = BUF_INIT(8 * BUF_LINE), line = BUF_INIT(BUF_LINE);

    progress_end();
    if (ev->json) {
        begin_event(&b, "tool_result");
        json_add_member(&b, "tool_call_id", buf_str(&job->call->id));
        json_add_member(&b, "content", buf_str(&job->result));
        json_add_key(&b, "failed");
        buf_add_c(&b, job->failed ? "true" : "false");
        end_event(ev, &b);
    }
    if (!ev->quiet) {
        struct str result = buf_str(&job->result);
        size_t lines = str_count(result, '\n') + (result.n > 0 && !str_ends(result, STR("\n")));

        buf_addf(&line, "tool_result %s ", buf_c(&job->call->name));
        if (ev->reasoning.terminal && lines > 1)
            buf_addf(&line, "(%zu lines) ", lines);
        buf_add_str(&line, buf_str(&job->result));
        stderr_text_line(&ev->reasoning, ev->verbose, buf_str(&line));
    }
    buf_release(&line);
}

/* So much of a tool's name that the line is not longer than a terminal is wide. */
#define NAME_SHOWN 40

void events_running(const struct events *ev, const struct tool_job *jobs, size_t count)
{
    const struct tool_job *first = NULL;
    struct buf text = BUF_INIT(BUF_SMALL);
    size_t others = 0;

    for (size_t i = 0; i < count; i++)
        if (!jobs[i].done && jobs[i].began != 0 && first)
            others++;
        else if (!jobs[i].done && jobs[i].began != 0)
            first = &jobs[i];
    if (!first || ev->quiet || ev->json || !progress_possible())
        return;
    buf_addf(&text, "%.*s", NAME_SHOWN, first->tool->name);
    if (others > 0)
        buf_addf(&text, " and %zu more", others);
    progress_tool(buf_c(&text), first->began);
    buf_release(&text);
}

/* ---- while nothing comes ---- */

static void report_retry(void *arg, const struct err *why, int64_t ms, unsigned repeated)
{
    struct events *ev = arg;
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_addf(&text, "%s: trying again in %" PRId64 ".%" PRId64 " s (%u)", err_text(why), ms / 1000,
             ms % 1000 / 100, repeated);
    if (!ev->quiet)
        hintf(ev->verbose, "%s", buf_c(&text));
    add_event(ev, "notice", "message", buf_str(&text));
    buf_release(&text);
}

void events_notice(struct events *ev, const char *text)
{
    progress_end();
    if (!ev->quiet) {
        stderr_text_end(&ev->reasoning);
        leave_line(ev);
        warnf("%s", text);
    }
    add_event(ev, "notice", "message", str_of(text));
}

static void add_notice(void *arg, const char *text)
{
    events_notice(arg, text);
}

static void turn_sign(void *arg)
{
    struct events *ev = arg;

    if (ev->thinking_since != 0 && (!ev->any_text || ev->ends_line))
        progress_tool("thinking", ev->thinking_since);
    else if ((!ev->any_text || markdown_layout_holds_table(&ev->layout)) && !ev->reasoning.open)
        progress_turn();
}

void events_show_waiting(struct events *ev, struct http_limits *limits)
{
    if (ev->quiet || ev->json || !progress_possible())
        return;
    limits->tick = turn_sign;
    limits->tick_arg = ev;
}

/* The program ends before the turn. */
static void end_early(void *arg, const struct err *e)
{
    struct events *ev = arg;

    events_error(ev, e, exit_code(e->kind));
    out_close(&ev->out, 0);
}

void events_start(struct events *ev, const struct opt_common *o, bool verbose)
{
    *ev = (struct events){.json = o->json, .quiet = o->quiet, .verbose = verbose};
    ev->sink = (struct response_sink){.text = print_text,
                                      .citation = add_citation,
                                      .reasoning = receive_reasoning,
                                      .notice = add_notice,
                                      .again = report_retry,
                                      .arg = ev};
    out_start(&ev->out, o->color);
    markdown_out_init(&ev->layout, &ev->out);
    stderr_text_init(&ev->reasoning, o->color);
    die_before(end_early, ev);
}

void events_release(struct events *ev)
{
    markdown_layout_release(&ev->layout);
    markdown_layout_release(&ev->reasoning.layout);
    buf_release(&ev->reasoning.laid);
}

void events_show_markdown(struct events *ev)
{
    ev->marked = ev->out.terminal && !ev->json;
}

/* Shows the address of each page that the answer cites as a hint. */
static void show_sources(const struct events *ev, struct str citations)
{
    struct hash_map urls = {0};

    message_sources(citations, &urls);
    for (size_t i = 0; i < urls.count; i++)
        hintf(ev->verbose, "source: %s", urls.entries[i].key.p);
    hash_map_release(&urls);
}

void events_done(struct events *ev, const struct turn *t)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    events_pause(ev);
    if (!ev->json && !ev->quiet)
        show_sources(ev, buf_str(&t->answer.opaque.citations));
    if (!ev->json)
        return;
    events_spent(ev, t);
    begin_event(&b, "done");
    json_add_member(&b, "session_id", t->session);
    if (t->answer_id.len > 0)
        json_add_member(&b, "message_id", buf_str(&t->answer_id));
    if (t->answer.finish_reason)
        json_add_member(&b, "finish_reason", str_of(t->answer.finish_reason));
    end_event(ev, &b);
}

int events_code(struct events *ev, const struct response *a, struct err *e)
{
    struct buf code = BUF_INIT(BUF_LINE);
    bool found = code_block_first(buf_str(&a->text), &code);

    end_reasoning(ev);
    out_text(&ev->out, buf_str(&code));
    out_text_end(&ev->out);
    buf_release(&code);
    return found ? 0 : err_set(e, ERR_FAILURE, "the answer has no code block");
}

static void print_usage(const struct events *ev, const char *title, const struct usage *usage,
                        const struct cost *cost)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    usage_add_text(usage, &b);
    if (cost->currency != PRICES_UNKNOWN) {
        buf_add_c(&b, " computed_cost=");
        amount_add_text(&b, cost->amount);
        buf_addf(&b, " currency=%s", prices_currency(ev->prices, cost->currency));
    }
    notef("%s%s", title, buf_c(&b));
    buf_release(&b);
}

void events_usage(struct events *ev, const struct turn *t)
{
    struct cost cost = computed_cost(ev, t), *sum = &ev->spent.computed;

    events_pause(ev);
    print_usage(ev, "", &t->usage, &cost);
    if (ev->spent.turns++ == 0) {
        ev->spent.usage = t->usage;
        *sum = cost;
    } else {
        usage_sum(&ev->spent.usage, &t->usage);
        if (sum->currency != cost.currency)
            *sum = (struct cost){0};
        amount_add(&sum->amount, cost.amount);
    }
}

void events_spent_in_all(const struct events *ev)
{
    if (ev->spent.turns > 1)
        print_usage(ev, "session: ", &ev->spent.usage, &ev->spent.computed);
}

void events_error(struct events *ev, const struct err *e, int code)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    bool again = e->kind == ERR_NETWORK || e->kind == ERR_TIMEOUT || e->kind == ERR_BUSY;

    events_pause(ev);
    if (!ev->json)
        return;
    begin_event(&b, "error");
    json_add_member_int(&b, "code", code);
    json_add_member(&b, "message", str_of(err_text(e)));
    json_add_key(&b, "retryable");
    buf_add_c(&b, again ? "true" : "false");
    end_event(ev, &b);
}
