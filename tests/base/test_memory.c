/* SPDX-License-Identifier: Apache-2.0
 * The allocator's seam: sizes at the edges, and faults that strike exactly where they are told. */
#include "scratch.h"
#include "base/base.h"

static void the_nth_allocation_fails_once(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 6; nth++) {
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        for (uint64_t i = 1; i <= 10; i++) {
            void *memory = fds__alloc(8);
            assert_true((memory == NULL) == (i == nth));
            fds__free(memory);
        }
        assert_int_equal(fds__fault_arm(FDS__FAULT_ALLOC, 0), 10);
    }
}

static void every_kind_of_allocation_is_counted_and_can_fail(void **state) {
    (void)state;
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds__free(fds__alloc(1));
    fds__free(fds__alloc_zero(1, 1));
    fds__free(fds__alloc_aligned(1));
    fds__free(fds__realloc(NULL, 1));
    fds__free(fds__strdup("x"));
    assert_int_equal(fds__fault_arm(FDS__FAULT_ALLOC, 1), 5);
    assert_null(fds__alloc_zero(1, 1));
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_null(fds__alloc_aligned(1));
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_null(fds__strdup("x"));
    char *kept = fds__strdup("kept");
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_null(fds__realloc(kept, 100)); /* the old memory stands, as with realloc */
    assert_string_equal(kept, "kept");
    fds__free(kept);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
}

static void kinds_of_fault_do_not_mix(void **state) {
    (void)state;
    fds__fault_arm(FDS__FAULT_IO, 1);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    void *memory = fds__alloc(1);
    assert_non_null(memory);
    fds__free(memory);
    assert_true(fds__fault(FDS__FAULT_IO));
    assert_false(fds__fault(FDS__FAULT_IO));
    assert_int_equal(fds__fault_arm(FDS__FAULT_IO, 0), 2);
    assert_int_equal(fds__fault_arm(FDS__FAULT_ALLOC, 0), 1);
}

static void disarming_lets_everything_through(void **state) {
    (void)state;
    fds__fault_arm(FDS__FAULT_IO, 2);
    assert_false(fds__fault(FDS__FAULT_IO));
    fds__fault_arm(FDS__FAULT_IO, 0);
    for (int i = 0; i < 100; i++)
        assert_false(fds__fault(FDS__FAULT_IO));
    assert_int_equal(fds__fault_arm(FDS__FAULT_IO, 0), 100);
}

static void size_zero_gives_a_pointer(void **state) {
    (void)state;
    void *memory[] = {fds__alloc(0), fds__alloc_zero(0, 8), fds__alloc_zero(8, 0),
                      fds__realloc(NULL, 0), fds__alloc_aligned(0)};
    for (size_t i = 0; i < COUNT(memory); i++) {
        assert_non_null(memory[i]);
        fds__free(memory[i]);
    }
    fds__free(NULL);
}

static void sizes_that_overflow_give_null(void **state) {
    (void)state;
    volatile size_t half = SIZE_MAX / 2; /* volatile: the compiler would warn of the size */
    assert_null(fds__alloc_zero(half, 3));
    assert_null(fds__alloc_aligned(half * 2));
    assert_null(fds__alloc_aligned(half * 2 + 1));
    size_t product;
    assert_false(fds__mul(half, 3, &product));
    assert_true(fds__mul(half, 2, &product));
    assert_true(product == half * 2);
}

static void aligned_memory_is_aligned_and_zero(void **state) {
    (void)state;
    for (size_t size = 1; size < 1000; size += 37) {
        unsigned char *memory = fds__alloc_aligned(size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, size); /* so that the next one would show stale bytes */
        fds__free(memory);
    }
}

static void growing_keeps_the_items_and_doubles_rarely(void **state) {
    (void)state;
    void *items = NULL;
    size_t capacity = 0;
    fds_error err;
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    for (uint32_t i = 0; i < 100000; i++) {
        assert_int_equal(fds__grow(&items, &capacity, i + 1, sizeof i, &err), FDS_OK);
        assert_true(capacity > i);
        ((uint32_t *)items)[i] = i * 7;
    }
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(((uint32_t *)items)[i], i * 7);
    assert_true(fds__fault_arm(FDS__FAULT_ALLOC, 0) < 50); /* geometric, not one at a time */
    fds__free(items);
}

static void growing_that_fails_leaves_the_items(void **state) {
    (void)state;
    void *items = NULL;
    size_t capacity = 0;
    fds_error err = {0};
    assert_int_equal(fds__grow(&items, &capacity, 4, 8, &err), FDS_OK);
    memcpy(items, "unharmed", 9);
    fds__fault_arm(FDS__FAULT_ALLOC, 1);
    assert_int_equal(fds__grow(&items, &capacity, 100, 8, &err), FDS_ERR_NOMEM);
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_int_equal(fds__grow(&items, &capacity, SIZE_MAX / 4, 8, &err), FDS_ERR_LIMIT);
    assert_int_equal(capacity, 4);
    assert_string_equal(items, "unharmed");
    fds__free(items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(every_kind_of_allocation_is_counted_and_can_fail),
        cmocka_unit_test(kinds_of_fault_do_not_mix),
        cmocka_unit_test(disarming_lets_everything_through),
        cmocka_unit_test(size_zero_gives_a_pointer),
        cmocka_unit_test(sizes_that_overflow_give_null),
        cmocka_unit_test(aligned_memory_is_aligned_and_zero),
        cmocka_unit_test(growing_keeps_the_items_and_doubles_rarely),
        cmocka_unit_test(growing_that_fails_leaves_the_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
