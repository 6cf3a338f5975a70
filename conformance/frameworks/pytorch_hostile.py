"""Writes damaged and malicious model files: `pytorch_hostile.py REPOSITORY MARKER SECRET`. None of them may create the file MARKER,
or read the file SECRET, which is not theirs.

Prints the names of those that must be rejected. The others, with flipped bits, may load or fail.
"""

import io
import os
import pickle
import random
import struct
import sys
import warnings
import zipfile

import torch
from damage import damaged, flipped

ROOT, MARKER, SECRET = sys.argv[1:]
CONFIG = """backend: "pytorch"
input { name: "INPUT__0" data_type: TYPE_FP32 dims: [ -1, 4 ] }
output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ -1, 4 ] }
"""
FLIPPED = 120
CUT = 40


def put(name, data, file="model.pt"):
    directory = os.path.join(ROOT, name, "1")
    os.makedirs(directory)
    with open(os.path.join(directory, file), "wb") as out:
        out.write(data)
    with open(os.path.join(ROOT, name, "config.pbtxt"), "w") as out:
        out.write(CONFIG)


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


class Reaches(torch.nn.Module):
    """Maps a file by its name with an operator of PyTorch, which creates a missing file if it is shared."""

    def __init__(self, path: str, shared: bool):
        super().__init__()
        self.path = path
        self.shared = shared

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mapped = torch.from_file(self.path, self.shared, 4, dtype=torch.float32).reshape(1, 4)
        if self.shared:
            mapped.add_(1)
        return mapped + x * 0


class Runs:
    """A pickle that runs a program when it is unpickled."""

    def __reduce__(self):
        return (os.system, ("touch " + MARKER,))


def rewritten(data, change, compression=zipfile.ZIP_STORED):
    """Returns the archive with changed records and correct checksums."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", compression) as target:
        for entry in source.infolist():
            target.writestr(entry.filename, change(entry.filename, source.read(entry)))
    return out.getvalue()


def at(suffix, value):
    return lambda name, data: value if name.endswith(suffix) else data


def resealed(data, chance):
    """Returns the archive with flipped bits in parsed records, and with correct checksums."""
    return rewritten(data, lambda name, record: record if not record or "/data/" in name else flipped(record, chance))


def flip_one(data, where):
    changed = bytearray(data)
    changed[where] ^= 0x10
    return bytes(changed)


warnings.simplefilter("ignore")
torch.manual_seed(20)
module = Linear().eval()
file = io.BytesIO()
torch.jit.save(torch.jit.script(module), file)
script = file.getvalue()
file = io.BytesIO()
torch.export.save(torch.export.export(module, (torch.zeros(2, 4),)), file)
exported = file.getvalue()
put("good", script)
# The exporter needs this description of the operator.
library = torch.library.Library("aten", "IMPL")
library.impl(
    "from_file",
    lambda name, shared=None, size=0, **given: torch.empty(size, dtype=torch.float32, device="meta"),
    "Meta",
)
for name, path, shared in (("read", SECRET, False), ("change", SECRET, True), ("make", MARKER, True)):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Reaches(path, shared)), file)
    put("asks_to_" + name, file.getvalue())
    file = io.BytesIO()
    torch.export.save(torch.export.export(Reaches(path, shared), (torch.zeros(1, 4),)), file)
    put("asks_exported_to_" + name, file.getvalue(), "model.pt2")

weights = script.index(module.layer.weight.detach().numpy().tobytes())
refused = {
    "empty": b"",
    "text": b"this is no model",
    "truncated": script[: len(script) // 2],
    "without_end": script[:-30],
    "flipped_weight": flip_one(script, weights + 5),
    "bomb": rewritten(
        script, lambda name, data: bytes(300 << 20) if name.endswith("data.pkl") else data, zipfile.ZIP_DEFLATED
    ),
    "code": rewritten(script, at("data.pkl", pickle.dumps(Runs(), 2))),
    "constants_code": rewritten(script, at("constants.pkl", pickle.dumps((Runs(),), 2))),
    "no_code": rewritten(script, lambda name, data: b"" if name.endswith(".py") else data),
}
for name, data in refused.items():
    put(name, data)

# A record that declares a terabyte.
central = script.rindex(b"PK\x01\x02")
huge = script[: central + 20] + struct.pack("<II", 0xFFFFFFF0, 0xFFFFFFF0) + script[central + 28 :]
more = {
    "exported_truncated": exported[: len(exported) - 400],
    "exported_code": rewritten(exported, at("sample_inputs/model.pt", pickle.dumps(Runs()))),
    "exported_json": rewritten(exported, at("models/model.json", b"{" * 10000)),
    "huge": huge,
}
for name, data in more.items():
    put(name, data, "model.pt2" if name.startswith("exported") else "model.pt")
# This file crashes PyTorch itself.
put("deep", rewritten(script, at("data.pkl", b"\x80\x02" + b"(" * 200000 + b"t" * 200000 + b".")))
for name, data in damaged(script, FLIPPED // 4, CUT):
    put(name, data)
for name, data in damaged(exported, FLIPPED // 4, CUT // 2):
    put("exported_" + name, data, "model.pt2")
for index in range(FLIPPED // 2):
    put("resealed_%d" % index, resealed(script, random.Random(index)))
print("\n".join([*refused, *more]))
