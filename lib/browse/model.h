/*
 * model - the state of the browser, and what keys and the mouse do to it. It knows no terminal and
 * no file, and asks the clock only for queries such as since:7d: it requests data by `wants`, and
 * the caller passes the results in before anything is drawn.
 *
 *     browse_init -> browse_resize -> browse_press, browse_set_*, browse_tick -> browse_release
 *
 * Commands whose data is not there wait in their order (`ahead`) until browse_go_on finds it. A
 * command that ends the browser or needs another program is returned to the caller.
 */
#ifndef CHATHIST_BROWSE_MODEL_H
#define CHATHIST_BROWSE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/history/thread.h"
#include "browse/panel.h"
#include "browse/list.h"
#include "browse/input.h"
#include "browse/marks.h"

static inline size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

/* The fewest columns of a list beside the messages. */
#define BROWSE_LIST_MIN 32
/* A pause in typing of this many milliseconds starts a search. */
#define BROWSE_DEBOUNCE_MS 60
/* The same for one by meaning, which asks a server. */
#define BROWSE_LIKE_MS 500

/* The areas of the screen. */
struct browse_rect {
    size_t row, column, rows, columns;
};
struct browse_areas {
    bool stacked; /* the list above the messages */
    struct browse_rect box, list, text, foot;
    size_t rule; /* the column, or row, between list and messages */
};

/* For a move to the end, or for the order by the number of hits, at most this many hits are read,
 * because each takes some hundred bytes of memory. */
#define BROWSE_HITS_MAX ((size_t)100000)
/* A search pauses after this many hits, until the user comes near the last one. */
#define BROWSE_HITS_FIRST ((size_t)300)

/* A command, and the focus when its key was pressed. */
struct browse_ahead {
    enum browse_command command;
    enum browse_focus focus;
};
/* Commands after these are dropped. */
#define BROWSE_AHEAD_MAX 100

enum browse_mode {
    BROWSE_NORMAL,
    BROWSE_HELPING, /* the help screen */
    BROWSE_ASKING,  /* a question about `asked` waits for y or another key; about BROWSE_DELETE,
                     * before the browser is left, for y, n, or another key that goes back */
    BROWSE_NAMING,  /* the name of the export file is typed */
    BROWSE_FINDING, /* the text to find in this session is typed */
    BROWSE_COPYING, /* a letter says what to copy */
};

/* The chosen line of a list, and the first visible one. */
struct browse_list {
    size_t at, top;
};

/* The hits of a search: messages that hold all words of the query; without any, the newest messages
 * with each word in sessions that hold all words; without these, in sessions that hold all words
 * but one. After a `~` messages that mean the same, the nearest first. */
enum browse_fit { BROWSE_FIT_MESSAGE, BROWSE_FIT_SESSION, BROWSE_FIT_NEARLY, BROWSE_FIT_LIKE };

/* The position to restore from the last visit. Empty: none. */
struct browse_back {
    struct buf session; /* id of the chosen session */
    struct buf message; /* id of the chosen hit, in a list of hits */
    size_t row;         /* its row on the screen */
    bool list, text;    /* not yet restored in the list, in the messages */
    struct buf top, at; /* ids of the top message of the panel and of the current one */
    size_t top_part, top_line;
};

struct browse {
    size_t rows, columns; /* of the screen */
    enum browse_focus focus;
    enum browse_mode mode;
    enum browse_command asked;   /* BROWSE_DELETE, BROWSE_OVERWRITE */
    enum browse_command leaving; /* by what, when the question about BROWSE_DELETE is answered */
    bool deletes;                /* the answer was yes: the marked sessions go */
    uint64_t promised;           /* this many messages: those that the question counted */
    /* The sessions of a question, a copy or an export, even if another one is chosen meanwhile. */
    struct {
        bool marked; /* all that are marked; else this one: */
        size_t history;
        struct buf id;
    } subject;
    struct browse_marks marks;
    size_t help_top;
    bool help_all; /* the help has every key, not only those that work here */
    struct browse_edit query, name, find;
    bool found;              /* the panel marks the text of `find` in place of that of the search */
    bool zoomed;             /* only the panel with the focus is shown */
    bool following;          /* the panel stays at the end of a growing session */
    struct buf status;       /* shown at the foot until the next key */
    const char *role;        /* search only messages of this role; NULL: all */
    bool all;                /* all histories, not only the first */
    enum browse_order order; /* of the sessions */
    bool most_hits;          /* the session with the most hits is first, not the newest */
    size_t histories;
    const struct history *places; /* the histories, borrowed; may be NULL */
    const char *self;             /* argv[0]: the other programs are beside it; borrowed */
    bool choosing, for_chat;      /* as in struct browse_setup */

    struct session_rows sessions; /* with a list for each history */
    struct browse_list session_list;

    bool searching; /* the list shows the hits of `searched` */
    struct buf searched;
    struct buf instead,
        said;         /* the query with other forms of the words, and what it does; or empty */
    struct buf wrong; /* why the text of the box is no query; the list is that of the text before */
    struct browse_hits hits;
    enum browse_fit fit; /* what the hits hold of the query */
    bool answered;  /* the search has given something; else the list is that of the one before */
    bool repeating; /* the search is repeated; its first result replaces `hits` at once */
    bool hits_done; /* all hits have come */
    size_t hits_wanted;  /* the search pauses when it has this many */
    uint64_t hits_total; /* their exact number while not all have come; 0: unknown */
    struct browse_list hit_list;

    struct browse_ahead ahead[BROWSE_AHEAD_MAX]; /* they wait for their data */
    size_t ahead_count;
    struct browse_pane pane;
    /* The session whose messages are in the panel, or wanted for it. */
    struct {
        size_t history;
        struct buf id;
    } shown;
    bool another; /* the panel still has the messages of the session before */
    bool every;   /* the panel shows all its lines, because the hit was replaced */
    struct browse_back back;

    /* What the caller has to read before the next drawing. */
    struct {
        bool sessions; /* the lists of the first history, or of all */
        bool messages; /* those of `shown` */
        bool search;   /* search for `searched`, from its first hit on */
        bool like;     /* search for what it means, after its `~` */
    } wants;
    int64_t search_due; /* time (time_ticks) at which browse_tick starts a search; 0: none */
};

void browse_init(struct browse *b, size_t histories);
void browse_release(struct browse *b);
void browse_resize(struct browse *b, size_t rows, size_t columns);
struct browse_areas browse_areas(const struct browse *b);

/* Chooses line `place` of the list, or its last line. */
void browse_choose(struct browse *b, size_t place);
/* Opens a session when the list has been read. */
void browse_open(struct browse *b, size_t history, struct str id);
/* Starts a search that is due at time `now`. */
void browse_tick(struct browse *b, int64_t now);
/* Makes a search due at once. `again`: it is repeated because the histories have changed. */
void browse_search(struct browse *b, bool again);
/* Requests the messages again if they are of this history, which has changed. */
void browse_changed(struct browse *b, size_t history);
/* Returns the number of messages in the sessions that are to be deleted. *one (unless it is NULL)
 * gets the last of these sessions, or NULL. */
uint64_t browse_deleted_messages(const struct browse *b, const struct row **one);
/* Asks at the foot about BROWSE_OVERWRITE, which browse_press returns when the answer is yes. */
void browse_ask(struct browse *b, enum browse_command command);
/* Shows a text at the foot until the next key. */
void browse_say(struct browse *b, const char *text);
/* Gets session `number`, from 0, of b->subject; *id is borrowed. Returns false after the last. */
bool browse_subject(const struct browse *b, size_t number, size_t *history, struct str *id);
/* Returns the bits of enum browse_condition. */
unsigned browse_conditions(const struct browse *b);
/* Appends the default name of the file to which b->subject is exported. */
void browse_add_file_name(struct buf *out, const struct browse *b);

/* Returns whether the text that is searched for is one for a search by meaning. */
bool browse_asks_meaning(const struct browse *b);

/* The functions below pass in the data read. The contents are moved. */

/* Puts a list (NULL: none) into the list of sessions, and keeps the chosen session on its row. */
void browse_set_sessions(struct browse *b, size_t history, struct session_list *list);
/* The lists that have changed have been passed in, or cannot be read. */
void browse_finish_sessions(struct browse *b);
/* `every`: the thread holds every line of the session. */
void browse_set_messages(struct browse *b, struct thread *t, struct browse_parts *parts,
                         bool every);
/* Has the panel mark the words of the query that is asked in place of `searched`. */
void browse_set_instead(struct browse *b, struct str query, struct str said);
/* The next hits of the search; `done`: these are the last. */
void browse_add_hits(struct browse *b, struct browse_hits *h, enum browse_fit fit, bool done);

/* Gets the chosen session; *id is borrowed. Returns false if the list is empty. */
bool browse_chosen(const struct browse *b, size_t *history, struct str *id);
/* Returns the message id of the chosen hit, borrowed; empty without a hit. */
struct str browse_chosen_hit(const struct browse *b);
/* Returns whether the panel has the messages of this session. */
bool browse_shows(const struct browse *b, size_t history, struct str id);
/* Returns the current message, or NULL. */
const struct message *browse_message(const struct browse *b);
/* Return the number of lines of the list, and its chosen line. */
size_t browse_list_count(const struct browse *b);
const struct browse_list *browse_list(const struct browse *b);

/* Returns true until the list has a first line or is known to be empty. A repeated search keeps its
 * list. */
bool browse_awaits_list(const struct browse *b);
/* Returns true while a search has given nothing yet. */
bool browse_is_searching(const struct browse *b);
/* Returns true while the move to another hit waits until the hits are counted. */
bool browse_is_looking(const struct browse *b);

/* Returns false if Esc closes the browser. */
bool browse_can_go_back(const struct browse *b);

/* ---- keys and the mouse; `now` is a time of time_ticks, in milliseconds ---- */

/* Inserts a character of a paste in the search box, or in the file name that is being typed. It
 * never acts as a command, or as the answer to a question. */
void browse_paste(struct browse *b, int32_t key, int64_t now);
/* Puts the text into the box, in place of one that it completes. */
void browse_complete(struct browse *b, struct str text, int64_t now);
/* Applies a key. Returns the command that remains for the caller, or BROWSE_NOTHING. BROWSE_ENTER
 * means that the user has chosen; for BROWSE_EXPORT the file is in b->name. A command that leaves
 * the browser is returned after the question about the deletions. */
enum browse_command browse_press(struct browse *b, int32_t key, int64_t now);
/* Carries out the commands that wait, up to one whose data is not there, or one that remains for
 * the caller, which it returns. Else returns BROWSE_NOTHING. */
enum browse_command browse_go_on(struct browse *b);
/* Applies a click; `twice` acts like Enter. */
enum browse_command browse_click(struct browse *b, size_t row, size_t column, bool twice,
                                 int64_t now);
/* Scrolls the area at this place by `lines`. */
void browse_wheel(struct browse *b, size_t row, size_t column, long lines);

#endif
