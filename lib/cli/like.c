#include "chathist/cli/like.h"

#include <stdlib.h>

#include "chathist/base/checksum.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/cli/config.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/signals.h"

/* The most bytes that chat may print for a batch of texts. */
#define PRINTED_MAX ((size_t)256 << 20)

/* chat reports its errors on the standard error that it shares. */
static int run_chat(void *arg, struct str texts, struct buf *out, struct err *e)
{
    struct like *l = arg;
    struct buf clean = BUF_INIT(SIZE_MAX);
    int status;

    while (texts.n > 0) {
        (void)redact_json(l->redactor, str_cut(&texts, '\n'), &clean);
        buf_add_byte(&clean, '\n');
    }
    out->max = out->len + PRINTED_MAX;
    status = process_read(l->argv.at, NULL, buf_str(&clean), out, l->cancel_fd, e);
    buf_release(&clean);
    if (status < 0 && e->kind == ERR_SIGNAL) {
        progress_end();
        die_signal(interrupt_signal());
    }
    return status <= 0 ? status
                       : err_set(e, ERR_FAILURE, "the model of embed.model made no vectors");
}

int like_open(struct like *l, const struct choice *c, struct str text, struct vector *v,
              struct err *e)
{
    const char *model = c->config.value[SETTING_EMBED_MODEL];
    const char *base_url = c->config.value[SETTING_EMBED_BASE_URL];
    bool shows = !c->common.quiet && progress_possible();
    struct buf made = BUF_INIT(SIZE_MAX);
    struct str rest;
    char *program;
    int rc;

    *l = (struct like){.line = BUF_INIT(SIZE_MAX)};
    *v = (struct vector){0};
    if (!model)
        die_usage("--like needs a model that makes vectors of texts: set embed.model in the "
                  "configuration, for example 'embed.model = ollama:nomic-embed-text'");
    program = path_beside(c->common.self, PROGRAM_PREFIX "chat");
    words_add(&l->argv, str_of(program));
    words_add(&l->argv, STR("--embed"));
    words_add_option(&l->argv, "--model=", str_of(model));
    if (base_url)
        words_add_option(&l->argv, "--base-url=", str_of(base_url));
    free(program);
    l->redactor = redactor_new(e);
    l->cancel_fd = l->redactor ? interrupt_begin(e) : -1;
    if (l->cancel_fd < 0)
        die_err(e);
    if (shows)
        progress_wait(&(struct task){"embed", NULL, 0, 0});
    json_add_string(&l->line, text);
    buf_add_byte(&l->line, '\n');
    rc = run_chat(l, buf_str(&l->line), &made, e);
    rest = buf_str(&made);
    if (rc == 0)
        rc = vector_read(v, str_cut(&rest, '\n'), e);
    l->model = (struct vectors_model){
        hash64(str_of(model), 0),    v->dimensions, buf_str(&l->line), run_chat, l,
        shows ? progress_wait : NULL};
    buf_release(&made);
    return rc;
}

void like_close(struct like *l)
{
    progress_end();
    if (interrupt_signal())
        die_signal(interrupt_signal());
    interrupt_end();
    words_release(&l->argv);
    redactor_free(l->redactor);
    buf_release(&l->line);
}
