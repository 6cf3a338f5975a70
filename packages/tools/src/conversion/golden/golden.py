"""Generates the JSON files in this directory: tiny encoders that `transformers` builds, and their outputs.

    python3 -m venv venv && venv/bin/pip install transformers torch
    venv/bin/python golden.py .

Run this only to change the files; the tests need neither transformers nor torch. A file contains the configuration in the format of
`save_pretrained`, the names and shapes of the weights, and inputs with the model's outputs. It does not contain the weights: this
program and the tests compute them from the tensors' names, with 32-bit integers.
"""

import base64
import json
import pathlib
import sys
import zlib

import numpy as np
import torch
import transformers

SIZES = {
    "vocab_size": 48,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
}
DISTILBERT = {
    "vocab_size": 48,
    "dim": 16,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 24,
    "max_position_embeddings": 20,
}
MODELS = {
    "bert": ("Bert", {**SIZES}),
    "bert-tanh-gelu": ("Bert", {**SIZES, "hidden_act": "gelu_new", "num_attention_heads": 2, "layer_norm_eps": 1e-6}),
    "bert-relu": ("Bert", {**SIZES, "hidden_act": "relu", "type_vocab_size": 1}),
    "roberta": ("Roberta", {**SIZES, "pad_token_id": 1, "type_vocab_size": 1}),
    "xlm-roberta": ("XLMRoberta", {**SIZES, "pad_token_id": 1, "type_vocab_size": 1, "hidden_act": "silu"}),
    "camembert": ("Camembert", {**SIZES, "pad_token_id": 1, "type_vocab_size": 1}),
    "electra": ("Electra", {**SIZES, "embedding_size": 12}),
    "electra-wide": ("Electra", {**SIZES, "embedding_size": 16}),
    "distilbert": ("DistilBert", {**DISTILBERT}),
    "mpnet": ("MPNet", {**SIZES, "hidden_size": 8, "pad_token_id": 1, "max_position_embeddings": 160}),
    "albert": ("Albert", {**SIZES, "embedding_size": 12, "num_hidden_layers": 3, "inner_group_num": 2}),
    "albert-groups": ("Albert", {**SIZES, "embedding_size": 12, "num_hidden_layers": 4, "num_hidden_groups": 2}),
}


def weights(name, shape, offset):
    """Returns the numbers of one tensor, between -0.4 and 0.4 around `offset`."""
    count = int(np.prod(shape, dtype=np.int64))
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(zlib.crc32(name.encode()))
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    values = (x.astype(np.float64) / 2**32 - 0.5) * 0.8 + offset
    return values.astype(np.float32).reshape(shape)


def is_norm_weight(name):
    return name.lower().replace("_", "").endswith(("layernorm.weight",))


def cases(config):
    """Returns three sentences padded to the same length, a single token, and a sentence of the model's maximum length."""
    generator = np.random.default_rng(7)
    pad = config.pad_token_id
    longest = config.max_position_embeddings - (pad + 1 if pad > 0 else 0)
    made = []
    for lengths, tokens in (((5, 2, 9), 9), ((1,), 1), ((longest,), longest)):
        ids = np.full((len(lengths), tokens), pad)
        mask = np.zeros((len(lengths), tokens), dtype=np.int64)
        for row, length in enumerate(lengths):
            ids[row, :length] = generator.integers(3, 48, length)
            mask[row, :length] = 1
        types = generator.integers(0, 2, ids.shape) * mask
        made.append((ids, mask, types))
    return made


def make(name, target):
    family, sizes = MODELS[name]
    config = getattr(transformers, family + "Config")(**sizes)
    config._attn_implementation = "eager"
    model = getattr(transformers, family + "Model")(config).eval()
    state = model.state_dict()
    tensors = []
    for key, value in state.items():
        if not value.is_floating_point():
            continue
        offset = 1 if is_norm_weight(key) else 0
        value.copy_(torch.from_numpy(weights(key, value.shape, offset)))
        tensors.append([key, list(value.shape), offset])
    with_types = getattr(config, "type_vocab_size", 0) > 1
    answers = []
    for ids, mask, types in cases(config):
        inputs = {"input_ids": ids, "attention_mask": mask}
        if with_types:
            inputs["token_type_ids"] = types
        with torch.no_grad():
            answer = model(**{key: torch.from_numpy(value) for key, value in inputs.items()})
        outputs = {"last_hidden_state": answer.last_hidden_state}
        if getattr(answer, "pooler_output", None) is not None:
            outputs["pooler_output"] = answer.pooler_output
        answers.append(
            {
                "inputs": {key: value.tolist() for key, value in inputs.items()},
                "outputs": {key: np.round(value.numpy().astype(float), 6).tolist() for key, value in outputs.items()},
            }
        )
    written = {
        "made_by": {"transformers": transformers.__version__, "torch": torch.__version__},
        "config": {**json.loads(config.to_json_string(use_diff=False)), "architectures": [family + "Model"]},
        "tensors": tensors,
        "cases": answers,
    }
    (pathlib.Path(target) / (name + ".json")).write_text(json.dumps(written) + "\n", encoding="utf-8")


def make_weights(target):
    """Writes a PyTorch file of weights with all element types, parameters, buffers, a view into a storage, and a transposed
    tensor.
    """
    torch.manual_seed(7)
    shared = torch.randn(5, 4)
    state = {
        "single": torch.randn(3, 2),
        "half": torch.randn(3).half(),
        "brain": torch.randn(3).bfloat16(),
        "double": torch.randn(2, 1, 2).double(),
        "scalar": torch.tensor(0.25),
        "row": shared[2],
        "rows": shared[3:],
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
        "count": torch.tensor(7),
        "mask": torch.ones(2, dtype=torch.bool),
    }
    written = {}
    for name, content in (
        ("plain", state),
        ("module", torch.nn.LayerNorm(3).state_dict()),
        ("turned", {"turned": shared.t()}),
        ("old", state),
    ):
        path = pathlib.Path(target) / "weights.bin"
        torch.save(content, path, _use_new_zipfile_serialization=name != "old")
        written[name] = base64.b64encode(path.read_bytes()).decode()
        path.unlink()
    expected = {name: [list(each.shape), each.float().flatten().tolist()] for name, each in state.items()}
    path = pathlib.Path(target) / "torch" / "weights.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({"torch": torch.__version__, "expected": expected, "files": written}) + "\n", encoding="utf-8"
    )


def main():
    for name in MODELS:
        make(name, sys.argv[1])
    make_weights(sys.argv[1])


if __name__ == "__main__":
    main()
