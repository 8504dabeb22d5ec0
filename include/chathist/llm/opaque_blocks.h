/*
 * opaque_blocks - the parts of a response that are kept as the server sent them: citations, and
 * what goes back to the server, reasoning and whole content blocks.
 *
 * None of these functions reports an error. A part that exceeds its limit is not kept, and the
 * response continues.
 *
 *  - Blocks (Anthropic; platform documentation, "Extended thinking with tool use" and "Server
 *    tools: the server-side loop and pause_turn"). Signed or encrypted thinking is added to
 *    `thinking`, and every block to `turn`, in the order in which they came. A paused response
 *    continues from `turn`, and so does a conversation. Newer models bind their thinking to
 *    everything before it in the request ("Preserved thinking": the system prompt, the tools and
 *    the messages), so a checksum of that is stored with it.
 *  - Reasoning as plain text (DeepSeek, api-docs.deepseek.com/guides/thinking_mode), in the member
 *    that had it.
 *  - Reasoning details (OpenRouter, openrouter.ai/docs/guides/best-practices/reasoning-tokens,
 *    "Preserving reasoning": unmodified, in their sequence). A stream splits a detail into pieces
 *    of the same type and index, with the signature in the last. OpenRouter refuses details that
 *    are sent back in pieces (github.com/langchain-ai/langchain/pull/36401,
 *    github.com/agno-agi/agno/issues/8794), so the pieces are joined here. LiteLLM sends the blocks
 *    of Anthropic in such an array, `thinking_blocks`, without an index
 *    (docs.litellm.ai/docs/reasoning_content).
 *  - Items (OpenAI's Responses API, developers.openai.com/api/docs/guides/reasoning, "Keeping
 *    reasoning items in context"). The items of the output go back all together or not at all,
 *    because reasoning is refused without the item after it.
 */
#ifndef CHATHIST_LLM_OPAQUE_BLOCKS_H
#define CHATHIST_LLM_OPAQUE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/json.h"

/* The limits in bytes: of thinking, which becomes a part of a history line, and of all blocks of a
 * response. */
#define OPAQUE_THINKING_MAX (BUF_LINE / 8)
#define OPAQUE_TURN_MAX (BUF_LINE / 2)
/* The type of the element that says to what the blocks of an array are bound. */
#define OPAQUE_BOUND "bound"
/* The type of the element that holds the container of the response. */
#define OPAQUE_CONTAINER "container"

/* The members of a block that grow while it streams. */
enum opaque_member {
    OPAQUE_TEXT,
    OPAQUE_THINKING,
    OPAQUE_SIGNATURE,
    OPAQUE_CONTENT,   /* the summary of a compaction (platform documentation, "Compaction") */
    OPAQUE_ENCRYPTED, /* its encrypted form */
    OPAQUE_INPUT,     /* JSON text */
    OPAQUE_CITATIONS, /* values, separated by commas */
    OPAQUE_MEMBERS
};

/* A reasoning detail while it streams. */
#define OPAQUE_DETAIL_TEXTS 4
struct opaque_detail {
    struct cJSON *members;                 /* raw values; NULL: no detail */
    struct buf texts[OPAQUE_DETAIL_TEXTS]; /* the texts of all pieces */
    bool pieced;                           /* there are several pieces */
    size_t bytes;                          /* the length of all pieces */
};

struct opaque_blocks {
    struct buf thinking; /* a JSON array of blocks that go back with tool calls; may be empty */
    struct buf turn;     /* a JSON array of all blocks; may be empty */
    bool turn_cut;       /* a block is missing in `turn` */
    /* The blocks are valid only after a request with this checksum of what the model saw; 0: after
     * any. */
    uint64_t before;

    bool open;     /* a block is streaming */
    int64_t index; /* its index on the wire */
    struct buf start, grown[OPAQUE_MEMBERS];
    struct json_pieces pieces[OPAQUE_MEMBERS]; /* the pieces of `grown` */

    const char *reasoning_member, *details_member; /* the members that had them */
    struct buf reasoning, details;
    bool details_cut; /* a detail was too long; the rest is useless without it */
    struct opaque_detail detail;

    struct buf items;  /* a JSON array of the items of a response so far; may be empty */
    bool items_cut;    /* an item is missing in `items` */
    bool items_matter; /* an item holds more than a text or a call */

    struct buf container; /* the object that names where the server ran code; empty: none */
    struct buf citations; /* a JSON array of the sources that the server named; may be empty */
};

void opaque_init(struct opaque_blocks *r);
void opaque_release(struct opaque_blocks *r);

/* A block begins at `index` on the wire; `block` is a JSON object with its first members. */
void opaque_begin(struct opaque_blocks *r, int64_t index, struct str block);
/* Adds a piece, a JSON value, to a member of the block at `index`. Does nothing if that block is
 * not open. */
void opaque_grow(struct opaque_blocks *r, int64_t index, enum opaque_member member,
                 struct str piece);
/* The block at `index` is complete. Thinking that is neither signed nor encrypted, and blank text,
 * are not kept, because no server takes them back. */
void opaque_end(struct opaque_blocks *r, int64_t index);

/* Adds reasoning text that came in a member of that name. */
void opaque_add_reasoning(struct opaque_blocks *r, const char *member, struct str text);
/* Adds an entry of the array `member`. `piece`: it comes from a stream. */
void opaque_add_detail(struct opaque_blocks *r, const char *member, struct str detail, bool piece);
/* Adds to `thinking` an object that came in a member of that name, beside the call of that id, or
 * for STR_NONE beside all calls: {"type":MEMBER,"id":ID,MEMBER:VALUE}. */
void opaque_add_member(struct opaque_blocks *r, const char *member, struct str id,
                       struct str value);
/* Adds an item of the output of a response. `matters`: it holds more than a text or a call. */
void opaque_add_item(struct opaque_blocks *r, struct str item, bool matters);
/* The response is complete: its items are added to `thinking`, unless one is missing or none
 * matters. */
void opaque_add_items(struct opaque_blocks *r);
/* Notes a `container`, an object with `id` and `expires_at`; any other value is ignored. */
void opaque_set_container(struct opaque_blocks *r, struct str container);
/* Returns the newest container of the array, or STR_NONE. */
struct str opaque_container(struct str blocks);
/* Adds a citation, a JSON object. */
void opaque_add_citation(struct opaque_blocks *r, struct str citation);
/* The response has ended. If it `calls` tools, its reasoning and details are added to `thinking` as
 * blocks whose type is the name of the member. Both are empty afterwards. */
void opaque_finish(struct opaque_blocks *r, bool calls);
/* Adds to `out` the array that is stored and goes back; nothing if no block has to go back. It is
 * `turn` if the order or the form of the blocks does not follow from the text and the calls, as it
 * does for thinking, then one text without citations, then calls; otherwise it is `thinking`.
 * Nothing goes back if `turn` is needed and incomplete, because its blocks are valid only together.
 * If the blocks are bound to a request, the first element is {"type":"bound","before":"CHECKSUM"}.
 * A container is an element {"type":"container","container":OBJECT} and no block.
 */
void opaque_add_replay(const struct opaque_blocks *r, struct buf *out);
/* Reads the checksum of an array that opaque_add_replay made. Returns false if it has none. */
bool opaque_bound(struct str blocks, uint64_t *before);
/* Returns true if the array holds other blocks than thinking. */
bool opaque_has_all(struct str blocks);
/* Returns true if `turn` holds every block of the response. */
bool opaque_is_whole(const struct opaque_blocks *r);
/* Appends the blocks of the next part of a response. */
void opaque_join(struct opaque_blocks *r, const struct opaque_blocks *next);

#endif
