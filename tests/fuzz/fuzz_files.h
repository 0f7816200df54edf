/* SPDX-License-Identifier: Apache-2.0
 * For readers of files, and of several files that belong together: a folder to put them in, and one
 * input that holds them all: of each its size (u16, little-endian), then its bytes. What is missing
 * at the end counts as empty, and an empty file is not put into the folder. */
#ifndef FDS_TEST_FUZZ_FILES_H
#define FDS_TEST_FUZZ_FILES_H

#include "fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

/* ---- the folder ---- */

static char fuzz_dir[256];

static inline int fuzz_remove_one(const char *path, const struct stat *about, int kind,
                                  struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static inline void fuzz_dir_remove(void) {
    nftw(fuzz_dir, fuzz_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* In memory where there is such a place: thousands of files are written a second. */
static inline void fuzz_dir_make(void) {
    const char *tmp = getenv("TMPDIR");
    tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : tmp && *tmp ? tmp : "/tmp";
    snprintf(fuzz_dir, sizeof fuzz_dir, "%s/fds-fuzz-XXXXXX", tmp);
    if (!mkdtemp(fuzz_dir) || atexit(fuzz_dir_remove) != 0)
        abort();
}

static inline const char *fuzz_path(const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", fuzz_dir, name);
    return path;
}

static inline void fuzz_write(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* The bytes and a NUL; the caller frees them. */
static inline fds__blob fuzz_read(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        abort();
    fds__blob blob = {.path = path, .size = (size_t)ftell(file)};
    rewind(file);
    blob.data = calloc(blob.size + 1, 1);
    if (!blob.data || fread(blob.data, 1, blob.size, file) != blob.size)
        abort();
    fclose(file);
    return blob;
}

static inline void fuzz_ok(fds_status status, const fds_error *err) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    abort();
}

/* ---- several files in one input ---- */

enum { FUZZ_MOST_FILES = 8 };

typedef struct fuzz_part {
    const uint8_t *data;
    size_t size;
} fuzz_part;

static inline void fuzz_unpack(const uint8_t *data, size_t size, fuzz_part *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t wanted = size < 2 ? 0 : data[0] | (size_t)data[1] << 8, there = size < 2 ? 0 : 2;
        data += there;
        size -= there;
        parts[i] = (fuzz_part){data, MIN(wanted, size)};
        data += parts[i].size;
        size -= parts[i].size;
    }
}

/* Into at most limit bytes; 0 when they do not suffice. */
static inline size_t fuzz_pack(const fuzz_part *parts, size_t count, uint8_t *out, size_t limit) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].size > UINT16_MAX || at + 2 + parts[i].size > limit)
            return 0;
        out[at++] = (uint8_t)parts[i].size;
        out[at++] = (uint8_t)(parts[i].size >> 8);
        if (parts[i].size)
            memcpy(out + at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    return at;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Changes a file. Of a safetensors file mostly the header, whose length, the first 8 bytes, stays
 * right: otherwise every byte more or less in it would end the reading there. */
static inline size_t fuzz_mutate_file(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t length = UINT64_MAX;
    if (size > 8)
        memcpy(&length, data, sizeof length);
    if (seed % 4 == 0 || size <= 8 || data[8] != '{' || !length || length > size - 8)
        return LLVMFuzzerMutate(data, size, most);
    size_t rest = size - 8 - (size_t)length;
    uint8_t *values = malloc(rest + 1);
    if (!values)
        abort();
    memcpy(values, data + 8 + length, rest);
    length = LLVMFuzzerMutate(data + 8, (size_t)length, most - 8 - rest);
    memcpy(data, &length, sizeof length);
    memcpy(data + 8 + length, values, rest);
    free(values);
    return 8 + (size_t)length + rest;
}

/* Changes one of several files. Without it, every byte more or less in one would shift all others.
 */
static inline size_t fuzz_mutate_one(uint8_t *data, size_t size, size_t most, unsigned seed,
                                     size_t count) {
    fuzz_part parts[FUZZ_MOST_FILES];
    size_t chosen = seed % count, others = 2 * count, packed;
    fuzz_unpack(data, size, parts, count);
    for (size_t i = 0; i < count; i++)
        others += i == chosen ? 0 : parts[i].size;
    size_t room = others < most ? MIN(most - others, (size_t)UINT16_MAX) : 0;
    uint8_t *changed = malloc(room + 1), *whole = malloc(most + 1);
    if (!changed || !whole)
        abort();
    size_t kept = MIN(parts[chosen].size, room);
    if (kept)
        memcpy(changed, parts[chosen].data, kept);
    parts[chosen] =
        (fuzz_part){changed, room ? fuzz_mutate_file(changed, kept, room, seed / 8) : 0};
    packed = fuzz_pack(parts, count, whole, most);
    if (packed)
        memcpy(data, whole, packed);
    free(changed);
    free(whole);
    return packed ? packed : MIN(size, most);
}

#endif
