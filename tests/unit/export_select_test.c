/* The history in pieces of any size. hist-export.bats tests the choice of lines, and
 * export_select_fuzz.c states. */
#include "chathist/convert/export_select.h"

#include <inttypes.h>

#include "test.h"
#include "scratch.h"

#define MESSAGE(id, session)                                                                       \
    "{\"id\":\"" id "\",\"session_id\":\"" session                                                 \
    "\",\"timestamp\":\"t\",\"role\":\"user\",\"content\":\"some text\"}"
#define LINE(id, session) MESSAGE(id, session) "\n"

/* Without a state, or with one the new lines, or all lines. */
enum state { NONE, NEW, WHOLE };

/* Loads the history in pieces of `size` bytes. Returns `session@offset+length` for each line, then
 * the sessions with their bytes, `*` if they have grown, and the number of bad lines. With a state,
 * the lines count as exported then. */
static char *selected(off_t size, enum state state)
{
    struct append_wait wait = APPEND_WAIT_INIT;
    struct selection s = SELECTION_INIT;
    struct buf b = BUF_INIT(BUF_LINE);

    s.piece_size = size;
    if (state != NONE)
        CHECK_INT(selection_open_state(&s, "state", &wait, NULL), 0);
    CHECK_INT(selection_load(&s, FILE_CWD, "h", state == WHOLE, NULL, NULL), 0);
    for (size_t i = 0; i < s.lines_count; i++) {
        buf_add_str(&b, s.sessions[s.lines[i].session].id);
        buf_addf(&b, "@%lld+%zu ", (long long)s.lines[i].at, s.lines[i].n);
    }
    for (size_t i = 0; i < s.sessions_count; i++) {
        buf_addf(&b, "%s", s.sessions[i].grown ? "*" : "");
        buf_add_str(&b, s.sessions[i].id);
        buf_addf(&b, "=%lld ", (long long)s.sessions[i].bytes);
    }
    buf_addf(&b, "%" PRIu64 " bad", s.bad_lines);
    if (state != NONE)
        CHECK_INT(selection_save(&s, NULL), 0);
    selection_release(&s);
    return buf_detach(&b);
}

static void check_selected(off_t size, enum state state, const char *want)
{
    char *got = selected(size, state);

    if (!CHECK_STR(got, want))
        fprintf(stderr, "    in pieces of %lld bytes\n", (long long)size);
    free(got);
}

TEST(a_border_between_pieces_changes_nothing)
{
    static const char text[] = LINE("1", "a") LINE("2", "b") "no message\n\n" LINE("3", "b")
        LINE("4", "a") "{\n" LINE("5", "\\u0063") MESSAGE("6", "a");

    scratch_enter();
    scratch_put("h", text);
    for (off_t size = 1; size < (off_t)sizeof text + 2; size++)
        check_selected(
            size, NONE,
            "a@0+79 b@80+79 b@172+79 a@252+79 c@334+84 a@419+79 *a=237 *b=158 *c=84 2 bad");
    /* An empty id is an id. */
    scratch_put("h", LINE("1", "") LINE("2", "a") LINE("3", "") LINE("4", ""));
    for (off_t size = 1; size < 400; size += 40)
        check_selected(size, NONE, "@0+78 a@79+79 @159+78 @238+78 *=234 *a=79 0 bad");
    scratch_put("h", "");
    check_selected(1, NONE, "0 bad");
    scratch_leave();
}

TEST(a_line_is_longer_than_many_pieces)
{
    struct buf text = BUF_INIT(BUF_LINE);

    scratch_enter();
    buf_add_c(&text, LINE("1", "a") "{\"id\":\"2\",\"session_id\":\"b\",\"timestamp\":\"t\","
                                    "\"role\":\"user\",\"content\":\"");
    for (int i = 0; i < 1000; i++)
        buf_add_c(&text, "0123456789");
    buf_add_c(&text, "\"}\n" LINE("3", "a"));
    scratch_put("h", buf_c(&text));
    for (off_t size = 1; size < 200; size += 7)
        check_selected(size, NONE, "a@0+79 b@80+10070 a@10151+79 *a=158 *b=10070 0 bad");
    buf_release(&text);
    scratch_leave();
}

TEST(a_state_continues_at_any_border)
{
    scratch_enter();
    for (off_t size = 1; size < 400; size += 3) {
        scratch_put("state", "");
        scratch_put("h", LINE("1", "a") "bad\n" MESSAGE("2", "b"));
        check_selected(size, NEW, "a@0+79 *a=79 1 bad");
        scratch_put("h", LINE("1", "a") "bad\n" LINE("2", "b") LINE("3", "b"));
        check_selected(size, NEW, "b@84+79 b@164+79 a=0 *b=158 1 bad");
        check_selected(size, WHOLE, "a@0+79 b@84+79 b@164+79 a=79 b=158 1 bad");
        /* Rewritten: the first session is gone. */
        scratch_put("h", LINE("2", "b") LINE("3", "b") LINE("4", "b"));
        check_selected(size, WHOLE, "b@0+79 b@80+79 b@160+79 a=0 *b=237 0 bad");
    }
    scratch_leave();
}
