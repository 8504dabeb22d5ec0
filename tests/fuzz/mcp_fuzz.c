/*
 * mcp: whatever a server sends, each message to it is valid JSON on one line, and the result of a
 * call is valid UTF-8. The first bytes are the lines of a server that gets ready.
 */
#include <stdint.h>

#include "../unit/mcp_transport.h"
#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sent(struct mcp_server *s, const struct mcp_message *m)
{
    struct str value;

    (void)s;
    demand(m->json.p[m->json.n - 1] == '\n' && str_count(m->json, '\n') == 1);
    demand(json_check(m->json, &value, NULL) && utf8_valid(m->json) == m->json.n);
}

static const struct mcp_transport transport = {.send = check_sent, .fds = no_fds, .step = no_step};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct mcp_server server, *servers[] = {&server};
    struct tool_job job = {.args = STR("{}")};

    buf_init(&job.result, TOOL_RESULT_MAX);
    mcp_init(&server, "s", &transport, NULL, NULL);
    mcp_greet(&server);
    while (rest.n > 0) {
        mcp_receive(&server, str_cut(&rest, '\n'));
        if (job.tool || server.state != MCP_READY || server.list.count == 0)
            continue;
        mcp_name_tools(servers, 1, NULL, 0);
        job.tool = &server.list.tools[0]->tool;
        job.tool->kind->begin(&job);
    }
    demand(utf8_valid(buf_str(&job.result)) == job.result.len);
    mcp_end(servers, 1, 0, -1);
    buf_release(&job.result);
    attachment_list_release(&job.images);
    return 0;
}
