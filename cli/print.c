/* SPDX-License-Identifier: Apache-2.0
 * What results are made of: names that are safe to show, JSON, and the checks of files to be read
 * and written. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_COLUMNS = 60, PATH_SIZE = 4096 };

fds_status cli_fail(fds_error *err, fds_status status, const char *format, ...) {
    char text[sizeof err->text]; /* aside: the arguments may point into err->text */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    err->status = status;
    memcpy(err->text, text, sizeof text);
    return status;
}

void *cli_alloc(size_t count, size_t size, fds_error *err) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        cli_fail(err, FDS_ERR_NOMEM, "out of memory: %zu items of %zu bytes could not be had",
                 count, size);
    return memory;
}

/* ---- names ---- */

/* How many bytes the UTF-8 character at text has; 0 when it is not one, or is a control character,
 * which on a terminal could do anything. */
static int character(const unsigned char *text) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    int size = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if ((text[0] >= 0x80 && text[0] < 0xc0) || text[0] >= 0xf8)
        return 0;
    uint32_t code = size == 1 ? text[0] : text[0] & (0xffu >> (size + 1));
    for (int i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool is_valid = code >= smallest[size] && code < 0x110000 && (code & ~0x7ffu) != 0xd800;
    return is_valid && !is_control ? size : 0;
}

int cli_columns(const char *text) {
    int columns = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; columns++) {
        int size = character(at);
        at += size ? size : 1;
    }
    return columns;
}

const char *cli_name(const char *name, int width, char out[CLI_NAME_SIZE]) {
    int columns = cli_columns(name), room = width && width < NAME_COLUMNS ? width : NAME_COLUMNS;
    bool is_cut = columns > room;
    int kept = is_cut ? room - 3 : columns;
    char *to = out;
    const unsigned char *at = (const unsigned char *)name;
    for (int i = 0; i < kept; i++) {
        int size = character(at);
        if (size)
            to = (char *)memcpy(to, at, (size_t)size) + size;
        else
            *to++ = '?';
        at += size ? size : 1;
    }
    if (is_cut)
        to = (char *)memcpy(to, "...", 3) + 3;
    for (int i = is_cut ? room : columns; i < width; i++)
        *to++ = ' ';
    *to = 0;
    return out;
}

/* ---- numbers ---- */

const char *cli_count(uint64_t count, char out[CLI_NUMBER_SIZE]) {
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count), at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

const char *cli_bytes(uint64_t bytes, char out[CLI_NUMBER_SIZE]) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1000;
    snprintf(out, CLI_NUMBER_SIZE, "%.*f %s", unit && value < 99.95, value, units[unit]);
    return out;
}

uint64_t cli_resident_bytes(uint64_t *peak) {
    unsigned long size = 0, resident = 0;
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    *peak = (uint64_t)usage.ru_maxrss * 1024;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- JSON ---- */

json_t *cli_json_text(const char *text) {
    json_t *json = json_string(text);
    if (json)
        return json;
    char *copy = malloc(strlen(text) + 1);
    if (!copy)
        return NULL;
    char *to = copy;
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int size = character(at);
        if (!size)
            *to++ = '?';
        for (int i = 0; i < size; i++)
            *to++ = (char)at[i];
        at += size ? size : 1;
    }
    *to = 0;
    json = json_string(copy);
    free(copy);
    return json;
}

json_t *cli_json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *cli_json_float(float value) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    return cli_json_real(strtod(text, NULL));
}

fds_status cli_json_print(json_t *root, fds_error *err) {
    if (!root)
        return cli_fail(err, FDS_ERR_NOMEM, "out of memory for the JSON result");
    bool failed = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) != 0;
    json_decref(root);
    if (failed)
        return cli_fail(err, FDS_ERR_IO, "cannot write to standard output");
    putchar('\n');
    return FDS_OK;
}

/* ---- files ---- */

/* The only sure way to learn whether a folder takes files: permissions, read-only file systems
 * and what root may do are all answered at once. */
static fds_status check_folder(const char *what, const char *folder, fds_error *err) {
    struct stat about;
    if (stat(folder, &about) != 0)
        return cli_fail(err, errno == ENOENT ? FDS_ERR_NOT_FOUND : FDS_ERR_IO,
                        "%s: the folder %s cannot be used: %s", what, folder, strerror(errno));
    if (!S_ISDIR(about.st_mode))
        return cli_fail(err, FDS_ERR_IO, "%s: %s is not a folder", what, folder);
    char probe[PATH_SIZE + 16];
    snprintf(probe, sizeof probe, "%s/.fds-XXXXXX", folder);
    int fd = mkstemp(probe);
    if (fd < 0)
        return cli_fail(err, FDS_ERR_IO, "%s: no file can be written in the folder %s: %s", what,
                        folder, strerror(errno));
    close(fd);
    unlink(probe);
    return FDS_OK;
}

fds_status cli_check_output(const char *option, const char *path, const char *data,
                            fds_error *err) {
    struct stat about, of_data;
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= PATH_SIZE)
        return cli_fail(err, FDS_ERR_USAGE, "%s: the path is too long: %.100s...", option, path);
    bool exists = stat(path, &about) == 0;
    if (exists && S_ISDIR(about.st_mode))
        return cli_fail(err, FDS_ERR_USAGE, "%s %s: it is a folder; the name of a file is needed",
                        option, path);
    if (slash && !slash[1])
        return cli_fail(err, FDS_ERR_USAGE, "%s %s: the name of a file is needed after the folder",
                        option, path);
    if (exists && !S_ISREG(about.st_mode))
        return cli_fail(err, FDS_ERR_USAGE, "%s %s: it is not a regular file", option, path);
    if (exists && stat(data, &of_data) == 0 && about.st_dev == of_data.st_dev &&
        about.st_ino == of_data.st_ino)
        return cli_fail(err, FDS_ERR_USAGE, "%s %s: it is the data itself; choose another name",
                        option, path);
    char folder[PATH_SIZE] = ".";
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    char what[PATH_SIZE + 16]; /* "-o models/a.safetensors" */
    snprintf(what, sizeof what, "%s %s", option, path);
    return check_folder(what, folder, err);
}

fds_status cli_check_folder(const char *option, const char *path, fds_error *err) {
    struct stat about;
    char folder[PATH_SIZE], what[PATH_SIZE + 16];
    if (strlen(path) >= PATH_SIZE)
        return cli_fail(err, FDS_ERR_USAGE, "%s: the path is too long: %.100s...", option, path);
    snprintf(folder, sizeof folder, "%s", path);
    while (stat(folder, &about) != 0 && errno == ENOENT && strcmp(folder, ".") != 0) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            strcpy(folder, ".");
        else
            slash[slash == folder] = 0; /* "/run" is in "/" */
    }
    snprintf(what, sizeof what, "%s %s", option, path);
    return check_folder(what, folder, err);
}

/* Written aside first, so that an old file is never half overwritten. */
fds_status cli_write_file(const char *path, const char *text, size_t size, fds_error *err) {
    char aside[PATH_SIZE + 16];
    snprintf(aside, sizeof aside, "%s.XXXXXX", path);
    int fd = mkstemp(aside);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    mode_t mask = umask(0);
    umask(mask);
    bool is_done = file && fwrite(text, 1, size, file) == size && fflush(file) == 0 &&
                   fchmod(fd, 0666 & ~mask) == 0 && fsync(fd) == 0;
    int reason = errno;
    if (file && fclose(file) != 0 && is_done) {
        is_done = false;
        reason = errno;
    }
    if (is_done && rename(aside, path) == 0)
        return FDS_OK;
    reason = is_done ? errno : reason;
    if (fd >= 0 && !file)
        close(fd);
    if (fd >= 0)
        unlink(aside);
    return cli_fail(err, FDS_ERR_IO, "cannot write %s: %s", path, strerror(reason));
}

fds_status cli_open_data(const char *where, const fds_data_options *options, fds_dataset **train,
                         fds_dataset **test, fds_error *err) {
    fds_status status = fds_data_open(where, options, train, test, err);
    const char *nearest = cli_nearest(where, fds_data_known());
    if (status == FDS_ERR_NOT_FOUND && nearest && strcmp(nearest, where) != 0)
        return cli_fail(err, status, "%s; did you mean \"%s\"?", err->text, nearest);
    return status;
}
