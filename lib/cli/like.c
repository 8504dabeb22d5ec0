#include "chathist/cli/like.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/cli/config.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/progress.h"

/* The most bytes that chat may print for a batch of texts. */
#define PRINTED_MAX ((size_t)256 << 20)

/* Starts chat with pipes. Returns 0, or -1 with *e set. */
static int start_chat(const struct like *l, pid_t *pid, int *to, int *from, struct err *e)
{
    struct spawn s = {.argv = l->argv.at, .only_streams = true};
    int in[2] = {-1, -1}, out[2] = {-1, -1}, failed = 0;

    sigemptyset(&s.reset);
    sigaddset(&s.reset, SIGPIPE);
    if (pipe_open(in) < 0 || pipe_open(out) < 0)
        failed = errno;
    s.fd[0] = in[0];
    s.fd[1] = out[1];
    s.fd[2] = SPAWN_OURS;
    if (failed == 0)
        failed = spawn(pid, &s);
    file_close(in[0]);
    file_close(out[1]);
    *to = in[1];
    *from = out[0];
    if (failed == 0)
        return 0;
    file_close(in[1]);
    file_close(out[0]);
    return err_sys(e, failed, "cannot run '%s'", l->argv.at[0]);
}

/* chat reads all texts before it prints anything, so this cannot wait for itself. chat reports its
 * errors on the standard error that it shares. */
static int make_vectors(void *arg, struct str texts, struct buf *out, struct err *e)
{
    struct like *l = arg;
    struct buf clean = BUF_INIT(SIZE_MAX);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int to = -1, from = -1, status = 0, rc;
    pid_t pid = 0;

    if (l->shows)
        progress_work(&(struct task){"embed", NULL, 0, 0});
    while (texts.n > 0) {
        (void)redact_json(l->redactor, str_cut(&texts, '\n'), &clean);
        buf_add_byte(&clean, '\n');
    }
    rc = start_chat(l, &pid, &to, &from, e);
    if (rc == 0) {
        sigemptyset(&ignore.sa_mask);
        (void)sigaction(SIGPIPE, &ignore, &before);
        (void)file_write_all(to, clean.data, clean.len); /* chat says why it does not read */
        close(to);
        (void)sigaction(SIGPIPE, &before, NULL);
        out->max = out->len + PRINTED_MAX;
        rc = file_read_all(from, out);
        if (rc < 0)
            (void)err_sys(e, errno, "cannot read vectors");
        close(from);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        if (rc == 0 && status != 0)
            rc = err_set(e, ERR_FAILURE, "the model of embed.model made no vectors");
    }
    buf_release(&clean);
    return rc;
}

void like_open(struct like *l, const struct choice *c)
{
    const char *model = c->config.value[SETTING_EMBED_MODEL];
    const char *base_url = c->config.value[SETTING_EMBED_BASE_URL];
    struct err e = ERR_INIT;
    char *program;

    *l = (struct like){.model = {.make = make_vectors, .arg = l},
                       .shows = !c->common.quiet && progress_possible()};
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
    l->model.name = hash64(str_of(model), 0);
    l->redactor = redactor_new(&e);
    if (!l->redactor)
        die_err(&e);
}

int like_vector(struct like *l, struct str text, struct vector *v, struct err *e)
{
    struct buf line = BUF_INIT(SIZE_MAX), made = BUF_INIT(SIZE_MAX);
    struct str rest;
    int rc;

    *v = (struct vector){0};
    json_add_string(&line, text);
    buf_add_byte(&line, '\n');
    rc = make_vectors(l, buf_str(&line), &made, e);
    rest = buf_str(&made);
    if (rc == 0)
        rc = vector_read(v, str_cut(&rest, '\n'), e);
    buf_release(&line);
    buf_release(&made);
    return rc;
}

void like_close(struct like *l)
{
    words_release(&l->argv);
    redactor_free(l->redactor);
}
