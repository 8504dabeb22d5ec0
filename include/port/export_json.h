/*
 * export_json - `{"messages":[…]}`: each stored line as an element, with `tool_calls` and
 * `tool_call_id` in all of them, null where the line has none.
 */
#ifndef CHATHIST_PORT_EXPORT_JSON_H
#define CHATHIST_PORT_EXPORT_JSON_H

#include "port/export.h"

extern const struct export_format export_json;

#endif
