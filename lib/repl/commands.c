#include "repl/commands.h"

#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/utf8.h"
#include "chathist/chat/template.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"
#include "chathist/cli/output.h"
#include "chathist/history/session.h"

/* The table of commands. */
static const struct repl_command *first_command(void);

const struct repl_command *repl_find_command(struct str name)
{
    for (const struct repl_command *c = first_command(); c->name; c++)
        if (c->run && str_eq_c(name, c->name))
            return c;
    return NULL;
}

/* A longer word is similar to no command. */
#define NAME_MAX_LEN 16

/* Returns the command that was probably meant, or NULL. */
static const struct repl_command *nearest_command(struct str name)
{
    char typed[NAME_MAX_LEN + 1] = {0};
    struct nearest meant = {.typed = typed};

    if (name.n > NAME_MAX_LEN)
        return NULL;
    memcpy(typed, name.p, name.n);
    for (const struct repl_command *c = first_command(); c->name; c++) {
        if (c->run && str_starts(str_of(c->name), name))
            return c;
        if (c->run)
            nearest_offer(&meant, c->name);
    }
    return meant.name ? repl_find_command(str_of(meant.name)) : NULL;
}

void repl_report_unknown(struct str name)
{
    const struct repl_command *nearest = nearest_command(name);
    int n = (int)name.n;

    if (nearest)
        warnf("unknown command '/%.*s': did you mean /%s? ('//%.*s' sends it)", n, name.p,
              nearest->name, n, name.p);
    else
        warnf("unknown command '/%.*s' (/help lists them, '//%.*s' sends it)", n, name.p, n,
              name.p);
}

/* ---- help ---- */

/* The column of explanations in /help. */
#define HELP_COLUMN 18

static void help_line(struct repl *r, const struct repl_command *c)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    size_t width;

    buf_addf(&line, "/%s %s", c->name, c->args);
    width = line.len;
    out_style(r->out, STYLE_BOLD);
    out_raw(r->out, buf_str(&line));
    out_style(r->out, STYLE_NONE);
    buf_clear(&line);
    buf_addf(&line, "%*s  %s\n", width < HELP_COLUMN ? (int)(HELP_COLUMN - width) : 0, "", c->help);
    out_raw(r->out, buf_str(&line));
    buf_release(&line);
}

static void help_title(struct repl *r, const char *title)
{
    out_style(r->out, STYLE_DIM);
    out_raw(r->out, str_of(title));
    out_style(r->out, STYLE_NONE);
    out_byte(r->out, '\n');
}

static void help(struct repl *r, struct str name)
{
    const struct repl_command *c = first_command();

    if (str_starts(name, STR("/")))
        name = (struct str){name.p + 1, name.n - 1};
    if (name.n > 0) {
        c = repl_find_command(name);
        if (c)
            help_line(r, c);
        else
            warnf("there is no command '/%.*s'", (int)name.n, name.p);
        return;
    }
    for (; c->name; c++)
        if (c->run)
            help_line(r, c);
        else
            help_title(r, c->name);
    out_raw(
        r->out,
        STR("\nAlt-Enter, Shift-Enter or Ctrl-J begins a new line, as \\ does at the end of one;\n"
            "\"\"\" begins and ends a text of several. //x sends /x.\n"
            "exit, quit and :q alone leave, help and ? show this; a blank before them sends them.\n"
            "Ctrl-C stops an answer, Ctrl-R looks for an earlier prompt.\n"));
}

static void leave(struct repl *r, struct str rest)
{
    (void)rest;
    r->leave = true;
}

/* ---- completion ---- */

/* The maximum number of sessions that are offered, the newest. */
#define SESSIONS_MAX 40
/* The minimum length of an end of an id that names it (history/session). */
#define SUFFIX_LEAST 4

static void offer_commands(struct line_words *words, struct str typed, const char *before)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    for (const struct repl_command *c = first_command(); c->name; c++) {
        if (!c->run)
            continue;
        buf_clear(&name);
        buf_addf(&name, "%s%s", before, c->name);
        line_offer(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

static void offer_names(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    offer_commands(words, typed, "");
}

static void offer_all(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    line_offer(words, typed, STR("all"));
}

static void offer_sessions(struct repl *r, struct line_words *words, struct str typed)
{
    struct session_list list;
    size_t i;

    if (session_list_newest(&list, &r->chat->history, SIZE_MAX, NULL) < 0)
        return;
    for (i = 0; i < list.count && words->all.count < SESSIONS_MAX; i++)
        line_offer(words, typed, list.at[i].id);
    if (words->all.count == 0 && typed.n >= SUFFIX_LEAST)
        for (i = 0; i < list.count && words->all.count < SESSIONS_MAX; i++)
            if (str_ends(list.at[i].id, typed))
                words_add(&words->all, list.at[i].id);
    session_list_release(&list);
}

struct offered {
    struct line_words *words;
    struct str typed;
};

static void offer_preset(void *arg, const char *kind, const char *name)
{
    struct offered *o = arg;

    (void)kind;
    line_offer(o->words, o->typed, str_of(name));
}

static void offer_presets(const char *what, struct line_words *words, struct str typed)
{
    struct offered o = {words, typed};

    if (!memchr(typed.p, ' ', typed.n))
        presets_each(what, offer_preset, &o, NULL);
}

static void offer_personas(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    offer_presets("personas", words, typed);
}

static void offer_templates(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    offer_presets("templates", words, typed);
}

/* Offers the fields of a query for its last word, and the roles. */
static void offer_fields(struct repl *r, struct line_words *words, struct str typed)
{
    static const char *const fields[] = {"role:user", "role:assistant", "role:system", "role:tool",
                                         "since:",    "until:",         "model:",      "file:",
                                         "tool:",     "title:",         "session:",    "id:"};
    size_t n = typed.n;

    (void)r;
    while (n > 0 && typed.p[n - 1] != ' ')
        n--;
    words->from += n;
    typed = str_skip(typed, n);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        line_offer(words, typed, str_of(fields[i]));
}

static bool is_dot(struct str path)
{
    return str_eq_c(path, "./") || str_eq_c(path, "../") || str_ends(path, STR("/./")) ||
           str_ends(path, STR("/../"));
}

/* Offers files whose names begin with the typed text; hidden ones after a typed dot. */
static void offer_files(struct repl *r, struct line_words *words, struct str typed)
{
    struct buf pattern = BUF_INIT(BUF_SMALL), word = BUF_INIT(BUF_SMALL);
    char *path = repl_file_of(r, typed);
    bool below_home = str_starts(typed, STR("~/")) && path[0] != '~';
    size_t home = below_home ? strlen(path) - typed.n + 1 : 0;
    glob_t found;

    for (const char *c = path; *c; c++)
        buf_addf(&pattern, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
    buf_add_byte(&pattern, '*');
    if (glob(buf_c(&pattern), GLOB_MARK, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            buf_clear(&word);
            buf_addf(&word, "%s%s", below_home ? "~" : "", found.gl_pathv[i] + home);
            if (!is_dot(buf_str(&word)))
                words_add(&words->all, buf_str(&word));
        }
        globfree(&found);
    }
    free(path);
    buf_release(&pattern);
    buf_release(&word);
}

void repl_complete(void *arg, struct str before, struct line_words *words)
{
    struct repl *r = arg;
    const struct repl_command *command;
    struct str typed = before, name;

    if (!str_starts(before, STR("/")) || str_find(before, STR("\n")))
        return;
    name = str_cut(&typed, ' ');
    if (!typed.p) {
        offer_commands(words, before, "/");
        return;
    }
    command = repl_find_command((struct str){name.p + 1, name.n - 1});
    if (!command || !command->offer)
        return;
    while (str_starts(typed, STR(" ")) ||
           (command->run == repl_save && str_starts(typed, STR("-a ")))) {
        size_t n = typed.p[0] == ' ' ? 1 : 3;

        typed = str_skip(typed, n);
    }
    words->from = (size_t)(typed.p - before.p);
    command->offer(r, words, typed);
}

/* ---- the table ---- */

static const struct repl_command *first_command(void)
{
    static const struct repl_command commands[] = {
        {"Sessions", "", "", NULL, NULL},
        {"new", "[SYSTEM]", "start a new session", repl_new, NULL},
        {"load", "SESSION|N", "continue a past session, or the Nth of the last list", repl_load,
         offer_sessions},
        {"search", "QUERY", "search all messages, the newest first", repl_search, offer_fields},
        {"browse", "[QUERY]", "look through the history, and continue a session or take a message",
         repl_browse, offer_fields},
        {"sessions", "[N|all]", "list the sessions, the last used first", repl_sessions, offer_all},
        {"title", "[TEXT]", "name this session (-: no name), or show its name", repl_title, NULL},
        {"info", "", "describe this session: place, model, tokens, cost", repl_info, NULL},
        {"Prompts and answers", "", "", NULL, NULL},
        {"regenerate", "", "answer the last prompt again", repl_regenerate, NULL},
        {"edit", "[TEXT]", "replace the last prompt, without TEXT in the editor", repl_edit, NULL},
        {"template", "[NAME [TEXT]]", "send a prompt made of a template, or list them",
         repl_template, offer_templates},
        {"copy", "", "copy the last answer to the clipboard", repl_copy, NULL},
        {"file", "[FILE|-]", "attach a file to the next prompt (-: none), or list them", repl_file,
         offer_files},
        {"save", "[-a] FILE", "write the conversation, or (-a) the last answer, to a file",
         repl_save, offer_files},
        {"Settings", "", "", NULL, NULL},
        {"model", "[NAME]", "ask another model, or list them", repl_model, repl_offer_models},
        {"system", "[TEXT]", "set the system prompt (\"\": none), or show it", repl_system, NULL},
        {"role", "[PERSONA]", "take a persona from now on, or list them", repl_role,
         offer_personas},
        {"set", "[KEY VALUE]", "change a setting or option (-: none), or list them", repl_set,
         repl_offer_settings},
        {"tools", "", "list the tools that the model may call", repl_tools, NULL},
        {"This program", "", "", NULL, NULL},
        {"help", "[COMMAND]", "list the commands", help, offer_names},
        {"quit", "", "leave, as Ctrl-D does", leave, NULL},
        {"exit", "", "leave, as Ctrl-D does", leave, NULL},
        {0},
    };

    return commands;
}
