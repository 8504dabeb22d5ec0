#include "chathist/search/search_merge.h"

#include <stdlib.h>

#include "chathist/base/memory.h"

struct search_source {
    struct search *search;
    size_t number;
    int64_t latest; /* no hit of this search that was not returned is newer */
    bool ready;     /* `hit` was not returned yet; it has that time */
    struct hit hit;
};

static bool is_before(const struct search_source *a, const struct search_source *b)
{
    return a->latest != b->latest ? a->latest > b->latest : a->number < b->number;
}

/* Moves the first source to its place. Those after it are in order. */
static void sift_down(struct search_merge *m)
{
    for (size_t i = 0; i + 1 < m->count && is_before(&m->sources[i + 1], &m->sources[i]); i++) {
        struct search_source moved = m->sources[i];

        m->sources[i] = m->sources[i + 1];
        m->sources[i + 1] = moved;
    }
}

int search_merge_add(struct search_merge *m, size_t number, struct search *s, struct err *e)
{
    int64_t latest;

    if (search_latest(s, &latest, e) < 0)
        return -1;
    m->sources = mem_grow(m->sources, &m->cap, m->count + 1, sizeof *m->sources);
    for (size_t i = m->count++; i > 0; i--)
        m->sources[i] = m->sources[i - 1];
    m->sources[0] = (struct search_source){.search = s, .number = number, .latest = latest};
    sift_down(m);
    return 0;
}

void search_merge_release(struct search_merge *m)
{
    free(m->sources);
    *m = (struct search_merge){0};
}

int search_merge_next(struct search_merge *m, size_t *number, struct hit *h, struct err *e)
{
    while (m->count > 0 && !m->sources[0].ready) {
        struct search_source *first = &m->sources[0];
        int found = search_next(first->search, &first->hit, e);

        *number = first->number;
        *h = first->hit;
        if (found == SEARCH_FAILED || found == SEARCH_PAUSED)
            return found;
        first->ready = found > 0;
        first->latest = first->hit.time;
        if (found > 0) {
            sift_down(m);
            continue;
        }
        m->count--;
        for (size_t i = 0; i < m->count; i++)
            m->sources[i] = m->sources[i + 1];
        if (found < 0)
            return found;
    }
    if (m->count == 0)
        return 0;
    *number = m->sources[0].number;
    *h = m->sources[0].hit;
    m->sources[0].ready = false;
    return 1;
}
