#include "chathist/convert/export_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/path.h"
#include "convert/export_html.h"

/* Makes the folders, and removes what killed programs have left in them. */
static int prepare_folder(const char *folder, struct err *e)
{
    char *parts = path_join(folder, EXPORT_HTML_PARTS);
    int rc = file_make_dirs(parts, e) < 0 ? -1 : 0;

    if (rc == 0)
        file_sweep_dir(parts, export_html_part.suffix);
    free(parts);
    return rc;
}

/* Returns 0 if the file does not exist or is a page of ours, which can be replaced. */
static int check_page(const char *path, struct err *e)
{
    static const char ours[] = "<meta name=\"generator\" content=\"hist-export\">";
    int reason = 0;
    int fd = file_open_regular_at(FILE_CWD, path, O_RDONLY, 0, NULL, &reason, NULL);
    char head[4096];
    ssize_t n = fd < 0 ? -1 : file_pread_full(fd, head, sizeof head, 0);

    file_close(fd);
    if ((fd < 0 && (reason == ENOENT || reason == ENOTDIR)) ||
        (n > 0 && str_find((struct str){head, (size_t)n}, str_of(ours))))
        return 0;
    return err_set(e, ERR_USAGE, "'%s' is no page of hist-export: choose another directory", path);
}

int export_page_begin(struct export_page *p, struct export_job *job, struct err *e)
{
    const struct export_format *format = job->directory ? &export_html_index : &export_html;
    int rc;

    *p = (struct export_page){.job = job};
    if (job->output)
        p->path = path_join(job->directory ? job->output : "",
                            job->directory ? "index.html" : job->output);
    if (job->directory && (check_page(p->path, e) < 0 || prepare_folder(job->output, e) < 0)) {
        free(p->path);
        return -1;
    }
    if (p->path) {
        (void)file_sweep(FILE_CWD, p->path, true, true, NULL);
        if (file_replace_begin(&p->file, p->path, e) < 0) {
            free(p->path);
            return -1;
        }
    }
    job->document = &p->document;
    job->parts = &p->parts;
    rc = p->path ? export_begin(&p->document, format, export_to_file, &p->file, e)
                 : export_begin(&p->document, format, job->sink, job->arg, e);
    if (rc < 0)
        export_page_drop(p);
    return rc;
}

int export_page_add(struct export_page *p, const struct history *h, struct str name, struct err *e)
{
    export_html_add_repository(&p->document.out, name);
    return export_run(p->job, h, e);
}

/* Returns whether it is the name of a part. Other files in the folder are not ours. */
static bool is_part_name(const char *name)
{
    return fnmatch("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]-[0-9a-f]*.js", name, 0) == 0 ||
           fnmatch("undated-[0-9a-f]*.js", name, 0) == 0;
}

/* Removes the parts that the page does not name. */
static int remove_old_parts(const struct export_page *p, struct err *e)
{
    char *folder = path_join(p->job->output, EXPORT_HTML_PARTS);
    struct buf name = BUF_INIT(BUF_SMALL);
    DIR *dir = file_open_dir(FILE_CWD, folder);
    struct dirent *entry;
    int rc = dir ? 0 : -1;

    while (rc == 0 && (entry = readdir(dir))) {
        buf_clear(&name);
        buf_addf(&name, EXPORT_HTML_PARTS "/%s", entry->d_name);
        if (is_part_name(entry->d_name) && !hash_map_find(&p->parts, buf_str(&name)))
            rc = unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (rc < 0)
        (void)err_sys(e, errno, "cannot remove old files from '%s'", folder);
    if (dir)
        closedir(dir);
    buf_release(&name);
    free(folder);
    return rc;
}

/* Puts the parts on disk before the page that names them. */
static int sync_parts(const struct export_page *p, struct err *e)
{
    char *inside = path_join(p->job->output, EXPORT_HTML_PARTS "/.");
    int rc = file_sync_dir_of(inside);

    if (rc < 0)
        (void)err_sys(e, errno, "cannot write '%s'", p->job->output);
    free(inside);
    return rc;
}

static void release_page(struct export_page *p)
{
    export_release(&p->document);
    hash_map_release(&p->parts);
    free(p->path);
    p->job->document = NULL;
}

int export_page_end(struct export_page *p, bool whole, struct err *e)
{
    int rc = export_end(&p->document, e);

    if (rc == 0 && p->job->directory)
        rc = sync_parts(p, e);
    if (rc < 0) {
        export_page_drop(p);
        return -1;
    }
    if (p->path)
        rc = file_replace_end(&p->file, e);
    if (rc == 0 && whole && p->job->directory)
        rc = remove_old_parts(p, e);
    release_page(p);
    return rc;
}

void export_page_drop(struct export_page *p)
{
    if (p->path)
        file_replace_drop(&p->file);
    release_page(p);
}
