#include "chathist/search/query.h"

#include <stdlib.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/search/forms.h"
#include "chathist/search/session_search.h"
#include "test.h"
#include "scratch.h"

static char path[] = "h", nothing[] = "none";
static const struct history history = {.dir_fd = FILE_CWD,
                                       .pointer_fd = FILE_CWD,
                                       .path = path,
                                       .index = nothing,
                                       .skip = nothing,
                                       .pointer = nothing,
                                       .cancel_fd = -1};

/* The page's script is tested with the same file (tests/feature/page.bats). */
static struct buf cases = BUF_INIT(BUF_SMALL);

/* Makes the history of the cases and reads them. Days are those of UTC. */
static int64_t begin(void)
{
    struct buf lines = BUF_INIT(BUF_SMALL), scratch = BUF_INIT(BUF_SMALL);
    int64_t now = 0;

    setenv("TZ", "UTC", 1);
    if (!cases.len) {
        CHECK_INT(file_read("tests/fixtures/query/cases.json", &cases, NULL), 0);
        CHECK_INT(file_read("tests/fixtures/query/history.jsonl", &lines, NULL), 0);
        scratch_enter();
        scratch_put("h", buf_c(&lines));
    }
    CHECK(time_parse_iso(json_text(json_get(buf_str(&cases), "now"), &scratch), &now));
    buf_release(&lines);
    buf_release(&scratch);
    return now;
}

/* Adds the numbers of the messages that a query finds, oldest first. */
static void find(struct buf *ids, struct str text, int64_t now)
{
    struct query q;
    struct pattern p;
    struct search s;
    struct hit hit;
    char newest[64];
    size_t count = 0;

    if (!CHECK_INT(query_parse(&q, text, now, NULL), 0))
        return;
    pattern_init(&p);
    CHECK_INT(query_add_words(&q, &p, NULL), 0);
    CHECK_INT(query_enter(&q, &history, STR("~/src/alpha"), NULL), 1);
    CHECK_INT(search_open(&s, FILE_CWD, "h", &p, NULL, NULL), 0);
    s.query = &q;
    while (search_next(&s, &hit, NULL) == 1)
        newest[count++] = hit.message->id.p[0];
    while (count-- > 0)
        buf_addf(ids, ids->len ? " %c" : "%c", newest[count]);
    search_close(&s);
    pattern_release(&p);
    query_release(&q);
}

static int open_for_forms(void *query, size_t number, struct search *s, struct pattern *p,
                          struct err *e)
{
    (void)number;
    if (search_open(s, FILE_CWD, "h", p, NULL, e) < 0)
        return -1;
    s->query = query;
    return 1;
}

/* Checks one of the cases of forms, which the page's script has, too. */
static void check_forms(struct str text, struct str asked, struct str said, int64_t now)
{
    struct query q;
    struct forms f = {.text = text, .query = &q, .histories = 1, .open = open_for_forms, .ctx = &q};

    if (!CHECK_INT(query_parse(&q, text, now, NULL), 0))
        return;
    CHECK_INT(forms_run(&f, NULL), 0);
    CHECK_MEM(buf_c(&f.asked), f.asked.len, asked.p, asked.n);
    if (said.p)
        CHECK_MEM(buf_c(&f.said), f.said.len, said.p, said.n);
    forms_release(&f);
    query_release(&q);
}

TEST(words_without_a_hit_have_other_forms)
{
    int64_t now = begin();
    struct json_iter it = json_iter(json_get(buf_str(&cases), "forms"));
    struct buf text = BUF_INIT(BUF_SMALL), asked = BUF_INIT(BUF_SMALL), said = BUF_INIT(BUF_SMALL);
    int count = 0;

    for (; json_next(&it); count++)
        check_forms(json_text(json_get(it.value, "query"), &text),
                    json_text(json_get(it.value, "asked"), &asked),
                    json_text(json_get(it.value, "said"), &said), now);
    CHECK(count > 10);
    buf_release(&text);
    buf_release(&asked);
    buf_release(&said);
}

TEST(the_cases_that_the_page_agrees_with)
{
    int64_t now = begin();
    struct json_iter it = json_iter(json_get(buf_str(&cases), "cases"));
    struct buf text = BUF_INIT(BUF_SMALL), want = BUF_INIT(BUF_SMALL), got = BUF_INIT(BUF_SMALL);
    int count = 0;

    for (; json_next(&it); count++) {
        struct str query = json_text(json_get(it.value, "query"), &text);
        struct str ids = json_text(json_get(it.value, "ids"), &want);

        buf_clear(&got);
        find(&got, query, now);
        if (!CHECK(str_eq(buf_str(&got), ids)))
            fprintf(stderr, "    '%.*s': '%s', not '%.*s'\n", (int)query.n, query.p, buf_c(&got),
                    (int)ids.n, ids.p);
    }
    CHECK(count > 50);
    buf_release(&text);
    buf_release(&want);
    buf_release(&got);
}

static int open_search(void *query, struct search *s, struct pattern *p, struct err *e)
{
    int result = search_open(s, FILE_CWD, "h", p, NULL, e);

    s->query = query;
    return result;
}

static int by_place(const void *a, const void *b)
{
    const struct session_hit *x = a, *y = b;

    return (x->place.at > y->place.at) - (x->place.at < y->place.at);
}

/* Adds the numbers of the messages in the sessions that hold everything but `lack` words, oldest
 * first. */
static void find_together(struct buf *ids, struct str text, size_t lack, int64_t now)
{
    struct query q;
    struct session_texts texts;
    struct buf line = BUF_INIT(BUF_SMALL);
    struct search s;
    struct hit hit;

    CHECK_INT(query_parse(&q, text, now, NULL), 0);
    CHECK_INT(session_texts_of(&texts, &q, NULL), 0);
    CHECK(session_texts_help(&texts, &q, lack));
    CHECK_INT(query_enter(&q, &history, STR("~/src/alpha"), NULL), 1);
    struct session_search of = {.wanted = texts.at,
                                .wanted_count = texts.count,
                                .may_lack = lack,
                                .query = &q,
                                .newest_only = true,
                                .open = open_search,
                                .ctx = &q};
    CHECK_INT(session_search_run(&of, NULL), 0);
    CHECK_INT(open_search(&q, &s, &texts.any, NULL), 0);
    if (of.hits.count > 0)
        qsort(of.hits.at, of.hits.count, sizeof *of.hits.at, by_place);
    for (size_t i = 0; i < of.hits.count; i++) {
        CHECK_INT(session_search_read(&s, of.hits.at[i].place, &line, &hit, NULL), 0);
        buf_addf(ids, ids->len ? " %.1s" : "%.1s", hit.message->id.p);
    }
    search_close(&s);
    session_search_release(&of);
    session_texts_release(&texts);
    query_release(&q);
    buf_release(&line);
}

TEST(sessions_hold_together_what_no_message_holds)
{
    int64_t now = begin();
    struct json_iter it = json_iter(json_get(buf_str(&cases), "together"));
    struct buf text = BUF_INIT(BUF_SMALL), want = BUF_INIT(BUF_SMALL), got = BUF_INIT(BUF_SMALL);
    int count = 0;

    for (; json_next(&it); count++) {
        struct str query = json_text(json_get(it.value, "query"), &text);
        struct str ids = json_text(json_get(it.value, "ids"), &want);
        bool nearly = str_eq_c(json_get(it.value, "lack"), "1");

        buf_clear(&got);
        find(&got, query, now);
        CHECK_STR(buf_c(&got), "");
        if (nearly)
            find_together(&got, query, 0, now);
        CHECK_STR(buf_c(&got), "");
        find_together(&got, query, nearly, now);
        if (!CHECK(str_eq(buf_str(&got), ids)))
            fprintf(stderr, "    '%.*s': '%s', not '%.*s'\n", (int)query.n, query.p, buf_c(&got),
                    (int)ids.n, ids.p);
    }
    CHECK(count > 5);
    buf_release(&text);
    buf_release(&want);
    buf_release(&got);
}

TEST(a_bad_value_is_an_error)
{
    int64_t now = begin();
    struct json_iter it = json_iter(json_get(buf_str(&cases), "errors"));
    struct buf text = BUF_INIT(BUF_SMALL);

    while (json_next(&it)) {
        struct err e = ERR_INIT;
        struct query q;

        if (!CHECK_INT(query_parse(&q, json_text(it.value, &text), now, &e), -1))
            fprintf(stderr, "    '%.*s'\n", (int)it.value.n, it.value.p);
        CHECK(e.kind == ERR_USAGE);
        err_release(&e);
    }
    buf_release(&text);
}

/* A text of which no expression can be made is named by its beginning, with and without a hyphen.
 */
static void check_too_long(const char *start)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct pattern p;
    struct err e = ERR_INIT;
    struct query q;

    buf_addf(&text, "%s\"word", start);
    for (size_t i = 0; i < 100000; i++)
        buf_add_c(&text, " a");
    pattern_init(&p);
    if (query_parse(&q, buf_str(&text), time_now(), &e) == 0) {
        CHECK_INT(query_add_words(&q, &p, &e), -1);
        query_release(&q);
    }
    CHECK(e.kind == ERR_USAGE);
    CHECK(strncmp(err_text(&e), "'word a a a", 11) == 0);
    CHECK(strlen(err_text(&e)) < 300 && strstr(err_text(&e), "' is too long for a word") != NULL);
    err_release(&e);
    pattern_release(&p);
    buf_release(&text);
}

TEST(words_that_are_too_long_are_an_error)
{
    check_too_long("");
    check_too_long("-");
}

static void check_enter(const char *text, int want)
{
    struct query q;

    CHECK_INT(query_parse(&q, str_of(text), time_now(), NULL), 0);
    CHECK_INT(query_enter(&q, &history, STR("~/src/Alpha"), NULL), want);
    query_release(&q);
}

TEST(a_history_is_chosen_by_its_repository)
{
    begin();
    check_enter("word", 1);
    check_enter("repo:alpha", 1);
    check_enter("repo:beta", 0);
    check_enter("repo:beta repo:src/a", 1);
    check_enter("in:alpha", 1);
    check_enter("In:beta", 0);
    check_enter("-repo:beta", 1);
    check_enter("-repo:alpha repo:src", 0);
    buf_release(&cases);
}
