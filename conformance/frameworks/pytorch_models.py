"""Writes a repository of PyTorch models, and PyTorch's own results for requests: `pytorch_models.py REPOSITORY`.

Weights come from fixed seeds. `cases.json` next to the models has requests and results; tensors are files of raw bytes.
"""

import io as io_module
import json
import os
import sys
import warnings
import zipfile
from typing import Dict, List, NamedTuple, Tuple

import torch
from torch import nn

ROOT = sys.argv[1]
CASES = []
TYPES = {
    torch.bool: "BOOL", torch.uint8: "UINT8", torch.uint16: "UINT16", torch.uint32: "UINT32", torch.uint64: "UINT64",
    torch.int8: "INT8", torch.int16: "INT16", torch.int32: "INT32", torch.int64: "INT64", torch.float16: "FP16",
    torch.float32: "FP32", torch.float64: "FP64", torch.bfloat16: "BF16",
}  # fmt: skip


def bytes_of(value):
    if isinstance(value, list):
        encoded = [one.encode() for one in value]
        return b"".join(len(one).to_bytes(4, "little") + one for one in encoded)
    value = value.contiguous()
    return value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""


def tensor(name, value):
    where = "tensors/%d" % len(os.listdir(os.path.join(ROOT, "..", "tensors")))
    with open(os.path.join(ROOT, "..", where), "wb") as file:
        file.write(bytes_of(value))
    shape = [len(value)] if isinstance(value, list) else list(value.shape)
    return {
        "name": name,
        "datatype": "BYTES" if isinstance(value, list) else TYPES[value.dtype],
        "shape": shape,
        "file": where,
    }


def case(model, inputs, outputs):
    CASES.append(
        {"model": model, "inputs": [tensor(*one) for one in inputs], "outputs": [tensor(*one) for one in outputs]}
    )


def io(kind, name, datatype, dims):
    return '%s { name: "%s" data_type: TYPE_%s dims: %s }\n' % (kind, name, datatype, list(dims))


def parameters(**given):
    return "".join('parameters { key: "%s" value { string_value: "%s" } }\n' % one for one in given.items())


def put(name, program, config, batch=0, file="model.pt"):
    directory = os.path.join(ROOT, name, "1")
    os.makedirs(directory)
    path = os.path.join(directory, file)
    if isinstance(program, bytes):
        with open(path, "wb") as out:
            out.write(program)
    elif isinstance(program, torch.export.ExportedProgram):
        torch.export.save(program, path)
    else:
        torch.jit.save(program, path)
    with open(os.path.join(ROOT, name, "config.pbtxt"), "w") as out:
        out.write('backend: "pytorch"\nmax_batch_size: %d\n%s' % (batch, config))


class Block(nn.Module):
    """The bottleneck block of ResNet."""

    def __init__(self, inner, width, stride):
        super().__init__()
        outer = width * 4
        self.layers = nn.Sequential(
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer),
        )  # fmt: skip
        self.short = (
            nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
            if stride != 1 or inner != outer
            else nn.Identity()
        )

    def forward(self, x):
        return torch.relu(self.layers(x) + self.short(x))


def resnet50():
    parts, inner = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            parts.append(Block(inner, width, stride if index == 0 else 1))
            inner = width * 4
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def trained(module, *shape):
    """Sets the statistics of batch norms by a few passes, because those of a new module make outputs nearly constant."""
    with torch.no_grad():
        for _ in range(3):
            module.train()(torch.randn(*shape))
    return module.eval()


def write_resnet():
    module = trained(resnet50(), 4, 3, 64, 64)
    config = io("input", "INPUT__0", "FP32", [3, 64, 64]) + io("output", "OUTPUT__0", "FP32", [1000])
    put(
        "resnet50",
        torch.jit.trace(module, torch.randn(1, 3, 64, 64)),
        config + "dynamic_batching { max_queue_delay_microseconds: 20000 }",
        8,
    )
    for rows in (1, 2, 3, 1):
        pixels = torch.randn(rows, 3, 64, 64)
        case("resnet50", [("INPUT__0", pixels)], [("OUTPUT__0", module(pixels))])


class Encoder(nn.Module):
    """A transformer encoder with two outputs."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        hidden = self.encoder(self.embed(input_ids), src_key_padding_mask=attention_mask == 0)
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1), hidden


def write_encoder():
    module = Encoder().eval()
    ids, mask = torch.randint(0, 1000, (3, 7)), torch.ones(3, 7, dtype=torch.int64)
    mask[1, 4:] = 0
    outputs = io("output", "hidden__1", "FP32", [-1, 64]) + io("output", "pooled__0", "FP32", [64])
    # Inputs have the names of forward's arguments, in another order.
    inputs = io("input", "attention_mask", "INT64", [-1]) + io("input", "input_ids", "INT64", [-1])
    put("encoder", torch.jit.script(module), inputs + outputs, 4)
    pooled, hidden = module(ids, mask)
    case("encoder", [("attention_mask", mask), ("input_ids", ids)], [("hidden__1", hidden), ("pooled__0", pooled)])
    batch = torch.export.Dim("batch", max=64)
    shapes = {"input_ids": {0: batch, 1: torch.export.Dim.AUTO}, "attention_mask": {0: batch, 1: torch.export.Dim.AUTO}}
    exported = torch.export.export(module, (ids,), {"attention_mask": mask}, dynamic_shapes=shapes)
    put("encoder_exported", exported, inputs + outputs, 4, "model.pt2")
    case(
        "encoder_exported",
        [("attention_mask", mask), ("input_ids", ids)],
        [("hidden__1", hidden), ("pooled__0", pooled)],
    )
    paths = io("input", "KWARGS[attention_mask]", "INT64", [-1]) + io("input", "ARGS[0]", "INT64", [-1])
    put("encoder_paths", exported, paths + outputs, 4, "model.pt2")
    case("encoder_paths", [("ARGS[0]", ids), ("KWARGS[attention_mask]", mask)], [("pooled__0", pooled)])


class Gates(NamedTuple):
    """Returns a sequence and two states, as a recurrent model does."""

    sequence: torch.Tensor
    hidden: torch.Tensor
    cell: torch.Tensor


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> Gates:
        sequence, (hidden, cell) = self.layer(x)
        return Gates(sequence, hidden.transpose(0, 1), cell.transpose(0, 1))


def write_recurrent():
    module, x = Recurrent().eval(), torch.randn(2, 5, 8)
    # In the configuration's order, because neither names nor indexes identify them.
    outputs = [
        io("output", name, "FP32", dims) for name, dims in (("all", [-1, 16]), ("last", [1, 16]), ("cell", [1, 16]))
    ]
    put("recurrent", torch.jit.script(module), io("input", "values", "FP32", [-1, 8]) + "".join(outputs), 4)
    case("recurrent", [("values", x)], list(zip(("all", "last", "cell"), module(x))))


class Named(nn.Module):
    def forward(self, tensors: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        return {"sum": tensors["a"] + tensors["b"], "product": tensors["a"] * tensors["b"]}


class Listed(nn.Module):
    def forward(self, x: torch.Tensor) -> List[torch.Tensor]:
        return [x.t(), x[:1].expand(3, x.size(1)), torch.complex(x, -x).conj().real]


class Texts(nn.Module):
    def forward(self, texts: List[str]) -> Tuple[List[str], torch.Tensor]:
        return [text.upper() for text in texts], torch.tensor([len(text) for text in texts])


class InPlace(nn.Module):
    """Overwrites its input, and counts its runs in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs.add_(1)
        return x.mul_(2)


class Drifting(nn.Module):
    """Overwrites its weights."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.zeros(300, 1000))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weights.add_(x)[-1, :1].clone()


class Same(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Options(nn.Module):
    """Has enough work for all threads of the model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        work = torch.ones(600, 600)
        return (work @ work).sum(0)[:1] * 0 + x


class Wide(nn.Module):
    """Needs 96 MB during a run, 48 MB of them in one block: more than the C library caches."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.expand(6_000_000) + 1, x.expand(6_000_000) + 2])[5_999_999:6_000_001].clone()


THREADS = """
import re

import torch


class Threads(torch.nn.Module):
    def forward(self, x):
        pools = re.findall(r"max_threads\\(\\) : (\\d+)", torch.__config__.parallel_info())
        return torch.tensor([torch.get_num_threads(), *map(int, pools)])
"""


def write_defaults():
    """Returns PyTorch's default numbers of threads, as seen by this process."""
    code = {}
    exec(THREADS, code)
    config = io("input", "x", "FP32", [1]) + io("output", "y", "INT64", [-1])
    put("default_threads", THREADS.encode(), 'runtime: "model.py"\n' + config, file="model.py")
    one = torch.ones(1)
    counts = code["Threads"]()(one)
    assert len(counts) == 3, counts
    case("default_threads", [("x", one)], [("y", counts)])
    put("wide", torch.jit.script(Wide()), io("input", "x", "FP32", [1]) + io("output", "y", "FP32", [2]))
    case("wide", [("x", one)], [("y", torch.tensor([2.0, 3.0]))])


def write_small():
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    config = "".join(io("input", name, "FP32", [3]) for name in ("b", "a")) + "".join(
        io("output", name, "FP32", [3]) for name in ("product", "sum")
    )
    put("named", torch.jit.script(Named()), config, 4)
    case("named", [("a", a), ("b", b)], [("sum", a + b), ("product", a * b)])
    put(
        "listed",
        torch.jit.script(Listed()),
        io("input", "x", "FP32", [-1, -1])
        + "".join(io("output", "OUTPUT__%d" % i, "FP32", [-1, -1]) for i in range(3)),
    )
    case("listed", [("x", a)], list(zip(["OUTPUT__0", "OUTPUT__1", "OUTPUT__2"], Listed()(a))))
    texts = ["", "Grüße", "日本", "plain"]
    put(
        "texts",
        torch.jit.script(Texts()),
        io("input", "texts", "STRING", [-1])
        + io("output", "OUTPUT__0", "STRING", [-1])
        + io("output", "OUTPUT__1", "INT64", [-1]),
    )
    case("texts", [("texts", texts)], list(zip(["OUTPUT__0", "OUTPUT__1"], torch.jit.script(Texts())(texts))))
    put(
        "in_place",
        torch.jit.script(InPlace()),
        io("input", "INPUT__0", "FP32", [-1]) + io("output", "OUTPUT__0", "FP32", [-1]),
    )
    put(
        "same",
        torch.jit.script(Same()),
        io("input", "INPUT__0", "FP32", [-1]) + io("output", "OUTPUT__0", "FP32", [-1]),
    )
    # Three workers map one file.
    drifting = torch.jit.script(Drifting())
    for model, count in (("drifting_once", 1), ("drifting_twice", 2)):
        config = io("input", "INPUT__0", "FP32", [1]) + io("output", "OUTPUT__0", "FP32", [1])
        put(model, drifting, config + "instance_group { count: %d kind: KIND_CPU }" % count)
    large = torch.randn(5000)
    case("in_place", [("INPUT__0", large)], [("OUTPUT__0", large * 2)])
    case("same", [("INPUT__0", large)], [("OUTPUT__0", large)])
    for dtype, name in TYPES.items():
        model = "type_" + name.lower()
        put(model, torch.jit.script(Same()), io("input", "x", name, [-1, 2]) + io("output", "y", name, [-1, 2]), 64)
        for rows in (1, 3):
            value = torch.arange(rows * 14).reshape(rows, 7, 2) % (2 if dtype == torch.bool else 120)
            case(model, [("x", value.to(dtype))], [("y", value.to(dtype))])
    switches = parameters(
        DISABLE_OPTIMIZED_EXECUTION="true", INFERENCE_MODE="off", DISABLE_CUDNN="1", ENABLE_TENSOR_FUSER="false",
        ENABLE_JIT_PROFILING="false", ENABLE_JIT_EXECUTOR="false", ENABLE_WEIGHT_SHARING="true", INTER_OP_THREAD_COUNT="2",
    )  # fmt: skip
    for count in (1, 3):
        model = "threads_%d" % count
        threads = parameters(INTRA_OP_THREAD_COUNT=str(count))
        put(
            model,
            torch.jit.script(Options()),
            threads + switches + io("input", "x", "FP32", [1]) + io("output", "y", "FP32", [1]),
        )
        case(model, [("x", torch.ones(1))], [("y", torch.ones(1))])


EAGER = """
import torch
from torch.nn import Linear


class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Linear(4, 3)

    def forward(self, a, b):
        return self.layer(a + b), {"not": "asked"}.get("for", a * 2)
"""


def write_eager():
    layer, a, b = nn.Linear(4, 3), torch.randn(2, 4), torch.randn(2, 4)
    inputs = io("input", "first", "FP32", [4]) + io("input", "second", "FP32", [4])
    outputs = io("output", "sum", "FP32", [3]) + io("output", "twice", "FP32", [4])
    put(
        "eager", EAGER.encode(), 'runtime: "model.py"\n' + parameters(NUM_THREADS="1") + inputs + outputs, 4, "model.py"
    )
    torch.save({"layer.weight": layer.weight, "layer.bias": layer.bias}, os.path.join(ROOT, "eager", "1", "model.pt"))
    case("eager", [("first", a), ("second", b)], [("sum", layer(a + b)), ("twice", a * 2)])


ENSEMBLE = """platform: "ensemble"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "doubled" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "same" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling {
  step { model_name: "in_place" model_version: -1 input_map { key: "INPUT__0" value: "x" } output_map { key: "OUTPUT__0" value: "doubled" } }
  step { model_name: "same" model_version: -1 input_map { key: "INPUT__0" value: "x" } output_map { key: "OUTPUT__0" value: "same" } }
}
"""


def write_ensemble():
    """Writes an ensemble in which one step overwrites the input of the other."""
    os.makedirs(os.path.join(ROOT, "both", "1"))
    with open(os.path.join(ROOT, "both", "config.pbtxt"), "w") as out:
        out.write(ENSEMBLE)
    for count in (5000, 300000, 300000):
        x = torch.randn(count)
        case("both", [("x", x)], [("doubled", x * 2), ("same", x)])


class Wrong(nn.Module):
    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if bool(x.sum() > 100):
            raise RuntimeError("more than a hundred")
        return x.sum(), x.double(), x[:1]


class Optionals(nn.Module):
    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        return x * times


def write_wrong():
    x = io("input", "INPUT__0", "FP32", [-1])
    wrong = torch.jit.script(Wrong())
    for index, (name, datatype) in enumerate(
        (("scalar", "FP32"), ("typed", "FP32"), ("rows", "FP32"), ("beyond", "FP32"))
    ):
        put("wrong_" + name, wrong, x + io("output", "OUTPUT__%d" % index, datatype, [-1]), 4)
    put(
        "load_count",
        torch.jit.script(Same()),
        x + io("input", "INPUT__1", "FP32", [-1]) + io("output", "OUTPUT__0", "FP32", [-1]),
    )
    put(
        "load_argument",
        torch.jit.script(Optionals()),
        x + io("input", "times", "INT64", [1]) + io("output", "OUTPUT__0", "FP32", [-1]),
    )
    put(
        "load_index",
        torch.jit.script(Same()),
        io("input", "INPUT__4", "FP32", [-1]) + io("output", "OUTPUT__0", "FP32", [-1]),
    )
    put(
        "load_strings",
        torch.jit.script(Texts()),
        io("input", "texts", "STRING", [-1]) + io("output", "OUTPUT__0", "STRING", [-1]),
        4,
    )
    put(
        "load_boolean",
        torch.jit.script(Same()),
        parameters(INFERENCE_MODE="perhaps") + x + io("output", "OUTPUT__0", "FP32", [-1]),
    )
    put("load_absent", torch.jit.script(Same()), x + io("output", "OUTPUT__0", "FP32", [-1]))
    os.remove(os.path.join(ROOT, "load_absent", "1", "model.pt"))
    put("load_weights", b"", x + io("output", "OUTPUT__0", "FP32", [-1]))
    torch.save(nn.Linear(2, 2).state_dict(), os.path.join(ROOT, "load_weights", "1", "model.pt"))
    package = io_module.BytesIO()
    torch.export.save(torch.export.export(Same(), (torch.zeros(2),)), package)
    with zipfile.ZipFile(package, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        # The layout of torch._inductor.aoti_compile_and_package.
        archive.writestr(root + "/data/aotinductor/model/model.wrapper.so", b"\x7fELF")
    put("load_compiled", package.getvalue(), x + io("output", "OUTPUT__0", "FP32", [-1]), file="model.pt2")
    put(
        "load_states",
        torch.jit.script(Same()),
        x
        + io("output", "OUTPUT__0", "FP32", [-1])
        + "sequence_batching { state { input_name: 'STATE__1' output_name: 'STATE__1' data_type: TYPE_FP32 dims: [ 1 ] } }",
        4,
    )


warnings.simplefilter("ignore")
torch.manual_seed(20)
os.makedirs(os.path.join(ROOT, "..", "tensors"))
with torch.no_grad():
    for write in (
        write_resnet, write_encoder, write_recurrent, write_defaults, write_small, write_eager, write_ensemble, write_wrong
    ):  # fmt: skip
        write()
with open(os.path.join(ROOT, "..", "cases.json"), "w") as out:
    json.dump(CASES, out)
