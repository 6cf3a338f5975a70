"""Replaces this module of `sagemaker-containers` where it is not installed."""
