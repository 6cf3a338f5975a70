"""The backend `pytorch`: TorchScript and torch.export programs, run by PyTorch."""
