#include "chathist/llm/models.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "test.h"

#include "scratch.h"

#define DAY ((int64_t)24 * 60 * 60 * CLOCK_SECOND)

static const struct provider one = {.name = "one"}, two = {.name = "two"};

TEST(a_list_is_kept_for_its_server)
{
    const char *dir = "cache/models", *file = "cache/models/one@h:1%v1";
    struct model_list l = {0}, got;
    struct err e = ERR_INIT;
    struct stat st;

    scratch_enter();
    CHECK(!model_cache_load(dir, &one, "http://h:1/v1", DAY, &got));
    model_list_add(&l, STR("a:1"));
    model_list_add(&l, STR("bad\nname"));
    model_list_add(&l, STR("b c"));
    CHECK_INT(model_cache_store(dir, &one, "http://me:secret@h:1/v1?key=x", &l, &e), 0);
    CHECK_STR(err_text(&e), "");
    CHECK(!model_cache_load(dir, &one, "http://h:1/other", DAY, &got));
    CHECK(!model_cache_load(dir, &one, "http://h:1", DAY, &got));
    if (CHECK(model_cache_load(dir, &one, "http://h:1/v1/#x", DAY, &got))) {
        CHECK_INT(got.count, 2);
        CHECK_STR(got.at[0], "a:1");
        CHECK_STR(got.at[1], "b c");
    }
    model_list_release(&got);
    CHECK(!model_cache_load(dir, &two, "http://h:1/v1", DAY, &got));
    CHECK(!model_cache_load(dir, &one, "http://h:2/v1", DAY, &got));
    CHECK(!model_cache_load(dir, &one, "nonsense", DAY, &got));
    CHECK_INT(stat(file, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(stat(dir, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0700);
    /* Too old, and from the future. */
    for (int days = -2; days <= 2; days += 4) {
        time_t at = time(NULL) + days * 24 * 60 * 60;

        CHECK_INT(utime(file, &(struct utimbuf){at, at}), 0);
        CHECK(!model_cache_load(dir, &one, "http://h:1/v1", DAY, &got));
    }
    model_list_release(&l);
    scratch_leave();
}

TEST(what_is_in_the_way_is_an_error_or_nothing)
{
    const char *dir = "file", *below = "file/models";
    struct model_list l = {0}, got;
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK_INT(io_replace_file(dir, STR("x"), &e), 0);
    CHECK_INT(model_cache_store(below, &one, "http://h:1/v1", &l, &e), -1);
    CHECK(*err_text(&e) != '\0');
    CHECK(!model_cache_load(below, &one, "http://h:1/v1", DAY, &got));
    CHECK_INT(model_cache_store(below, &one, "nonsense", &l, &e), -1);
    err_release(&e);
    scratch_leave();
}
