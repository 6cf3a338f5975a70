"""The backend `pytorch`: runs TorchScript and torch.export programs with PyTorch."""
