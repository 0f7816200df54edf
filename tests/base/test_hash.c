/* SPDX-License-Identifier: Apache-2.0
 * Checksums against published vectors: a file written by one build must check in any other. */
#include "scratch.h"
#include "base/base.h"

static void expect_sha256(const char *data, size_t size, const char *hex) {
    char got[65];
    memset(got, 'z', sizeof got);
    fds_sha256_hex(data, size, got);
    assert_string_equal(got, hex);
}

/* FIPS 180-4 examples, and the million letters of NIST's test set */
static void sha256_gives_the_published_digests(void **state) {
    (void)state;
    expect_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect_sha256(two_blocks, strlen(two_blocks),
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    assert_non_null(million);
    memset(million, 'a', 1000000);
    expect_sha256(million, 1000000,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void parts_have_the_digest_of_the_whole(void **state) {
    (void)state;
    const char text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    uint8_t whole[32], parts[32];
    fds__sha256(&(fds__bytes){text, 56}, 1, whole);
    for (size_t a = 0; a <= 56; a++)
        for (size_t b = a; b <= 56; b++) {
            const fds__bytes three[] = {{text, a}, {text + a, b - a}, {text + b, 56 - b}};
            fds__sha256(three, 3, parts);
            assert_memory_equal(whole, parts, sizeof whole);
        }
    fds__sha256(NULL, 0, whole);
    fds__sha256(&(fds__bytes){NULL, 0}, 1, parts);
    assert_memory_equal(whole, parts, sizeof whole);
    assert_int_equal(whole[0], 0xe3);
}

/* Of all sizes around the ends of blocks, each beside others of other sizes: lanes end at different
 * times. FDS_ISA chooses the code, as the lanes of avx2 and avx512. */
static void many_messages_have_the_digests_of_each(void **state) {
    (void)state;
    enum { MOST = 70 };
    static const char *const sets[] = {"avx512", "avx2", "generic", "none such", ""};
    const char *before = getenv("FDS_ISA");
    char kept[64];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    uint8_t data[1000], wanted[32], got[MOST][32];
    fds__bytes messages[MOST];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 131 + i / 256 + 7);
    for (size_t set = 0; set < COUNT(sets); set++) {
        assert_int_equal(setenv("FDS_ISA", sets[set], 1), 0);
        for (size_t count = 0; count <= MOST; count = count < 36 ? count + 1 : count + 17) {
            for (size_t i = 0; i < count; i++)
                messages[i] = (fds__bytes){data + i % 7, (i * 37 + count * 11) % 300};
            memset(got, 'z', sizeof got);
            fds__sha256_each(messages, count, got);
            for (size_t i = 0; i < count; i++) {
                fds__sha256(&messages[i], 1, wanted);
                assert_memory_equal(got[i], wanted, sizeof wanted);
            }
            assert_true(count == MOST || got[count][0] == 'z');
        }
        for (size_t size = 0; size < 20; size++) /* the same for all, and nothing at all */
            messages[size] = (fds__bytes){size ? data : NULL, size ? 119 : 0};
        fds__sha256_each(messages, 20, got);
        fds__sha256(&(fds__bytes){data, 119}, 1, wanted);
        assert_int_equal(got[0][0], 0xe3);
        for (size_t i = 1; i < 20; i++)
            assert_memory_equal(got[i], wanted, sizeof wanted);
    }
    assert_int_equal(before ? setenv("FDS_ISA", kept, 1) : unsetenv("FDS_ISA"), 0);
}

static void xxh3_of_nothing_is_the_published_value(void **state) {
    (void)state;
    assert_true(fds_checksum("", 0) == 0x2d06800538d394c2u);
    assert_true(fds_checksum(NULL, 0) == 0x2d06800538d394c2u);
}

/* One flipped bit anywhere changes the checksum, in every size class of XXH3 (1-3, 4-8, 9-16,
 * 17-128, 129-240, more), whatever the alignment. */
static void any_flipped_bit_changes_the_checksum(void **state) {
    (void)state;
    const size_t sizes[] = {1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1000};
    unsigned char *data = malloc(1000), shifted[1001];
    assert_non_null(data);
    for (size_t i = 0; i < 1000; i++)
        data[i] = (unsigned char)(i * 131 + 7);
    memcpy(shifted + 1, data, 1000);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        uint64_t sum = fds_checksum(data, sizes[s]);
        assert_true(sum == fds_checksum(shifted + 1, sizes[s]));
        for (size_t bit = 0; bit < 8 * sizes[s]; bit++) {
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_true(fds_checksum(data, sizes[s]) != sum);
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(parts_have_the_digest_of_the_whole),
        cmocka_unit_test(many_messages_have_the_digests_of_each),
        cmocka_unit_test(xxh3_of_nothing_is_the_published_value),
        cmocka_unit_test(any_flipped_bit_changes_the_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
