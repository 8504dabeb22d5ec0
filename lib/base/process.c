#include "chathist/base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"

/* How often it is checked whether a process has ended, in milliseconds. */
#define LOOK_MS 5
/* The most bytes that one read returns. */
#define READ_MAX ((size_t)1 << 16)

extern char **environ;

/* ---- command lines ---- */

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Reads the character after a backslash. Returns false at the end of the text. */
static bool read_escaped(struct str *rest, bool quoted, struct buf *word)
{
    char c;

    if (rest->n == 0)
        return false;
    c = rest->p[0];
    if (quoted && !strchr("\"\\$`\n", c))
        buf_add_byte(word, '\\');
    if (c != '\n')
        buf_add_byte(word, c);
    *rest = str_skip(*rest, 1);
    return true;
}

/* Reads the text after an opening quote. Returns false if the closing quote is missing. */
static bool read_quoted(struct str *rest, char quote, struct buf *word)
{
    while (rest->n > 0) {
        char c = rest->p[0];

        *rest = str_skip(*rest, 1);
        if (c == quote)
            return true;
        if (c != '\\' || quote == '\'')
            buf_add_byte(word, c);
        else if (!read_escaped(rest, true, word))
            return false;
    }
    return false;
}

/* Adds the first word of the text, which begins with no blank, to w. */
static int read_word(struct words *w, struct str *rest, struct err *e)
{
    struct buf word = BUF_INIT(BUF_SMALL);
    const char *wrong = NULL;

    while (!wrong && rest->n > 0 && !is_separator(rest->p[0])) {
        char c = rest->p[0];

        *rest = str_skip(*rest, 1);
        if (c == '\\' && !read_escaped(rest, false, &word))
            wrong = "a backslash ends it";
        else if ((c == '\'' || c == '"') && !read_quoted(rest, c, &word))
            wrong = "a quote is not closed";
        else if (c != '\\' && c != '\'' && c != '"')
            buf_add_byte(&word, c);
    }
    if (!wrong && word.overflow)
        wrong = "a word is too long";
    if (!wrong)
        words_add(w, buf_str(&word));
    buf_release(&word);
    return wrong ? err_set(e, ERR_USAGE, "%s", wrong) : 0;
}

static void skip_blanks(struct str *rest)
{
    while (rest->n > 0 && (is_separator(rest->p[0]) || str_starts(*rest, STR("\\\n"))))
        *rest = str_skip(*rest, is_separator(rest->p[0]) ? 1 : 2);
}

int words_split(struct words *w, struct str text, struct err *e)
{
    *w = (struct words){0};
    if (text.n > 0 && memchr(text.p, '\0', text.n))
        return err_set(e, ERR_USAGE, "it holds a NUL byte");
    skip_blanks(&text);
    while (text.n > 0) {
        if (read_word(w, &text, e) < 0)
            return -1;
        skip_blanks(&text);
    }
    return w->count > 0 ? 0 : err_set(e, ERR_USAGE, "it is empty");
}

void words_quote(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:@_";

    if (*word && word[strspn(word, plain)] == '\0') {
        buf_add_c(out, word);
        return;
    }
    buf_add_byte(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            buf_add_c(out, "'\\''");
        else
            buf_add_byte(out, *word);
    }
    buf_add_byte(out, '\'');
}

void words_add(struct words *w, struct str word)
{
    w->at = mem_grow(w->at, &w->cap, w->count + 2, sizeof *w->at);
    w->at[w->count++] = mem_copy(word.p, word.n);
    w->at[w->count] = NULL;
}

void words_add_option(struct words *w, const char *option, struct str value)
{
    struct buf word = BUF_INIT(SIZE_MAX);

    buf_add_c(&word, option);
    buf_add_str(&word, value);
    words_add(w, buf_str(&word));
    buf_release(&word);
}

void words_release(struct words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->at[i]);
    free(w->at);
    *w = (struct words){0};
}

/* ---- pipes ---- */

/* pipe2 is in POSIX.1-2024. Without it, a program that another thread starts at the same moment
 * inherits the pipe. */
#ifdef __linux__
static int make_pipe(int ends[2], int flags)
{
    return pipe2(ends, flags);
}
#else
static int make_pipe(int ends[2], int flags)
{
    int reason;

    if (pipe(ends) < 0)
        return -1;
    for (size_t i = 0; i < 2; i++) {
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) < 0 ||
            (flags & O_NONBLOCK && fcntl(ends[i], F_SETFL, O_NONBLOCK) < 0)) {
            reason = errno;
            close(ends[0]);
            close(ends[1]);
            errno = reason;
            return -1;
        }
    }
    return 0;
}
#endif

static int open_pipe(int ends[2], int flags)
{
    int result = make_pipe(ends, flags);

    if (result < 0)
        ends[0] = ends[1] = -1;
    return result;
}

int pipe_open(int ends[2])
{
    return open_pipe(ends, O_CLOEXEC);
}

int pipe_open_wake(int ends[2])
{
    return open_pipe(ends, O_CLOEXEC | O_NONBLOCK);
}

/* ---- environments ---- */

static bool is_among(struct str entry, const char *const names[])
{
    struct str name = str_cut(&entry, '=');

    for (; *names; names++)
        if (str_eq_c(name, *names))
            return true;
    return false;
}

/* Like child_env_without, for any environment. */
static char **env_without(char *const env[], const char *const names[], struct str secret)
{
    char **kept = NULL;
    size_t count = 0, cap = 0;

    for (; env && *env; env++) {
        if (is_among(str_of(*env), names) || (secret.n > 0 && str_find(str_of(*env), secret)))
            continue;
        kept = mem_grow(kept, &cap, count + 2, sizeof *kept);
        kept[count++] = *env;
    }
    kept = mem_grow(kept, &cap, count + 1, sizeof *kept);
    kept[count] = NULL;
    return kept;
}

char **child_env_without(const char *const names[], struct str secret)
{
    return env_without(environ, names, secret);
}

void process_hide(void)
{
#ifdef PR_SET_DUMPABLE
    prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
#endif
}

/* ---- starting programs; these functions return 0 or an errno ---- */

/* POSIX_SPAWN_SETSID is in POSIX.1-2024. Without it, a program that reads from the terminal is
 * stopped. */
#ifdef POSIX_SPAWN_SETSID
#define APART POSIX_SPAWN_SETSID
#else
#define APART POSIX_SPAWN_SETPGROUP
#endif

/* Closes the descriptors that a library made without close-on-exec, as some versions of libcurl do,
 * and those of the parent. */
#if defined __GLIBC__ && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
static int close_others(posix_spawn_file_actions_t *actions)
{
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
}
#else
/* Only descriptors below this are looked for, because the limit of a process can be a million. */
#define OTHERS_MAX 4096

static int close_others(posix_spawn_file_actions_t *actions)
{
    long limit = sysconf(_SC_OPEN_MAX);
    int failed = 0;

    if (limit < 0 || limit > OTHERS_MAX)
        limit = OTHERS_MAX;
    for (int fd = 3; !failed && fd < limit; fd++)
        if (fcntl(fd, F_GETFD) == 0)
            failed = posix_spawn_file_actions_addclose(actions, fd);
    return failed;
}
#endif

static int set_descriptors(posix_spawn_file_actions_t *actions, const struct spawn *s)
{
    int failed = 0;

    for (int i = 0; !failed && i < 3; i++)
        if (s->fd[i] == SPAWN_NULL)
            failed = posix_spawn_file_actions_addopen(actions, i, "/dev/null",
                                                      i == 0 ? O_RDONLY : O_WRONLY, 0);
        else if (s->fd[i] != SPAWN_OURS)
            failed = posix_spawn_file_actions_adddup2(actions, s->fd[i], i);
    return failed || !s->only_streams ? failed : close_others(actions);
}

static int set_attributes(posix_spawnattr_t *attributes, const struct spawn *s)
{
    short flags = POSIX_SPAWN_SETSIGDEF;
    sigset_t none;
    int failed = posix_spawnattr_setsigdefault(attributes, &s->reset);

    if (!failed && s->apart) {
        flags |= POSIX_SPAWN_SETSIGMASK | APART;
        sigemptyset(&none);
        failed = posix_spawnattr_setsigmask(attributes, &none);
        if (!failed)
            failed = posix_spawnattr_setpgroup(attributes, 0);
    }
    return failed ? failed : posix_spawnattr_setflags(attributes, flags);
}

static int spawn_with(pid_t *pid, const struct spawn *s, posix_spawn_file_actions_t *actions,
                      posix_spawnattr_t *attributes)
{
    static const char *const directories[] = {"PWD", "OLDPWD", NULL};
    char *const *env = s->env ? s->env : environ;
    char **elsewhere;
    int failed;

    if (!s->cwd)
        return posix_spawnp(pid, s->argv[0], actions, attributes, s->argv, env);
    failed = posix_spawn_file_actions_addchdir_np(actions, s->cwd);
    if (failed)
        return failed;
    elsewhere = env_without(env, directories, STR_NONE);
    failed = posix_spawnp(pid, s->argv[0], actions, attributes, s->argv, elsewhere);
    free(elsewhere);
    return failed;
}

int spawn(pid_t *pid, const struct spawn *s)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);

    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    failed = set_descriptors(&actions, s);
    if (!failed)
        failed = set_attributes(&attributes, s);
    if (!failed)
        failed = spawn_with(pid, s, &actions, &attributes);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* ---- waiting ---- */

/* Returns whether a child has ended. Fills *info if it has, and leaves it a zombie, so that its
 * number and that of its group cannot be taken by others until it is reaped. */
static bool has_ended(pid_t pid, siginfo_t *info)
{
    *info = (siginfo_t){0};
    if (waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return errno != EINTR;
    return info->si_pid != 0;
}

/* How long a program may take to end after cancel_fd became readable, then again after SIGTERM; in
 * milliseconds. */
#define GRACE_MS 50

static bool ends_in_grace(pid_t pid)
{
    int64_t until = time_ticks() + GRACE_MS;
    siginfo_t info;

    while (!has_ended(pid, &info)) {
        if (time_ticks() >= until)
            return false;
        file_wait(-1, LOOK_MS);
    }
    return true;
}

/* Waits for a child and reaps it. Returns its exit status, 128 + N for signal N, or -1. */
static int reap(pid_t pid, const char *name, struct err *e)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, errno, "cannot wait for '%s'", name);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- programs that share the terminal ---- */

static const int terminal_signals[] = {SIGINT, SIGQUIT};
#define SIGNALS (sizeof terminal_signals / sizeof *terminal_signals)

/* Our programs ignore these signals for themselves only. */
static void reset_ours(sigset_t *reset)
{
    sigemptyset(reset);
    sigaddset(reset, SIGPIPE);
    sigaddset(reset, SIGXFSZ);
}

int process_run(char *const argv[], int out, struct err *e)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_OURS, out < 0 ? SPAWN_OURS : out, SPAWN_OURS}};
    struct sigaction before[SIGNALS], ignore = {.sa_handler = SIG_IGN};
    pid_t pid;
    int failed, result;

    /* Signals that this process catches or does not ignore get the default action in the program;
     * what was ignored already stays ignored there. */
    sigemptyset(&ignore.sa_mask);
    reset_ours(&s.reset);
    for (size_t i = 0; i < SIGNALS; i++) {
        sigaction(terminal_signals[i], &ignore, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaddset(&s.reset, terminal_signals[i]);
    }
    failed = spawn(&pid, &s);
    if (failed)
        result = err_sys(e, failed, "cannot run '%s'", argv[0]);
    else
        result = reap(pid, argv[0], e);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(terminal_signals[i], &before[i], NULL);
    return result;
}

/* How long processes that a program left may go on to write, in milliseconds. */
#define DRAIN_MS 50

/* A program whose output is read. */
struct reader {
    pid_t pid;
    const char *name;
    int from;      /* the end of the pipe that is read */
    int to;        /* the pipe to its standard input, or -1 */
    struct str in; /* what it has not been given yet */
    bool apart;    /* it leads a process group */
};

/* Without a terminal the program can have a group, and end with everything that it started. A
 * separate group on a terminal would be in the background, and stopped when it asks something. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    file_close(fd);
    return fd >= 0;
}

/* One read: returns 1, 0 at the end, or -1 with errno set. Bytes beyond the maximum of
 * `printed` are dropped and wiped; they may be as secret as the rest. */
static int read_more(int from, struct buf *printed, size_t *dropped)
{
    struct buf rest = BUF_INIT(READ_MAX);
    int came;

    if (printed->len < printed->max)
        return file_read_some(from, printed);
    came = file_read_some(from, &rest);
    *dropped += rest.len;
    mem_wipe(rest.data, rest.cap);
    buf_release(&rest);
    if (*dropped <= PROCESS_REST_MAX)
        return came;
    errno = EFBIG;
    return -1;
}

/* Writes as much of the input as the pipe takes. A program that does not want all of it says why by
 * its exit status. */
static void write_more(struct reader *r)
{
    ssize_t n = file_write_now(r->to, r->in.p, r->in.n);

    if (n > 0)
        r->in = str_skip(r->in, (size_t)n);
    if (r->in.n == 0 || (n < 0 && errno != EAGAIN))
        child_close(&r->to);
}

/* Reads until the program has ended: what it started may keep the pipe open, but everything that it
 * wrote itself is in the pipe then. Returns 0, ECANCELED, or another errno. */
static int read_until_end(struct reader *r, int cancel_fd, struct buf *printed)
{
    struct pollfd fds[] = {{.fd = r->from, .events = POLLIN},
                           {.fd = cancel_fd, .events = POLLIN},
                           {.events = POLLOUT}};
    int64_t until = INT64_MAX;
    size_t dropped = 0;
    siginfo_t info;

    for (;;) {
        int came;

        if (until == INT64_MAX && has_ended(r->pid, &info))
            until = time_ticks() + DRAIN_MS;
        fds[2].fd = r->to;
        if (poll(fds, 3, LOOK_MS) > 0) {
            if (fds[1].revents)
                return ECANCELED;
            if (fds[2].revents)
                write_more(r);
            if (!fds[0].revents)
                continue;
            came = read_more(r->from, printed, &dropped);
            if (came < 0)
                return errno;
            if (came == 0)
                fds[0].fd = -1;
        }
        if (until < INT64_MAX && (fds[0].fd < 0 || time_ticks() >= until))
            return 0;
    }
}

static int read_and_reap(struct reader *r, int cancel_fd, struct buf *printed, struct err *e)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int unread, result;

    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, &before);
    unread = read_until_end(r, cancel_fd, printed);
    sigaction(SIGPIPE, &before, NULL);
    /* If the program goes on to print, SIGPIPE ends it. */
    close(r->from);
    child_close(&r->to);
    /* It may have got the signal as well, and be restoring the terminal. */
    if (unread && !ends_in_grace(r->pid)) {
        pid_t whom = r->apart ? -r->pid : r->pid;

        kill(whom, SIGTERM);
        if (!ends_in_grace(r->pid) || r->apart)
            kill(whom, SIGKILL);
    }
    result = reap(r->pid, r->name, e);
    if (unread == ECANCELED)
        return err_set(e, ERR_SIGNAL, "interrupted");
    if (result >= 0 && unread)
        return err_sys(e, unread, "cannot read what '%s' prints", r->name);
    return result;
}

int process_read(char *const argv[], const char *cwd, struct str in, struct buf *out, int cancel_fd,
                 struct err *e)
{
    struct spawn s = {.argv = argv, .cwd = cwd, .apart = !has_terminal()};
    struct reader r = {.name = argv[0], .to = -1, .in = in, .apart = s.apart};
    int ends[2], to[2] = {-1, -1}, failed;

    if (pipe_open(ends) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    failed = in.p && pipe_open(to) < 0 ? errno : 0;
    s.fd[0] = in.p ? to[0] : SPAWN_NULL;
    s.fd[1] = ends[1];
    s.fd[2] = SPAWN_OURS;
    reset_ours(&s.reset);
    if (!failed)
        failed = spawn(&r.pid, &s);
    /* From now on only the program has the other ends. */
    close(ends[1]);
    file_close(to[0]);
    r.from = ends[0];
    r.to = to[1];
    if (!failed)
        return read_and_reap(&r, cancel_fd, out, e);
    close(r.from);
    file_close(r.to);
    return err_sys(e, failed, "cannot run '%s'", argv[0]);
}

/* ---- programs beside this process ---- */

/* The three pipes of a child: [i][0] is for reading, [i][1] for writing. The child reads from pipe
 * 0 and writes to the others. */
struct pipes {
    int fd[3][2];
};

static int *end_of_child(struct pipes *p, size_t i)
{
    return &p->fd[i][i == 0 ? 0 : 1];
}

static int *end_of_ours(struct pipes *p, size_t i)
{
    return &p->fd[i][i == 0 ? 1 : 0];
}

int child_start(struct child *c, char *const argv[], char *const env[], const char *cwd,
                struct err *e)
{
    struct spawn s = {.argv = argv, .env = env, .cwd = cwd, .apart = true, .only_streams = true};
    struct pipes p = {{{-1, -1}, {-1, -1}, {-1, -1}}};
    int failed = 0;

    for (size_t i = 0; i < 3 && !failed; i++)
        if (pipe_open(p.fd[i]) < 0 || fcntl(*end_of_ours(&p, i), F_SETFL, O_NONBLOCK) < 0)
            failed = errno;
    *c = (struct child)CHILD_INIT;
    sigfillset(&s.reset);
    for (size_t i = 0; i < 3; i++)
        s.fd[i] = *end_of_child(&p, i);
    if (!failed)
        failed = spawn(&c->pid, &s);
    for (size_t i = 0; i < 3; i++)
        child_close(end_of_child(&p, i));
    if (failed) {
        for (size_t i = 0; i < 3; i++)
            child_close(end_of_ours(&p, i));
        c->pid = 0;
        return err_sys(e, failed, "cannot run '%s'", argv[0]);
    }
    c->in = *end_of_ours(&p, 0);
    c->out = *end_of_ours(&p, 1);
    c->err = *end_of_ours(&p, 2);
    return 0;
}

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

bool child_ended(struct child *c)
{
    siginfo_t info;

    if (c->pid == 0)
        return true;
    if (!has_ended(c->pid, &info))
        return false;
    if (info.si_pid != 0) {
        c->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
        c->status = c->signal ? 128 + c->signal : info.si_status;
    }
    return true;
}

/* Reads and drops output, so that a child that is ending neither blocks nor gets SIGPIPE. */
static void drop_output(int *fd)
{
    struct buf b = BUF_INIT(READ_MAX + 1);

    if (*fd >= 0)
        child_read(fd, &b);
    buf_release(&b);
}

/* Waits until all children have ended. Returns false if the time is up first. */
static bool wait_for_all(struct child *const *all, size_t count, int64_t grace_ms, int hurry_fd)
{
    int64_t until = time_ticks() + grace_ms, soon;

    for (;;) {
        bool ended = true;

        for (size_t i = 0; i < count; i++) {
            if (child_ended(all[i]))
                continue;
            ended = false;
            drop_output(&all[i]->out);
            drop_output(&all[i]->err);
        }
        if (ended || time_ticks() >= until)
            return ended;
        if (file_wait(hurry_fd, LOOK_MS) <= 0)
            continue;
        hurry_fd = -1;
        soon = time_ticks() + CHILD_HURRY_MS;
        until = soon < until ? soon : until;
    }
}

void child_term(struct child *c)
{
    if (!child_ended(c))
        kill(-c->pid, SIGTERM);
}

static void kill_and_reap(struct child *c)
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
    if (!wait_for_all(all, count, grace_ms, hurry_fd)) {
        for (size_t i = 0; i < count; i++)
            child_term(all[i]);
        wait_for_all(all, count, grace_ms, hurry_fd);
    }
    for (size_t i = 0; i < count; i++)
        kill_and_reap(all[i]);
}

void child_end(struct child *c, int64_t grace_ms)
{
    child_end_all(&c, 1, grace_ms, -1);
}

/* ---- processes that they leave running ---- */

#ifdef PR_SET_CHILD_SUBREAPER

/* How many times orphans_end looks for processes that are not dead yet, LOOK_MS apart. */
#define ORPHAN_ROUNDS 200

struct pids {
    pid_t *at;
    size_t count, cap;
};

/* Adds the children of one thread. Returns false if they cannot be read. */
static bool add_children(struct pids *p, const char *thread)
{
    struct buf file = BUF_INIT(BUF_SMALL), text = BUF_INIT(BUF_SMALL);
    struct str rest, word;
    bool ok = false;
    int fd;

    buf_addf(&file, "/proc/self/task/%s/children", thread);
    fd = open(buf_c(&file), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ok = file_read_all(fd, &text) == 0;
        close(fd);
        rest = (struct str){buf_c(&text), text.len};
        while ((word = str_word(&rest)).p) {
            intmax_t pid = strtoimax(word.p, NULL, 10);

            if (pid <= 0)
                continue;
            p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
            p->at[p->count++] = (pid_t)pid;
        }
    } else {
        ok = errno == ENOENT; /* the thread has ended */
    }
    buf_release(&file);
    buf_release(&text);
    return ok;
}

/* The children of this process (proc_pid_task(5)); the caller frees p->at. Returns false if not all
 * of them can be read. */
static bool list_children(struct pids *p)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    bool ok = tasks != NULL;

    *p = (struct pids){0};
    while (tasks && (task = readdir(tasks)) != NULL)
        if (task->d_name[0] != '.')
            ok = add_children(p, task->d_name) && ok;
    if (tasks)
        closedir(tasks);
    return ok;
}

/* Returns how many children that are not known have not ended. Their numbers cannot be taken by
 * other processes: a child that ended keeps its number until it is waited for, here. */
static size_t kill_unknown(const struct orphans *o)
{
    struct pids now;
    size_t left = 0;

    list_children(&now);
    for (size_t i = 0; i < now.count; i++) {
        size_t k = 0;

        while (k < o->count && o->known[k] != now.at[i])
            k++;
        if (k < o->count || waitpid(now.at[i], NULL, WNOHANG) != 0)
            continue;
        kill(now.at[i], SIGKILL);
        left++;
    }
    free(now.at);
    return left;
}

void orphans_begin(struct orphans *o)
{
    struct pids now;
    bool listed = list_children(&now);
    int was = 0;

    prctl(PR_GET_CHILD_SUBREAPER, &was);
    *o = (struct orphans){now.at, now.count, now.cap, listed, was != 0};
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}

void orphans_end(struct orphans *o)
{
    for (int i = 0; o->listed && i < ORPHAN_ROUNDS && kill_unknown(o) > 0; i++)
        file_wait(-1, LOOK_MS);
    prctl(PR_SET_CHILD_SUBREAPER, o->was_reaper ? 1L : 0L, 0L, 0L, 0L);
    free(o->known);
    *o = (struct orphans){0};
}

#else

void orphans_begin(struct orphans *o)
{
    *o = (struct orphans){0};
}

void orphans_end(struct orphans *o)
{
    (void)o;
}

#endif
