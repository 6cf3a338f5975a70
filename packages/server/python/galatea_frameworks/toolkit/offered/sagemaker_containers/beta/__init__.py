"""Replaces this module of `sagemaker-containers` if it is not installed."""
