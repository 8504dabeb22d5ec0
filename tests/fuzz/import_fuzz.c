/*
 * import: a file of any bytes, in each format and in the one that is recognised, is imported to its
 * end. What is stored has a role or is a title, has a session that may be stored, and, if it is
 * from another program, an origin in that session; and nothing is new when the file is imported
 * again.
 */
#include <stdint.h>

#include "chathist/base/id.h"
#include "chathist/history/message.h"
#include "import_history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tally {
    size_t lines;
    bool own; /* the file may have lines in our own form, which keep an unknown role */
};

static void check_line(void *arg, struct str line)
{
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str origin;
    struct tally *t = arg;

    demand(message_parse(&m, line) && id_session_valid(m.session_id));
    origin = message_text(&m, FIELD_ORIGIN, &scratch);
    demand(t->own || origin.n == 0 || m.role < ROLE_OTHER || message_is_title(&m));
    t->lines++;
    message_release(&m);
    buf_release(&scratch);
}

/* Returns the number of new lines. */
static size_t import_all(char *history, const char *path, const struct importers *all,
                         const struct import_format *f)
{
    struct tally tally = {.own = !f || f == importers_named(all, "lines")};

    import_history(history, path, all, f, NULL, check_line, &tally);
    return tally.lines;
}

/* The scripts of the source tree, where the fuzz targets run. */
static const char *const names[] = {"claude-code", "codex", "llm", "chatgpt", "messages", "aichat"};

static struct importers *load(void)
{
    struct importers *all = importers_new();

    for (size_t i = 0; i < sizeof names / sizeof(char *); i++) {
        struct buf path = BUF_INIT(BUF_SMALL), text = BUF_INIT(BUF_SMALL);
        struct err e = ERR_INIT;

        buf_addf(&path, "importers/%s.lua", names[i]);
        demand(file_read(buf_c(&path), &text, &e) == 0);
        demand(importers_add(all, names[i], buf_c(&path), buf_str(&text), &e) == 0);
        buf_release(&path);
        buf_release(&text);
    }
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct importers *all;
    char *history = scratch_path("h"), *path = scratch_path("state");
    struct str text = {(const char *)data, size};

    if (!all)
        all = load();
    scratch_write(path, text);
    scratch_write(history, STR(""));
    (void)import_all(history, path, all, NULL);
    for (size_t i = 0; i <= sizeof names / sizeof(char *); i++) {
        const struct import_format *f = importers_named(all, i > 0 ? names[i - 1] : "lines");

        scratch_write(history, STR(""));
        (void)import_all(history, path, all, f);
        demand(import_all(history, path, all, f) == 0);
    }
    free(history);
    free(path);
    return 0;
}
