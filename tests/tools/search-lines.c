/*
 * search-lines HISTORY: searches a history in ways that the programs do not offer, for the tests.
 *
 * Each line of standard input is one search, as
 *
 *     [["TEXT", ...], THREADS, VECTOR, BLOCK, LINE_MAX, EXACT, WORDS, COUNT, SKIP]
 *
 * with the size of the vectors of base/simd (16 or 32; 16 where there are no others), the size of a
 * block and of the longest line in bytes, and that of a block of the skip index, which is
 * made if need be; 0: without one. Prints for each where the hits begin, the newest first, or with
 * COUNT how many they are; then, behind `bad`, how many bad lines were met.
 */
#include <inttypes.h>
#include <stdio.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/simd.h"
#include "chathist/base/time.h"
#include "chathist/search/search.h"

static int fail(const struct err *e)
{
    fprintf(stderr, "search-lines: %s\n", err_text(e));
    return -1;
}

static size_t number(struct str query, size_t i)
{
    int64_t n = 0;

    json_int(json_at(query, i), &n);
    return (size_t)n;
}

static int print_hits(struct search *s, bool count, struct err *e)
{
    struct hit hit;
    uint64_t total;
    int more = count ? search_count(s, false, &total, e) : 0;

    if (more > 0) {
        printf("%" PRIu64 " ", total);
        return 0;
    }
    total = 0;
    while (more == 0 && (more = search_next(s, &hit, e)) > 0) {
        total++;
        if (!count)
            printf("%lld ", (long long)hit.line.at);
        more = 0;
    }
    if (count && more == 0)
        printf("%" PRIu64 " ", total);
    return more;
}

static int run(const struct history *h, struct str query)
{
    struct json_iter texts = json_iter(json_at(query, 0));
    struct buf text = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct pattern p;
    struct search s;
    int result = 0;

    pattern_init(&p);
    p.case_sensitive = json_is_true(json_at(query, 5));
    p.words = json_is_true(json_at(query, 6));
    while (result == 0 && json_next(&texts))
        result = pattern_add(&p, json_text(texts.value, &text), &e);
    if (result == 0)
        result = search_open(&s, h->dir_fd, h->path, &p, NULL, &e);
    if (result == 0) {
        s.threads = number(query, 1);
        s.wide = simd_wide() && !str_eq_c(json_at(query, 2), "16");
        s.scan.block_size = number(query, 3);
        s.scan.line_max = number(query, 4);
        s.skip_block = (off_t)number(query, 8);
        s.history = h;
        result = print_hits(&s, json_is_true(json_at(query, 7)), &e);
        printf("bad %" PRIu64 "\n", s.scan.bad);
        search_learned_free(search_learned(&s), s.skip_block > 0 ? h : NULL, false);
        search_close(&s);
    }
    if (result < 0)
        fail(&e);
    err_release(&e);
    pattern_release(&p);
    buf_release(&text);
    return result;
}

int main(int argc, char **argv)
{
    struct buf queries = BUF_INIT(SIZE_MAX);
    int result = argc == 2 ? file_read_all(0, &queries) : -1;
    struct str rest = buf_str(&queries);
    struct history h;

    if (result == 0)
        result =
            locate(&h, &(struct locate_from){.explicit_file = argv[1], .now = time_now()}, NULL);
    if (result < 0) {
        fputs("usage: search-lines HISTORY <QUERIES\n", stderr);
        return 2;
    }
    while (result == 0 && rest.n > 0) {
        struct str line = str_cut(&rest, '\n'), query;

        result = json_check(line, &query, NULL) ? run(&h, query) : -1;
    }
    history_release(&h);
    buf_release(&queries);
    return result < 0 || fflush(stdout) != 0 ? 2 : 0;
}
