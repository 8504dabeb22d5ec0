#include "chathist/base/system.h"

#include <errno.h>
#include <fcntl.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MOST 10240

#ifdef F_FULLFSYNC
/* File systems without F_FULLFSYNC, such as those of a network, have fsync. */
static int sync_fully(int fd)
{
    return fcntl(fd, F_FULLFSYNC) < 0 ? fsync(fd) : 0;
}

int system_sync_data(int fd)
{
    return sync_fully(fd);
}

int system_sync(int fd)
{
    return sync_fully(fd);
}
#else
int system_sync_data(int fd)
{
    return fdatasync(fd);
}

int system_sync(int fd)
{
    return fsync(fd);
}
#endif

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * INT64_C(1000000000) + (int64_t)t.tv_nsec;
}

/* The names of these members are st_mtim and st_ctim in POSIX.1-2008. */
#ifdef __APPLE__
#define TIME_OF(st, letter) ((st)->st_##letter##timespec)
#else
#define TIME_OF(st, letter) ((st)->st_##letter##tim)
#endif

int64_t system_mtime(const struct stat *st)
{
    return nanoseconds(TIME_OF(st, m));
}

int64_t system_ctime(const struct stat *st)
{
    return nanoseconds(TIME_OF(st, c));
}

int64_t system_birth(int fd)
{
#ifdef STATX_BTIME
    struct statx st;

    return statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) == 0 && (st.stx_mask & STATX_BTIME) != 0
               ? nanoseconds(
                     (struct timespec){(time_t)st.stx_btime.tv_sec, (long)st.stx_btime.tv_nsec})
               : 0;
#elif defined __APPLE__
    struct stat st;

    return fstat(fd, &st) == 0 ? nanoseconds(st.st_birthtimespec) : 0;
#else
    (void)fd;
    return 0;
#endif
}

void system_open_many(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FILES_MOST)
        return;
    limit.rlim_cur = limit.rlim_max < FILES_MOST ? limit.rlim_max : FILES_MOST;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int system_random(void *p, size_t n)
{
    ssize_t got;
    int fd;

    if (getentropy(p, n) == 0)
        return 0;
    /* Linux before 3.17 has only the device. It gives up to 256 bytes at once. */
    fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : read(fd, p, n);
    if (fd >= 0)
        close(fd);
    if (got >= 0 && (size_t)got < n)
        errno = EIO;
    return got == (ssize_t)n ? 0 : -1;
}
