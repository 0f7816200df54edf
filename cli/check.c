/* SPDX-License-Identifier: Apache-2.0
 * Whether an output can be written, before any work. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* The only sure way to learn whether a folder takes files: permissions, read-only file systems
 * and what root may do are all answered at once. */
static fds_status check_folder(const char *what, const char *folder, fds_error *err) {
    struct stat about;
    if (stat(folder, &about) != 0)
        return cli_fail(err, errno == ENOENT ? FDS_ERR_NOT_FOUND : FDS_ERR_IO,
                        "%s: the folder %s cannot be used: %s", what, folder, strerror(errno));
    if (!S_ISDIR(about.st_mode))
        return cli_fail(err, FDS_ERR_IO, "%s: %s is not a folder", what, folder);
    int fd =
        open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600); /* a killed command leaves nothing */
    char probe[PATH_SIZE + 16] = "";
    if (fd < 0 &&
        (errno == EOPNOTSUPP || errno == EISDIR)) { /* a file system without unnamed files */
        snprintf(probe, sizeof probe, "%s/.fds-XXXXXX", folder);
        fd = mkstemp(probe);
    }
    if (fd < 0)
        return cli_fail(err, FDS_ERR_IO, "%s: no file can be written in the folder %s: %s", what,
                        folder, strerror(errno));
    close(fd);
    if (*probe)
        unlink(probe);
    return FDS_OK;
}

/* Whether it ends in one of ".csv|.npy". */
static bool ends_in(const char *path, const char *endings) {
    const char *dot = strrchr(path, '.');
    for (const char *at = endings; dot && *at; at += strspn(at, "|")) {
        size_t length = strcspn(at, "|");
        if (strlen(dot) == length && strncasecmp(dot, at, length) == 0)
            return true;
        at += length;
    }
    return false;
}

/* ".csv|.npy|.json" as ".csv, .npy or .json". */
static fds_status fail_ending(const char *option, const char *path, const char *endings,
                              fds_error *err) {
    char list[64] = "";
    for (const char *at = endings; *at; at++) {
        const char letter[2] = {*at, 0}, *then = strchr(at + 1, '|') ? ", " : " or ";
        strncat(list, *at == '|' ? then : letter, sizeof list - strlen(list) - 1);
    }
    return cli_fail(err, FDS_ERR_USAGE, "%s %s: the name must end in %s", option, path, list);
}

static fds_status check_inputs(const char *option, const char *path, const struct stat *about,
                               const cli_args *args, fds_error *err) {
    struct stat of_input;
    for (size_t i = 0; i <= args->more_count; i++) {
        const char *input = i ? args->more[i - 1] : args->operand;
        if (input && stat(input, &of_input) == 0 && about->st_dev == of_input.st_dev &&
            about->st_ino == of_input.st_ino)
            return cli_fail(err, FDS_ERR_USAGE, "%s %s: this file is an input; choose another name",
                            option, path);
    }
    return FDS_OK;
}

fds_status cli_check_output(const char *option, const char *path, const char *endings,
                            const cli_args *args, fds_error *err) {
    struct stat about;
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= PATH_SIZE)
        return cli_fail(err, FDS_ERR_USAGE, "%s: the path is too long: %.100s...", option, path);
    bool exists = stat(path, &about) == 0;
    if (exists && S_ISDIR(about.st_mode))
        return cli_fail(err, FDS_ERR_USAGE, "%s %s: it is a folder, not the name of a file", option,
                        path);
    if (slash && !slash[1])
        return cli_fail(err, FDS_ERR_USAGE, "%s %s: it is a folder, not the name of a file", option,
                        path);
    if (exists && !S_ISREG(about.st_mode))
        return cli_fail(err, FDS_ERR_USAGE, "%s %s: it is not a regular file", option, path);
    if (endings && !ends_in(path, endings))
        return fail_ending(option, path, endings, err);
    if (exists)
        CLI_TRY(check_inputs(option, path, &about, args, err));
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

void cli_name_folder(const cli_args *args, const char *ending, char *folder, size_t size) {
    size_t length = strlen(args->operand);
    while (length > 1 && args->operand[length - 1] == '/')
        length--;
    const char *start = args->operand + length;
    while (start > args->operand && start[-1] != '/')
        start--;
    int stem = (int)strcspn(start, "./");
    if (args->output)
        snprintf(folder, size, "%s", args->output);
    else
        snprintf(folder, size, "%.*s.%s", stem ? stem : 4, stem ? start : "data", ending);
}
