/* hist-import - stores conversations with other programs in the history. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/histories.h"
#include "chathist/cli/output.h"
#include "chathist/cli/import_cache.h"
#include "chathist/cli/import_files.h"
#include "chathist/cli/import_place.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/start.h"
#include "chathist/convert/import.h"
#include "chathist/convert/import_script.h"

enum {
    KEY_SCAN = OPT_LONG,
    KEY_ALL,
    KEY_MOVE,
    KEY_SUBAGENTS,
    KEY_AGAIN,
    KEY_HINT,
    KEY_RESUME,
    KEY_DRY_RUN
};

static const struct opt options[] = {
    {'f', "format", OPT_WORD, "lines|" IMPORTERS, "the format of the files; default: recognise it"},
    {KEY_SCAN, "scan", OPT_FLAG, NULL,
     "import the conversations with other programs that were held here"},
    {KEY_ALL, "all", OPT_FLAG, NULL,
     "with --scan: all conversations, each into the history of its place"},
    {KEY_MOVE, "move", OPT_FLAG, NULL,
     "with --scan: move earlier imports into the history of their place, too"},
    {KEY_SUBAGENTS, "subagents", OPT_FLAG, NULL,
     "import messages of subagents, too, as separate sessions"},
    {KEY_AGAIN, "again", OPT_FLAG, NULL, "import also messages that were erased here"},
    {KEY_HINT, "hint", OPT_FLAG, NULL, NULL},        /* for cli/import_hint */
    {KEY_RESUME, "resume", OPT_SESSION, NULL, NULL}, /* for cli/resume_command */
    {KEY_DRY_RUN, "dry-run", OPT_FLAG, NULL,
     "store nothing, list the files and their new messages"},
    {'v', "verbose", OPT_FLAG, NULL, "print the result for each file"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print the imported lines instead of their number"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-import",
                                       "bring conversations with other programs into the history",
                                       "[FILE|DIRECTORY]...", OPT_FILE, options};

/* The exit status if records were skipped or imported without a field. */
#define LEFT_OUT 1

struct run {
    struct choice choice;
    struct import_places places; /* the histories of a scan, unless one is named */
    struct import *import;
    struct import_files files;
    struct importers *importers;
    struct out out;
    const char *format_name;
    const char *resumed;                /* only print the command that continues this session */
    const struct import_format *format; /* NULL: recognise it */
    struct import_options options;
    bool scan, all, move, hint, verbose, json, quiet, progress;
    bool placed;                /* `places` is used */
    struct import_cache *cache; /* what scans have read; NULL: it is not used */
    bool some;                  /* a file was read */
    uint64_t imported, bad;
    uint64_t done, size;     /* the bytes of the files that were read, and of all; 0: unknown */
    struct hash_map formats; /* the formats of files with new messages */
    int status;
};

/* ---- reports ---- */

static void print_listed(void *arg, struct str line)
{
    struct run *r = arg;

    out_json_line(&r->out, line);
}

static void show_progress(void *arg, uint64_t bytes)
{
    const struct run *r = arg;

    if (r->progress)
        progress_work(&(struct task){"import", NULL, r->done + bytes, r->size});
}

static void report_failure(void *arg, struct err *e)
{
    struct run *r = arg;

    warn_err(e);
    r->status = exit_code(e->kind);
    err_release(e);
}

/* Prints a line for a file with something to import: FORMAT, NEW, FILE, and with --all where its
 * messages go. */
static void print_file_result(struct run *r, const struct import_result *of)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    buf_addf(&line, "%s\t%" PRIu64 "\t%s", of->format, of->count.imported, of->name);
    if (r->all) {
        buf_add_byte(&line, '\t');
        history_name_add(&line, of->history);
    }
    buf_add_byte(&line, '\n');
    out_text(&r->out, buf_str(&line));
    buf_release(&line);
}

static void report_done(void *arg, const struct import_result *of)
{
    const struct import_count *c = &of->count;
    struct run *r = arg;

    /* Of a file whose sessions were placed, there is a result for each history. */
    bool some = of->history || c->bad > 0;

    if (r->options.dry_run && !r->json && of->history && !r->hint)
        print_file_result(r, of);
    if (r->verbose && some)
        notef("%s: %s, %" PRIu64 " new, %" PRIu64 " known, %" PRIu64 " bad", of->name, of->format,
              c->imported, c->known, c->bad);
    if (r->hint && c->imported > 0)
        hash_map_add(&r->formats, str_of(of->format));
    r->imported += c->imported;
    r->bad += c->bad;
    if (r->status == 0 && (c->bad > 0 || c->altered > 0))
        r->status = LEFT_OUT;
}

/* ---- the files ---- */

/* Reports a file without a known format. A file that was found in a directory may be anything. */
static void report_unknown(struct run *r, const struct import_file *file, struct err *e)
{
    struct buf names = BUF_INIT(BUF_SMALL);

    importers_names(r->importers, &names);
    if (file->named) {
        err_set(e, ERR_FAILURE, "cannot import '%s': its format is none of %s", file->path,
                buf_c(&names));
        report_failure(r, e);
    } else if (r->verbose) {
        notef("%s: no known format", file->path);
    }
    buf_release(&names);
}

static void import_one(struct run *r, struct import_file *file)
{
    struct err e = ERR_INIT;
    uint64_t bad = r->bad;
    int result;

    if (r->cache && import_cache_knows(r->cache, file)) {
        r->size -= (uint64_t)file->stamp.size;
        return;
    }
    import_places_begin(&r->places);
    result = import_file(r->import, file->path, r->format, r->cache ? &file->point : NULL, &e);
    if (result < 0)
        report_failure(r, &e);
    else if (result == 0)
        report_unknown(r, file, &e);
    else
        r->some = true;
    r->done += (uint64_t)file->stamp.size;
    if (r->cache && result >= 0 && r->bad == bad)
        import_cache_add(r->cache, file);
}

/* Adds the directories in which a program may keep its conversations beside the work: this one and
 * those above it in its repository, that of the history, and with --all those of all histories. */
static void add_dirs(struct run *r, struct words *dirs)
{
    const struct config *c = &r->choice.config;
    const struct history *h = r->choice.histories.at;
    const char *cwd = start_from(c).cwd;
    char *dir = cwd ? mem_text(cwd) : NULL, *above, *git;
    struct histories all = {0};
    bool more = true;

    while (dir && more) {
        words_add(dirs, str_of(dir));
        git = path_join(dir, ".git");
        more = h->kind == HISTORY_REPOSITORY && strcmp(dir, "/") != 0 && access(git, F_OK) < 0;
        above = path_parent(dir);
        free(git);
        free(dir);
        dir = above;
    }
    free(dir);
    words_add(dirs, history_place(h));
    if (r->all && c->state_home)
        histories_add_all(&all, c);
    for (size_t i = 0; i < all.count; i++)
        words_add(dirs, history_place(&all.at[i]));
    histories_release(&all);
}

#define NO_CONVERSATIONS "no conversations of another program were found"

static void find_files(struct run *r, char **names, size_t count)
{
    struct words dirs = {0};

    if (r->scan) {
        add_dirs(r, &dirs);
        if (!import_files_scan(&r->files, &r->choice.config, r->importers, r->format, &dirs) &&
            !r->quiet)
            hintf(r->verbose, NO_CONVERSATIONS);
    }
    words_release(&dirs);
    for (size_t i = 0; i < count; i++)
        import_files_add(&r->files, names[i]);
    import_files_sort(&r->files);
    for (size_t i = 0; i < r->files.count; i++)
        r->size += (uint64_t)r->files.at[i].stamp.size;
}

/* ---- the histories ---- */

/* Moves imported messages from other histories into their own. */
static void move_earlier(struct run *r)
{
    uint64_t moved;

    if (import_places_move(&r->places, &moved) == 0 && moved > 0 && !r->quiet)
        notef("%s %" PRIu64 " session%s", r->options.dry_run ? "would move" : "moved", moved,
              moved == 1 ? "" : "s");
}

/* Opens the import: of a scan for several histories, else for the one of the choice. */
static void open_import(struct run *r)
{
    struct history *h = r->choice.histories.at;
    uint64_t bad_lines = 0;
    struct err e = ERR_INIT;

    r->options.listener = (struct import_listener){r->quiet ? NULL : warn_message, report_done,
                                                   r->json ? print_listed : NULL, show_progress, r};
    if (r->placed) {
        r->places = (struct import_places){.choice = &r->choice,
                                           .all = r->all,
                                           .options = r->options,
                                           .failed = report_failure,
                                           .arg = r};
        import_places_open(&r->places);
        if (r->move)
            move_earlier(r);
        /* The key is a checksum of what decides which messages a file has. */
        if (!r->move && !r->format && !r->options.again && !r->options.dry_run && !r->json)
            r->cache = import_cache_load(
                &r->places,
                hash64(str_of(opt_version()), import_files_key(&r->files)) + r->options.subagents);
        r->options.choose = import_places_choose;
        r->options.choose_arg = &r->places;
    }
    r->import = import_new(r->placed ? NULL : h, &r->options, &bad_lines, &e);
    if (!r->import)
        die_err(&e);
    start_report_bad(h, bad_lines, r->quiet);
}

static void close_import(struct run *r)
{
    struct err e = ERR_INIT;

    if (import_finish(r->import, &e) < 0)
        report_failure(r, &e);
    if (r->placed && import_places_finish(&r->places) == 0 && r->cache)
        import_cache_store(r->cache, r->all);
}

/* Loads the importers, or the one of this name: each costs some of the time in which the program
 * starts. */
static void load_importers(struct run *r, const char *self, const char *only)
{
    r->files.failed = report_failure;
    r->files.arg = r;
    r->importers = import_files_load(&r->files, self, only);
    r->options.importers = r->importers;
}

/* Ends the program unless the format that was named is known. */
static void choose_format(struct run *r, const char *self)
{
    struct buf names = BUF_INIT(BUF_SMALL);

    load_importers(r, self, r->format_name);
    if (r->format_name)
        r->format = importers_named(r->importers, r->format_name);
    if (r->format_name && !r->format) {
        importers_free(r->importers);
        load_importers(r, self, NULL);
        importers_names(r->importers, &names);
        die_usage("unknown format '%s': known are %s", r->format_name, buf_c(&names));
    }
}

static void parse_sources(struct run *r, struct opt_parser *args)
{
    char *value;
    int key;

    while ((key = opt_next(args, &value)) != 0) {
        r->scan |= key == KEY_SCAN;
        r->all |= key == KEY_ALL;
        r->move |= key == KEY_MOVE;
        r->options.subagents |= key == KEY_SUBAGENTS;
        r->hint |= key == KEY_HINT;
        r->options.again |= key == KEY_AGAIN;
        r->options.dry_run |= key == KEY_DRY_RUN;
        r->verbose |= key == 'v';
        if (key == 'f')
            r->format_name = value;
        if (key == KEY_RESUME)
            r->resumed = value;
    }
    r->json = args->common.json;
    r->quiet = args->common.quiet;
    r->progress = !r->quiet && progress_possible();
}

/* ---- the hint of other programs ---- */

/* The most time, and the most bytes of files, to count messages for the hint. */
#define HINT_TIME (30 * TIME_SECOND / 1000)
#define HINT_BYTES ((int64_t)2 << 20)

static void print_hint(struct run *r, bool counted)
{
    struct buf text = BUF_INIT(BUF_LINE);

    if (counted)
        buf_addf(&text, "%" PRIu64 " message%s of ", r->imported, r->imported == 1 ? "" : "s");
    else
        buf_addf(&text, "conversations with %s", r->formats.count == 0 ? "other programs" : "");
    for (size_t i = 0; i < r->formats.count; i++) {
        struct str name = r->formats.entries[i].key;
        const char *erases = importers_erases(r->importers, name.p);

        buf_addf(&text, "%s%s", i > 0 ? " and " : "", name.p);
        if (erases)
            buf_addf(&text, ", which erases them %s,", erases);
    }
    buf_add_c(&text, " belong to this repository: hist-import --scan brings them here\n");
    out_text(&r->out, buf_str(&text));
    buf_release(&text);
}

/* Says which conversations belong to this repository, the newest first, and how many messages they
 * have if that is soon known. */
static void hint(struct run *r)
{
    struct str dir = str_of(r->choice.histories.at[0].dir);
    int64_t end = time_now() + HINT_TIME, left = HINT_BYTES;
    bool found = false, counted = true;

    dir.n -= str_ends(dir, STR("/.git/aicoder")) ? strlen("/.git/aicoder") : 0;
    for (size_t i = r->files.count; i-- > 0 && (counted || r->formats.count == 0);) {
        struct import_file *file = &r->files.at[i];

        if (time_now() > end) {
            counted = false;
            break;
        }
        if (!import_file_names(file, dir))
            continue;
        found = true;
        if (file->stamp.size > left) {
            counted = false;
            continue;
        }
        left -= file->stamp.size;
        import_one(r, file);
    }
    close_import(r);
    if (found && (r->imported > 0 || !counted))
        print_hint(r, counted);
}

/* Prints the command that continues a session in the program it came from, if there is one. Returns
 * the exit status. */
static int print_resume(struct run *r, const char *self)
{
    struct buf command = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    struct str rest = str_of(r->resumed);

    buf_add_str(&name, str_cut(&rest, ':'));
    load_importers(r, self, buf_c(&name));
    out_start(&r->out, COLOR_NEVER);
    if (importers_resume(r->importers, str_of(r->resumed), &command))
        out_text(&r->out, buf_str(&command));
    buf_release(&command);
    buf_release(&name);
    importers_free(r->importers);
    import_files_release(&r->files);
    return out_close(&r->out, r->status);
}

/* Prints the number of imported messages, on a terminal with a name, and then says how many
 * sessions a scan left out because they belong to other histories. */
static void print_number(struct run *r)
{
    size_t left = r->placed && !r->quiet ? import_places_elsewhere(&r->places) : 0;
    struct buf line = BUF_INIT(BUF_SMALL);
    bool one = left == 1;

    buf_add_number(&line, r->imported);
    if (r->out.terminal)
        buf_add_c(&line, r->imported == 1 ? " new message" : " new messages");
    buf_add_byte(&line, '\n');
    out_raw(&r->out, buf_str(&line));
    buf_release(&line);
    if (out_flush(&r->out) < 0)
        return;
    if (left > 0)
        hintf(false, "%zu session%s held elsewhere: --scan --all stores %s there", left,
              one ? " was" : "s were", one ? "it" : "them");
}

/* Ends the program if options contradict each other. */
static void check_options(const struct run *r, size_t files)
{
    if (files == 0 && !r->scan)
        die_usage("a file or directory is expected, or --scan");
    if ((r->all || r->move) && !r->scan)
        die_usage("--all and --move go with --scan");
    if (files > 0 && r->scan)
        die_usage("a file or directory does not go with --scan");
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct run r = {0};
    struct history *h;
    char **names;
    size_t count;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    parse_sources(&r, &args);
    names = opt_operands(&args, &count);
    if (r.resumed)
        return print_resume(&r, argv[0]);
    check_options(&r, count);
    choose_format(&r, argv[0]);
    r.options.foreign = r.options.waits = r.scan;
    r.choice.common = args.common;
    h = choose_open(&r.choice, &(struct choose_want){.use = CHOOSE_STORE,
                                                     .checked = !r.options.dry_run && !r.json});
    r.options.dry_run |= r.hint;
    r.placed = r.scan && h->kind != HISTORY_EXPLICIT;
    if ((r.all || r.move) && !r.placed)
        die_usage("--all and --move do not go with --history or CHAT_HISTORY");
    out_start(&r.out, args.common.color);
    open_import(&r);
    find_files(&r, names, count);
    if (r.hint) {
        hint(&r);
    } else {
        for (size_t i = 0; i < r.files.count; i++)
            import_one(&r, &r.files.at[i]);
        close_import(&r);
        if (count > 0 && !r.some && r.status == 0 && !r.quiet)
            hintf(r.verbose, NO_CONVERSATIONS);
    }
    /* Print a number only if something could be read. */
    if (!r.options.dry_run && !r.json && (r.some || r.imported > 0 || r.status == 0))
        print_number(&r);

    hash_map_release(&r.formats);
    import_free(r.import);
    import_cache_free(r.cache);
    import_places_release(&r.places);
    importers_free(r.importers);
    import_files_release(&r.files);
    choose_release(&r.choice);
    return out_close(&r.out, r.status);
}
