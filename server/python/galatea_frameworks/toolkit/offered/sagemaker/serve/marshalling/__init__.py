"""What scripts that the SDK 3 of SageMaker generates import of it, where the SDK itself is not installed."""
