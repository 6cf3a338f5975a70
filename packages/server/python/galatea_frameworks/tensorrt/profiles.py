"""Selects the optimization profile for a batch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    # The minimum, optimum and maximum shape of each input in a profile.
    Limits = Mapping[str, tuple[tuple[int, ...], ...]]


def profile_number(name: str) -> int:
    """Returns the number of a profile. As in C++, text after the digits is ignored. Raises ModelError with Triton's text."""
    if name == "":
        raise ModelError("profile name must not be empty")
    found = re.match(r"\s*[+-]?\d{1,9}", name)
    if found is None:
        raise ModelError("unable to parse '%s': stoi" % name)
    return int(found.group())


def profile_names(config: Mapping[str, Any], instance: str) -> list[str]:
    """Returns the profile names in the configuration of the instance's group."""
    group = instance.rpartition("_")[0]
    for one in config.get("instance_group", ()):
        if one.get("name") == group:
            return [str(name) for name in one.get("profile", ())]
    return []


def problem(sizes: Sequence[int], smallest: Sequence[int], largest: Sequence[int]) -> str | None:
    """Returns why a profile does not allow a shape, with Triton's text; None if the profile allows it."""
    if len(sizes) != len(largest):
        return "model expected %d dimensions but received %d dimensions" % (len(largest), len(sizes))
    for place, (size, least, most) in enumerate(zip(sizes, smallest, largest)):
        if not least <= size <= most:
            return "model expected the shape of dimension %d to be between %d and %d but received %d" % (
                place,
                least,
                most,
                size,
            )
    return None


def distance(asked: Mapping[str, Sequence[int]], limits: Limits) -> int | None:
    """Returns the distance of a batch from a profile's optimum: the sum of all differences between dimensions.

    Returns None if the profile does not allow the batch.
    """
    total = 0
    for name, sizes in asked.items():
        smallest, best, largest = limits[name]
        if problem(sizes, smallest, largest) is not None:
            return None
        total += sum(abs(size - wanted) for size, wanted in zip(sizes, best))
    return total


def nearest(asked: Mapping[str, Sequence[int]], profiles: Iterable[tuple[int, Limits]]) -> int | None:
    """Returns the number of the profile with the smallest distance, the first one if several have the same distance.

    Returns None if no profile allows the batch.
    """
    found = None
    shortest = None
    for number, limits in profiles:
        far = distance(asked, limits)
        if far is not None and (shortest is None or far < shortest):
            found, shortest = number, far
    return found
