/*
 * faults: a library that is loaded into a program before it starts, for tests on Linux. It fails or
 * kills the program at a chosen call, gives it another clock and machine, and starts it many times
 * for the price of a fork.
 *
 *     LD_PRELOAD=.../faults.so FAULTS_AT=7 FAULTS_DO=kill hist-sync DIR
 *
 *     FAULTS_AT=N      the call that FAULTS_DO is done at, counted from 1; 0: none
 *     FAULTS_DO=WHAT   kill: SIGKILL before the call
 *                      half: SIGKILL after the call, which writes half of its bytes if it writes
 *                      cut: if it is a call for a socket, the connection is shut down before
 *                      a number: the call fails with this errno; so does the connection of a
 *                      socket
 *     FAULTS_CLOCK=US  the time of day at the start, in microseconds; each look at the clock takes
 *                      CLOCK_STEP of them
 *     FAULTS_SEED=N    random bytes are the same each time
 *     FAULTS_ID=FILE   stands for /etc/machine-id
 *     FAULTS_AFTER=US  a program that is served gets SIGKILL after this many microseconds
 *     FAULTS_SERVER=FD the program does not run, but serves a socket; see serve()
 *
 * What counts are the calls for files and sockets below that the program or its libraries make, not
 * those that libc makes itself.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_STEP 50
#define WORDS_MOST ((size_t)256)
#define REQUEST_MOST ((uint32_t)1 << 20)

/* What is done at a call. */
enum deed { PASS, FAIL, KILL, HALF, CUT };

static struct {
    unsigned at;
    enum deed deed;
    int error;
    int64_t clock;
    uint64_t seed;
    const char *id;
} faults;

static atomic_uint own_count;
static atomic_uint *count = &own_count; /* the calls so far; a server has it in shared memory */
static atomic_ullong looks;             /* at the clock, and draws of random numbers */

/* The function that is called instead of the one here. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static int64_t number(const char *name)
{
    const char *text = getenv(name);

    return text ? strtoll(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void configure(void)
{
    static const char *const names[] = {[KILL] = "kill", [HALF] = "half", [CUT] = "cut"};
    const char *what = getenv("FAULTS_DO");

    faults.at = (unsigned)number("FAULTS_AT");
    faults.error = (int)number("FAULTS_DO");
    faults.clock = number("FAULTS_CLOCK");
    faults.seed = (uint64_t)number("FAULTS_SEED");
    faults.id = getenv("FAULTS_ID");
    faults.deed = faults.error ? FAIL : PASS;
    for (enum deed d = KILL; what && d <= CUT; d++)
        if (strcmp(what, names[d]) == 0)
            faults.deed = d;
}

/* Counts a call, and returns what is to be done at it. */
static enum deed begin(void)
{
    if (atomic_fetch_add(count, 1) + 1 != faults.at)
        return PASS;
    if (faults.deed == KILL)
        raise(SIGKILL);
    if (faults.deed == FAIL)
        errno = faults.error;
    return faults.deed;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and parameters */
/* Defines a function that returns -1 on failure. `n` in the arguments is the number of bytes. */
#define CALL(type, name, parameters, arguments)                                                    \
    type name parameters                                                                           \
    {                                                                                              \
        enum deed deed = begin();                                                                  \
        type result = deed == FAIL ? -1 : NEXT(name) arguments;                                    \
                                                                                                   \
        if (deed == HALF)                                                                          \
            raise(SIGKILL);                                                                        \
        return result;                                                                             \
    }

#define BYTES (deed == HALF ? n / 2 : n)

CALL(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))
CALL(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
CALL(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, BYTES))
CALL(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, BYTES, at))
CALL(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags),
     (fd, v, BYTES, at, flags))
CALL(int, fsync, (int fd), (fd))
CALL(int, fdatasync, (int fd), (fd))
CALL(int, ftruncate, (int fd, off_t size), (fd, size))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
CALL(int, linkat, (int a, const char *from, int b, const char *to, int flags),
     (a, from, b, to, flags))
CALL(int, symlinkat, (const char *to, int dir, const char *path), (to, dir, path))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(int, fstat, (int fd, struct stat *st), (fd, st))
CALL(int, fstatat, (int dir, const char *path, struct stat *st, int flags), (dir, path, st, flags))
CALL(int, lstat, (const char *path, struct stat *st), (path, st))

static const char *replaced(const char *path)
{
    return faults.id && strcmp(path, "/etc/machine-id") == 0 ? faults.id : path;
}

CALL(int, stat, (const char *path, struct stat *st), (replaced(path), st))

static mode_t mode_of(int flags, va_list more)
{
    return flags & O_CREAT ? va_arg(more, mode_t) : 0;
}

#define OPEN(name, parameters, arguments)                                                          \
    int name parameters                                                                            \
    {                                                                                              \
        enum deed deed = begin();                                                                  \
        va_list more;                                                                              \
        mode_t mode;                                                                               \
        int fd;                                                                                    \
                                                                                                   \
        va_start(more, flags);                                                                     \
        mode = mode_of(flags, more);                                                               \
        va_end(more);                                                                              \
        fd = deed == FAIL ? -1 : NEXT(name) arguments;                                             \
        if (deed == HALF)                                                                          \
            raise(SIGKILL);                                                                        \
        return fd;                                                                                 \
    }

OPEN(open, (const char *path, int flags, ...), (replaced(path), flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, replaced(path), flags, mode))

struct dirent *readdir(DIR *dir)
{
    return begin() == FAIL ? NULL : NEXT(readdir)(dir);
}

#define TRAVEL(name, type)                                                                         \
    ssize_t name(int fd, type bytes, size_t n, int flags)                                          \
    {                                                                                              \
        enum deed deed = begin();                                                                  \
                                                                                                   \
        if (deed != PASS)                                                                          \
            shutdown(fd, SHUT_RDWR);                                                               \
        if (deed == HALF)                                                                          \
            raise(SIGKILL);                                                                        \
        return deed == FAIL ? -1 : NEXT(name)(fd, bytes, n, flags);                                \
    }

TRAVEL(send, const void *)
TRAVEL(recv, void *)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- clock and random numbers ---- */

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int64_t now;

    if (clock != CLOCK_REALTIME || !faults.clock)
        return NEXT(clock_gettime)(clock, t);
    now = faults.clock + CLOCK_STEP * (int64_t)atomic_fetch_add(&looks, 1);
    *t = (struct timespec){.tv_sec = now / 1000000, .tv_nsec = now % 1000000 * 1000};
    return 0;
}

/* The bytes are those of splitmix64: https://prng.di.unimi.it/splitmix64.c */
static void fill(unsigned char *bytes, size_t n)
{
    uint64_t z = 0;

    for (size_t i = 0; i < n; i++, z >>= 8) {
        if (i % 8 == 0) {
            z = faults.seed + (atomic_fetch_add(&looks, 1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
            z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
            z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
            z ^= z >> 31;
        }
        bytes[i] = (unsigned char)z;
    }
}

ssize_t getrandom(void *to, size_t n, unsigned flags)
{
    if (!faults.seed)
        return NEXT(getrandom)(to, n, flags);
    fill(to, n);
    return (ssize_t)n;
}

int getentropy(void *to, size_t n)
{
    if (!faults.seed)
        return NEXT(getentropy)(to, n);
    fill(to, n);
    return 0;
}

/* libuuid adds what these return to the bytes of getrandom, and seeds them with the process. */
long random(void)
{
    return faults.seed ? 0 : NEXT(random)();
}

long jrand48(unsigned short state[3])
{
    return faults.seed ? 0 : NEXT(jrand48)(state);
}

/* ---- the server ---- */

static int (*program)(int, char **, char **);

static bool read_all(int fd, void *to, size_t n)
{
    char *p = to;

    for (ssize_t got; n > 0; p += got, n -= (size_t)got) {
        got = NEXT(read)(fd, p, n);
        if (got <= 0)
            return false;
    }
    return true;
}

/* Runs the program. The words are its working directory, the files of its standard streams, the
 * number of its arguments, these, and its environment. */
static void run(char **words)
{
    int argc = (int)strtol(words[4], NULL, 10);
    char **argv = words + 5, **env = argv + argc;
    char *none = NULL;

    for (int fd = 0; fd < 3; fd++) {
        int file = NEXT(open)(words[1 + fd],
                              fd == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);

        if (file != fd) {
            dup2(file, fd);
            close(file);
        }
    }
    if (chdir(words[0]) < 0)
        _exit(125);
    /* argv ends where the environment begins. */
    environ = &none;
    for (char **e = env; *e; e++)
        putenv(*e);
    *env = NULL;
    configure();
    exit(program(argc, argv, environ));
}

/* Returns the value of a variable of an environment, or NULL. */
static const char *value_of(char **env, const char *name)
{
    size_t n = strlen(name);

    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* Each request is a number of bytes (32 bits), and this many bytes of words that end with NUL. Once
 * the program and all that it started have ended, the answer has two numbers: the status of the
 * program, as of wait, and how many calls were counted. */
static int serve(int fd)
{
    static char *words[WORDS_MOST + 1], text[REQUEST_MOST];
    uint32_t size;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    while (read_all(fd, &size, sizeof size) && size <= REQUEST_MOST && read_all(fd, text, size)) {
        int32_t answer[2] = {0};
        const char *after;
        int status;
        pid_t pid, child;
        size_t n = 0;

        for (char *p = text; p < text + size && n < WORDS_MOST; p += strlen(p) + 1)
            words[n++] = p;
        words[n] = NULL;
        if (n < 5)
            return 1;
        atomic_store(count, 0);
        child = fork();
        /* kill(-1) would end every process of the user. */
        if (child < 0)
            return 1;
        if (child == 0) {
            close(fd);
            run(words);
        }
        after = value_of(words, "FAULTS_AFTER");
        if (after) {
            usleep((useconds_t)strtoul(after, NULL, 10));
            kill(child, SIGKILL);
        }
        while ((pid = wait(&status)) > 0)
            if (pid == child)
                answer[0] = status;
        answer[1] = (int32_t)atomic_load(count);
        if (NEXT(write)(fd, answer, sizeof answer) < 0)
            return 1;
    }
    return 0;
}

static int main_here(int argc, char **argv, char **env)
{
    void *memory;

    if (!getenv("FAULTS_SERVER"))
        return program(argc, argv, env);
    memory =
        mmap(NULL, sizeof(atomic_uint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 125;
    count = memory;
    return serve((int)number("FAULTS_SERVER"));
}

int __libc_start_main(int (*its_main)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*end)(void), void *stack);
int __libc_start_main(int (*its_main)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*end)(void), void *stack)
{
    program = its_main;
    return NEXT(__libc_start_main)(main_here, argc, argv, init, fini, end, stack);
}
