#include "chathist/chat/server_headers.h"

#include <stdlib.h>
#include <strings.h>

#include "chat/secret_command.h"
#include "chathist/base/buf.h"
#include "chathist/base/memory.h"
#include "chathist/chat/request_settings.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider_error.h"

/* Removes the headers of that name that are weaker than `from`, or as strong if it is no flag. */
static void remove_weaker(struct server_headers *h, const char *name, enum ask_from from)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->count; i++) {
        struct server_header *old = &h->at[i];

        if (strcasecmp(old->header.name, name) == 0 &&
            (old->header.from < from || from != ASK_FLAG))
            secret_free(old->secret);
        else
            h->at[kept++] = *old;
    }
    h->count = kept;
}

static void replace_weaker(struct server_headers *h, struct server_header header)
{
    remove_weaker(h, header.header.name, header.header.from);
    h->at = mem_grow(h->at, &h->cap, h->count + 1, sizeof *h->at);
    header.header.secret = !header.header.value || header_names_secret(header.header.name);
    h->at[h->count++] = header;
}

int server_headers_add(struct server_headers *h, const struct config_named *from, const char *name,
                       bool command, struct err *e)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    struct err why = ERR_INIT;
    int result = http_check_header(name, command ? STR("") : str_of(from->value), &why);

    config_key(from, &key);
    if (result < 0)
        err_set(e, ERR_USAGE, "cannot use '%s': %s", buf_c(&key), err_text(&why));
    else
        replace_weaker(h, (struct server_header){.header = {name, command ? NULL : from->value,
                                                            ASK_CONFIGURATION, false},
                                                 .from = *from});
    err_release(&why);
    buf_release(&key);
    return result;
}

static int add_all_configured(struct server_headers *h, const struct providers *known,
                              const struct config *c, const struct provider *p, bool own,
                              struct err *e)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < c->named_count; i++) {
        const struct config_named *named = &c->named[i];
        bool header = named->setting == SETTING_HEADER || named->setting == SETTING_HEADER_COMMAND;
        const char *name = header ? setting_name_for(known, named->name, p, own) : NULL;

        if (name)
            result = server_headers_add(h, named, name, named->setting != SETTING_HEADER, e);
    }
    return result;
}

/* Makes the array of the headers whose values are known. */
static void make_ready(struct server_headers *h)
{
    free(h->ready);
    h->ready = mem_zalloc((h->count + 1) * sizeof *h->ready);
    h->ready_count = 0;
    for (size_t i = 0; i < h->count; i++)
        if (h->at[i].header.value)
            h->ready[h->ready_count++] = h->at[i].header;
}

int server_headers_choose(struct server_headers *h, const struct providers *known,
                          const struct config *c, const struct provider *p, bool named,
                          const struct ask_header *given, size_t given_count, struct err *e)
{
    *h = (struct server_headers){0};
    if (p->base_url && ((named && add_all_configured(h, known, c, p, false, e) < 0) ||
                        add_all_configured(h, known, c, p, true, e) < 0))
        return -1;
    for (size_t i = 0; i < given_count; i++)
        replace_weaker(h, (struct server_header){.header = given[i]});
    make_ready(h);
    return 0;
}

bool server_headers_hold_key(const struct server_headers *h)
{
    static const char *const names[] = {"Authorization", "api-key", "x-api-key", "x-goog-api-key"};

    for (size_t i = 0; i < h->count; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcasecmp(h->at[i].header.name, names[k]) == 0)
                return true;
    return false;
}

int server_headers_load(struct server_headers *h, const char *dir, struct err *e)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < h->count; i++) {
        struct server_header *header = &h->at[i];
        struct buf key = BUF_INIT(BUF_SMALL);

        if (header->header.value)
            continue;
        config_key(&header->from, &key);
        header->secret = secret_command_run(header->from.value, dir, buf_c(&key), true, e);
        header->header.value = header->secret;
        result = header->secret ? 0 : -1;
        buf_release(&key);
    }
    make_ready(h);
    return result;
}

void server_headers_release(struct server_headers *h)
{
    for (size_t i = 0; i < h->count; i++)
        secret_free(h->at[i].secret);
    free(h->at);
    free(h->ready);
    *h = (struct server_headers){0};
}
