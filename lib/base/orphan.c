#include "chathist/base/orphan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "chathist/base/buf.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"

/* How often it is checked whether killed processes have ended, and for how long, in milliseconds. */
#define LOOK_MS 5
#define ROUNDS 200

#ifdef PR_SET_CHILD_SUBREAPER

struct pids {
    pid_t *at;
    size_t count, cap;
};

/* Adds the numbers in a list between blanks. */
static void add_numbers(struct pids *p, struct str text)
{
    struct str word;

    while ((word = str_word(&text)).p) {
        intmax_t pid = strtoimax(word.p, NULL, 10);

        if (pid <= 0)
            continue;
        p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
        p->at[p->count++] = (pid_t)pid;
    }
}

/* Adds the children of one thread. Returns false if they cannot be read. */
static bool add_children(struct pids *p, const char *thread)
{
    struct buf file = BUF_INIT(BUF_SMALL), text = BUF_INIT(BUF_SMALL);
    bool ok = false;
    int fd;

    buf_addf(&file, "/proc/self/task/%s/children", thread);
    fd = open(buf_c(&file), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ok = io_read_all(fd, &text) == 0;
        close(fd);
        add_numbers(p, (struct str){buf_c(&text), text.len});
    } else {
        ok = errno == ENOENT; /* the thread has ended */
    }
    buf_release(&file);
    buf_release(&text);
    return ok;
}

/* The children of this process (proc_pid_task(5)); the caller frees p->at. Returns false if not all
 * of them can be read. */
static bool children(struct pids *p)
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

static bool is_known(const struct orphans *o, pid_t pid)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->known[i] == pid)
            return true;
    return false;
}

/* Returns how many children that are not known have not ended. Their numbers cannot be taken by other
 * processes: a child that ended keeps its number until it is waited for, here. */
static size_t kill_unknown(const struct orphans *o)
{
    struct pids now;
    size_t left = 0;

    children(&now);
    for (size_t i = 0; i < now.count; i++) {
        if (is_known(o, now.at[i]) || waitpid(now.at[i], NULL, WNOHANG) != 0)
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
    bool listed = children(&now);
    int was = 0;

    prctl(PR_GET_CHILD_SUBREAPER, &was);
    *o = (struct orphans){now.at, now.count, now.cap, listed, was != 0};
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}

void orphans_end(struct orphans *o)
{
    for (int i = 0; o->listed && i < ROUNDS && kill_unknown(o) > 0; i++)
        io_wait(-1, LOOK_MS);
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
