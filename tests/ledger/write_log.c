/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a log as the files of C2SP tlog-tiles, for programs of others to verify:
 *
 *   write-log FOLDER WORD SIZE...
 *
 * The log grows to each of the sizes, which rise. FOLDER gets vkey (the public key), checkpoint,
 * the checkpoints of all sizes as checkpoint.SIZE, the tiles of each size and its bundles of
 * entries. Entry i is WORD, a blank, i and a newline, i % 50 times. The signing key is FOLDER/key,
 * made if it is missing. */
#include "ledger/log.h"

#include <stdlib.h>

enum { BUNDLE = LOG_TILE * 1024 };

static char folder[1024];
static const char *word;

static void must(fds_status status, const fds_error *err) {
    if (status != FDS_OK) {
        fprintf(stderr, "write-log: %s\n", err->text);
        exit(1);
    }
}

static size_t entry(uint64_t i, char out[1024]) {
    size_t used = 0;
    for (uint64_t times = i % 50; times > 0; times--)
        used +=
            (size_t)snprintf(out + used, 1024 - used, "%.9s %llu\n", word, (unsigned long long)i);
    return used;
}

static void put(const char *name, const void *data, size_t size) {
    char path[FDS__PATH_MAX];
    fds_error err = {0};
    must(fds__path_join(path, sizeof path, folder, name, &err), &err);
    char *slash = strrchr(path, '/');
    *slash = 0;
    must(fds__mkdirs(path, &err), &err);
    *slash = '/';
    FILE *file = fopen(path, "wb"); /* hundreds of files need not be on the disk */
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        must(fds__fail_errno(&err, "write", path), &err);
}

static fds_status write_tile(void *context, unsigned level, uint64_t n, size_t width,
                             const log_hash *hashes, fds_error *err) {
    const log_file tile = {LOG_FILE_TILE, level, n, width};
    char name[LOG_FILE_NAME];
    (void)context, (void)err;
    log_file_name(&tile, name);
    put(name, hashes, width * sizeof *hashes);
    return FDS_OK;
}

static void write_entries(uint64_t n, size_t width) {
    static uint8_t bundle[BUNDLE];
    const log_file file = {LOG_FILE_ENTRIES, 0, n, width};
    char name[LOG_FILE_NAME], text[1024];
    size_t used = 0;
    for (size_t i = 0; i < width; i++) {
        size_t size = entry(n * LOG_TILE + i, text);
        bundle[used++] = (uint8_t)(size >> 8);
        bundle[used++] = (uint8_t)size;
        memcpy(bundle + used, text, size);
        used += size;
    }
    log_file_name(&file, name);
    put(name, bundle, used);
}

static void grow(log_tree *tree, uint64_t size, const log_key *key, const log_store *store) {
    char text[1024], name[64], *note = NULL;
    fds_error err = {0};
    size_t count = (size_t)(size - tree->size);
    log_hash *leaves = calloc(count + 1, sizeof *leaves);
    if (!leaves)
        abort();
    uint64_t first = tree->size;
    for (size_t i = 0; i < count; i++)
        leaves[i] = log_leaf(text, entry(first + i, text));
    must(log_tree_append(tree, leaves, count, store, &err), &err);
    for (uint64_t n = first / LOG_TILE; n * LOG_TILE < size; n++)
        write_entries(n, (size_t)MIN(size - n * LOG_TILE, LOG_TILE));
    log_hash root = log_tree_root(tree);
    must(log_checkpoint_sign(key, size, &root, &note, &err), &err);
    snprintf(name, sizeof name, "checkpoint.%llu", (unsigned long long)size);
    put(name, note, strlen(note));
    put("checkpoint", note, strlen(note));
    fds__free(note);
    free(leaves);
}

static log_key get_key(void) {
    char path[FDS__PATH_MAX];
    log_key key;
    fds_error err = {0};
    must(fds__mkdirs(folder, &err), &err);
    must(fds__path_join(path, sizeof path, folder, "key", &err), &err);
    if (!fds__path_exists(path)) {
        must(log_key_make("log.example/pay", &key, &err), &err);
        must(log_key_save(&key, path, &err), &err);
    }
    must(log_key_load(path, &key, &err), &err);
    return key;
}

int main(int argc, char **argv) {
    const log_store store = {NULL, NULL, write_tile};
    static log_tree tree;
    if (argc < 4 || strlen(argv[1]) >= sizeof folder)
        return 2;
    strcpy(folder, argv[1]);
    word = argv[2];
    log_key key = get_key();
    put("vkey", key.vkey, strlen(key.vkey));
    for (int i = 3; i < argc; i++)
        grow(&tree, strtoull(argv[i], NULL, 10), &key, &store);
    log_key_forget(&key);
    return 0;
}
