#include "chathist/chat/consent.h"

#include <string.h>
#include <unistd.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"
#include "chathist/cli/confirm.h"

/* So many characters of the arguments are shown at first. */
#define SHOWN 1500

/* ---- without a question ---- */

bool consent_matches(const char *patterns, struct str name)
{
    struct str rest = str_of(patterns);
    struct str pattern;

    while ((pattern = str_word(&rest)).p) {
        bool open = str_ends(pattern, STR("*"));

        if (open ? str_starts(name, (struct str){pattern.p, pattern.n - 1}) : str_eq(pattern, name))
            return true;
    }
    return false;
}

static bool is_always(const struct consent *c, struct str name)
{
    struct str rest = buf_str(&c->always);

    while (rest.n > 0)
        if (str_eq(str_cut(&rest, '\n'), name))
            return true;
    return false;
}

/* ---- the question ---- */

static void add_call(struct buf *out, struct str name, struct str args, bool whole)
{
    struct buf text = BUF_INIT(BUF_LINE), visible = BUF_INIT(8 * BUF_LINE);
    struct str shown;

    json_add_compact(&text, args);
    json_add_all_visible(&visible, buf_str(&text));
    shown = whole ? buf_str(&visible) : utf8_first(buf_str(&visible), SHOWN);
    buf_addf(out, "the model calls %.*s\n", (int)name.n, name.p);
    buf_add_str(out, shown);
    if (shown.n < visible.len)
        buf_addf(out, "\n... (%zu more bytes; s shows all)", visible.len - shown.n);
    buf_release(&text);
    buf_release(&visible);
}

/* The line that is answered names the tool. Reverse video sets it off from all output of models,
 * whose control characters are made visible. */
static void add_question(struct buf *out, struct str name)
{
    const char *term = config_env("TERM");
    bool plain = !term || strcmp(term, "dumb") == 0;

    buf_addf(out, "%srun '%.*s'?%s [y]es, [n]o, [a]lways (this tool, this run): ",
             plain ? "" : "\033[7m", (int)name.n, name.p, plain ? "" : "\033[0m");
}

static enum consent_answer ask_on(struct consent *c, int tty, struct str name, struct str args)
{
    struct buf text = BUF_INIT(9 * BUF_LINE), line = BUF_INIT(CONFIRM_MAX_BYTES);
    enum consent_answer answer = CONSENT_NOBODY;
    bool call = true, whole = false;

    while (answer == CONSENT_NOBODY) {
        int came;

        buf_clear(&text);
        if (call)
            add_call(&text, name, args, whole);
        buf_add_c(&text, call ? "\n" : "");
        add_question(&text, name);
        confirm_say(tty, buf_str(&text));
        came = confirm_line(tty, c->cancel_fd, &line);
        call = whole = came > 0 && confirm_letter(&line) == 's';
        if (came < 0)
            answer = CONSENT_CANCELLED;
        else if (came == 0 || confirm_letter(&line) == 'n')
            answer = CONSENT_NO;
        else if (confirm_letter(&line) == 'y' || confirm_letter(&line) == 'a')
            answer = CONSENT_YES;
        if (came <= 0)
            confirm_say(tty, STR("\n"));
    }
    if (answer == CONSENT_YES && confirm_letter(&line) == 'a') {
        buf_add_str(&c->always, name);
        buf_add_byte(&c->always, '\n');
    }
    buf_release(&text);
    buf_release(&line);
    return answer;
}

enum consent_answer consent_ask(struct consent *c, struct str name, struct str args)
{
    enum consent_answer answer;
    int tty;

    if (c->all || consent_matches(c->allowed, name) || is_always(c, name))
        return CONSENT_GIVEN;
    tty = confirm_open();
    if (tty < 0)
        return CONSENT_NOBODY;
    if (c->lend)
        c->lend(c->lend_arg, true);
    answer = ask_on(c, tty, name, args);
    if (c->lend)
        c->lend(c->lend_arg, false);
    close(tty);
    return answer;
}

void consent_forget(struct consent *c)
{
    buf_clear(&c->always);
}

void consent_release(struct consent *c)
{
    buf_release(&c->always);
}
