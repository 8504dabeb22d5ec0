#include "chathist/base/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/mem.h"

/* A session is a process group, too. It is of POSIX.1-2024: where there is none yet, what reads
 * from the terminal is stopped. */
#ifdef POSIX_SPAWN_SETSID
#define APART POSIX_SPAWN_SETSID
#else
#define APART POSIX_SPAWN_SETPGROUP
#endif

extern char **environ;

/* Each of these gives 0, or an errno. */

static int set_streams(posix_spawn_file_actions_t *actions, const int fd[3])
{
    int failed = 0;

    for (int i = 0; !failed && i < 3; i++)
        if (fd[i] == SPAWN_NULL)
            failed = posix_spawn_file_actions_addopen(actions, i, "/dev/null",
                                                      i == 0 ? O_RDONLY : O_WRONLY, 0);
        else if (fd[i] != SPAWN_OURS)
            failed = posix_spawn_file_actions_adddup2(actions, fd[i], i);
    return failed;
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

/* Our working directory is not the child's, so the variables that name it are left out. The caller
 * frees the array; the strings stay the environment's. */
static char **env_elsewhere(char *const env[])
{
    char **kept = NULL;
    size_t count = 0, cap = 0;

    kept = mem_grow(kept, &cap, 1, sizeof *kept);
    for (; env && *env; env++) {
        if (strncmp(*env, "PWD=", 4) == 0 || strncmp(*env, "OLDPWD=", 7) == 0)
            continue;
        kept = mem_grow(kept, &cap, count + 2, sizeof *kept);
        kept[count++] = *env;
    }
    kept[count] = NULL;
    return kept;
}

static int start(pid_t *pid, const struct spawn *s, posix_spawn_file_actions_t *actions,
                 posix_spawnattr_t *attributes)
{
    char *const *env = s->env ? s->env : environ;
    char **elsewhere;
    int failed;

    if (!s->cwd)
        return posix_spawnp(pid, s->argv[0], actions, attributes, s->argv, env);
    failed = posix_spawn_file_actions_addchdir_np(actions, s->cwd);
    if (failed)
        return failed;
    elsewhere = env_elsewhere(env);
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
    failed = set_streams(&actions, s->fd);
    if (!failed)
        failed = set_attributes(&attributes, s);
    if (!failed)
        failed = start(pid, s, &actions, &attributes);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}
