#include "browse/state.h"

#include <stdint.h>

#include "test.h"
#include "scratch.h"

static void take_sessions(struct browse *b, size_t count)
{
    struct session_list list = {0};

    for (size_t i = 0; i < count; i++) {
        struct str id = {(char[]){'s', (char)('0' + i)}, 2};
        struct session *s = session_list_add(&list);

        s->id = s->preview = session_list_copy(&list, id);
        s->count = i + 1;
        s->last_line = (off_t)(count - i);
    }
    browse_set_sessions(b, 0, &list);
    browse_finish_sessions(b);
}

/* With its parts. */
static void hand_in(struct browse *b, struct thread *t)
{
    struct browse_parts parts;

    browse_parts_make(&parts, t);
    browse_set_messages(b, t, &parts, false);
}

static void take_messages(struct browse *b, size_t count)
{
    struct thread t = {0};

    for (size_t i = 0; i < count; i++) {
        char line[300];

        snprintf(line, sizeof line,
                 "{\"id\":\"m%zu\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"%s\","
                 "\"content\":\"one\\ntwo\\nthree\"}",
                 i, i % 2 ? "assistant" : "user");
        thread_add(&t, str_of(line));
    }
    hand_in(b, &t);
}

/* Begins with a file that has these lines. */
static void begin(struct browse *b, const char *lines)
{
    scratch_enter();
    scratch_put("f", lines);
    browse_init(b, 1);
    browse_resize(b, 10, 100);
    CHECK_INT(browse_state_load(b, "f", STR("/h"), NULL), 0);
}

/* Checks what is saved, and ends. */
static void end(struct browse *b, const char *want)
{
    CHECK_INT(browse_state_save(b, "f", STR("/h"), NULL), 0);
    scratch_check("f", want);
    browse_release(b);
    scratch_leave();
}

TEST(nothing_is_remembered_of_an_empty_history)
{
    struct browse b;

    begin(&b, "");
    end(&b, "{\"history\":\"/h\",\"query\":\"\",\"all\":false}\n");
}

TEST(a_place_is_found_again)
{
    struct browse b;

    begin(&b, "{\"history\":\"/other\",\"query\":\"x\"}\nnonsense\n"
              "{\"history\":\"/h\",\"query\":\"\",\"role\":\"user\",\"all\":false,"
              "\"session\":\"s5\",\"row\":2,\"top\":\"m2\",\"top_line\":1,\"at\":\"m4\"}\n");
    CHECK_STR(buf_c(&b.query.text), "");
    take_sessions(&b, 8);
    CHECK_INT(b.session_list.at, 5);
    CHECK_INT(b.session_list.top, 1);
    CHECK(b.wants.messages);
    CHECK_STR(buf_c(&b.shown.id), "s5");
    take_messages(&b, 20);
    CHECK_INT(b.pane.top, 2);
    CHECK_INT(b.pane.top_line, 1);
    CHECK_INT(b.pane.at, 4);
    end(&b, "{\"history\":\"/other\",\"query\":\"x\"}\n"
            "{\"history\":\"/h\",\"query\":\"\",\"role\":\"user\",\"all\":false,"
            "\"session\":\"s5\",\"row\":4,\"top\":\"m2\",\"top_line\":1,\"at\":\"m4\"}\n");
}

TEST(the_orders_are_kept)
{
    struct browse b;
    static const char line[] = "{\"history\":\"/h\",\"query\":\"\",\"all\":false,"
                               "\"order\":2,\"most_hits\":1}\n";

    begin(&b, line);
    CHECK_INT(b.order, BROWSE_LONGEST);
    CHECK(b.most_hits);
    end(&b, line);
}

TEST(what_is_gone_is_not_waited_for)
{
    struct browse b;

    begin(&b, "{\"history\":\"/h\",\"session\":\"gone\",\"row\":2}\n");
    take_sessions(&b, 3);
    CHECK_INT(b.session_list.at, 0);
    CHECK_STR(buf_c(&b.shown.id), "s0");
    end(&b, "{\"history\":\"/h\",\"query\":\"\",\"all\":false,\"session\":\"s0\",\"row\":0}\n");
}

TEST(nonsense_in_a_line_does_no_harm)
{
    struct browse b;

    begin(&b, "{\"history\":\"/h\",\"query\":7,\"role\":\"x\",\"all\":true,"
              "\"session\":[],\"row\":-1,\"top_line\":1e99,\"message\":null}\n");
    CHECK_INT(b.query.text.len, 0);
    CHECK(b.role == NULL);
    /* There is only one history. */
    CHECK(!b.all);
    CHECK_INT(b.back.row, 0);
    CHECK_INT(b.back.top_line, 0);
    CHECK(!b.back.list);
    end(&b, "{\"history\":\"/h\",\"query\":\"\",\"all\":false}\n");
}

TEST(each_history_has_a_line_in_the_file)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);

    scratch_enter();
    browse_init(&b, 1);
    CHECK_INT(browse_state_load(&b, "dir/browse", STR("/a"), NULL), 0);
    browse_edit_set(&b.query, STR("one"));
    CHECK_INT(browse_state_save(&b, "dir/browse", STR("/a"), NULL), 0);
    browse_edit_set(&b.query, STR("two"));
    CHECK_INT(browse_state_save(&b, "dir/browse", STR("/b"), NULL), 0);
    browse_edit_set(&b.query, STR("three"));
    CHECK_INT(browse_state_save(&b, "dir/browse", STR("/a"), NULL), 0);
    CHECK_INT(file_read("dir/browse", &text, NULL), 0);
    CHECK_STR(buf_c(&text), "{\"history\":\"/b\",\"query\":\"two\",\"all\":false}\n"
                            "{\"history\":\"/a\",\"query\":\"three\",\"all\":false}\n");
    CHECK_INT(browse_state_load(&b, "dir/browse", STR("/b"), NULL), 0);
    CHECK_STR(buf_c(&b.query.text), "two");
    browse_release(&b);
    buf_release(&text);
    scratch_leave();
}

TEST(the_file_does_not_grow_for_ever)
{
    struct browse b;
    struct buf text = BUF_INIT(BUF_SMALL);
    size_t lines = 0;

    scratch_enter();
    browse_init(&b, 1);
    for (int i = 0; i < BROWSE_KEPT + 5; i++) {
        char name[20];

        snprintf(name, sizeof name, "/h%d", i);
        CHECK_INT(browse_state_save(&b, "f", str_of(name), NULL), 0);
    }
    CHECK_INT(file_read("f", &text, NULL), 0);
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    CHECK_INT(lines, BROWSE_KEPT);
    CHECK(str_starts(buf_str(&text), STR("{\"history\":\"/h5\"")));
    browse_release(&b);
    buf_release(&text);
    scratch_leave();
}

TEST(a_file_that_cannot_be_read_is_an_error)
{
    struct browse b;
    struct err e = ERR_INIT;

    scratch_enter();
    browse_init(&b, 1);
    CHECK_INT(mkdir("f", 0700), 0);
    CHECK_INT(browse_state_load(&b, "f", STR("/h"), &e), -1);
    CHECK_STR(err_text(&e), "cannot open 'f': is a directory");
    CHECK_INT(browse_state_save(&b, "f", STR("/h"), NULL), -1);
    err_release(&e);
    browse_release(&b);
    scratch_leave();
}
