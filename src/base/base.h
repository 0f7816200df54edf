/* SPDX-License-Identifier: Apache-2.0
 *
 * base: what every other room stands on. Errors, memory, files, threads, events.
 *
 * Memory and files go through the functions below and nowhere else, so that a test can make the
 * n-th call of any kind fail (see fds__fault_arm) and see that nothing leaks or is half-written.
 */
#ifndef FDS_BASE_H
#define FDS_BASE_H

#include "base/params.h"
#include "base/result.h"
#include "fds.h"
#include "fds/advanced.h"
#include "fds/engine.h"
#include "fds/eval.h"

#include <jansson.h>
#include <stdio.h>

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define FDS__PATH_MAX 4096

/* ---- errors ---- */

/* Fills err (may be NULL) and returns status, so that a failure is one line:
 *     return fds__fail(err, FDS_ERR_FORMAT, "%s: byte %zu: ...", path, at);  */
__attribute__((format(printf, 3, 4))) fds_status fds__fail(fds_error *err, fds_status status,
                                                           const char *format, ...);
fds_status fds__fail_nomem(fds_error *err, size_t size);
/* "cannot VERB PATH: strerror(errno)", FDS_ERR_NOT_FOUND for a missing file, else FDS_ERR_IO. */
fds_status fds__fail_errno(fds_error *err, const char *verb, const char *path);

#define TRY(call)                        \
    do {                                 \
        fds_status try_status_ = (call); \
        if (try_status_ != FDS_OK)       \
            return try_status_;          \
    } while (0)

/* ---- faults, for tests ---- */

typedef enum fds__fault_kind { FDS__FAULT_ALLOC, FDS__FAULT_IO } fds__fault_kind;

/* Makes the nth (from 1) call of a kind fail from now on, once; 0 disarms. Returns how many calls
 * of that kind were made since it was last armed. */
uint64_t fds__fault_arm(fds__fault_kind kind, uint64_t nth);
/* True when this call must fail. */
bool fds__fault(fds__fault_kind kind);

/* ---- memory ---- */

void *fds__alloc(size_t size); /* NULL when there is none; size 0 gives a pointer too */
void *fds__alloc_zero(size_t count, size_t size); /* NULL on overflow of count * size too */
void *fds__realloc(void *old, size_t size);
void *fds__alloc_aligned(size_t size); /* to 64 bytes, zeroed; freed by fds__free as well */
void fds__free(void *memory);
char *fds__strdup(const char *text);
/* *product = a * b, false on overflow */
static inline bool fds__mul(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

/* A growing run of bytes or items; items is fds__realloc'ed. */
fds_status fds__grow(void **items, size_t *capacity, size_t needed, size_t item_size,
                     fds_error *err);

/* ---- texts: text.c ---- */

/* A growing text, its data fds__freed by the owner. Out of memory it stays failed, which
 * fds__text_check tells. */
typedef struct fds__text {
    char *data;
    size_t used, capacity;
    bool is_failed;
} fds__text;

void fds__text_add(fds__text *text, const char *part, size_t size);
/* For everything but floating-point numbers, which a locale might write with a comma; parts of
 * less than 1,024 bytes. */
__attribute__((format(printf, 2, 3))) void fds__text_print(fds__text *text, const char *format,
                                                           ...);
/* The fewest digits that are read back as the same number: as a double, or as a float. */
enum { FDS__NUMBER = 32 };
void fds__write_double(double value, char text[FDS__NUMBER]);
void fds__text_double(fds__text *text, double value);
void fds__text_float(fds__text *text, float value);
void fds__text_digits(fds__text *text, int digits, double value);  /* "%.*g" */
void fds__text_fixed(fds__text *text, int decimals, double value); /* "%.*f", up to 30 decimals */
bool fds__csv_is_quoted(const char *field);             /* whether it must be, in a CSV file */
void fds__text_csv(fds__text *text, const char *field); /* quoted where it must be */
fds_status fds__text_check(const fds__text *text, fds_error *err);

/* ---- small statistics: stats.c ---- */

/* The place of the greatest, the lowest of several. */
uint32_t fds__argmax(const double *values, uint32_t count);
uint32_t fds__argmax_f32(const float *values, uint32_t count);
/* Pearson's correlation of a and b over the places that are in (NULL: all); NaN when undefined:
 * fewer than three, or all alike but for rounding (a variance of 1e-12 of their mean square). */
double fds__correlation(const double *a, const double *b, const bool *in, size_t count);
/* out[j * rows + i] = in[i * columns + j] */
void fds__transpose(const double *in, size_t rows, size_t columns, double *out);
/* Places by falling value, those of equal values by number. */
fds_status fds__rank(const double *values, size_t count, size_t *order, fds_error *err);
/* A number that is a function of a seed and of which draw it is: neighbours stay far apart. */
uint64_t fds__draw_seed(uint64_t seed, uint64_t draw);
/* a times b as the decimal numbers that they were written as: 0.0001f times 10 is 0.001f to the bit. */
float fds__decimal_product(float a, float b);
/* The decimal number that a float of at most 7 digits was written as: 0.1f gives 0.1. */
double fds__decimal(float value);

/* ---- files ---- */

/* The whole of a regular file of at most limit bytes, with a NUL after it; caller fds__frees *data.
 */
fds_status fds__file_read(const char *path, size_t limit, uint8_t **data, size_t *size,
                          fds_error *err);
/* The same, with gzip undone where the file begins with its magic number; limit is of the result.
 */
fds_status fds__file_read_gz(const char *path, size_t limit, uint8_t **data, size_t *size,
                             fds_error *err);

/* A file in the making: written aside, then put in the place of the old one in one step. */
typedef struct fds__out fds__out;
fds_status fds__out_open(const char *path, fds__out **out, fds_error *err);
fds_status fds__out_write(fds__out *out, const void *data, size_t size, fds_error *err);
/* fsync, rename, fsync of the folder. Frees out in any case. On failure the old file stands; when
 * only the last step, the folder's fsync, fails, the new one stands, but might not outlive a loss
 * of power. */
fds_status fds__out_commit(fds__out *out, fds_error *err);
void fds__out_abort(fds__out *out); /* NULL is fine */
/* All of that for data that is there at once. */
fds_status fds__file_write(const char *path, const void *data, size_t size, fds_error *err);

/* Removes a file; its absence outlives a loss of power. */
fds_status fds__file_remove(const char *path, fds_error *err);

bool fds__path_exists(const char *path);
bool fds__path_is_dir(const char *path);
fds_status fds__mkdirs(const char *path, fds_error *err); /* and its parents */
fds_status fds__path_join(char *out, size_t out_size, const char *dir, const char *name,
                          fds_error *err);
/* Names in a folder, sorted by bytes, without those that begin with a dot. */
fds_status fds__dir_list(const char *path, char ***names, size_t *count, fds_error *err);
void fds__dir_list_free(char **names, size_t count);

/* A regular file that is read and written in places. fd is -1 when it is not open; path is copied.
 * Each belongs to one thread at a time. */
typedef struct fds__file {
    int fd;
    bool is_disk_full; /* a write failed for want of space */
    char path[FDS__PATH_MAX];
} fds__file;

typedef enum fds__access { FDS__ACCESS_READ, FDS__ACCESS_UPDATE, FDS__ACCESS_CREATE } fds__access;

/* FDS__ACCESS_READ and FDS__ACCESS_UPDATE (reading and writing) want the file to be there, FDS__ACCESS_CREATE is an update
 * that makes it where it is not. On failure fd is -1. */
fds_status fds__file_open(fds__file *file, const char *path, fds__access access, fds_error *err);
void fds__file_close(fds__file *file); /* not open: nothing happens */
fds_status fds__file_size(fds__file *file, uint64_t *size, fds_error *err);
/* All size bytes at offset, or a failure. */
fds_status fds__file_read_at(fds__file *file, void *data, size_t size, uint64_t offset,
                             fds_error *err);
fds_status fds__file_write_at(fds__file *file, const void *data, size_t size, uint64_t offset,
                              fds_error *err);
fds_status fds__file_truncate(fds__file *file, uint64_t size, fds_error *err);
/* Contents and size are on the disk when it returns. */
fds_status fds__file_sync(fds__file *file, fds_error *err);
/* Held until the file is closed or the process ends, however it ends. FDS_ERR_IO, without waiting, when
 * another holds it; user names in the message what is then in use. */
fds_status fds__file_lock(fds__file *file, const char *user, fds_error *err);
/* The first size (> 0) bytes, to be read only. The file must be that long: a mapping beyond its end
 * ends the process when touched. The mapping outlives the file's closing. */
fds_status fds__file_map(fds__file *file, size_t size, const uint8_t **data, fds_error *err);
void fds__file_unmap(const uint8_t *data, size_t size); /* NULL is fine */

/* What was made, renamed or removed in a folder is on the disk when it returns. */
fds_status fds__dir_sync(const char *path, fds_error *err);
/* Bytes that this process may still write on the disk that path lies on. */
fds_status fds__disk_free(const char *path, uint64_t *bytes, fds_error *err);
/* Removes what processes that died while they wrote the file path have left beside it. Only for the
 * holder of a lock which keeps others from writing it. */
fds_status fds__out_sweep(const char *path, fds_error *err);

/* Runs argv (NULL-terminated, argv[0] searched in PATH) in folder cwd, output discarded.
 * FDS_ERR_NOT_FOUND when there is no such program or folder, FDS_ERR_EXTERNAL when it ends with a failure.
 */
fds_status fds__run_program(const char *const argv[], const char *cwd, fds_error *err);

/* ---- threads ---- */

/* Job number job of a parallel loop, run on worker number worker (0 .. threads-1; the calling
 * thread is 0). A failure stops the loop. */
typedef fds_status (*fds__job)(void *context, size_t job, unsigned worker, fds_error *err);

/* Runs jobs 0 .. count-1 on the given number of threads (0: all processors), reporting progress in
 * jobs from the calling thread. When jobs fail, the error is that of the lowest-numbered. */
fds_status fds__pool_run(unsigned threads, size_t count, fds__job job, void *context,
                         const char *stage, const char *unit, const fds_events *events,
                         fds_error *err);
/* For long jobs, between their steps: reports now and then, and fails with FDS_ERR_CANCELLED, on every
 * worker, once the caller's progress asks to stop. Does nothing outside a parallel loop. */
fds_status fds__pool_check(fds_error *err);
/* How many workers fds__pool_run will use, for sizing per-worker state. */
unsigned fds__pool_workers(unsigned threads, size_t count);

/* ---- events ---- */

__attribute__((format(printf, 3, 4))) void fds__log(const fds_events *events, fds_log_level level,
                                                    const char *format, ...);
/* FDS_ERR_CANCELLED when the callback asks for it. */
fds_status fds__report(const fds_events *events, const char *stage, const char *unit, uint64_t done,
                       uint64_t total, double start_s, fds_error *err);
double fds__now_s(void); /* monotonic */

/* ---- random numbers: what each stream is for ---- */

enum fds__purpose {
    FDS__PURPOSE_INIT = 1,       /* initial weights: a = tensor */
    FDS__PURPOSE_ORDER = 2,      /* place in the mini-batches: a = epoch, b = sample id */
    FDS__PURPOSE_SPLIT = 3,      /* choice of samples: a = sample id */
    FDS__PURPOSE_COALITION = 4,  /* coalitions: a = sampler, b = draw */
    FDS__PURPOSE_KMEANS = 5,     /* first centres of k-means: a = centre */
    FDS__PURPOSE_VALIDATION = 6, /* which inputs an explainer does not see: a = input's place */
    FDS__PURPOSE_TRAINING = 7, /* order of an explainer's inputs: a = epoch, b = 1 for warming up */
    FDS__PURPOSE_DRAW = 8,     /* coalitions of an explainer's steps: a = epoch, b = step */
    FDS__PURPOSE_PERMUTE = 9,  /* orders of the players: a = order */
    FDS__PURPOSE_SUBSET = 10,  /* coalitions of the baselines: a = coalition */
    FDS__PURPOSE_CONTROL = 11, /* values that mean nothing: a = player */
    FDS__PURPOSE_FLIP = 12,    /* wrong labels: a = 0 whose, 1 which, b = sample id */
};

/* ---- shapes ---- */

/* Limits of any network. */
#define FDS__MAX_WEIGHTS ((size_t)1 << 28)     /* 1 GiB of floats */
#define FDS__MAX_ACTIVATIONS ((size_t)1 << 24) /* floats between two layers, of one sample */

static inline bool fds__shape_equal(fds_shape a, fds_shape b) {
    return a.channels == b.channels && a.height == b.height && a.width == b.width;
}
static inline size_t fds__shape_size(fds_shape s) {
    return (size_t)s.channels * s.height * s.width;
}

/* ---- JSON that tells when memory runs out: jansson's own reader and writer then leave parts out ---- */

/* A value as text (flags: as of json_dumps); the caller fds__frees it. NULL: no memory. */
char *fds__json_text(const json_t *value, size_t flags);
/* JSON from memory, without repeated keys; where names it in messages. */
fds_status fds__json_parse(const char *where, const char *text, size_t size, json_t **out,
                           fds_error *err);
/* That of a file of at most limit bytes. */
fds_status fds__json_read(const char *path, size_t limit, json_t **out, fds_error *err);
/* Any text, null for NULL; of one that is not UTF-8 only ASCII is kept, with "?" for the rest. */
json_t *fds__json_string(const char *text);

/* null for what is no finite number */
json_t *fds__json_real(double value);
/* Writes dir/name in the place of an old file; json NULL: no memory. */
fds_status fds__json_write(const char *dir, const char *name, const json_t *json, fds_error *err);
fds_status fds__fail_json(fds_error *err); /* out of memory for JSON */
/* Adds "checksum", XXH3 in 16 hexadecimal digits of all other members as compact JSON with sorted
 * keys; false: no memory. Unsealing takes it out again: FDS_ERR_CORRUPT when it does not agree. */
bool fds__json_seal(json_t *object);
fds_status fds__json_unseal(const char *path, json_t *object, fds_error *err);

/* The first difference between what a file (holder: "table") says and what is wanted now, in words;
 * false when there is none. */
bool fds__json_difference(const json_t *before, const json_t *now, const char *holder, char *text,
                          size_t size);

/* Jansson with one way to fail. The first two take the value over; false: there was no memory for
 * it, or for what it was put into. */
static inline bool fds__json_append(json_t *list, json_t *value) {
    return json_array_append_new(list, value) == 0;
}
static inline bool fds__json_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}
/* The same with a value that has other owners. */
static inline bool fds__json_share(json_t *object, const char *key, const json_t *value) {
    return json_object_set(object, key, (json_t *)(uintptr_t)value) == 0;
}
/* The value, or NULL after it was freed. */
static inline json_t *fds__json_keep_if(json_t *value, bool is_whole) {
    if (is_whole)
        return value;
    json_decref(value);
    return NULL;
}

/* ---- safetensors ---- */

/* One tensor of f32 in a file, or to be written to one. */
typedef struct fds__tensor {
    const char *name;
    uint32_t rank;
    uint32_t dims[4];
    const float *values;
} fds__tensor;

/* A pair of the file's metadata. */
typedef struct fds__meta {
    const char *key, *value;
} fds__meta;

/* A file read whole and checked: every tensor lies within it, none overlap, none is missing a byte.
 */
typedef struct fds__safetensors fds__safetensors;

fds_status fds__safetensors_parse(const char *path, uint8_t *data, size_t size,
                                  fds__safetensors **out, fds_error *err); /* takes data over */
fds_status fds__safetensors_read(const char *path, fds__safetensors **out, fds_error *err);
void fds__safetensors_free(fds__safetensors *file);
size_t fds__safetensors_count(const fds__safetensors *file);
const fds__tensor *fds__safetensors_tensor(const fds__safetensors *file, size_t i);
const fds__tensor *fds__safetensors_find(const fds__safetensors *file, const char *name);
const char *fds__safetensors_meta(const fds__safetensors *file, const char *key); /* or NULL */
fds_status fds__safetensors_write(const char *path, const fds__tensor *tensors, size_t count,
                                  const fds__meta *meta, size_t meta_count, fds_error *err);

/* ---- instruction sets: isa.c ---- */

/* Best first. isa.h has what files that are compiled once for each need. */
typedef enum fds__isa_set { FDS__ISA_AVX512, FDS__ISA_AVX2, FDS__ISA_GENERIC } fds__isa_set;
/* The best that the processor has, or the one that FDS__ISA in the environment names. */
fds_status fds__isa_choose(fds__isa_set *out, fds_error *err);

#endif
