/* SPDX-License-Identifier: Apache-2.0
 * Proofs as texts: what was written is proven, and no text that differs from it is. */
#include "reference.h"

#define ORIGIN "log.example/pay"

enum { SIZE = 100, INDEX = 37 };

/* A log of SIZE entries; entry INDEX is the extra bytes of the proof. */
typedef struct fixture {
    log_key key;
    char entry[64];
    log_hash leaf, path[LOG_PATH];
    size_t length;
    char *checkpoint, *text;
} fixture;

static fixture make(void) {
    fixture f = {.entry = "fds entry v1\nindex 37\nkind topup\n"};
    log_hash *leaves = some_leaves(SIZE);
    fds_error err = {0};
    f.leaf = leaves[INDEX] = log_leaf(f.entry, strlen(f.entry));
    log_hash root = log_root(leaves, SIZE);
    f.length = log_path(leaves, SIZE, INDEX, f.path);
    expect_ok(log_key_make(ORIGIN, &f.key, &err), &err);
    expect_ok(log_checkpoint_sign(&f.key, SIZE, &root, &f.checkpoint, &err), &err);
    expect_ok(log_proof_write(f.entry, strlen(f.entry), INDEX, f.path, f.length, f.checkpoint,
                              &f.text, &err),
              &err);
    free(leaves);
    return f;
}

static void drop(fixture *f) {
    fds__free(f->checkpoint);
    fds__free(f->text);
}

/* The entry is the extra bytes. */
typedef struct seen {
    char extra[64];
    size_t size, calls;
    uint64_t index;
} seen;

static fds_status get_leaf(void *context, const uint8_t *extra, size_t size, uint64_t index,
                           log_hash *leaf, fds_error *err) {
    seen *s = context;
    s->calls++;
    s->size = size;
    s->index = index;
    if (size >= sizeof s->extra)
        return fds__fail(err, FDS_ERR_CORRUPT, "more than an entry");
    if (size) {
        memcpy(s->extra, extra, size);
        assert_int_equal(extra[size], 0);
    }
    *leaf = log_leaf(extra, size);
    return FDS_OK;
}

/* A copy of exactly size bytes, so that the sanitizer sees a read beyond them. */
static fds_status open_part(const char *text, size_t size, const char *vkey, seen *s,
                            fds_error *err) {
    char *copy = need(size, 1);
    memcpy(copy, text, size);
    fds_status status = log_proof_open(copy, size, vkey, get_leaf, s, err);
    free(copy);
    return status;
}

static void expect_refused(const char *text, size_t size, const char *vkey, const char *why) {
    seen s = {.size = 0};
    fds_error err = {0};
    fds_status status = open_part(text, size, vkey, &s, &err);
    if (status != FDS_ERR_CORRUPT)
        fail_msg("%s, not ERR_CORRUPT: %.*s", fds_status_name(status), (int)MIN(size, 2000), text);
    expect_in(err.text, why);
}

/* ---- */

static void what_was_written_is_proven(void **state) {
    (void)state;
    fixture f = make();
    seen s = {.size = 0};
    fds_error err = {0};
    expect_ok(open_part(f.text, strlen(f.text), f.key.vkey, &s, &err), &err);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.index, INDEX);
    assert_int_equal(s.size, strlen(f.entry));
    assert_string_equal(s.extra, f.entry);
    drop(&f);
}

static void a_proof_looks_as_specified(void **state) {
    (void)state;
    log_hash path[2] = {log_root(NULL, 0), log_root(NULL, 0)};
    fds_error err = {0};
    char *text = NULL;
    expect_ok(log_proof_write("ab", 2, 73894, path, 2, "note\n", &text, &err), &err);
    assert_string_equal(text, "c2sp.org/tlog-proof@v1\nextra YWI=\nindex 73894\n"
                              "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
                              "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\nnote\n");
    fds__free(text);
    expect_ok(log_proof_write(NULL, 0, 0, NULL, 0, "note\n", &text, &err), &err);
    assert_string_equal(text, "c2sp.org/tlog-proof@v1\nindex 0\n\nnote\n");
    fds__free(text);
}

static void a_log_of_one_empty_entry_has_a_proof(void **state) {
    (void)state;
    fixture f = make();
    log_hash root = log_leaf("", 0);
    fds_error err = {0};
    seen s = {.size = 7};
    char *note = NULL, *text = NULL;
    expect_ok(log_checkpoint_sign(&f.key, 1, &root, &note, &err), &err);
    expect_ok(log_proof_write(NULL, 0, 0, NULL, 0, note, &text, &err), &err);
    expect_ok(open_part(text, strlen(text), f.key.vkey, &s, &err), &err);
    assert_int_equal(s.size, 0);
    fds__free(note);
    fds__free(text);
    drop(&f);
}

static void no_character_of_a_proof_can_be_changed(void **state) {
    (void)state;
    fixture f = make();
    size_t size = strlen(f.text);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        flip_bit(f.text, bit);
        expect_refused(f.text, size, f.key.vkey, "");
        flip_bit(f.text, bit);
    }
    drop(&f);
}

static void nothing_can_be_cut_off_or_put_in(void **state) {
    (void)state;
    static const char bytes[] = "\0\n\r =A0\xff";
    fixture f = make();
    size_t size = strlen(f.text);
    char *longer = need(size + 1, 1);
    for (size_t part = 0; part < size; part++)
        expect_refused(f.text, part, f.key.vkey, "");
    for (size_t place = 0; place <= size; place++) {
        memcpy(longer, f.text, place);
        for (size_t byte = 0; byte < sizeof bytes - 1; byte++) {
            longer[place] = bytes[byte];
            memcpy(longer + place + 1, f.text + place, size - place);
            expect_refused(longer, size + 1, f.key.vkey, "");
        }
        memcpy(longer + place, f.text + MIN(place + 1, size), size - MIN(place + 1, size));
        if (place < size)
            expect_refused(longer, size - 1, f.key.vkey, "");
    }
    free(longer);
    drop(&f);
}

static void no_line_can_be_left_out_repeated_or_moved(void **state) {
    (void)state;
    fixture f = make();
    const char *lines[32];
    size_t count = 0, size = strlen(f.text);
    for (const char *at = f.text; *at; at = strchr(at, '\n') + 1)
        lines[count++] = at;
    lines[count] = f.text + size;
    char *changed = need(2 * size, 1);
    for (size_t i = 0; i < count; i++)
        for (size_t copies = 0; copies <= 2; copies++)
            for (size_t to = 0; to < count; to++) {
                size_t used = 0, length = (size_t)(lines[i + 1] - lines[i]);
                for (size_t k = 0; k < count; k++) {
                    for (size_t c = 0; k == to && c < copies; c++, used += length)
                        memcpy(changed + used, lines[i], length);
                    if (k == i)
                        continue;
                    memcpy(changed + used, lines[k], (size_t)(lines[k + 1] - lines[k]));
                    used += (size_t)(lines[k + 1] - lines[k]);
                }
                if (used != size || memcmp(changed, f.text, size) != 0)
                    expect_refused(changed, used, f.key.vkey, "");
            }
    free(changed);
    drop(&f);
}

static void other_forms_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *head, *why;
    } wrong[] = {
        {"", "first line"},
        {"c2sp.org/tlog-proof@v2\nindex 0\n\n", "first line"},
        {"c2sp.org/tlog-proof@v1\r\nindex 0\n\n", "first line"},
        {"c2sp.org/tlog-proof@v1\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex \n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex 00\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex 01\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex -1\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex 1 \n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex  1\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex 9223372036854775808\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nextra \nindex 0\n\n", "extra"},
        {"c2sp.org/tlog-proof@v1\nextra\nindex 0\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nextra YWI\nindex 0\n\n", "extra"},
        {"c2sp.org/tlog-proof@v1\nextra YWJ=\nindex 0\n\n", "extra"},
        {"c2sp.org/tlog-proof@v1\nextra YWI= \nindex 0\n\n", "extra"},
        {"c2sp.org/tlog-proof@v1\nextra YWI=\nextra YWI=\nindex 0\n\n", "index"},
        {"c2sp.org/tlog-proof@v1\nindex 0\nextra YWI=\n\n", "hashes"},
        {"c2sp.org/tlog-proof@v1\nindex 0\nYWI=\n\n", "hashes"},
        {"c2sp.org/tlog-proof@v1\nindex 0", "index"},
        {"c2sp.org/tlog-proof@v1\nindex 0\n", "hashes"}, /* the checkpoint's first line is none */
        {"c2sp.org/tlog-proof@v1\nindex 0\n\n\n", "not a checkpoint"},
        {"c2sp.org/tlog-proof@v1\nindex 0\n\n", "no such entry"},
        {"c2sp.org/tlog-proof@v1\nindex 100\n\n", "no such entry"},
    };
    fixture f = make();
    char text[4096];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        size_t used = (size_t)snprintf(text, sizeof text, "%s%s", wrong[i].head, f.checkpoint);
        expect_refused(text, used, f.key.vkey, wrong[i].why);
    }
    drop(&f);
}

static void too_much_is_refused(void **state) {
    (void)state;
    fixture f = make();
    fds_error err = {0};
    log_hash path[LOG_PATH + 1];
    char *text = NULL, *huge = need(1 << 20, 1);
    for (size_t i = 0; i < LOG_PATH + 1; i++)
        path[i] = some_leaf(i);
    expect_ok(log_proof_write("x", 1, INDEX, path, LOG_PATH + 1, f.checkpoint, &text, &err), &err);
    expect_refused(text, strlen(text), f.key.vkey, "path is too long");
    fds__free(text);
    expect_ok(log_proof_write("x", 1, INDEX, path, LOG_PATH, f.checkpoint, &text, &err), &err);
    expect_refused(text, strlen(text), f.key.vkey, "no such entry");
    fds__free(text);
    expect_ok(log_proof_write(huge, LOG_EXTRA, INDEX, f.path, f.length, f.checkpoint, &text, &err),
              &err);
    expect_refused(text, strlen(text), f.key.vkey, "more than an entry");
    fds__free(text);
    assert_int_equal(
        log_proof_write(huge, LOG_EXTRA + 1, 1, f.path, f.length, f.checkpoint, &text, &err),
        FDS_ERR_LIMIT);
    memset(huge, 'A', 1 << 20);
    size_t head = (size_t)sprintf(huge, "c2sp.org/tlog-proof@v1\nextra ");
    huge[head] = 'A';
    memcpy(huge + head + LOG_EXTRA / 3 * 4 + 8, "\nindex 0\n\n", 10);
    expect_refused(huge, 200000, f.key.vkey, "extra bytes are too many");
    expect_refused(huge, 1 << 20, f.key.vkey, "too long");
    free(huge);
    drop(&f);
}

static fds_status refuse_leaf(void *context, const uint8_t *extra, size_t size, uint64_t index,
                              log_hash *leaf, fds_error *err) {
    (void)context, (void)extra, (void)size, (void)index, (void)leaf;
    return fds__fail(err, FDS_ERR_UNSUPPORTED, "another version");
}

static void the_reason_of_who_makes_the_leaf_is_passed_on(void **state) {
    (void)state;
    fixture f = make();
    fds_error err = {0};
    assert_int_equal(log_proof_open(f.text, strlen(f.text), f.key.vkey, refuse_leaf, NULL, &err),
                     FDS_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "another version");
    drop(&f);
}

/* Extra bytes are not looked at before the checkpoint is known to be signed. */
static void a_wrong_key_is_noticed_first(void **state) {
    (void)state;
    fixture f = make(), g = make();
    fds_error err = {0};
    seen s = {.size = 0};
    assert_int_equal(open_part(f.text, strlen(f.text), g.key.vkey, &s, &err), FDS_ERR_CORRUPT);
    expect_in(err.text, "not signed by this key");
    assert_int_equal(open_part(f.text, strlen(f.text), "nonsense", &s, &err), FDS_ERR_USAGE);
    assert_int_equal(s.calls, 0);
    drop(&f);
    drop(&g);
}

static fds_status write_and_open(void *with, fds_error *err) {
    fixture *f = with;
    char extra[3000] = {0}, *text = NULL;
    seen s = {.size = 0};
    TRY(log_proof_write(f->entry, strlen(f->entry), INDEX, f->path, f->length, f->checkpoint, &text,
                        err));
    fds_status status = log_proof_open(text, strlen(text), f->key.vkey, get_leaf, &s, err);
    fds__free(text);
    if (status != FDS_OK)
        return status;
    TRY(log_proof_write(extra, sizeof extra, 1, f->path, f->length, f->checkpoint, &text, err));
    fds__free(text);
    return FDS_OK;
}

static void running_out_of_memory_is_reported(void **state) {
    (void)state;
    fixture f = make();
    assert_true(each_fault(FDS__FAULT_ALLOC, write_and_open, NULL, &f) >= 6);
    assert_int_equal(each_fault(FDS__FAULT_IO, write_and_open, NULL, &f), 0);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_proven),
        cmocka_unit_test(a_proof_looks_as_specified),
        cmocka_unit_test(a_log_of_one_empty_entry_has_a_proof),
        cmocka_unit_test(no_character_of_a_proof_can_be_changed),
        cmocka_unit_test(nothing_can_be_cut_off_or_put_in),
        cmocka_unit_test(no_line_can_be_left_out_repeated_or_moved),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(the_reason_of_who_makes_the_leaf_is_passed_on),
        cmocka_unit_test(a_wrong_key_is_noticed_first),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
