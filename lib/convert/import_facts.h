/*
 * import_facts - from what a script says of the records of a file to messages of the history.
 *
 *     record -> script (convert/import_script) -> struct fact -> struct import_message -> import
 *
 * It knows no tool. For all of them it joins the records of one answer, counts the usage of a
 * response once, leaves out what subagents said unless that is wanted, recognises the copies of a
 * fork, and follows the links between records: a prompt that follows an earlier message than the
 * last one replaces the messages since.
 */
#ifndef CHATHIST_CONVERT_IMPORT_FACTS_H
#define CHATHIST_CONVERT_IMPORT_FACTS_H

#include "chathist/base/hash_map.h"
#include "chathist/convert/import_point.h"
#include "convert/import_reader.h"

/* One message, as a script describes it. Texts are empty where the script says nothing. */
struct fact {
    struct import_message message; /* all fields but the session and the origin */
    struct buf session;            /* the id there; else that of the last facts_session */
    struct buf agent;              /* the subagent that said it */
    struct buf id;                 /* the id of the record; else its number */
    struct buf parent;             /* the record that it follows */
    bool joins;                    /* the answer goes on, if nothing came between */
    struct str content;            /* content blocks (JSON), after the text of the message */
};

struct found_title {
    char *session, *text, *of; /* owned; `of` may be NULL */
    int rank;
};

/* The file that is being read. Initialise with facts_init, and end with facts_release. */
struct facts {
    struct source *source;
    const char *format;
    bool tree;                                          /* links and rewinds are used */
    struct buf session, agent, suffix, model, provider; /* for the messages that follow */
    struct buf main_session; /* in the history: of the last message that is no subagent's */
    size_t given;            /* messages, also those that the history had */
    bool several;            /* they are of several sessions */
    /* An answer whose records are being joined, and the results that followed it: the usage may
     * come after them. */
    struct import_message *held;
    size_t held_count, held_cap;
    size_t held_line;          /* number of the line that its records have had, 0 for none */
    struct hash_map responses; /* -> used */
    struct usage *used;        /* what earlier messages of each response have */
    struct hash_map parts;     /* ids of records -> links */
    struct hash_map sessions;  /* in the history, of these */
    struct link {
        size_t parent;  /* number of the record before, from 1 */
        size_t said;    /* place of its message in the path, from 1, when it was given last */
        size_t before;  /* number of the record before it in that path, from 1 */
        size_t session; /* number of its session in `sessions` */
        bool prompt, answer, left;
    } * links;
    bool returned; /* the path led back to a branch that was left */
    /* The path of messages that are shown: numbers of links. From said_count on those that were
     * rewound. */
    size_t *said;
    size_t said_count, said_end, said_cap;
    struct found_title *titles;
    size_t titles_count, titles_cap;
    struct import_point point; /* the last prompt */
};

void fact_init(struct fact *f);
void fact_clear(struct fact *f);
void fact_release(struct fact *f);

void facts_init(struct facts *f, struct source *s, const char *format);
void facts_release(struct facts *f);
/* Continues where facts_point has been. Returns false if the state is none. */
bool facts_continue(struct facts *f, struct str state);
/* Gives the place of the last prompt at the end of a file: no offset if nothing can be read on from
 * there. Its state is moved. */
void facts_point(struct facts *f, struct import_point *point);
/* Takes a message. Returns 0, or -1 with *e set to end the import. */
int facts_message(struct facts *f, struct fact *fact, struct err *e);
/* Sets the usage of the last answer, if it is held. */
void facts_usage(struct facts *f, const struct usage *u);
/* Notes that a record follows another one. */
void facts_link(struct facts *f, struct str id, struct str parent);
/* Notes a record that is not shown any more. If the history has its message, the next message that
 * names its parent replaces it. */
void facts_left(struct facts *f, struct str id);
/* Removes the last `turns` prompts and everything after them. Returns as facts_message. */
int facts_rewind(struct facts *f, int64_t turns, struct err *e);
/* Notes a title of a session (STR_NONE: the current one). The highest rank counts, of these the
 * last one. If `of` is not empty, it counts only if the session has that record. */
void facts_title(struct facts *f, struct str session, struct str title, struct str of, int rank);
/* Leaves an answer at the end of a file for the next import if it may grow: no reason says why it
 * ended, and the file changed within the last minute. What follows of its session in other files
 * waits, too, so that the order stays. */
void facts_wait(struct facts *f);
/* Gives the held answer, and the titles of sessions that have messages; those that come before the
 * messages of their session wait for the next call. Returns as facts_message. */
int facts_end(struct facts *f, struct err *e);
/* At the end of a file, gives the messages again that it shows although one of its own messages
 * replaces them in the history: the user left their branch, and went back to it. The first one
 * replaces what is left now, or the last message does after a return. Returns as facts_message. */
int facts_show_again(struct facts *f, struct err *e);

#endif
