/*
 * What store does when an id that it draws is there already. This file has its own base/id, whose
 * ids come in a row that is known.
 */
#include "chathist/history/store.h"

#include "chathist/base/id.h"
#include "test.h"
#include "scratch.h"

static int drawn;

void id_add_message(struct buf *out, int64_t epoch_ms)
{
    (void)epoch_ms;
    /* Each twice, so that every draw but the first needs a second. */
    buf_addf(out, "id-%04d", drawn++ / 2);
}

void id_add_session(struct buf *out, int64_t epoch_ms)
{
    (void)epoch_ms;
    buf_add_c(out, "session");
}

int id_add_token(struct buf *out, struct err *e)
{
    (void)e;
    buf_add_c(out, "token");
    return 0;
}

bool id_session_valid(struct str id)
{
    return id.n > 0;
}

static void make(struct draft *d, const char *content)
{
    draft_init(d);
    draft_message(d, ROLE_USER, str_of(content));
    draft_set_text(d, FIELD_SESSION_ID, STR("s"));
}

static void check_id(const struct draft *d, const char *want)
{
    CHECK_STR(buf_c(&d->field[FIELD_ID]), want);
}

TEST(an_id_that_is_there_is_drawn_again)
{
    struct history h;
    struct locate_from from = {.explicit_file = "f", .cwd = "/"};
    struct draft d[3];

    scratch_enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    h.sync = false;

    /* Three provisional ones are drawn first: 0000, 0000, 0001. */
    for (int i = 0; i < 3; i++)
        make(&d[i], "x");
    drawn = 0;
    CHECK_INT(store_append(&h, d, 3, NULL), 0);
    check_id(&d[0], "\"id-0001\"");
    check_id(&d[1], "\"id-0002\"");
    check_id(&d[2], "\"id-0003\"");
    for (int i = 0; i < 3; i++)
        draft_release(&d[i]);

    /* In the file's tail. */
    make(&d[0], "x");
    drawn = 1;
    CHECK_INT(store_append(&h, d, 1, NULL), 0);
    check_id(&d[0], "\"id-0004\"");
    draft_release(&d[0]);

    /* An id that was given stays. */
    make(&d[0], "x");
    draft_set_text(&d[0], FIELD_ID, STR("id-0001"));
    CHECK_INT(store_append(&h, d, 1, NULL), 0);
    check_id(&d[0], "\"id-0001\"");
    draft_release(&d[0]);
    history_release(&h);
    scratch_leave();
}
