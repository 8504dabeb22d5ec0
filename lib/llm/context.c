#include "chathist/llm/context.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/buf.h"
#include "chathist/base/checksum.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"

#define NO_RESULT "no result is known"
#define UNKNOWN "unknown: chat was killed while it ran"
#define BAD_ARGUMENTS                                                                              \
    "no result: the call was not carried out, its arguments are not a valid JSON object"

void context_init(struct context *c)
{
    memset(c, 0, sizeof *c);
    c->turn = CONTEXT_ALL;
}

static void release_message(struct context_message *m)
{
    free(m->content);
    free(m->tool_calls);
    free(m->tool_call_id);
    free(m->thinking);
    free(m->provider);
    free(m->address);
    free(m->id);
    free(m->reply_to);
    memset(m, 0, sizeof *m);
}

void context_release(struct context *c)
{
    for (size_t i = 0; i < c->count; i++)
        release_message(&c->at[i]);
    free(c->at);
    free(c->system);
    context_init(c);
}

/* ---- building ---- */

struct context_message *context_add_text(struct context *c, enum role role, struct str content)
{
    c->at = mem_grow(c->at, &c->cap, c->count + 1, sizeof *c->at);

    struct context_message *m = &c->at[c->count++];

    memset(m, 0, sizeof *m);
    m->role = role;
    m->content = mem_copy(content.p, content.n);
    m->n = content.n;
    return m;
}

void context_set_system(struct context *c, struct str text)
{
    free(c->system);
    c->system = text.n > 0 ? mem_copy(text.p, text.n) : NULL;
    c->system_len = text.n;
}

void context_begin_turn(struct context *c)
{
    c->turn = c->count;
}

void context_set_attachments(struct context *c, const struct attachment *attachments, size_t count)
{
    c->at[c->count - 1].attachments = attachments;
    c->at[c->count - 1].attachments_count = count;
}

/* Returns the calls of an assistant line in their strict form, or NULL if none is usable. */
static char *strict_calls(struct str calls)
{
    struct buf out = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct json_iter it = json_iter(calls);
    struct message_call call;

    buf_add_byte(&out, '[');
    while (message_next_call(&it, &call, &args)) {
        enum json_type type = json_type(call.args);

        if (json_text(call.id, &scratch).n == 0 || json_text(call.name, &scratch).n == 0)
            continue;
        buf_add_c(&out, out.len > 1 ? ",{\"id\":" : "{\"id\":");
        buf_add_str(&out, call.id);
        buf_add_c(&out, ",\"name\":");
        buf_add_str(&out, call.name);
        buf_add_c(&out, ",\"args\":");
        if (type == JSON_OBJECT || type == JSON_STRING)
            json_add_compact(&out, call.args);
        else
            buf_add_c(&out, "{}");
        buf_add_byte(&out, '}');
    }
    buf_release(&scratch);
    buf_release(&args);
    if (out.len == 1) {
        buf_release(&out);
        return NULL;
    }
    buf_add_byte(&out, ']');
    return buf_detach(&out);
}

/* Returns a copy of a text field, or NULL if the line lacks it or it is empty. */
static char *copy_field(const struct message *m, enum field f)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = json_text(m->field[f], &scratch);
    char *copy = text.n > 0 ? mem_copy(text.p, text.n) : NULL;

    buf_release(&scratch);
    return copy;
}

/* Sets the fields that only answers have. Calls are always sent with their results, because the
 * tools have run, however the turn ended. */
static void set_answer(struct context_message *to, const struct message *m)
{
    struct str thinking = m->field[FIELD_THINKING];
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str reason = message_text(m, FIELD_FINISH_REASON, &scratch);
    bool complete = message_ending(reason, NULL) == ENDING_COMPLETE;

    buf_release(&scratch);
    to->tool_calls = strict_calls(m->field[FIELD_TOOL_CALLS]);
    to->ran = json_type(m->field[FIELD_PROVIDER]) == JSON_STRING && !m->field[FIELD_ORIGIN].p &&
              !to->failed && complete;
    if (json_type(thinking) == JSON_ARRAY)
        to->provider = copy_field(m, FIELD_PROVIDER);
    if (to->provider) {
        to->thinking = mem_copy(thinking.p, thinking.n);
        to->address = copy_field(m, FIELD_SERVER);
    }
    if (!to->tool_calls && !complete) {
        to->end = to->n > 0 ? CONTEXT_CUT : CONTEXT_FAILED;
        to->reply_to = copy_field(m, FIELD_REPLY_TO);
    }
}

static bool is_text(const struct context_message *m)
{
    return m->role != ROLE_TOOL && !m->tool_calls;
}

bool context_add(struct context *c, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str content = message_content(m, &scratch);

    if (m->role == ROLE_SYSTEM) {
        context_set_system(c, content);
    } else if (m->role != ROLE_OTHER) {
        struct context_message *to = context_add_text(c, m->role, content);

        to->failed = json_is_true(m->field[FIELD_FAILED]);
        if (m->role == ROLE_USER) {
            to->id = copy_field(m, FIELD_ID);
            to->rank = hash_fnv(to->id ? str_of(to->id) : content);
        } else if (m->role == ROLE_TOOL) {
            to->tool_call_id = copy_field(m, FIELD_TOOL_CALL_ID);
        } else {
            set_answer(to, m);
        }
    }
    buf_release(&scratch);
    return m->role != ROLE_OTHER;
}

void context_add_calls(struct context *c, struct str content, struct str calls, struct str thinking,
                       struct context_server from)
{
    struct context_message *to = context_add_text(c, ROLE_ASSISTANT, content);

    to->tool_calls = strict_calls(calls);
    if (to->tool_calls && thinking.n > 0) {
        to->thinking = mem_copy(thinking.p, thinking.n);
        to->provider = mem_text(from.provider);
        to->address = mem_text(from.address);
    }
}

void context_add_result(struct context *c, struct str call_id, struct str content, bool failed)
{
    struct context_message *to = context_add_text(c, ROLE_TOOL, content);

    to->tool_call_id = mem_copy(call_id.p, call_id.n);
    to->failed = failed;
}

bool context_drop_result_images(struct context *c)
{
    bool any = false;

    for (size_t i = 0; i < c->count; i++) {
        if (c->at[i].role != ROLE_TOOL || c->at[i].attachments_count == 0)
            continue;
        c->at[i].attachments_count = 0;
        any = true;
    }
    return any;
}

/* ---- weights ---- */

size_t context_weight(const struct context *c, size_t from, size_t end)
{
    size_t bytes = 0;

    for (; from < end; from++) {
        const struct context_message *m = &c->at[from];

        bytes += m->n + (m->tool_calls ? strlen(m->tool_calls) : 0) +
                 (m->tool_call_id ? strlen(m->tool_call_id) : 0);
    }
    return bytes;
}

size_t context_bytes(const struct context *c, size_t from, size_t end)
{
    size_t bytes = context_weight(c, from, end);

    for (; from < end; from++)
        bytes += c->at[from].thinking ? strlen(c->at[from].thinking) : 0;
    return bytes;
}

/* ---- calls and their results ---- */

#define NONE SIZE_MAX

/* The tool results that no call has. */
struct results {
    struct hash_map first; /* id of the call -> the first one, or NONE */
    size_t *next;          /* the next message of the same id, for each message, or NONE */
};

/* Moves the result of a call of `m` to `to`, or makes one that says why it is missing. */
static void move_result(struct context_message *to, struct context *c,
                        const struct context_message *m, struct str call, struct results *r)
{
    struct buf id = BUF_INIT(BUF_LINE);
    size_t *at;

    json_decode(json_get(call, "id"), &id);
    at = hash_map_find(&r->first, str_of(buf_c(&id)));
    if (at && *at != NONE) {
        *to = c->at[*at];
        memset(&c->at[*at], 0, sizeof *to);
        *at = r->next[*at];
    } else {
        const char *why = json_type(json_get(call, "args")) != JSON_OBJECT ? BAD_ARGUMENTS
                          : m->ran                                         ? UNKNOWN
                                                                           : NO_RESULT;

        *to = (struct context_message){.role = ROLE_TOOL,
                                       .content = mem_text(why),
                                       .n = strlen(why),
                                       .tool_call_id = buf_detach(&id),
                                       .failed = true};
    }
    buf_release(&id);
}

/* Removes the messages that are marked as not sent, and what said how the others ended, and moves
 * each result directly after its call, in the order of the calls. This goes from the newest message
 * to the oldest, so that a call has the nearest result of its id: some servers use the same ids in
 * every response. */
static void remove_unsent(struct context *c)
{
    struct results results = {.next = mem_zalloc(c->count * sizeof *results.next)};
    size_t cap = c->count, from, turn_from;
    struct context_message *sent;
    struct json_iter it;

    for (size_t i = 0; i < c->count; i++)
        for (it = json_iter(str_of(c->at[i].tool_calls)); json_next(&it);)
            cap++;
    sent = mem_zalloc(cap * sizeof *sent);
    from = turn_from = cap; /* the messages that were moved, and those of this turn, begin there */
    for (size_t i = c->count; i-- > 0;) {
        struct context_message *m = &c->at[i];
        struct str id = str_of(m->tool_call_id);

        if (m->role == ROLE_TOOL && !m->unsent && id.p) {
            const size_t *first = hash_map_find(&results.first, id);

            results.next[i] = first ? *first : NONE;
            hash_map_set(&results.first, id, i);
        } else if (m->role != ROLE_TOOL && !m->unsent) {
            size_t end = from;

            for (it = json_iter(str_of(m->tool_calls)); json_next(&it);)
                from--;
            it = json_iter(str_of(m->tool_calls));
            for (size_t k = from; k < end && json_next(&it); k++)
                move_result(&sent[k], c, m, it.value, &results);
            free(m->id);
            free(m->reply_to);
            m->id = m->reply_to = NULL;
            m->end = CONTEXT_FINISHED;
            sent[--from] = *m;
            memset(m, 0, sizeof *m);
        }
        if (i == c->turn)
            turn_from = from;
    }
    hash_map_release(&results.first);
    free(results.next);
    for (size_t i = 0; i < c->count; i++)
        release_message(&c->at[i]);
    free(c->at);
    memmove(sent, sent + from, (cap - from) * sizeof *sent);
    c->at = sent;
    c->count = cap - from;
    c->cap = cap;
    c->turn = turn_from - from;
}

/* ---- cutting ---- */

static bool is_reply_to(const struct context_message *m, const char *prompt)
{
    return prompt && m->reply_to && strcmp(m->reply_to, prompt) == 0;
}

/* Removes the messages of earlier turns that are not sent again (context_cut). */
static void drop_unsent(struct context *c)
{
    struct context_message *at = c->at;
    size_t turn = c->turn < c->count ? c->turn : c->count;

    for (size_t from = 0, end; from < turn; from = end) {
        const char *prompt = at[from].id;
        bool failed = false, finished = false, more = false;

        for (end = from + 1; end < turn && at[end].role != ROLE_USER; end++) {
            bool own = is_reply_to(&at[end], prompt);

            if (at[end].role == ROLE_ASSISTANT && is_text(&at[end]) &&
                at[end].end == CONTEXT_FINISHED)
                finished = true;
            at[end].unsent = at[end].end == CONTEXT_FAILED || (own && finished);
            failed = failed || (own && at[end].end == CONTEXT_FAILED);
        }
        for (size_t i = end; i-- > from + 1;) {
            if (more && at[i].end == CONTEXT_CUT && is_reply_to(&at[i], prompt))
                at[i].unsent = true;
            if (at[i].role == ROLE_ASSISTANT && (at[i].n > 0 || at[i].tool_calls))
                more = true;
        }
        at[from].unsent = failed && !more && !finished;
    }
    remove_unsent(c);
}

/* Marks the messages from at[from] to at[end - 1] as left out. Returns the bytes that this frees in
 * a window of tokens. */
static size_t mark_left_out(struct context *c, size_t from, size_t end)
{
    size_t bytes = 0;

    for (size_t i = from; i < end; i++) {
        if (c->at[i].unsent)
            continue;
        bytes += context_bytes(c, i, i + 1);
        c->at[i].unsent = true;
        c->dropped++;
    }
    return bytes;
}

/* Returns the index after the unit that begins at at[i]: one message, or a round: a
 * message with calls and their results. The results follow their calls (remove_unsent). */
static size_t unit_end(const struct context *c, size_t i, size_t end)
{
    bool round = c->at[i].tool_calls != NULL;

    for (i++; round && i < end && c->at[i].role == ROLE_TOOL; i++) {}
    return i;
}

/* Returns the beginning of the unit that ends before at[end]. */
static size_t unit_start(const struct context *c, size_t end)
{
    while (--end > 0 && c->at[end].role == ROLE_TOOL) {}
    return end;
}

/* Returns the prompt of the turn to which at[i] belongs, or SIZE_MAX before the first one. */
static size_t find_prompt(const struct context *c, size_t i)
{
    while (i < c->count && c->at[i].role != ROLE_USER)
        i--;
    return i < c->count ? i : SIZE_MAX;
}

/* Sent in any case: the last prompt before a turn with the unit at its end, and the newest
 * answer with its prompt. SIZE_MAX: none. */
struct essential {
    size_t prompt, unit, answered, answer;
};

static struct essential find_essential(const struct context *c, size_t turn)
{
    struct essential k = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};

    if (turn == 0)
        return k;
    k.prompt = find_prompt(c, turn - 1);
    k.unit = unit_start(c, turn);
    for (size_t i = turn; i-- > 0 && k.answer == SIZE_MAX;)
        if (c->at[i].role == ROLE_ASSISTANT && is_text(&c->at[i]) && c->at[i].n > 0 &&
            !c->at[i].unsent)
            k.answer = i;
    k.answered = k.answer == SIZE_MAX ? SIZE_MAX : find_prompt(c, k.answer);
    return k;
}

static bool is_essential(const struct essential *k, size_t i)
{
    return i == k->prompt || i == k->unit || i == k->answered || i == k->answer;
}

/* What context_cut has chosen so far, and its limits. */
struct room {
    size_t messages, bytes;
};

/* Subtracts the messages from at[from] to at[end - 1] from the room. Returns false if it is too
 * small. */
static bool use_room(struct room *room, const struct context *c, size_t from, size_t end)
{
    size_t bytes = context_weight(c, from, end);

    if (end - from > room->messages || bytes > room->bytes)
        return false;
    room->messages -= end - from;
    room->bytes -= bytes;
    return true;
}

/* Chooses the units of the turn from at[from] to at[end - 1], the newest first, after its prompt.
 * Returns false if some of them are left out. */
static bool choose_units(struct context *c, struct room *room, const struct essential *k,
                         size_t from, size_t end)
{
    bool fits = is_essential(k, from) || use_room(room, c, from, from + 1), any = false;

    for (size_t i, last = end; last > from + 1; last = i) {
        i = unit_start(c, last);
        fits = fits && (is_essential(k, i) || use_room(room, c, i, last));
        any = any || fits || is_essential(k, i);
        if (!fits && !is_essential(k, i))
            (void)mark_left_out(c, i, last);
    }
    /* A prompt without anything after it would only confuse the model. */
    if (!is_essential(k, from) && !any && !(fits && end == from + 1))
        (void)mark_left_out(c, from, from + 1);
    return fits;
}

void context_cut(struct context *c, size_t max_messages, size_t max_bytes)
{
    struct room room = {max_messages, max_bytes};
    struct essential k;
    size_t from;
    bool fits = true;

    drop_unsent(c);
    k = find_essential(c, max_messages > 0 && max_bytes > 0 ? c->turn : 0);
    for (size_t i = 0; i < c->turn; i++)
        if (is_essential(&k, i) && !use_room(&room, c, i, unit_end(c, i, c->turn)))
            room = (struct room){0};
    for (size_t end = c->turn; end > 0; end = from) {
        from = find_prompt(c, end - 1);
        if (from != SIZE_MAX && fits) {
            fits = choose_units(c, &room, &k, from, end);
            continue;
        }
        /* The messages before the first prompt are sent as a whole or not at all. */
        if (from == SIZE_MAX) {
            from = 0;
            if (fits && use_room(&room, c, from, end))
                continue;
        }
        for (size_t i = from; i < end; i = unit_end(c, i, end))
            if (!is_essential(&k, i))
                (void)mark_left_out(c, i, unit_end(c, i, end));
    }
    remove_unsent(c);
}

/* ---- a window ---- */

#define LEFT_OUT "[left out]"
/* The least of a text whose middle is left out, in bytes. */
#define SHORT_LEAST ((size_t)64)

/* The messages of one request, for which room is made. */
struct fit {
    struct context *c;
    size_t first; /* all before it are left out, but the essential ones */
    size_t turn;  /* the turn of the request begins here */
    size_t end;   /* it ends before this message */
    size_t bytes; /* the bytes of all that is not left out */
};

/* Leaves out units, the oldest first, until at most `goal` bytes are left: of a turn the rounds,
 * and then its prompt together with its answer. */
static void fit_earlier(struct fit *f, size_t goal)
{
    struct context *c = f->c;
    struct essential k = find_essential(c, f->turn);

    for (size_t from = f->first, next; from < f->turn && f->bytes > goal; from = next) {
        bool gone = f->first == from, all;

        for (next = from + 1; next < f->turn && c->at[next].role != ROLE_USER;)
            next++;
        for (size_t i = from, end; i < next && f->bytes > goal; i = end) {
            end = unit_end(c, i, next);
            if (c->at[i].tool_calls && !is_essential(&k, i))
                f->bytes -= mark_left_out(c, i, end);
        }
        all = f->bytes > goal;
        for (size_t i = from, end; i < next; i = end) {
            end = unit_end(c, i, next);
            if (all && !is_essential(&k, i))
                f->bytes -= mark_left_out(c, i, end);
            gone = gone && c->at[i].unsent;
        }
        if (gone)
            f->first = next;
    }
}

/* Replaces the content by its beginning and its end, together at most `most` bytes (or
 * SHORT_LEAST), with the words [left out] between them. */
static void shorten(struct fit *f, size_t i, size_t most)
{
    struct context_message *m = &f->c->at[i];
    struct buf text = BUF_INIT(SIZE_MAX);
    size_t part = ((most < SHORT_LEAST ? SHORT_LEAST : most) - strlen("\n" LEFT_OUT "\n")) / 2;
    struct str head = {m->content, part}, tail;

    if (m->n <= most || m->n <= SHORT_LEAST)
        return;
    head.n = utf8_valid(head);
    tail = (struct str){m->content + (m->n - part), part};
    while (tail.n > 0 && ((unsigned char)*tail.p & 0xc0) == 0x80)
        tail = str_skip(tail, 1);
    buf_add_str(&text, head);
    buf_add_c(&text, "\n" LEFT_OUT "\n");
    buf_add_str(&text, tail);
    f->bytes -= m->n - text.len;
    free(m->content);
    m->n = text.len;
    m->content = buf_detach(&text);
    /* The server would not take the blocks of a message that is not the one it sent. */
    if (m->role == ROLE_ASSISTANT) {
        f->bytes -= m->thinking ? strlen(m->thinking) : 0;
        free(m->thinking);
        m->thinking = NULL;
    }
}

/* Shortens the longer ones of `count` messages to what the window leaves for each of them. */
static void shorten_all(struct fit *f, const size_t *at, size_t count, size_t window)
{
    size_t others = f->bytes, room, share, lengthy = 0;

    for (size_t i = 0; i < count; i++)
        others -= f->c->at[at[i]].n;
    room = window > others ? window - others : 0;
    share = count > 0 ? room / count : 0;
    for (size_t i = 0; i < count; i++)
        if (f->c->at[at[i]].n <= share)
            room -= f->c->at[at[i]].n;
        else
            lengthy++;
    for (size_t i = 0; i < count; i++)
        if (f->c->at[at[i]].n > share)
            shorten(f, at[i], room / lengthy);
}

/* Shortens the part of earlier turns that is always sent: the newest answer and its prompt, and the
 * last prompt and the results of a round after it if chat was killed before an answer came. */
static void fit_answer(struct fit *f, size_t window)
{
    struct essential k = find_essential(f->c, f->turn);
    size_t *at = mem_zalloc((f->turn + 1) * sizeof *at);
    size_t end = k.unit < f->turn ? unit_end(f->c, k.unit, f->turn) : 0, count = 0;

    for (size_t i = 0; i < f->turn; i++)
        if ((is_essential(&k, i) || (i > k.unit && i < end)) && !f->c->at[i].tool_calls &&
            !f->c->at[i].unsent)
            at[count++] = i;
    shorten_all(f, at, count, window);
    free(at);
}

/* Makes room in the running turn, whose prompt and last round stay: the results of its oldest
 * rounds are left out, and then these rounds; at last the middle of the results of the last round.
 */
static void fit_running(struct fit *f, size_t window)
{
    struct context *c = f->c;
    size_t last = unit_start(c, f->end), count = 0;
    size_t *results;

    for (size_t i = f->turn; i < last && f->bytes > window / 2; i++) {
        struct context_message *m = &c->at[i];

        if (m->role != ROLE_TOOL || m->unsent || m->n <= strlen(LEFT_OUT))
            continue;
        f->bytes -= m->n - strlen(LEFT_OUT);
        m->n = strlen(LEFT_OUT);
        memcpy(m->content, LEFT_OUT, sizeof LEFT_OUT);
    }
    for (size_t i = f->turn, end; i < last && f->bytes > window; i = end) {
        end = unit_end(c, i, last);
        if (c->at[i].tool_calls)
            f->bytes -= mark_left_out(c, i, end);
    }
    if (f->bytes <= window || last <= f->turn)
        return;
    results = mem_zalloc((f->end - last) * sizeof *results);
    for (size_t i = last; i < f->end; i++)
        if (c->at[i].role == ROLE_TOOL)
            results[count++] = i;
    shorten_all(f, results, count, window);
    free(results);
}

/* Makes room for a request (context_fit). */
static void fit_request(struct fit *f, size_t window, size_t most)
{
    if (f->bytes > window)
        fit_earlier(f, window / 2);
    if (f->bytes > most)
        fit_running(f, most);
    if (f->bytes > most)
        fit_answer(f, most);
}

bool context_fit(struct context *c, size_t window, size_t most)
{
    size_t bytes = context_bytes(c, 0, c->count);
    struct fit f = {.c = c, .turn = c->turn, .end = c->count, .bytes = bytes};

    fit_request(&f, window, most);
    remove_unsent(c);
    return f.bytes < bytes;
}

/* Returns the message from which the decisions of earlier turns are repeated. */
static size_t first_step(const struct context *c, size_t window)
{
    size_t best = CONTEXT_ALL, bytes = 0,
           most = window > SIZE_MAX / CONTEXT_STEPS ? SIZE_MAX : window * CONTEXT_STEPS;

    for (size_t i = c->count; i-- > 0;) {
        bytes += context_bytes(c, i, i + 1);
        if (bytes > most)
            return best != CONTEXT_ALL ? best : i;
        if (bytes >= most / 2 && c->at[i].role == ROLE_USER &&
            (best == CONTEXT_ALL || c->at[i].rank > c->at[best].rank))
            best = i;
    }
    return 0;
}

void context_cut_in_steps(struct context *c, size_t window, size_t most)
{
    struct fit f = {.c = c};
    struct essential k;

    drop_unsent(c);
    k = find_essential(c, c->turn);
    f.first = first_step(c, window);
    while (f.first > 0 && f.first < c->turn && c->at[f.first].role != ROLE_USER)
        f.first++;
    for (size_t i = 0, end; i < f.first; i = end) {
        end = unit_end(c, i, f.first);
        if (!is_essential(&k, i))
            (void)mark_left_out(c, i, end);
        for (size_t m = i; m < end && !c->at[m].unsent; m++)
            f.bytes += context_bytes(c, m, m + 1);
    }
    f.turn = f.first;
    /* Each message of the model was the answer to a request with all before it. */
    for (size_t i = f.first; i < c->count; i++) {
        f.end = i;
        if (c->at[i].role == ROLE_ASSISTANT && i > f.first)
            fit_request(&f, window, most);
        if (i < c->turn && c->at[i].role == ROLE_USER)
            f.turn = i;
        f.bytes += context_bytes(c, i, i + 1);
    }
    f.turn = c->turn;
    f.end = c->count;
    fit_request(&f, window, most);
    remove_unsent(c);
}

struct str context_blocks(const struct context_message *m, struct context_server asked)
{
    bool own = m->thinking && strcmp(m->provider, asked.provider) == 0 &&
               str_eq(str_of(m->address), str_of(asked.address));

    return own ? str_of(m->thinking) : STR_NONE;
}

bool context_in_loop(const struct context *c, size_t i)
{
    while (i < c->count && c->at[i].role != ROLE_USER)
        i++;
    return i >= c->count;
}

/* ---- settling ---- */

/* Adds m to `to`, the message before it, of the same role: its text after a blank line, and its
 * attachments (it may have only these) or calls. Releases m. */
static void merge(struct context_message *to, struct context_message *m)
{
    if (m->n > 0 || (!m->tool_calls && m->attachments_count == 0)) {
        to->content = mem_resize(to->content, to->n + 2 + m->n + 1, 1);
        memcpy(to->content + to->n, "\n\n", 2);
        memcpy(to->content + to->n + 2, m->content, m->n + 1);
        to->n += 2 + m->n;
    }
    /* A signed block is only valid in the message that the model wrote. */
    free(to->thinking);
    to->thinking = NULL;
    if (m->attachments_count > 0) {
        to->attachments = m->attachments;
        to->attachments_count = m->attachments_count;
    }
    if (m->tool_calls) {
        struct context_message text = *to;

        *to = *m;
        to->content = text.content;
        to->n = text.n;
        to->merged = true;
        text.content = m->content;
        *m = text;
    }
    release_message(m);
}

void context_finish(struct context *c)
{
    size_t kept = 0, turn = CONTEXT_ALL;

    drop_unsent(c);
    for (size_t i = 0; i < c->count; i++) {
        struct context_message *m = &c->at[i];
        struct context_message *last = kept > 0 ? &c->at[kept - 1] : NULL;

        /* Some servers refuse blank text. A blank prompt of this turn was the user's choice. */
        if (is_text(m) && str_trim((struct str){m->content, m->n}).n == 0 &&
            !(i >= c->turn && m->role == ROLE_USER)) {
            release_message(m);
            continue;
        }
        if (last && last->role == m->role && is_text(last))
            merge(last, m);
        else
            c->at[kept++] = *m;
        /* If this turn's first message was merged into an earlier one, that one belongs to the
         * turn. */
        if (i >= c->turn && turn == CONTEXT_ALL)
            turn = kept - 1;
    }
    c->count = kept;
    c->turn = turn == CONTEXT_ALL ? kept : turn;
}

/* ---- conversations given as text ---- */

/* Joins content parts, which must all be text, into one string with blank lines between them. */
static bool join_parts(struct str parts, struct buf *out)
{
    struct buf text = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    bool ok = json_type(parts) == JSON_ARRAY;

    for (struct json_iter it = json_iter(parts); ok && json_next(&it);) {
        ok =
            json_has_type(it.value, "text") && json_type(json_get(it.value, "text")) == JSON_STRING;
        if (text.len > 0)
            buf_add_c(&text, "\n\n");
        buf_add_str(&text, json_text(json_get(it.value, "text"), &scratch));
    }
    if (ok)
        json_add_string(out, buf_str(&text));
    buf_release(&text);
    buf_release(&scratch);
    return ok;
}

/* If a key is repeated, the last one counts, as in a history line. */
static bool add_entry(struct context *c, struct str value)
{
    static const enum field wanted[] = {FIELD_ROLE,         FIELD_CONTENT,      FIELD_TOOL_CALLS,
                                        FIELD_TOOL_CALL_ID, FIELD_FAILED,       FIELD_ID,
                                        FIELD_REPLY_TO,     FIELD_FINISH_REASON};
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE), joined = BUF_INIT(BUF_LINE);
    struct str content;
    bool ok = false;

    if (json_type(value) != JSON_OBJECT)
        return false;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        m.field[wanted[i]] = json_get(value, field_name(wanted[i]));
    m.role = role_of(json_text(m.field[FIELD_ROLE], &scratch));
    content = m.field[FIELD_CONTENT];
    if (join_parts(content, &joined))
        m.field[FIELD_CONTENT] = content = buf_str(&joined);
    if (json_type(content) == JSON_STRING)
        ok = true;
    else if (json_is_null(content))
        ok = m.role == ROLE_ASSISTANT && json_type(m.field[FIELD_TOOL_CALLS]) == JSON_ARRAY;
    ok = ok && context_add(c, &m);
    buf_release(&scratch);
    buf_release(&joined);
    message_release(&m);
    return ok;
}

/* Adds an entry, an array of entries, or an object that holds such an array, as requests and
 * exports do. Returns the number of bad entries. */
static size_t add_entries(struct context *c, struct str value)
{
    struct str inner = json_get(value, "messages"), system = json_get(value, "system");
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct json_iter it = json_iter(json_type(value) == JSON_ARRAY ? value : inner);
    size_t bad = 0;

    if (json_type(value) != JSON_ARRAY && json_type(inner) != JSON_ARRAY)
        return !add_entry(c, value);
    if (json_type(system) == JSON_STRING)
        context_set_system(c, json_text(system, &scratch));
    while (json_next(&it))
        bad += !add_entry(c, it.value);
    buf_release(&scratch);
    return bad;
}

size_t messages_add(struct context *c, struct str text)
{
    struct buf repaired = BUF_INIT(SIZE_MAX);
    struct str value;
    size_t bad = 0;

    text = utf8_without_bom(text);
    if (utf8_valid(text) < text.n) {
        utf8_add_repaired(&repaired, text);
        text = buf_str(&repaired);
    }
    if (json_check(text, &value, NULL))
        bad = add_entries(c, value);
    else
        while (text.p) {
            struct str line = str_trim(str_cut(&text, '\n'));

            if (line.n > 0)
                bad += json_check(line, &value, NULL) ? add_entries(c, value) : 1;
        }
    buf_release(&repaired);
    return bad;
}

bool messages_too_deep(struct str text)
{
    bool deep = json_too_deep(text);

    while (!deep && text.p)
        deep = json_too_deep(str_cut(&text, '\n'));
    return deep;
}
