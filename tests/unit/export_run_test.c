/* What happens to a history while an export runs. hist-export.bats and hist-export.case test the
 * rest. */
#include "chathist/convert/export_run.h"

#include "chathist/history/session_list.h"
#include "test.h"
#include "scratch.h"
#include "scratch_history.h"

static int made; /* lines so far */

#define LINE(id, session)                                                                          \
    "{\"id\":\"" id "\",\"session_id\":\"" session                                                 \
    "\",\"timestamp\":\"2024-06-27T15:00:00.000Z\",\"role\":\"user\",\"content\":\"text\"}\n"

/* Another program begins a session after the first export has listed its sessions. */
static int list_and_begin(void *arg, struct session_list *l, struct err *e)
{
    int result = session_list_load(l, &history, e);

    (void)arg;
    if (made++ == 1)
        append_text(LINE("2", "b"));
    return result;
}

/* Exports the new lines. Returns whether the session has a file now. */
static bool export_new(const char *file)
{
    struct export_job job = {.format = &export_txt,
                             .output = "out",
                             .directory = true,
                             .state = "state",
                             .all = true,
                             .list = list_and_begin,
                             .cancel_fd = -1};
    struct err e = ERR_INIT;

    CHECK_INT(export_run(&job, &history, &e), 0);
    err_release(&e);
    return access(file, F_OK) == 0;
}

TEST(a_session_that_begins_meanwhile_is_exported_by_the_next_run)
{
    scratch_enter();
    scratch_put("h", LINE("1", "a"));
    made = 1;
    CHECK(export_new("out/2024-06-27_a.txt"));
    CHECK(export_new("out/2024-06-27_b.txt"));
    scratch_leave();
}
