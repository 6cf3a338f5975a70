"""Scripts that serve models of PyTorch."""
