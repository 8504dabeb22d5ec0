#include "chathist/llm/opaque_blocks.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/cjson.h"
#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

static const char *const member_names[OPAQUE_MEMBERS] = {
    [OPAQUE_TEXT] = "text",
    [OPAQUE_THINKING] = "thinking",
    [OPAQUE_SIGNATURE] = "signature",
    [OPAQUE_CONTENT] = "content",
    [OPAQUE_ENCRYPTED] = "encrypted_content",
    [OPAQUE_INPUT] = "input",
    [OPAQUE_CITATIONS] = "citations",
};

static const char *const detail_names[OPAQUE_DETAIL_TEXTS] = {"text", "summary", "data",
                                                              "thinking"};

void opaque_init(struct opaque_blocks *r)
{
    memset(r, 0, sizeof *r);
    buf_init(&r->thinking, OPAQUE_THINKING_MAX);
    buf_init(&r->turn, OPAQUE_TURN_MAX);
    buf_init(&r->start, OPAQUE_TURN_MAX);
    for (size_t i = 0; i < OPAQUE_MEMBERS; i++)
        buf_init(&r->grown[i], OPAQUE_TURN_MAX);
    buf_init(&r->reasoning, OPAQUE_THINKING_MAX);
    buf_init(&r->details, OPAQUE_THINKING_MAX);
    buf_init(&r->items, OPAQUE_THINKING_MAX);
    buf_init(&r->container, BUF_SMALL);
    buf_init(&r->citations, OPAQUE_THINKING_MAX);
    for (size_t i = 0; i < OPAQUE_DETAIL_TEXTS; i++)
        buf_init(&r->detail.texts[i], OPAQUE_THINKING_MAX);
}

void opaque_release(struct opaque_blocks *r)
{
    buf_release(&r->thinking);
    buf_release(&r->turn);
    buf_release(&r->start);
    for (size_t i = 0; i < OPAQUE_MEMBERS; i++)
        buf_release(&r->grown[i]);
    buf_release(&r->reasoning);
    buf_release(&r->details);
    buf_release(&r->items);
    buf_release(&r->container);
    buf_release(&r->citations);
    cJSON_Delete(r->detail.members);
    for (size_t i = 0; i < OPAQUE_DETAIL_TEXTS; i++)
        buf_release(&r->detail.texts[i]);
}

/* Adds values, separated by commas, to an array; no values add nothing. Returns false if the array
 * would exceed its limit. */
static bool add_values(struct buf *array, struct str values)
{
    if (values.n == 0)
        return true;
    if (values.n + 2 > array->max - array->len)
        return false;
    if (array->len > 0)
        buf_truncate(array, array->len - 1);
    buf_add_byte(array, array->len > 0 ? ',' : '[');
    buf_add_str(array, values);
    buf_add_byte(array, ']');
    return true;
}

/* Adds a value without the white space between its tokens. */
static bool add_compact(struct buf *array, struct str value)
{
    struct buf compact = BUF_INIT(SIZE_MAX);
    bool added;

    json_add_compact(&compact, value);
    added = add_values(array, buf_str(&compact));
    buf_release(&compact);
    return added;
}

/* Returns the values of an array made by add_values, without its brackets. */
static struct str values_of(const struct buf *array)
{
    return array->len > 2 ? (struct str){array->data + 1, array->len - 2} : STR_NONE;
}

/* Returns true if the value is a string that is not empty. */
static bool has_text(struct str value)
{
    return json_type(value) == JSON_STRING && value.n > 2;
}

/* ---- blocks ---- */

static bool is_thinking(struct str block)
{
    return json_has_type(block, "thinking") || json_has_type(block, "redacted_thinking");
}

static void close_block(struct opaque_blocks *r)
{
    r->open = false;
    buf_clear(&r->start);
    for (size_t i = 0; i < OPAQUE_MEMBERS; i++) {
        buf_clear(&r->grown[i]);
        r->pieces[i] = (struct json_pieces){0};
    }
}

void opaque_begin(struct opaque_blocks *r, int64_t index, struct str block)
{
    r->turn_cut = r->turn_cut || r->open;
    close_block(r);
    r->open = true;
    r->index = index;
    json_add_compact(&r->start, block);
}

void opaque_grow(struct opaque_blocks *r, int64_t index, enum opaque_member member,
                 struct str piece)
{
    struct buf *b = &r->grown[member];

    if (!r->open || r->index != index)
        return;
    if (member != OPAQUE_CITATIONS) {
        json_pieces_add(&r->pieces[member], piece, b);
        return;
    }
    if (b->len > 0)
        buf_add_byte(b, ',');
    buf_add_str(b, piece);
}

/* Adds the value of a member: its first one, followed by what came later. */
static void add_grown(struct buf *out, enum opaque_member member, struct str first, struct str more)
{
    struct buf text = BUF_INIT(2 * OPAQUE_TURN_MAX);
    struct str value;

    if (member == OPAQUE_INPUT) {
        if (json_check(more, &value, NULL) && json_type(value) == JSON_OBJECT)
            json_add_compact(out, value);
        else
            buf_add_c(out, "{}");
    } else if (member == OPAQUE_CITATIONS) {
        buf_add_byte(out, '[');
        for (struct json_iter it = json_iter(first); !it.object && json_next(&it);) {
            buf_add_str(out, it.value);
            buf_add_byte(out, ',');
        }
        buf_add_str(out, more);
        buf_add_byte(out, ']');
    } else {
        json_decode(first, &text);
        buf_add_str(&text, more);
        json_add_string(out, buf_str(&text));
    }
    buf_release(&text);
}

/* Adds the open block. Members that did not grow are copied byte for byte. Returns false if a part
 * is missing. */
static bool add_open(const struct opaque_blocks *r, struct buf *out)
{
    struct str start = buf_str(&r->start);
    bool whole = !r->start.overflow;

    buf_add_byte(out, '{');
    for (struct json_iter it = json_iter(start); json_next(&it);) {
        bool grown = false;

        for (int i = 0; i < OPAQUE_MEMBERS; i++)
            grown = grown || (r->grown[i].len > 0 && json_key_is(it.key, member_names[i]));
        if (grown)
            continue;
        buf_add_c(out, str_ends(buf_str(out), STR("{")) ? "\"" : ",\"");
        buf_add_str(out, it.key);
        buf_add_c(out, "\":");
        buf_add_str(out, it.value);
    }
    for (int i = 0; i < OPAQUE_MEMBERS; i++) {
        whole = whole && !r->grown[i].overflow;
        if (r->grown[i].len == 0)
            continue;
        json_add_key(out, member_names[i]);
        add_grown(out, (enum opaque_member)i, json_get(start, member_names[i]),
                  buf_str(&r->grown[i]));
    }
    buf_add_byte(out, '}');
    return whole && !out->overflow;
}

/* Returns true if no server takes the block back, so that the response is complete without it. */
static bool is_useless(struct str block, bool thinking)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool useless;

    if (thinking)
        useless = !has_text(json_get(block, "signature")) && !has_text(json_get(block, "data"));
    else
        useless = json_has_type(block, "text") &&
                  str_trim(json_text(json_get(block, "text"), &scratch)).n == 0;
    buf_release(&scratch);
    return useless;
}

void opaque_end(struct opaque_blocks *r, int64_t index)
{
    struct buf block = BUF_INIT(2 * OPAQUE_TURN_MAX);
    bool thinking = is_thinking(buf_str(&r->start));

    if (!r->open || r->index != index)
        return;
    if (!add_open(r, &block)) {
        r->turn_cut = true;
    } else if (!is_useless(buf_str(&block), thinking)) {
        if (thinking)
            add_values(&r->thinking, buf_str(&block));
        r->turn_cut = !add_values(&r->turn, buf_str(&block)) || r->turn_cut;
    }
    buf_release(&block);
    close_block(r);
}

/* ---- reasoning ---- */

void opaque_add_reasoning(struct opaque_blocks *r, const char *member, struct str text)
{
    r->reasoning_member = member;
    utf8_add_repaired(&r->reasoning, text);
}

/* Returns a member of the current detail, STR_NONE if it has none. */
static struct str detail_member(const struct opaque_detail *d, const char *key)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(d->members, key);

    return member ? str_of(member->valuestring) : STR_NONE;
}

/* Returns true if the piece belongs to the current detail: it has the same type and index, and no
 * other id. The id counts because several encrypted details can share one index. Thinking
 * without an index ends with its signature. */
static bool is_next_piece(const struct opaque_detail *d, struct str piece)
{
    static const char *const keys[] = {"type", "index", "id"};
    struct str had = detail_member(d, "id"), index = detail_member(d, "index"), has[3];

    json_pick(piece, keys, has, 3);
    return d->members && str_eq(detail_member(d, "type"), has[0]) && str_eq(index, has[1]) &&
           (json_type(index) == JSON_NUMBER ||
            (json_is_text(has[0], "thinking") && !has_text(detail_member(d, "signature")))) &&
           (json_is_null(had) || json_is_null(has[2]) || str_eq(had, has[2]));
}

/* Adds the members of a piece. Texts grow, the last signature counts, and of any other member the
 * first value that is not null. */
static void add_to_detail(struct opaque_detail *d, struct str piece)
{
    struct buf key = BUF_INIT(BUF_LINE);

    d->pieced = d->members != NULL;
    d->bytes += piece.n;
    if (d->bytes > OPAQUE_THINKING_MAX)
        return;
    if (!d->members)
        d->members = cjson_object();
    for (struct json_iter it = json_iter(piece); json_next(&it);) {
        bool signature = json_key_is(it.key, "signature") && !json_is_null(it.value);

        for (size_t i = 0; i < OPAQUE_DETAIL_TEXTS; i++)
            if (json_key_is(it.key, detail_names[i]))
                json_decode(it.value, &d->texts[i]);
        buf_clear(&key);
        json_decode_body(it.key, &key);
        if (signature || json_is_null(detail_member(d, buf_c(&key))))
            cjson_set_raw(d->members, buf_c(&key), it.value);
    }
    buf_release(&key);
}

static void end_detail(struct opaque_blocks *r)
{
    struct opaque_detail *d = &r->detail;
    struct buf whole = BUF_INIT(8 * OPAQUE_THINKING_MAX);

    for (size_t i = 0; i < OPAQUE_DETAIL_TEXTS; i++) {
        if (d->pieced && d->texts[i].len > 0)
            cjson_set_text(d->members, detail_names[i], buf_str(&d->texts[i]));
        buf_clear(&d->texts[i]);
    }
    if (d->members && d->bytes <= OPAQUE_THINKING_MAX)
        cjson_print(d->members, &whole);
    if (d->bytes > OPAQUE_THINKING_MAX || !add_values(&r->details, buf_str(&whole)))
        r->details_cut = true;
    buf_release(&whole);
    cJSON_Delete(d->members);
    d->members = NULL;
    d->bytes = 0;
}

void opaque_add_detail(struct opaque_blocks *r, const char *member, struct str detail, bool piece)
{
    if (json_type(detail) != JSON_OBJECT)
        return;
    r->details_member = member;
    if (!piece || !is_next_piece(&r->detail, detail))
        end_detail(r);
    add_to_detail(&r->detail, detail);
}

/* ---- items ---- */

void opaque_add_item(struct opaque_blocks *r, struct str item, bool matters)
{
    r->items_cut = !add_compact(&r->items, item) || r->items_cut;
    r->items_matter = r->items_matter || matters;
}

void opaque_add_items(struct opaque_blocks *r)
{
    if (r->items_matter && !r->items_cut)
        add_values(&r->thinking, values_of(&r->items));
    buf_clear(&r->items);
}

void opaque_add_citation(struct opaque_blocks *r, struct str citation)
{
    add_compact(&r->citations, citation);
}

void opaque_add_member(struct opaque_blocks *r, const char *member, struct str id, struct str value)
{
    struct buf block = BUF_INIT(8 * OPAQUE_THINKING_MAX);

    buf_add_c(&block, "{");
    json_add_member(&block, "type", str_of(member));
    if (id.p)
        json_add_member(&block, "id", id);
    json_add_key(&block, member);
    json_add_compact(&block, value);
    buf_add_c(&block, "}");
    add_values(&r->thinking, buf_str(&block));
    buf_release(&block);
}

void opaque_finish(struct opaque_blocks *r, bool calls)
{
    struct buf block = BUF_INIT(8 * OPAQUE_THINKING_MAX);
    bool details;

    end_detail(r);
    details = r->details.len > 0 && !r->details_cut;
    /* OpenRouter's `reasoning` has the same text as its details. */
    if (calls && r->reasoning.len > 0 && !r->reasoning.overflow &&
        !(details && strcmp(r->reasoning_member, "reasoning") == 0)) {
        buf_add_c(&block, "{");
        json_add_member(&block, "type", str_of(r->reasoning_member));
        json_add_member(&block, "text", buf_str(&r->reasoning));
        buf_add_c(&block, "}");
        add_values(&r->thinking, buf_str(&block));
    }
    buf_clear(&r->reasoning);
    if (calls && details)
        opaque_add_member(r, r->details_member, STR_NONE, buf_str(&r->details));
    buf_clear(&r->details);
    r->details_cut = false;
    buf_release(&block);
}

/* ---- the array that goes back ---- */

void opaque_set_container(struct opaque_blocks *r, struct str container)
{
    if (json_type(container) != JSON_OBJECT)
        return;
    buf_clear(&r->container);
    json_add_compact(&r->container, container);
    if (r->container.overflow)
        buf_clear(&r->container);
}

struct str opaque_container(struct str blocks)
{
    struct str last = STR_NONE;

    for (struct json_iter it = json_iter(blocks); !it.object && json_next(&it);)
        if (json_has_type(it.value, OPAQUE_CONTAINER))
            last = json_get(it.value, "container");
    return last;
}

/* Returns true if the blocks are thinking, then at most one text without citations, then calls. A
 * call that a program of the server made has its `caller`, which the calls alone do not have. */
static bool is_plain(struct str blocks)
{
    enum { THOUGHT, TEXT, CALLS } part = THOUGHT;

    for (struct json_iter it = json_iter(blocks); json_next(&it);) {
        bool text = json_has_type(it.value, "text");
        struct json_iter citation = json_iter(json_get(it.value, "citations"));

        if (is_thinking(it.value) && part == THOUGHT)
            continue;
        if (text && part == THOUGHT && !json_next(&citation))
            part = TEXT;
        else if (json_has_type(it.value, "tool_use") &&
                 (!json_get(it.value, "caller").p ||
                  json_has_type(json_get(it.value, "caller"), "direct")))
            part = CALLS;
        else
            return false;
    }
    return true;
}

void opaque_add_replay(const struct opaque_blocks *r, struct buf *out)
{
    struct str turn = buf_str(&r->turn), type = STR_NONE;
    bool plain = is_plain(turn);
    const struct buf *blocks = plain ? &r->thinking : &r->turn;
    bool kept;

    for (struct json_iter it = json_iter(turn); json_next(&it);)
        type = json_get(it.value, "type");
    /* The result of the server tool that the last block calls would be missing. */
    kept = blocks->len > 0 && (plain || (opaque_is_whole(r) && turn.n <= OPAQUE_THINKING_MAX &&
                                         !str_ends(type, STR("_tool_use\""))));
    if (!kept && r->container.len == 0)
        return;
    buf_add_byte(out, '[');
    if (kept && r->before != 0)
        buf_addf(out, "{\"type\":\"" OPAQUE_BOUND "\",\"before\":\"%016" PRIx64 "\"},", r->before);
    if (r->container.len > 0) {
        buf_add_c(out, "{\"type\":\"" OPAQUE_CONTAINER "\",\"container\":");
        buf_add_str(out, buf_str(&r->container));
        buf_add_c(out, kept ? "}," : "}");
    }
    if (kept)
        buf_add_str(out, values_of(blocks));
    buf_add_byte(out, ']');
}

bool opaque_bound(struct str blocks, uint64_t *before)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct json_iter it = json_iter(blocks);
    bool found = !it.object && json_next(&it) && json_has_type(it.value, OPAQUE_BOUND);

    if (found) {
        json_decode(json_get(it.value, "before"), &text);
        *before = strtoull(buf_c(&text), NULL, 16);
    }
    buf_release(&text);
    return found;
}

bool opaque_has_all(struct str blocks)
{
    for (struct json_iter it = json_iter(blocks); !it.object && json_next(&it);)
        if (json_type(it.value) == JSON_OBJECT && !is_thinking(it.value) &&
            !json_has_type(it.value, OPAQUE_BOUND) && !json_has_type(it.value, OPAQUE_CONTAINER))
            return true;
    return false;
}

bool opaque_is_whole(const struct opaque_blocks *r)
{
    return r->turn.len > 0 && !r->turn_cut && !r->open;
}

void opaque_join(struct opaque_blocks *r, const struct opaque_blocks *next)
{
    add_values(&r->thinking, values_of(&next->thinking));
    opaque_set_container(r, buf_str(&next->container));
    add_values(&r->citations, values_of(&next->citations));
    r->turn_cut = !add_values(&r->turn, values_of(&next->turn)) || r->turn_cut || next->turn_cut;
}
