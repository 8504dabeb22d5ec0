#include "chathist/cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/cli/config.h"

/* Milliseconds until it is shown, and until it has seconds. */
#define SHOWN_AFTER 400
#define WORK_SHOWN_AFTER 1000
#define SECONDS_AFTER 3000
/* It changes no oftener than this. */
#define STEP 100

static int64_t since; /* clock_ticks of the beginning; 0: nothing is waited for */
static int64_t drawn; /* of the last change */
static unsigned turns;
static bool visible;

bool progress_possible(void)
{
    const char *term = config_env("TERM");

    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0 &&
           tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static void put(struct str text)
{
    /* There is nobody left to tell when stderr itself fails. */
    if (io_write_all(STDERR_FILENO, text.p, text.n) < 0)
        errno = 0;
}

/* `percent` is -1 when it is not known how much is done. */
static void turn(int64_t shown_after, int percent)
{
    int64_t now = clock_ticks();
    struct buf text = BUF_INIT(BUF_SMALL);

    if (since == 0)
        since = now;
    if (now - since < shown_after || now - drawn < STEP)
        return;
    drawn = now;
    buf_addf(&text, "\r%c", "|/-\\"[turns++ % 4]);
    if (percent >= 0)
        buf_addf(&text, " %d %%", percent);
    else if (now - since >= SECONDS_AFTER)
        buf_addf(&text, " %" PRId64 " s", (now - since) / 1000);
    put(buf_str(&text));
    buf_release(&text);
    visible = true;
}

void progress_turn(void)
{
    turn(SHOWN_AFTER, -1);
}

void progress_work(void)
{
    turn(WORK_SHOWN_AFTER, -1);
}

void progress_part(int percent)
{
    turn(WORK_SHOWN_AFTER, percent);
}

void progress_erase(void)
{
    if (visible)
        put(STR("\r\033[K"));
    visible = false;
}

void progress_end(void)
{
    progress_erase();
    since = 0;
}
