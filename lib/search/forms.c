#include "chathist/search/forms.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "chathist/history/session_list.h"

enum form { SAME, ID, MARKS, STEM_1, STEM_2, STEM_3, EDIT, FORMS };

/* In letters: of the longest words that have forms, whose expressions grow with the square of that;
 * of the shortest ones that are tried with other marks, as an id, and with an edit; the fewest that
 * a stem keeps. */
#define WORD_MOST 64
#define MARKS_LEAST 3
#define ID_LEAST 4
#define EDIT_LEAST 6
#define STEM_LEAST 5
#define CUT_MOST 3
/* The words are taken from this many of the newest messages with one, and this many are asked. */
#define LOOKED_AT 100
/* A form is looked for in the newest bytes of the histories, of which each has an equal part of
 * FORM_BYTES, but at least HISTORY_LEAST. */
#define FORM_BYTES ((off_t)32 << 20)
#define HISTORY_LEAST ((off_t)2 << 20)
#define ASKED_MOST 8
#define SAID_MOST 3
/* A query of more words has no forms: each word would be searched for. */
#define WORDS_MOST 8

struct form_of_word {
    struct buf asked; /* in its place; empty: the word itself */
    struct buf said;  /* the same for people */
    bool absent;      /* no message holds the word */
};

/* ---- expressions ---- */

/* A combining mark of the letter before it. */
#define MARK "[\\x{300}-\\x{36f}]"

static size_t letters(struct str word)
{
    return utf8_count(word);
}

static bool is_form_word(struct str word)
{
    while (word.n > 0) {
        int32_t cp;

        word = str_skip(word, utf8_decode(word, &cp));
        if (!utf8_is_word(cp) && !utf8_is_mark(cp))
            return false;
    }
    return true;
}

/* The letters that have marks in one code point are in these ranges: Latin, Greek, Cyrillic. */
static const struct {
    int32_t from, to;
} composed[] = {{0xc0, 0x24f}, {0x370, 0x52f}, {0x1e00, 0x1fff}};

/* Adds the letters that are `bare` without their marks. */
static void add_marked(struct buf *out, struct str bare)
{
    struct buf other = BUF_INIT(SIZE_MAX);
    char bytes[4] = {0};

    for (size_t i = 0; i < sizeof composed / sizeof *composed; i++) {
        for (int32_t cp = composed[i].from; cp <= composed[i].to; cp++) {
            struct str letter = {bytes, utf8_encode(cp, bytes)};

            buf_clear(&other);
            if (utf8_fold(cp) == cp)
                utf8_add_unmarked(&other, letter);
            if (str_eq(buf_str(&other), bare) && !str_eq(letter, bare))
                buf_add_str(out, letter);
        }
    }
    buf_release(&other);
}

/* Adds an expression for a text, which has no marks, with any marks. */
static void add_any_marks(struct buf *out, struct str bare)
{
    while (bare.n > 0) {
        struct str letter = utf8_first(bare, 1);

        buf_add_byte(out, '[');
        buf_add_str(out, letter);
        add_marked(out, letter);
        buf_add_c(out, "]" MARK "*");
        bare = str_skip(bare, letter.n);
    }
}

/* Adds an expression for a part of a word with one edit. */
static void add_edit_patterns(struct buf *out, struct str part)
{
    buf_add_c(out, "(?:");
    for (size_t i = 0, n; i < part.n; i += n) {
        struct str before = {part.p, i}, letter = utf8_first(str_skip(part, i), 1), next, rest;

        n = letter.n;
        rest = str_skip(part, i + n);
        buf_add_str(out, before);
        buf_add_c(out, "\\w?");
        buf_add_str(out, rest);
        buf_add_byte(out, '|');
        buf_add_str(out, before);
        buf_add_c(out, "\\w");
        buf_add_str(out, letter);
        buf_add_str(out, rest);
        buf_add_byte(out, '|');
        if (rest.n == 0)
            continue;
        next = utf8_first(rest, 1);
        buf_add_str(out, before);
        buf_add_str(out, next);
        buf_add_str(out, letter);
        buf_add_str(out, str_skip(rest, next.n));
        buf_add_byte(out, '|');
    }
    buf_add_str(out, part);
    buf_add_c(out, "\\w)");
}

/* Returns the word without its last letters, or an empty text if too few are left. */
static struct str stem_of(struct str word, size_t cut)
{
    size_t count = letters(word);

    return count >= STEM_LEAST + cut ? utf8_first(word, count - cut) : STR("");
}

static struct str shortest_stem(struct str word)
{
    size_t cut = CUT_MOST;

    while (cut > 0 && stem_of(word, cut).n == 0)
        cut--;
    return stem_of(word, cut);
}

/* Adds an expression for the words that begin with this one but for one edit, which is in one half
 * of the word, or exchanges the letters in its middle. The other half is exact, so that the skip
 * index can help. */
static void add_edited(struct buf *out, struct str word)
{
    size_t count = letters(word);
    struct str half = utf8_first(word, count / 2), rest = str_skip(word, half.n);
    struct str first = utf8_first(word, count / 2 - 1), next = utf8_first(rest, 1);

    buf_add_c(out, "(?<!\\w)(?!");
    buf_add_str(out, shortest_stem(word));
    buf_add_c(out, ")(?:");
    buf_add_str(out, half);
    add_edit_patterns(out, rest);
    buf_add_byte(out, '|');
    add_edit_patterns(out, half);
    buf_add_str(out, rest);
    buf_add_byte(out, '|');
    buf_add_str(out, first);
    buf_add_str(out, next);
    buf_add_str(out, str_skip(half, first.n));
    buf_add_str(out, str_skip(rest, next.n));
    buf_add_c(out, ")\\w{0,3}(?!\\w)");
}

/* ---- the search for a form ---- */

static struct str word_of(const struct forms *f)
{
    size_t at, n;

    return query_word(f->query, f->word, &at, &n);
}

/* Returns whether the text has the form of an id of a session, or with `message` of one that was
 * made for a message: `1719500000000-a1b2c3d4`, or the end of that. */
static bool is_like_id(struct str text, bool message)
{
    bool digit = false;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        digit |= ascii_is_digit(c);
        if (!ascii_is_digit(c) && c != '-' &&
            (message ? c < 'a' || c > 'f' : !ascii_is_letter(c)) &&
            (message || (c != '.' && c != '_' && c != ':')))
            return false;
    }
    return digit && text.n >= (message ? 8 : ID_LEAST);
}

/* Returns whether the word can have this form. When words are joined by their forms, the shortest
 * stem takes the place of the others. */
static bool can_have(const struct forms *f, struct str word, enum form form)
{
    struct str stem;

    if (form == ID)
        return !f->joining && is_like_id(word, false);
    if (form == SAME)
        return !f->joining && word.n > 0;
    if (letters(word) > WORD_MOST || !is_form_word(word))
        return false;
    if (form == MARKS)
        return letters(word) >= MARKS_LEAST;
    if (form == EDIT)
        return letters(word) >= EDIT_LEAST;
    stem = stem_of(word, (size_t)form - STEM_1 + 1);
    return stem.n > 0 && (!f->joining || stem.n == shortest_stem(word).n);
}

/* Makes the pattern of a form. */
static int make_pattern(struct forms *f, struct str word, enum form form, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX), folded = BUF_INIT(SIZE_MAX);
    int result;

    pattern_init(&f->pattern);
    f->pattern.regex = form != SAME && form != ID;
    if (form == MARKS) {
        utf8_add_folded(&folded, word);
        buf_clear(&f->bare);
        utf8_add_unmarked(&f->bare, buf_str(&folded));
        f->pattern.bare = buf_str(&f->bare);
        buf_add_c(&text, "(?!");
        buf_add_str(&text, word);
        buf_add_c(&text, "(?!" MARK "))");
        add_any_marks(&text, f->pattern.bare);
    } else if (form == EDIT) {
        add_edited(&text, word);
    } else if (form != SAME && form != ID) {
        buf_add_c(&text, "(?<!\\w)");
        buf_add_str(&text, stem_of(word, (size_t)form - STEM_1 + 1));
    }
    result = form == SAME ? query_add_word(f->query, f->word, &f->pattern, e)
                          : pattern_add(&f->pattern, buf_str(&text), e);
    buf_release(&text);
    buf_release(&folded);
    return result;
}

/* Notes the text that a message holds. */
static void add_found(struct forms *f, struct str text)
{
    struct buf folded = BUF_INIT(SIZE_MAX);
    size_t *count;

    utf8_add_folded(&folded, text);
    text = buf_str(&folded);
    if (hash_map_add(&f->found, text))
        f->found.entries[f->found.count - 1].value = 0;
    count = hash_map_find(&f->found, text);
    ++*count;
    buf_release(&folded);
}

/* Looks for the id in the list of sessions. Returns 1 if it is there, 0 if not, or -1. */
static int find_session_of_id(struct forms *f, struct str id, struct err *e)
{
    struct session_list list;
    int found;

    if (!f->search.history)
        return 0;
    if (session_list_named(&list, f->search.history, id, 1, e) < 0)
        return -1;
    found = list.count > 0;
    session_list_release(&list);
    return found;
}

/* Begins a search of the next history. Returns 1; 0 if it is not to be searched; -1 with *e set. */
static int open_next(struct forms *f, struct str word, enum form form, struct err *e)
{
    struct buf by_id = BUF_INIT(SIZE_MAX);
    int opened, found;

    if (f->pattern.count == 0 && make_pattern(f, word, form, e) < 0)
        return -1;
    opened = f->open(f->ctx, f->history, &f->search, &f->pattern, e);
    f->opened = opened > 0;
    if (opened <= 0)
        return opened;
    if (f->newest || (form != SAME && form != ID))
        f->search.most = forms_newest_part(f->histories);
    if (form != ID)
        return 1;
    found = find_session_of_id(f, word, e);
    if (found > 0)
        add_found(f, word);
    if (found != 0 || !is_like_id(word, true))
        return found < 0 ? -1 : 0;
    buf_add_c(&by_id, "id:");
    buf_add_str(&by_id, word);
    query_release(&f->by_id);
    opened = query_parse(&f->by_id, buf_str(&by_id), 0, e) == 0 ? 1 : -1;
    f->search.query = &f->by_id;
    buf_release(&by_id);
    return opened;
}

static void close_search(struct forms *f)
{
    if (f->opened)
        search_close(&f->search);
    f->opened = false;
}

static bool has_found_enough(const struct forms *f, enum form form)
{
    size_t sum = 0;

    for (size_t i = 0; i < f->found.count; i++)
        sum += f->found.entries[i].value;
    return sum >= (form == MARKS || form == EDIT ? LOOKED_AT : 1);
}

/* Looks for a form of the word in the present history. Returns as search_next does. */
static int search_form_in(struct forms *f, struct str word, enum form form, struct err *e)
{
    int found = f->opened ? 1 : open_next(f, word, form, e);
    struct hit hit;

    while (found > 0 && !has_found_enough(f, form)) {
        found = search_next(&f->search, &hit, e);
        if (found == SEARCH_PAUSED)
            return found;
        if (found == SEARCH_FAILED)
            err_release(e);
        else if (found == 1)
            add_found(f, form == ID ? word : (struct str){hit.text.p + hit.at, hit.len});
    }
    return found;
}

/* Looks for a form of the word in all histories. Returns as forms_run does. */
static int search_form(struct forms *f, struct str word, enum form form, struct err *e)
{
    for (; f->history < f->histories && !has_found_enough(f, form); f->history++) {
        int found = search_form_in(f, word, form, e);

        if (found == SEARCH_PAUSED)
            return found;
        close_search(f);
        if (found < 0)
            return -1;
    }
    f->history = 0;
    pattern_release(&f->pattern);
    return 0;
}

/* ---- what is asked instead ---- */

/* Removes the text that was found in the most messages, of the same number the newest, and returns
 * it, or NULL after the last one. */
static const struct hash_map_entry *most_found(struct hash_map *found)
{
    struct hash_map_entry *most = NULL;

    for (size_t i = 0; i < found->count; i++)
        if (found->entries[i].value > (most ? most->value : 0))
            most = &found->entries[i];
    if (most)
        most->value = 0;
    return most;
}

/* Adds the texts that were found to those that are asked in place of the word. */
static void use_found(struct forms *f, struct form_of_word *w, struct str word, enum form form)
{
    bool alone = f->found.count == 1 && !f->joining;
    const struct hash_map_entry *one;

    if (w->asked.len == 0 && !alone) {
        buf_add_byte(&w->asked, '/');
        if (f->joining)
            buf_add_str(&w->asked, word);
    }
    for (size_t i = 0; i < ASKED_MOST && (one = most_found(&f->found)); i++) {
        struct str text = one->key;

        if (form == ID)
            buf_add_c(&w->asked, "id:");
        else if (!alone && w->asked.len > 1)
            buf_add_byte(&w->asked, '|');
        buf_add_str(&w->asked, text);
        if (i < SAID_MOST)
            buf_addf(&w->said, "%s'%s%.*s'", w->said.len > 0 ? ", " : "", form == ID ? "id:" : "",
                     (int)text.n, text.p);
    }
    if (!alone && !f->joining)
        buf_add_byte(&w->asked, '/');
}

/* Looks for the current word unchanged. Returns as forms_run does. */
static int look_for_same(struct forms *f, struct str word, struct err *e)
{
    bool known = f->searched && query_words(f->query) == 1 && query_is_words(f->query);
    int result;

    if (!can_have(f, word, SAME))
        return 0;
    result = known ? 0 : search_form(f, word, SAME, e);
    f->words[f->word].absent = result == 0 && f->found.count == 0;
    if (result == 0)
        hash_map_release(&f->found);
    return result;
}

/* Looks for the forms of the current word, from the current one on. Returns as forms_run does. */
static int look_for_forms(struct forms *f, struct str word, struct err *e)
{
    struct form_of_word *w = &f->words[f->word];

    for (; f->form < FORMS && (w->absent || f->joining); f->form++) {
        enum form form = (enum form)f->form;
        bool found;
        int result;

        if (!can_have(f, word, form))
            continue;
        result = search_form(f, word, form, e);
        if (result != 0)
            return result;
        found = f->found.count > 0;
        if (found)
            use_found(f, w, word, form);
        hash_map_release(&f->found);
        if (found && !f->joining)
            break;
    }
    if (f->joining && w->said.len > 0)
        buf_add_byte(&w->asked, '/');
    else if (f->joining)
        buf_clear(&w->asked);
    f->form = ID;
    return 0;
}

static size_t words_with_forms(const struct forms *f)
{
    size_t count = query_words(f->query);

    return count <= WORDS_MOST ? count : 0;
}

/* Puts the other query together. */
static void make_query(struct forms *f)
{
    size_t count = words_with_forms(f), from = 0, at, n;
    struct buf absent = BUF_INIT(SIZE_MAX), shown = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < count; i++)
        f->lost += f->words[i].absent && f->words[i].asked.len == 0;
    if (f->may_lack && f->lost > 1)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct form_of_word *w = &f->words[i];
        struct str word = query_word(f->query, i, &at, &n);
        bool left_out = w->absent && f->may_lack && f->lost == 1 && count > 1;

        if (w->asked.len == 0 && !left_out)
            continue;
        buf_add(&f->asked, f->text.p + from, at - from);
        buf_add_str(&f->asked, buf_str(&w->asked));
        from = at + n;
        if (w->asked.len == 0)
            continue;
        buf_addf(&absent, "%s'%.*s'", absent.len > 0 ? ", " : "", (int)word.n, word.p);
        buf_addf(&shown, "%s%s", shown.len > 0 ? ", " : "", buf_c(&w->said));
    }
    if (from > 0)
        buf_add_str(&f->asked, str_skip(f->text, from));
    if (absent.len > 0) {
        buf_addf(&f->said, f->joining ? "no session has all words; showing %s, too" : "no %s; ",
                 f->joining ? buf_c(&shown) : buf_c(&absent));
        if (!f->joining)
            buf_addf(&f->said, "showing %s", buf_c(&shown));
    }
    buf_release(&absent);
    buf_release(&shown);
}

/* Looks for each word, from the current one on. Returns as forms_run does. */
static int look_for_words(struct forms *f,
                          int (*look)(struct forms *f, struct str word, struct err *e),
                          struct err *e)
{
    int result = 0;

    for (; f->word < words_with_forms(f) && result == 0; f->word += result == 0)
        result = look(f, word_of(f), e);
    if (result == 0)
        f->word = 0;
    return result;
}

static void begin_forms(struct forms *f)
{
    size_t count = words_with_forms(f);

    f->words = mem_zalloc((count + 1) * sizeof *f->words);
    for (size_t i = 0; i < count; i++) {
        buf_init(&f->words[i].asked, SIZE_MAX);
        buf_init(&f->words[i].said, SIZE_MAX);
    }
    buf_init(&f->asked, SIZE_MAX);
    buf_init(&f->said, SIZE_MAX);
    buf_init(&f->bare, SIZE_MAX);
}

off_t forms_newest_part(size_t histories)
{
    off_t part = FORM_BYTES / (off_t)histories;

    return part > HISTORY_LEAST ? part : HISTORY_LEAST;
}

int forms_look_for_words(struct forms *f, struct err *e)
{
    int result;

    if (!f->words)
        begin_forms(f);
    result = look_for_words(f, look_for_same, e);
    f->looked = result == 0;
    for (size_t i = 0; i < words_with_forms(f) && f->looked; i++)
        f->absent += f->words[i].absent;
    return result;
}

int forms_run(struct forms *f, struct err *e)
{
    int result = f->looked ? 0 : forms_look_for_words(f, e);

    if (result != 0)
        return result;
    f->form = f->form == SAME ? ID : f->form;
    f->joining = f->absent == 0;
    if (!f->joining || (f->together && words_with_forms(f) > 1))
        result = look_for_words(f, look_for_forms, e);
    if (result == 0)
        make_query(f);
    return result;
}

void forms_release(struct forms *f)
{
    size_t count = f->words ? words_with_forms(f) : 0;

    close_search(f);
    for (size_t i = 0; i < count; i++) {
        buf_release(&f->words[i].asked);
        buf_release(&f->words[i].said);
    }
    free(f->words);
    hash_map_release(&f->found);
    pattern_release(&f->pattern);
    query_release(&f->by_id);
    buf_release(&f->asked);
    buf_release(&f->said);
    buf_release(&f->bare);
    *f = (struct forms){0};
}
