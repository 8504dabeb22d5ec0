/*
 * import_script_state - a state of Lua that runs a script, and what it may cost.
 *
 *     import_script         the scripts, the files that they recognise, and the records of a file
 *     import_script_state   the state, its limits and its libraries
 *     import_script_values  values of JSON and texts
 *     import_script_facts   the facts that a script gives
 *     import_script_files   rows of a database, and the files beside the one that is read
 *
 * Functions that take a lua_State may raise an error of Lua: they are called by a script, or within
 * state_call.
 */
#ifndef CONVERT_IMPORT_SCRIPT_STATE_H
#define CONVERT_IMPORT_SCRIPT_STATE_H

#include <sqlite3.h>

#include "chathist/base/process.h"
#include "convert/import_database.h"
#include "convert/import_facts.h"

typedef struct lua_State lua_State; /* as in lua.h */

/* A record may cost this many instructions and bytes of memory, and these many more for each byte
 * that it has. Functions of the core count as an instruction for every 16 bytes that they read. */
#define WORK_MIN INT64_C(2000000)
#define WORK_PER_BYTE 16
#define WORK_STEP 1000
#define MEMORY_MIN ((size_t)64 << 20)
#define MEMORY_PER_BYTE 4

enum form { FORM_LINES, FORM_ELEMENTS, FORM_DOCUMENT, FORM_YAML, FORM_TEXT, FORM_SQLITE };

struct importer {
    struct import_format format; /* first: a pointer to it is one to the importer */
    char *name;
    char *path; /* of the script */
    struct buf text;
    struct buf resume; /* the command that continues a session, or empty */
    enum form form;
    bool unique, tree, whole, grows, last;
    struct buf erases; /* when the program erases conversations, or empty */
    struct words places, beside, ignores, exchange, tables;
};

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
    int64_t query;         /* of the row: its number */
    struct err *failure;   /* where an error goes that ends the import of the file */
    bool failed;
    struct buf scratch, other;
    struct member *members; /* while an object is indexed */
    size_t members_cap;
};

/* ---- the state (import_script_state.c) ---- */

/* Returns a state without a script. */
struct state *state_new(struct err *e);
void state_free(struct state *s);
/* Runs a script in a state. Returns 0, or -1 with *e set. */
int state_load(struct state *s, const struct importer *i, struct err *e);
/* Sets the limits for a record of n bytes. */
void state_begin_record(struct state *s, size_t n);
/* Calls the function on the stack. Returns 0; 1 with the error message on the stack; or -1 with *e
 * set, if the import of the file must end. */
int state_call(struct state *s, int results, struct err *e);

/* Returns the state that runs in L. */
struct state *state_of(lua_State *L);
/* Returns the state, which must read a file now. */
struct state *state_with_source(lua_State *L);
/* Pushes the head of the script that runs, and returns its type. */
int state_push_head(lua_State *L);
/* Counts the bytes that a function of the core reads. */
void state_charge(lua_State *L, size_t bytes);
/* Ends the import of the file if a function of the core failed. */
void state_check_result(lua_State *L, int result);

/* ---- values and texts (import_script_values.c) ---- */

/* A JSON object or array. Its user value is the array of its members, or the text that it borrows
 * from. */
struct value {
    struct str json;
    uint64_t epoch; /* 0: it keeps its text alive */
    struct member *members;
    size_t count;
};

/* Returns the string at a stack index, or STR_NONE if it is not a string, or with an error then. */
struct str value_text(lua_State *L, int i);
struct str value_check_text(lua_State *L, int i);
void value_push_text(lua_State *L, struct str text);
/* Pushes a string, number or boolean as a value of Lua, an object or array as a JSON value, and nil
 * for null. `of` is the index of the value that this one is a part of, or 0. */
void value_push(lua_State *L, struct str json, uint64_t epoch, int of);
/* Returns the JSON value at a stack index, or NULL if it is not one. */
struct value *value_test(lua_State *L, int i);
/* Appends the value at a stack index, which may be a table, as JSON. */
void value_add_json(lua_State *L, int i, struct buf *out);
/* Appends the shortest decimal that is this number, as other programs write it. */
void value_add_number(lua_State *L, int i, struct buf *out);
/* json(text): the value that the text is, or nil. */
int value_parse(lua_State *L);
/* Sets a text from a field of the table at index 1: a string or a number. */
void value_take_text(lua_State *L, const char *name, struct buf *to);
bool value_take_flag(lua_State *L, const char *name);
/* Pushes the compiled form of a pattern, which the state keeps. */
struct regex *value_push_regex(lua_State *L, struct str pattern);

/* ---- what a script can call ---- */

/* These add the functions of a file to the table on the stack, and make its metatables. */
void script_open_values(lua_State *L);
void script_open_facts(lua_State *L);
void script_open_files(lua_State *L);
/* Pushes a row as a table of its columns. */
void script_push_row(lua_State *L, sqlite3_stmt *r);

#endif
