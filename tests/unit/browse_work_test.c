#include "browse/worker.h"
#include "browse/actions.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "chathist/base/file.h"
#include "chathist/base/process.h"
#include "scratch.h"

static void file_is(const char *file, const char *wanted)
{
    struct buf all = BUF_INIT(BUF_SMALL);

    CHECK_INT(file_read(file, &all, NULL), 0);
    CHECK_STR(buf_c(&all), wanted);
    buf_release(&all);
}

/* Has a program add its name to a file, each but the first while another one runs. */
static void run(struct browse_work *w, const char *name)
{
    struct words argv;
    char command[100];

    snprintf(command, sizeof command, "sh -c 'sleep 0.1; echo %s >>ran; echo out %s'", name, name);
    CHECK_INT(words_split(&argv, str_of(command), NULL), 0);
    browse_work_run(w, BROWSE_EXPORT, str_of(name), &argv);
}

static struct browse_result *wait_for_result(struct browse_work *w)
{
    struct browse_result *r;

    while (!(r = browse_work_next(w))) {
        struct pollfd fd = {.fd = browse_work_fd(w), .events = POLLIN};

        if (!CHECK(poll(&fd, 1, 10000) > 0))
            break;
    }
    return r;
}

/* None is given up for the next one, not by the end either. */
TEST(each_program_that_was_asked_for_runs)
{
    static const char *const names[] = {"a", "b", "c"};
    char path[] = "h";
    struct history h = {.dir_fd = FILE_CWD, .pointer_fd = FILE_CWD, .path = path};
    struct browse_patience patience = {.fd = -1};
    struct browse_work *w;

    scratch_enter();
    w = browse_work_new(&h, 1, NULL);
    if (!CHECK(w))
        return;
    for (size_t i = 0; i < 3; i++)
        run(w, names[i]);
    for (size_t i = 0; i < 3; i++) {
        struct browse_result *r = wait_for_result(w);

        if (!r)
            break;
        CHECK_INT(r->kind, BROWSE_RAN);
        CHECK_INT(r->about, BROWSE_EXPORT);
        CHECK_INT(r->status, 0);
        CHECK_STR(buf_c(&r->name), names[i]);
        browse_result_free(r);
    }
    for (size_t i = 0; i < 3; i++)
        run(w, names[i]);
    browse_work_end(w, &patience);
    browse_work_free(w);

    file_is("ran", "a\nb\nc\na\nb\nc\n");
    scratch_leave();
}

/* What a variable that nobody has set holds: as a process, any child. */
static void __attribute__((noinline)) leave_on_stack(int value)
{
    volatile int memory[4000];

    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        memory[i] = value;
}

/* What cannot be started is not waited for: another child would be taken for it. */
TEST(a_text_for_a_program_that_cannot_be_started)
{
    char name[] = "./keep", *argv[] = {name, NULL};
    int fd, status = 0;
    atomic_bool cancel = false;
    pid_t other;

    scratch_enter();
    other = fork();
    if (other == 0)
        _exit(5);
    CHECK_INT(browse_child_give(argv, STR("text"), &cancel), -1);
    fd = open("keep", O_CREAT | O_WRONLY, 0600);
    close(fd);
    leave_on_stack(-1);
    CHECK_INT(browse_child_give(argv, STR("text"), &cancel), -1);
    CHECK_INT(waitpid(other, &status, 0), other);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    scratch_leave();
}

/* One that lives by what it is given, started by a script of that name. */
static int give(const char *script, size_t size, const atomic_bool *cancel)
{
    char name[] = "./keep", *argv[] = {name, NULL};
    struct buf text = BUF_INIT(SIZE_MAX);
    FILE *file = fopen(name, "w");
    int result;

    CHECK(file && fputs(script, file) >= 0 && fclose(file) == 0 && chmod(name, 0700) == 0);
    for (size_t i = 0; i < size; i++)
        buf_add_byte(&text, 'x');
    result = browse_child_give(argv, buf_str(&text), cancel);
    buf_release(&text);
    return result;
}

/* More than a pipe holds. */
#define LARGE ((size_t)1 << 20)

TEST(programs_that_keep_a_text)
{
    atomic_bool cancel = false;
    struct buf kept = BUF_INIT(SIZE_MAX);

    signal(SIGPIPE, SIG_IGN);
    scratch_enter();
    CHECK_INT(give("#!/bin/sh\ncat >kept\n", LARGE, &cancel), 0);
    CHECK_INT(file_read("kept", &kept, NULL), 0);
    CHECK_INT(kept.len, LARGE);
    CHECK_INT(give("#!/bin/sh\ncat >kept; exit 1\n", LARGE, &cancel), -1);
    CHECK_INT(give("#!/bin/sh\nexit 0\n", LARGE, &cancel), -1);
    /* It stays to hand it on. */
    buf_clear(&kept);
    CHECK_INT(give("#!/bin/sh\ncat >kept; echo $$ >pid; exec sleep 1000\n", LARGE, &cancel), 0);
    CHECK_INT(file_read("pid", &kept, NULL), 0);
    CHECK_INT(kill((pid_t)atoi(buf_c(&kept)), SIGKILL), 0);
    buf_release(&kept);
    scratch_leave();
}

TEST(programs_that_do_not_take_a_text)
{
    atomic_bool cancel = false;
    struct buf pid = BUF_INIT(SIZE_MAX);

    scratch_enter();
    CHECK_INT(give("#!/bin/sh\necho $$ >pid; exec sleep 1000\n", LARGE, &cancel), -1);
    CHECK_INT(file_read("pid", &pid, NULL), 0);
    CHECK_INT(kill((pid_t)atoi(buf_c(&pid)), 0), -1);
    /* What a pipe holds is not taken by that alone. */
    buf_clear(&pid);
    CHECK_INT(give("#!/bin/sh\necho $$ >pid; exec sleep 1000\n", 10, &cancel), -1);
    CHECK_INT(file_read("pid", &pid, NULL), 0);
    CHECK_INT(kill((pid_t)atoi(buf_c(&pid)), 0), -1);
    atomic_store(&cancel, true);
    CHECK_INT(give("#!/bin/sh\nexec sleep 1000\n", LARGE, &cancel), -1);
    buf_release(&pid);
    scratch_leave();
}

static void told(void)
{
    FILE *file = fopen("told", "a");

    if (CHECK(file))
        fclose(file);
}

/* What was asked for is waited for, until the user does not want to. */
TEST(the_end_is_waited_for_with_patience)
{
    char path[] = "h";
    struct history h = {.dir_fd = FILE_CWD, .pointer_fd = FILE_CWD, .path = path};
    struct browse_patience patience = {.tell = told};
    struct browse_work *w;
    struct words argv;
    int ends[2];

    scratch_enter();
    CHECK_INT(pipe_open(ends), 0);
    patience.fd = ends[0];
    w = browse_work_new(&h, 1, NULL);
    if (!CHECK(w))
        return;
    run(w, "first");
    CHECK_INT(words_split(&argv,
                          STR("sh -c 'trap \"echo gone >>ran; exit\" TERM; echo begun >begun; "
                              "while :; do sleep 0.05; done'"),
                          NULL),
              0);
    browse_work_run(w, BROWSE_DELETE, STR_NONE, &argv);
    run(w, "never");
    while (access("begun", F_OK) < 0)
        file_wait(-1, 10);
    CHECK_INT(write(ends[1], "", 1), 1);
    browse_work_end(w, &patience);
    browse_work_free(w);
    file_is("ran", "first\ngone\n");
    CHECK_INT(access("told", F_OK), -1);

    w = browse_work_new(&h, 1, NULL);
    if (!CHECK(w))
        return;
    CHECK_INT(words_split(&argv, STR("sh -c 'until test -e told; do sleep 0.05; done'"), NULL), 0);
    browse_work_run(w, BROWSE_DELETE, STR_NONE, &argv);
    patience.fd = -1;
    browse_work_end(w, &patience);
    browse_work_free(w);
    CHECK_INT(access("told", F_OK), 0);
    scratch_leave();
    close(ends[0]);
    close(ends[1]);
}

#ifdef __linux__
/* Of glibc alone. */
int pthread_getattr_default_np(pthread_attr_t *attributes);
int pthread_setattr_default_np(const pthread_attr_t *attributes);

/* A process that may have no thread more says so, and does not wait for ever. */
TEST(no_thread_can_be_started)
{
    char path[] = "h";
    struct history h = {.dir_fd = FILE_CWD, .pointer_fd = FILE_CWD, .path = path};
    struct browse_patience patience = {.fd = -1};
    struct browse_work *w = browse_work_new(&h, 1, NULL);
    struct browse_result *r;
    pthread_attr_t before, vast;

    if (!CHECK(w))
        return;
    pthread_getattr_default_np(&before);
    pthread_attr_init(&vast);
    pthread_attr_setstacksize(&vast, SIZE_MAX / 4);
    CHECK_INT(pthread_setattr_default_np(&vast), 0);
    browse_work_search(w, 7, STR("text"), NULL, false);
    browse_work_copy(w, STR("text"), false);
    pthread_setattr_default_np(&before);
    r = wait_for_result(w);
    if (CHECK(r)) {
        CHECK_INT(r->kind, BROWSE_HITS);
        CHECK_INT(r->number, 7);
        CHECK(r->done);
        CHECK_STR(err_text(&r->error), "cannot start a thread");
    }
    browse_result_free(r);
    r = wait_for_result(w);
    if (CHECK(r)) {
        CHECK_INT(r->kind, BROWSE_COPIED);
        CHECK_INT(r->status, -1);
    }
    browse_result_free(r);
    browse_work_end(w, &patience);
    browse_work_free(w);
}
#endif
