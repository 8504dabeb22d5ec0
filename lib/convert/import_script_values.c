#include <inttypes.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "convert/import_script_state.h"

/* The names of Lua values in the registry. */
static const char VALUE[] = "value";
#define REGEXES "regexes"

/* ---- strings ---- */

struct str value_text(lua_State *L, int i)
{
    struct str text = STR_NONE;

    if (lua_type(L, i) == LUA_TSTRING)
        text.p = lua_tolstring(L, i, &text.n);
    return text;
}

struct str value_check_text(lua_State *L, int i)
{
    luaL_checktype(L, i, LUA_TSTRING);
    return value_text(L, i);
}

void value_push_text(lua_State *L, struct str text)
{
    lua_pushlstring(L, text.p ? text.p : "", text.n);
}

/* ---- JSON values ---- */

struct member {
    struct str key; /* raw */
    struct str value;
};

static void push_value(lua_State *L, struct str json, uint64_t epoch)
{
    struct value *v = lua_newuserdatauv(L, sizeof *v, 2);

    *v = (struct value){.json = json, .epoch = epoch};
    (void)lua_rawgetp(L, LUA_REGISTRYINDEX, VALUE);
    lua_setmetatable(L, -2);
}

void value_push(lua_State *L, struct str json, uint64_t epoch, int of)
{
    struct state *s = state_of(L);
    int64_t n;

    switch (json_type(json)) {
    case JSON_STRING:
        value_push_text(L, json_text(json, &s->scratch));
        break;
    case JSON_BOOL:
        lua_pushboolean(L, json_is_true(json));
        break;
    case JSON_NUMBER:
        if (json_int(json, &n)) {
            lua_pushinteger(L, n);
        } else {
            buf_set(&s->scratch, json);
            if (lua_stringtonumber(L, buf_c(&s->scratch)) == 0)
                lua_pushnil(L);
        }
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        push_value(L, json, epoch);
        if (of != 0 && epoch == 0) {
            lua_getiuservalue(L, of, 2);
            lua_setiuservalue(L, -2, 2);
        }
        break;
    default:
        lua_pushnil(L);
    }
}

static struct value *valid_value(lua_State *L, struct value *v)
{
    if (v->epoch != 0 && v->epoch != state_of(L)->epoch)
        (void)luaL_error(L, "a value of an earlier record is used");
    return v;
}

struct value *value_test(lua_State *L, int i)
{
    bool is = false;

    if (lua_type(L, i) == LUA_TUSERDATA && lua_getmetatable(L, i)) {
        is = lua_topointer(L, -1) == state_of(L)->metatable;
        lua_pop(L, 1);
    }
    return is ? valid_value(L, lua_touserdata(L, i)) : NULL;
}

/* Returns the value of which a method is called: scripts cannot call it with anything else. */
static struct value *own_value(lua_State *L)
{
    return valid_value(L, lua_touserdata(L, 1));
}

/* Makes the array of members of an object at stack index 1, so that the object is read once. */
static void index_members(lua_State *L, struct value *v)
{
    struct state *s = state_of(L);
    struct json_iter it = json_iter(v->json);
    size_t count = 0;

    state_charge(L, v->json.n);
    while (json_next(&it)) {
        s->members = mem_grow(s->members, &s->members_cap, count + 1, sizeof *s->members);
        s->members[count++] = (struct member){it.key, it.value};
    }
    v->members = lua_newuserdatauv(L, (count + 1) * sizeof *v->members, 0);
    for (size_t i = 0; i < count; i++)
        v->members[i] = s->members[i];
    v->count = count;
    lua_setiuservalue(L, 1, 1);
}

static struct str member_of(const struct value *v, const char *key, size_t n)
{
    for (size_t i = v->count; i-- > 0;) {
        struct str raw = v->members[i].key;

        if (raw.n == n ? memcmp(raw.p, key, n) == 0
                       : raw.n > n && memchr(raw.p, '\\', raw.n) && json_key_is(raw, key))
            return v->members[i].value;
    }
    return STR_NONE;
}

static int value_index(lua_State *L)
{
    struct value *v = own_value(L);
    struct str found = STR_NONE;
    size_t n;

    if (lua_isinteger(L, 2) && json_type(v->json) == JSON_ARRAY) {
        lua_Integer at = lua_tointeger(L, 2);

        state_charge(L, v->json.n);
        found = at > 0 ? json_at(v->json, (size_t)at - 1) : STR_NONE;
    } else if (lua_type(L, 2) == LUA_TSTRING && json_type(v->json) == JSON_OBJECT) {
        const char *key = lua_tolstring(L, 2, &n);

        if (!v->members)
            index_members(L, v);
        state_charge(L, v->count * 16);
        found = member_of(v, key, n);
    }
    value_push(L, found, v->epoch, 1);
    return 1;
}

static int value_length(lua_State *L)
{
    struct value *v = own_value(L);
    lua_Integer n = 0;

    state_charge(L, v->json.n);
    for (struct json_iter it = json_iter(v->json); json_next(&it);)
        n++;
    lua_pushinteger(L, n);
    return 1;
}

static int next_element(lua_State *L)
{
    struct json_iter *it = lua_touserdata(L, lua_upvalueindex(2));
    struct value *v = valid_value(L, lua_touserdata(L, lua_upvalueindex(1)));
    struct state *s = state_of(L);

    if (!json_next(it))
        return 0;
    state_charge(L, it->value.n);
    value_push(L, it->value, v->epoch, lua_upvalueindex(1));
    if (lua_isnil(L, -1))
        lua_pushboolean(L, false); /* nil would end the loop */
    if (!it->object)
        return 1;
    buf_clear(&s->other);
    json_decode_body(it->key, &s->other);
    value_push_text(L, buf_str(&s->other));
    return 2;
}

static int no_element(lua_State *L)
{
    (void)L;
    return 0;
}

/* each(value): an iterator over the elements of an array, or the values and keys of an object;
 * anything else has none. */
static int script_each(lua_State *L)
{
    struct value *v = value_test(L, 1);
    struct json_iter *it;

    if (!v) {
        lua_pushcfunction(L, no_element);
        return 1;
    }
    lua_settop(L, 1);
    it = lua_newuserdatauv(L, sizeof *it, 0);
    *it = json_iter(v->json);
    lua_pushcclosure(L, next_element, 2);
    return 1;
}

/* A member of nil, of a number or of a boolean is nil. */
static int no_member(lua_State *L)
{
    lua_pushnil(L);
    return 1;
}

/* ---- Lua values as JSON ---- */

void value_add_number(lua_State *L, int i, struct buf *out)
{
    double number = lua_tonumber(L, i);
    char text[40];

    if (lua_isinteger(L, i)) {
        buf_addf(out, "%lld", lua_tointeger(L, i));
        return;
    }
    if (!isfinite(number))
        number = 0;
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    buf_add_c(out, text);
}

static void add_json(lua_State *L, int i, struct buf *out, int depth)
{
    struct value *v = value_test(L, i);

    if (depth > 20)
        (void)luaL_error(L, "a table is too deep");
    luaL_checkstack(L, 4, NULL);
    if (v) {
        buf_add_str(out, v->json);
        return;
    }
    switch (lua_type(L, i)) {
    case LUA_TSTRING:
        json_add_string(out, value_text(L, i));
        break;
    case LUA_TNUMBER:
        value_add_number(L, i, out);
        break;
    case LUA_TBOOLEAN:
        buf_add_c(out, lua_toboolean(L, i) ? "true" : "false");
        break;
    case LUA_TTABLE: {
        bool list = lua_rawlen(L, i) > 0;
        size_t count = 0;

        buf_add_byte(out, list ? '[' : '{');
        for (lua_pushnil(L); lua_next(L, i) != 0; lua_pop(L, 1)) {
            if (count++ > 0)
                buf_add_byte(out, ',');
            if (!list && lua_type(L, -2) == LUA_TSTRING) {
                json_add_string(out, value_text(L, -2));
                buf_add_byte(out, ':');
            } else if (!list) {
                (void)luaL_error(L, "a key of an object is no string");
            }
            add_json(L, lua_gettop(L), out, depth + 1);
        }
        buf_add_byte(out, list ? ']' : '}');
        break;
    }
    default:
        buf_add_c(out, "null");
    }
}

void value_add_json(lua_State *L, int i, struct buf *out)
{
    add_json(L, i, out, 0);
}

/* type(value): as in Lua, and "array" or "object" for a JSON value. */
static int script_type(lua_State *L)
{
    const struct value *v = value_test(L, 1);

    if (v)
        lua_pushstring(L, json_type(v->json) == JSON_ARRAY ? "array" : "object");
    else
        lua_pushstring(L, luaL_typename(L, 1));
    return 1;
}

/* has(value, key): whether an object has a member of that name, which may be null. */
static int script_has(lua_State *L)
{
    struct value *v = value_test(L, 1);
    const char *key = luaL_checkstring(L, 2);

    if (v)
        state_charge(L, v->json.n);
    lua_pushboolean(L, v && json_get(v->json, key).p != NULL);
    return 1;
}

/* raw(value): its JSON. */
static int script_raw(lua_State *L)
{
    struct state *s = state_of(L);

    lua_settop(L, 1);
    buf_clear(&s->other);
    value_add_json(L, 1, &s->other);
    state_charge(L, s->other.len);
    value_push_text(L, buf_str(&s->other));
    return 1;
}

int value_parse(lua_State *L)
{
    struct str text = value_text(L, 1), value;

    state_charge(L, text.n);
    if (utf8_valid(text) < text.n || !json_check(text, &value, NULL))
        return 0;
    value_push(L, value, 0, 0);
    if (lua_type(L, -1) == LUA_TUSERDATA) {
        lua_pushvalue(L, 1);
        lua_setiuservalue(L, -2, 2);
    }
    return 1;
}

/* fingerprint(value or text): eight hexadecimal digits of a hash of its bytes. */
static int script_fingerprint(lua_State *L)
{
    const struct value *v = value_test(L, 1);
    struct str text = v ? v->json : value_check_text(L, 1);
    char digits[9];

    state_charge(L, text.n);
    (void)snprintf(digits, sizeof digits, "%08" PRIx32, (uint32_t)hash_fnv(text));
    lua_pushstring(L, digits);
    return 1;
}

/* ---- fields of a table ---- */

void value_take_text(lua_State *L, const char *name, struct buf *to)
{
    int type = lua_getfield(L, 1, name);

    if (type == LUA_TSTRING) {
        buf_set(to, value_text(L, -1));
    } else if (type == LUA_TNUMBER) {
        buf_clear(to);
        value_add_number(L, -1, to);
    }
    lua_pop(L, 1);
}

bool value_take_flag(lua_State *L, const char *name)
{
    bool is;

    (void)lua_getfield(L, 1, name);
    is = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    return is;
}

/* ---- texts ---- */

static int free_regex(lua_State *L)
{
    regex_free(*(struct regex **)lua_touserdata(L, 1));
    return 0;
}

struct regex *value_push_regex(lua_State *L, struct str pattern)
{
    struct err e = ERR_INIT;
    struct regex **r;

    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, REGEXES);
    value_push_text(L, pattern);
    if (lua_gettable(L, -2) == LUA_TUSERDATA) {
        lua_remove(L, -2);
        return *(struct regex **)lua_touserdata(L, -1);
    }
    lua_pop(L, 1);
    r = lua_newuserdatauv(L, sizeof(struct regex *), 0);
    *r = regex_new_bytes(pattern, &e);
    if (!*r) {
        lua_pushstring(L, err_text(&e));
        err_release(&e);
        (void)luaL_error(L, "%s", lua_tostring(L, -1));
    }
    luaL_setmetatable(L, REGEXES);
    value_push_text(L, pattern);
    lua_pushvalue(L, -2);
    lua_settable(L, -4);
    lua_remove(L, -2);
    return *r;
}

/* Finds a match, and raises an error if it costs too much. */
static bool find(lua_State *L, struct regex *r, struct str text, size_t from, size_t *at, size_t *n)
{
    int found;

    state_charge(L, text.n - from);
    found = regex_find(r, text, from, false, at, n, NULL);
    if (found < 0)
        (void)luaL_error(L, "the regular expression takes too long");
    return found > 0;
}

/* match(text, regex): the first match, or nil, also without a text. */
static int script_match(lua_State *L)
{
    struct str text = value_text(L, 1);
    struct regex *r = value_push_regex(L, value_check_text(L, 2));
    size_t at, n;

    if (!text.p || !find(L, r, text, 0, &at, &n))
        return 0;
    lua_pushlstring(L, text.p + at, n);
    return 1;
}

/* replace(text, regex, by): the text with each match replaced. */
static int script_replace(lua_State *L)
{
    struct state *s = state_of(L);
    struct str text = value_check_text(L, 1), by = value_check_text(L, 3);
    struct regex *r = value_push_regex(L, value_check_text(L, 2));
    size_t from = 0, at, n;

    buf_clear(&s->other);
    while (from < text.n && find(L, r, text, from, &at, &n)) {
        buf_add(&s->other, text.p + from, at - from);
        buf_add_str(&s->other, by);
        from = at + n;
    }
    buf_add_str(&s->other, str_skip(text, from));
    if (s->other.overflow)
        return luaL_error(L, "a text is too long");
    value_push_text(L, buf_str(&s->other));
    return 1;
}

static int script_starts(lua_State *L)
{
    struct str text = value_text(L, 1), begin = value_check_text(L, 2);

    lua_pushboolean(L, text.p && str_starts(text, begin));
    return 1;
}

void script_open_values(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"each", script_each},     {"raw", script_raw},
        {"json", value_parse},     {"fingerprint", script_fingerprint},
        {"match", script_match},   {"replace", script_replace},
        {"starts", script_starts}, {"type", script_type},
        {"has", script_has},       {NULL, NULL}};
    static const luaL_Reg value[] = {
        {"__index", value_index}, {"__len", value_length}, {NULL, NULL}};
    static const luaL_Reg regex[] = {{"__gc", free_regex}, {NULL, NULL}};
    static const luaL_Reg nothing[] = {{"__index", no_member}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
    (void)luaL_newmetatable(L, REGEXES);
    luaL_setfuncs(L, regex, 0);
    lua_newtable(L);
    luaL_setfuncs(L, value, 0);
    state_of(L)->metatable = lua_topointer(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, VALUE);
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_pushboolean(L, true);
    lua_pushinteger(L, 0);
    for (int n = 0; n < 3; n++) {
        lua_newtable(L);
        luaL_setfuncs(L, nothing, 0);
        lua_setmetatable(L, -2);
        lua_pop(L, 1);
    }
}
