/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic that is compiled once for each instruction set (see lane/meson.build) ends in a table
 * of its functions: PREFIX_generic, and on x86-64 PREFIX_avx2 and PREFIX_avx512. */
#ifndef FDS_ISA_H
#define FDS_ISA_H

#include "base/base.h"

/* The name of the table for the set that this file is compiled for. */
#if defined FDS_AVX512
#define FDS__ISA_TABLE(prefix) prefix##_avx512
#elif defined FDS_AVX2
#define FDS__ISA_TABLE(prefix) prefix##_avx2
#else
#define FDS__ISA_TABLE(prefix) prefix##_generic
#endif

/* The table of a set. */
#ifdef __x86_64__
#define FDS__ISA_PICK(set, prefix)               \
    ((set) == FDS__ISA_AVX512 ? &prefix##_avx512 \
     : (set) == FDS__ISA_AVX2 ? &prefix##_avx2   \
                              : &prefix##_generic)
#else
#define FDS__ISA_PICK(set, prefix) ((void)(set), &prefix##_generic)
#endif

#endif
