"""Runs users' inference scripts for PyTorch models, like SageMaker's PyTorch container."""
