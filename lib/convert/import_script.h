/*
 * import_script - how the scripts are run.
 *
 * A script is trusted, as templates are; the files that it reads are not. It has no access to
 * files, processes or the network, and each record may cost it a number of instructions and bytes
 * that depends on the size of the record. Each file is read in a state that is new. Only the
 * files import_script* use Lua.
 */
#ifndef CONVERT_IMPORT_SCRIPT_H
#define CONVERT_IMPORT_SCRIPT_H

#include "chathist/convert/import_script.h"
#include "convert/import_reader.h"

/* Sets *found to the format of a file that begins with `head`, or to NULL. Returns 0, or -1 with *e
 * set if a script failed or a database cannot be read. */
int importers_recognise(const struct importers *all, struct source *s, struct str head,
                        const struct import_format **found, struct err *e);

#endif
