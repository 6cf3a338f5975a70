"""What scripts that the SDK 3 of SageMaker generates import of it, where the SDK itself is not installed."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    """Raises AttributeError for whatever else a script looks for."""
    raise AttributeError(
        "module 'sagemaker' has no attribute '%s': this container has of SageMaker's SDK what the scripts of its ModelBuilder need. "
        "Write `sagemaker` into the requirements.txt beside the script to have all of it." % name
    )
