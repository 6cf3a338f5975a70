"""The names that scripts import from `sagemaker-containers`, for environments without the package."""
