"""Runs users' inference scripts for scikit-learn models, like SageMaker's scikit-learn container."""
