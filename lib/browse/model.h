/*
 * browse_model - all that hist-browse shows, as a state that keys and results change. No terminal,
 * no file, no clock: what is to be read is asked for by `wants` and `search_due`, and handed in.
 *
 *     browse_init -> browse_resize -> browse_press, browse_take_*, browse_tick -> browse_release
 *
 * What is for later, until something has been read:
 *     wants, search_due  what the caller is to read, at once or after a pause in typing
 *     ahead              keys that move in a list that is not there
 *     text_ahead         keys for messages that are not there
 *     back               what was chosen when the browser was left
 * and beside this state a command that ends the program or needs another one.
 */
#ifndef CHATHIST_BROWSE_MODEL_H
#define CHATHIST_BROWSE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/history/thread.h"
#include "browse/panel.h"
#include "browse/browse_rows.h"
#include "browse/input.h"

/* A pause in typing that starts a search, in milliseconds. */
#define BROWSE_DEBOUNCE_MS 60

/* Where on the screen the parts are. */
struct browse_rect {
    size_t row, column, rows, columns;
};
struct browse_areas {
    bool stacked; /* the list above the messages */
    struct browse_rect box, list, text, foot;
    size_t rule; /* the column between them, or the row */
};

/* A session to be read. */
struct browse_target {
    size_t history;
    struct buf id;
    off_t first, end; /* where its lines are; end below 0: not known */
    off_t last_line;  /* where its newest line begins, and how many there are; below 0: not known */
    uint64_t count;
    struct buf hit; /* a message that is to be among them; empty: none */
};

void browse_target_init(struct browse_target *t);
void browse_target_release(struct browse_target *t);
bool browse_target_is(const struct browse_target *t, size_t history, struct str id);
/* Keys that moved in a list before it was read: by `lines` from its chosen line, or from its last
 * line. Zero-initialise. */
struct browse_ahead {
    bool last;
    long lines;
};

bool browse_ahead_any(const struct browse_ahead *a);
/* Adds a move. `first`: the first line will be the chosen one, and no line is before it. */
void browse_ahead_move(struct browse_ahead *a, long lines, bool first);
/* Commands for messages before these were read, in their order; more of them are dropped.
 * Zero-initialise. */
#define BROWSE_AHEAD_MAX 64
struct browse_ahead_text {
    enum browse_command at[BROWSE_AHEAD_MAX];
    size_t count;
};

enum browse_mode {
    BROWSE_NORMAL,
    BROWSE_HELPING, /* the help screen */
    BROWSE_ASKING,  /* whether to obey `asked`: y or another key */
    BROWSE_NAMING,  /* the file to export to */
};

/* Which line of a list is chosen, and which is the first that is seen. */
struct browse_list {
    size_t at, top;
};

/* What is to be found again, when the browser was open before. Empty: nothing. */
struct browse_back {
    struct buf session; /* the chosen one; */
    struct buf message; /* of a list of hits, the chosen one */
    size_t row;         /* on which line of the list it was */
    bool list, text;    /* it is still to be done */
    struct buf top, at; /* messages of the panel: the first that was seen, the one acted on */
    size_t top_part, top_line;
};

struct browse {
    size_t rows, columns; /* of the screen */
    enum browse_focus focus;
    enum browse_mode mode;
    enum browse_command asked;    /* BROWSE_DELETE, BROWSE_OVERWRITE */
    struct browse_target subject; /* the session that a question is about, or a file is named for,
                                     whatever is chosen by then */
    size_t help_top;
    struct browse_edit query, name;
    struct buf status; /* said at the foot until the next key */
    const char *role;  /* only its messages; NULL: all */
    bool all;          /* every history, else the first one */
    size_t histories;
    char *const *names; /* of the histories, borrowed; NULL: they have none */
    bool choosing;      /* Enter chooses: --print */

    struct browse_sessions sessions;
    bool sessions_known;
    struct browse_list session_list;

    bool searching; /* the list is that of the hits of `searched` */
    struct buf searched;
    struct browse_hits hits;
    bool hits_done; /* there are no more */
    struct browse_list hit_list;
    struct browse_ahead ahead; /* keys that moved in the list before it was there */

    struct browse_pane pane;
    struct browse_ahead_text text_ahead; /* keys for messages that were not there */
    struct browse_target shown;          /* whose messages are in it */
    bool every;                          /* and all of them, for the hit was replaced or reset */
    struct browse_target target;         /* whose are to be */
    struct browse_back back;

    /* To be done by the caller, who then clears it. */
    struct {
        bool sessions; /* read what browse_wish says */
        bool thread;   /* read `target`, hand it in with `thread_number` */
        bool search;   /* look for `searched`, hand in with `search_number` */
        bool more;     /* go on with it */
    } wants;
    unsigned thread_number, search_number;
    int64_t search_due; /* ms, a search is to be started then (browse_tick); 0: none */
    /* private */
    /* The same search again: the hits replace the old ones when they have caught up. */
    bool refreshing;
    struct browse_hits fresh;
    unsigned fresh_number; /* of the search that `hits` are of */
};

void browse_init(struct browse *b, size_t histories);
void browse_release(struct browse *b);
void browse_resize(struct browse *b, size_t rows, size_t columns);
struct browse_areas browse_areas(const struct browse *b);

/* Is the list that was asked for not there yet? It is when a search that is done again goes on. */
bool browse_awaits_list(const struct browse *b);
/* Chooses line `place` of the list, or the last. */
void browse_choose(struct browse *b, size_t place);
/* Goes where keys wanted to be before there was a list, as far as it is there. */
void browse_go_ahead(struct browse *b);
void browse_set_role(struct browse *b, const char *role);
void browse_set_scope(struct browse *b, bool all);
/* Time passes: starts the search that is due. */
void browse_tick(struct browse *b, int64_t now);
/* Has the search be due at once, again when `again`: the histories have changed. */
void browse_search(struct browse *b, bool again);
/* A history has been changed, not by more behind it: what is shown of it is read again. */
void browse_reread(struct browse *b, size_t history);
/* Asks at the foot whether to: BROWSE_DELETE, BROWSE_OVERWRITE; browse_press gives it when the
 * answer is yes. */
void browse_ask(struct browse *b, enum browse_command command);
/* Says something at the foot. */
void browse_say(struct browse *b, const char *text);
/* Is it known what is chosen: a line of the list, or that it has none? */
bool browse_knows_chosen(const struct browse *b);

/* What is to be read of the sessions; to be released. */
void browse_wish(const struct browse *b, struct browse_wish *w);
/* Results. What is handed in is taken over; what is no longer asked for is dropped. `every`: the
 * thread is every line of the session. */
void browse_take_sessions(struct browse *b, struct browse_sessions *s);
void browse_take_thread(struct browse *b, unsigned number, struct thread *t,
                        struct browse_parts *parts, bool every);
void browse_take_hits(struct browse *b, unsigned number, struct browse_hits *h, bool done);

/* The session that is chosen: false when there is none, or its line has not been read yet.
 * Borrowed. */
bool browse_chosen(const struct browse *b, size_t *history, struct str *id);
/* The message of the chosen hit; empty when there is none. Borrowed. */
struct str browse_chosen_hit(const struct browse *b);
/* The message that is acted on; NULL: none. */
const struct message *browse_message(const struct browse *b);
/* How many lines the list has, and which of them is chosen. */
size_t browse_list_count(const struct browse *b);
const struct browse_list *browse_list(const struct browse *b);

/*
 * browse_press - what keys and the mouse do to the state of hist-browse.
 */

/* A character of a paste goes into the search box, or the name of a file that is asked for; it is
 * never a command, nor the answer to a question. */
void browse_paste(struct browse *b, int32_t key, int64_t now);
/* A key at a time (ms, of clock_ticks). What it gives is for the caller to do, BROWSE_NOTHING when
 * all is done: BROWSE_ENTER is the choice, BROWSE_EXPORT has its file in `name`, BROWSE_DELETE was
 * confirmed. */
enum browse_command browse_press(struct browse *b, int32_t key, int64_t now);
/* Is what the keys asked for on the screen: the list, and the messages of what is chosen in it?
 * Keys for them wait until then, those for a list and messages that are not asked for any more are
 * forgotten. */
bool browse_is_settled(const struct browse *b);
/* Goes on with what a key asked for and was not done at once, for a little while: is there more to
 * do? The next key gives it up. Also does what keys asked of messages that have come. */
bool browse_go_on(struct browse *b);
/* A click on the screen. `twice`: as Enter. */
enum browse_command browse_click(struct browse *b, size_t row, size_t column, bool twice,
                                 int64_t now);
/* The wheel over a place, by so many lines. */
void browse_wheel(struct browse *b, size_t row, size_t column, long lines);

#endif
