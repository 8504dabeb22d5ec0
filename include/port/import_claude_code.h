/*
 * import_claude_code - transcripts of Claude Code: ~/.claude/projects/PROJECT/SESSION.jsonl.
 *
 * The format is not documented by its maker. As others have found it (the documents in
 * ticpu/claude-conversation-search-mcp, docs/jsonl-format.md, and alicoding/claude-parser,
 * docs/JSONL-STRUCTURE.md; simonw/claude-code-transcripts): a record a line with `type`, `uuid`,
 * `sessionId`, `timestamp`, and for `user` and `assistant` a `message` of Anthropic's Messages
 * interface.
 *
 *   - An answer is one record for each block of content, all with the same message id: they are
 *     joined, and the usage of the last one counts. Where they are parted the tokens stand in the
 *     first line, and what a later record has more in its own.
 *   - Results of tools are user records: each becomes a tool message.
 *   - The summary that takes the place of a conversation that grew too long (isCompactSummary) is a
 *     user record: it becomes a system message, so that whoever goes on with the session has it.
 *   - isSidechain records are what subagents said, in files of their own or in between: sessions of
 *     their own, SESSION:AGENT, and only when they are wanted.
 *   - isMeta records were written by the program, not by the user, and so were the names of
 *     commands to it, what those printed, and that the user interrupted an answer; titles,
 *     snapshots of files, queues and the like are no messages: left out. So is reasoning.
 *   - The order is that of the file, not of the links between records, which break.
 */
#ifndef CHATHIST_PORT_IMPORT_CLAUDE_CODE_H
#define CHATHIST_PORT_IMPORT_CLAUDE_CODE_H

#include "port/import_message.h"

int import_claude_code(struct source *s, struct import_sink *sink, struct err *e);

#endif
