/*
 * import_database - reads SQLite databases of other programs, which may be in use or hostile.
 *
 * Only plain tables that the importer declares are read, a row has a maximum size, and the work is
 * bounded by the size of the file. Nothing is written, and no new file is left beside the database.
 * Only this file uses sqlite3.
 */
#ifndef CHATHIST_CONVERT_IMPORT_DATABASE_H
#define CHATHIST_CONVERT_IMPORT_DATABASE_H

#include "convert/import_reader.h"

struct database;
struct rows; /* a statement */

bool database_is(struct str head);
/* Opens the database for reading these tables. The names are borrowed. Returns 0, or -1 with *e set
 * and *d NULL. */
int database_open(struct source *s, char *const *tables, size_t count, struct database **d,
                  struct err *e);
void database_close(struct database *d); /* d may be NULL; close its rows before */
/* Refuses a database in which one of the tables is a view, virtual or has generated columns: reading
 * it would execute code of the file. Returns 0, or -1 with *e set. */
int database_check(struct database *d, struct err *e);
/* Returns 0, or -1 with *e set if another program may have changed the database meanwhile. */
int database_unchanged(const struct database *d, struct err *e);
bool database_has_table(struct database *d, const char *name);
bool database_has_column(struct database *d, const char *table, const char *name);

/* Makes a statement. If a table does not exist, it has no rows. Returns 0; -1 with *e set if the
 * database cannot be read, or a table lacks a column: without the statement messages would be left
 * out in silence. The caller closes the rows. */
int database_query(struct database *d, const char *sql, struct rows **r, struct err *e);
void rows_close(struct rows *r); /* r may be NULL */
/* Set argument number i, from 1. */
void rows_bind_text(struct rows *r, int i, struct str text);
void rows_bind_integer(struct rows *r, int i, int64_t number);
/* Advances to the next row. Returns 1; 0 after the last one; -1 with *e set. */
int rows_next(struct rows *r, struct err *e);
void rows_reset(struct rows *r);
/* Returns whether rows_next was called since the last reset. */
bool rows_busy(const struct rows *r);
int rows_columns(const struct rows *r);
const char *rows_name(const struct rows *r, int i);
/* Returns the bytes of column i, from 0, valid until the next row; STR_NONE for NULL. */
struct str rows_text(const struct rows *r, int i);
bool rows_integer(const struct rows *r, int i, int64_t *number);

#endif
