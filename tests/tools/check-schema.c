/*
 * check-schema SCHEMA [FILE]: checks each line of a file, or of standard input, against a JSON
 * Schema, and prints `line N: MISTAKE` for each that is not valid. The caller checks the keywords
 * that llm/schema does not check. Exit status: 0 all lines are valid, 1 some are not or there are
 * no lines, 2 a file cannot be used.
 */
#include <stdio.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/llm/schema.h"

static int fail(const struct err *e, const char *file)
{
    fprintf(stderr, "check-schema: %s: %s\n", file, err_text(e));
    return 2;
}

/* Returns how many lines are wrong; 1 if there are no lines. */
static size_t check_lines(struct schema *s, struct str lines)
{
    size_t number = 0, wrong = 0;

    for (struct str rest = lines; rest.n > 0;) {
        struct str line = str_cut(&rest, '\n');
        struct err e = ERR_INIT;

        number++;
        if (schema_check(s, line, &e) < 0) {
            printf("line %zu: %s\n", number, err_text(&e));
            wrong++;
        }
        err_release(&e);
    }
    if (number == 0)
        printf("no lines\n");
    return number ? wrong : 1;
}

static int load(const char *file, struct buf *text, struct err *e)
{
    if (file)
        return file_read(file, text, e);
    return file_read_all(STDIN_FILENO, text) < 0 ? err_set(e, ERR_FAILURE, "cannot be read") : 0;
}

int main(int argc, char **argv)
{
    struct buf text = BUF_INIT(BUF_LINE), lines = BUF_INIT(16 * BUF_LINE);
    struct err e = ERR_INIT;
    struct schema *s = NULL;
    int status = 2;

    if (argc < 2 || argc > 3)
        fprintf(stderr, "usage: check-schema SCHEMA [FILE]\n");
    else if (load(argv[1], &text, &e) < 0 || !(s = schema_new(buf_str(&text), &e)))
        status = fail(&e, argv[1]);
    else if (load(argv[2], &lines, &e) < 0)
        status = fail(&e, argv[2] ? argv[2] : "standard input");
    else
        status = check_lines(s, buf_str(&lines)) > 0;
    schema_free(s);
    buf_release(&text);
    buf_release(&lines);
    err_release(&e);
    return status;
}
