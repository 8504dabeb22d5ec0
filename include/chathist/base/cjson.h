/*
 * cjson - small helpers for building JSON documents with cJSON.
 *
 * cJSON has traps when it formats text and numbers: it cuts strings at U+0000, writes invalid UTF-8
 * unchanged, and turns integers above 2^53 into floating point. Texts and JSON values therefore go
 * in as raw items, which base/json has written or accepted. cJSON_CreateNumber
 * is fine for small integers. Keys are C strings of valid UTF-8.
 *
 * No function here returns NULL or fails: when memory runs out they end the program (base/memory).
 */
#ifndef CHATHIST_BASE_CJSON_H
#define CHATHIST_BASE_CJSON_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/buf.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"

/* A new empty object or array. The caller frees it with cJSON_Delete, unless it adds it to another
 * item. */
static inline cJSON *cjson_object(void)
{
    cJSON *object = cJSON_CreateObject();

    if (!object)
        mem_exhausted();
    return object;
}

static inline cJSON *cjson_array(void)
{
    cJSON *array = cJSON_CreateArray();

    if (!array)
        mem_exhausted();
    return array;
}

/* Sets a member of an object, at the end or in place of an older member of that name. Frees the
 * older value. The object owns `value` afterwards. */
static inline void cjson_set(cJSON *object, const char *key, cJSON *value)
{
    cJSON_bool done = cJSON_GetObjectItemCaseSensitive(object, key)
                          ? cJSON_ReplaceItemInObjectCaseSensitive(object, key, value)
                          : cJSON_AddItemToObject(object, key, value);

    if (!done)
        mem_exhausted();
}

/* Adds an element at the end of an array. The array owns `value` afterwards. */
static inline void cjson_push(cJSON *array, cJSON *value)
{
    if (!cJSON_AddItemToArray(array, value))
        mem_exhausted();
}

/* Returns an item that prints `json`, a value that json_check accepted, byte for byte. */
static inline cJSON *cjson_raw(struct str json)
{
    char *copy = mem_copy(json.p, json.n);
    cJSON *raw = cJSON_CreateRaw(copy);

    free(copy);
    return raw;
}

static inline void cjson_set_raw(cJSON *object, const char *key, struct str json)
{
    cjson_set(object, key, cjson_raw(json));
}

/* Sets a member to a string. The text may hold any byte; invalid UTF-8 becomes U+FFFD. */
static inline void cjson_set_text(cJSON *object, const char *key, struct str text)
{
    struct buf json = BUF_INIT(SIZE_MAX);

    json_add_string(&json, text);
    cjson_set(object, key, cJSON_CreateRaw(buf_c(&json)));
    buf_release(&json);
}

/* Adds the document to out, without white space except inside raw items. */
static inline void cjson_print(const cJSON *document, struct buf *out)
{
    char *text = cJSON_PrintUnformatted(document);

    if (!text)
        mem_exhausted();
    buf_add_c(out, text);
    cJSON_free(text);
}

#endif
