/* SPDX-License-Identifier: Apache-2.0
 * All access to the allocator; and the faults that tests inject there and into file calls. */
#include "base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct { atomic_uint_fast64_t calls, fail_at; } faults[2];

uint64_t fds__fault_arm(fds__fault_kind kind, uint64_t nth) {
    uint64_t calls = atomic_load(&faults[kind].calls);
    atomic_store(&faults[kind].fail_at, nth);
    atomic_store(&faults[kind].calls, 0);
    return calls;
}

bool fds__fault(fds__fault_kind kind) {
    uint64_t call = atomic_fetch_add_explicit(&faults[kind].calls, 1, memory_order_relaxed) + 1;
    return call == atomic_load_explicit(&faults[kind].fail_at, memory_order_relaxed);
}

void *fds__alloc(size_t size) {
    return fds__fault(FDS__FAULT_ALLOC) ? NULL : malloc(size ? size : 1);
}

void *fds__alloc_zero(size_t count, size_t size) {
    size_t product; /* calloc checks too, but sanitizers report that as a bug */
    if (fds__fault(FDS__FAULT_ALLOC) || !fds__mul(count, size, &product))
        return NULL;
    return product ? calloc(count, size) : calloc(1, 1);
}

void *fds__realloc(void *old, size_t size) {
    return fds__fault(FDS__FAULT_ALLOC) ? NULL : realloc(old, size ? size : 1);
}

void *fds__alloc_aligned(size_t size) {
    if (fds__fault(FDS__FAULT_ALLOC) || size > SIZE_MAX - 64)
        return NULL;
    size_t rounded = (size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, rounded ? rounded : 64);
    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

uint64_t fds__memory_bytes(void) {
    struct rlimit space;
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return getrlimit(RLIMIT_AS, &space) == 0 ? MIN(bytes, space.rlim_cur) : bytes;
}

void fds__free(void *memory) { free(memory); }

char *fds__strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = fds__alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

fds_status fds__grow(void **items, size_t *capacity, size_t needed, size_t item_size,
                     fds_error *err) {
    assert(item_size > 0 && (*items || *capacity == 0));
    if (needed <= *capacity)
        return FDS_OK;
    size_t wanted = MAX(needed, *capacity + *capacity / 2), size;
    if (!fds__mul(wanted, item_size, &size))
        return fds__fail(err, FDS_ERR_LIMIT, "%zu items of %zu bytes: too many", wanted, item_size);
    void *grown = fds__realloc(*items, size);
    if (!grown)
        return fds__fail_nomem(err, size);
    *items = grown;
    *capacity = wanted;
    return FDS_OK;
}
