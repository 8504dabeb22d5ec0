/*
 * import_database - reads SQLite databases of other programs, which may be in use or hostile.
 *
 * Only plain tables that the importer declares are read, a row has a maximum size, and the work is
 * bounded by the size of the file. Nothing is written, and no new file is left beside the database.
 */
#ifndef CHATHIST_CONVERT_IMPORT_DATABASE_H
#define CHATHIST_CONVERT_IMPORT_DATABASE_H

#include <sqlite3.h>

#include "convert/import_reader.h"

struct database;

bool database_is(struct str head);
/* Opens the database for reading these tables. The names are borrowed. Returns 0, or -1 with *e set
 * and *d NULL. */
int database_open(struct source *s, char *const *tables, size_t count, struct database **d,
                  struct err *e);
void database_close(struct database *d); /* d may be NULL; close its rows before */
/* Refuses a database in which one of the tables is a view, virtual or has generated columns:
 * reading it would execute code of the file. Returns 0, or -1 with *e set. */
int database_check(struct database *d, struct err *e);
/* Returns 0, or -1 with *e set if another program may have changed the database meanwhile. */
int database_unchanged(const struct database *d, struct err *e);
bool database_has_table(struct database *d, const char *name);
bool database_has_column(struct database *d, const char *table, const char *name);

/* Makes a statement, NULL if one of its tables does not exist. Returns 0; -1 with *e set if the
 * database cannot be read, or a table lacks a column: without the statement messages would be left
 * out in silence. The caller finalizes it before the database is closed. */
int database_query(struct database *d, const char *sql, sqlite3_stmt **statement, struct err *e);
/* Advances to the next row. Returns 1; 0 after the last one, or without a statement; -1 with *e
 * set. */
int database_step(const struct database *d, sqlite3_stmt *statement, struct err *e);

#endif
