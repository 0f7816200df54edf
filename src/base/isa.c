/* SPDX-License-Identifier: Apache-2.0
 * Which instruction set the kernels use on this processor. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

static const char *const names[] = {"avx512", "avx2", "generic"}; /* as fds__isa_set numbers them */
enum { SETS = sizeof names / sizeof *names };

static bool runs_here(fds__isa_set set) {
#ifdef __x86_64__
    if (set == FDS__ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (set == FDS__ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return set == FDS__ISA_GENERIC;
}

fds_status fds__isa_choose(fds__isa_set *out, fds_error *err) {
    const char *forced = getenv("FDS_ISA");
    for (int set = 0; set < SETS; set++)
        if (runs_here((fds__isa_set)set) && (!forced || !*forced || !strcmp(forced, names[set]))) {
            *out = (fds__isa_set)set;
            return FDS_OK;
        }
    return fds__fail(
        err, FDS_ERR_UNSUPPORTED,
        "FDS_ISA=%s: this processor or build has no such instruction set; unset it, or "
        "use avx512, avx2 or generic",
        forced);
}

unsigned fds__tiny_flush(void) {
#ifdef __x86_64__
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* results are flushed to zero, denormal operands are zero */
    return before;
#else
    return 0;
#endif
}

void fds__tiny_restore(unsigned before) {
#ifdef __x86_64__
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

const char *fds_isa(void) {
    fds__isa_set set;
    return fds__isa_choose(&set, NULL) == FDS_OK ? names[set] : "unsupported";
}
