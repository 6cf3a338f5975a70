"""Runs users' inference scripts for XGBoost models, like SageMaker's XGBoost container."""
