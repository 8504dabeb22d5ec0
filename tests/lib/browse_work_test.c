#include "tui/browse_work.h"

#include <poll.h>
#include <sys/wait.h>

#include "test.h"
#include "scratch.h"
#include "tui/browse_child.h"

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
    struct history h = {.path = path};
    struct buf all = BUF_INIT(BUF_SMALL);
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
    browse_work_free(w);

    CHECK_INT(io_read_file("ran", &all, NULL), 0);
    CHECK_STR(buf_c(&all), "a\nb\nc\na\nb\nc\n");
    buf_release(&all);
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
    pid_t other;

    scratch_enter();
    other = fork();
    if (other == 0)
        _exit(5);
    CHECK_INT(browse_child_give(argv, STR("text")), -1);
    fd = open("keep", O_CREAT | O_WRONLY, 0600);
    close(fd);
    leave_on_stack(-1);
    CHECK_INT(browse_child_give(argv, STR("text")), -1);
    CHECK_INT(waitpid(other, &status, 0), other);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    scratch_leave();
}
