/*
 * places - where other programs keep their conversations, on Linux and on macOS.
 *
 *     Claude Code  $CLAUDE_CONFIG_DIR/projects, ~/.claude/projects, ~/.config/claude/projects
 *     Codex        sessions and archived_sessions in $CODEX_HOME, ~/.codex
 *     llm          logs.db in $LLM_USER_PATH, else in io.datasette.llm in the directory of
 *                  applications
 *     aichat       $AICHAT_SESSIONS_DIR, sessions and agents in $AICHAT_CONFIG_DIR, else in aichat
 *                  in the directory of applications
 *
 * That directory is ~/.config (XDG_CONFIG_HOME) or ~/Library/Application Support. A variable that
 * is set stands for itself alone. Sources: Claude Code's and Codex's own documentation of their
 * settings; simonw/llm docs/setup.md and logging.md; sigoden/aichat src/config/mod.rs.
 */
#ifndef CHATHIST_CLI_PLACES_H
#define CHATHIST_CLI_PLACES_H

#include <stddef.h>

#include "chathist/cli/config.h"

/* Zero-initialise. */
struct places {
    char **at; /* files and directories that exist */
    size_t count, cap;
};

void places_find(struct places *p, const struct config *c);
void places_release(struct places *p);

#endif
