"""What scripts import of `sagemaker-containers`, where the package itself is not installed."""
