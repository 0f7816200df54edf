/* SPDX-License-Identifier: Apache-2.0
 * Trees in memory: published vectors, the recursive definitions of RFC 6962, and that no verifier
 * accepts what differs in a single bit. */
#include "reference.h"

enum { MOST = IS_SLOW_BUILD ? 130 : REFERENCE };

static log_hash from_hex(const char *hex) {
    log_hash hash;
    assert_int_equal(sodium_hex2bin(hash.bytes, 32, hex, 64, NULL, NULL, NULL), 0);
    return hash;
}

/* ---- vectors of the tests of Certificate Transparency ---- */

static const struct {
    const char *hex;
} inputs[8] = {{""},
               {"00"},
               {"10"},
               {"2021"},
               {"3031"},
               {"40414243"},
               {"5051525354555657"},
               {"606162636465666768696a6b6c6d6e6f"}};
static const char *const roots[9] = {
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};

static void vector_leaves(log_hash leaves[8]) {
    for (size_t i = 0; i < 8; i++) {
        uint8_t bytes[16];
        size_t size;
        assert_int_equal(sodium_hex2bin(bytes, sizeof bytes, inputs[i].hex, strlen(inputs[i].hex),
                                        NULL, &size, NULL),
                         0);
        leaves[i] = log_leaf(bytes, size);
    }
}

static void roots_are_the_published_ones(void **state) {
    (void)state;
    log_hash leaves[8];
    vector_leaves(leaves);
    for (size_t count = 0; count <= 8; count++) {
        log_hash root = log_root(leaves, count), wanted = from_hex(roots[count]);
        expect_same(&root, &wanted);
    }
}

static void paths_are_the_published_ones(void **state) {
    (void)state;
    static const char *const first[] = {
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"};
    log_hash leaves[8], path[LOG_PATH];
    vector_leaves(leaves);
    assert_int_equal(log_path(leaves, 8, 0, path), 3);
    for (size_t i = 0; i < 3; i++) {
        log_hash wanted = from_hex(first[i]);
        expect_same(&path[i], &wanted);
    }
    assert_int_equal(log_path(leaves, 1, 0, path), 0);
    assert_int_equal(log_path(leaves, 3, 2, path), 1);
    log_hash wanted = from_hex(roots[2]);
    expect_same(&path[0], &wanted);
}

static void published_proofs_of_consistency_are_accepted(void **state) {
    (void)state;
    static const struct {
        size_t before, now, length;
        const char *proof[3];
    } cases[] = {
        {1, 1, 0, {0}},
        {1,
         8,
         3,
         {"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
          "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
          "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"}},
        {6,
         8,
         3,
         {"0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
          "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
          "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}},
        {2,
         5,
         2,
         {"5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
          "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"}},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        log_hash proof[3], before = from_hex(roots[cases[c].before]),
                           now = from_hex(roots[cases[c].now]);
        for (size_t i = 0; i < cases[c].length; i++)
            proof[i] = from_hex(cases[c].proof[i]);
        assert_true(
            log_extends(cases[c].before, &before, cases[c].now, &now, proof, cases[c].length));
    }
}

/* ---- the definitions ---- */

static void every_root_and_path_is_that_of_the_definition(void **state) {
    (void)state;
    log_hash *leaves = some_leaves(MOST), path[LOG_PATH], wanted[LOG_PATH];
    for (size_t size = 0; size <= MOST; size++) {
        log_hash root = log_root(leaves, size), naive = reference_root(0, size);
        expect_same(&root, &naive);
        for (size_t i = 0; i < size; i++) {
            size_t length = log_path(leaves, size, i, path);
            assert_int_equal(length, reference_path(i, 0, size, wanted));
            assert_memory_equal(path, wanted, length * sizeof *path);
            assert_true(log_includes(&leaves[i], i, size, path, length, &root));
        }
    }
    free(leaves);
}

static void every_proof_of_consistency_of_the_definition_is_accepted(void **state) {
    (void)state;
    log_hash proof[LOG_PATH];
    for (size_t size = 0; size <= MOST; size++) {
        log_hash root = reference_root(0, size);
        for (size_t before = 0; before <= size; before++) {
            log_hash old_root = reference_root(0, before);
            /* the definition begins at 1: an empty tree needs no proof */
            size_t length = before ? reference_subproof(before, 0, size, true, proof) : 0;
            assert_true(log_extends(before, &old_root, size, &root, proof, length));
        }
    }
}

/* ---- what is not so is refused ---- */

static void expect_not_included(log_hash *leaf, uint64_t i, uint64_t size, log_hash *path,
                                size_t length, log_hash *root) {
    if (log_includes(leaf, i, size, path, length, root))
        fail_msg("entry %lu of %lu: a changed proof was accepted", (unsigned long)i,
                 (unsigned long)size);
}

static void no_bit_of_a_proof_of_inclusion_can_be_changed(void **state) {
    (void)state;
    log_hash path[LOG_PATH];
    for (size_t size = 1; size <= 20; size++)
        for (size_t i = 0; i < size; i++) {
            log_hash leaf = some_leaf(i), root = reference_root(0, size);
            size_t length = reference_path(i, 0, size, path);
            for (size_t bit = 0; bit < 256 * (length + 2); bit++) {
                log_hash *part = bit < 256 ? &leaf : bit < 512 ? &root : &path[bit / 256 - 2];
                flip_bit(part, bit % 256);
                expect_not_included(&leaf, i, size, path, length, &root);
                flip_bit(part, bit % 256);
            }
            for (size_t bit = 0; bit < 64; bit++)
                expect_not_included(&leaf, i ^ UINT64_C(1) << bit, size, path, length, &root);
        }
}

/* Larger trees, with one bit of each part. */
static void changed_proofs_of_inclusion_are_refused(void **state) {
    (void)state;
    log_hash path[LOG_PATH];
    fds_rng rng = fds_rng_make(1, 2, 3, 4);
    for (size_t size = 21; size <= MOST; size++)
        for (size_t i = 0; i < size; i++) {
            log_hash leaf = some_leaf(i), root = reference_root(0, size);
            size_t length = reference_path(i, 0, size, path);
            log_hash *parts[] = {&leaf, &root, &path[fds_rng_below(&rng, length)]};
            for (size_t part = 0; part < COUNT(parts); part++) {
                size_t bit = fds_rng_below(&rng, 256);
                flip_bit(parts[part], bit);
                expect_not_included(&leaf, i, size, path, length, &root);
                flip_bit(parts[part], bit);
            }
            expect_not_included(&leaf, i ^ UINT64_C(1) << fds_rng_below(&rng, 9), size, path,
                                length, &root);
        }
}

static void a_proof_of_inclusion_of_another_length_or_order_is_refused(void **state) {
    (void)state;
    log_hash path[LOG_PATH];
    for (size_t size = 1; size <= 100; size++)
        for (size_t i = 0; i < size; i++) {
            log_hash leaf = some_leaf(i), root = reference_root(0, size);
            size_t length = reference_path(i, 0, size, path);
            for (size_t other = 0; other < length; other++)
                expect_not_included(&leaf, i, size, path, other, &root);
            path[length] = root;
            expect_not_included(&leaf, i, size, path, length + 1, &root);
            if (length > 1) {
                log_reverse(path, length);
                expect_not_included(&leaf, i, size, path, length, &root);
            }
        }
    log_hash empty = log_root(NULL, 0);
    assert_false(log_includes(&empty, 0, 0, NULL, 0, &empty));
    assert_false(log_includes(&empty, 0, UINT64_MAX, NULL, 0, &empty));
}

/* The content of a leaf cannot be the two children of a node. */
static void a_node_is_not_a_leaf(void **state) {
    (void)state;
    uint8_t children[64];
    log_hash a = some_leaf(0), b = some_leaf(1), node = log_node(&a, &b);
    memcpy(children, a.bytes, 32);
    memcpy(children + 32, b.bytes, 32);
    log_hash leaf = log_leaf(children, sizeof children);
    assert_false(log_equal(&leaf, &node));
    assert_true(log_equal(&leaf, &leaf));
}

static void no_bit_of_a_proof_of_consistency_can_be_changed(void **state) {
    (void)state;
    log_hash proof[LOG_PATH];
    for (size_t size = 2; size <= 20; size++)
        for (size_t before = 1; before <= size; before++) {
            log_hash roots_of[2] = {reference_root(0, before), reference_root(0, size)};
            size_t length = reference_subproof(before, 0, size, true, proof);
            for (size_t bit = 0; bit < 256 * (length + 2); bit++) {
                log_hash *part = bit < 512 ? &roots_of[bit / 256] : &proof[bit / 256 - 2];
                flip_bit(part, bit % 256);
                assert_false(log_extends(before, &roots_of[0], size, &roots_of[1], proof, length));
                flip_bit(part, bit % 256);
            }
        }
}

static void a_proof_of_consistency_of_other_sizes_or_length_is_refused(void **state) {
    (void)state;
    log_hash proof[LOG_PATH];
    for (size_t size = 1; size <= 64; size++)
        for (size_t before = 1; before <= size; before++) {
            log_hash old_root = reference_root(0, before), root = reference_root(0, size);
            size_t length = reference_subproof(before, 0, size, true, proof);
            proof[length] = root;
            for (size_t other = 0; other <= length + 1; other++)
                assert_int_equal(log_extends(before, &old_root, size, &root, proof, other),
                                 other == length);
            assert_false(log_extends(size + 1, &old_root, size, &root, proof, length));
            if (before < size)
                assert_false(log_extends(0, &old_root, size, &root, proof, length));
            assert_false(log_extends(before, &old_root, UINT64_MAX, &root, proof, length));
        }
}

static void every_tree_extends_the_empty_one_and_none_another(void **state) {
    (void)state;
    log_hash empty = log_root(NULL, 0), root = reference_root(0, 7);
    assert_true(log_extends(0, &empty, 0, &empty, NULL, 0));
    assert_true(log_extends(0, &empty, 7, &root, NULL, 0));
    assert_false(log_extends(0, &root, 7, &root, NULL, 0));
    assert_false(log_extends(0, &empty, 7, &root, &root, 1));
    assert_false(log_extends(0, &root, 0, &empty, NULL, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_the_published_ones),
        cmocka_unit_test(paths_are_the_published_ones),
        cmocka_unit_test(published_proofs_of_consistency_are_accepted),
        cmocka_unit_test(every_root_and_path_is_that_of_the_definition),
        cmocka_unit_test(every_proof_of_consistency_of_the_definition_is_accepted),
        cmocka_unit_test(no_bit_of_a_proof_of_inclusion_can_be_changed),
        cmocka_unit_test(changed_proofs_of_inclusion_are_refused),
        cmocka_unit_test(a_proof_of_inclusion_of_another_length_or_order_is_refused),
        cmocka_unit_test(a_node_is_not_a_leaf),
        cmocka_unit_test(no_bit_of_a_proof_of_consistency_can_be_changed),
        cmocka_unit_test(a_proof_of_consistency_of_other_sizes_or_length_is_refused),
        cmocka_unit_test(every_tree_extends_the_empty_one_and_none_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
