/* SPDX-License-Identifier: Apache-2.0
 * Which kernels run here. */
#include "net/kernels.h"

#include <stdlib.h>
#include <string.h>

/* Best first; the last is always there. */
static const fds_kernels *const tables[] = {
#ifdef __x86_64__
    &fds_kernels_avx512,
    &fds_kernels_avx2,
#endif
    &fds_kernels_generic,
};

static bool runs_here(const fds_kernels *kernels) {
#ifdef __x86_64__
    if (kernels == &fds_kernels_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (kernels == &fds_kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return kernels == &fds_kernels_generic;
}

fds_status fds_kernels_choose(const fds_kernels **out, fds_error *err) {
    const char *forced = getenv("FDS_ISA");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (runs_here(tables[i]) && (!forced || !*forced || !strcmp(forced, tables[i]->name))) {
            *out = tables[i];
            return FDS_OK;
        }
    }
    return fds_fail(err, FDS_UNSUPPORTED,
                    "FDS_ISA=%s: this processor or build has no such instruction set; "
                    "unset it, or use avx512, avx2 or generic",
                    forced);
}

const char *fds_isa(void) {
    const fds_kernels *kernels;
    return fds_kernels_choose(&kernels, NULL) == FDS_OK ? kernels->name : "unsupported";
}
