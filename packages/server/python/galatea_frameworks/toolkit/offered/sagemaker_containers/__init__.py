"""The names that scripts import from `sagemaker-containers`, for environments without the package."""


def training_env() -> None:
    """Raises NotImplementedError: there is no training job."""
    from .beta.framework import unavailable

    unavailable.refused("training_env")()
