
#include <stdlib.h>

#include "test.h"
#include "chathist/base/id.h"
#include "chathist/base/time.h"
#include "chathist/history/session.h"
#include "chathist/history/store.h"
#include "scratch.h"

static struct history h;

static void enter(void)
{
    struct locate_from from = {.explicit_file = "h.jsonl", .cwd = scratch_dir};

    scratch_enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    h.sync = false;
}

static void leave(void)
{
    history_release(&h);
    scratch_leave();
}

static void say(const char *session, int64_t seconds_ago)
{
    struct draft d;
    struct buf time = BUF_INIT(BUF_SMALL);

    draft_init(&d);
    draft_message(&d, ROLE_USER, STR("x"));
    draft_set_text(&d, FIELD_SESSION_ID, str_of(session));
    time_add_iso(&time, time_now() - seconds_ago * TIME_SECOND);
    draft_set_text(&d, FIELD_TIMESTAMP, buf_str(&time));
    CHECK_INT(store_append(&h, &d, 1, NULL), 0);
    draft_release(&d);
    buf_release(&time);
}

/* Dates the pointer file back. */
static void age_pointer(int64_t seconds)
{
    struct timespec times[2];

    times[0].tv_sec = times[1].tv_sec = (time_t)(time_now() / TIME_SECOND - seconds);
    times[0].tv_nsec = times[1].tv_nsec = 0;
    CHECK_INT(utimensat(AT_FDCWD, h.pointer, times, 0), 0);
}

static void check(struct resume_wish wish, const char *id, bool make_current)
{
    struct resume r = RESUME_INIT;
    struct err e = ERR_INIT;

    CHECK_INT(resume_choose(&r, &h, &wish, &e), 0);
    if (id)
        CHECK_STR(buf_c(&r.id), id);
    else
        CHECK(str_starts(buf_str(&r.id), STR("sess_")) && id_session_valid(buf_str(&r.id)));
    CHECK_INT(r.fresh, id == NULL);
    CHECK_INT(r.make_current, make_current);
    CHECK_INT(r.distrusted, false);
    resume_release(&r);
}

TEST(the_first_message_starts_a_session)
{
    enter();
    check((struct resume_wish){.timeout_ms = 1000}, NULL, true);
    leave();
}

TEST(the_current_session_goes_on)
{
    enter();
    say("one", 0);
    say("two", 0);
    CHECK_INT(session_make_current(&h, STR("one"), NULL), 0);
    check((struct resume_wish){.timeout_ms = 60000}, "one", false);
    check((struct resume_wish){.timeout_ms = 60000, .fresh = true}, NULL, true);
    check((struct resume_wish){.timeout_ms = 60000, .last = true}, "two", true);
    check((struct resume_wish){.timeout_ms = 60000, .named = "three"}, "three", false);
    leave();
}

TEST(an_idle_session_expires)
{
    enter();
    say("one", 3600);
    CHECK_INT(session_make_current(&h, STR("one"), NULL), 0);
    check((struct resume_wish){.timeout_ms = 60000}, "one", false); /* made current just now */
    age_pointer(3600);
    check((struct resume_wish){.timeout_ms = 60000}, NULL, true);
    check((struct resume_wish){.timeout_ms = -1}, "one", false);
    check((struct resume_wish){.timeout_ms = 60000, .last = true}, "one", true);
    say("one", 5);
    check((struct resume_wish){.timeout_ms = 60000}, "one", false);
    leave();
}

TEST(a_name_must_be_an_id)
{
    static const char *const names[] = {"", "current", "last", "a b", "-x", "ä"};

    enter();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct resume r = RESUME_INIT;
        struct resume_wish wish = {.named = names[i]};
        struct err e = ERR_INIT;

        CHECK_INT(resume_choose(&r, &h, &wish, &e), -1);
        CHECK_INT(e.kind, ERR_USAGE);
        err_release(&e);
        resume_release(&r);
    }
    leave();
}

TEST(what_is_not_trusted_is_continued_only_by_request)
{
    struct resume r = RESUME_INIT;
    struct resume_wish wish = {.last = true, .timeout_ms = -1};

    enter();
    say("theirs", 0);
    CHECK_INT(session_make_current(&h, STR("theirs"), NULL), 0);
    h.trusted = false;
    CHECK_INT(resume_choose(&r, &h, &wish, NULL), 0);
    CHECK(!r.fresh && !r.distrusted && r.make_current);
    CHECK_STR(buf_c(&r.id), "theirs");
    wish = (struct resume_wish){.timeout_ms = -1};
    CHECK_INT(resume_choose(&r, &h, &wish, NULL), 0);
    CHECK(r.fresh && r.distrusted && r.make_current);
    wish = (struct resume_wish){.named = "theirs"};
    CHECK_INT(resume_choose(&r, &h, &wish, NULL), 0);
    CHECK(!r.fresh && !r.distrusted && !r.make_current && r.adopt);
    CHECK_STR(buf_c(&r.id), "theirs");
    h.trusted = true;
    resume_release(&r);
    leave();
}

TEST(a_pointer_that_cannot_be_read_names_no_session)
{
    struct resume r = RESUME_INIT;
    struct err e = ERR_INIT;

    enter();
    say("one", 0);
    CHECK_INT(mkdir(h.pointer, 0700), 0);
    check((struct resume_wish){.timeout_ms = -1}, NULL, true);
    buf_add_c(&r.id, "mine");
    r.make_current = true;
    CHECK_INT(resume_settle(&r, &h, &e), -1);
    CHECK(strstr(err_text(&e), "is a directory") != NULL);
    CHECK_INT(rmdir(h.pointer), 0);
    CHECK_INT(symlink("h.jsonl", h.pointer), 0);
    check((struct resume_wish){.timeout_ms = -1}, NULL, true);
    CHECK_INT(unlink(h.pointer), 0);
    CHECK_INT(mkfifo(h.pointer, 0600), 0);
    check((struct resume_wish){.timeout_ms = -1}, NULL, true);
    err_release(&e);
    resume_release(&r);
    leave();
}

TEST(settling_moves_the_pointer_only_where_due)
{
    struct resume r = RESUME_INIT;

    enter();
    buf_add_c(&r.id, "mine");
    CHECK_INT(resume_settle(&r, &h, NULL), 0);
    CHECK_INT(access(h.pointer, F_OK), -1);
    r.make_current = true;
    CHECK_INT(resume_settle(&r, &h, NULL), 0);
    scratch_check(h.pointer, "mine\n");
    resume_release(&r);
    leave();
}
