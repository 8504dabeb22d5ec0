#include "chathist/llm/paused.h"

#include <string.h>

#include "llm/stream.h"

static bool is_paused(const struct answer *a)
{
    return a->finish_reason && strcmp(a->finish_reason, "pause_turn") == 0 && a->calls_count == 0;
}

/* Asks for the next part. */
static int ask_on(const struct provider *p, const struct ask *ask, struct answer *a, struct err *e)
{
    struct ask next = *ask;
    struct answer part;
    struct err own = ERR_INIT;
    int rc;

    answer_init(&part, a->sink);
    next.paused = buf_str(&a->replay.turn);
    rc = stream_ask(p, &next, &part, &own);
    if (answer_join(a, &part, rc == 0 ? &own : NULL) != 0)
        rc = -1;
    answer_release(&part);
    if (rc != 0 && a->text.len > 0 && own.kind != ERR_SIGNAL && own.kind != ERR_INCOMPLETE)
        err_set(e, ERR_INCOMPLETE, "answer is incomplete: %s", err_text(&own));
    else if (rc != 0)
        err_set(e, own.kind, "%s", err_text(&own));
    err_release(&own);
    return rc;
}

int paused_ask(const struct provider *p, const struct ask *ask, struct answer *a,
               unsigned max_rounds, unsigned *rounds, struct err *e)
{
    int rc = stream_ask(p, ask, a, e);

    while (rc == 0 && is_paused(a) && *rounds < max_rounds && replay_is_whole(&a->replay)) {
        ++*rounds;
        rc = ask_on(p, ask, a, e);
    }
    return rc;
}
