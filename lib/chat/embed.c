#include "chathist/chat/embed.h"

#include <errno.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/llm/embeddings.h"

#define TEXTS_MAX ((size_t)16 << 20)

int embed_run(struct chat_session *t)
{
    struct buf texts = BUF_INIT(TEXTS_MAX), vectors = BUF_INIT(EMBEDDINGS_MAX);
    struct ask ask = {.limits = t->limits.http};
    struct err e = ERR_INIT;

    if (file_read_all(STDIN_FILENO, &texts) < 0) {
        (void)err_sys(&e, errno, "cannot read standard input");
        die_err(&e);
    }
    if (server_load_key(&t->server, &e) < 0)
        die_err(&e);
    server_address(&t->server, &ask);
    if (embeddings_load(t->server.provider, &ask, buf_str(&texts), &vectors, &e) < 0)
        die_err(&e);
    out_raw(&t->events.out, buf_str(&vectors));
    buf_release(&texts);
    buf_release(&vectors);
    return 0;
}
