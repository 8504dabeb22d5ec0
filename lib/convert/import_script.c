#include "convert/import_script.h"

#include <lauxlib.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/utf8.h"
#include "convert/import_database.h"
#include "convert/import_exchange.h"
#include "convert/import_script_state.h"
#include "convert/import_yaml.h"

/* The place of the session's id in the command that continues it. */
#define RESUMED "{session}"

static const char *const form_names[] = {"lines", "elements", "document", "yaml",
                                         "text",  "sqlite",   NULL};

struct importers {
    struct importer **at;
    size_t count, cap;
    struct state *heads; /* has run all scripts, to recognise files */
};

/* ---- the head of a script ---- */

/* Reads a table of names, or one name. */
static void take_names(lua_State *L, const char *field, struct words *names)
{
    if (lua_getfield(L, -1, field) == LUA_TSTRING)
        words_add(names, value_text(L, -1));
    else if (lua_istable(L, -1))
        for (lua_Integer i = 1; lua_geti(L, -1, i) == LUA_TSTRING; i++) {
            words_add(names, value_text(L, -1));
            lua_pop(L, 1);
        }
    lua_settop(L, 1);
}

/* Reads the head. Returns 0, or -1 with *e set. */
static int take_head(struct importer *i, lua_State *L, struct err *e)
{
    const char *wrong = NULL;
    int form = 0;

    (void)state_push_head(L);
    if (lua_getfield(L, 1, "name") != LUA_TSTRING || strcmp(lua_tostring(L, -1), i->name) != 0)
        wrong = "'name' is not the name of the file";
    else if (lua_getfield(L, 1, "form") != LUA_TSTRING)
        wrong = "no 'form'";
    while (!wrong && form_names[form] && strcmp(lua_tostring(L, -1), form_names[form]) != 0)
        form++;
    if (!wrong && !form_names[form])
        wrong = "'form' is none of lines, elements, document, yaml, text, sqlite";
    i->form = (enum form)form;
    if (!wrong && lua_getfield(L, 1, "is") != LUA_TFUNCTION)
        wrong = "no function 'is'";
    if (!wrong && lua_getfield(L, 1, form == FORM_SQLITE ? "queries" : "record") !=
                      (form == FORM_SQLITE ? LUA_TTABLE : LUA_TFUNCTION))
        wrong = form == FORM_SQLITE ? "no table 'queries'" : "no function 'record'";
    lua_settop(L, 1);
    i->unique = value_take_flag(L, "unique");
    i->format.copies = value_take_flag(L, "copies");
    i->tree = value_take_flag(L, "tree");
    i->whole = value_take_flag(L, "whole");
    i->grows = value_take_flag(L, "grows");
    i->last = value_take_flag(L, "last");
    value_take_text(L, "erases", &i->erases);
    value_take_text(L, "resume", &i->resume);
    take_names(L, "places", &i->places);
    take_names(L, "beside", &i->beside);
    take_names(L, "ignores", &i->ignores);
    take_names(L, "exchange", &i->exchange);
    take_names(L, "tables", &i->tables);
    lua_settop(L, 0);
    if (!wrong && i->resume.len > 0 && !str_find(buf_str(&i->resume), STR(RESUMED)))
        wrong = "'resume' has no " RESUMED;
    return wrong ? err_set(e, ERR_FAILURE, "cannot use '%s': %s", i->path, wrong) : 0;
}

static void importer_free(struct importer *i)
{
    free(i->name);
    free(i->path);
    buf_release(&i->erases);
    buf_release(&i->text);
    buf_release(&i->resume);
    words_release(&i->places);
    words_release(&i->beside);
    words_release(&i->ignores);
    words_release(&i->exchange);
    words_release(&i->tables);
    free(i);
}

struct importers *importers_new(void)
{
    return mem_zalloc(sizeof(struct importers));
}

void importers_free(struct importers *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->count; i++)
        importer_free(all->at[i]);
    free(all->at);
    state_free(all->heads);
    free(all);
}

static const struct importer *importer_named(const struct importers *all, struct str name)
{
    for (size_t i = 0; i < all->count; i++)
        if (str_eq_c(name, all->at[i]->name))
            return all->at[i];
    return NULL;
}

const struct import_format *importers_named(const struct importers *all, const char *name)
{
    const struct importer *found = importer_named(all, str_of(name));

    if (strcmp(name, import_lines.name) == 0)
        return &import_lines;
    return found ? &found->format : NULL;
}

const char *importers_erases(const struct importers *all, const char *name)
{
    const struct importer *found = importer_named(all, str_of(name));

    return found && found->erases.len > 0 ? buf_c(&found->erases) : NULL;
}

void importers_names(const struct importers *all, struct buf *out)
{
    buf_add_c(out, import_lines.name);
    for (size_t i = 0; i < all->count; i++)
        buf_addf(out, ", %s", all->at[i]->name);
}

bool importers_resume(const struct importers *all, struct str session, struct buf *command)
{
    struct str name, id, form;
    bool whole = import_foreign_id(session, &name, &id);
    const struct importer *found = importer_named(all, name);
    const char *hole = found ? str_find(buf_str(&found->resume), STR(RESUMED)) : NULL;
    char *word;

    if (!whole || !hole || memchr(id.p, '\0', id.n))
        return false;
    form = buf_str(&found->resume);
    word = mem_copy(id.p, id.n);
    buf_add(command, form.p, (size_t)(hole - form.p));
    words_quote(command, word);
    buf_add_str(command, str_skip(form, (size_t)(hole - form.p) + strlen(RESUMED)));
    free(word);
    return true;
}

const char *importers_place(const struct importers *all, const struct import_format *only,
                            size_t number, const struct words **beside)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct words *places = &all->at[i]->places;

        if (only && only != &all->at[i]->format)
            continue;
        *beside = &all->at[i]->beside;
        if (number < places->count)
            return places->at[number];
        number -= places->count;
    }
    return NULL;
}

/* ---- recognising a file ---- */

/* Pushes what `is` or `record` takes: a row, a text, a JSON value, or for a database the set of its
 * tables. */
static void push_subject(lua_State *L)
{
    struct state *s = state_of(L);
    const struct words *tables = &s->importer->tables;

    if (s->database && !s->source) {
        lua_newtable(L);
        for (size_t i = 0; i < tables->count; i++) {
            lua_pushboolean(L, database_has_table(s->database, tables->at[i]));
            lua_setfield(L, -2, tables->at[i]);
        }
    } else if (s->row) {
        script_push_row(L, s->row);
    } else if (s->line.p) {
        value_push_text(L, s->line);
    } else {
        value_push(L, s->json, s->epoch, 0);
    }
}

/* Calls a function of the head, which need not have it. */
static int call_head(lua_State *L)
{
    (void)state_push_head(L);
    if (lua_getfield(L, -1, state_of(L)->function) != LUA_TFUNCTION)
        return 0;
    push_subject(L);
    lua_call(L, 1, 1);
    return 1;
}

/* Asks the script whether it reads a file with this record or line. Returns 1 or 0, or -1 with *e
 * set. */
static int ask_pattern(struct state *s, struct str json, struct str line, struct err *e)
{
    lua_State *L = s->L;
    int result;

    state_begin_record(s, json.n + line.n);
    s->json = json;
    s->line = line;
    s->function = "is";
    lua_pushcfunction(L, call_head);
    result = state_call(s, 1, e);
    if (result == 0)
        result = lua_toboolean(L, -1) ? 1 : 0;
    else if (result > 0)
        result =
            err_set(e, ERR_FAILURE, "cannot use '%s': %s", s->importer->path, lua_tostring(L, -1));
    lua_settop(L, 0);
    return result;
}

static int ask_lines(struct state *s, struct str head, struct err *e)
{
    struct buf scratch = BUF_INIT(2 * SOURCE_HEAD);
    struct str value;
    int result = 0;

    for (int n = 0; n < SOURCE_LINES_SEEN && head.n > 0 && result == 0; n++)
        if (source_head_object(&head, &scratch, &value))
            result = ask_pattern(s, value, STR_NONE, e);
    buf_release(&scratch);
    return result;
}

static int ask_database(struct state *s, struct source *source, struct err *e)
{
    const struct words *tables = &s->importer->tables;
    int result;

    if (database_open(source, tables->at, tables->count, &s->database, e) < 0)
        return -1;
    result = ask_pattern(s, STR_NONE, STR_NONE, e);
    database_close(s->database);
    s->database = NULL;
    return result;
}

/* Returns 1 if the script reads files that begin like this, 0 if not, or -1 with *e set. */
static int recognises(struct state *s, const struct importer *i, struct source *source,
                      struct str head, struct err *e)
{
    bool json = str_starts(str_trim(head), STR("{")) || str_starts(str_trim(head), STR("["));
    struct buf scratch = BUF_INIT(2 * SOURCE_HEAD);
    struct str value;
    int result = 0;

    s->importer = i;
    if (database_is(head))
        return i->form == FORM_SQLITE ? ask_database(s, source, e) : 0;
    switch (i->form) {
    case FORM_LINES:
        result = json ? ask_lines(s, head, e) : 0;
        break;
    case FORM_ELEMENTS:
    case FORM_DOCUMENT:
        if (json && source_head_value(head, &scratch, &value))
            result = ask_pattern(s,
                                 i->form == FORM_ELEMENTS && json_type(value) == JSON_ARRAY
                                     ? json_at(value, 0)
                                     : value,
                                 STR_NONE, e);
        break;
    case FORM_YAML:
    case FORM_TEXT:
        result = json ? 0 : ask_pattern(s, STR_NONE, head, e);
        break;
    default:
        break;
    }
    buf_release(&scratch);
    return result;
}

int importers_recognise(const struct importers *all, struct source *s, struct str head,
                        const struct import_format **found, struct err *e)
{
    *found = import_lines.is(head) ? &import_lines : NULL;
    /* The scripts that take many files come last. */
    for (int last = 0; last <= 1 && !*found; last++)
        for (size_t i = 0; i < all->count && !*found; i++) {
            int is = all->at[i]->last == last ? recognises(all->heads, all->at[i], s, head, e) : 0;

            if (is < 0)
                return -1;
            if (is > 0)
                *found = &all->at[i]->format;
        }
    return 0;
}

/* ---- reading a file ---- */

/* Runs a function of the head for one record. Returns 0, or -1 with *e set to end the import of the
 * file. */
static int run(struct state *s, const char *function, struct err *e)
{
    bool is_record = s->json.p || s->line.p || s->row;
    int result;

    state_begin_record(s, s->json.n + s->line.n);
    s->source->lost = false;
    s->function = function;
    lua_pushcfunction(s->L, call_head);
    result = state_call(s, 0, e);
    if (result < 0)
        return -1;
    if (result > 0)
        import_bad(s->source, lua_tostring(s->L, -1));
    else if (s->source->lost || (s->outcome != DONE && import_has_text(s->source, s->json, false)))
        import_bad(s->source, "its text is of an unknown kind");
    else if (s->outcome != DONE && is_record && !import_is_ignored(s->source, s->json))
        s->source->unread++;
    lua_settop(s->L, 0);
    return s->importer->form == FORM_ELEMENTS ? facts_end(&s->facts, e) : 0;
}

static int take_json(void *arg, struct str json, struct err *e)
{
    struct state *s = arg;

    s->json = json;
    return run(s, "record", e);
}

static int read_text(struct state *s, struct err *e)
{
    int got;

    while ((got = source_line(s->source, &s->line, e)) > 0) {
        if (!s->line.p)
            import_bad(s->source, "longer than 64 MiB");
        else if (run(s, "record", e) < 0)
            return -1;
    }
    return got;
}

/* Names the session after the first prompt and its answer, if the script asks for that. */
static int name_session(struct state *s, struct str json, struct str head, struct err *e)
{
    const struct words *n = &s->importer->exchange;

    return n->count == 0 ? 0
                         : exchange_name_session(s->source, s->importer->name, n->at, n->count,
                                                 json, head, &s->facts.session, e);
}

static int read_document(struct state *s, struct err *e)
{
    struct buf repaired = BUF_INIT(4 * SOURCE_VALUE_MAX), json = BUF_INIT(SOURCE_VALUE_MAX);
    const char *wrong = NULL;
    struct str text, value;
    int result = source_rest(s->source, &text, e);

    if (result == 0) {
        utf8_add_repaired(&repaired, text);
        value = buf_str(&repaired);
        s->source->number = 1;
        if (s->importer->form == FORM_YAML) {
            wrong = import_yaml_to_json(buf_str(&repaired), &json, &s->source->number);
            value = buf_str(&json);
        }
        if (!wrong && !json_check(value, &value, NULL))
            wrong = "not JSON";
        if (wrong)
            import_bad(s->source, wrong);
        else
            result = name_session(s, value, text, e);
        s->source->number = 1;
        if (!wrong && result == 0)
            result = take_json(s, value, e);
    }
    buf_release(&repaired);
    buf_release(&json);
    return result;
}

/* Pushes the next query, whose function takes its rows, or nil. */
static int push_query(lua_State *L)
{
    (void)state_push_head(L);
    (void)lua_getfield(L, 1, "queries");
    (void)lua_geti(L, 2, ++state_of(L)->query);
    (void)lua_geti(L, 3, 2);
    lua_setfield(L, 1, "record");
    (void)lua_geti(L, 3, 1);
    return 1;
}

static int read_script_query(struct state *s, const char *sql, struct err *e)
{
    int got = database_query(s->database, sql, &s->row, e);

    while (got >= 0 && (got = database_step(s->database, s->row, e)) > 0) {
        s->source->number++;
        got = run(s, "record", e);
    }
    sqlite3_finalize(s->row);
    s->row = NULL;
    return got < 0 ? -1 : 0;
}

static int read_database(struct state *s, struct err *e)
{
    const struct importer *i = s->importer;
    struct source *source = s->source;
    int result = 0;

    s->source = NULL;
    result = ask_database(s, source, e);
    s->source = source;
    if (result == 0)
        return err_set(e, ERR_ABSENT, "cannot import '%s': it is no database of %s", source->name,
                       i->name);
    if (result < 0 || database_open(s->source, i->tables.at, i->tables.count, &s->database, e) < 0)
        return -1;
    result = database_check(s->database, e);
    while (result == 0) {
        char *sql;

        state_begin_record(s, 0);
        lua_pushcfunction(s->L, push_query);
        if (state_call(s, 1, e) != 0)
            return err_set(e, ERR_FAILURE, "cannot use '%s': %s", i->path, lua_tostring(s->L, -1));
        sql = mem_text(lua_tostring(s->L, -1));
        lua_settop(s->L, 0);
        if (!sql)
            break;
        result = read_script_query(s, sql, e);
        free(sql);
    }
    return result == 0 ? database_unchanged(s->database, e) : -1;
}

static int read_source(struct state *s, struct err *e)
{
    source_next *next = s->importer->form == FORM_LINES ? source_line : source_value;
    struct str head;

    switch (s->importer->form) {
    case FORM_TEXT:
        return read_text(s, e);
    case FORM_SQLITE:
        return read_database(s, e);
    case FORM_DOCUMENT:
    case FORM_YAML:
        return read_document(s, e);
    default:
        if (source_head(s->source, &head, e) < 0 || name_session(s, STR_NONE, head, e) < 0)
            return -1;
        if (exchange_has_lines(head, s->importer->exchange.at, s->importer->exchange.count))
            next = source_line;
        return import_each_object(s->source, next, take_json, s, e);
    }
}

/* A file in a place that is relative was written in the directory in which the place is. */
static void set_directory(const struct importer *i, struct source *s)
{
    char *path = s->path ? path_real(s->path, NULL) : NULL;

    for (size_t n = 0; path && n < i->places.count; n++) {
        struct str place = str_of(i->places.at[n]), whole = str_of(path);

        if (strchr("/~$", place.p[0]) || !str_ends(whole, place) || whole.n < place.n + 2 ||
            whole.p[whole.n - place.n - 1] != '/')
            continue;
        whole.n -= place.n + 1;
        buf_set(&s->cwd, whole);
    }
    free(path);
}

static int read_script(const struct import_format *f, struct source *source, struct err *e)
{
    const struct importer *i = (const struct importer *)f;
    struct state *s = state_new(e);
    int result;

    facts_init(&s->facts, source, i->name);
    s->facts.tree = i->tree;
    s->fact.message.source = source;
    source->ignores = i->ignores.count > 0 ? (const char *const *)i->ignores.at : NULL;
    source->unique = i->unique;
    source->whole = i->whole;
    if (source->point && i->grows)
        source->partial = source->point->offset > 0 && source_seek(source, source->point) &&
                          facts_continue(&s->facts, buf_str(&source->point->state));
    set_directory(i, source);
    result = state_load(s, i, e);
    s->source = source;
    if (result == 0)
        result = read_source(s, e);
    if (result == 0) {
        s->json = s->line = STR_NONE;
        result = run(s, "finish", e);
    }
    if (result == 0) {
        facts_wait(&s->facts);
        result = facts_end(&s->facts, e);
        if (result == 0)
            result = facts_show_again(&s->facts, e);
    }
    if (source->point) {
        facts_point(&s->facts, source->point);
        source->point->offset = result == 0 && i->grows ? source->point->offset : 0;
    }
    source->unread += s->facts.titles_count;
    if (result == 0 && s->facts.given == 0)
        import_nothing(source);
    state_free(s);
    return result;
}

int importers_add(struct importers *all, const char *name, const char *path, struct str text,
                  struct err *e)
{
    struct importer *i;

    if (importers_named(all, name))
        return 0;
    i = mem_zalloc(sizeof *i);
    i->name = mem_text(name);
    i->path = mem_text(path);
    i->format = (struct import_format){.name = i->name, .read = read_script};
    buf_init(&i->text, BUF_SMALL);
    buf_init(&i->resume, BUF_SMALL);
    buf_init(&i->erases, BUF_SMALL);
    buf_add_str(&i->text, text);
    if (!all->heads)
        all->heads = state_new(e);
    if (state_load(all->heads, i, e) < 0 || take_head(i, all->heads->L, e) < 0) {
        importer_free(i);
        return -1;
    }
    all->at = mem_grow(all->at, &all->cap, all->count + 1, sizeof(struct importer *));
    all->at[all->count++] = i;
    return 0;
}
