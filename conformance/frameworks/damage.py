"""Flips bits of bytes and truncates them, from seeds."""

import random


def flipped(data, chance):
    """Flips a few bits, usually one."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def damaged(data, flips, cuts):
    """Yields pairs of a name and bytes: `flipped_0` and so on with flipped bits, and `cut_0` and so on, which are truncated."""
    for seed in range(flips):
        yield "flipped_%d" % seed, flipped(data, random.Random(seed))
    for seed in range(cuts):
        yield "cut_%d" % seed, data[: random.Random(seed).randrange(len(data))]
