#include "chathist/search/forms.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "chathist/base/file.h"
#include "chathist/base/time.h"
#include "scratch.h"

#define LARGE ((size_t)1 << 20)

static void add_message(int fd, const char *content, size_t n)
{
    struct buf line = BUF_INIT(SIZE_MAX);

    buf_add_c(&line, "{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00Z\","
                     "\"role\":\"user\",\"content\":\"");
    buf_add(&line, content, n);
    buf_add_c(&line, "\"}\n");
    CHECK_INT(file_write_all(fd, line.data, line.len), 0);
    buf_release(&line);
}

/* Writes a history of `count` megabytes between two messages. */
static void write_megabytes(size_t count, const char *first, const char *last)
{
    int fd = open("h", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char *text = malloc(LARGE);

    memset(text, '-', LARGE);
    add_message(fd, first, strlen(first));
    for (size_t i = 0; i < count; i++)
        add_message(fd, text, LARGE);
    add_message(fd, last, strlen(last));
    free(text);
    close(fd);
}

static int open_search(void *ctx, size_t history, struct search *s, struct pattern *p,
                       struct err *e)
{
    (void)history;
    if (search_open(s, AT_FDCWD, "h", p, NULL, e) < 0)
        return -1;
    s->until = ctx;
    return 1;
}

/* Checks the other forms of a query; with `pauses` the search pauses after each millisecond. */
static void forms_are(const char *text, bool pauses, const char *asked)
{
    int64_t until;
    struct query query;
    struct forms f = {.text = str_of(text),
                      .query = &query,
                      .histories = 1,
                      .open = open_search,
                      .ctx = pauses ? &until : NULL};
    int result;

    CHECK_INT(query_parse(&query, f.text, 0, NULL), 0);
    do {
        until = time_ticks() + 1;
        result = forms_run(&f, NULL);
    } while (result == SEARCH_PAUSED);
    CHECK_INT(result, 0);
    CHECK_STR(buf_c(&f.asked), asked);
    forms_release(&f);
    query_release(&query);
}

TEST(forms_are_those_of_the_newest_part_whatever_the_clock_says)
{
    scratch_enter();
    write_megabytes(34, "some kilometres", "many telephones");
    forms_are("kilometers", false, "");
    forms_are("telephonic", false, "telephon");
    forms_are("kilometers telephonic", false, "kilometers telephon");
    forms_are("kilometers telephonic", true, "kilometers telephon");
    write_megabytes(1, "some kilometres", "many telephones");
    forms_are("kilometers telephonic", true, "kilomet telephon");
    scratch_leave();
}
