#include "chathist/history/session_pages.h"

#include <stdlib.h>

#include "chathist/base/mem.h"
#include "history/segment_names.h"
#include "history/session_gather.h"

/* ---- which records are listed ---- */

/* The number of a record of a segment. They are in the order of their last lines. 0, -1. */
static int number_of(const struct segment *s, const struct segment_session *of, uint64_t *number)
{
    uint64_t low = 0, high = s->sessions;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct segment_session at;

        if (segment_sessions(s, middle, 1, &at) < 0)
            return -1;
        if (at.last_line > of->last_line)
            low = middle + 1;
        else
            high = middle;
    }
    *number = low;
    return low < s->sessions ? 0 : -1;
}

/* How many of the hidden records have a lower number. */
static size_t hidden_below(const struct session_part *part, uint64_t number)
{
    size_t low = 0, high = part->hidden_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (part->hidden[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The number of the listed record that so many others of its part are listed before. */
static uint64_t record_at(const struct session_part *part, size_t place)
{
    size_t low = 0, high = part->hidden_count;

    /* Of the hidden ones those with as many listed ones before them come before it. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (part->hidden[middle] - middle <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return place + low;
}

static void hide(struct session_part *part, uint64_t number)
{
    part->hidden =
        mem_grow(part->hidden, &part->hidden_cap, part->hidden_count + 1, sizeof(*part->hidden));
    part->hidden[part->hidden_count++] = number;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Two newer segments can have a session. */
static void sort_hidden(struct session_part *part)
{
    size_t kept = 0;

    if (part->hidden_count > 1)
        qsort(part->hidden, part->hidden_count, sizeof(*part->hidden), by_number);
    for (size_t i = 0; i < part->hidden_count; i++)
        if (kept == 0 || part->hidden[kept - 1] != part->hidden[i])
            part->hidden[kept++] = part->hidden[i];
    part->hidden_count = kept;
}

/* The ids of a segment are told, to be hidden in all that are older. */
struct hiding {
    struct session_pages *pages;
    size_t segment;
    int result;
};

static void hide_in_older(void *ctx, const struct segment_session *of, struct str id)
{
    struct hiding *hiding = ctx;
    struct session_pages *p = hiding->pages;

    (void)of;
    for (size_t i = hiding->segment; i-- > 0 && hiding->result >= 0;) {
        const struct segment *s = &p->index.segments[i];
        struct segment_session found;
        uint64_t number;

        hiding->result = segment_find(s, id, &found);
        if (hiding->result > 0)
            hiding->result = number_of(s, &found, &number);
        else
            continue;
        if (hiding->result == 0)
            hide(&p->parts[i], number);
    }
}

static int hide_all(struct session_pages *p)
{
    int result = 0;

    p->parts = mem_zalloc(p->index.count * sizeof(*p->parts));
    for (size_t i = p->index.count; i-- > 1 && result == 0;) {
        struct hiding hiding = {.pages = p, .segment = i};

        result = segment_each_named(&p->index.segments[i], SEGMENT_BEGINNING, STR(""), SIZE_MAX,
                                    hide_in_older, &hiding);
        if (hiding.result < 0)
            result = -1;
    }
    p->count = 0;
    for (size_t i = p->index.count; i-- > 0;) {
        struct session_part *part = &p->parts[i];

        sort_hidden(part);
        part->before = p->count;
        p->count += (size_t)p->index.segments[i].sessions - part->hidden_count;
    }
    return result;
}

/* ---- opening ---- */

static void close_index(struct session_pages *p, bool discard)
{
    if (!p->by_index)
        return;
    for (size_t i = 0; i < p->index.count; i++)
        free(p->parts[i].hidden);
    free(p->parts);
    p->parts = NULL;
    p->by_index = false;
    if (discard)
        index_discard(&p->index);
    else
        index_close(&p->index);
}

static bool open_index(struct session_pages *p)
{
    p->by_index = index_open(&p->index, p->h);
    if (p->by_index && hide_all(p) < 0)
        close_index(p, true);
    return p->by_index;
}

void session_pages_close(struct session_pages *p)
{
    close_index(p, false);
    session_list_release(&p->list);
    *p = (struct session_pages){0};
}

int session_pages_open(struct session_pages *p, const struct history *h, bool grown, struct err *e)
{
    close_index(p, false);
    p->h = h;
    p->bad_lines = 0;
    if (open_index(p)) {
        for (size_t i = 0; i < p->index.count; i++)
            p->bad_lines += p->index.segments[i].bad;
        session_list_release(&p->list);
        return 0;
    }
    if (!grown)
        session_list_release(&p->list);
    p->list.cancel = h->cancel;
    if (session_list_more(&p->list, h->dir_fd, h->path, e) < 0) {
        session_pages_close(p);
        return -1;
    }
    p->count = p->list.count;
    p->bad_lines = p->list.bad_lines;
    return 0;
}

/* ---- reading ---- */

/* Adds those of a part from a place in it on. */
static int read_part(struct session_gather *g, const struct session_pages *p, size_t i,
                     size_t place, size_t count)
{
    const struct session_part *part = &p->parts[i];
    int result = 0;

    while (count > 0 && result == 0) {
        uint64_t first = record_at(part, place);
        size_t next = hidden_below(part, first);
        size_t run = next < part->hidden_count ? (size_t)(part->hidden[next] - first) : count;

        run = run < count ? run : count;
        result = session_gather_records(g, &p->index.segments[i], first, run);
        place += run;
        count -= run;
    }
    return result;
}

static int read_by_index(const struct session_pages *p, size_t first, size_t limit,
                         struct session_list *page)
{
    struct session_gather g = {.list = page, .limit = limit};
    int result = 0;

    for (size_t i = p->index.count; i-- > 0 && result == 0;) {
        size_t before = p->parts[i].before;
        size_t behind = i > 0 ? p->parts[i - 1].before : p->count;
        size_t from = first > before ? first : before;

        if (page->count > 0)
            result = session_gather_older(&g, &p->index.segments[i]);
        if (result == 0 && from < behind && page->count < limit)
            result = read_part(&g, p, i, from - before,
                               behind - from < limit - page->count ? behind - from
                                                                   : limit - page->count);
    }
    session_gather_release(&g);
    return result;
}

int session_pages_read(const struct session_pages *p, size_t first, size_t limit,
                       struct session_list *page)
{
    *page = (struct session_list){0};
    if (first >= p->count)
        return 0;
    if (limit > p->count - first)
        limit = p->count - first;
    if (p->by_index) {
        if (read_by_index(p, first, limit, page) == 0)
            return 0;
        session_list_release(page);
        history_remove_index(p->h);
        return -1;
    }
    page->at = mem_zalloc(limit * sizeof(*page->at));
    for (page->count = 0; page->count < limit; page->count++) {
        page->at[page->count] = p->list.at[first + page->count];
        page->at[page->count].borrowed = true;
    }
    return 0;
}

static int find_by_index(const struct session_pages *p, struct str id, size_t *place)
{
    int found = 0;

    for (size_t i = p->index.count; i-- > 0 && found == 0;) {
        struct segment_session of;
        uint64_t number;

        found = segment_find(&p->index.segments[i], id, &of);
        if (found > 0 && number_of(&p->index.segments[i], &of, &number) < 0)
            found = -1;
        if (found > 0)
            *place = p->parts[i].before + (size_t)number - hidden_below(&p->parts[i], number);
    }
    if (found < 0)
        history_remove_index(p->h);
    return found;
}

int session_pages_find(const struct session_pages *p, struct str id, size_t *place)
{
    if (p->by_index)
        return find_by_index(p, id, place);
    for (size_t i = 0; i < p->list.count; i++) {
        if (str_eq((struct str){p->list.at[i].id, p->list.at[i].id_len}, id)) {
            *place = i;
            return 1;
        }
    }
    return 0;
}
