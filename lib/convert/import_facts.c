#include "convert/import_facts.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"

/* An answer is given when this many messages are held. */
#define HELD_MAX 64
/* A prompt follows a message over at most this many records without one. */
#define WALK_MAX 1000
/* The line of an answer to which no record is joined. */
#define NOT_JOINED SIZE_MAX
/* A file that changed within this time may be written to now. */
#define YOUNG (60 * TIME_SECOND)

/* ---- a fact ---- */

/* The texts of a fact, beside those of its message. */
#define FACT_TEXTS(f)                                                                              \
    {                                                                                              \
        &(f)->session, &(f)->agent, &(f)->id, &(f)->parent                                         \
    }

void fact_init(struct fact *f)
{
    struct buf *const texts[] = FACT_TEXTS(f);

    *f = (struct fact){0};
    import_message_init(&f->message);
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_init(texts[i], BUF_SMALL);
}

void fact_clear(struct fact *f)
{
    struct buf *const texts[] = FACT_TEXTS(f);

    import_message_clear(&f->message, ROLE_USER);
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_clear(texts[i]);
    f->joins = false;
    f->content = STR_NONE;
}

void fact_release(struct fact *f)
{
    struct buf *const texts[] = FACT_TEXTS(f);

    import_message_release(&f->message);
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_release(texts[i]);
}

/* ---- a file ---- */

#define FACTS_TEXTS(f)                                                                             \
    {                                                                                              \
        &(f)->session, &(f)->agent, &(f)->suffix, &(f)->model, &(f)->provider, &(f)->main_session  \
    }

void facts_init(struct facts *f, struct source *s, const char *format)
{
    struct buf *const texts[] = FACTS_TEXTS(f);

    *f = (struct facts){.source = s, .format = format};
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_init(texts[i], BUF_SMALL);
}

static void found_title_release(struct found_title *t)
{
    free(t->session);
    free(t->text);
    free(t->of);
}

void facts_release(struct facts *f)
{
    struct buf *const texts[] = FACTS_TEXTS(f);

    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_release(texts[i]);
    for (size_t i = 0; i < f->held_cap; i++)
        import_message_release(&f->held[i]);
    for (size_t i = 0; i < f->titles_count; i++)
        found_title_release(&f->titles[i]);
    free(f->held);
    free(f->used);
    free(f->links);
    free(f->said);
    free(f->titles);
    buf_release(&f->point.state);
    hash_map_release(&f->responses);
    hash_map_release(&f->parts);
    hash_map_release(&f->sessions);
}

/* ---- reading on ----
 *
 * A scan reads a file that has grown from its last prompt on. What the records before it said of the
 * session is kept. If a later record names one of them, or gives a title, the file is read from its
 * beginning. */

#define STATE_TEXTS(f)                                                                             \
    {                                                                                              \
        &(f)->session, &(f)->agent, &(f)->suffix, &(f)->model, &(f)->provider, &(f)->main_session, \
            &(f)->source->cwd, &(f)->source->branch, &(f)->source->began                           \
    }

/* Notes that the record of the source is a prompt. */
static void set_point(struct facts *f)
{
    struct buf *const texts[] = STATE_TEXTS(f), *state = &f->point.state;

    f->point.offset = f->source->at;
    f->point.number = (int64_t)f->source->number - 1;
    if (state->max == 0)
        buf_init(state, BUF_LINE);
    buf_set(state, STR("["));
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++) {
        if (i > 0)
            buf_add_byte(state, ',');
        json_add_string(state, buf_str(texts[i]));
    }
    buf_add_byte(state, ']');
}

bool facts_continue(struct facts *f, struct str state)
{
    struct buf *const texts[] = STATE_TEXTS(f);
    struct json_iter it;
    struct str value;

    if (!json_check(state, &value, NULL))
        return false;
    it = json_iter(value);
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++) {
        if (!json_next(&it))
            return false;
        buf_clear(texts[i]);
        (void)json_decode(it.value, texts[i]);
    }
    return true;
}

void facts_point(struct facts *f, struct import_point *point)
{
    buf_release(&point->state);
    *point = f->point;
    f->point = (struct import_point){0};
    if (f->several || point->offset <= 0 || point->state.overflow)
        point->offset = 0;
    else
        point->sum = source_sum(f->source, point->offset);
}

/* Ends an import that has not read what a record needs. Returns -1. */
static int restart(struct facts *f)
{
    f->source->restarts = true;
    return -1;
}

/* ---- usage ---- */

/* The records of a response can be on several lines, if a tool result or an earlier import
 * separates them. Subtracts from the usage of m what earlier lines have, so that tokens count
 * once. */
static void count_once(struct facts *f, struct import_message *m)
{
    struct str response = buf_str(&m->response);
    size_t n;

    if (response.n == 0)
        return;
    n = hash_map_number(&f->responses, &response);
    f->used = hash_map_values(&f->responses, f->used, sizeof *f->used);
    import_count_once(&m->usage, &f->used[n]);
}

void facts_usage(struct facts *f, const struct usage *u)
{
    if (f->held_count > 0)
        usage_replace(&f->held[0].usage, u);
}

/* ---- the held answer ---- */

static struct import_message *hold(struct facts *f)
{
    size_t before = f->held_cap;

    f->held = mem_grow(f->held, &f->held_cap, f->held_count + 1, sizeof *f->held);
    for (size_t i = before; i < f->held_cap; i++)
        import_message_init(&f->held[i]);
    import_message_clear(&f->held[f->held_count], ROLE_USER);
    f->held[f->held_count].source = f->source;
    f->held[f->held_count].number = f->source->number;
    return &f->held[f->held_count++];
}

/* Gives the held answer. Returns as facts_message. */
static int flush_held(struct facts *f, struct err *e)
{
    size_t number = f->source->number;
    int result = 0;

    if (f->held_count > 0 && f->held[0].role == ROLE_ASSISTANT && !import_is_empty(&f->held[0]))
        count_once(f, &f->held[0]);
    for (size_t i = 0; result == 0 && i < f->held_count; i++) {
        f->source->number = f->held[i].number;
        result = import_give(f->source, &f->held[i], e);
    }
    f->source->number = number;
    f->held_count = 0;
    return result;
}

/* ---- links and rewinds ---- */

/* Returns the part of an origin that a link is for. */
static struct str part_of(const struct facts *f, size_t n)
{
    return f->parts.entries[n].key;
}

static size_t link_of(struct facts *f, struct str *id)
{
    size_t n = hash_map_number(&f->parts, id);

    f->links = hash_map_values(&f->parts, f->links, sizeof *f->links);
    return n;
}

void facts_link(struct facts *f, struct str id, struct str parent)
{
    if (id.n > 0 && parent.n > 0) {
        size_t n = link_of(f, &id), before = link_of(f, &parent) + 1;

        f->links[n].parent = before;
    }
}

/* Returns whether there is something to replace from number `from` on: not only results of tools
 * and notes, which may hang beside the chain. */
static bool has_turn(const struct facts *f, size_t from)
{
    for (size_t i = from; i < f->said_count; i++)
        if (f->links[f->said[i]].prompt || f->links[f->said[i]].answer)
            return true;
    return false;
}

static bool is_on_path(const struct facts *f, size_t n)
{
    size_t place = f->links[n].said;

    return place > 0 && place <= f->said_count && f->said[place - 1] == n;
}

static void push_said(struct facts *f, size_t n)
{
    f->said = mem_grow(f->said, &f->said_cap, f->said_count + 1, sizeof *f->said);
    f->said[f->said_count++] = n;
    f->said_end = f->said_count;
    f->links[n].said = f->said_count;
}

/* Makes the path lead to a message that was left, as it did before. */
static void return_to(struct facts *f, size_t n)
{
    size_t *branch = mem_zalloc((f->parts.count + 1) * sizeof *branch), count = 0, at = n + 1;

    for (; at > 0 && !is_on_path(f, at - 1); at = f->links[at - 1].before)
        branch[count++] = at - 1;
    f->said_count = at > 0 ? f->links[at - 1].said : 0;
    while (count > 0)
        push_said(f, branch[--count]);
    free(branch);
    f->returned = true;
}

/* Goes back to the message that this one follows. Returns false if that is not known. */
static bool follow_parent(struct facts *f, struct str parent)
{
    size_t *number = hash_map_find(&f->parts, parent), at = number ? *number + 1 : 0;

    for (int steps = 0; at > 0 && f->links[at - 1].said == 0 && steps < WALK_MAX; steps++)
        at = f->links[at - 1].parent;
    if (at == 0 || f->links[at - 1].said == 0)
        return parent.n == 0;
    if (!is_on_path(f, at - 1))
        return_to(f, at - 1);
    else if (has_turn(f, f->links[at - 1].said))
        f->said_count = f->links[at - 1].said;
    return true;
}

static void add_said(struct facts *f, struct str session, struct str part, bool prompt, bool answer)
{
    size_t n = link_of(f, &part);

    /* A record that is given twice stays where it was, so that no branch leads to itself. */
    if (f->links[n].said == 0)
        f->links[n].before = f->said_count > 0 ? f->said[f->said_count - 1] + 1 : 0;
    f->links[n].session = hash_map_number(&f->sessions, &session);
    f->links[n].prompt = prompt;
    f->links[n].answer = answer;
    push_said(f, n);
}

void facts_left(struct facts *f, struct str id)
{
    struct buf session = BUF_INIT(BUF_SMALL);

    import_add_session(&session, f->format, buf_str(&f->session));
    if (f->tree && import_knows(f->source, buf_str(&session), id, NULL)) {
        add_said(f, buf_str(&session), id, true, false);
        f->links[f->said[f->said_count - 1]].left = true;
    }
    buf_release(&session);
}

int facts_rewind(struct facts *f, int64_t turns, struct err *e)
{
    size_t at = f->said_count;

    if (flush_held(f, e) < 0)
        return -1;
    while (turns > 0 && at > 0)
        turns -= f->links[f->said[--at]].prompt;
    f->said_count = at;
    return turns > 0 && f->source->partial ? restart(f) : 0;
}

/* Returns whether the message is a result of a tool, which follows its call and not the message
 * before: of several calls at once, each is a branch. */
static bool is_result(const struct fact *fact)
{
    return fact->message.role == ROLE_TOOL ||
           json_has_type(json_at(fact->content, 0), "tool_result");
}

/* Notes that a record belongs to m, which is a prompt or not. The first new message after a rewind
 * gets the ids of the messages that were rewound. */
static void note_said(struct facts *f, struct import_message *m, struct str part, bool prompt)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    struct str session = buf_str(&m->session);
    bool answer = m->role == ROLE_ASSISTANT && m->model.len + f->provider.len > 0;
    size_t kept = 0, end;

    if (!f->tree)
        return;
    /* Nothing is replaced by a message that is stored already. */
    end = import_knows(f->source, session, part, NULL) == 0 ? f->said_end : 0;
    if (f->said_count > 0 && f->said_count < end)
        kept = import_knows(f->source, session, part_of(f, f->said[f->said_count - 1]), NULL);
    for (size_t i = f->said_count; i < end; i++) {
        size_t line;

        buf_clear(&id);
        line = import_knows(f->source, session, part_of(f, f->said[i]), &id);
        /* The line of an answer can have several records: it stays with the first of them. */
        if (line > 0 && line != kept)
            import_add_id(&m->replaces, buf_str(&id));
    }
    buf_release(&id);
    add_said(f, session, part, prompt, answer);
}

/* ---- messages ---- */

/* Sets the session of a message in the history. Returns false if it is a subagent's and those are
 * not wanted. */
static bool set_session(struct facts *f, struct fact *fact)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    struct str agent = buf_str(fact->agent.len > 0 ? &fact->agent : &f->agent);
    struct import_message *m = &fact->message;

    if (agent.n > 0 && !f->source->subagents) {
        f->source->yielded = f->source->yielded || fact->content.n > 0 || !import_is_empty(m);
        return false;
    }
    buf_add_str(&id, buf_str(fact->session.len > 0 ? &fact->session : &f->session));
    if (id.len == 0)
        buf_add_str(&id, source_stem(f->source));
    if (fact->agent.len > 0) {
        buf_add_byte(&id, ':');
        buf_add_str(&id, agent);
    }
    if (m->copy_of.len > 0) {
        struct str part = buf_str(&m->copy_of), session = str_cut(&part, '/');
        struct buf whole = BUF_INIT(BUF_SMALL);

        import_add_session(&whole, f->format, session);
        buf_addf(&whole, "/%.*s", (int)part.n, part.p);
        buf_set(&m->copy_of, buf_str(&whole));
        buf_release(&whole);
    }
    import_set_session(m, f->format, buf_str(&id));
    buf_add_str(&m->session, buf_str(&f->suffix));
    f->several =
        f->several || fact->agent.len > 0 ||
        (f->main_session.len > 0 && !str_eq(buf_str(&f->main_session), buf_str(&m->session)));
    if (fact->agent.len == 0)
        buf_set(&f->main_session, buf_str(&m->session));
    buf_release(&id);
    return true;
}

/* Adds a record of an answer to the one that is held, or begins another. */
static int add_answer(struct facts *f, struct fact *fact, struct str part, struct err *e)
{
    struct import_message *m = &fact->message, *held = f->held;
    struct str response = buf_str(&m->response);
    size_t before, line = import_knows(f->source, buf_str(&m->session), part, NULL);
    /* An earlier import may have stored some records of an answer before others were written. */
    bool same =
        f->held_count == 1 && held->role == ROLE_ASSISTANT && line == f->held_line &&
        str_eq(buf_str(&m->session), buf_str(&held->session)) &&
        (fact->joins || (response.n > 0 && str_eq(response, buf_str(&f->held[0].response))));

    if (!same) {
        if (flush_held(f, e) < 0)
            return -1;
        held = hold(f);
        /* The answer that was held may have had the record, too. */
        f->held_line = import_knows(f->source, buf_str(&m->session), part, NULL);
        held->role = ROLE_ASSISTANT;
        held->time = m->time;
        buf_add_str(&held->session, buf_str(&m->session));
        buf_add_str(&held->model, buf_str(m->model.len > 0 ? &m->model : &f->model));
        buf_add_str(&held->provider, buf_str(m->provider.len > 0 ? &m->provider : &f->provider));
        buf_add_str(&held->response, response);
        buf_add_str(&held->copy_of, buf_str(&m->copy_of));
        import_set_part(held, part);
    } else {
        import_add_part(held, part);
    }
    note_said(f, held, part, false);
    before = held->text.len + held->calls.len + (size_t)held->images;
    import_add_text(held, buf_str(&m->text));
    held->text.overflow = held->text.overflow || m->text.overflow;
    import_join(held, m);
    import_add_content(held, fact->content);
    usage_replace(&held->usage, &m->usage);
    if (held->text.len + held->calls.len + (size_t)held->images > before || held->text.overflow)
        f->source->yielded = true;
    if (m->finish.len > 0)
        buf_set(&held->finish, buf_str(&m->finish));
    return 0;
}

/* Gives m, or holds it if it hangs on the answer that is held, and clears it for the next message of
 * its record. The messages after the first have `.1`, `.2`, … after their part. */
static int give_piece(struct facts *f, struct import_message *m, struct str part, size_t *given,
                      bool hangs, struct err *e)
{
    struct buf own = BUF_INIT(BUF_SMALL);
    bool some = !import_is_empty(m);
    int result = 0;

    buf_add_str(&own, part);
    if (*given > 0)
        buf_addf(&own, ".%zu", *given);
    import_set_part(m, buf_str(&own));
    if (!hangs) {
        result = import_give(f->source, m, e);
    } else {
        struct import_message *held = hold(f), empty = *held;

        *held = *m;
        held->number = f->source->number;
        *m = empty;
        m->role = held->role;
        m->time = held->time;
        buf_add_str(&m->session, buf_str(&held->session));
        f->source->yielded = true;
    }
    *given += some;
    import_message_rewind(m);
    buf_release(&own);
    return result;
}

/* A text that belongs to a call begins a new message if there was text before. Returns whether such
 * a text is at `at`. */
static bool is_said_with_call(const struct import_message *m, const struct json_iter *at)
{
    struct json_iter next = *at;

    return m->role == ROLE_ASSISTANT && m->text.len > 0 && json_has_type(at->value, "text") &&
           json_next(&next) && json_has_type(next.value, "tool_use");
}

static bool is_blank(const struct import_message *m)
{
    return m->text.len == 0 && !m->text.overflow && m->calls.len == 0 && m->images == 0;
}

/* Gives a message with content, of which each result of a tool is a message, too. */
static int give_pieces(struct facts *f, struct import_message *m, struct str part,
                       struct str content, bool hangs, struct err *e)
{
    enum role role = m->role;
    struct json_iter it = json_iter(content);
    size_t given = 0;
    int result = 0;

    if (json_type(content) != JSON_ARRAY)
        import_add_content(m, content);
    while (result == 0 && json_type(content) == JSON_ARRAY && json_next(&it)) {
        bool is_result = json_has_type(it.value, "tool_result");

        if ((is_result && !is_blank(m)) || is_said_with_call(m, &it))
            result = give_piece(f, m, part, &given, hangs, e);
        if (!is_result) {
            import_add_block(m, it.value);
            continue;
        }
        m->role = ROLE_TOOL;
        m->failed = json_is_true(json_get(it.value, "is_error"));
        (void)json_decode(json_get(it.value, "tool_use_id"), &m->call_id);
        import_add_content(m, json_get(it.value, "content"));
        if (result == 0)
            result = give_piece(f, m, part, &given, hangs, e);
        m->role = role;
    }
    return result == 0 && (given == 0 || !is_blank(m)) ? give_piece(f, m, part, &given, hangs, e)
                                                       : result;
}

/* Gives a message that is not joined; an answer, and the results that follow it, are held. */
static int add_other(struct facts *f, struct fact *fact, struct str part, struct err *e)
{
    struct import_message *m = &fact->message;
    bool prompt = m->role == ROLE_USER && !is_result(fact);
    bool hangs = m->role == ROLE_TOOL && f->held_count > 0 && f->held_count < HELD_MAX;

    if (!hangs && flush_held(f, e) < 0)
        return -1;
    if (m->role == ROLE_ASSISTANT) {
        hangs = true;
        f->held_line = NOT_JOINED;
        if (m->model.len == 0)
            buf_add_str(&m->model, buf_str(&f->model));
        if (m->provider.len == 0)
            buf_add_str(&m->provider, buf_str(&f->provider));
    }
    if (prompt && f->source->point)
        set_point(f);
    note_said(f, m, part, prompt);
    return give_pieces(f, m, part, fact->content, hangs, e);
}

int facts_message(struct facts *f, struct fact *fact, struct err *e)
{
    struct import_message *m = &fact->message;
    struct str part;

    if (!set_session(f, fact))
        return 0;
    f->given++;
    if (fact->id.len == 0)
        buf_add_number(&fact->id, f->source->number);
    part = buf_str(&fact->id);
    if (f->tree && fact->agent.len == 0 && !is_result(fact) &&
        !follow_parent(f, buf_str(&fact->parent)) && f->source->partial &&
        import_knows(f->source, buf_str(&m->session), part, NULL) == 0)
        return restart(f);
    /* A message that another one of the file replaces may be shown again. */
    if (f->source->partial &&
        (f->several || import_replaced_by(f->source, buf_str(&m->session), part) > 0))
        return restart(f);
    if (f->source->began.len == 0)
        buf_set(&f->source->began, buf_str(&f->source->cwd));
    return m->role == ROLE_ASSISTANT && (fact->joins || m->response.len > 0)
               ? add_answer(f, fact, part, e)
               : add_other(f, fact, part, e);
}

/* ---- titles ---- */

void facts_title(struct facts *f, struct str session, struct str title, struct str of, int rank)
{
    struct buf whole = BUF_INIT(BUF_SMALL);
    struct found_title *t;

    if (str_trim(title).n == 0)
        return;
    if (session.n > 0) {
        import_add_session(&whole, f->format, session);
    } else if (f->session.len > 0) {
        import_add_session(&whole, f->format, buf_str(&f->session));
        buf_add_str(&whole, buf_str(&f->suffix));
    }
    f->titles = mem_grow(f->titles, &f->titles_cap, f->titles_count + 1, sizeof *f->titles);
    t = &f->titles[f->titles_count++];
    *t = (struct found_title){.text = mem_copy(title.p, title.n), .rank = rank};
    t->session = buf_detach(&whole);
    t->of = of.n > 0 ? mem_copy(of.p, of.n) : NULL;
}

/* Returns the session of a title in the history. A title without one is of the last message's. */
static struct str title_session(const struct facts *f, const struct found_title *t)
{
    return *t->session ? str_of(t->session) : buf_str(&f->main_session);
}

/* Returns whether a title counts: its session has messages, and the record that it is of. */
static bool title_counts(const struct facts *f, const struct found_title *t)
{
    struct str session = title_session(f, t);

    return import_gave(f->source, session) &&
           (!t->of || import_knows(f->source, session, str_of(t->of), NULL));
}

/* Gives the title that counts of each session that has messages. The others wait for theirs. */
static int give_titles(struct facts *f, struct err *e)
{
    struct hash_map sessions = {0}; /* -> the title that counts */
    size_t *best = mem_zalloc((f->titles_count + 1) * sizeof *best), waiting = 0;
    int result = 0;

    for (size_t i = 0; i < f->titles_count; i++) {
        size_t count = sessions.count, n;
        struct str session = title_session(f, &f->titles[i]);

        if (!title_counts(f, &f->titles[i]))
            continue;
        n = hash_map_number(&sessions, &session);
        if (n == count || f->titles[i].rank >= f->titles[best[n]].rank)
            best[n] = i;
    }
    for (size_t n = 0; result == 0 && n < sessions.count; n++)
        result = import_give_title(f->source, sessions.entries[n].key,
                                   str_of(f->titles[best[n]].text), e);
    for (size_t i = 0; i < f->titles_count; i++) {
        if (title_counts(f, &f->titles[i]))
            found_title_release(&f->titles[i]);
        else
            f->titles[waiting++] = f->titles[i];
    }
    f->titles_count = waiting;
    free(best);
    hash_map_release(&sessions);
    return result;
}

/* ---- a branch that is shown again ---- */

static size_t line_of_link(const struct facts *f, size_t n, struct buf *id)
{
    return import_knows(f->source, f->sessions.entries[f->links[n].session].key, part_of(f, n), id);
}

static size_t replacing_line(const struct facts *f, size_t n)
{
    return import_replaced_by(f->source, f->sessions.entries[f->links[n].session].key,
                              part_of(f, n));
}

static struct str line_key(const size_t *line)
{
    return (struct str){(const char *)line, sizeof *line};
}

/* Returns whether the file shows the message of a record. */
static bool is_shown(const struct facts *f, size_t n)
{
    return is_on_path(f, n) && !f->links[n].left;
}

/* Adds the numbers of all lines that have a part of the file, and of those that it shows. */
static void find_lines(const struct facts *f, struct hash_map *lines, struct hash_map *shown)
{
    for (size_t n = 0; n < f->parts.count; n++) {
        size_t line = f->links[n].said > 0 ? line_of_link(f, n, NULL) : 0;

        if (line > 0)
            (void)hash_map_add(lines, line_key(&line));
        if (line > 0 && is_shown(f, n))
            (void)hash_map_add(shown, line_key(&line));
    }
}

/* Appends the ids of the lines of a session that count although the file does not show them. */
static void add_left(const struct facts *f, size_t session, const struct hash_map *shown,
                     struct buf *ids)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    for (size_t n = 0; n < f->parts.count; n++) {
        const struct link *l = &f->links[n];
        size_t line = 0;

        buf_clear(&id);
        if (l->said > 0 && l->session == session && replacing_line(f, n) == 0)
            line = line_of_link(f, n, &id);
        if (line > 0 && !hash_map_find(shown, line_key(&line)))
            import_add_id(ids, buf_str(&id));
    }
    buf_release(&id);
}

/* After a return to a branch: replaces the lines that are left now, if no line of their session was
 * given again, by a copy of the last message that the file shows. Returns as facts_message. */
static int replace_left(struct facts *f, const struct hash_map *shown, struct hash_map *done,
                        struct err *e)
{
    struct buf ids = BUF_INIT(SIZE_MAX);
    int result = 0;

    for (size_t i = f->said_count; result >= 0 && i > 0; i--) {
        size_t n = f->said[i - 1], session = f->links[n].session;

        if (!is_shown(f, n) || line_of_link(f, n, NULL) == 0 ||
            !hash_map_add(done, line_key(&session)))
            continue;
        buf_clear(&ids);
        add_left(f, session, shown, &ids);
        if (ids.len > 0)
            result = import_give_again(f->source, f->sessions.entries[session].key, part_of(f, n),
                                       &ids, e);
    }
    buf_release(&ids);
    return result;
}

int facts_show_again(struct facts *f, struct err *e)
{
    struct hash_map lines = {0}, shown = {0};
    struct hash_map done = {0}; /* the sessions of which lines were given again */
    struct buf ids = BUF_INIT(SIZE_MAX);
    int result = 0;

    for (size_t i = 0; !f->source->partial && result >= 0 && i < f->said_count; i++) {
        size_t n = f->said[i], session = f->links[n].session, by = replacing_line(f, n);

        if (by == 0 || !is_shown(f, n))
            continue;
        if (lines.count == 0)
            find_lines(f, &lines, &shown);
        if (!hash_map_find(&lines, line_key(&by)))
            continue;
        buf_clear(&ids);
        if (!hash_map_find(&done, line_key(&session)))
            add_left(f, session, &shown, &ids);
        (void)hash_map_add(&done, line_key(&session));
        result =
            import_give_again(f->source, f->sessions.entries[session].key, part_of(f, n), &ids, e);
    }
    if (f->returned && !f->source->partial && result >= 0) {
        if (lines.count == 0)
            find_lines(f, &lines, &shown);
        result = replace_left(f, &shown, &done, e);
    }
    buf_release(&ids);
    hash_map_release(&lines);
    hash_map_release(&shown);
    hash_map_release(&done);
    return result < 0 ? -1 : 0;
}

/* ---- the end of a file ---- */

void facts_wait(struct facts *f)
{
    const struct import_message *last = f->held_count > 0 ? &f->held[f->held_count - 1] : NULL;

    if (!last || last->role != ROLE_ASSISTANT || last->finish.len > 0 || !f->source->waits ||
        time_now() - f->source->time >= YOUNG)
        return;
    import_postpone(f->source, buf_str(&last->session));
    f->held_count = 0;
}

int facts_end(struct facts *f, struct err *e)
{
    int result = flush_held(f, e);

    return result == 0 ? give_titles(f, e) : result;
}
