/* SPDX-License-Identifier: Apache-2.0
 * Keys and checkpoints: what was signed is opened, and nothing else, however little it differs. The
 * keys with fixed numbers are those of the documentation of Go's note package. */
#include "reference.h"

#define NAME "log.example/pay"
#define GO_PRIVATE "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
#define GO_PUBLIC "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"

static log_key make(const char *name) {
    log_key key;
    fds_error err = {0};
    expect_ok(log_key_make(name, &key, &err), &err);
    return key;
}

static char *sign(const log_key *key, uint64_t size, const log_hash *root) {
    char *note = NULL;
    fds_error err = {0};
    expect_ok(log_checkpoint_sign(key, size, root, &note, &err), &err);
    return note;
}

/* Opens a copy of exactly length bytes, so that the sanitizer sees a read beyond them. */
static fds_status open_part(const char *note, size_t length, const char *vkey, uint64_t *size,
                            log_hash *root, fds_error *err) {
    char *copy = need(length, 1);
    memcpy(copy, note, length);
    fds_status status = log_checkpoint_open(copy, length, vkey, size, root, err);
    free(copy);
    return status;
}

static void expect_refused(const char *note, size_t length, const char *vkey, const char *why) {
    uint64_t size = 77;
    log_hash root = some_leaf(77), before = root;
    fds_error err = {0};
    fds_status status = open_part(note, length, vkey, &size, &root, &err);
    if (status != FDS_ERR_CORRUPT)
        fail_msg("%s, not ERR_CORRUPT: %.*s", fds_status_name(status), (int)length, note);
    expect_in(err.text, why);
    assert_int_equal(size, 77); /* nothing is told of a note that is not trusted */
    expect_same(&root, &before);
}

/* ---- checkpoints ---- */

static void what_was_signed_is_opened(void **state) {
    (void)state;
    log_key key = make(NAME);
    const uint64_t sizes[] = {0, 1, 9, 10, 20852163, LOG_SIZE_MAX};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        log_hash root = some_leaf(i), got;
        uint64_t size = 77;
        fds_error err = {0};
        char *note = sign(&key, sizes[i], &root);
        expect_ok(open_part(note, strlen(note), key.vkey, &size, &got, &err), &err);
        assert_true(size == sizes[i]);
        expect_same(&got, &root);
        fds__free(note);
    }
}

static void a_checkpoint_looks_as_specified(void **state) {
    (void)state;
    log_key key;
    log_hash root = log_root(NULL, 0);
    fds_error err = {0};
    const char *path = scratch_path("key");
    scratch_write(path, GO_PRIVATE "\n", strlen(GO_PRIVATE) + 1);
    chmod(path, 0600);
    expect_ok(log_key_load(path, &key, &err), &err);
    char *note = sign(&key, 0, &root);
    const char *head = "PeterNeumann\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n"
                       "\xe2\x80\x94 PeterNeumann x08go"; /* the key's ID */
    assert_memory_equal(note, head, strlen(head));
    assert_int_equal(strlen(note), strlen(head) - 5 + 92 + 1);
    assert_int_equal(note[strlen(note) - 1], '\n');
    fds__free(note);
}

static void no_bit_of_a_note_can_be_changed(void **state) {
    (void)state;
    log_key key = make(NAME);
    log_hash root = some_leaf(1);
    char *note = sign(&key, 1234, &root);
    size_t length = strlen(note);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        flip_bit(note, bit);
        expect_refused(note, length, key.vkey, "");
        flip_bit(note, bit);
    }
    fds__free(note);
}

static void a_note_that_is_cut_or_longer_is_refused(void **state) {
    (void)state;
    log_key key = make(NAME);
    log_hash root = some_leaf(1);
    char *note = sign(&key, 1234, &root);
    size_t length = strlen(note);
    char longer[1024];
    for (size_t part = 0; part < length; part++)
        expect_refused(note, part, key.vkey, "");
    for (int byte = 0; byte < 256; byte++)
        for (size_t place = 0; place <= length; place++) {
            memcpy(longer, note, place);
            longer[place] = (char)byte;
            memcpy(longer + place + 1, note + place, length - place);
            expect_refused(longer, length + 1, key.vkey, "");
        }
    fds__free(note);
}

static void other_keys_and_origins_are_refused(void **state) {
    (void)state;
    log_key key = make(NAME), same_name = make(NAME), other = make("log.example");
    log_hash root = some_leaf(1);
    char *note = sign(&key, 5, &root), swapped[1024];
    size_t length = strlen(note);
    expect_refused(note, length, same_name.vkey, "not signed by this key");
    expect_refused(note, length, other.vkey, "the first line must be log.example");
    /* a right signature of a text that names another log */
    log_key liar = other;
    snprintf(liar.name, sizeof liar.name, "%s", NAME);
    char *lie = sign(&liar, 5, &root);
    expect_refused(lie, strlen(lie), other.vkey, "the first line must be");
    /* the signature of one size under another */
    char *six = sign(&key, 6, &root);
    memcpy(swapped, six, length + 1);
    swapped[strlen(NAME "\n")] = '5';
    expect_refused(swapped, length, key.vkey, "signature is wrong");
    fds__free(note);
    fds__free(lie);
    fds__free(six);
}

/* The lines above the signatures, with a right signature below. */
static char *sign_text(const log_key *key, const char *text) {
    uint8_t bytes[4 + crypto_sign_BYTES];
    unsigned id[4];
    char base64[128], *note = need(1 << 12, 1);
    assert_int_equal(
        sscanf(key->vkey + strlen(key->name), "+%2x%2x%2x%2x+", &id[0], &id[1], &id[2], &id[3]), 4);
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)id[i];
    crypto_sign_detached(bytes + 4, NULL, (const uint8_t *)text, strlen(text), key->secret);
    log_base64_encode(bytes, sizeof bytes, base64);
    snprintf(note, 1 << 12, "%s\n\xe2\x80\x94 %s %s\n", text, key->name, base64);
    return note;
}

/* Also signed: only the canonical form is a checkpoint. */
static void a_signed_text_in_another_form_is_refused(void **state) {
    (void)state;
#define ROOT "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    static const char *const wrong[] = {
        "", "\n", NAME "\n", NAME "\n0\n", NAME "\n00\n" ROOT "\n", NAME "\n01\n" ROOT "\n",
        NAME "\n+1\n" ROOT "\n", NAME "\n-1\n" ROOT "\n", NAME "\n 1\n" ROOT "\n",
        NAME "\n1 \n" ROOT "\n", NAME "\n\n" ROOT "\n", NAME "\n1.0\n" ROOT "\n",
        NAME "\n0x1\n" ROOT "\n", NAME "\n9223372036854775808\n" ROOT "\n",
        NAME "\n18446744073709551616\n" ROOT "\n", NAME "\n99999999999999999999999\n" ROOT "\n",
        NAME "\r\n1\r\n" ROOT "\r\n", "\n" NAME "\n1\n" ROOT "\n", NAME " \n1\n" ROOT "\n",
        "x" NAME "\n1\n" ROOT "\n", NAME "\n1\n" ROOT "=\n", NAME "\n1\n" ROOT " \n",
        NAME "\n1\n" ROOT "\n\n", NAME "\n1\n" ROOT "\nextension\n", NAME "\n1\n\n",
        /* bits that are not used must be 0; no padding; another alphabet; hexadecimal; too short */
        NAME "\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=\n",
        NAME "\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\n",
        NAME "\n1\n47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=\n",
        NAME "\n1\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
        NAME "\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuA==\n"};
    log_key key = make(NAME);
    uint64_t size;
    log_hash root;
    fds_error err = {0};
    char *note = sign_text(&key, NAME "\n1\n" ROOT "\n");
    expect_ok(open_part(note, strlen(note), key.vkey, &size, &root, &err), &err);
    free(note);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        note = sign_text(&key, wrong[i]);
        expect_refused(note, strlen(note), key.vkey, "not a checkpoint of this log");
        free(note);
    }
}

static void signatures_of_others_are_read_but_not_needed(void **state) {
    (void)state;
    log_key key = make(NAME);
    log_hash root = some_leaf(1);
    char *note = sign(&key, 1234, &root), *text = need(LOG_NOTE + 1000, 1), other[512], *big;
    const size_t head = strlen(NAME "\n1234\n\n\n") + LOG_HASH64; /* the text and the empty line */
    const char *own = note + head;
    uint64_t size = 0;
    fds_error err = {0};
    snprintf(other, sizeof other, "\xe2\x80\x94 witness.example AAAAAAE=\n");
    memcpy(text, note, head);
    for (size_t before = 0; before <= 20; before++) {
        size_t used = head;
        for (size_t i = 0; i <= 20; i++)
            used += (size_t)sprintf(text + used, "%s", i == before ? own : other);
        expect_ok(open_part(text, used, key.vkey, &size, &root, &err), &err);
        expect_refused(text, head + strlen(other) * (before ? 1 : 0), key.vkey, "not signed");
    }
    /* a signature as long as those of ML-DSA-87 */
    big = need(9000, 1);
    if (!big)
        abort(); /* need() fails the test instead, which the compiler does not know */
    memset(big, 'A', 6176);
    size_t used = head + (size_t)sprintf(text + head, "\xe2\x80\x94 quantum %s\n%s", big, own);
    expect_ok(open_part(text, used, key.vkey, &size, &root, &err), &err);
    memset(big, 'A', 8196);
    used = head + (size_t)sprintf(text + head, "\xe2\x80\x94 quantum %s\n%s", big, own);
    expect_refused(text, used, key.vkey, "below the empty line");
    /* twice; and more than a note may have */
    used = head + (size_t)sprintf(text + head, "%s%s", own, own);
    expect_refused(text, used, key.vkey, "twice");
    for (used = head; used <= LOG_NOTE;)
        used += (size_t)sprintf(text + used, "%s", other);
    expect_refused(text, used, key.vkey, "too long");
    free(big);
    free(text);
    fds__free(note);
}

static void malformed_signature_lines_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"\n",
                                        "-- a AAAAAAE=\n",
                                        "- a AAAAAAE=\n",
                                        "\xe2\x80\x93 a AAAAAAE=\n",
                                        "\xe2\x80\x94"
                                        "a AAAAAAE=\n",
                                        "\xe2\x80\x94  AAAAAAE=\n",
                                        "\xe2\x80\x94 a\n",
                                        "\xe2\x80\x94 a \n",
                                        "\xe2\x80\x94 a AAAAAAE\n",
                                        "\xe2\x80\x94 a AAAAAAF=\n",
                                        "\xe2\x80\x94 a AAAAAA==\n",
                                        "\xe2\x80\x94 a AAAA\n",
                                        "\xe2\x80\x94 a+b AAAAAAE=\n",
                                        "\xe2\x80\x94 a b AAAAAAE=\n",
                                        "\xe2\x80\x94 a  AAAAAAE=\n",
                                        "\xe2\x80\x94 a AAAAAAE= \n",
                                        "\xe2\x80\x94 a\xc2\xa0"
                                        "b AAAAAAE=\n",
                                        "\xe2\x80\x94 a\tb AAAAAAE=\n",
                                        "\xe2\x80\x94 \xff AAAAAAE=\n",
                                        "\xe2\x80\x94 a AAAAAAE=\r\n",
                                        "\xe2\x80\x94 a AAAAAAE=",
                                        "\xe2\x80\x94 a\xe3\x80\x80 AAAAAAE=\n",
                                        "\xe2\x80\x94 a\xe2\x80\xa8 AAAAAAE=\n"};
    log_key key = make(NAME);
    log_hash root = some_leaf(1);
    char *note = sign(&key, 1234, &root), text[1024];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        size_t used = (size_t)snprintf(text, sizeof text, "%s%s", note, wrong[i]);
        expect_refused(text, used, key.vkey, "not a checkpoint of this log");
    }
    fds__free(note);
}

/* ---- public keys ---- */

static void a_public_key_in_another_form_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "+",
        "++",
        "PeterNeumann",
        "PeterNeumann+c74f20a3+",
        "PeterNeumann+c74f20a3",
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TX",
        "PeterNeumann+c74f20a3+Ahpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumanN+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter+Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        GO_PUBLIC " ",
        GO_PUBLIC "\n",
        " " GO_PUBLIC,
        GO_PUBLIC "A",
        GO_PUBLIC "AAAA",
        GO_PRIVATE};
    uint64_t size;
    log_hash root;
    fds_error err = {0};
    char huge[2000];
    assert_int_equal(log_checkpoint_open("", 0, GO_PUBLIC, &size, &root, &err), FDS_ERR_CORRUPT);
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(log_checkpoint_open("", 0, wrong[i], &size, &root, &err), FDS_ERR_USAGE);
    memset(huge, 'a', sizeof huge);
    snprintf(huge + 1000, 1000, "%s", GO_PUBLIC);
    assert_int_equal(log_checkpoint_open("", 0, huge, &size, &root, &err), FDS_ERR_USAGE);
}

/* ---- names and files of keys ---- */

static void names_are_checked(void **state) {
    (void)state;
    char longest[LOG_NAME + 2];
    memset(longest, 'n', sizeof longest);
    longest[LOG_NAME] = 0;
    const char *const right[] = {"a", "log.example/pay", "Z\xc3\xbcrich", longest};
    const char *const wrong[] = {"",          "a b",  "a+b",      "a\n",          "\t",
                                 "a\xc2\xa0", "\x7f", "\xc2\x85", "\xe3\x80\x80", "\xff"};
    log_key key;
    fds_error err = {0};
    for (size_t i = 0; i < COUNT(right); i++) {
        expect_ok(log_key_make(right[i], &key, &err), &err);
        assert_string_equal(key.name, right[i]);
        log_hash root = some_leaf(1);
        uint64_t size;
        char *note = sign(&key, 3, &root);
        expect_ok(open_part(note, strlen(note), key.vkey, &size, &root, &err), &err);
        fds__free(note);
    }
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(log_key_make(wrong[i], &key, &err), FDS_ERR_USAGE);
    longest[LOG_NAME] = 'n';
    longest[LOG_NAME + 1] = 0;
    assert_int_equal(log_key_make(longest, &key, &err), FDS_ERR_USAGE);
}

static void two_keys_differ(void **state) {
    (void)state;
    log_key a = make(NAME), b = make(NAME);
    assert_memory_not_equal(a.secret, b.secret, sizeof a.secret);
    assert_string_not_equal(a.vkey, b.vkey);
    log_key_forget(&a);
    assert_true(sodium_is_zero(a.secret, sizeof a.secret));
}

static void a_saved_key_is_the_same_key(void **state) {
    (void)state;
    log_key key = make(NAME), again;
    struct stat about;
    fds_error err = {0};
    const char *path = scratch_path("new.key");
    mode_t before = umask(0); /* the most open one */
    expect_ok(log_key_save(&key, path, &err), &err);
    umask(before);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(about.st_nlink, 1);
    memset(&again, 0xee, sizeof again);
    expect_ok(log_key_load(path, &again, &err), &err);
    assert_string_equal(again.name, key.name);
    assert_string_equal(again.vkey, key.vkey);
    assert_memory_equal(again.secret, key.secret, sizeof key.secret);
    unlink(path);
}

static void a_key_is_read_and_written_as_go_does(void **state) {
    (void)state;
    log_key key;
    fds_error err = {0};
    const char *path = scratch_path("go.key"), *copy = scratch_path("copy.key");
    scratch_write(path, GO_PRIVATE "\n", strlen(GO_PRIVATE) + 1);
    chmod(path, 0400);
    expect_ok(log_key_load(path, &key, &err), &err);
    assert_string_equal(key.name, "PeterNeumann");
    assert_string_equal(key.vkey, GO_PUBLIC);
    expect_ok(log_key_save(&key, copy, &err), &err);
    scratch_expect(copy, GO_PRIVATE "\n");
    unlink(path);
    unlink(copy);
}

static void an_existing_file_is_never_replaced_by_a_key(void **state) {
    (void)state;
    log_key key = make(NAME);
    fds_error err = {0};
    const char *path = scratch_path("there");
    scratch_write(path, "precious", 8);
    size_t before = scratch_entries();
    assert_int_equal(log_key_save(&key, path, &err), FDS_ERR_CONFLICT);
    expect_in(err.text, path);
    scratch_expect(path, "precious");
    assert_int_equal(scratch_entries(), before);
    assert_int_equal(log_key_save(&key, scratch_path("none/key"), &err), FDS_ERR_NOT_FOUND);
    unlink(path);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(log_key_save(&key, path, &err), FDS_ERR_CONFLICT);
    unlink(path);
}

static void a_key_that_others_can_read_is_refused(void **state) {
    (void)state;
    log_key key = make(NAME);
    fds_error err = {0};
    const char *path = scratch_path("open.key");
    expect_ok(log_key_save(&key, path, &err), &err);
    for (mode_t mode = 0400; mode <= 0777; mode++) {
        if (!(mode & 0400))
            continue;
        assert_int_equal(chmod(path, mode), 0);
        fds_status status = log_key_load(path, &key, &err);
        assert_int_equal(status, mode & 077 ? FDS_ERR_USAGE : FDS_OK);
        if (mode & 077)
            expect_in(err.text, "chmod 600");
    }
    unlink(path);
}

static void a_damaged_file_of_a_key_is_refused(void **state) {
    (void)state;
    log_key key;
    fds_error err = {0};
    char text[512];
    size_t length = strlen(GO_PRIVATE "\n");
    const char *path = scratch_path("bad.key");
    for (size_t part = 0; part < length; part++) {
        scratch_write(path, GO_PRIVATE, part);
        chmod(path, 0600);
        assert_int_equal(log_key_load(path, &key, &err), FDS_ERR_FORMAT);
        assert_true(sodium_is_zero(key.secret, sizeof key.secret));
    }
    for (size_t bit = 0; bit < 8 * length; bit++) {
        memcpy(text, GO_PRIVATE "\n", length);
        flip_bit(text, bit);
        scratch_write(path, text, length);
        assert_int_equal(log_key_load(path, &key, &err), FDS_ERR_FORMAT);
    }
    scratch_write(path, GO_PRIVATE "\n\n", length + 1);
    assert_int_equal(log_key_load(path, &key, &err), FDS_ERR_FORMAT);
    scratch_write(path, GO_PUBLIC "\n", strlen(GO_PUBLIC) + 1);
    assert_int_equal(log_key_load(path, &key, &err), FDS_ERR_FORMAT);
    memset(text, 'a', sizeof text);
    scratch_write(path, text, sizeof text);
    assert_int_equal(log_key_load(path, &key, &err), FDS_ERR_LIMIT);
    unlink(path);
    assert_int_equal(log_key_load(path, &key, &err), FDS_ERR_NOT_FOUND);
}

/* ---- faults ---- */

static fds_status whole_life(void *with, fds_error *err) {
    (void)with;
    log_key key, again;
    log_hash root = some_leaf(1);
    char *note = NULL;
    uint64_t size;
    unlink(scratch_path("life.key"));
    TRY(log_key_make(NAME, &key, err));
    TRY(log_key_save(&key, scratch_path("life.key"), err));
    TRY(log_key_load(scratch_path("life.key"), &again, err));
    TRY(log_checkpoint_sign(&again, 12, &root, &note, err));
    fds_status status = log_checkpoint_open(note, strlen(note), key.vkey, &size, &root, err);
    fds__free(note);
    return status;
}

/* At most the whole key remains. */
static void check_life(void *with, bool is_last) {
    (void)with, (void)is_last;
    log_key key;
    fds_error err = {0};
    const char *path = scratch_path("life.key");
    if (fds__path_exists(path))
        expect_ok(log_key_load(path, &key, &err), &err);
    unlink(path);
    assert_int_equal(scratch_entries(), 0);
}

static void every_fault_is_reported_and_leaves_nothing_behind(void **state) {
    (void)state;
    unlink(scratch_path("key"));
    assert_true(each_fault(FDS__FAULT_ALLOC, whole_life, check_life, NULL) >= 4);
    assert_true(each_fault(FDS__FAULT_IO, whole_life, check_life, NULL) >= 10);
}

/* ---- base64 ---- */

static void base64_is_that_of_the_standard(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    static const char *const wrong[] = {
        "Z",    "Zg",       "Zg=",  "Zh==",   "Zm9=", "Zm9v=", "Zm9v====", "=",
        "====", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm9-", "Z===",  "Zg=A"};
    uint8_t bytes[64];
    char text[64];
    size_t size;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        size_t length = strlen(pairs[i][1]);
        assert_int_equal(log_base64_encode(pairs[i][0], strlen(pairs[i][0]), text), length);
        assert_string_equal(text, pairs[i][1]);
        assert_true(log_base64_decode(text, length, bytes, &size));
        assert_int_equal(size, strlen(pairs[i][0]));
        assert_memory_equal(bytes, pairs[i][0], size);
    }
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (log_base64_decode(wrong[i], strlen(wrong[i]), bytes, &size))
            fail_msg("\"%s\" was read", wrong[i]);
}

/* Of all texts of four characters with two arbitrary ones, each that is read is what is written. */
static void there_is_one_base64_of_each_value(void **state) {
    (void)state;
    static const char *const forms[] = {"**AA", "*A*A", "A**A", "AA**",
                                        "A*A*", "*A==", "*A*=", "A**="};
    for (size_t f = 0; f < COUNT(forms); f++)
        for (unsigned pair = 0; pair < 65536; pair++) {
            char text[5], again[8];
            uint8_t bytes[3];
            unsigned rest = pair;
            size_t size;
            strcpy(text, forms[f]);
            for (size_t k = 0; k < 4; k++)
                if (forms[f][k] == '*') {
                    text[k] = (char)(rest & 0xff);
                    rest >>= 8;
                }
            if (!log_base64_decode(text, 4, bytes, &size))
                continue;
            assert_int_equal(log_base64_encode(bytes, size, again), 4);
            assert_memory_equal(text, again, 4);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_signed_is_opened),
        cmocka_unit_test(a_checkpoint_looks_as_specified),
        cmocka_unit_test(no_bit_of_a_note_can_be_changed),
        cmocka_unit_test(a_note_that_is_cut_or_longer_is_refused),
        cmocka_unit_test(other_keys_and_origins_are_refused),
        cmocka_unit_test(a_signed_text_in_another_form_is_refused),
        cmocka_unit_test(signatures_of_others_are_read_but_not_needed),
        cmocka_unit_test(malformed_signature_lines_are_refused),
        cmocka_unit_test(a_public_key_in_another_form_is_refused),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(two_keys_differ),
        cmocka_unit_test(a_saved_key_is_the_same_key),
        cmocka_unit_test(a_key_is_read_and_written_as_go_does),
        cmocka_unit_test(an_existing_file_is_never_replaced_by_a_key),
        cmocka_unit_test(a_key_that_others_can_read_is_refused),
        cmocka_unit_test(a_damaged_file_of_a_key_is_refused),
        cmocka_unit_test(every_fault_is_reported_and_leaves_nothing_behind),
        cmocka_unit_test(base64_is_that_of_the_standard),
        cmocka_unit_test(there_is_one_base64_of_each_value),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
