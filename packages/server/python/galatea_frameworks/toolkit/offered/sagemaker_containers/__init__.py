"""Replaces the package `sagemaker-containers` if it is not installed. Contains the names that scripts import."""


def training_env() -> None:
    """Raises NotImplementedError, because no training job runs here."""
    from .beta.framework import unavailable

    unavailable.refused("training_env")()
