# SPDX-License-Identifier: Apache-2.0
"""The samplers draw what the reference draws, from the same bytes, and take as many bits.

usage: test_reference.py SAMPLER
"""
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import reference  # noqa: E402
from tap import main, test  # noqa: E402

SAMPLER = str(pathlib.Path(sys.argv[1]).resolve())
NANO = 10**9
# mechanism, sensitivity, cost: scales far below 1, near it and far above; terms that do not cancel
SETTINGS = [(mechanism, sensitivity, cost)
            for mechanism in ("laplace", "gauss")
            for sensitivity, cost in ((1, NANO), (1, 100 * NANO), (3, NANO), (7, 333333333), (1000000, 999999937),
                                      (10000 << 16, NANO), ((1 << 40) + 15, 123456789))]


def both(mechanism, sensitivity, cost, seed, count=200):
    data = random.Random(seed).randbytes(1 << 15)
    out = subprocess.run([SAMPLER, mechanism, str(sensitivity), str(cost), str(count)], input=data,
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    ours = [tuple(map(int, line.split())) for line in out.splitlines()]
    bits, theirs = reference.Bits(data), []
    for _ in ours:
        drawn = reference.draw(bits, mechanism, sensitivity, cost)
        theirs.append((drawn, bits.taken))
    return ours, theirs


@test
def every_draw_is_the_reference_s():
    for seed, setting in enumerate(SETTINGS):
        ours, theirs = both(*setting, seed)
        assert len(ours) == 200, (setting, len(ours))
        assert ours == theirs, (setting, ours[:3], theirs[:3])


@test
def another_scale_draws_other_numbers():
    """So the comparison above would notice half the scale."""
    ours, _ = both("laplace", 1000000, NANO, 1)
    half, _ = both("laplace", 500000, NANO, 1)
    assert ours != half


@test
def draws_end_when_the_bytes_do():
    data = bytes(256)
    out = subprocess.run([SAMPLER, "gauss", "1000", str(NANO), "100000"], input=data, stdout=subprocess.PIPE,
                         check=True, timeout=60).stdout
    assert out.count(b"\n") < 100000


sys.exit(main())
