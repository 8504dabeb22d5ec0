#include <fnmatch.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "convert/import_script_state.h"

/* The names of Lua values in the registry. */
#define QUERIES "queries"
#define SOURCES "sources"

/* ---- databases ---- */

void script_push_row(lua_State *L, sqlite3_stmt *r)
{
    struct state *s = state_of(L);
    int count = sqlite3_column_count(r);
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += (size_t)sqlite3_column_bytes(r, i);
    s->work += WORK_PER_BYTE * (int64_t)bytes;
    if (s->limit < MEMORY_MIN + MEMORY_PER_BYTE * bytes)
        s->limit = MEMORY_MIN + MEMORY_PER_BYTE * bytes;
    lua_createtable(L, 0, count);
    for (int i = 0; i < count; i++) {
        const void *text = sqlite3_column_text(r, i);

        if (!text)
            continue;
        if (sqlite3_column_type(r, i) == SQLITE_INTEGER)
            lua_pushinteger(L, sqlite3_column_int64(r, i));
        else
            lua_pushlstring(L, text, (size_t)sqlite3_column_bytes(r, i));
        lua_setfield(L, -2, sqlite3_column_name(r, i));
    }
}

/* A statement, NULL if its tables do not exist, and whether a loop uses it. */
struct rows {
    sqlite3_stmt *statement;
    bool busy;
};

static int free_rows(lua_State *L)
{
    struct rows *r = lua_touserdata(L, 1);

    sqlite3_finalize(r->statement);
    r->statement = NULL;
    return 0;
}

/* Called at the end of a loop. */
static int close_rows(lua_State *L)
{
    struct rows *r = lua_touserdata(L, 1);

    sqlite3_reset(r->statement);
    r->busy = false;
    return 0;
}

static int next_row(lua_State *L)
{
    struct state *s = state_with_source(L);
    struct rows *r = lua_touserdata(L, lua_upvalueindex(1));
    int got = database_step(s->database, r->statement, s->failure);

    state_check_result(L, got);
    s->work += WORK_STEP; /* the work for all rows is bounded by that of the database */
    if (got == 0)
        return 0;
    script_push_row(L, r->statement);
    return 1;
}

/* Pushes a statement that no loop uses: the state keeps them. */
static struct rows *push_rows(lua_State *L, const char *sql)
{
    struct state *s = state_with_source(L);
    struct rows *r;

    if (!s->database)
        (void)luaL_error(L, "the file is no database");
    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, QUERIES);
    if (lua_getfield(L, -1, sql) == LUA_TUSERDATA) {
        r = lua_touserdata(L, -1);
        if (!r->busy)
            return r;
    }
    lua_pop(L, 1);
    r = lua_newuserdatauv(L, sizeof *r, 0);
    *r = (struct rows){0};
    luaL_setmetatable(L, QUERIES);
    state_check_result(L, database_query(s->database, sql, &r->statement, s->failure));
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, sql);
    return r;
}

/* rows(sql, argument, ...): an iterator over the rows, tables of their columns; without rows if a
 * table of the query does not exist. */
static int script_rows(lua_State *L)
{
    int last = lua_gettop(L);
    struct rows *r = push_rows(L, luaL_checkstring(L, 1));

    r->busy = true;
    for (int i = 2; i <= last; i++) {
        struct str text = value_text(L, i);

        if (lua_isinteger(L, i))
            sqlite3_bind_int64(r->statement, i - 1, lua_tointeger(L, i));
        else
            sqlite3_bind_text(r->statement, i - 1, text.p, (int)text.n, SQLITE_TRANSIENT);
    }
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, next_row, 1);
    lua_insert(L, -2);
    lua_pushnil(L);
    lua_insert(L, -2);
    lua_pushnil(L);
    lua_insert(L, -2);
    return 4;
}

/* has_column(table, column) */
static int script_has_column(lua_State *L)
{
    struct state *s = state_with_source(L);

    lua_pushboolean(L, s->database && database_has_column(s->database, luaL_checkstring(L, 1),
                                                          luaL_checkstring(L, 2)));
    return 1;
}

/* ---- files beside the one that is read ---- */

static int close_source(lua_State *L)
{
    struct source *other = lua_touserdata(L, 1);

    if (other->name)
        source_close(other);
    other->name = NULL;
    return 0;
}

static int next_beside(lua_State *L)
{
    struct source *other = lua_touserdata(L, lua_upvalueindex(1));
    struct str text, value;
    struct err e = ERR_INIT;

    while (other->name && source_value(other, &text, &e) > 0) {
        if (utf8_valid(text) < text.n || !json_check(text, &value, NULL))
            continue;
        /* The work for all values is bounded by the size of the file. */
        state_of(L)->work += WORK_STEP + WORK_PER_BYTE * (int64_t)text.n;
        /* The text stays as long as its value. */
        lua_pushlstring(L, value.p, value.n);
        lua_pushcfunction(L, value_parse);
        lua_insert(L, -2);
        lua_call(L, 1, 1);
        return 1;
    }
    err_release(&e);
    return 0;
}

/* Returns whether the head declares files of this name: a name, or a pattern in which `*` is a part
 * of one. */
static bool may_read_beside(const struct words *declared, const char *name)
{
    for (size_t i = 0; i < declared->count; i++)
        if (fnmatch(declared->at[i], name, FNM_PATHNAME | FNM_PERIOD) == 0)
            return true;
    return false;
}

/* beside(name): an iterator over the JSON values of a file that the script declares, in the
 * directory of the file or one of those above it; without such a file it has none. */
static int script_beside(lua_State *L)
{
    struct state *s = state_with_source(L);
    struct source *other;
    const char *name = luaL_checkstring(L, 1);
    char *path;

    if (!may_read_beside(&s->importer->beside, name))
        return luaL_error(L, "the head has no beside = '%s'", name);
    other = lua_newuserdatauv(L, sizeof *other, 1);
    *other = (struct source){0};
    luaL_setmetatable(L, SOURCES);
    path = source_find_beside(s->source, name);
    if (path) {
        lua_pushstring(L, path);
        free(path);
        if (source_open(other, lua_tostring(L, -1), NULL) < 0)
            other->name = NULL;
        else if (str_ends(str_of(name), STR(".yaml")))
            source_from_yaml(other);
        lua_setiuservalue(L, -2, 1); /* it keeps the path, which is its name */
    }
    lua_pushcclosure(L, next_beside, 1);
    return 1;
}

/* Makes the metatable of a kind of value that has to be closed. */
static void add_metatable(lua_State *L, const char *name, const luaL_Reg *methods)
{
    (void)luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 1);
}

void script_open_files(lua_State *L)
{
    static const luaL_Reg functions[] = {{"rows", script_rows},
                                         {"has_column", script_has_column},
                                         {"beside", script_beside},
                                         {NULL, NULL}};
    static const luaL_Reg query[] = {{"__gc", free_rows}, {"__close", close_rows}, {NULL, NULL}};
    static const luaL_Reg source[] = {{"__gc", close_source}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
    add_metatable(L, QUERIES, query);
    add_metatable(L, SOURCES, source);
}
