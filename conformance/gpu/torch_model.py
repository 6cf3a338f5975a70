"""Writes a TorchScript module whose second output shows whether it ran on a GPU: `torch_model.py FILE`."""

import sys

import torch


class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.full((1,), 2.0))

    def forward(self, x: torch.Tensor):
        return x * self.factor, torch.full([1], 1.0 if x.is_cuda and self.factor.is_cuda else 0.0)


torch.jit.script(Doubled()).save(sys.argv[1])
