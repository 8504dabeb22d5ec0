#include "convert/import_script_state.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

#include "chathist/base/memory.h"

/* ---- limits ---- */

/* Lua's allocator: counts the bytes that are in use. */
static void *allocate(void *arg, void *p, size_t old, size_t n)
{
    struct state *s = arg;
    void *q = NULL;

    old = p ? old : 0;
    if (n > old && s->used + (n - old) > s->limit)
        return NULL;
    if (n == 0)
        free(p);
    else
        q = realloc(p, n);
    if (q || n == 0)
        s->used = s->used - old + n;
    return q;
}

int state_push_head(lua_State *L)
{
    return lua_rawgetp(L, LUA_REGISTRYINDEX, state_of(L)->importer);
}

/* Raises the error of a record that costs too much. */
static int too_much_work(lua_State *L, int level)
{
    state_of(L)->overworked = true;
    luaL_where(L, level);
    lua_pushliteral(L, "too many instructions for one record");
    lua_concat(L, 2);
    return lua_error(L);
}

static void count_work(lua_State *L, lua_Debug *at)
{
    (void)at;
    if ((state_of(L)->work -= WORK_STEP) < 0)
        (void)too_much_work(L, 0);
}

void state_charge(lua_State *L, size_t bytes)
{
    if ((state_of(L)->work -= (int64_t)(bytes / 16) + 1) < 0)
        (void)too_much_work(L, 1);
}

void state_begin_record(struct state *s, size_t n)
{
    s->work = WORK_MIN + WORK_PER_BYTE * (int64_t)n;
    s->limit = MEMORY_MIN + MEMORY_PER_BYTE * n;
    s->epoch++;
    s->outcome = NOTHING;
}

/* ---- for the functions of scripts ---- */

struct state *state_of(lua_State *L)
{
    return *(struct state **)lua_getextraspace(L);
}

struct state *state_with_source(lua_State *L)
{
    struct state *s = state_of(L);

    if (!s->source)
        (void)luaL_error(L, "facts are given while a record is read");
    return s;
}

void state_check_result(lua_State *L, int result)
{
    struct state *s = state_of(L);

    if (result < 0) {
        s->failed = true;
        (void)luaL_error(L, "the import failed");
    }
}

/* ---- the state ---- */

/* importer{…}: the head of the script. */
static int script_importer(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, state_of(L)->importer);
    return 0;
}

/* Removes the functions that reach outside, that could catch or outrun a limit, and those whose
 * cost does not depend on the number of instructions. */
static void remove_functions(lua_State *L)
{
    static const char *const names[][12] = {
        {"_G", "collectgarbage", "dofile", "getmetatable", "load", "loadfile", "pcall", "print",
         "setmetatable", "warn", "xpcall", NULL},
        {"string", "dump", "find", "gmatch", "gsub", "match", "pack", "packsize", "rep", "unpack",
         NULL},
        {"table", "move", NULL},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)lua_getglobal(L, names[i][0]);
        for (size_t j = 1; names[i][j]; j++) {
            lua_pushnil(L);
            lua_setfield(L, -2, names[i][j]);
        }
        lua_pop(L, 1);
    }
}

/* Opens the libraries. */
static int prepare(lua_State *L)
{
    static const luaL_Reg libraries[] = {{"_G", luaopen_base},
                                         {"string", luaopen_string},
                                         {"table", luaopen_table},
                                         {"math", luaopen_math},
                                         {"utf8", luaopen_utf8}};

    for (size_t n = 0; n < sizeof libraries / sizeof *libraries; n++)
        luaL_requiref(L, libraries[n].name, libraries[n].func, 1);
    remove_functions(L);
    lua_pushglobaltable(L);
    lua_pushcfunction(L, script_importer);
    lua_setfield(L, -2, "importer");
    script_open_values(L);
    script_open_facts(L);
    script_open_files(L);
    return 0;
}

/* Runs the script, which leaves its head. Its globals are its own. */
static int run_script(lua_State *L)
{
    const struct importer *i = state_of(L)->importer;
    char chunk[80];

    (void)snprintf(chunk, sizeof chunk, "@%s.lua", i->name);
    if (luaL_loadbufferx(L, buf_c(&i->text), i->text.len, chunk, "t") != LUA_OK)
        return lua_error(L);
    lua_newtable(L);
    lua_newtable(L);
    lua_pushglobaltable(L);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    (void)lua_setupvalue(L, -2, 1);
    lua_call(L, 0, 0);
    if (state_push_head(L) != LUA_TTABLE)
        return luaL_error(L, "%s.lua: no importer{...}", i->name);
    if (state_of(L)->facts.source && lua_getfield(L, -1, "harness") == LUA_TSTRING)
        state_of(L)->facts.source->harness = value_push_regex(L, value_text(L, -1));
    return 0;
}

int state_call(struct state *s, int results, struct err *e)
{
    int status;

    s->failure = e;
    s->failed = s->overworked = false;
    status = lua_pcall(s->L, 0, results, 0);
    if (status == LUA_OK)
        return 0;
    if (s->failed)
        return -1;
    if (status == LUA_ERRMEM) {
        lua_pop(s->L, 1);
        s->limit += BUF_SMALL; /* for the message */
        lua_pushfstring(s->L, "%s.lua: more memory than a record may use", s->importer->name);
    } else if (!lua_isstring(s->L, -1)) {
        lua_pop(s->L, 1);
        lua_pushfstring(s->L, "%s.lua: an error without a message", s->importer->name);
    }
    if (s->overworked && s->source)
        return err_set(e, ERR_FAILURE, "cannot import '%s:%zu': %s", s->source->name,
                       s->source->number, lua_tostring(s->L, -1));
    return 1;
}

void state_free(struct state *s)
{
    if (!s)
        return;
    if (s->L)
        lua_close(s->L);
    if (s->facts.source)
        facts_release(&s->facts);
    database_close(s->database);
    fact_release(&s->fact);
    buf_release(&s->scratch);
    buf_release(&s->other);
    free(s->members);
    free(s);
}

struct state *state_new(struct err *e)
{
    struct state *s = mem_zalloc(sizeof *s);

    s->limit = MEMORY_MIN;
    buf_init(&s->scratch, SOURCE_VALUE_MAX);
    buf_init(&s->other, SOURCE_VALUE_MAX);
    fact_init(&s->fact);
    s->L = lua_newstate(allocate, s);
    if (!s->L)
        mem_exhausted();
    *(struct state **)lua_getextraspace(s->L) = s;
    state_begin_record(s, 0);
    lua_sethook(s->L, count_work, LUA_MASKCOUNT, WORK_STEP);
    /* Values die with their record. */
    (void)lua_gc(s->L, LUA_GCGEN, 0, 0);
    lua_pushcfunction(s->L, prepare);
    if (state_call(s, 0, e) != 0)
        mem_exhausted();
    return s;
}

int state_load(struct state *s, const struct importer *i, struct err *e)
{
    int result;

    s->importer = i;
    state_begin_record(s, 0);
    lua_pushcfunction(s->L, run_script);
    result = state_call(s, 0, e);
    if (result != 0)
        (void)err_set(e, ERR_FAILURE, "cannot use '%s': %s", i->path, lua_tostring(s->L, -1));
    lua_settop(s->L, 0);
    return result == 0 ? 0 : -1;
}
