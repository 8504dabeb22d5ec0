/*
 * export_json - `{"messages":[…]}`: each stored line as an element, with `tool_calls` and
 * `tool_call_id` in all of them, null where the line has none.
 */
#ifndef CHATHIST_CONVERT_EXPORT_JSON_H
#define CHATHIST_CONVERT_EXPORT_JSON_H

#include "chathist/convert/export.h"

extern const struct export_format export_json;

#endif
