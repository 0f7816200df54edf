/* SPDX-License-Identifier: Apache-2.0
 * All access to the file system: reading whole files (also gzip), atomic replacement, reading and
 * writing at offsets, folders.
 *
 * A new file is written beside its target as ".NAME.PID-N.tmp", fsynced, renamed over the target,
 * and the folder is fsynced: a reader, or a machine that loses power, sees the old file or the new.
 */
#include "base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- system calls; tests can make each one fail ---- */

static bool io_fails(void) {
    if (!fds__fault(FDS__FAULT_IO))
        return false;
    errno = EIO;
    return true;
}

/* Never returns 0, 1 or 2, which are free where a daemon has closed them: other code would print
 * into our file. */
static int io_open(const char *path, int flags, mode_t mode) {
    int fd = io_fails() ? -1 : open(path, flags | O_CLOEXEC, mode);
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
    close(fd);
    errno = reason;
    return above;
}

/* ---- reading ---- */

static fds_status fail_too_large(fds_error *err, const char *path, size_t size, size_t limit) {
    return fds__fail(err, FDS_ERR_LIMIT, "%s: %zu bytes, at most %zu are allowed", path, size,
                     limit);
}

static fds_status read_open(fds__file *file, size_t limit, const fds_events *events, uint8_t **data,
                            size_t *size, fds_error *err) {
    const double start_s = fds__now_s();
    uint64_t total = 0;
    TRY(fds__file_size(file, &total, err));
    if (total > limit)
        return fail_too_large(err, file->path, (size_t)total, limit);
    OWNED uint8_t *buffer = fds__alloc((size_t)total + 1);
    if (!buffer)
        return fds__fail_nomem(err, (size_t)total + 1);
    for (size_t used = 0, step; used < total; used += step) {
        step = MIN((size_t)total - used, FDS__READ_STEP);
        TRY(fds__report(events, "read", "bytes", used, total, start_s, err));
        TRY(fds__file_read_at(file, buffer + used, step, used, err));
    }
    buffer[total] = 0;
    *data = buffer;
    *size = (size_t)total;
    buffer = NULL; /* the caller's now */
    return FDS_OK;
}

static fds_status read_whole(const char *path, size_t limit, const fds_events *events,
                             uint8_t **data, size_t *size, fds_error *err) {
    fds__file file;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = read_open(&file, limit, events, data, size, err);
    fds__file_close(&file);
    return status;
}

/* Waits for more; hears a cancellation meanwhile. */
static fds_status wait_for_input(size_t used, double start_s, const fds_events *events,
                                 fds_error *err) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    do
        TRY(fds__report(events, "read", "bytes", used, used, start_s, err));
    while (poll(&input, 1, 200) == 0);
    return FDS_OK;
}

static fds_status read_input(size_t limit, const fds_events *events, uint8_t **data, size_t *size,
                             fds_error *err) {
    const double start_s = fds__now_s();
    OWNED void *buffer = NULL;
    size_t capacity = 0, used = 0;
    for (ssize_t got = 1; got != 0;) {
        TRY(fds__grow(&buffer, &capacity, used + ((size_t)1 << 16) + 1, 1, err));
        TRY(wait_for_input(used, start_s, events, err));
        got = io_fails() ? -1 : read(STDIN_FILENO, (uint8_t *)buffer + used, capacity - used - 1);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return fds__fail_errno(err, "read", "standard input");
        used += got > 0 ? (size_t)got : 0;
        if (used > limit)
            return fail_too_large(err, "standard input", used, limit);
    }
    ((uint8_t *)buffer)[used] = 0;
    *data = buffer;
    *size = used;
    buffer = NULL; /* the caller's now */
    return FDS_OK;
}

fds_status fds__file_read(const char *path, size_t limit, uint8_t **data, size_t *size,
                          fds_error *err) {
    return read_whole(path, limit, NULL, data, size, err);
}

fds_status fds__file_read_gz(const char *path, size_t limit, const fds_events *events,
                             uint8_t **data, size_t *size, fds_error *err) {
    uint8_t *raw = NULL;
    size_t raw_size = 0, half = fds__memory_bytes() / 2, most = MIN(limit, half);
    size_t slack = most / 1000 + 1024; /* gzip may add so much to data that it cannot pack */
    fds_status status = strcmp(path, "-") == 0
                            ? read_input(most + slack, events, &raw, &raw_size, err)
                            : read_whole(path, most + slack, events, &raw, &raw_size, err);
    if (raw_size >= 2 && raw[0] == 0x1f && raw[1] == 0x8b) {
        status = fds__unpack_gzip(path, raw, raw_size, most, events, data, size, err);
        fds__free(raw);
    } else if (raw_size >= 4 && memcmp(raw, "\x28\xb5\x2f\xfd", 4) == 0) {
        status = fds__unpack_zstd(path, raw, raw_size, most, events, data, size, err);
        fds__free(raw);
    } else if (raw_size > most) {
        status = fail_too_large(err, path, raw_size, most);
        fds__free(raw);
    } else if (status == FDS_OK) {
        *data = raw;
        *size = raw_size;
    }
    if (status == FDS_ERR_LIMIT && half < limit)
        fds__fail(err, status,
                  "%s; that is half of this machine's memory: split the file, or use a machine "
                  "with more memory",
                  err ? err->text : "");
    return status;
}

fds_status fds__file_read_secret(const char *path, size_t limit, uint8_t **data, size_t *size,
                                 fds_error *err) {
    fds__file file;
    struct stat about;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = FDS_OK;
    if (io_fails() || fstat(file.fd, &about) != 0)
        status = fds__fail_errno(err, "examine", path);
    else if (about.st_mode & 077)
        status =
            fds__fail(err, FDS_ERR_USAGE,
                      "%s: others have access to this secret (mode %03o); after chmod 600 only "
                      "its owner has",
                      path, about.st_mode & 0777u);
    if (status == FDS_OK)
        status = read_open(&file, limit, NULL, data, size, err);
    fds__file_close(&file);
    return status;
}

/* ---- writing ---- */

enum { FLUSH_STEP = 2 << 20 };

struct fds__out {
    fds__file file;           /* path: the target */
    bool is_secret;           /* only its owner can read it, and it replaces nothing */
    uint64_t size;            /* that fds__out_write has written */
    const fds_events *events; /* or NULL */
    uint64_t total;           /* that will be written, for events */
    double start_s;
    char temp[FDS__PATH_MAX + 64], dir[FDS__PATH_MAX];
};

/* Returns where the last part of path begins; dir[FDS__PATH_MAX] receives the folder. */
static const char *split_path(const char *path, char *dir) {
    const char *slash = strrchr(path, '/');
    snprintf(dir, FDS__PATH_MAX, "%.*s", slash ? (int)MAX(slash - path, 1) : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

/* Creates a new file beside the target; O_EXCL: never one that exists. */
static int open_aside(fds__out *out, const char *name) {
    static atomic_uint counter;
    int fd;
    do {
        snprintf(out->temp, sizeof out->temp, "%s/.%s.%ld-%u.tmp", out->dir, name, (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        fd = io_open(out->temp, O_WRONLY | O_CREAT | O_EXCL, out->is_secret ? 0600 : 0666);
    } while (fd < 0 && errno == EEXIST);
    return fd;
}

static fds_status open_out(const char *path, bool is_secret, fds__out **result, fds_error *err) {
    OWNED fds__out *out = NULL;
    struct stat about;
    TRY(NEW(out, 1, err));
    out->is_secret = is_secret;
    out->start_s = fds__now_s();
    const char *name = split_path(path, out->dir);
    if (!*name || strlen(path) >= FDS__PATH_MAX)
        return fds__fail(err, FDS_ERR_USAGE, "\"%s\" is not a file name", path);
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return fds__fail(err, FDS_ERR_IO, "cannot write %s: it is %s", path,
                         S_ISDIR(about.st_mode) ? "a folder" : "not a regular file");
    strcpy(out->file.path, path);
    out->file.fd = open_aside(out, name);
    if (out->file.fd < 0)
        return fds__fail_errno(err, "write", path);
    *result = out;
    out = NULL; /* the caller's now */
    return FDS_OK;
}

fds_status fds__out_open(const char *path, fds__out **result, fds_error *err) {
    return open_out(path, false, result, err);
}

/* At an offset, or with -1 after the last write. */
static fds_status write_all(fds__file *file, const void *data, size_t size, off_t offset,
                            fds_error *err) {
    assert(file->fd >= 0 && (data || size == 0));
    const char *at = data;
    for (size_t used = 0; used < size;) {
        ssize_t done = io_fails() ? -1
                       : offset >= 0
                           ? pwrite(file->fd, at + used, size - used, offset + (off_t)used)
                           : write(file->fd, at + used, size - used);
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0) /* no reason is known, and a retry might never end */
            errno = EIO;
        if (done <= 0) {
            file->is_disk_full |= errno == ENOSPC || errno == EDQUOT;
            return fds__fail_errno(err, "write", file->path);
        }
        used += (size_t)done;
    }
    return FDS_OK;
}

void fds__out_hear(fds__out *out, uint64_t total, const fds_events *events) {
    out->total = total;
    out->events = events;
}

/* Begins to bring the last FLUSH_STEP bytes to the disk, and waits for those before: an fsync of all of
 * them at the end could take long, and nothing interrupts it. */
static fds_status flush(fds__out *out, fds_error *err) {
    const off_t end = (off_t)out->size, last = end - FLUSH_STEP, before = last - FLUSH_STEP;
    TRY(fds__report(out->events, "write", "bytes", out->size, out->total, out->start_s, err));
    int status =
        io_fails() ? -1 : sync_file_range(out->file.fd, last, FLUSH_STEP, SYNC_FILE_RANGE_WRITE);
    if (status == 0 && before >= 0)
        status = sync_file_range(out->file.fd, before, FLUSH_STEP,
                                 SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                     SYNC_FILE_RANGE_WAIT_AFTER);
    if (status != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        return fds__fail_errno(err, "sync", out->file.path);
    return FDS_OK; /* where the file system knows no ranges, fsync does it all */
}

fds_status fds__out_write(fds__out *out, const void *data, size_t size, fds_error *err) {
    const uint8_t *at = data;
    for (size_t used = 0, step; used < size; used += step) {
        step = MIN(size - used, FLUSH_STEP - (size_t)(out->size % FLUSH_STEP));
        TRY(write_all(&out->file, at + used, step, -1, err));
        out->size += step;
        if (out->size % FLUSH_STEP == 0)
            TRY(flush(out, err));
    }
    return FDS_OK;
}

fds_status fds__out_write_at(fds__out *out, const void *data, size_t size, uint64_t offset,
                             fds_error *err) {
    assert(offset <= INT64_MAX);
    return write_all(&out->file, data, size, (off_t)offset, err);
}

static fds_status sync_and_close_dir(int dir, const char *path, fds_error *err) {
    fds_status status = FDS_OK;
    /* EINVAL: the file system cannot sync folders; nothing more can be done */
    if ((io_fails() || fsync(dir) != 0) && errno != EINVAL)
        status = fds__fail_errno(err, "sync folder", path);
    close(dir);
    return status;
}

fds_status fds__dir_sync(const char *path, fds_error *err) {
    int dir = io_open(path, O_RDONLY | O_DIRECTORY, 0);
    return dir < 0 ? fds__fail_errno(err, "open folder", path) : sync_and_close_dir(dir, path, err);
}

/* A link, unlike a rename, fails if the target exists. */
static fds_status put_in_place(const fds__out *out, fds_error *err) {
    const char *path = out->file.path;
    if (!io_fails() && (out->is_secret ? link(out->temp, path) : rename(out->temp, path)) == 0) {
        if (out->is_secret)
            unlink(out->temp);
        return FDS_OK;
    }
    if (out->is_secret && errno == EEXIST)
        return fds__fail(err, FDS_ERR_CONFLICT, "%s exists already and is not replaced", path);
    return fds__fail_errno(err, out->is_secret ? "create" : "replace", path);
}

fds_status fds__out_commit(fds__out *out, fds_error *err) {
    const char *path = out->file.path;
    fds_status status = FDS_OK;
    int dir = -1;
    if (io_fails() || fsync(out->file.fd) != 0)
        status = fds__fail_errno(err, "sync", path);
    int closed = close(out->file.fd);
    out->file.fd = -1;
    if (status == FDS_OK && (io_fails() || closed != 0))
        status = fds__fail_errno(err, "close", path);
    /* opened before the rename: after it only the sync can fail */
    if (status == FDS_OK && (dir = io_open(out->dir, O_RDONLY | O_DIRECTORY, 0)) < 0)
        status = fds__fail_errno(err, "open folder", out->dir);
    if (status == FDS_OK)
        status = put_in_place(out, err);
    if (status != FDS_OK) {
        if (dir >= 0)
            close(dir);
        fds__out_abort(out);
        return status;
    }
    status = sync_and_close_dir(dir, out->dir, err);
    fds__free(out);
    return status;
}

void fds__out_abort(fds__out *out) {
    if (!out)
        return;
    fds__file_close(&out->file);
    unlink(out->temp);
    fds__free(out);
}

static fds_status write_whole(const char *path, bool is_secret, const void *data, size_t size,
                              fds_error *err) {
    fds__out *out;
    TRY(open_out(path, is_secret, &out, err));
    fds_status status = fds__out_write(out, data, size, err);
    if (status == FDS_OK)
        return fds__out_commit(out, err);
    fds__out_abort(out);
    return status;
}

fds_status fds__file_write(const char *path, const void *data, size_t size, fds_error *err) {
    return write_whole(path, false, data, size, err);
}

fds_status fds__file_write_secret(const char *path, const void *data, size_t size, fds_error *err) {
    return write_whole(path, true, data, size, err);
}

/* ---- at offsets ---- */

fds_status fds__file_open(fds__file *file, const char *path, fds__access access, fds_error *err) {
    static const int flags[] = {O_RDONLY, O_RDWR, O_RDWR | O_CREAT};
    struct stat about;
    file->fd = -1;
    file->is_disk_full = false;
    if (strlen(path) >= sizeof file->path)
        return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s...", path);
    strcpy(file->path, path);
    file->fd = io_open(path, flags[access] | O_NONBLOCK, 0666);
    if (file->fd < 0)
        return fds__fail_errno(err, "open", path);
    fds_status status = FDS_OK;
    if (io_fails() || fstat(file->fd, &about) != 0)
        status = fds__fail_errno(err, "examine", path);
    else if (!S_ISREG(about.st_mode))
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: not a regular file", path);
    if (status != FDS_OK)
        fds__file_close(file);
    return status;
}

void fds__file_close(fds__file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

fds_status fds__file_size(fds__file *file, uint64_t *size, fds_error *err) {
    assert(file->fd >= 0);
    struct stat about;
    if (io_fails() || fstat(file->fd, &about) != 0)
        return fds__fail_errno(err, "examine", file->path);
    *size = (uint64_t)about.st_size;
    return FDS_OK;
}

fds_status fds__file_read_at(fds__file *file, void *data, size_t size, uint64_t offset,
                             fds_error *err) {
    assert(file->fd >= 0);
    for (size_t used = 0; used < size;) {
        ssize_t got =
            io_fails() ? -1
                       : pread(file->fd, (char *)data + used, size - used, (off_t)(offset + used));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fds__fail_errno(err, "read", file->path);
        if (got == 0)
            return fds__fail(err, FDS_ERR_IO, "%s: ends at byte %llu, but must have %llu",
                             file->path, (unsigned long long)(offset + used),
                             (unsigned long long)(offset + size));
        used += (size_t)got;
    }
    return FDS_OK;
}

fds_status fds__file_write_at(fds__file *file, const void *data, size_t size, uint64_t offset,
                              fds_error *err) {
    assert(offset <= INT64_MAX);
    return write_all(file, data, size, (off_t)offset, err);
}

fds_status fds__file_truncate(fds__file *file, uint64_t size, fds_error *err) {
    assert(file->fd >= 0);
    if (io_fails() || ftruncate(file->fd, (off_t)size) != 0)
        return fds__fail_errno(err, "truncate", file->path);
    return FDS_OK;
}

fds_status fds__file_sync(fds__file *file, fds_error *err) {
    assert(file->fd >= 0);
    if (io_fails() || fdatasync(file->fd) != 0) {
        /* with delayed allocation a full disk shows only now */
        file->is_disk_full |= errno == ENOSPC || errno == EDQUOT;
        return fds__fail_errno(err, "sync", file->path);
    }
    return FDS_OK;
}

static fds_status lock(fds__file *file, int how, const char *user, fds_error *err) {
    assert(file->fd >= 0);
    if (!io_fails() && flock(file->fd, how | LOCK_NB) == 0)
        return FDS_OK;
    if (errno == EWOULDBLOCK)
        return fds__fail(err, FDS_ERR_IO, "%s is in use by another process", user);
    return fds__fail_errno(err, "lock", file->path);
}

fds_status fds__file_lock(fds__file *file, const char *user, fds_error *err) {
    return lock(file, LOCK_EX, user, err);
}

fds_status fds__file_lock_shared(fds__file *file, const char *user, fds_error *err) {
    return lock(file, LOCK_SH, user, err);
}

fds_status fds__file_map(fds__file *file, size_t size, const uint8_t **data, fds_error *err) {
    assert(file->fd >= 0 && size > 0);
    void *map = io_fails() ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, file->fd, 0);
    if (map == MAP_FAILED)
        return fds__fail_errno(err, "map", file->path);
    *data = map;
    return FDS_OK;
}

void fds__file_unmap(const uint8_t *data, size_t size) {
    if (data)
        munmap((void *)(uintptr_t)data, size);
}

fds_status fds__disk_free(const char *path, uint64_t *bytes, fds_error *err) {
    struct statvfs about;
    if (io_fails() || statvfs(path, &about) != 0)
        return fds__fail_errno(err, "examine the disk of", path);
    *bytes = (uint64_t)about.f_bavail * about.f_frsize;
    return FDS_OK;
}

/* ---- paths and folders ---- */

bool fds__path_exists(const char *path) { return access(path, F_OK) == 0; }

bool fds__path_is_dir(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

fds_status fds__dir_sync_parent(const char *path, fds_error *err) {
    char dir[FDS__PATH_MAX];
    split_path(path, dir);
    return fds__dir_sync(dir, err);
}

fds_status fds__file_remove(const char *path, fds_error *err) {
    if (io_fails() || unlink(path) != 0)
        return fds__fail_errno(err, "remove", path);
    return fds__dir_sync_parent(path, err);
}

fds_status fds__file_rename(const char *from, const char *to, fds_error *err) {
    if (io_fails() || rename(from, to) != 0)
        return fds__fail_errno(err, "rename", from);
    return fds__dir_sync_parent(to, err);
}

fds_status fds__mkdirs(const char *path, fds_error *err) {
    char part[FDS__PATH_MAX];
    if (!*path || strlen(path) >= sizeof part)
        return fds__fail(err, FDS_ERR_USAGE, "\"%.100s\" is not a folder name", path);
    strcpy(part, path);
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != 0)
            continue;
        char kept = *at;
        *at = 0;
        bool is_new = !io_fails() && mkdir(part, 0777) == 0;
        if (!is_new && errno != EEXIST)
            return fds__fail_errno(err, "create folder", part);
        if (is_new)
            TRY(fds__dir_sync_parent(part, err));
        *at = kept;
        if (!kept)
            break;
    }
    errno = ENOTDIR;
    return fds__path_is_dir(path) ? FDS_OK : fds__fail_errno(err, "create folder", path);
}

fds_status fds__path_join(char *out, size_t out_size, const char *dir, const char *name,
                          fds_error *err) {
    size_t len = strlen(dir);
    const char *slash = len && dir[len - 1] == '/' ? "" : "/";
    int size = snprintf(out, out_size, "%s%s%s", dir, slash, name);
    if (size < 0 || (size_t)size >= out_size)
        return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s.../%.100s", dir, name);
    return FDS_OK;
}

fds_status fds__path_check_ending(const char *path, const char *ending, fds_error *err) {
    size_t size = strlen(path), end = strlen(ending);
    return size > end && strcasecmp(path + size - end, ending) == 0
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE, "%s: must end in %s", path, ending);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the names that begin with a dot, or all others. */
static fds_status list_dir(const char *path, bool is_hidden, char ***names, size_t *count,
                           fds_error *err) {
    int fd = io_open(path, O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        fds_status status = fds__fail_errno(err, "open folder", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    void *list = NULL;
    size_t capacity = 0, used = 0;
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        errno = 0;
        struct dirent *entry = io_fails() ? NULL : readdir(dir);
        if (!entry && errno)
            status = fds__fail_errno(err, "read folder", path);
        if (!entry)
            break;
        if ((entry->d_name[0] == '.') != is_hidden)
            continue;
        status = fds__grow(&list, &capacity, used + 1, sizeof(char *), err);
        if (status != FDS_OK)
            break;
        char *name = fds__strdup(entry->d_name);
        if (!name)
            status = fds__fail_nomem(err, strlen(entry->d_name) + 1);
        else
            ((char **)list)[used++] = name;
    }
    closedir(dir);
    if (status != FDS_OK) {
        fds__dir_list_free(list, used);
        return status;
    }
    if (used)
        qsort(list, used, sizeof(char *), by_bytes);
    *names = list;
    *count = used;
    return FDS_OK;
}

fds_status fds__dir_list(const char *path, char ***names, size_t *count, fds_error *err) {
    return list_dir(path, false, names, count, err);
}

fds_status fds__out_sweep(const char *path, fds_error *err) {
    char dir[FDS__PATH_MAX], prefix[FDS__PATH_MAX + 2], left[FDS__PATH_MAX];
    const char *name = split_path(path, dir);
    char **names;
    size_t count;
    snprintf(prefix, sizeof prefix, ".%s.", name);
    TRY(list_dir(dir, true, &names, &count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        size_t len = strlen(names[i]), start = strlen(prefix);
        if (strncmp(names[i], prefix, start) != 0 || len < start + 4 ||
            strcmp(names[i] + len - 4, ".tmp") != 0)
            continue;
        status = fds__path_join(left, sizeof left, dir, names[i], err);
        if (status == FDS_OK && (io_fails() || unlink(left) != 0))
            status = fds__fail_errno(err, "remove", left);
    }
    fds__dir_list_free(names, count);
    return status;
}

void fds__dir_list_free(char **names, size_t count) {
    for (size_t i = 0; i < count; i++)
        fds__free(names[i]);
    fds__free(names);
}

static fds_status add_stamp(const char *path, int depth, uint64_t *stamp, fds_error *err) {
    enum { DEEPEST = 4 };
    struct stat about, own;
    char **names, inner[FDS__PATH_MAX];
    size_t count;
    if (stat(path, &about) != 0 || lstat(path, &own) != 0)
        return FDS_OK;
    const uint64_t what[] = {*stamp,
                             fds_checksum(path, strlen(path)),
                             (uint64_t)about.st_ino,
                             (uint64_t)about.st_size,
                             (uint64_t)about.st_mtim.tv_sec,
                             (uint64_t)about.st_mtim.tv_nsec,
                             (uint64_t)about.st_ctim.tv_sec,
                             (uint64_t)about.st_ctim.tv_nsec};
    *stamp = fds_checksum(what, sizeof what);
    bool is_folder = S_ISDIR(own.st_mode) || (S_ISDIR(about.st_mode) && !depth);
    if (!is_folder || depth == DEEPEST || access(path, R_OK | X_OK) != 0)
        return FDS_OK;
    TRY(fds__dir_list(path, &names, &count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        status = fds__path_join(inner, sizeof inner, path, names[i], err);
        if (status == FDS_OK)
            status = add_stamp(inner, depth + 1, stamp, err);
    }
    fds__dir_list_free(names, count);
    return status;
}

fds_status fds__path_stamp(const char *path, uint64_t *stamp, fds_error *err) {
    *stamp = 0;
    return add_stamp(path, 0, stamp, err);
}
