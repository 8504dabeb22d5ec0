#include "chathist/cli/places.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/mem.h"
#include "chathist/base/path.h"

/* Adds dir/name when it is there; a NULL dir has nothing. */
static void add(struct places *p, const char *dir, const char *name)
{
    char *path = dir ? path_join(dir, name) : NULL;

    if (!path || access(path, F_OK) < 0) {
        free(path);
        return;
    }
    p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
    p->at[p->count++] = path;
}

/* The names in the directory of a program: the one that its variable names, else those in
 * `homes`. */
static void add_program(struct places *p, const char *own, const char *const *homes,
                        const char *directory, const char *const *names)
{
    for (; *names; names++) {
        if (own)
            add(p, own, *names);
        for (size_t i = 0; !own && i < 2; i++) {
            char *dir = homes[i] ? path_join(homes[i], directory) : NULL;

            add(p, dir, *names);
            free(dir);
        }
    }
}

void places_find(struct places *p, const struct config *c)
{
    static const char *const projects[] = {"projects", NULL};
    static const char *const codex[] = {"sessions", "archived_sessions", NULL};
    static const char *const logs[] = {"logs.db", NULL};
    static const char *const aichat[] = {"sessions", "agents", NULL};
    const char *claude_dir = config_env("CLAUDE_CONFIG_DIR");
    const char *sessions = config_env("AICHAT_SESSIONS_DIR");
    char *mac = c->home ? path_join(c->home, "Library/Application Support") : NULL;
    const char *homes[] = {c->home, NULL}, *configs[] = {c->config_home, mac};
    const char *config[] = {c->config_home, NULL};

    add_program(p, claude_dir, homes, ".claude", projects);
    if (!claude_dir)
        add_program(p, NULL, config, "claude", projects);
    add_program(p, config_env("CODEX_HOME"), homes, ".codex", codex);
    add_program(p, config_env("LLM_USER_PATH"), configs, "io.datasette.llm", logs);
    if (sessions)
        add(p, sessions, "");
    else
        add_program(p, config_env("AICHAT_CONFIG_DIR"), configs, "aichat", aichat);
    free(mac);
}

void places_release(struct places *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->at[i]);
    free(p->at);
}
