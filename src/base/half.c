/* SPDX-License-Identifier: Apache-2.0
 *
 * IEEE 754 half precision: sign 1 bit, exponent 5 (bias 15), fraction 10. A probability of at least
 * 2^-14 keeps 11 significant bits (relative error at most 2^-11); smaller ones are multiples of
 * 2^-24.
 */
#include "base/base.h"

#include <math.h>
#include <string.h>

uint16_t fds__half_from_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00); /* not a number */
    if (size >= 0x477ff000)               /* 65520, from which on infinity is nearest */
        return (uint16_t)(sign | 0x7c00);
    if (size >= 0x38800000) { /* 2^-14, the least normal half: another bias, 13 bits fewer */
        size -= 112u << 23;
        return (uint16_t)(sign | (size + 0xfff + (size >> 13 & 1)) >> 13);
    }
    if (size < 0x33000000) /* 2^-25: below it 0 is nearest, and the shift would be too far */
        return (uint16_t)sign;
    uint32_t shift = 126 - (size >> 23), whole = (size & 0x7fffff) | 0x800000;
    return (uint16_t)(sign | (whole + (1u << (shift - 1)) - 1 + (whole >> shift & 1)) >> shift);
}

double fds__half_to_double(uint16_t half) {
    uint64_t exponent = half >> 10 & 31, fraction = half & 1023;
    uint64_t bits = (exponent + 1023 - 15) << 52 | fraction << 42;
    double size;
    memcpy(&size, &bits, sizeof size);
    if (exponent == 0)
        size = (double)fraction * 0x1p-24;
    if (exponent == 31)
        size = fraction ? (double)NAN : (double)INFINITY;
    return half & 0x8000 ? -size : size;
}
