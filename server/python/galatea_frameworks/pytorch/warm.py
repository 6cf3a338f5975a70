"""Imported before workers are forked: what PyTorch makes at its first use of a file of each kind is made here once, and shared by all.

Without it each worker would have its own: 7 MB for the operators of TorchScript, and 140 MB and 3 s for what torch.export imports.
Nothing here starts a thread; a tensor as small as these is computed by the thread that asks.
"""

from __future__ import annotations

import io
import logging
import warnings

# It says that Triton, the compiler for GPUs, is not there, which is known.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)

import torch  # noqa: E402
import torch.export  # noqa: E402

from galatea_frameworks import allocator  # noqa: E402

from . import program  # noqa: E402, F401 - imported for the workers

# The executor of TorchScript looks at the first runs and compiles at the second.
_RUNS = 4


class _Small(torch.nn.Module):
    """A little of what most models are made of: the code that computes it is mapped here, once."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
        )
        self.recurrent = torch.nn.LSTM(16, 16, batch_first=True)
        self.encoder = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.layer = torch.nn.Linear(16, 4)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        pixels = self.convolution(values)
        rows = pixels.flatten(2).transpose(1, 2)
        rows, _ = self.recurrent(rows)
        return self.layer(self.encoder(rows)).softmax(-1)


def _rehearse() -> None:
    module = _Small().eval()
    values = torch.zeros(2, 3, 8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = io.BytesIO()
        torch.jit.save(torch.jit.script(module), file)
        file.seek(0)
        scripted = torch.jit.load(file, map_location="cpu")
        file = io.BytesIO()
        rows = torch.zeros(2, 3, 16)
        batch = torch.export.Dim("batch", max=64)
        torch.export.save(torch.export.export(module.encoder, (rows,), dynamic_shapes=({0: batch},)), file)
        file.seek(0)
        exported = torch.export.load(file).module()
    with torch.inference_mode():
        for _ in range(_RUNS):
            scripted(values)
            exported(rows)


_rehearse()
allocator.trim()
