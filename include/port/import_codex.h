/*
 * import_codex - rollouts of Codex: ~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl.
 *
 * Source: openai/codex, codex-rs/protocol/src/protocol.rs (RolloutLine, RolloutItem, SessionMeta,
 * CompactedItem, TurnContextItem) and codex-rs/protocol/src/models.rs (ResponseItem). A line is
 * `{"timestamp","type","payload"}`; until September 2025 it was the payload of a response item
 * alone, behind a first line with `id` and `timestamp`, and `{"record_type":"state"}` in between.
 *
 *   - session_meta tells the session; in a fork the parent's follows, and the first one counts.
 *   - response_item: messages of the user and the assistant, calls of tools (function_call,
 *     custom_tool_call, local_shell_call) and their outputs. An answer's text and calls that follow
 *     each other are one message. What Codex itself tells the model is left out: messages of the
 *     roles developer and system, and those of the user that are the environment or the
 *     instructions of a project.
 *   - compacted: the summary that takes the place of what was said before becomes a system message.
 *   - turn_context has the model, event_msg of type token_count the usage of the answer before it;
 *     other events tell again what response items say.
 *
 * Records have no ids: a part of an origin is the number of the line, which stays what it is
 * because rollouts only grow. The rollouts of subagents are read only when they are wanted.
 */
#ifndef CHATHIST_PORT_IMPORT_CODEX_H
#define CHATHIST_PORT_IMPORT_CODEX_H

#include "port/import_message.h"

int import_codex(struct source *s, struct import_sink *sink, struct err *e);

#endif
