"""What scripts import of `sagemaker-containers`, where the package itself is not installed."""


def training_env() -> None:
    """Raises NotImplementedError: there is no training job."""
    from .beta.framework import unavailable

    unavailable.refused("training_env")()
