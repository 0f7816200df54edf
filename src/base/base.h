/* SPDX-License-Identifier: Apache-2.0
 *
 * base: errors, memory, files, threads and events. Every other room uses it.
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

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define FDS__PATH_MAX 4096

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files have the byte order of memory");

/* ---- errors ---- */

/* Fills err (may be NULL) and returns status, so that a failure is one line:
 *     return fds__fail(err, FDS_ERR_FORMAT, "%s: byte %zu: ...", path, at);
 * It sanitizes the text (fds__text_sanitize): arguments may come from data. */
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

/* Makes the nth call (from 1) of a kind fail once; 0 disarms. Returns how many calls of that kind
 * were made since it was last armed. */
uint64_t fds__fault_arm(fds__fault_kind kind, uint64_t nth);
/* True when this call must fail. */
bool fds__fault(fds__fault_kind kind);

/* ---- memory ---- */

void *fds__alloc(size_t size); /* NULL: out of memory; size 0 returns a pointer too */
void *fds__alloc_zero(size_t count, size_t size); /* NULL on overflow of count * size too */
void *fds__realloc(void *old, size_t size);
void *fds__alloc_aligned(size_t size); /* to 64 bytes, zeroed; freed by fds__free as well */
void fds__free(void *memory);
uint64_t fds__memory_bytes(void); /* of the machine, or the limit of the process */
char *fds__strdup(const char *text);
/* *product = a * b, false on overflow */
static inline bool fds__mul(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

/* Allocates count zeroed items and sets a pointer to them: TRY(NEW(pointer, count, err)). */
#define NEW(pointer, count, err)                               \
    (((pointer) = fds__alloc_zero((count), sizeof *(pointer))) \
         ? FDS_OK                                              \
         : fds__fail_nomem((err), (count) * sizeof *(pointer)))

/* A local pointer whose memory is freed at the end of its scope, also after a failed TRY:
 *     OWNED double *scratch = NULL;
 *     TRY(NEW(scratch, count, err)); */
#define OWNED __attribute__((cleanup(fds__free_owned)))
static inline void fds__free_owned(void *pointer) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    fds__free(memory);
}

/* Grows an array to at least needed items with fds__realloc. */
fds_status fds__grow(void **items, size_t *capacity, size_t needed, size_t item_size,
                     fds_error *err);

/* ---- hashes: hash.c ---- */

typedef struct fds__bytes {
    const void *data;
    size_t size;
} fds__bytes;

/* SHA-256 of the parts, one after the other. */
void fds__sha256(const fds__bytes *parts, size_t count, uint8_t digest[32]);
/* Of each message alone: several at once, in the lanes of vectors. */
void fds__sha256_each(const fds__bytes *messages, size_t count, uint8_t (*digests)[32]);
/* Of a file, read piece by piece; as fds_sha256_hex writes it. */
fds_status fds__file_sha256(const char *path, char hex[65], fds_error *err);
/* The same with fds_checksum: 16 digits. Ten times as fast, but no protection from forgers. */
fds_status fds__file_checksum(const char *path, char hex[65], fds_error *err);
/* 64 digits, as fds_sha256_hex writes them. False: they are none; NULL is fine. */
void fds__hex_write(const uint8_t digest[32], char hex[65]);
bool fds__hex_read(const char *hex, uint8_t bytes[32]);

/* ---- 16-bit floats: half.c ---- */

uint16_t fds__half_from_float(float value); /* to nearest, ties to even */
double fds__half_to_double(uint16_t half);

/* ---- texts: text.c ---- */

/* A growing text; the owner fds__frees its data. When memory runs out it stays failed, which
 * fds__text_check reports. */
typedef struct fds__text {
    char *data;
    size_t used, capacity;
    bool is_failed;
} fds__text;

void fds__text_add(fds__text *text, const char *part, size_t size);
/* Adds less than 1,024 bytes. Not for floating-point numbers: a locale may write them with a
 * comma. */
__attribute__((format(printf, 2, 3))) void fds__text_print(fds__text *text, const char *format,
                                                           ...);
/* The fewest digits that read back as the same number, as a double, and how many characters. */
enum { FDS__NUMBER = 32 };
size_t fds__write_double(double value, char text[FDS__NUMBER]);
double fds__read_double(const char *text, char **end); /* strtod with a point in every locale */
void fds__text_double(fds__text *text, double value);
void fds__text_float(fds__text *text, float value);
void fds__text_int(fds__text *text, int64_t value); /* "%lld", faster */
/* Writes the digits at the end of the buffer: from what it returns to there. */
enum { FDS__DIGITS = 20 };
char *fds__digits(uint64_t value, char digits[FDS__DIGITS]);
void fds__text_digits(fds__text *text, int digits, double value); /* "%.*g" */
/* "%.9g", many times as fast; of two neighbours that are equally near within 1e-15, either. 0 has no
 * sign. */
void fds__text_nine(fds__text *text, double value);
void fds__text_fixed(fds__text *text, int decimals, double value); /* "%.*f", at most 30 decimals */
/* Bytes of the UTF-8 character that text begins with, and its number; 0 when it is not one. */
size_t fds__utf8(const char *text, uint32_t *code);
bool fds__is_control(uint32_t code); /* C0, DEL, C1: a terminal obeys them */
/* In place: control characters except newline and tab, and bytes that are not UTF-8, become "?". */
void fds__text_sanitize(char *text);
bool fds__is_utf8(const char *text);
/* Adds a text as a field of a CSV file, quoted where necessary. A text that a spreadsheet would run
 * as a formula (it begins with = + - @ tab or CR and is not a number) gets a ' in front. */
void fds__text_csv(fds__text *text, const char *field);
fds_status fds__text_check(const fds__text *text, fds_error *err);

/* ---- results as text: result_json.c ---- */

/* The text of fds_result_json, made prediction by prediction: what is in text may be written and taken
 * away at any time. It begins with the first part of a result of so many predictions. Zeroed at first;
 * the owner frees it, after a failure too. */
typedef struct fds__result_text {
    fds__text text;
    bool has_inputs, is_in_parts;
    size_t written;      /* predictions */
    fds__text players;   /* what each ranking says of a player */
    size_t *player_ends; /* (players) in these */
    size_t *order;       /* (players) */
} fds__result_text;
fds_status fds__result_text_begin(fds__result_text *text, const fds_result *first,
                                  size_t predictions, fds_error *err);
fds_status fds__result_text_add(fds__result_text *text, const fds_result *part, size_t prediction,
                                fds_error *err);
/* seconds: of all parts together, or NaN */
void fds__result_text_end(fds__result_text *text, double seconds);
void fds__result_text_free(fds__result_text *text);

/* ---- small statistics: stats.c ---- */

/* The index of the greatest value, the lowest of several. */
uint32_t fds__argmax(const double *values, uint32_t count);
uint32_t fds__argmax_f32(const float *values, uint32_t count);
/* Pearson's correlation of a and b where in is true (NULL: everywhere); NaN when undefined: fewer
 * than three values, or all equal up to rounding (a variance of 1e-12 of their mean square). */
double fds__correlation(const double *a, const double *b, const bool *in, size_t count);
/* Spearman's: the correlation of the ranks, where equal values share the mean of their ranks; NaN as
 * above. */
fds_status fds__spearman(const double *a, const double *b, size_t count, double *out,
                         fds_error *err);
/* out[j * rows + i] = in[i * columns + j] */
void fds__transpose(const double *in, size_t rows, size_t columns, double *out);
/* Indices by descending value, equal values by ascending index, NaN last. */
fds_status fds__rank(const double *values, size_t count, size_t *order, fds_error *err);
/* The seed of a draw; those of neighbouring seeds and draws are far apart. */
uint64_t fds__draw_seed(uint64_t seed, uint64_t draw);
/* The decimal number of few digits that a float was written as: 0.1f gives 0.1. With three digits or
 * more the seventh may differ: 0.000986f gives 0.0009860001. */
double fds__decimal(float value);
/* The product of these decimal numbers: 0.0001f times 10 is 0.001f to the bit. */
float fds__decimal_product(float a, float b);

/* ---- files ---- */

/* Reads a regular file of at most limit bytes and adds a NUL; the caller fds__frees *data. */
fds_status fds__file_read(const char *path, size_t limit, uint8_t **data, size_t *size,
                          fds_error *err);
/* The same, and unpacks a file that begins with the magic number of gzip or Zstandard. limit is of
 * the result, which may not take more than half of the memory either: readers copy it. Reports to
 * events (stage "read"), which may cancel it. path "-": standard input. */
fds_status fds__file_read_gz(const char *path, size_t limit, const fds_events *events,
                             uint8_t **data, size_t *size, fds_error *err);
/* unpack.c: for the function above. */
fds_status fds__unpack_gzip(const char *path, const uint8_t *data, size_t size, size_t limit,
                            const fds_events *events, uint8_t **out, size_t *out_size,
                            fds_error *err);
fds_status fds__unpack_zstd(const char *path, const uint8_t *data, size_t size, size_t limit,
                            const fds_events *events, uint8_t **out, size_t *out_size,
                            fds_error *err);
/* Bytes between two reports. */
#define FDS__READ_STEP ((size_t)16 << 20)

/* A new file: written beside its target, then renamed over it in one step. */
typedef struct fds__out fds__out;
fds_status fds__out_open(const char *path, fds__out **out, fds_error *err);
/* Reports fds__out_write of total bytes in all to events, which may cancel it. */
void fds__out_hear(fds__out *out, uint64_t total, const fds_events *events);
fds_status fds__out_write(fds__out *out, const void *data, size_t size, fds_error *err);
/* At an offset, in any order; does not move where fds__out_write goes on. */
fds_status fds__out_write_at(fds__out *out, const void *data, size_t size, uint64_t offset,
                             fds_error *err);
/* fsync, rename, fsync of the folder. Frees out in any case. On failure the old file remains; when
 * only the last step, the folder's fsync, fails, the new file is in place but may not survive a
 * power loss. */
fds_status fds__out_commit(fds__out *out, fds_error *err);
void fds__out_abort(fds__out *out); /* NULL is fine */
/* All of these steps for data in memory. */
fds_status fds__file_write(const char *path, const void *data, size_t size, fds_error *err);

/* For secrets. Writes a new file, complete or not at all, that only its owner can read (mode 0600);
 * FDS_ERR_CONFLICT if path exists. */
fds_status fds__file_write_secret(const char *path, const void *data, size_t size, fds_error *err);
/* The same as fds__file_read; FDS_ERR_USAGE if others than the owner have any access. */
fds_status fds__file_read_secret(const char *path, size_t limit, uint8_t **data, size_t *size,
                                 fds_error *err);

/* Removes a file; after a power loss it is still gone. */
fds_status fds__file_remove(const char *path, fds_error *err);
/* Within a folder; after a power loss it is still renamed. */
fds_status fds__file_rename(const char *from, const char *to, fds_error *err);

bool fds__path_exists(const char *path);
bool fds__path_is_dir(const char *path);
fds_status fds__mkdirs(const char *path, fds_error *err); /* and its parents */
fds_status fds__path_join(char *out, size_t out_size, const char *dir, const char *name,
                          fds_error *err);
/* FDS_ERR_USAGE unless path is a name with that ending (".png", in any case). */
fds_status fds__path_check_ending(const char *path, const char *ending, fds_error *err);
/* Names in a folder, sorted by bytes, without those that begin with a dot. */
fds_status fds__dir_list(const char *path, char ***names, size_t *count, fds_error *err);
void fds__dir_list_free(char **names, size_t count);
/* A checksum of the names, sizes and times of a file, or of the files in a folder and in four levels of
 * folders below it: another one says that they have changed. 0 where there is nothing. */
fds_status fds__path_stamp(const char *path, uint64_t *stamp, fds_error *err);

/* A regular file that is read and written in places. fd is -1 when it is not open; path is copied.
 * Each belongs to one thread at a time, but several may call fds__file_read_at. */
typedef struct fds__file {
    int fd;
    bool is_disk_full; /* a write failed because the disk is full */
    char path[FDS__PATH_MAX];
} fds__file;

typedef enum fds__access { FDS__ACCESS_READ, FDS__ACCESS_UPDATE, FDS__ACCESS_CREATE } fds__access;

/* FDS__ACCESS_READ and FDS__ACCESS_UPDATE (reading and writing) need an existing file;
 * FDS__ACCESS_CREATE updates a file and creates a missing one. On failure fd is -1. */
fds_status fds__file_open(fds__file *file, const char *path, fds__access access, fds_error *err);
void fds__file_close(fds__file *file); /* does nothing when it is not open */
fds_status fds__file_size(fds__file *file, uint64_t *size, fds_error *err);
/* Reads all size bytes at offset, or fails. */
fds_status fds__file_read_at(fds__file *file, void *data, size_t size, uint64_t offset,
                             fds_error *err);
fds_status fds__file_write_at(fds__file *file, const void *data, size_t size, uint64_t offset,
                              fds_error *err);
fds_status fds__file_truncate(fds__file *file, uint64_t size, fds_error *err);
/* When it returns, contents and size are on the disk. */
fds_status fds__file_sync(fds__file *file, fds_error *err);
/* Locks the file until it is closed or the process ends. Does not wait: FDS_ERR_IO when another
 * process holds the lock. user is what the message says is in use. */
fds_status fds__file_lock(fds__file *file, const char *user, fds_error *err);
/* Against writers only. It is all that a file open for reading can get on NFS. */
fds_status fds__file_lock_shared(fds__file *file, const char *user, fds_error *err);
/* Maps the first size (> 0) bytes for reading. The file must be that long: access beyond its end
 * kills the process. The mapping stays valid after the file is closed. */
fds_status fds__file_map(fds__file *file, size_t size, const uint8_t **data, fds_error *err);
void fds__file_unmap(const uint8_t *data, size_t size); /* NULL is fine */

/* When it returns, everything created, renamed or removed in the folder is on the disk. */
fds_status fds__dir_sync(const char *path, fds_error *err);
/* The same for the folder of path, so that a new path survives a loss of power. */
fds_status fds__dir_sync_parent(const char *path, fds_error *err);
/* Bytes that this process may still write on the disk of path. */
fds_status fds__disk_free(const char *path, uint64_t *bytes, fds_error *err);
/* Removes the temporary files that killed writers of path left beside it. The caller must hold a
 * lock that keeps others from writing path. */
fds_status fds__out_sweep(const char *path, fds_error *err);

/* Runs argv (NULL-terminated, argv[0] searched in PATH) in folder cwd, output discarded.
 * FDS_ERR_NOT_FOUND: no such program or folder. FDS_ERR_EXTERNAL: the program failed. */
fds_status fds__run_program(const char *const argv[], const char *cwd, fds_error *err);

/* A program that answers over pipes: child.c. pid 0, and all else -1 or 0: none is running. Belongs to one thread at a
 * time. */
enum { FDS__CHILD_LINES = 20, FDS__CHILD_LINE = 200 };
typedef struct fds__child {
    pid_t pid;         /* 0: none */
    int to, from, log; /* its standard input, output and error; -1: closed */
    char lines[FDS__CHILD_LINES + 1][FDS__CHILD_LINE]; /* the last ones of its standard error */
    size_t line_count, line_used;                      /* complete lines; bytes of the next one */
} fds__child;

/* Runs a command of the shell in a process group of its own, with one thread (OMP_NUM_THREADS) and
 * PYTHONHASHSEED=0. */
fds_status fds__child_start(fds__child *child, const char *command, fds_error *err);
/* All size bytes within limit_s. FDS_ERR_EXTERNAL, with the reason as in "it ended with exit code 1",
 * unless the child does its part; FDS_ERR_CANCELLED within a parallel loop (fds__pool_check). */
fds_status fds__child_write(fds__child *child, const void *data, size_t size, double limit_s,
                            fds_error *err);
fds_status fds__child_read(fds__child *child, void *data, size_t size, double limit_s,
                           fds_error *err);
/* Closes its input, which tells it to end. */
void fds__child_hang_up(fds__child *child);
/* The same, gives it so long to end by itself, and kills what is left of its group. Its lines remain. */
void fds__child_stop(fds__child *child, double patience_s);
/* The last lines of its standard error, at most 20, the oldest first. */
size_t fds__child_lines(const fds__child *child);
const char *fds__child_line(const fds__child *child, size_t i);

/* ---- threads ---- */

/* Job number job of a parallel loop, run on worker number worker (0 .. threads-1; the calling
 * thread is 0). A failure stops the loop. */
typedef fds_status (*fds__job)(void *context, size_t job, unsigned worker, fds_error *err);

/* Runs jobs 0 .. count-1 on the given number of threads (0: one per processor) and reports progress
 * from the calling thread. When jobs fail, the error is that of the job with the lowest number. */
fds_status fds__pool_run(unsigned threads, size_t count, fds__job job, void *context,
                         const char *stage, const char *unit, const fds_events *events,
                         fds_error *err);
/* For long jobs, between their steps: reports progress and, once the caller's callback cancels, fails
 * with FDS_ERR_CANCELLED on every worker. Does nothing outside a parallel loop. */
fds_status fds__pool_check(fds_error *err);
/* How many workers fds__pool_run will use, for sizing per-worker state. */
unsigned fds__pool_workers(unsigned threads, size_t count);

/* Between begin and end OpenBLAS has one thread: its threads would slow ours down, and its sums
 * depend on their number. Calls nest, on any thread; the last end restores the number of threads. */
void fds__blas_begin(void);
void fds__blas_end(void);

/* ---- events ---- */

__attribute__((format(printf, 3, 4))) void fds__log(const fds_events *events, fds_log_level level,
                                                    const char *format, ...);
/* FDS_ERR_CANCELLED when the callback returns true. */
fds_status fds__report(const fds_events *events, const char *stage, const char *unit, uint64_t done,
                       uint64_t total, double start_s, fds_error *err);
double fds__now_s(void); /* monotonic */

/* Many inputs that are answered in blocks: the events of a block as those of a whole pass. */
typedef struct fds__pass {
    const fds_events *to; /* or NULL */
    size_t done, total;   /* inputs of earlier blocks, and of all */
    double start_s;
    const char *unit; /* events of other units are not of blocks; NULL: all are */
} fds__pass;
fds__pass fds__pass_begin(const fds_events *to, size_t total);
/* The events of the next block; the pass must outlive them. */
fds_events fds__pass_events(fds__pass *pass);

/* ---- random numbers: what each stream is for ---- */

enum fds__purpose {
    FDS__PURPOSE_INIT = 1,       /* initial weights: a = tensor */
    FDS__PURPOSE_ORDER = 2,      /* place in the mini-batches: a = epoch, b = sample id */
    FDS__PURPOSE_SPLIT = 3,      /* choice of samples: a = sample id */
    FDS__PURPOSE_COALITION = 4,  /* coalitions: a = sampler, b = draw */
    FDS__PURPOSE_KMEANS = 5,     /* first centres of k-means: a = centre */
    FDS__PURPOSE_VALIDATION = 6, /* validation inputs of an explainer: a = index of the input */
    FDS__PURPOSE_TRAINING = 7, /* order of an explainer's inputs: a = epoch, b = 1 for warming up */
    FDS__PURPOSE_DRAW = 8,     /* coalitions of an explainer's steps: a = epoch, b = step */
    FDS__PURPOSE_PERMUTE = 9,  /* permutations of the players: a = permutation */
    FDS__PURPOSE_SUBSET = 10,  /* coalitions of the baselines: a = coalition */
    FDS__PURPOSE_CONTROL = 11, /* random values, a control: a = player */
    FDS__PURPOSE_FLIP = 12,    /* wrong labels: a = 0 whose, 1 which, b = sample id */
    FDS__PURPOSE_HALF = 13,    /* half coalitions of a benchmark: a = draw */
    FDS__PURPOSE_DROPOUT = 14, /* dropped units: a = 256 epoch + dropout layer, b = sample id */
    FDS__PURPOSE_MEMBER = 21,  /* who is in a coalition: a = draw, b = key of the player */
    FDS__PURPOSE_RANK = 18,    /* order of equal numbers in audits: a = entry, b = check */
    FDS__PURPOSE_TRUTH = 20,   /* true values around stated ones: a = input, b = draw */
    FDS__PURPOSE_FACTORS = 21, /* first directions of factors: a = direction */
    FDS__PURPOSE_PROBE = 22,   /* random vectors that estimate traces: a = player */
    FDS__PURPOSE_NEW = 23,     /* coalitions that new players join: a = stratum */
};

/* Bytes for secrets, from the system: nobody can predict or repeat them. At most 256. */
fds_status fds__random_secret(void *bytes, size_t size, fds_error *err);

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

/* ---- JSON: when memory runs out, jansson drops parts silently; these functions fail ---- */

/* A value as text (flags as for json_dumps); the caller fds__frees it. NULL: out of memory. */
char *fds__json_text(const json_t *value, size_t flags);
/* The text at place; the first call, on any thread, makes it from value, and the owner of place
 * fds__frees it. "{}": out of memory. */
const char *fds__json_once(char **place, const json_t *value);
/* JSON from memory, without repeated keys; where names it in messages. */
fds_status fds__json_parse(const char *where, const char *text, size_t size, json_t **out,
                           fds_error *err);
/* The same for a file of at most limit bytes. */
fds_status fds__json_read(const char *path, size_t limit, json_t **out, fds_error *err);
/* A string, or null for NULL; "?" replaces each byte above 127 of a text that is not UTF-8. */
json_t *fds__json_string(const char *text);
/* null for infinity and NaN */
json_t *fds__json_real(double value);
/* Replaces dir/name; json NULL means out of memory. */
fds_status fds__json_write(const char *dir, const char *name, const json_t *json, fds_error *err);
fds_status fds__fail_json(fds_error *err); /* out of memory for JSON */
/* XXH3 of a value as compact JSON with sorted keys. */
fds_status fds__json_checksum(const json_t *json, uint64_t *sum, fds_error *err);
/* Adds "checksum", that of all other members in 16 hexadecimal digits; false: out of memory.
 * Unsealing removes it: FDS_ERR_CORRUPT when it does not agree. */
bool fds__json_seal(json_t *object);
fds_status fds__json_unseal(const char *path, json_t *object, fds_error *err);

/* Describes the first difference between a file's settings (holder: "table") and the present ones;
 * false when there is none. */
bool fds__json_difference(const json_t *before, const json_t *now, const char *holder, char *text,
                          size_t size);

/* These two take ownership of value; false: out of memory for value, list or object. */
static inline bool fds__json_append(json_t *list, json_t *value) {
    return json_array_append_new(list, value) == 0;
}
static inline bool fds__json_put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}
/* The same for a value that keeps its owner. */
static inline bool fds__json_share(json_t *object, const char *key, const json_t *value) {
    return json_object_set(object, key, (json_t *)(uintptr_t)value) == 0;
}
/* The value; or frees it and returns NULL. */
static inline json_t *fds__json_keep_if(json_t *value, bool is_whole) {
    if (is_whole)
        return value;
    json_decref(value);
    return NULL;
}

/* ---- safetensors ---- */

/* One f32 tensor of a file. */
typedef struct fds__tensor {
    const char *name;
    uint32_t rank;
    uint32_t dims[4];
    const float *values;
} fds__tensor;

/* One entry of the file's metadata. */
typedef struct fds__meta {
    const char *key, *value;
} fds__meta;

/* A file read into memory and checked: tensors lie within it, do not overlap and leave no gap. */
typedef struct fds__safetensors fds__safetensors;

fds_status fds__safetensors_parse(const char *path, uint8_t *data, size_t size,
                                  fds__safetensors **out,
                                  fds_error *err); /* takes ownership of data */
fds_status fds__safetensors_read(const char *path, fds__safetensors **out, fds_error *err);
/* The same without reading values that nobody looks at, where the file has them aligned. It must not
 * be shortened meanwhile: files that are replaced whole are not. */
fds_status fds__safetensors_map(const char *path, fds__safetensors **out, fds_error *err);
void fds__safetensors_free(fds__safetensors *file);
size_t fds__safetensors_count(const fds__safetensors *file);
const fds__tensor *fds__safetensors_tensor(const fds__safetensors *file, size_t i);
const fds__tensor *fds__safetensors_find(const fds__safetensors *file, const char *name);
/* Fails unless the file has a tensor of that name and shape (dims beyond rank are 0) and all its values
 * are finite. owner is whose tensor it is, for messages. */
fds_status fds__safetensors_check(const char *path, const fds__safetensors *file, const char *owner,
                                  const char *name, uint32_t rank, const uint32_t dims[4],
                                  fds_error *err);
const char *fds__safetensors_meta(const fds__safetensors *file, const char *key); /* or NULL */
fds_status fds__safetensors_write(const char *path, const fds__tensor *tensors, size_t count,
                                  const fds__meta *meta, size_t meta_count,
                                  const fds_events *events, fds_error *err);
/* The same in memory, behind before bytes for the caller, who fds__frees *data; size: of both. dtype:
 * of the tensors, a type of 4 bytes. */
fds_status fds__safetensors_pack(const char *dtype, const fds__tensor *tensors, size_t count,
                                 const fds__meta *meta, size_t meta_count, size_t before,
                                 uint8_t **data, size_t *size, fds_error *err);

/* ---- NPY: NumPy's format, version 1.0 ---- */

enum { FDS__NPY_HEADER = 256 };
/* The header of a file of numbers in C order: descr as in "<f8", shape as in "(2, 3)". Returns its
 * size, a multiple of 64. */
size_t fds__npy_header(const char *descr, const char *shape, char out[FDS__NPY_HEADER]);

/* ---- instruction sets: isa.c ---- */

/* Best first. Files that are compiled once for each set include isa.h. */
typedef enum fds__isa_set { FDS__ISA_AVX512, FDS__ISA_AVX2, FDS__ISA_GENERIC } fds__isa_set;
/* The best that the processor has, or the one that FDS_ISA in the environment names. */
fds_status fds__isa_choose(fds__isa_set *out, fds_error *err);

/* From flush to restore the calling thread takes numbers too small for a normal float as 0. On x86 each
 * of them costs a hundred times a normal one, and an optimizer's moments decay to them and stay there.
 * The return value is what restore needs. */
unsigned fds__tiny_flush(void);
void fds__tiny_restore(unsigned before);

#endif
