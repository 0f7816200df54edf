# SPDX-License-Identifier: Apache-2.0
"""The samplers of Canonne, Kamath and Steinke (2020) on Python's fractions, as their paper has them."""
from fractions import Fraction
from math import isqrt


class Bits:
    """Bits of bytes, the highest of each first."""

    def __init__(self, data):
        self.data, self.taken = data, 0

    def next(self):
        byte, place = divmod(self.taken, 8)
        self.taken += 1
        return self.data[byte] >> (7 - place) & 1


def below(bits, bound):
    size = (bound - 1).bit_length()
    while True:
        drawn = 0
        for _ in range(size):
            drawn = 2 * drawn + bits.next()
        if drawn < bound:
            return drawn


def bernoulli(bits, p):
    """A uniform number below p? Its bits are drawn until one differs from p's."""
    if p >= 1:
        return True
    while p:
        p *= 2
        of_p = p >= 1
        p -= of_p
        drawn = bits.next()
        if drawn != of_p:
            return drawn < of_p
    return False


def bernoulli_exp(bits, gamma):
    while gamma > 1:
        if not bernoulli_exp(bits, Fraction(1)):
            return False
        gamma -= 1
    k = 1
    while bernoulli(bits, gamma / k):
        k += 1
    return k % 2 == 1


def laplace(bits, scale):
    t, s = scale.numerator, scale.denominator
    while True:
        u = below(bits, t)
        if not bernoulli_exp(bits, Fraction(u, t)):
            continue
        v = 0
        while bernoulli_exp(bits, Fraction(1)):
            v += 1
        y = (u + t * v) // s
        is_negative = bits.next()
        if is_negative and y == 0:
            continue
        return -y if is_negative else y


def gauss(bits, sigma2):
    t = isqrt(sigma2.numerator // sigma2.denominator) + 1
    while True:
        y = laplace(bits, Fraction(t))
        if bernoulli_exp(bits, (abs(y) - sigma2 / t) ** 2 / (2 * sigma2)):
            return y


def draw(bits, mechanism, sensitivity, cost_nano):
    cost = Fraction(cost_nano, 10**9)
    if mechanism == "laplace":
        return laplace(bits, sensitivity / cost)
    return gauss(bits, sensitivity**2 / (2 * cost))
