#include "chathist/embed/vectors.h"

#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "test.h"
#include "scratch.h"
#include "scratch_history.h"

static const char *answer;

static int make_answer(void *arg, struct str texts, struct buf *out, struct err *e)
{
    (void)arg;
    (void)texts;
    (void)e;
    buf_add_c(out, answer);
    return 0;
}

TEST(a_server_that_fails_in_the_middle_refuses_no_text)
{
    static char path[] = "h.vectors";
    struct vectors_model model = {1, 2, STR("\"sure\"\n"), make_answer, NULL, NULL};
    struct err e = ERR_INIT;
    size_t refused;

    scratch_enter();
    history.vectors = path;
    append_text("{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T15:00:00Z\","
                "\"role\":\"user\","
                "\"content\":\"c\"}\n"
                "{\"id\":\"2\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T15:00:00Z\","
                "\"role\":\"user\","
                "\"content\":\"d\"}\n");
    /* The last vector is that of a text which the model is known to take. */
    answer = "[1,0]\nnull\nnull\n";
    CHECK_INT(vectors_update(&history, &model, &refused, &e), -1);
    err_release(&e);
    answer = "[1,0]\nnull\n[0,1]\n";
    CHECK_INT(vectors_update(&history, &model, &refused, &e), 0);
    CHECK_INT(refused, 1);
    err_release(&e);
    scratch_leave();
}

TEST(a_file_with_a_long_damaged_end_begins_anew)
{
    static char path[] = "h.vectors";
    struct vectors_model model = {1, 2, STR("\"sure\"\n"), make_answer, NULL, NULL};
    struct err e = ERR_INIT;
    struct stat st;
    size_t refused;
    off_t size;

    scratch_enter();
    history.vectors = path;
    append_text("{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T15:00:00Z\","
                "\"role\":\"user\",\"content\":\"c\"}\n");
    answer = "[1,0]\n[0,1]\n";
    CHECK_INT(vectors_update(&history, &model, &refused, &e), 0);
    CHECK_INT(stat(path, &st), 0);
    size = st.st_size;
    CHECK_INT(truncate(path, 64 << 20), 0);
    CHECK_INT(vectors_update(&history, &model, &refused, &e), 0);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_size, size);
    err_release(&e);
    scratch_leave();
}
