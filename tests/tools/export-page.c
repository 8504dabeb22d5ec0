/*
 * export-page - the history on standard input as the HTML page of hist-export, without its choice
 * of sessions: every line, in the order in which it came.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chathist/base/file.h"
#include "chathist/convert/export.h"
#include "chathist/history/message.h"

/* Writes what the format added. */
static void flush(struct export *x)
{
    fwrite(x->out.data, 1, x->out.len, stdout);
    buf_clear(&x->out);
}

int main(void)
{
    struct buf in = BUF_INIT((size_t)1 << 30);
    struct export x = {.out = BUF_INIT((size_t)1 << 30)};
    struct message m = MESSAGE_INIT;

    if (file_read_all(0, &in) != 0) {
        perror("export-page");
        return EXIT_FAILURE;
    }
    export_html.begin(&x);
    flush(&x);
    for (struct str rest = buf_str(&in); rest.p != NULL;) {
        if (message_parse(&m, str_cut(&rest, '\n')))
            export_html.message(&x, &m);
        flush(&x);
    }
    export_html.end(&x);
    flush(&x);

    message_release(&m);
    buf_release(&x.out);
    buf_release(&in);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
