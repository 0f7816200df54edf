/* SPDX-License-Identifier: Apache-2.0
 * Tiles: each hash is that of the definition, however the tree grew and whatever failed meanwhile;
 * proofs from tiles are those from memory; names of files are read only as they are written. */
#include "reference.h"

enum { LARGE = 65537 };

static log_hash *leaves; /* (LARGE) */

static int setup(void **state) {
    leaves = some_leaves(LARGE);
    return scratch_setup(state);
}

static int teardown(void **state) {
    free(leaves);
    return scratch_teardown(state);
}

/* ---- growing ---- */

static log_tree *grown(size_t size, memory_store *memory, uint64_t seed) {
    log_tree *tree = need(1, sizeof *tree);
    log_store store = memory_open(memory);
    fds_rng rng = fds_rng_make(seed, 0, 0, 0);
    fds_error err = {0};
    while (tree->size < size) {
        size_t rest = size - (size_t)tree->size;
        size_t step = seed ? MIN(1 + fds_rng_below(&rng, 700), rest) : rest;
        expect_ok(log_tree_append(tree, leaves + tree->size, step, &store, &err), &err);
    }
    return tree;
}

/* The store has the tiles of a tree of that size, and their hashes are those of the definition. */
static void expect_tiles(const memory_store *memory, size_t size) {
    size_t span = 1;
    for (size_t level = 0; level < STORE_LEVELS; level++, span *= LOG_TILE) {
        size_t count = size / span;
        for (size_t n = 0; n < STORE_TILES; n++) {
            size_t width = count > n * LOG_TILE ? MIN(count - n * LOG_TILE, LOG_TILE) : 0;
            assert_int_equal(memory->width[level][n], width);
            for (size_t i = 0; i < width; i++) {
                log_hash wanted = log_root(leaves + (n * LOG_TILE + i) * span, span);
                expect_same(&memory->tiles[level][n][i], &wanted);
            }
        }
    }
}

static const size_t sizes[] = {0, 1, 2, 255, 256, 257, 511, 512, 513, 65535, 65536, 65537};

static void tiles_and_root_are_those_of_the_definition(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            memory_store memory = {.reads = 0};
            log_tree *tree = grown(sizes[s], &memory, seed);
            log_hash root = log_tree_root(tree), wanted = log_root(leaves, sizes[s]);
            expect_same(&root, &wanted);
            expect_tiles(&memory, sizes[s]);
            free(tree);
            memory_clear(&memory);
        }
}

static void a_tree_that_grows_leaf_by_leaf_has_every_root(void **state) {
    (void)state;
    memory_store memory = {.reads = 0};
    log_store store = memory_open(&memory);
    log_tree *tree = need(1, sizeof *tree);
    fds_error err = {0};
    for (size_t size = 0; size <= REFERENCE; size++) {
        log_hash root = log_tree_root(tree), wanted = reference_root(0, size);
        expect_same(&root, &wanted);
        expect_tiles(&memory, size);
        if (size < REFERENCE)
            expect_ok(log_tree_append(tree, &leaves[size], 1, &store, &err), &err);
    }
    free(tree);
    memory_clear(&memory);
}

static void a_stored_tree_goes_on_as_if_it_had_stayed_open(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        memory_store memory = {.reads = 0};
        log_store store = memory_open(&memory);
        log_tree *tree = grown(sizes[s], &memory, 1), *again = need(1, sizeof *again);
        fds_error err = {0};
        memset(again, 0xee, sizeof *again);
        expect_ok(log_tree_open(again, sizes[s], &store, &err), &err);
        for (size_t size = sizes[s]; size < MIN(sizes[s] + 300, LARGE); size++) {
            log_hash root = log_tree_root(again), wanted = log_tree_root(tree);
            expect_same(&root, &wanted);
            expect_ok(log_tree_append(tree, &leaves[size], 1, &store, &err), &err);
            expect_ok(log_tree_append(again, &leaves[size], 1, &store, &err), &err);
        }
        free(tree);
        free(again);
        memory_clear(&memory);
    }
}

static void a_tree_that_is_not_stored_cannot_be_opened(void **state) {
    (void)state;
    memory_store memory = {.reads = 0};
    log_store store = memory_open(&memory);
    log_tree *tree = grown(300, &memory, 0);
    fds_error err = {0};
    assert_int_equal(log_tree_open(tree, 301, &store, &err), FDS_ERR_NOT_FOUND);
    assert_int_equal(log_tree_open(tree, 600, &store, &err), FDS_ERR_NOT_FOUND);
    assert_int_equal(log_tree_open(tree, LOG_SIZE_MAX + 1, &store, &err), FDS_ERR_LIMIT);
    tree->size = LOG_SIZE_MAX;
    assert_int_equal(log_tree_append(tree, leaves, 1, &store, &err), FDS_ERR_LIMIT);
    free(tree);
    memory_clear(&memory);
}

/* ---- faults ---- */

/* Whichever write fails: the tree is as before, can still be read from the store, and takes other
 * leaves instead. */
static void a_failed_append_leaves_the_tree_usable(void **state) {
    (void)state;
    log_hash *others = need(600, sizeof *others), path[LOG_PATH];
    for (size_t i = 0; i < 600; i++)
        others[i] = some_leaf(1000000 + i);
    for (uint64_t nth = 1, is_done = 0; !is_done; nth++) {
        memory_store memory = {.reads = 0};
        log_store store = memory_open(&memory);
        log_tree *tree = grown(200, &memory, 0);
        log_hash before = log_tree_root(tree);
        fds_error err = {0};
        size_t length;
        memory.writes = 0;
        memory.fail_write = nth;
        is_done = log_tree_append(tree, others, 600, &store, &err) == FDS_OK;
        memory.fail_write = 0;
        assert_int_equal(is_done, nth == 6); /* three full tiles, two partial ones */
        if (!is_done) {
            log_hash root = log_tree_root(tree);
            assert_int_equal(tree->size, 200);
            expect_same(&root, &before);
            expect_ok(log_tree_open(tree, 200, &store, &err), &err);
            root = log_tree_root(tree);
            expect_same(&root, &before);
            expect_ok(log_tree_path(&store, 200, 7, path, &length, &err), &err);
            assert_true(log_includes(&leaves[7], 7, 200, path, length, &root));
            expect_ok(log_tree_append(tree, leaves + 200, 50, &store, &err), &err);
            root = log_tree_root(tree);
            log_hash wanted = log_root(leaves, 250);
            expect_same(&root, &wanted);
            expect_ok(log_tree_append(tree, leaves + 250, 550, &store, &err), &err);
            expect_tiles(&memory, 800);
        }
        free(tree);
        memory_clear(&memory);
    }
    free(others);
}

typedef struct work {
    memory_store memory;
    log_tree tree;
} work;

static fds_status grow_and_prove(void *with, fds_error *err) {
    work *w = with;
    log_store store = memory_open(&w->memory);
    log_hash path[LOG_PATH];
    size_t length;
    w->tree.size = 0;
    TRY(log_tree_append(&w->tree, leaves, 300, &store, err));
    TRY(log_tree_append(&w->tree, leaves + 300, 300, &store, err));
    TRY(log_tree_path(&store, 600, 5, path, &length, err));
    return log_tree_extension(&store, 300, 600, path, &length, err);
}

static void running_out_of_memory_is_reported(void **state) {
    (void)state;
    work *w = need(1, sizeof *w);
    assert_int_equal(each_fault(FDS__FAULT_ALLOC, grow_and_prove, NULL, w), 4);
    memory_clear(&w->memory);
    free(w);
}

static void a_failed_read_is_passed_on(void **state) {
    (void)state;
    memory_store memory = {.reads = 0};
    log_store store = memory_open(&memory);
    log_tree *tree = grown(65537, &memory, 0);
    log_hash path[LOG_PATH];
    fds_error err = {0};
    size_t length;
    for (int kind = 0; kind < 3; kind++)
        for (uint64_t nth = 1, calls = nth; nth <= calls; nth++) {
            memory.reads = 0;
            memory.fail_read = nth;
            fds_status status = kind == 0 ? log_tree_path(&store, 65537, 300, path, &length, &err)
                                : kind == 1
                                    ? log_tree_extension(&store, 65000, 65537, path, &length, &err)
                                    : log_tree_open(tree, 65537, &store, &err);
            bool is_over = memory.reads < nth;
            assert_int_equal(status, is_over ? FDS_OK : FDS_ERR_IO);
            calls += !is_over;
        }
    free(tree);
    memory_clear(&memory);
}

/* ---- proofs ---- */

/* Of all small sizes, and of those around a full tile. */
static void every_proof_from_tiles_is_that_of_the_definition(void **state) {
    (void)state;
    memory_store memory = {.reads = 0};
    log_store store = memory_open(&memory);
    log_tree *tree = grown(REFERENCE, &memory, 0);
    log_hash proof[LOG_PATH], wanted[LOG_PATH];
    fds_error err = {0};
    size_t length;
    for (size_t size = 0; size <= REFERENCE; size += size < 70 || size >= 254 ? 1 : 23) {
        for (size_t i = 0; i < size; i++) {
            expect_ok(log_tree_path(&store, size, i, proof, &length, &err), &err);
            assert_int_equal(length, reference_path(i, 0, size, wanted));
            assert_memory_equal(proof, wanted, length * sizeof *proof);
        }
        for (size_t before = 0; before <= size; before++) {
            expect_ok(log_tree_extension(&store, before, size, proof, &length, &err), &err);
            assert_int_equal(length,
                             before ? reference_subproof(before, 0, size, true, wanted) : 0);
            assert_memory_equal(proof, wanted, length * sizeof *proof);
        }
    }
    free(tree);
    memory_clear(&memory);
}

static void proofs_of_trees_with_several_levels_are_accepted(void **state) {
    (void)state;
    memory_store memory = {.reads = 0};
    log_store store = memory_open(&memory);
    log_tree *tree = grown(LARGE, &memory, 5);
    fds_rng rng = fds_rng_make(9, 9, 9, 9);
    log_hash proof[LOG_PATH];
    fds_error err = {0};
    size_t length;
    for (size_t s = 1; s < COUNT(sizes); s++) {
        size_t size = sizes[s];
        log_hash root = log_root(leaves, size);
        for (int draw = 0; draw < 15; draw++) {
            size_t i = draw == 0 ? 0 : draw == 1 ? size - 1 : fds_rng_below(&rng, size);
            expect_ok(log_tree_path(&store, size, i, proof, &length, &err), &err);
            assert_true(log_includes(&leaves[i], i, size, proof, length, &root));
            log_hash old_root = log_root(leaves, i);
            expect_ok(log_tree_extension(&store, i, size, proof, &length, &err), &err);
            assert_true(log_extends(i, &old_root, size, &root, proof, length));
        }
    }
    free(tree);
    memory_clear(&memory);
}

static void proofs_beyond_the_tree_are_refused(void **state) {
    (void)state;
    memory_store memory = {.reads = 0};
    log_store store = memory_open(&memory);
    log_hash proof[LOG_PATH];
    fds_error err = {0};
    size_t length;
    assert_int_equal(log_tree_path(&store, 0, 0, proof, &length, &err), FDS_ERR_USAGE);
    assert_int_equal(log_tree_path(&store, 5, 5, proof, &length, &err), FDS_ERR_USAGE);
    assert_int_equal(log_tree_path(&store, UINT64_MAX, 5, proof, &length, &err), FDS_ERR_USAGE);
    assert_int_equal(log_tree_extension(&store, 6, 5, proof, &length, &err), FDS_ERR_USAGE);
    assert_int_equal(log_tree_path(&store, 5, 4, proof, &length, &err), FDS_ERR_NOT_FOUND);
}

/* A log whose leaves are all alike: the hashes of each level are too, so that the largest tree can
 * be computed. */
static fds_status read_alike(void *context, unsigned level, uint64_t n, size_t width,
                             log_hash *hashes, fds_error *err) {
    log_hash hash = some_leaf(0);
    (void)context, (void)n, (void)err;
    for (unsigned row = 0; row < 8 * level; row++)
        hash = log_node(&hash, &hash);
    for (size_t i = 0; i < width; i++)
        hashes[i] = hash;
    return FDS_OK;
}

static void the_largest_tree_has_proofs(void **state) {
    (void)state;
    const log_store store = {NULL, read_alike, NULL};
    const uint64_t sizes_of[] = {LOG_SIZE_MAX, LOG_SIZE_MAX - 1, UINT64_C(1) << 62, 12345678901234};
    log_tree *tree = need(1, sizeof *tree), *old = need(1, sizeof *old);
    log_hash proof[LOG_PATH];
    fds_error err = {0};
    size_t length, longest = 0;
    for (size_t s = 0; s < COUNT(sizes_of); s++) {
        uint64_t size = sizes_of[s];
        expect_ok(log_tree_open(tree, size, &store, &err), &err);
        log_hash root = log_tree_root(tree);
        const uint64_t numbers[] = {0, 1, size / 3, size / 2, size / 2 + 1, size - 2, size - 1};
        for (size_t i = 0; i < COUNT(numbers); i++) {
            expect_ok(log_tree_path(&store, size, numbers[i], proof, &length, &err), &err);
            assert_true(log_includes(&leaves[0], numbers[i], size, proof, length, &root));
            assert_false(log_includes(&leaves[1], numbers[i], size, proof, length, &root));
            expect_ok(log_tree_open(old, numbers[i], &store, &err), &err);
            log_hash old_root = log_tree_root(old);
            expect_ok(log_tree_extension(&store, numbers[i], size, proof, &length, &err), &err);
            assert_true(log_extends(numbers[i], &old_root, size, &root, proof, length));
            longest = MAX(longest, length);
        }
    }
    assert_int_equal(longest, LOG_PATH);
    free(tree);
    free(old);
}

/* ---- names of files ---- */

static void names_of_files_are_those_of_the_specification(void **state) {
    (void)state;
    static const struct {
        log_file file;
        const char *name;
    } cases[] = {
        {{LOG_FILE_CHECKPOINT, 0, 0, 0}, "checkpoint"},
        {{LOG_FILE_TILE, 0, 0, 256}, "tile/0/000"},
        {{LOG_FILE_TILE, 0, 0, 1}, "tile/0/000.p/1"},
        {{LOG_FILE_TILE, 7, 0, 255}, "tile/7/000.p/255"},
        {{LOG_FILE_TILE, 1, 999, 256}, "tile/1/999"},
        {{LOG_FILE_TILE, 1, 1000, 256}, "tile/1/x001/000"},
        {{LOG_FILE_TILE, 0, 1234067, 256}, "tile/0/x001/x234/067"},
        {{LOG_FILE_TILE, 2, 1234067, 17}, "tile/2/x001/x234/067.p/17"},
        {{LOG_FILE_ENTRIES, 0, 7, 256}, "tile/entries/007"},
        {{LOG_FILE_ENTRIES, 0, 1234, 200}, "tile/entries/x001/234.p/200"},
        {{LOG_FILE_ENTRIES, 0, UINT64_C(36028797018963967), 255},
         "tile/entries/x036/x028/x797/x018/x963/967.p/255"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char name[LOG_FILE_NAME];
        log_file file = {.width = 999};
        log_file_name(&cases[i].file, name);
        assert_string_equal(name, cases[i].name);
        assert_true(log_file_parse(name, &file));
        assert_int_equal(file.kind, cases[i].file.kind);
        assert_int_equal(file.level, cases[i].file.level);
        assert_int_equal(file.n, cases[i].file.n);
        assert_int_equal(file.width, cases[i].file.width);
    }
}

static void other_names_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "/",
                                        "checkpoint/",
                                        "Checkpoint",
                                        "checkpoint.p/1",
                                        "/checkpoint",
                                        "tile",
                                        "tile/",
                                        "tile/0",
                                        "tile/0/",
                                        "tile/0/0",
                                        "tile/0/00",
                                        "tile/0/0000",
                                        "tile/0/x000/001",
                                        "tile/0/x001",
                                        "tile/0/x001/",
                                        "tile/0/x001/2",
                                        "tile/0/x1/234",
                                        "tile/0/001/234",
                                        "tile/0/x001/x234",
                                        "tile/0/X001/234",
                                        "tile/00/000",
                                        "tile/8/000",
                                        "tile/63/000",
                                        "tile/-1/000",
                                        "tile/+1/000",
                                        "tile/ 1/000",
                                        "tile/a/000",
                                        "tile/0/000.p",
                                        "tile/0/000.p/",
                                        "tile/0/000.p/0",
                                        "tile/0/000.p/01",
                                        "tile/0/000.p/256",
                                        "tile/0/000.p/1000",
                                        "tile/0/000.p/1 ",
                                        "tile/0/000.p/1/",
                                        "tile/0/000.p/-1",
                                        "tile/0/000.P/1",
                                        "tile/0/000/",
                                        "tile/0/000 ",
                                        " tile/0/000",
                                        "tile//000",
                                        "tile/0//000",
                                        "tile/0/../000",
                                        "tile/0/0x0",
                                        "tile/entries",
                                        "tile/entries/",
                                        "tile/entries/1",
                                        "tile/entries/0/000",
                                        "tile/data/000",
                                        "tile/8/0/000",
                                        "tile/0/x999/x999/x999/x999/x999/999",
                                        "tile/0/x001/x000/x000/x000/x000/x000/000",
                                        "tile/1/x001/x000/x000/x000/x000/000",
                                        "tile/0/\xef\xbc\x90\xef\xbc\x90\xef\xbc\x90"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        log_file file = {.width = 999};
        if (log_file_parse(wrong[i], &file))
            fail_msg("\"%s\" was read", wrong[i]);
        assert_int_equal(file.width, 999); /* untouched */
    }
}

/* Whatever is accepted is written the same. */
static void a_changed_name_is_another_file_or_none(void **state) {
    (void)state;
    static const char letters[] = "0123456789x./ptil";
    fds_rng rng = fds_rng_make(3, 1, 4, 1);
    size_t accepted = 0;
    for (int draw = 0; draw < 200000; draw++) {
        char path[LOG_FILE_NAME], name[LOG_FILE_NAME];
        log_file file;
        snprintf(path, sizeof path, "%s",
                 draw % 2 ? "tile/2/x001/x234/067.p/17" : "tile/entries/x012/345");
        size_t length = strlen(path);
        for (uint64_t changes = 1 + fds_rng_below(&rng, 3); changes-- > 0;)
            path[fds_rng_below(&rng, length)] = letters[fds_rng_below(&rng, sizeof letters - 1)];
        if (!log_file_parse(path, &file))
            continue;
        log_file_name(&file, name);
        assert_string_equal(name, path);
        accepted++;
    }
    assert_true(accepted > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_and_root_are_those_of_the_definition),
        cmocka_unit_test(a_tree_that_grows_leaf_by_leaf_has_every_root),
        cmocka_unit_test(a_stored_tree_goes_on_as_if_it_had_stayed_open),
        cmocka_unit_test(a_tree_that_is_not_stored_cannot_be_opened),
        cmocka_unit_test(a_failed_append_leaves_the_tree_usable),
        cmocka_unit_test(running_out_of_memory_is_reported),
        cmocka_unit_test(a_failed_read_is_passed_on),
        cmocka_unit_test(every_proof_from_tiles_is_that_of_the_definition),
        cmocka_unit_test(proofs_of_trees_with_several_levels_are_accepted),
        cmocka_unit_test(proofs_beyond_the_tree_are_refused),
        cmocka_unit_test(the_largest_tree_has_proofs),
        cmocka_unit_test(names_of_files_are_those_of_the_specification),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(a_changed_name_is_another_file_or_none),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
