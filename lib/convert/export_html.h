/*
 * export_html - one self-contained page that is a browser of the history: sessions, messages,
 * search. Its markup, style and script are in lib/port/page/; here the messages are put into it.
 *
 * The messages stand in an element of data, `<script type="application/x-ndjson">`, a JSON object a
 * line as chathist(5) has them, with those fields alone that the page shows: nobody who passes a
 * page on passes on what cannot be seen in it. The script of the page makes text nodes of them.
 *
 * In that element a browser looks for nothing but `</script` and `<!--` (HTML, 13.2.5.15, script
 * data state), and in JSON a `<` can only stand in a string. So `\u003c` for every `<` keeps every
 * message where it belongs. It is data for JSON.parse and never read as a script, which is why
 * U+2028 and U+2029 need nothing.
 */
#ifndef CHATHIST_CONVERT_EXPORT_HTML_H
#define CHATHIST_CONVERT_EXPORT_HTML_H

#include "chathist/convert/export.h"

extern const struct export_format export_html;

#endif
