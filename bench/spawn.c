/*
 * spawn [-m] ROUNDS N COMMAND... [-- COMMAND...]...: times whole processes, from posix_spawn to the
 * end of waitpid, their output going to /dev/null. With -m exit status 1 is fine, too: no match.
 *
 * A round runs each command N times; the commands take turns from round to round, so that what else
 * the machine does falls on all of them alike. Prints for each command the median over the rounds
 * of the mean time of one run, in microseconds, and what it ran:
 *
 *     412.3 1840 build/release/hist-new --version
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct command {
    char **argv;    /* NULL after the last */
    double *rounds; /* microseconds of one run */
    long memory;    /* KiB, of the run that had most */
};

static void die(const char *problem, const char *subject, int error)
{
    fprintf(stderr, "spawn: %s '%s': %s\n", problem, subject, strerror(error));
    exit(2);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void run_once(struct command *command, const posix_spawn_file_actions_t *quiet, int most)
{
    char **argv = command->argv;
    struct rusage usage;
    pid_t pid;
    int status;
    int error = posix_spawnp(&pid, argv[0], quiet, NULL, argv, environ);

    if (error != 0)
        die("cannot run", argv[0], error);
    while (wait4(pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            die("cannot wait for", argv[0], errno);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > most) {
        fprintf(stderr, "spawn: '%s' failed with status %d\n", argv[0], status);
        exit(2);
    }
    if (usage.ru_maxrss > command->memory)
        command->memory = usage.ru_maxrss;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Splits words at "--" in place; returns how many commands there are. */
static size_t split(char **words, struct command *commands)
{
    size_t n = 0;
    bool start = true;

    for (; *words != NULL; words++) {
        if (strcmp(*words, "--") == 0) {
            *words = NULL;
            start = true;
        } else if (start) {
            commands[n++].argv = words;
            start = false;
        }
    }
    return n;
}

static void print(const struct command *command, size_t rounds)
{
    qsort(command->rounds, rounds, sizeof(*command->rounds), by_value);
    printf("%.1f %ld", command->rounds[rounds / 2], command->memory);
    for (char **word = command->argv; *word != NULL; word++)
        printf(" %s", *word);
    putchar('\n');
}

int main(int argc, char **argv)
{
    int most = argc > 1 && strcmp(argv[1], "-m") == 0;

    argc -= most;
    argv += most;

    long rounds = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
    long runs = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    posix_spawn_file_actions_t quiet;
    struct command *commands;
    size_t n;

    if (rounds < 1 || runs < 1) {
        fputs("usage: spawn [-m] ROUNDS N COMMAND... [-- COMMAND...]...\n", stderr);
        return 2;
    }
    commands = calloc((size_t)argc, sizeof(*commands));
    if (commands == NULL)
        die("cannot hold", "commands", ENOMEM);
    n = split(argv + 3, commands);
    for (size_t i = 0; i < n; i++) {
        commands[i].rounds = calloc((size_t)rounds, sizeof(double));
        if (commands[i].rounds == NULL)
            die("cannot hold", "rounds", ENOMEM);
    }
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

    for (size_t round = 0; round < (size_t)rounds; round++) {
        for (size_t i = 0; i < n; i++) {
            /* Each round starts with another command. */
            struct command *command = &commands[(i + round) % n];
            double start = now_us();

            for (long run = 0; run < runs; run++)
                run_once(command, &quiet, most);
            command->rounds[round] = (now_us() - start) / (double)runs;
        }
    }

    for (size_t i = 0; i < n; i++) {
        print(&commands[i], (size_t)rounds);
        free(commands[i].rounds);
    }
    free(commands);
    posix_spawn_file_actions_destroy(&quiet);
    return fflush(stdout) == 0 ? 0 : 2;
}
