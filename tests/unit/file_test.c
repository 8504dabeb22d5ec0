#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "chathist/base/time.h"
#include "test.h"
#include "scratch.h"

/* Leaves a directory in which these files are all that there is. */
static void leave_with(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK_INT(remove(names[i]), 0);
    CHECK_INT(rmdir(scratch_dir), 0);
    CHECK_INT(mkdir(scratch_dir, 0700), 0);
    scratch_leave();
}
#define LEAVE_WITH(...)                                                                            \
    leave_with((const char *const[]){__VA_ARGS__},                                                 \
               sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *))

/* ---- opening ---- */

TEST(open_regular_creates_with_the_exact_mode)
{
    mode_t old;
    int fd;

    scratch_enter();
    old = umask(0777);
    fd = file_open_regular_at(FILE_CWD, "new", O_RDWR | O_CREAT, 0600, NULL, NULL, NULL);
    CHECK(fd >= 0);
    CHECK_INT(file_write_all(fd, "x", 1), 0);
    close(fd);
    CHECK_INT(scratch_mode("new"), 0600);
    umask(0);
    fd = file_open_regular_at(FILE_CWD, "excl", O_RDWR | O_CREAT | O_EXCL, 0640, NULL, NULL, NULL);
    CHECK(fd >= 0);
    close(fd);
    CHECK_INT(scratch_mode("excl"), 0640);

    /* One that was there keeps mode and content. */
    CHECK_INT(chmod("new", 0644), 0);
    fd = file_open_regular_at(FILE_CWD, "new", O_RDWR | O_CREAT, 0600, NULL, NULL, NULL);
    CHECK(fd >= 0);
    close(fd);
    CHECK_INT(scratch_mode("new"), 0644);
    scratch_check("new", "x");
    CHECK_INT(
        file_open_regular_at(FILE_CWD, "new", O_RDWR | O_CREAT | O_EXCL, 0600, NULL, NULL, NULL),
        -1);
    umask(old);
    scratch_leave();
}

TEST(open_input_is_lenient)
{
    struct err e = ERR_INIT;
    int fd;

    scratch_enter();
    scratch_put("file", "abc");
    CHECK_INT(symlink("file", "link"), 0);
    scratch_check("link", "abc");
    scratch_check("/dev/null", "");
    fd = file_open_input("file", &e);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
    CHECK_INT(file_open_input(".", &e), -1);
    CHECK_STR(err_text(&e), "cannot open '.': is a directory");
    CHECK_INT(file_open_input("absent", &e), -1);
    CHECK_STR(err_text(&e), "cannot open 'absent': No such file or directory");
    err_release(&e);
    scratch_leave();
}

/* ---- the standard streams, in a child whose exit status is the number of what failed ---- */

static int child_status(int (*run)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(run());
    if (child > 0)
        waitpid(child, &status, 0);
    return status;
}

static int fill_after_closing_all(void)
{
    char c;

    close(0);
    close(1);
    close(2);
    if (file_fill_std_fds() != 0)
        return 1;
    if (open("/dev/null", O_RDONLY) < 3)
        return 2;
    if (read(0, &c, 1) != -1 || errno != EBADF)
        return 3;
    if (write(1, "x", 1) != -1 || errno != EBADF)
        return 4;
    if (write(2, "x", 1) != -1 || errno != EBADF)
        return 5;
    return fcntl(0, F_GETFD) | fcntl(1, F_GETFD) | fcntl(2, F_GETFD) ? 6 : 0;
}

static int fill_the_middle(void)
{
    struct stat before, after;

    close(1);
    if (fstat(2, &before) < 0 || file_fill_std_fds() != 0 || fstat(2, &after) < 0)
        return 1;
    if (before.st_ino != after.st_ino || before.st_dev != after.st_dev)
        return 2;
    return fcntl(1, F_GETFL) >= 0 ? 0 : 3;
}

TEST(closed_standard_streams_are_filled)
{
    CHECK_INT(child_status(fill_after_closing_all), 0);
    CHECK_INT(child_status(fill_the_middle), 0);
    CHECK_INT(file_fill_std_fds(), 0);
}

/* ---- whole reads and writes ---- */

#define BIG ((size_t)300000)

static char big_byte(size_t i)
{
    return (char)(i * 7 % 251);
}

/* A child that writes BIG bytes into the pipe in small pieces, with `flags` set on it. */
static pid_t start_writer(int pipe_fds[2], int flags)
{
    char *big = malloc(BIG);
    pid_t child;

    for (size_t i = 0; i < BIG; i++)
        big[i] = big_byte(i);
    if (pipe(pipe_fds) < 0)
        abort();
    child = fork();
    if (child == 0) {
        close(pipe_fds[0]);
        fcntl(pipe_fds[1], F_SETFL, flags);

        int failed = file_write_all(pipe_fds[1], big, 1) < 0;

        for (size_t at = 1, step = 1; !failed && at < BIG; at += step, step = step % 7919 + 1) {
            if (step > BIG - at)
                step = BIG - at;
            failed = file_write_all(pipe_fds[1], big + at, step) < 0;
        }
        _exit(failed);
    }
    close(pipe_fds[1]);
    free(big);
    return child;
}

static bool is_big(const char *p, size_t n)
{
    bool same = n == BIG;

    for (size_t i = 0; i < n && same; i++)
        same = p[i] == big_byte(i);
    return same;
}

TEST(read_all_takes_a_pipe_to_its_end)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    int fds[2], status = -1;
    pid_t writer = start_writer(fds, O_NONBLOCK);

    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    CHECK_INT(file_read_all(fds[0], &b), 0);
    CHECK(is_big(b.data, b.len));
    waitpid(writer, &status, 0);
    CHECK_INT(status, 0);
    close(fds[0]);
    buf_release(&b);
}

TEST(read_full_waits_for_all)
{
    char *p = malloc(BIG + 1);
    int fds[2];
    pid_t writer = start_writer(fds, 0);

    CHECK_INT(file_read_full(fds[0], p, 0), 0);
    CHECK_INT(file_read_full(fds[0], p, BIG - 1), BIG - 1);
    CHECK_INT(file_read_full(fds[0], p + BIG - 1, 2), 1);
    CHECK(is_big(p, BIG));
    CHECK_INT(file_read_full(fds[0], p, 1), 0);
    waitpid(writer, NULL, 0);
    close(fds[0]);
    errno = 0;
    CHECK_INT(file_read_full(fds[0], p, 1), -1);
    CHECK_INT(errno, EBADF);
    free(p);
}

static void ignore_signal(int signo)
{
    (void)signo;
}

/* A full pipe and signals that interrupt the wait: the write must go on. */
TEST(write_all_goes_on_after_interruptions)
{
    struct sigaction act = {.sa_handler = ignore_signal}, old;
    char *big = malloc(BIG);
    int fds[2], status = -1;
    pid_t reader;

    for (size_t i = 0; i < BIG; i++)
        big[i] = big_byte(i);
    if (pipe(fds) < 0)
        abort();
    sigaction(SIGUSR1, &act, &old);
    reader = fork();
    if (reader == 0) {
        struct buf b = BUF_INIT(BUF_SMALL);

        close(fds[1]);
        for (int i = 0; i < 5; i++) {
            usleep(10000);
            kill(getppid(), SIGUSR1);
        }
        _exit(file_read_all(fds[0], &b) < 0 || !is_big(b.data, b.len));
    }
    close(fds[0]);
    CHECK_INT(file_write_all(fds[1], big, BIG), 0);
    close(fds[1]);
    while (waitpid(reader, &status, 0) < 0 && errno == EINTR)
        continue;
    CHECK_INT(status, 0);
    sigaction(SIGUSR1, &old, NULL);
    free(big);
}

TEST(write_all_reports_errors)
{
    int full = open("/dev/full", O_WRONLY);
    int fds[2];

    CHECK_INT(file_write_all(full, "x", 0), 0);
    errno = 0;
    CHECK_INT(file_write_all(full, "x", 1), -1);
    CHECK_INT(errno, ENOSPC);
    close(full);
    errno = 0;
    CHECK_INT(file_write_all(full, "x", 1), -1);
    CHECK_INT(errno, EBADF);
    if (pipe(fds) < 0)
        abort();
    signal(SIGPIPE, SIG_IGN);
    close(fds[0]);
    errno = 0;
    CHECK_INT(file_write_all(fds[1], "x", 1), -1);
    CHECK_INT(errno, EPIPE);
    signal(SIGPIPE, SIG_DFL);
    close(fds[1]);
}

TEST(pwrite_all_writes_at_an_offset)
{
    const struct rlimit small = {.rlim_cur = 4, .rlim_max = RLIM_INFINITY};
    struct rlimit old;
    struct buf b = BUF_INIT(BUF_SMALL);
    int fd;

    scratch_enter();
    scratch_put("file", "abcd");
    fd = open("file", O_RDWR);
    CHECK_INT(file_pwrite_all(fd, "XY", 2, 1), 0);
    CHECK_INT(file_pwrite_all(fd, "", 0, 9), 0);
    CHECK_INT(lseek(fd, 0, SEEK_CUR), 0);
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = 0;
    CHECK_INT(file_pwrite_all(fd, "123", 3, 2), -1); /* two of them go */
    CHECK_INT(errno, EFBIG);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    CHECK_INT(file_read_all(fd, &b), 0);
    CHECK(str_eq(buf_str(&b), STR("aX12")));
    close(fd);
    fd = open("file", O_RDONLY);
    CHECK_INT(file_pwrite_all(fd, "x", 1, 0), -1);
    CHECK_INT(errno, EBADF);
    close(fd);
    scratch_leave();
    buf_release(&b);
}

TEST(pread_full_reads_at_an_offset)
{
    char p[4] = "";

    scratch_enter();
    scratch_put("file", "abcdef");

    int fd = open("file", O_RDONLY);

    CHECK_INT(file_pread_full(fd, p, 3, 1), 3);
    CHECK_MEM(p, 3, "bcd", 3);
    CHECK_INT(file_pread_full(fd, p, 4, 4), 2);
    CHECK_MEM(p, 2, "ef", 2);
    CHECK_INT(file_pread_full(fd, p, 4, 6), 0);
    CHECK_INT(file_pread_full(fd, p, 4, 100), 0);
    CHECK_INT(lseek(fd, 0, SEEK_CUR), 0);
    errno = 0;
    CHECK_INT(file_pread_full(fd, p, 4, -1), -1);
    CHECK_INT(errno, EINVAL);
    close(fd);
    scratch_leave();
}

TEST(read_all_keeps_to_the_maximum)
{
    struct buf b = BUF_INIT(6);
    struct err e = ERR_INIT;

    scratch_enter();
    scratch_put("fits", "abcdef");
    scratch_put("more", "abcdefg");
    scratch_put("empty", "");
    CHECK_INT(file_read("fits", &b, &e), 0);
    CHECK_STR(buf_c(&b), "abcdef");
    CHECK(!b.overflow);
    CHECK_INT(file_read("empty", &b, &e), 0);
    buf_clear(&b);
    CHECK_INT(file_read("more", &b, &e), -1);
    CHECK_STR(err_text(&e), "cannot read 'more': File too large");
    CHECK_STR(buf_c(&b), "abcdef");
    CHECK(b.overflow);
    err_release(&e);
    buf_release(&b);
    scratch_leave();
}

TEST(read_all_appends)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    scratch_enter();
    scratch_put("file", "cd");
    buf_add_c(&b, "ab");
    CHECK_INT(file_read("file", &b, NULL), 0);
    CHECK_STR(buf_c(&b), "abcd");
    buf_release(&b);
    scratch_leave();
}

TEST(read_some_gives_what_is_there)
{
    struct buf b = BUF_INIT(5);
    int fds[2];

    if (pipe(fds) < 0)
        abort();
    CHECK_INT(file_write_all(fds[1], "abc", 3), 0);
    CHECK_INT(file_read_some(fds[0], &b), 1);
    CHECK_STR(buf_c(&b), "abc");
    CHECK_INT(file_write_all(fds[1], "defg", 4), 0);
    CHECK_INT(file_read_some(fds[0], &b), 1);
    CHECK_STR(buf_c(&b), "abcde");
    errno = 0;
    CHECK_INT(file_read_some(fds[0], &b), -1);
    CHECK_INT(errno, EFBIG);
    CHECK_STR(buf_c(&b), "abcde");
    buf_clear(&b);
    close(fds[1]);
    /* The f told that there was more. */
    CHECK_INT(file_read_some(fds[0], &b), 1);
    CHECK_STR(buf_c(&b), "g");
    CHECK_INT(file_read_some(fds[0], &b), 0);

    /* What overflowed before takes nothing in. */
    buf_clear(&b);
    buf_add_c(&b, "too long");
    errno = 0;
    CHECK_INT(file_read_some(fds[0], &b), -1);
    CHECK_INT(errno, EFBIG);
    close(fds[0]);
    buf_release(&b);
}

TEST(read_all_reports_errors)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    errno = 0;
    CHECK_INT(file_read_all(-1, &b), -1);
    CHECK_INT(errno, EBADF);
    buf_release(&b);
}

/* ---- replacing ---- */

TEST(replace_file_writes_and_replaces)
{
    struct err e = ERR_INIT;
    mode_t old;

    scratch_enter();
    old = umask(0777);
    CHECK_INT(file_replace("state", STR("one"), &e), 0);
    scratch_check("state", "one");
    CHECK_INT(scratch_mode("state"), 0600);
    CHECK_INT(chmod("state", 0644), 0);
    CHECK_INT(file_replace("state", STR(""), &e), 0);
    scratch_check("state", "");
    CHECK_INT(scratch_mode("state"), 0600);
    CHECK_INT(e.kind, ERR_NONE);
    umask(old);
    LEAVE_WITH("state");
}

static void check_replace_refused(const char *path, const char *message)
{
    struct err e = ERR_INIT;

    CHECK_INT(file_replace(path, STR("x"), &e), -1);
    CHECK_STR(err_text(&e), message);
    err_release(&e);
}

TEST(replace_file_refuses_what_is_no_file)
{
    scratch_enter();
    scratch_put("file", "safe");
    CHECK_INT(symlink("file", "link") | mkfifo("fifo", 0600) | mkdir("dir", 0700), 0);
    check_replace_refused("link", "cannot write 'link': is a symbolic link");
    check_replace_refused("fifo", "cannot write 'fifo': is a FIFO");
    check_replace_refused("dir", "cannot write 'dir': is a directory");
    check_replace_refused("absent/x", "cannot write 'absent/x': No such file or directory");
    scratch_check("file", "safe");
    LEAVE_WITH("file", "link", "fifo", "dir");
}

/* Files may have no more than 4 bytes: the write fails, the old content stays. */
static int replace_beyond_the_limit(void)
{
    struct rlimit limit = {4, 4};
    struct err e = ERR_INIT;

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    if (file_replace("state", STR("12345"), &e) != -1)
        return 1;
    return strcmp(err_text(&e), "cannot write 'state': File too large") != 0;
}

TEST(replace_file_leaves_the_old_on_failure)
{
    scratch_enter();
    scratch_put("state", "old");
    CHECK_INT(child_status(replace_beyond_the_limit), 0);
    scratch_check("state", "old");
    LEAVE_WITH("state");
}

TEST(replace_file_passes_over_left_behind_names)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    scratch_enter();
    buf_addf(&name, "state.%ld.0.tmp", (long)getpid());
    CHECK_INT(symlink("elsewhere", buf_c(&name)), 0);
    CHECK_INT(file_replace("state", STR("new"), NULL), 0);
    scratch_check("state", "new");
    CHECK_INT(access("elsewhere", F_OK), -1);
    LEAVE_WITH(buf_c(&name), "state");
    buf_release(&name);
}

TEST(sync_dir_of_a_path)
{
    scratch_enter();
    CHECK_INT(file_sync_dir_of("x"), 0);
    CHECK_INT(file_sync_dir_of("/tmp/x"), 0);
    errno = 0;
    CHECK_INT(file_sync_dir_of("absent/x"), -1);
    CHECK_INT(errno, ENOENT);
    scratch_leave();
}

TEST(waiting_for_a_while_or_a_descriptor)
{
    int fds[2];
    int64_t start = time_ticks();

    CHECK_INT(pipe(fds), 0);
    CHECK_INT(file_wait(fds[0], 30), 0);
    CHECK_INT(file_wait(-1, 30), 0);
    CHECK(time_ticks() - start >= 58);
    CHECK_INT(file_wait(fds[0], 0), 0);
    CHECK_INT(file_wait(fds[0], -5), 0);
    CHECK_INT(write(fds[1], "x", 1), 1);
    start = time_ticks();
    CHECK_INT(file_wait(fds[0], 60000), 1);
    CHECK_INT(file_wait(fds[0], INT64_MAX / 2), 1);
    CHECK(time_ticks() - start < 1000);
    close(fds[0]);
    close(fds[1]);
}

/* Never more than the pipe holds, and never waiting for a reader: else this does not end. */
TEST(writing_what_goes_at_once)
{
    static char big[1 << 20];
    size_t written = 0;
    ssize_t n = 0;
    int fds[2];

    CHECK_INT(pipe(fds), 0);
    while (written < sizeof big && (n = file_write_now(fds[1], big, sizeof big - written)) > 0)
        written += (size_t)n;
    CHECK_INT(n, -1);
    CHECK(written < sizeof big);
    CHECK(errno == EAGAIN || written == 0); /* a system that cannot tell */
    close(fds[0]);
    close(fds[1]);
}

TEST(a_state_need_not_be_there)
{
    struct buf b = BUF_INIT(100);
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK_INT(file_read_state("state", &b, &e), 0);
    CHECK_INT(e.kind, ERR_NONE);
    CHECK_INT(file_read_state("state", &b, NULL), 0);
    CHECK_INT(file_replace("state", STR("what was"), &e), 0);
    CHECK_INT(file_read_state("state", &b, &e), 1);
    CHECK_STR(buf_c(&b), "what was");
    CHECK_INT(unlink("state"), 0);
    CHECK_INT(mkfifo("state", 0600), 0);
    CHECK_INT(file_read_state("state", &b, &e), -1);
    CHECK_STR(err_text(&e), "cannot open 'state': is a FIFO");
    scratch_leave();
    err_release(&e);
    buf_release(&b);
}
