"""Imported by the zygote before workers are forked.

Loads and runs a small file of each kind, so that all workers share the memory of PyTorch's initialization. Otherwise each worker would use
7 MB for TorchScript's operators, and 140 MB and 3 s for the imports of torch.export. No thread is started here, because small tensors are
computed in the calling thread.
"""

from __future__ import annotations

import ctypes
import logging
import os
import tempfile
import warnings

# Suppresses the warning that Triton, a compiler for GPUs, is not installed.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)

import torch  # noqa: E402
import torch.export  # noqa: E402

from . import archive  # noqa: E402
from .program import LOADERS  # noqa: E402

# Number of runs of each file. TorchScript profiles the first run and compiles during the second.
_RUNS = 4


class _Small(torch.nn.Module):
    """A module with the layers of most models. Running it loads the code of these layers."""

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


def _warm_up() -> None:
    module = _Small().eval()
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as directory:
        warnings.simplefilter("ignore")
        script, exported = os.path.join(directory, "model.pt"), os.path.join(directory, "model.pt2")
        torch.jit.save(torch.jit.script(module), script)
        rows = torch.zeros(2, 3, 16)
        batch = torch.export.Dim("batch", max=64)
        torch.export.save(torch.export.export(module.encoder, (rows,), dynamic_shapes=({0: batch},)), exported)
        for path, inputs in ((script, torch.zeros(2, 3, 8, 8)), (exported, rows)):
            with torch.inference_mode():
                program = LOADERS[archive.find_loader(path, "model")](path, "cpu")
                program.accept(["INPUT__0"], "warm_up", None)
                for _ in range(_RUNS):
                    program.run([inputs])


def _spare() -> None:
    """Makes TorchScript keep only the optimized graph, which saves 10 MB for two layers of a transformer.

    Python has no names for the flags, so they are set through the library's symbols. A PyTorch without these flags uses more memory.
    """
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    for name, kind, value in (
        ("do_not_store_optimized_graph", ctypes.c_bool, True),
        ("release_profiling_graph_after_optimization", ctypes.c_bool, True),
        # -1: release at once.
        ("release_profiling_graph_delay_in_seconds", ctypes.c_int32, -1),
    ):
        try:
            kind.in_dll(library, "FLAGS_torch_jit_" + name).value = value
        except ValueError:
            pass


_spare()
_warm_up()
