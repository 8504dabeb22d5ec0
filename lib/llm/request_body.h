/*
 * request_body - what the user wants in the body of a request, beside what the provider puts there.
 *
 * Options (`-o KEY=VALUE` and `option.KEY = VALUE`) come after the fields of the provider. They
 * never remove what another option of the user needs:
 *
 *  - An object is merged into an object member by member; `tools` is joined with the tools that are
 *    there; any other value replaces the old one.
 *  - A field that another setting of the user decides (--effort, --max-tokens, --schema, -T) is
 *    decided by the stronger of the two (enum ask_from). If they are equally strong and want
 *    different values, that is an error. The field of --schema is one value: nothing is merged into
 *    it.
 */
#ifndef CHATHIST_LLM_REQUEST_BODY_H
#define CHATHIST_LLM_REQUEST_BODY_H

#include "chathist/base/cjson.h"
#include "chathist/base/error.h"
#include "chathist/llm/provider.h"

/* A path names a field: its name, after the names of the objects around it, separated by dots.
 *
 * Returns the value of the field, or STR_NONE if it is not there. The value is printed to
 * `scratch`. */
struct str body_field(const cJSON *body, const char *path, struct buf *scratch);
/* The same in the JSON text of an object; NULL is the path of the value itself. */
struct str body_field_in(struct str value, const char *path);
/* Sets the field to `value`, JSON, and makes the objects around it; STR_NONE removes it, and with
 * it an object that becomes empty. Nothing happens if the path leads through another type than an
 * object. */
void body_set_field(cJSON *body, const char *path, struct str value);
/* Returns who decided about the field with an option whose value reaches it or is inside of it, and
 * the option's name in *key, which may be NULL; ASK_PROVIDER if there is no such option. */
enum ask_from body_option_from(const struct provider *p, const struct ask *ask, const char *path,
                               const char **key);
/* Returns whether a flag of the user set the field: an option, --effort or --max-tokens. Sets
 * `flag` to its name, unless that is NULL. */
bool body_field_is_typed(const struct provider *p, const struct ask *ask, const char *path,
                         struct buf *flag);
/* Returns whether the server is not the provider's own. */
bool request_is_elsewhere(const struct provider *p, const struct ask *ask);
/* Adds effort, limit and options. Returns 0, or -1 with ERR_USAGE for two settings that want
 * different values. */
int body_add_options(cJSON *body, const struct provider *p, const struct ask *ask, struct err *e);
/* Changes the fields that the server has refused before (ask->refused), unless a flag of the user
 * set them. */
void body_leave_refused(cJSON *body, const struct provider *p, const struct ask *ask);

#endif
