/*
 * export_select: what `hist-export --incremental` exports of a history that lives. The bytes
 * are what happens to it, one step each: a message comes, half of one, what is no message, a
 * session is deleted, an export runs, as a whole or dies before it has saved its state. However
 * that goes, each message that is left at the end has been exported exactly once, in the order of
 * its session, by the exports that saved; and none that was never there.
 *
 * When the first byte is odd, the rest is a state, a NUL, and a history instead: any bytes at all.
 */
#include <inttypes.h>
#include <stdint.h>

#include "chathist/base/file_replace.h"
#include "chathist/base/memory.h"
#include "chathist/convert/export_select.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 96
#define SESSIONS 4

struct world {
    char *history, *state;
    int fd; /* the history, to append to */
    unsigned made;
    bool half;                    /* the last line has no end */
    bool there[STEPS_MAX];        /* message n is, whole */
    unsigned char of[STEPS_MAX];  /* its session */
    unsigned exported[STEPS_MAX]; /* so often */
    unsigned last[SESSIONS];      /* exported; messages are counted from 1 */
};

static struct append_wait no_wait(void)
{
    struct append_wait wait = APPEND_WAIT_INIT;

    return wait;
}

static void put(const struct world *w, struct str text)
{
    demand(file_write_all(w->fd, text.p, text.n) == 0);
}

/* A line of its own, like any writer: behind a half one that stays. */
static void begin_line(struct world *w)
{
    if (w->half)
        put(w, STR("\n"));
    w->half = false;
}

/* Length and session come from the byte. */
static void make_message(struct world *w, uint8_t how, struct buf *line)
{
    unsigned n = ++w->made, session = how % SESSIONS;

    w->of[n] = (unsigned char)session;
    buf_addf(line,
             "{\"id\":\"%u\",\"session_id\":\"s%u\",\"timestamp\":"
             "\"2024-06-27T15:00:00.000000+00:00\",\"role\":\"user\",\"content\":\"%0*u\"}",
             n, session, how / SESSIONS % 8 + 1, 0U);
}

static void append_message(struct world *w, uint8_t how)
{
    struct buf line = BUF_INIT(BUF_LINE);

    begin_line(w);
    make_message(w, how, &line);
    buf_add_byte(&line, '\n');
    w->there[w->made] = true;
    put(w, buf_str(&line));
    buf_release(&line);
}

/* Its writer is not done: only the newline is missing, or half of it. */
static void append_part(struct world *w, uint8_t how)
{
    struct buf line = BUF_INIT(BUF_LINE);

    begin_line(w);
    make_message(w, how, &line);
    w->there[w->made] = how % 2;
    put(w, (struct str){line.data, how % 2 ? line.len : line.len / 2});
    w->half = true;
    buf_release(&line);
}

/* Replaces the history by one without the session, as hist-delete does. */
static void delete_session(struct world *w, unsigned session)
{
    char name[] = {'s', (char)('0' + session), '\0'};
    struct buf text = scratch_read(w->history), kept = BUF_INIT(SIZE_MAX);
    struct message m = MESSAGE_INIT;

    for (struct str rest = buf_str(&text); rest.n > 0;) {
        const char *begin = rest.p;
        struct str line = str_cut(&rest, '\n');
        size_t n = line.n + (rest.p != NULL);

        if (!message_parse(&m, line) || !str_eq_c(m.session_id, name))
            buf_add(&kept, begin, n);
    }
    w->half = kept.len > 0 && kept.data[kept.len - 1] != '\n';
    demand(file_replace(w->history, buf_str(&kept), NULL) == 0);
    for (unsigned n = 1; n <= w->made; n++)
        if (w->of[n] == session)
            w->there[n] = false;
    close(w->fd);
    w->fd = open(w->history, O_WRONLY | O_APPEND | O_CLOEXEC);
    demand(w->fd >= 0);
    message_release(&m);
    buf_release(&text);
    buf_release(&kept);
}

static unsigned number_of(struct str id)
{
    unsigned n = 0;

    for (size_t i = 0; i < id.n; i++)
        n = n * 10 + (unsigned)(id.p[i] - '0');
    return n;
}

static void note(struct world *w, struct selection *s, bool exported)
{
    struct selection_part part = {BUF_INIT(BUF_LINE), 0};
    struct message m = MESSAGE_INIT;
    struct str line;

    for (size_t i = 0; i < s->lines_count; i++) {
        unsigned n;

        demand(selection_read(s, &part, i, &line, NULL) == 0 && message_parse(&m, line));
        n = number_of(m.id);
        demand(n > 0 && n <= w->made && w->there[n]);
        demand(str_eq(m.session_id, s->sessions[s->lines[i].session].id));
        /* One that only goes with a session that has grown is known already. */
        if (!exported)
            continue;
        w->exported[n]++;
        demand(n > w->last[w->of[n]]);
        w->last[w->of[n]] = n;
    }
    message_release(&m);
    buf_release(&part.text);
}

/* An export of what is new, or of the sessions that have something new, as into a directory. */
static void export(struct world *w, bool whole, bool dies)
{
    struct append_wait wait = no_wait();
    struct selection s = SELECTION_INIT;

    s.piece_size = 64;
    demand(selection_open_state(&s, w->state, &wait, NULL) == 0);
    demand(selection_load(&s, FILE_CWD, w->history, whole, NULL, NULL) == 0);
    note(w, &s, !whole && !dies);
    if (!whole && !dies && s.moved)
        demand(selection_save(&s, NULL) == 0);
    selection_release(&s);
}

static void live(struct world *w, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size && i + 1 < STEPS_MAX; i++) {
        uint8_t how = data[i] / 8;

        switch (data[i] % 8) {
        case 0:
        case 1:
        case 2:
            append_message(w, how);
            break;
        case 3:
            append_part(w, how);
            break;
        case 4:
            begin_line(w);
            put(w, how % 2 ? STR("no message\n") : STR("\n"));
            break;
        case 5:
            delete_session(w, how % SESSIONS);
            break;
        case 6:
            export(w, false, false);
            break;
        case 7:
            export(w, how % 2 == 0, true);
            break;
        }
    }
    begin_line(w);
    export(w, false, false);
    for (unsigned n = 1; n <= w->made; n++)
        demand(w->exported[n] == 1 || (w->exported[n] == 0 && !w->there[n]));
}

/* What is no state is refused; with one there is an end, and then nothing is new. */
static void any_bytes(const char *history, const char *path, struct str state_text, struct str text)
{
    struct append_wait wait = no_wait();

    scratch_write(path, state_text);
    scratch_write(history, text);
    for (int round = 0; round < 2; round++) {
        struct selection s = SELECTION_INIT;
        bool usable = selection_open_state(&s, path, &wait, NULL) == 0;

        demand(usable || round == 0);
        if (usable) {
            demand(selection_load(&s, FILE_CWD, history, false, NULL, NULL) == 0);
            demand(round == 0 || s.lines_count == 0);
            demand(selection_save(&s, NULL) == 0);
        }
        selection_release(&s);
        if (!usable)
            return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.history = scratch_path("h"), .state = scratch_path("state")};
    struct str rest = {(const char *)data + 1, size > 0 ? size - 1 : 0}, state_text;

    if (size > 0 && data[0] % 2) {
        state_text = str_cut(&rest, '\0');
        any_bytes(w.history, w.state, state_text, rest.p ? rest : STR(""));
    } else if (size > 0) {
        scratch_write(w.history, STR(""));
        scratch_write(w.state, STR(""));
        w.fd = open(w.history, O_WRONLY | O_APPEND | O_CLOEXEC);
        demand(w.fd >= 0);
        live(&w, data + 1, size - 1);
        close(w.fd);
    }
    free(w.history);
    free(w.state);
    return 0;
}
