#include "chathist/history/title.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"

static struct str copy_text(struct titles *t, struct str text)
{
    char *own = mem_copy(text.p, text.n);

    t->texts = mem_grow(t->texts, &t->texts_cap, t->texts_count + 1, sizeof(*t->texts));
    t->texts[t->texts_count++] = own;
    return (struct str){own, text.n};
}

static void add_text(struct titles *t, struct str id, struct str text, int64_t time)
{
    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof(*t->at));
    t->at[t->count] = (struct title){copy_text(t, id), copy_text(t, text), time, t->count};
    t->count++;
}

void titles_add(struct titles *t, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE);
    int64_t time = 0;

    (void)time_parse_iso(m->timestamp, &time);
    add_text(t, m->id, message_title(m, &scratch), time);
    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);

        if (id.p)
            hash_map_add(&t->replaced, id);
    }
    buf_release(&scratch);
}

void titles_add_known(struct titles *t, struct str known)
{
    struct json_iter it = json_iter(known);
    struct buf id = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_LINE);
    int64_t time;

    while (!it.object && json_next(&it)) {
        buf_clear(&id);
        buf_clear(&text);
        if (json_type(it.value) == JSON_STRING)
            hash_map_add(&t->replaced, json_text(it.value, &id));
        if (json_type(it.value) != JSON_ARRAY)
            continue;

        struct json_iter title = json_iter(it.value);

        if (json_next(&title) && json_int(title.value, &time) && json_next(&title) &&
            json_decode(title.value, &id) && json_next(&title) && json_decode(title.value, &text))
            add_text(t, buf_str(&id), buf_str(&text), time);
    }
    buf_release(&id);
    buf_release(&text);
}

static bool is_replaced(const struct titles *t, const struct title *title)
{
    return t->replaced.count > 0 && hash_map_find(&t->replaced, title->id) != NULL;
}

static bool is_later(const struct title *a, const struct title *b)
{
    int order =
        a->time != b->time ? (a->time > b->time) - (a->time < b->time) : str_compare(a->id, b->id);

    return order != 0 ? order > 0 : str_compare(a->text, b->text) > 0;
}

const struct title *titles_find(const struct titles *t)
{
    const struct title *found = NULL;

    for (size_t i = 0; i < t->count; i++)
        if (!is_replaced(t, &t->at[i]) && (!found || is_later(&t->at[i], found)))
            found = &t->at[i];
    return found;
}

void titles_write(const struct titles *t, struct buf *out)
{
    size_t begin = out->len;

    for (size_t i = 0; i < t->count; i++) {
        const struct title *title = &t->at[i];

        if (is_replaced(t, title))
            continue;
        buf_addf(out, "%c[%" PRId64 ",", out->len == begin ? '[' : ',', title->time);
        json_add_string(out, title->id);
        buf_add_byte(out, ',');
        json_add_string(out, title->text);
        buf_add_byte(out, ']');
    }
    for (size_t i = 0; i < t->replaced.count; i++) {
        buf_add_byte(out, out->len == begin ? '[' : ',');
        json_add_string(out, t->replaced.entries[i].key);
    }
    if (out->len > begin)
        buf_add_byte(out, ']');
}

void titles_release(struct titles *t)
{
    while (t->texts_count > 0)
        free(t->texts[--t->texts_count]);
    free(t->texts);
    free(t->at);
    hash_map_release(&t->replaced);
    *t = (struct titles){0};
}

const struct message *titles_find_line(const struct message *at, size_t count)
{
    struct titles t = {0};
    const struct message *found = NULL;
    const struct title *title;

    for (size_t i = 0; i < count; i++)
        if (message_is_title(&at[i]))
            titles_add(&t, &at[i]);
    title = titles_find(&t);
    for (size_t i = 0, number = 0; title && !found; i++)
        if (message_is_title(&at[i]) && number++ == title->number)
            found = &at[i];
    titles_release(&t);
    return found;
}

void titles_draft(const struct titles *known, struct str title, struct draft *d)
{
    struct buf time = BUF_INIT(BUF_SMALL);

    draft_message(d, ROLE_OTHER, title);
    draft_set_text(d, FIELD_ROLE, STR(MESSAGE_TITLE_ROLE));
    time_add_iso(&time, time_now());
    draft_set_text(d, FIELD_TIMESTAMP, buf_str(&time));
    for (size_t i = 0; i < known->count; i++)
        if (!is_replaced(known, &known->at[i]))
            draft_push_text(d, FIELD_REPLACES, known->at[i].id);
    buf_release(&time);
}
