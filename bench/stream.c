/*
 * stream: a model server that measures its clients. They find its base URL in $OPENAI_BASE_URL, or
 * in the place of a word URL, and its port in that of a word PORT.
 *
 *   stream latency ROUNDS TOKENS COMMAND... [-- COMMAND...]...
 *       sends an answer token by token, each one when the last has come out of the client's
 *       standard output, and a pause: the time from the one to the other. The commands take turns
 *       from round to round. Prints for each the median over the rounds of the median over a run's
 *       tokens, in microseconds.
 *   stream flood TOKENS COMMAND...
 *       sends an answer of that many tokens as fast as it is taken. Prints the bytes of its text,
 *       the client's processor time in microseconds, and its peak memory in KiB.
 *   stream turn ROUNDS NOTHING FILE COMMAND... [-- COMMAND...]...
 *       a short answer in each round, to each command in turn, and beside it, each time, a run of
 *       the program NOTHING and two fdatasync of lines that are appended to FILE (`-`: none).
 *       Prints medians over the rounds in microseconds: for each command from its start to the
 *       first byte of its request, how many times as long as NOTHING that is less an fdatasync,
 *       from the last byte of the answer to its exit, that less an fdatasync, and what NOTHING and
 *       an fdatasync take.
 *
 * A client that fails, or is silent for ten seconds, ends it with status 2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define PATIENCE_MS 10000
/* Between two tokens: the client is back at its poll. */
#define PAUSE_US 300
#define FIRST 20 /* tokens that are sent before it counts */

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
static const char event_format[] =
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1719500000,"
    "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},"
    "\"finish_reason\":null}]}\n\n";
static const char last_events[] =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: [DONE]\n\n";

struct client {
    pid_t pid;
    int out;    /* its standard output; -1: not wanted */
    int socket; /* its connection */
    /* When it was started, sent the first byte, was sent the last one, had ended; microseconds */
    double started, asked, answered, ended;
};

struct command {
    char **argv;
    double *rounds; /* microseconds */
};

static void die(const char *what)
{
    fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
    exit(2);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0)
            die("cannot send");
        p += done;
        n -= (size_t)done;
    }
}

static void send_chunk(int fd, const char *p, size_t n)
{
    char bytes[1024];
    int size = snprintf(bytes, sizeof bytes, "%zx\r\n%s\r\n", n, p);

    send_all(fd, bytes, (size_t)size);
}

static void wait_for(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    errno = ETIMEDOUT;
    if (poll(&p, 1, PATIENCE_MS) <= 0)
        die("a client is silent");
}

/* ---- clients ---- */

static int listen_on_loopback(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&at, n) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        die("cannot listen");
    *port = ntohs(at.sin_port);
    return fd;
}

/* Reads a request whole; the body is as long as its head says. */
static void read_request(int fd)
{
    static char bytes[1 << 20];
    size_t have = 0;

    for (;;) {
        wait_for(fd);

        ssize_t n = read(fd, bytes + have, sizeof bytes - 1 - have);

        if (n <= 0)
            die("no request");
        have += (size_t)n;
        bytes[have] = '\0';

        const char *end = strstr(bytes, "\r\n\r\n");
        const char *length = strstr(bytes, "Content-Length: ");

        if (end && have >= (size_t)(end + 4 - bytes) +
                               (length ? (size_t)strtoul(length + 16, NULL, 10) : 0))
            return;
    }
}

static void start(struct client *c, char **argv, int listener, bool listening)
{
    posix_spawn_file_actions_t files;
    int out[2], on = 1;

    if (pipe(out) != 0)
        die("cannot make a pipe");
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    fcntl(out[1], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (listening)
        posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    else
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    c->started = now_us();
    errno = posix_spawnp(&c->pid, argv[0], &files, NULL, argv, environ);
    if (errno != 0)
        die(argv[0]);
    posix_spawn_file_actions_destroy(&files);
    close(out[1]);
    c->out = out[0];
    wait_for(listener);
    c->socket = accept(listener, NULL, NULL);
    fcntl(c->socket, F_SETFD, FD_CLOEXEC);
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    wait_for(c->socket);
    c->asked = now_us();
    read_request(c->socket);
    send_all(c->socket, head, sizeof head - 1);
}

static void stop(struct client *c, struct rusage *used)
{
    char bytes[4096];
    int status;

    send_chunk(c->socket, last_events, sizeof last_events - 1);
    send_all(c->socket, "0\r\n\r\n", 5);
    c->answered = now_us();
    close(c->socket);
    while (read(c->out, bytes, sizeof bytes) > 0)
        continue;
    close(c->out);
    while (wait4(c->pid, &status, 0, used) < 0)
        if (errno != EINTR)
            die("cannot wait");
    c->ended = now_us();
    if (status != 0) {
        fprintf(stderr, "stream: a client failed with status %d\n", status);
        exit(2);
    }
}

/* ---- one token after the other ---- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Waits until the token has come out. */
static void see(int fd, const char *token)
{
    static char bytes[65536];
    size_t have = 0;

    do {
        wait_for(fd);

        ssize_t n = read(fd, bytes + have, sizeof bytes - 1 - have);

        if (n <= 0)
            die("a client has ended");
        have += (size_t)n;
        bytes[have] = '\0';
    } while (!strstr(bytes, token));
}

static double run_once(char **argv, int listener, size_t tokens)
{
    double *times = calloc(tokens, sizeof *times), median;
    struct client c;

    if (!times)
        die("memory");
    start(&c, argv, listener, true);
    for (size_t i = 0; i < tokens + FIRST; i++) {
        char token[40], event[512], chunk[600];
        int n, size;

        snprintf(token, sizeof token, "token%zu ", i);
        n = snprintf(event, sizeof event, event_format, token);
        size = snprintf(chunk, sizeof chunk, "%x\r\n%s\r\n", (unsigned)n, event);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_US * 1000}, NULL);

        double before = now_us();

        send_all(c.socket, chunk, (size_t)size);
        see(c.out, token);
        if (i >= FIRST)
            times[i - FIRST] = now_us() - before;
    }
    stop(&c, NULL);
    qsort(times, tokens, sizeof *times, by_value);
    median = times[tokens / 2];
    free(times);
    return median;
}

static size_t split(char **words, struct command *commands)
{
    size_t n = 0;
    bool first = true;

    for (; *words; words++) {
        if (strcmp(*words, "--") == 0) {
            *words = NULL;
            first = true;
        } else if (first) {
            commands[n++].argv = words;
            first = false;
        }
    }
    return n;
}

static void latency(size_t rounds, size_t tokens, char **words, size_t count, int listener)
{
    struct command *commands = calloc(count, sizeof *commands);
    size_t n = commands ? split(words, commands) : 0;

    for (size_t i = 0; i < n; i++)
        commands[i].rounds = calloc(rounds, sizeof(double));
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++) {
            /* Each round starts with another command. */
            struct command *c = &commands[(i + round) % n];

            c->rounds[round] = run_once(c->argv, listener, tokens);
        }
    for (size_t i = 0; i < n; i++) {
        qsort(commands[i].rounds, rounds, sizeof(double), by_value);
        printf("%.1f %s\n", commands[i].rounds[rounds / 2], commands[i].argv[0]);
        free(commands[i].rounds);
    }
    free(commands);
}

/* ---- all at once ---- */

static double us_of(const struct timeval *t)
{
    return (double)t->tv_sec * 1e6 + (double)t->tv_usec;
}

static void flood(size_t tokens, char **argv, int listener)
{
    char event[512];
    int n = snprintf(event, sizeof event, event_format, "token ");
    struct rusage used;
    struct client c;

    start(&c, argv, listener, false);
    for (size_t i = 0; i < tokens; i++)
        send_chunk(c.socket, event, (size_t)n);
    stop(&c, &used);
    printf("%zu %.0f %ld\n", tokens * strlen("token "),
           us_of(&used.ru_utime) + us_of(&used.ru_stime), used.ru_maxrss);
}

/* ---- whole turns ---- */

enum figure { START, TIMES, END, OVER, NOTHING, SYNC, FIGURES };

static double run_nothing(char *program)
{
    char *argv[] = {program, NULL};
    double before = now_us();
    int status;
    pid_t pid;

    errno = posix_spawn(&pid, program, NULL, NULL, argv, environ);
    if (errno != 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        die(program);
    return now_us() - before;
}

/* How long a line takes to reach the disk; 0 without a file (-1). */
static double sync_line(int fd)
{
    static char line[300] = {[299] = '\n'};
    double before;

    if (fd < 0)
        return 0;
    send_all(fd, line, sizeof line);
    before = now_us();
    if (fdatasync(fd) != 0)
        die("cannot sync");
    return now_us() - before;
}

static void turn_once(char **argv, char *nothing, int fd, int listener, double to[FIGURES])
{
    char event[512];
    int n = snprintf(event, sizeof event, event_format, "token ");
    double before;
    struct client c;

    to[NOTHING] = run_nothing(nothing);
    before = sync_line(fd);
    start(&c, argv, listener, false);
    send_chunk(c.socket, event, (size_t)n);
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_US * 1000}, NULL);
    stop(&c, NULL);
    to[SYNC] = sync_line(fd);
    to[START] = c.asked - c.started;
    to[TIMES] = (to[START] - before) / to[NOTHING];
    to[END] = c.ended - c.answered;
    to[OVER] = to[END] - to[SYNC];
}

static void turns(size_t rounds, char *nothing, const char *path, char **words, size_t count,
                  int listener)
{
    struct command *commands = calloc(count, sizeof *commands);
    size_t n = commands ? split(words, commands) : 0;
    int fd =
        strcmp(path, "-") == 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (!commands || (fd < 0 && strcmp(path, "-") != 0))
        die(path);
    for (size_t i = 0; i < n; i++)
        commands[i].rounds = calloc(rounds * FIGURES, sizeof(double));
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++) {
            double figures[FIGURES];
            struct command *c = &commands[(i + round) % n];

            turn_once(c->argv, nothing, fd, listener, figures);
            for (size_t f = 0; f < FIGURES; f++)
                c->rounds[f * rounds + round] = figures[f];
        }
    for (size_t i = 0; i < n; i++) {
        for (size_t f = 0; f < FIGURES; f++) {
            qsort(&commands[i].rounds[f * rounds], rounds, sizeof(double), by_value);
            printf("%.2f%c", commands[i].rounds[f * rounds + rounds / 2],
                   f + 1 < FIGURES ? ' ' : '\n');
        }
        free(commands[i].rounds);
    }
    free(commands);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    int port, listener = listen_on_loopback(&port);
    char number[12], url[64];
    long first = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    long second = argc > 4 ? strtol(argv[3], NULL, 10) : 0;

    signal(SIGPIPE, SIG_IGN);
    snprintf(number, sizeof number, "%d", port);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", port);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "PORT") == 0)
            argv[i] = number;
        if (strcmp(argv[i], "URL") == 0)
            argv[i] = url;
    }
    setenv("OPENAI_BASE_URL", url, 1);
    if (argc > 4 && first > 0 && second > 0 && strcmp(argv[1], "latency") == 0)
        latency((size_t)first, (size_t)second, argv + 4, (size_t)argc, listener);
    else if (argc > 3 && first > 0 && strcmp(argv[1], "flood") == 0)
        flood((size_t)first, argv + 3, listener);
    else if (argc > 5 && first > 0 && strcmp(argv[1], "turn") == 0)
        turns((size_t)first, argv[3], argv[4], argv + 5, (size_t)argc, listener);
    else {
        fputs("usage: stream latency ROUNDS TOKENS COMMAND... | flood TOKENS COMMAND... | "
              "turn ROUNDS NOTHING FILE COMMAND...\n",
              stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 2;
}
