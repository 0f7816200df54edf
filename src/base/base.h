/* SPDX-License-Identifier: Apache-2.0
 *
 * base: what every other room stands on. Errors, memory, files, threads, events.
 *
 * Memory and files go through the functions below and nowhere else, so that a test can make the
 * n-th call of any kind fail (see fds_fault_arm) and see that nothing leaks or is half-written.
 */
#ifndef FDS_BASE_H
#define FDS_BASE_H

#include "fds.h"

#include <jansson.h>
#include <stdio.h>

#define FDS_MAX(a, b) ((a) > (b) ? (a) : (b))
#define FDS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define FDS_PATH_MAX 4096

/* ---- errors ---- */

/* Fills err (may be NULL) and returns status, so that a failure is one line:
 *     return fds_fail(err, FDS_FORMAT, "%s: byte %zu: ...", path, at);  */
__attribute__((format(printf, 3, 4))) fds_status fds_fail(fds_error *err, fds_status status,
                                                          const char *format, ...);
fds_status fds_fail_nomem(fds_error *err, size_t size);
/* "cannot VERB PATH: strerror(errno)", FDS_NOT_FOUND for a missing file, else FDS_IO. */
fds_status fds_fail_errno(fds_error *err, const char *verb, const char *path);

#define FDS_TRY(call)                    \
    do {                                 \
        fds_status try_status_ = (call); \
        if (try_status_ != FDS_OK)       \
            return try_status_;          \
    } while (0)

/* ---- faults, for tests ---- */

typedef enum fds_fault_kind { FDS_FAULT_ALLOC, FDS_FAULT_IO } fds_fault_kind;

/* Makes the nth (from 1) call of a kind fail from now on, once; 0 disarms. Returns how many calls
 * of that kind were made since it was last armed. */
uint64_t fds_fault_arm(fds_fault_kind kind, uint64_t nth);
/* True when this call must fail. */
bool fds_fault(fds_fault_kind kind);

/* ---- memory ---- */

void *fds_alloc(size_t size); /* NULL when there is none; size 0 gives a pointer too */
void *fds_alloc_zero(size_t count, size_t size); /* NULL on overflow of count * size too */
void *fds_realloc(void *old, size_t size);
void *fds_alloc_aligned(size_t size); /* to 64 bytes, zeroed; freed by fds_free as well */
void fds_free(void *memory);
char *fds_strdup(const char *text);
/* *product = a * b, false on overflow */
static inline bool fds_mul(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

/* A growing run of bytes or items; items is fds_realloc'ed. */
fds_status fds_grow(void **items, size_t *capacity, size_t needed, size_t item_size,
                    fds_error *err);

/* ---- texts: text.c ---- */

/* A growing text, its data fds_freed by the owner. Out of memory it stays failed, which
 * fds_text_check tells. */
typedef struct fds_text {
    char *data;
    size_t used, capacity;
    bool is_failed;
} fds_text;

void fds_text_add(fds_text *text, const char *part, size_t size);
/* For everything but floating-point numbers, which a locale might write with a comma; parts of
 * less than 1,024 bytes. */
__attribute__((format(printf, 2, 3))) void fds_text_print(fds_text *text, const char *format, ...);
/* The fewest digits that are read back as the same number: as a double, or as a float. */
enum { FDS_NUMBER = 32 };
void fds_write_double(double value, char text[FDS_NUMBER]);
void fds_text_double(fds_text *text, double value);
void fds_text_float(fds_text *text, float value);
void fds_text_digits(fds_text *text, int digits, double value);  /* "%.*g" */
void fds_text_fixed(fds_text *text, int decimals, double value); /* "%.*f", up to 30 decimals */
bool fds_csv_is_quoted(const char *field); /* whether it must be, in a CSV file */
fds_status fds_text_check(const fds_text *text, fds_error *err);

/* ---- files ---- */

/* The whole of a regular file of at most limit bytes, with a NUL after it; caller fds_frees *data.
 */
fds_status fds_file_read(const char *path, size_t limit, uint8_t **data, size_t *size,
                         fds_error *err);
/* The same, with gzip undone where the file begins with its magic number; limit is of the result.
 */
fds_status fds_file_read_gz(const char *path, size_t limit, uint8_t **data, size_t *size,
                            fds_error *err);

/* A file in the making: written aside, then put in the place of the old one in one step. */
typedef struct fds_out fds_out;
fds_status fds_out_open(const char *path, fds_out **out, fds_error *err);
fds_status fds_out_write(fds_out *out, const void *data, size_t size, fds_error *err);
/* fsync, rename, fsync of the folder. Frees out in any case. On failure the old file stands; when
 * only the last step, the folder's fsync, fails, the new one stands, but might not outlive a loss
 * of power. */
fds_status fds_out_commit(fds_out *out, fds_error *err);
void fds_out_abort(fds_out *out); /* NULL is fine */
/* All of that for data that is there at once. */
fds_status fds_file_write(const char *path, const void *data, size_t size, fds_error *err);

/* Removes a file; its absence outlives a loss of power. */
fds_status fds_file_remove(const char *path, fds_error *err);

bool fds_path_exists(const char *path);
bool fds_path_is_dir(const char *path);
fds_status fds_mkdirs(const char *path, fds_error *err); /* and its parents */
fds_status fds_path_join(char *out, size_t out_size, const char *dir, const char *name,
                         fds_error *err);
/* Names in a folder, sorted by bytes, without those that begin with a dot. */
fds_status fds_dir_list(const char *path, char ***names, size_t *count, fds_error *err);
void fds_dir_list_free(char **names, size_t count);

/* A regular file that is read and written in places. fd is -1 when it is not open; path is copied.
 * Each belongs to one thread at a time. */
typedef struct fds_file {
    int fd;
    bool is_disk_full; /* a write failed for want of space */
    char path[FDS_PATH_MAX];
} fds_file;

typedef enum fds_access { FDS_READ, FDS_UPDATE, FDS_CREATE } fds_access;

/* FDS_READ and FDS_UPDATE (reading and writing) want the file to be there, FDS_CREATE is an update
 * that makes it where it is not. On failure fd is -1. */
fds_status fds_file_open(fds_file *file, const char *path, fds_access access, fds_error *err);
void fds_file_close(fds_file *file); /* not open: nothing happens */
fds_status fds_file_size(fds_file *file, uint64_t *size, fds_error *err);
/* All size bytes at offset, or a failure. */
fds_status fds_file_read_at(fds_file *file, void *data, size_t size, uint64_t offset,
                            fds_error *err);
fds_status fds_file_write_at(fds_file *file, const void *data, size_t size, uint64_t offset,
                             fds_error *err);
fds_status fds_file_truncate(fds_file *file, uint64_t size, fds_error *err);
/* Contents and size are on the disk when it returns. */
fds_status fds_file_sync(fds_file *file, fds_error *err);
/* Held until the file is closed or the process ends, however it ends. FDS_IO, without waiting, when
 * another holds it; user names in the message what is then in use. */
fds_status fds_file_lock(fds_file *file, const char *user, fds_error *err);
/* The first size (> 0) bytes, to be read only. The file must be that long: a mapping beyond its end
 * ends the process when touched. The mapping outlives the file's closing. */
fds_status fds_file_map(fds_file *file, size_t size, const uint8_t **data, fds_error *err);
void fds_file_unmap(const uint8_t *data, size_t size); /* NULL is fine */

/* What was made, renamed or removed in a folder is on the disk when it returns. */
fds_status fds_dir_sync(const char *path, fds_error *err);
/* Bytes that this process may still write on the disk that path lies on. */
fds_status fds_disk_free(const char *path, uint64_t *bytes, fds_error *err);
/* Removes what processes that died while they wrote the file path have left beside it. Only for the
 * holder of a lock which keeps others from writing it. */
fds_status fds_out_sweep(const char *path, fds_error *err);

/* Runs argv (NULL-terminated, argv[0] searched in PATH) in folder cwd, output discarded.
 * FDS_NOT_FOUND when there is no such program or folder, FDS_EXTERNAL when it ends with a failure.
 */
fds_status fds_run_program(const char *const argv[], const char *cwd, fds_error *err);

/* ---- threads ---- */

/* Job number job of a parallel loop, run on worker number worker (0 .. threads-1; the calling
 * thread is 0). A failure stops the loop. */
typedef fds_status (*fds_job)(void *context, size_t job, unsigned worker, fds_error *err);

/* Runs jobs 0 .. count-1 on the given number of threads (0: all processors), reporting progress in
 * jobs from the calling thread. When jobs fail, the error is that of the lowest-numbered. */
fds_status fds_pool_run(unsigned threads, size_t count, fds_job job, void *context,
                        const char *stage, const char *unit, const fds_events *events,
                        fds_error *err);
/* How many workers fds_pool_run will use, for sizing per-worker state. */
unsigned fds_pool_workers(unsigned threads, size_t count);

/* ---- events ---- */

__attribute__((format(printf, 3, 4))) void fds_log(const fds_events *events, fds_log_level level,
                                                   const char *format, ...);
/* FDS_CANCELLED when the callback asks for it. */
fds_status fds_report(const fds_events *events, const char *stage, const char *unit, uint64_t done,
                      uint64_t total, double start_s, fds_error *err);
double fds_now_s(void); /* monotonic */

/* ---- random numbers: what each stream is for ---- */

enum fds_purpose {
    FDS_PURPOSE_INIT = 1,      /* initial weights: a = tensor */
    FDS_PURPOSE_ORDER = 2,     /* place in the mini-batches: a = epoch, b = sample id */
    FDS_PURPOSE_SPLIT = 3,     /* choice of samples: a = sample id */
    FDS_PURPOSE_COALITION = 4, /* coalitions: a = sampler, b = draw */
    FDS_PURPOSE_KMEANS = 5,    /* first centres of k-means: a = centre */
    FDS_PURPOSE_HELD = 6,      /* which inputs an explainer does not see: a = input's place */
    FDS_PURPOSE_LESSON = 7,    /* order of an explainer's inputs: a = epoch, b = 1 for warming up */
    FDS_PURPOSE_DRAW = 8,      /* coalitions of an explainer's steps: a = epoch, b = step */
    FDS_PURPOSE_PERMUTE = 9,   /* orders of the players: a = order */
    FDS_PURPOSE_SUBSET = 10,   /* coalitions of the baselines: a = coalition */
    FDS_PURPOSE_CONTROL = 11,  /* values that mean nothing: a = player */
    FDS_PURPOSE_FLIP = 12,     /* wrong labels: a = 0 whose, 1 which, b = sample id */
};

/* ---- shapes ---- */

/* Limits of any network. */
#define FDS_MAX_WEIGHTS ((size_t)1 << 28)     /* 1 GiB of floats */
#define FDS_MAX_ACTIVATIONS ((size_t)1 << 24) /* floats between two layers, of one sample */

static inline bool fds_shape_equal(fds_shape a, fds_shape b) {
    return a.channels == b.channels && a.height == b.height && a.width == b.width;
}
static inline size_t fds_shape_size(fds_shape s) { return (size_t)s.channels * s.height * s.width; }

/* ---- JSON that tells when memory runs out: jansson's own reader and writer then leave parts out ---- */

/* A value as text (flags: as of json_dumps); the caller fds_frees it. NULL: no memory. */
char *fds_json_text(const json_t *value, size_t flags);
/* JSON from memory, without repeated keys; where names it in messages. */
fds_status fds_json_parse(const char *where, const char *text, size_t size, json_t **out,
                          fds_error *err);
/* That of a file of at most limit bytes. */
fds_status fds_json_read(const char *path, size_t limit, json_t **out, fds_error *err);
/* Any text, null for NULL; of one that is not UTF-8 only ASCII is kept, with "?" for the rest. */
json_t *fds_json_string(const char *text);

/* null for what is no finite number */
json_t *fds_json_real(double value);
/* Writes dir/name in the place of an old file; json NULL: no memory. */
fds_status fds_json_write(const char *dir, const char *name, const json_t *json, fds_error *err);
fds_status fds_fail_json(fds_error *err); /* out of memory for JSON */

/* The first difference between what a file (holder: "table") says and what is wanted now, in words;
 * false when there is none. */
bool fds_json_difference(const json_t *before, const json_t *now, const char *holder, char *text,
                         size_t size);

/* Jansson with one way to fail. The first two take the value over; false: there was no memory for
 * it, or for what it was put into. */
static inline bool fds_json_append(json_t *list, json_t *value) {
    return json_array_append_new(list, value) == 0;
}
static inline bool fds_json_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}
/* The same with a value that has other owners. */
static inline bool fds_json_share(json_t *object, const char *key, const json_t *value) {
    return json_object_set(object, key, (json_t *)(uintptr_t)value) == 0;
}
/* The value, or NULL after it was freed. */
static inline json_t *fds_json_keep_if(json_t *value, bool is_whole) {
    if (is_whole)
        return value;
    json_decref(value);
    return NULL;
}

/* ---- safetensors ---- */

/* One tensor of f32 in a file, or to be written to one. */
typedef struct fds_tensor {
    const char *name;
    uint32_t rank;
    uint32_t dims[4];
    const float *values;
} fds_tensor;

/* A pair of the file's metadata. */
typedef struct fds_meta {
    const char *key, *value;
} fds_meta;

/* A file read whole and checked: every tensor lies within it, none overlap, none is missing a byte.
 */
typedef struct fds_safetensors fds_safetensors;

fds_status fds_safetensors_parse(const char *path, uint8_t *data, size_t size,
                                 fds_safetensors **out, fds_error *err); /* takes data over */
fds_status fds_safetensors_read(const char *path, fds_safetensors **out, fds_error *err);
void fds_safetensors_free(fds_safetensors *file);
size_t fds_safetensors_count(const fds_safetensors *file);
const fds_tensor *fds_safetensors_tensor(const fds_safetensors *file, size_t i);
const fds_tensor *fds_safetensors_find(const fds_safetensors *file, const char *name);
const char *fds_safetensors_meta(const fds_safetensors *file, const char *key); /* or NULL */
fds_status fds_safetensors_write(const char *path, const fds_tensor *tensors, size_t count,
                                 const fds_meta *meta, size_t meta_count, fds_error *err);

/* ---- instruction sets: isa.c ---- */

/* Best first. isa.h has what files that are compiled once for each need. */
typedef enum fds_isa_set { FDS_ISA_AVX512, FDS_ISA_AVX2, FDS_ISA_GENERIC } fds_isa_set;
/* The best that the processor has, or the one that FDS_ISA in the environment names. */
fds_status fds_isa_choose(fds_isa_set *out, fds_error *err);

#endif
