/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic that is compiled once for each instruction set (see meson.build) ends in a table of
 * its functions: PREFIX_generic, and on x86-64 PREFIX_avx2 and PREFIX_avx512. */
#ifndef FDS_ISA_H
#define FDS_ISA_H

#include "net/kernels.h"

/* The name of the table for the set that this file is compiled for. */
#if defined FDS_AVX512
#define FDS_ISA_NAME "avx512"
#define FDS_ISA_TABLE(prefix) prefix##_avx512
#elif defined FDS_AVX2
#define FDS_ISA_NAME "avx2"
#define FDS_ISA_TABLE(prefix) prefix##_avx2
#else
#define FDS_ISA_NAME "generic"
#define FDS_ISA_TABLE(prefix) prefix##_generic
#endif

/* The table that goes with those kernels. */
#ifdef __x86_64__
#define FDS_ISA_CHOOSE(kernels, prefix)                  \
    ((kernels) == &fds_kernels_avx512 ? &prefix##_avx512 \
     : (kernels) == &fds_kernels_avx2 ? &prefix##_avx2   \
                                      : &prefix##_generic)
#else
#define FDS_ISA_CHOOSE(kernels, prefix) ((void)(kernels), &prefix##_generic)
#endif

#endif
