#include <stdint.h>
#include <lauxlib.h>
#include <string.h>

#include "convert/import_script_state.h"

/* The most folders above a file of which a script gets the names. */
#define FOLDERS_MAX 32
/* Fewer tokens are taken without a look at the digits. */
#define TOKENS_MAX (INT64_C(1) << 40)

/* Reads a table of counts at the top of the stack. With `apart`, the input does not include the
 * tokens of the cache. */
static void read_usage(lua_State *L, struct usage *u)
{
    static const char *const kinds[USAGE_KINDS] = {
        [USAGE_INPUT] = "input",
        [USAGE_OUTPUT] = "output",
        [USAGE_CACHE_READ] = "cache_read",
        [USAGE_CACHE_WRITE] = "cache_write",
        [USAGE_REASONING] = "reasoning",
        [USAGE_COST] = "cost",
        [USAGE_LONG_CACHE_WRITE] = "long_cache_write",
    };
    struct state *s = state_of(L);

    usage_init(u);
    if (lua_type(L, -1) != LUA_TTABLE)
        return;
    for (int i = 0; i < USAGE_KINDS; i++) {
        if (lua_getfield(L, -1, kinds[i]) != LUA_TNUMBER) {
            lua_pop(L, 1);
            continue;
        }
        if (lua_isinteger(L, -1) && i != USAGE_COST && lua_tointeger(L, -1) >= 0 &&
            lua_tointeger(L, -1) < TOKENS_MAX) {
            u->at[i] = lua_tointeger(L, -1);
        } else {
            buf_clear(&s->other);
            value_add_number(L, -1, &s->other);
            usage_read(u, (enum usage_kind)i, buf_str(&s->other));
        }
        lua_pop(L, 1);
    }
    (void)lua_getfield(L, -1, "apart");
    if (lua_toboolean(L, -1) && u->at[USAGE_INPUT] >= 0)
        u->at[USAGE_INPUT] += usage_cached(u);
    lua_pop(L, 1);
}

/* Adds a call, the table at the top of the stack. */
static void take_call(lua_State *L, struct import_message *m)
{
    struct state *s = state_of(L);

    if (lua_type(L, -1) != LUA_TTABLE)
        (void)luaL_error(L, "a call is no table");
    (void)lua_getfield(L, -1, "args");
    buf_clear(&s->other);
    if (!lua_isnil(L, -1))
        value_add_json(L, lua_gettop(L), &s->other);
    (void)lua_getfield(L, -2, "id");
    (void)lua_getfield(L, -3, "name");
    import_add_call(m, value_text(L, -2), value_text(L, -1), buf_str(&s->other));
    m->calls.overflow = m->calls.overflow || s->other.overflow;
    lua_pop(L, 3);
}

static void take_calls(lua_State *L, struct import_message *m)
{
    if (lua_getfield(L, 1, "calls") == LUA_TTABLE)
        for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; i++) {
            state_charge(L, 64);
            take_call(L, m);
            lua_pop(L, 1);
        }
    lua_settop(L, 1);
}

/* Adds a text or a content block, the value at the top of the stack. */
static void take_part(lua_State *L, struct import_message *m)
{
    struct value *v = value_test(L, -1);

    import_add_text(m, value_text(L, -1));
    if (v)
        import_add_block(m, v->json);
}

/* Takes the content: a text, content blocks in JSON, or a table of texts and blocks. */
static void take_content(lua_State *L, struct fact *fact)
{
    struct value *v;
    int type = lua_getfield(L, 1, "content");

    v = value_test(L, -1);
    if (v && json_type(v->json) == JSON_ARRAY)
        fact->content = v->json;
    else if (type != LUA_TTABLE)
        take_part(L, &fact->message);
    else
        for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; i++) {
            state_charge(L, 16);
            take_part(L, &fact->message);
            lua_pop(L, 1);
        }
    lua_settop(L, 1);
}

/* Takes the sources: an array of objects in JSON, or a table of tables. */
static void take_citations(lua_State *L, struct import_message *m)
{
    struct state *s = state_of(L);

    if (lua_getfield(L, 1, "citations") != LUA_TNIL) {
        buf_clear(&s->other);
        value_add_json(L, 2, &s->other);
        import_add_citations(m, buf_str(&s->other));
    }
    lua_settop(L, 1);
}

static enum role take_role(lua_State *L)
{
    struct state *s = state_of(L);
    enum role role;

    buf_clear(&s->other);
    value_take_text(L, "role", &s->other);
    role = role_of(buf_str(&s->other));
    if (role == ROLE_OTHER)
        (void)luaL_error(L, "no known 'role'");
    return role;
}

/* message{…}: see docs/importers.md. */
static int script_message(lua_State *L)
{
    struct state *s = state_with_source(L);
    struct fact *fact = &s->fact;
    struct import_message *m = &fact->message;
    const struct {
        const char *name;
        struct buf *to;
    } texts[] = {{"session", &fact->session}, {"agent", &fact->agent},    {"id", &fact->id},
                 {"parent", &fact->parent},   {"response", &m->response}, {"model", &m->model},
                 {"provider", &m->provider},  {"result_of", &m->call_id}, {"copy_of", &m->copy_of}};

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    fact_clear(fact);
    s->source->yielded = false;
    m->role = take_role(L);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        value_take_text(L, texts[i].name, texts[i].to);
    buf_clear(&s->other);
    value_take_text(L, "time", &s->other);
    import_set_time(m, buf_str(&s->other));
    buf_clear(&s->other);
    value_take_text(L, "finish", &s->other);
    if (s->other.len > 0)
        import_set_finish(m, buf_str(&s->other));
    value_take_text(L, "cwd", &s->source->cwd);
    value_take_text(L, "branch", &s->source->branch);
    fact->joins = value_take_flag(L, "joins");
    m->failed = value_take_flag(L, "failed");
    if (lua_getfield(L, 1, "images") == LUA_TNUMBER)
        m->images = lua_tointeger(L, -1) > 0 ? lua_tointeger(L, -1) : 0;
    lua_settop(L, 1);
    take_citations(L, m);
    (void)lua_getfield(L, 1, "usage");
    read_usage(L, &m->usage);
    lua_settop(L, 1);
    take_content(L, fact);
    take_calls(L, m);
    state_check_result(L, facts_message(&s->facts, fact, s->failure));
    if (s->source->yielded)
        s->outcome = DONE;
    else if (s->outcome == NOTHING)
        s->outcome = NO_MESSAGE;
    return 0;
}

/* session{…}: for the messages that follow. What the table does not have stays. */
static int script_session(lua_State *L)
{
    struct state *s = state_with_source(L);

    luaL_checktype(L, 1, LUA_TTABLE);
    value_take_text(L, "id", &s->facts.session);
    value_take_text(L, "agent", &s->facts.agent);
    value_take_text(L, "suffix", &s->facts.suffix);
    value_take_text(L, "model", &s->facts.model);
    value_take_text(L, "provider", &s->facts.provider);
    value_take_text(L, "cwd", &s->source->cwd);
    value_take_text(L, "branch", &s->source->branch);
    s->outcome = DONE;
    return 0;
}

static int script_title(lua_State *L)
{
    struct state *s = state_with_source(L);
    struct buf *const field[] = {&s->fact.session, &s->fact.id, &s->fact.parent};

    luaL_checktype(L, 1, LUA_TTABLE);
    fact_clear(&s->fact);
    value_take_text(L, "session", field[0]);
    value_take_text(L, "text", field[1]);
    value_take_text(L, "of", field[2]);
    facts_title(&s->facts, buf_str(field[0]), buf_str(field[1]), buf_str(field[2]),
                value_take_flag(L, "given") ? 2
                : s->fact.parent.len > 0    ? 0
                                            : 1);
    s->outcome = DONE;
    return 0;
}

static int script_usage(lua_State *L)
{
    struct state *s = state_with_source(L);
    struct usage u;

    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    read_usage(L, &u);
    facts_usage(&s->facts, &u);
    s->outcome = DONE;
    return 0;
}

static int script_rewind(lua_State *L)
{
    struct state *s = state_with_source(L);

    state_check_result(L, facts_rewind(&s->facts, luaL_optinteger(L, 1, 0), s->failure));
    s->outcome = DONE;
    return 0;
}

/* link(id, parent): a record follows another one. */
static int script_link(lua_State *L)
{
    facts_link(&state_with_source(L)->facts, value_text(L, 1), value_text(L, 2));
    return 0;
}

/* ignored(kind): the record is left out; a kind that the script does not ignore is named. */
static int script_ignored(lua_State *L)
{
    struct state *s = state_with_source(L);
    const struct words *known = &s->importer->ignores;
    bool is = lua_isnoneornil(L, 1);
    const char *kind = lua_tostring(L, 1); /* NULL for all but texts */

    for (size_t i = 0; kind && i < known->count && !is; i++)
        is = strcmp(known->at[i], kind) == 0;
    if (!is)
        import_bad(s->source, "a record of an unknown type");
    s->outcome = DONE;
    return 0;
}

/* bad(reason): the record cannot be imported. */
static int script_bad(lua_State *L)
{
    struct state *s = state_with_source(L);

    import_bad(s->source, luaL_checkstring(L, 1));
    s->outcome = DONE;
    return 0;
}

/* left(id): a record that is not shown any more. */
static int script_left(lua_State *L)
{
    facts_left(&state_with_source(L)->facts, value_check_text(L, 1));
    return 0;
}

/* stem(): the name of the file without its ending. */
static int script_stem(lua_State *L)
{
    value_push_text(L, source_stem(state_with_source(L)->source));
    return 1;
}

/* scanning(): whether the file was found by a scan, which leaves out exports of these programs. */
static int script_scanning(lua_State *L)
{
    lua_pushboolean(L, import_is_scan(state_with_source(L)->source));
    return 1;
}

/* folder(): the name of the folder of the file. folder(2) is the one above it, and so on. */
static int script_folder(lua_State *L)
{
    struct state *s = state_with_source(L);
    lua_Integer n = luaL_optinteger(L, 1, 1);

    buf_clear(&s->other);
    source_add_folder(s->source, n > 0 && n <= FOLDERS_MAX ? (int)n : 1, &s->other);
    value_push_text(L, buf_str(&s->other));
    return 1;
}

/* number(): of the record. number(n) sets it, for the names of the parts of a document. */
static int script_number(lua_State *L)
{
    struct source *source = state_with_source(L)->source;

    if (lua_isinteger(L, 1))
        source->number = (size_t)lua_tointeger(L, 1);
    lua_pushinteger(L, (lua_Integer)source->number);
    return 1;
}

void script_open_facts(lua_State *L)
{
    static const luaL_Reg functions[] = {{"message", script_message},   {"session", script_session},
                                         {"title", script_title},       {"usage", script_usage},
                                         {"rewind", script_rewind},     {"link", script_link},
                                         {"ignored", script_ignored},   {"bad", script_bad},
                                         {"left", script_left},         {"stem", script_stem},
                                         {"scanning", script_scanning}, {"folder", script_folder},
                                         {"number", script_number},     {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
