/* SPDX-License-Identifier: Apache-2.0
 * JSON that tells when memory runs out: jansson's own reader and writer then leave parts out. */
#ifndef FDS_BASE_JSON_H
#define FDS_BASE_JSON_H

#include "base/base.h"

#include <jansson.h>

/* A value as text (flags: as of json_dumps); the caller fds_frees it. NULL: no memory. */
char *fds_json_text(const json_t *value, size_t flags);
/* JSON from memory, without repeated keys; where names it in messages. */
fds_status fds_json_parse(const char *where, const char *text, size_t size, json_t **out,
                          fds_error *err);
/* That of a file of at most limit bytes. */
fds_status fds_json_read(const char *path, size_t limit, json_t **out, fds_error *err);
/* Any text, null for NULL; of one that is not UTF-8 only ASCII is kept, with "?" for the rest. */
json_t *fds_json_string(const char *text);

#endif
