/*
 * first_byte ROUNDS DIR NAME COMMAND... [-- NAME COMMAND...]...: times clients of a model server,
 * from posix_spawn to the first byte of the request. In the arguments and in the values of the
 * environment, @PORT@ stands for the port of a server on the loopback address, which answers with a
 * short stream of OpenAI's chat completions.
 *
 * A round runs each command once; the commands take turns at being the first. Each round also
 * appends a line to a file in DIR and times its fdatasync, as `fdatasync`. Prints for each of them
 * the median and the minimum in microseconds, and its name:
 *
 *     2145.3 1890.1 curl
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define WAIT_MS 20000
/* The file that is synced begins with this many bytes, so that it has blocks as a history has. */
#define LINE_BYTES 256

static const char response[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":null}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: [DONE]\n\n";

struct client {
    const char *name;
    char **argv;   /* NULL after the last; NULL: fdatasync */
    double *times; /* microseconds, of each round */
};

static void die(const char *problem, const char *subject)
{
    fprintf(stderr, "first_byte: %s '%s': %s\n", problem, subject, strerror(errno));
    exit(2);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- the server ---- */

static int listen_on_loopback(unsigned *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 ||
        listen(fd, 8) < 0 || getsockname(fd, (struct sockaddr *)&a, &size) < 0)
        die("cannot listen on", "127.0.0.1");
    *port = ntohs(a.sin_port);
    return fd;
}

static void wait_readable(int fd, const char *name)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, WAIT_MS) > 0)
        return;
    fprintf(stderr, "first_byte: nothing came from '%s'\n", name);
    exit(2);
}

/* Answers one request. Returns when its first byte was read. */
static double serve(int listener, const char *name)
{
    char request[65536];
    double first;
    int fd;

    wait_readable(listener, name);
    fd = accept(listener, NULL, NULL);
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        die("cannot accept", name);
    wait_readable(fd, name);
    first = now_us();
    /* The requests here are shorter than one read, and the client has sent all of it by the time it
     * closes. */
    if (read(fd, request, sizeof request) <= 0 ||
        write(fd, response, sizeof response - 1) != (ssize_t)sizeof response - 1)
        die("cannot serve", name);
    shutdown(fd, SHUT_WR);
    while (read(fd, request, sizeof request) > 0)
        ;
    close(fd);
    return first;
}

/* ---- the clients ---- */

/* Returns text with the port in place of each @PORT@. The caller owns it. */
static char *with_port(const char *text, unsigned port)
{
    static const char mark[] = "@PORT@";
    size_t size = strlen(text) + 1;
    char *out = malloc(size), *at;

    if (!out)
        die("cannot hold", text);
    memcpy(out, text, size);
    while ((at = strstr(out, mark)) != NULL) {
        char digits[8];
        size_t n = (size_t)snprintf(digits, sizeof digits, "%u", port);

        memcpy(at, digits, n);
        memmove(at + n, at + strlen(mark), strlen(at + strlen(mark)) + 1);
    }
    return out;
}

static double run_client(const struct client *c, int listener,
                         const posix_spawn_file_actions_t *quiet)
{
    double start = now_us(), first;
    pid_t pid;
    int status;

    errno = posix_spawnp(&pid, c->argv[0], quiet, NULL, c->argv, environ);
    if (errno)
        die("cannot run", c->argv[0]);
    first = serve(listener, c->name);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die("cannot wait for", c->name);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "first_byte: '%s' failed with status %d\n", c->name, status);
        exit(2);
    }
    return first - start;
}

/* Returns how long an appended line takes to be on disk. */
static double run_sync(int fd)
{
    char line[LINE_BYTES];
    double start = now_us();

    memset(line, 'x', sizeof line);
    if (write(fd, line, sizeof line) != (ssize_t)sizeof line || fdatasync(fd) < 0)
        die("cannot sync", "a file");
    return now_us() - start;
}

static int open_synced(const char *dir)
{
    size_t size = strlen(dir) + sizeof "/fdatasync";
    char *path = malloc(size);
    int fd;

    if (!path)
        die("cannot hold", dir);
    snprintf(path, size, "%s/fdatasync", dir);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die("cannot open", path);
    run_sync(fd); /* a new file costs more */
    free(path);
    return fd;
}

/* Splits words at "--" in place. Returns how many clients there are. */
static size_t split(char **words, struct client *clients)
{
    size_t n = 0;
    bool start = true;

    for (; *words != NULL; words++) {
        if (strcmp(*words, "--") == 0) {
            *words = NULL;
            start = true;
        } else if (start) {
            clients[n++] = (struct client){.name = words[0], .argv = words + 1};
            start = false;
        }
    }
    return n;
}

static void set_port(char **words, unsigned port)
{
    for (; *words; words++)
        if (strstr(*words, "@PORT@"))
            *words = with_port(*words, port);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
    long rounds = argc > 4 ? strtol(argv[1], NULL, 10) : 0;
    posix_spawn_file_actions_t quiet;
    struct client *clients;
    unsigned port;
    int listener, synced;
    size_t n;

    if (rounds < 1) {
        fputs("usage: first_byte ROUNDS DIR NAME COMMAND... [-- NAME COMMAND...]...\n", stderr);
        return 2;
    }
    listener = listen_on_loopback(&port);
    set_port(argv + 3, port);
    set_port(environ, port);
    synced = open_synced(argv[2]);
    clients = calloc((size_t)argc, sizeof *clients);
    if (!clients)
        die("cannot hold", "clients");
    n = split(argv + 3, clients);
    clients[n++].name = "fdatasync";
    for (size_t i = 0; i < n; i++) {
        clients[i].times = calloc((size_t)rounds, sizeof(double));
        if (!clients[i].times)
            die("cannot hold", "times");
    }
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

    /* The first round, which reads programs and libraries from the disk, does not count. */
    for (long round = -1; round < rounds; round++)
        for (size_t i = 0; i < n; i++) {
            struct client *c = &clients[(i + (size_t)(round + 1)) % n];
            double us = c->argv ? run_client(c, listener, &quiet) : run_sync(synced);

            if (round >= 0)
                c->times[round] = us;
        }

    for (size_t i = 0; i < n; i++) {
        qsort(clients[i].times, (size_t)rounds, sizeof(double), by_value);
        printf("%.1f %.1f %s\n", clients[i].times[rounds / 2], clients[i].times[0],
               clients[i].name);
        free(clients[i].times);
    }
    free(clients);
    return fflush(stdout) == 0 ? 0 : 2;
}
