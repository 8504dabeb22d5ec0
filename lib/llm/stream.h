/*
 * stream - one exchange with a model: request -> http -> sse -> deltas of an answer.
 */
#ifndef CHATHIST_LLM_STREAM_H
#define CHATHIST_LLM_STREAM_H

#include "chathist/base/err.h"
#include "chathist/llm/answer.h"
#include "chathist/llm/provider.h"

/*
 * Asks and collects the answer; text goes to the answer's sink as it comes. The calls are settled.
 *
 * 0: the answer is complete and its finish_reason is set (`length` and `content_filter` are the
 * caller's to judge).
 *
 * -1: *e says why; what came is in a, its finish_reason `interrupted` (signal, sink), `error`, or
 * as the server said. The kinds:
 *  - HTTP status other than 2xx: by status and body (provider->failure); a redirect ERR_REQUEST;
 *  - an error object in the stream or in a JSON body with status 200: by its content,
 *    ERR_INCOMPLETE when text had come before;
 *  - neither finish_reason nor end mark seen: ERR_INCOMPLETE;
 *  - an answer that is neither an event stream nor JSON: ERR_BUSY with its beginning in the
 *    message;
 *  - transport: as http_exchange; the sink's failure: ERR_SIGNAL without text.
 *
 * An exchange that failed before any of the answer came, be it by an error object that begins a
 * stream of status 200 and says that the server is busy (ERR_BUSY), is repeated up to ask->retries
 * times, as llm/retry says; a signal ends the wait before it (ERR_SIGNAL). One that was refused for
 * what the server need not do is repeated without that, at once and uncounted (provider->lessen).
 *
 * What the answer is, its first bytes tell, whatever its media type says: `{` or `[` begins JSON, a
 * field of an event stream an event stream. The key is masked in messages that repeat it.
 */
int stream_ask(const struct provider *p, const struct ask *ask, struct answer *a, struct err *e);

#endif
