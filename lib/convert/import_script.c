#include "convert/import_script.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "convert/import_database.h"
#include "convert/import_exchange.h"
#include "convert/import_facts.h"
#include "convert/import_yaml.h"

/* A record may cost this many instructions and bytes of memory, and these many more for each byte
 * that it has. Functions of the core count as an instruction for every 16 bytes that they read. */
#define WORK_MIN INT64_C(2000000)
#define WORK_PER_BYTE 16
#define WORK_STEP 1000
#define MEMORY_MIN ((size_t)64 << 20)
#define MEMORY_PER_BYTE 4
/* The most folders above a file of which a script gets the names. */
#define FOLDERS_MAX 32
/* Fewer tokens are taken without a look at the digits. */
#define TOKENS_MAX (INT64_C(1) << 40)

/* The names of Lua values in the registry. */
#define REGEXES "regexes"
#define QUERIES "queries"

/* The place of the session's id in the command that continues it. */
#define RESUMED "{session}"

enum form { FORM_LINES, FORM_ELEMENTS, FORM_DOCUMENT, FORM_YAML, FORM_TEXT, FORM_SQLITE };
static const char *const form_names[] = {"lines", "elements", "document", "yaml",
                                         "text",  "sqlite",   NULL};

static const char VALUE[] = "value";

struct state;

struct importer {
    struct import_format format; /* first: a pointer to it is one to the importer */
    char *name;
    char *path; /* of the script */
    struct buf text;
    struct buf resume; /* the command that continues a session, or empty */
    enum form form;
    bool unique, tree, whole, grows, last;
    struct buf erases; /* when the program erases conversations, or empty */
    struct words places, ignores, exchange, tables;
};

struct importers {
    struct importer **at;
    size_t count, cap;
    struct state *heads; /* has run all scripts, to recognise files */
};

/* What a script has done with a record. */
enum outcome {
    NOTHING,
    NO_MESSAGE, /* a message without content */
    DONE,
};

/* A Lua state that runs a script, or the heads of all of them. */
struct state {
    lua_State *L;
    const struct importer *importer; /* that runs now */
    struct source *source;           /* that is read, or NULL */
    struct facts facts;              /* of the source */
    struct fact fact;
    struct database *database;
    const void *metatable; /* of JSON values */
    size_t used, limit;    /* bytes of memory */
    int64_t work;          /* instructions that are left */
    bool overworked;
    uint64_t epoch; /* JSON values of an earlier record are void */
    enum outcome outcome;
    const char *function;  /* of the head that is called */
    struct str json, line; /* the record */
    sqlite3_stmt *row;     /* or the row */
    lua_Integer query;     /* of the row: its number */
    struct err *failure;   /* where an error goes that ends the import of the file */
    bool failed;
    struct buf scratch, other;
    struct member *members; /* while an object is indexed */
    size_t members_cap;
};

/* ---- limits ---- */

static struct state *state_of(lua_State *L)
{
    return *(struct state **)lua_getextraspace(L);
}

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

/* Pushes the head of the script that runs, and returns its type. */
static int push_head(lua_State *L)
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

/* Counts the bytes that a function of the core reads. */
static void charge(lua_State *L, size_t bytes)
{
    if ((state_of(L)->work -= (int64_t)(bytes / 16) + 1) < 0)
        (void)too_much_work(L, 1);
}

/* Sets the limits for a record of n bytes. */
static void begin_record(struct state *s, size_t n)
{
    s->work = WORK_MIN + WORK_PER_BYTE * (int64_t)n;
    s->limit = MEMORY_MIN + MEMORY_PER_BYTE * n;
    s->epoch++;
    s->outcome = NOTHING;
}

/* Returns the string at a stack index, or STR_NONE if it is not a string. */
static struct str text_at(lua_State *L, int i)
{
    struct str text = STR_NONE;

    if (lua_type(L, i) == LUA_TSTRING)
        text.p = lua_tolstring(L, i, &text.n);
    return text;
}

static struct str check_text(lua_State *L, int i)
{
    luaL_checktype(L, i, LUA_TSTRING);
    return text_at(L, i);
}

static void push_text(lua_State *L, struct str text)
{
    lua_pushlstring(L, text.p ? text.p : "", text.n);
}

/* ---- JSON values ---- */

struct member {
    struct str key; /* raw */
    struct str value;
};

/* A JSON object or array. Its user value is the array of its members, or the text that it borrows
 * from. */
struct value {
    struct str json;
    uint64_t epoch; /* 0: it keeps its text alive */
    struct member *members;
    size_t count;
};

static void push_value(lua_State *L, struct str json, uint64_t epoch)
{
    struct value *v = lua_newuserdatauv(L, sizeof *v, 2);

    *v = (struct value){.json = json, .epoch = epoch};
    (void)lua_rawgetp(L, LUA_REGISTRYINDEX, VALUE);
    lua_setmetatable(L, -2);
}

/* Pushes a string, number or boolean as a value of Lua, an object or array as a JSON value, and nil
 * for null. `of` is the index of the value that this one is a part of, or 0. */
static void push_json(lua_State *L, struct str json, uint64_t epoch, int of)
{
    struct state *s = state_of(L);
    int64_t n;

    switch (json_type(json)) {
    case JSON_STRING:
        push_text(L, json_text(json, &s->scratch));
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

/* Returns the JSON value at a stack index, or NULL if it is not one. */
static struct value *test_value(lua_State *L, int i)
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

    charge(L, v->json.n);
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

        charge(L, v->json.n);
        found = at > 0 ? json_at(v->json, (size_t)at - 1) : STR_NONE;
    } else if (lua_type(L, 2) == LUA_TSTRING && json_type(v->json) == JSON_OBJECT) {
        const char *key = lua_tolstring(L, 2, &n);

        if (!v->members)
            index_members(L, v);
        charge(L, v->count * 16);
        found = member_of(v, key, n);
    }
    push_json(L, found, v->epoch, 1);
    return 1;
}

static int value_length(lua_State *L)
{
    struct value *v = own_value(L);
    lua_Integer n = 0;

    charge(L, v->json.n);
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
    charge(L, it->value.n);
    push_json(L, it->value, v->epoch, lua_upvalueindex(1));
    if (lua_isnil(L, -1))
        lua_pushboolean(L, false); /* nil would end the loop */
    if (!it->object)
        return 1;
    buf_clear(&s->other);
    json_decode_body(it->key, &s->other);
    push_text(L, buf_str(&s->other));
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
    struct value *v = test_value(L, 1);
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

/* Appends the shortest decimal that is this number, as other programs write it. */
static void add_number(lua_State *L, int i, struct buf *out)
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

static void add_value(lua_State *L, int i, struct buf *out, int depth)
{
    struct value *v = test_value(L, i);

    if (depth > 20)
        (void)luaL_error(L, "a table is too deep");
    luaL_checkstack(L, 4, NULL);
    if (v) {
        buf_add_str(out, v->json);
        return;
    }
    switch (lua_type(L, i)) {
    case LUA_TSTRING:
        json_add_string(out, text_at(L, i));
        break;
    case LUA_TNUMBER:
        add_number(L, i, out);
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
                json_add_string(out, text_at(L, -2));
                buf_add_byte(out, ':');
            } else if (!list) {
                (void)luaL_error(L, "a key of an object is no string");
            }
            add_value(L, lua_gettop(L), out, depth + 1);
        }
        buf_add_byte(out, list ? ']' : '}');
        break;
    }
    default:
        buf_add_c(out, "null");
    }
}

/* type(value): as in Lua, and "array" or "object" for a JSON value. */
static int script_type(lua_State *L)
{
    const struct value *v = test_value(L, 1);

    if (v)
        lua_pushstring(L, json_type(v->json) == JSON_ARRAY ? "array" : "object");
    else
        lua_pushstring(L, luaL_typename(L, 1));
    return 1;
}

/* has(value, key): whether an object has a member of that name, which may be null. */
static int script_has(lua_State *L)
{
    struct value *v = test_value(L, 1);
    const char *key = luaL_checkstring(L, 2);

    if (v)
        charge(L, v->json.n);
    lua_pushboolean(L, v && json_get(v->json, key).p != NULL);
    return 1;
}

/* raw(value): its JSON. */
static int script_raw(lua_State *L)
{
    struct state *s = state_of(L);

    lua_settop(L, 1);
    buf_clear(&s->other);
    add_value(L, 1, &s->other, 0);
    charge(L, s->other.len);
    push_text(L, buf_str(&s->other));
    return 1;
}

/* json(text): the value that the text is, or nil. */
static int script_json(lua_State *L)
{
    struct str text = text_at(L, 1), value;

    charge(L, text.n);
    if (utf8_valid(text) < text.n || !json_check(text, &value, NULL))
        return 0;
    push_json(L, value, 0, 0);
    if (lua_type(L, -1) == LUA_TUSERDATA) {
        lua_pushvalue(L, 1);
        lua_setiuservalue(L, -2, 2);
    }
    return 1;
}

/* fingerprint(value or text): eight hexadecimal digits of a hash of its bytes. */
static int script_fingerprint(lua_State *L)
{
    const struct value *v = test_value(L, 1);
    struct str text = v ? v->json : check_text(L, 1);
    char digits[9];

    charge(L, text.n);
    (void)snprintf(digits, sizeof digits, "%08" PRIx32, (uint32_t)hash_fnv(text));
    lua_pushstring(L, digits);
    return 1;
}

/* ---- texts ---- */

static int free_regex(lua_State *L)
{
    regex_free(*(struct regex **)lua_touserdata(L, 1));
    return 0;
}

/* Pushes the compiled form of a pattern, which the state keeps. */
static struct regex *push_regex(lua_State *L, struct str pattern)
{
    struct err e = ERR_INIT;
    struct regex **r;

    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, REGEXES);
    push_text(L, pattern);
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
    push_text(L, pattern);
    lua_pushvalue(L, -2);
    lua_settable(L, -4);
    lua_remove(L, -2);
    return *r;
}

/* Finds a match, and raises an error if it costs too much. */
static bool find(lua_State *L, struct regex *r, struct str text, size_t from, size_t *at, size_t *n)
{
    int found;

    charge(L, text.n - from);
    found = regex_find(r, text, from, false, at, n, NULL);
    if (found < 0)
        (void)luaL_error(L, "the regular expression takes too long");
    return found > 0;
}

/* match(text, regex): the first match, or nil, also without a text. */
static int script_match(lua_State *L)
{
    struct str text = text_at(L, 1);
    struct regex *r = push_regex(L, check_text(L, 2));
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
    struct str text = check_text(L, 1), by = check_text(L, 3);
    struct regex *r = push_regex(L, check_text(L, 2));
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
    push_text(L, buf_str(&s->other));
    return 1;
}

static int script_starts(lua_State *L)
{
    struct str text = text_at(L, 1), begin = check_text(L, 2);

    lua_pushboolean(L, text.p && str_starts(text, begin));
    return 1;
}

/* ---- facts ---- */

static struct state *fact_state(lua_State *L)
{
    struct state *s = state_of(L);

    if (!s->source)
        (void)luaL_error(L, "facts are given while a record is read");
    return s;
}

/* Ends the import of the file if a function of the core failed. */
static void check_result(lua_State *L, int result)
{
    struct state *s = state_of(L);

    if (result < 0) {
        s->failed = true;
        (void)luaL_error(L, "the import failed");
    }
}

/* Sets a text from a field of the table at index 1: a string or a number. */
static void take_text(lua_State *L, const char *name, struct buf *to)
{
    int type = lua_getfield(L, 1, name);

    if (type == LUA_TSTRING) {
        buf_set(to, text_at(L, -1));
    } else if (type == LUA_TNUMBER) {
        buf_clear(to);
        add_number(L, -1, to);
    }
    lua_pop(L, 1);
}

static bool take_flag(lua_State *L, const char *name)
{
    bool is;

    (void)lua_getfield(L, 1, name);
    is = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    return is;
}

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
            add_number(L, -1, &s->other);
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
        add_value(L, lua_gettop(L), &s->other, 0);
    (void)lua_getfield(L, -2, "id");
    (void)lua_getfield(L, -3, "name");
    import_add_call(m, text_at(L, -2), text_at(L, -1), buf_str(&s->other));
    m->calls.overflow = m->calls.overflow || s->other.overflow;
    lua_pop(L, 3);
}

static void take_calls(lua_State *L, struct import_message *m)
{
    if (lua_getfield(L, 1, "calls") == LUA_TTABLE)
        for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; i++) {
            charge(L, 64);
            take_call(L, m);
            lua_pop(L, 1);
        }
    lua_settop(L, 1);
}

/* Adds a text or a content block, the value at the top of the stack. */
static void take_part(lua_State *L, struct import_message *m)
{
    struct value *v = test_value(L, -1);

    import_add_text(m, text_at(L, -1));
    if (v)
        import_add_block(m, v->json);
}

/* Takes the content: a text, content blocks in JSON, or a table of texts and blocks. */
static void take_content(lua_State *L, struct fact *fact)
{
    struct value *v;
    int type = lua_getfield(L, 1, "content");

    v = test_value(L, -1);
    if (v && json_type(v->json) == JSON_ARRAY)
        fact->content = v->json;
    else if (type != LUA_TTABLE)
        take_part(L, &fact->message);
    else
        for (lua_Integer i = 1; lua_geti(L, -1, i) != LUA_TNIL; i++) {
            charge(L, 16);
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
        add_value(L, 2, &s->other, 0);
        import_add_citations(m, buf_str(&s->other));
    }
    lua_settop(L, 1);
}

static enum role take_role(lua_State *L)
{
    struct state *s = state_of(L);
    enum role role;

    buf_clear(&s->other);
    take_text(L, "role", &s->other);
    role = role_of(buf_str(&s->other));
    if (role == ROLE_OTHER)
        (void)luaL_error(L, "no known 'role'");
    return role;
}

/* message{…}: see docs/importers.md. */
static int script_message(lua_State *L)
{
    struct state *s = fact_state(L);
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
        take_text(L, texts[i].name, texts[i].to);
    buf_clear(&s->other);
    take_text(L, "time", &s->other);
    import_set_time(m, buf_str(&s->other));
    buf_clear(&s->other);
    take_text(L, "finish", &s->other);
    if (s->other.len > 0)
        import_set_finish(m, buf_str(&s->other));
    take_text(L, "cwd", &s->source->cwd);
    take_text(L, "branch", &s->source->branch);
    fact->joins = take_flag(L, "joins");
    m->failed = take_flag(L, "failed");
    if (lua_getfield(L, 1, "images") == LUA_TNUMBER)
        m->images = lua_tointeger(L, -1) > 0 ? lua_tointeger(L, -1) : 0;
    lua_settop(L, 1);
    take_citations(L, m);
    (void)lua_getfield(L, 1, "usage");
    read_usage(L, &m->usage);
    lua_settop(L, 1);
    take_content(L, fact);
    take_calls(L, m);
    check_result(L, facts_message(&s->facts, fact, s->failure));
    if (s->source->yielded)
        s->outcome = DONE;
    else if (s->outcome == NOTHING)
        s->outcome = NO_MESSAGE;
    return 0;
}

/* session{…}: for the messages that follow. What the table does not have stays. */
static int script_session(lua_State *L)
{
    struct state *s = fact_state(L);

    luaL_checktype(L, 1, LUA_TTABLE);
    take_text(L, "id", &s->facts.session);
    take_text(L, "agent", &s->facts.agent);
    take_text(L, "suffix", &s->facts.suffix);
    take_text(L, "model", &s->facts.model);
    take_text(L, "provider", &s->facts.provider);
    take_text(L, "cwd", &s->source->cwd);
    take_text(L, "branch", &s->source->branch);
    s->outcome = DONE;
    return 0;
}

static int script_title(lua_State *L)
{
    struct state *s = fact_state(L);
    struct buf *const field[] = {&s->fact.session, &s->fact.id, &s->fact.parent};

    luaL_checktype(L, 1, LUA_TTABLE);
    fact_clear(&s->fact);
    take_text(L, "session", field[0]);
    take_text(L, "text", field[1]);
    take_text(L, "of", field[2]);
    facts_title(&s->facts, buf_str(field[0]), buf_str(field[1]), buf_str(field[2]),
                take_flag(L, "given")    ? 2
                : s->fact.parent.len > 0 ? 0
                                         : 1);
    s->outcome = DONE;
    return 0;
}

static int script_usage(lua_State *L)
{
    struct state *s = fact_state(L);
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
    struct state *s = fact_state(L);

    check_result(L, facts_rewind(&s->facts, luaL_optinteger(L, 1, 0), s->failure));
    s->outcome = DONE;
    return 0;
}

/* link(id, parent): a record follows another one. */
static int script_link(lua_State *L)
{
    facts_link(&fact_state(L)->facts, text_at(L, 1), text_at(L, 2));
    return 0;
}

/* ignored(kind): the record is left out; a kind that the script does not ignore is named. */
static int script_ignored(lua_State *L)
{
    struct state *s = fact_state(L);
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
    struct state *s = fact_state(L);

    import_bad(s->source, luaL_checkstring(L, 1));
    s->outcome = DONE;
    return 0;
}

/* left(id): a record that is not shown any more. */
static int script_left(lua_State *L)
{
    facts_left(&fact_state(L)->facts, check_text(L, 1));
    return 0;
}

/* stem(): the name of the file without its ending. */
static int script_stem(lua_State *L)
{
    push_text(L, source_stem(fact_state(L)->source));
    return 1;
}

/* scanning(): whether the file was found by a scan, which leaves out exports of these programs. */
static int script_scanning(lua_State *L)
{
    lua_pushboolean(L, import_is_scan(fact_state(L)->source));
    return 1;
}

/* folder(): the name of the folder of the file. folder(2) is the one above it, and so on. */
static int script_folder(lua_State *L)
{
    struct state *s = fact_state(L);
    lua_Integer n = luaL_optinteger(L, 1, 1);

    buf_clear(&s->other);
    source_add_folder(s->source, n > 0 && n <= FOLDERS_MAX ? (int)n : 1, &s->other);
    push_text(L, buf_str(&s->other));
    return 1;
}

/* number(): of the record. number(n) sets it, for the names of the parts of a document. */
static int script_number(lua_State *L)
{
    struct source *source = fact_state(L)->source;

    if (lua_isinteger(L, 1))
        source->number = (size_t)lua_tointeger(L, 1);
    lua_pushinteger(L, (lua_Integer)source->number);
    return 1;
}

/* ---- databases and other files ---- */

/* Pushes a row as a table of its columns. */
static void push_row(lua_State *L, sqlite3_stmt *r)
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
    struct state *s = fact_state(L);
    struct rows *r = lua_touserdata(L, lua_upvalueindex(1));
    int got = database_step(s->database, r->statement, s->failure);

    check_result(L, got);
    s->work += WORK_STEP; /* the work for all rows is bounded by that of the database */
    if (got == 0)
        return 0;
    push_row(L, r->statement);
    return 1;
}

/* Pushes a statement that no loop uses: the state keeps them. */
static struct rows *push_rows(lua_State *L, const char *sql)
{
    struct state *s = fact_state(L);
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
    check_result(L, database_query(s->database, sql, &r->statement, s->failure));
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
        struct str text = text_at(L, i);

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
    struct state *s = fact_state(L);

    lua_pushboolean(L, s->database && database_has_column(s->database, luaL_checkstring(L, 1),
                                                          luaL_checkstring(L, 2)));
    return 1;
}

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
        lua_pushcfunction(L, script_json);
        lua_insert(L, -2);
        lua_call(L, 1, 1);
        return 1;
    }
    err_release(&e);
    return 0;
}

/* Returns whether the head declares files of this name: a name, or a pattern in which `*` is a part
 * of one. */
static bool may_read_beside(lua_State *L, const char *name)
{
    bool may = false;

    (void)push_head(L);
    if (lua_getfield(L, -1, "beside") == LUA_TTABLE)
        for (lua_Integer i = 1; !may && lua_geti(L, -1, i) == LUA_TSTRING; i++) {
            may = fnmatch(lua_tostring(L, -1), name, FNM_PATHNAME | FNM_PERIOD) == 0;
            lua_pop(L, 1);
        }
    else if (lua_isstring(L, -1))
        may = strcmp(lua_tostring(L, -1), name) == 0;
    return may;
}

/* beside(name): an iterator over the JSON values of a file that the script declares, in the
 * directory of the file or one of those above it; without such a file it has none. */
static int script_beside(lua_State *L)
{
    struct state *s = fact_state(L);
    struct source *other;
    const char *name = luaL_checkstring(L, 1);
    char *path;

    if (!may_read_beside(L, name))
        return luaL_error(L, "the head has no beside = '%s'", name);
    other = lua_newuserdatauv(L, sizeof *other, 1);
    *other = (struct source){0};
    luaL_setmetatable(L, "source");
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

/* ---- a state ---- */

/* importer{…}: the head of the script. */
static int script_importer(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, state_of(L)->importer);
    return 0;
}

static const luaL_Reg functions[] = {{"importer", script_importer},
                                     {"each", script_each},
                                     {"raw", script_raw},
                                     {"json", script_json},
                                     {"fingerprint", script_fingerprint},
                                     {"match", script_match},
                                     {"replace", script_replace},
                                     {"starts", script_starts},
                                     {"message", script_message},
                                     {"session", script_session},
                                     {"title", script_title},
                                     {"usage", script_usage},
                                     {"rewind", script_rewind},
                                     {"link", script_link},
                                     {"ignored", script_ignored},
                                     {"bad", script_bad},
                                     {"left", script_left},
                                     {"stem", script_stem},
                                     {"scanning", script_scanning},
                                     {"folder", script_folder},
                                     {"type", script_type},
                                     {"has", script_has},
                                     {"number", script_number},
                                     {"rows", script_rows},
                                     {"has_column", script_has_column},
                                     {"beside", script_beside},
                                     {NULL, NULL}};

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

static void make_metatable(lua_State *L, const char *name, const luaL_Reg *methods)
{
    (void)luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 1);
}

/* Opens the libraries. */
static int prepare(lua_State *L)
{
    static const luaL_Reg libraries[] = {{"_G", luaopen_base},
                                         {"string", luaopen_string},
                                         {"table", luaopen_table},
                                         {"math", luaopen_math},
                                         {"utf8", luaopen_utf8}};
    static const luaL_Reg value[] = {
        {"__index", value_index}, {"__len", value_length}, {NULL, NULL}};
    static const luaL_Reg regex[] = {{"__gc", free_regex}, {NULL, NULL}};
    static const luaL_Reg query[] = {{"__gc", free_rows}, {"__close", close_rows}, {NULL, NULL}};
    static const luaL_Reg source[] = {{"__gc", close_source}, {NULL, NULL}};
    static const luaL_Reg nothing[] = {{"__index", no_member}, {NULL, NULL}};

    for (size_t n = 0; n < sizeof libraries / sizeof *libraries; n++)
        luaL_requiref(L, libraries[n].name, libraries[n].func, 1);
    remove_functions(L);
    make_metatable(L, VALUE, value);
    (void)luaL_getmetatable(L, VALUE);
    state_of(L)->metatable = lua_topointer(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, VALUE);
    make_metatable(L, REGEXES, regex);
    make_metatable(L, QUERIES, query);
    make_metatable(L, "source", source);
    lua_pushglobaltable(L);
    luaL_setfuncs(L, functions, 0);
    lua_settop(L, 0);
    lua_pushnil(L);
    lua_pushboolean(L, true);
    lua_pushinteger(L, 0);
    for (int value_at = 1; value_at <= 3; value_at++) {
        lua_newtable(L);
        luaL_setfuncs(L, nothing, 0);
        lua_setmetatable(L, value_at);
    }
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
    if (push_head(L) != LUA_TTABLE)
        return luaL_error(L, "%s.lua: no importer{...}", i->name);
    if (state_of(L)->facts.source && lua_getfield(L, -1, "harness") == LUA_TSTRING)
        state_of(L)->facts.source->harness = push_regex(L, text_at(L, -1));
    return 0;
}

/* Calls the function on the stack. Returns 0; 1 with the error message on the
 * stack; or -1 with *e set, if the import of the file must end. */
static int call(struct state *s, int results, struct err *e)
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

static void state_free(struct state *s)
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

/* Returns a state without a script. */
static struct state *state_new(struct err *e)
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
    begin_record(s, 0);
    lua_sethook(s->L, count_work, LUA_MASKCOUNT, WORK_STEP);
    /* Values die with their record. */
    (void)lua_gc(s->L, LUA_GCGEN, 0, 0);
    lua_pushcfunction(s->L, prepare);
    if (call(s, 0, e) != 0)
        mem_exhausted();
    return s;
}

/* Runs a script in a state. Returns 0, or -1 with *e set. */
static int state_load(struct state *s, const struct importer *i, struct err *e)
{
    int result;

    s->importer = i;
    begin_record(s, 0);
    lua_pushcfunction(s->L, run_script);
    result = call(s, 0, e);
    if (result != 0)
        (void)err_set(e, ERR_FAILURE, "cannot use '%s': %s", i->path, lua_tostring(s->L, -1));
    lua_settop(s->L, 0);
    return result == 0 ? 0 : -1;
}

/* ---- the head of a script ---- */

static void take_names(lua_State *L, const char *field, struct words *names)
{
    if (lua_getfield(L, -1, field) == LUA_TTABLE)
        for (lua_Integer i = 1; lua_geti(L, -1, i) == LUA_TSTRING; i++) {
            words_add(names, text_at(L, -1));
            lua_pop(L, 1);
        }
    lua_settop(L, 1);
}

/* Reads the head. Returns 0, or -1 with *e set. */
static int take_head(struct importer *i, lua_State *L, struct err *e)
{
    const char *wrong = NULL;
    int form = 0;

    (void)push_head(L);
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
    i->unique = take_flag(L, "unique");
    i->format.copies = take_flag(L, "copies");
    i->tree = take_flag(L, "tree");
    i->whole = take_flag(L, "whole");
    i->grows = take_flag(L, "grows");
    i->last = take_flag(L, "last");
    take_text(L, "erases", &i->erases);
    take_text(L, "resume", &i->resume);
    take_names(L, "places", &i->places);
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
                            size_t number)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct words *places = &all->at[i]->places;

        if (only && only != &all->at[i]->format)
            continue;
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
        push_row(L, s->row);
    } else if (s->line.p) {
        push_text(L, s->line);
    } else {
        push_json(L, s->json, s->epoch, 0);
    }
}

/* Calls a function of the head, which need not have it. */
static int call_head(lua_State *L)
{
    (void)push_head(L);
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

    begin_record(s, json.n + line.n);
    s->json = json;
    s->line = line;
    s->function = "is";
    lua_pushcfunction(L, call_head);
    result = call(s, 1, e);
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

    begin_record(s, s->json.n + s->line.n);
    s->source->lost = false;
    s->function = function;
    lua_pushcfunction(s->L, call_head);
    result = call(s, 0, e);
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
    (void)push_head(L);
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

        begin_record(s, 0);
        lua_pushcfunction(s->L, push_query);
        if (call(s, 1, e) != 0)
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
