#include "chathist/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/pipe.h"
#include "chathist/base/spawn.h"

extern char **environ;

/* How often a child that was asked to go is looked after, in milliseconds. */
#define LOOK_MS 5

/* The most that is read at once. */
#define READ_MAX ((size_t)1 << 16)

/* ---- starting ---- */

/* The three pipes: [i][0] is read, [i][1] written. */
struct pipes {
    int fd[3][2];
};

static void close_pipes(struct pipes *p)
{
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++)
            child_close(&p->fd[i][j]);
}

/* The child's end of pipe i is the read end of the first, the write end of the others. */
static int *childs_end(struct pipes *p, size_t i)
{
    return &p->fd[i][i == 0 ? 0 : 1];
}

static int *our_end(struct pipes *p, size_t i)
{
    return &p->fd[i][i == 0 ? 1 : 0];
}

/* 0, or an errno. */
static int make_pipes(struct pipes *p)
{
    *p = (struct pipes){{{-1, -1}, {-1, -1}, {-1, -1}}};
    for (size_t i = 0; i < 3; i++) {
        if (pipe_open(p->fd[i]) < 0 || fcntl(*our_end(p, i), F_SETFL, O_NONBLOCK) < 0)
            return errno;
    }
    return 0;
}

int child_start(struct child *c, char *const argv[], char *const env[], const char *cwd,
                struct err *e)
{
    struct spawn s = {.argv = argv, .env = env, .cwd = cwd, .apart = true};
    struct pipes p;
    int failed = make_pipes(&p);

    *c = (struct child)CHILD_INIT;
    sigfillset(&s.reset);
    for (size_t i = 0; i < 3; i++)
        s.fd[i] = *childs_end(&p, i);
    if (!failed)
        failed = spawn(&c->pid, &s);
    if (failed) {
        close_pipes(&p);
        c->pid = 0;
        return err_sys(e, failed, "cannot run '%s'", argv[0]);
    }
    for (size_t i = 0; i < 3; i++)
        child_close(childs_end(&p, i));
    c->in = *our_end(&p, 0);
    c->out = *our_end(&p, 1);
    c->err = *our_end(&p, 2);
    return 0;
}

/* ---- talking to it ---- */

bool child_read(int *fd, struct buf *b)
{
    char *room = buf_room(b, READ_MAX);
    ssize_t n;

    do
        n = room ? read(*fd, room, READ_MAX) : 0;
    while (n < 0 && errno == EINTR);
    if (n > 0)
        buf_grew(b, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        child_close(fd);
    return n > 0;
}

size_t child_write(int *fd, struct str bytes)
{
    ssize_t n;

    do
        n = write(*fd, bytes.p, bytes.n);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        child_close(fd);
    return n > 0 ? (size_t)n : 0;
}

void child_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- ending ---- */

bool child_ended(struct child *c)
{
    siginfo_t info = {0};

    if (c->pid == 0)
        return true;
    /* It stays a zombie, so that its group's number is nobody else's until child_end. */
    if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno != EINTR)
        return true;
    if (info.si_pid == 0)
        return false;
    c->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    c->status = c->signal ? 128 + c->signal : info.si_status;
    return true;
}

/* One that says its last words shall not die of them. */
static void discard(int *fd)
{
    struct buf b = BUF_INIT(READ_MAX + 1);

    if (*fd >= 0)
        child_read(fd, &b);
    buf_release(&b);
}

/* Gives them so long to go. Have they gone? */
static bool go(struct child *const *all, size_t count, int64_t grace_ms, int hurry_fd)
{
    int64_t until = clock_ticks() + grace_ms, soon;

    for (;;) {
        bool gone = true;

        for (size_t i = 0; i < count; i++) {
            if (child_ended(all[i]))
                continue;
            gone = false;
            discard(&all[i]->out);
            discard(&all[i]->err);
        }
        if (gone || clock_ticks() >= until)
            return gone;
        if (io_wait(hurry_fd, LOOK_MS) <= 0)
            continue;
        hurry_fd = -1;
        soon = clock_ticks() + CHILD_HURRY_MS;
        until = soon < until ? soon : until;
    }
}

void child_term(struct child *c)
{
    if (!child_ended(c))
        kill(-c->pid, SIGTERM);
}

static void bury(struct child *c)
{
    siginfo_t info;

    child_close(&c->out);
    child_close(&c->err);
    if (c->pid == 0)
        return;
    kill(-c->pid, SIGKILL);
    while (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    child_ended(c);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    c->pid = 0;
}

void child_end_all(struct child *const *all, size_t count, int64_t grace_ms, int hurry_fd)
{
    for (size_t i = 0; i < count; i++)
        child_close(&all[i]->in);
    if (!go(all, count, grace_ms, hurry_fd)) {
        for (size_t i = 0; i < count; i++)
            child_term(all[i]);
        go(all, count, grace_ms, hurry_fd);
    }
    for (size_t i = 0; i < count; i++)
        bury(all[i]);
}

void child_end(struct child *c, int64_t grace_ms)
{
    child_end_all(&c, 1, grace_ms, -1);
}

/* ---- its environment ---- */

static bool is_named(struct str entry, const char *const names[])
{
    struct str name = str_cut(&entry, '=');

    for (; *names; names++)
        if (str_eq_c(name, *names))
            return true;
    return false;
}

char **child_env_without(const char *const names[], struct str secret)
{
    char **env = NULL;
    size_t count = 0, cap = 0;

    for (char **entry = environ; entry && *entry; entry++) {
        if (is_named(str_of(*entry), names) || (secret.n > 0 && str_find(str_of(*entry), secret)))
            continue;
        env = mem_grow(env, &cap, count + 2, sizeof *env);
        env[count++] = *entry;
    }
    env = mem_grow(env, &cap, count + 1, sizeof *env);
    env[count] = NULL;
    return env;
}
