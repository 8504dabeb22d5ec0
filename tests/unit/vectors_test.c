#include "chathist/embed/vectors.h"

#include <stdlib.h>
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

/* Looks for [1, 0]. */
static int find(const struct vectors_model *model, struct vectors_found *found, struct err *e)
{
    static struct vectors_hit hits[4];
    struct vector v;
    int rc = vector_read(&v, STR("[1,0]"), e);

    *found = (struct vectors_found){.hits = hits, .most = 4};
    rc = rc < 0 ? rc : vectors_nearest(&history, model, &v, found, e);
    free(v.at);
    return rc;
}

TEST(a_server_that_fails_in_the_middle_refuses_no_text)
{
    static char path[] = "h.vectors";
    struct vectors_model model = {1, 2, STR("\"sure\"\n"), make_answer, NULL, NULL};
    struct vectors_found found;
    struct err e = ERR_INIT;

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
    CHECK_INT(find(&model, &found, &e), -1);
    err_release(&e);
    answer = "[1,0]\nnull\n[0,1]\n";
    CHECK_INT(find(&model, &found, &e), 0);
    CHECK_INT(found.refused, 1);
    CHECK_INT(found.count, 1);
    err_release(&e);
    scratch_leave();
}

TEST(a_file_with_a_long_damaged_end_begins_anew)
{
    static char path[] = "h.vectors";
    struct vectors_model model = {1, 2, STR("\"sure\"\n"), make_answer, NULL, NULL};
    struct vectors_found found;
    struct err e = ERR_INIT;
    struct stat st;
    off_t size;

    scratch_enter();
    history.vectors = path;
    append_text("{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T15:00:00Z\","
                "\"role\":\"user\",\"content\":\"c\"}\n");
    answer = "[1,0]\n[0,1]\n";
    CHECK_INT(find(&model, &found, &e), 0);
    CHECK_INT(stat(path, &st), 0);
    size = st.st_size;
    CHECK_INT(truncate(path, 64 << 20), 0);
    CHECK_INT(find(&model, &found, &e), 0);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_size, size);
    err_release(&e);
    scratch_leave();
}
