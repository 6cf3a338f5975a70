"""Computes sentence embeddings of MiniLM-L6-v2 with numpy alone: an independent forward pass for checking the ONNX graph.

    python3 reference.py <package model directory> < sentences.json > embeddings.json

Reads a JSON list of strings, writes a JSON list of 384 numbers each. Needs numpy and tokenizers, nothing else.
"""

import json
import math
import struct
import sys

import numpy as np
from tokenizers import Tokenizer


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    weights = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            values = np.frombuffer(data[start:end], dtype="<f4")
            weights[name] = values.reshape(entry["shape"]).astype(np.float64)
    return weights


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


class Encoder:
    """Computes BERT in double precision, one sentence at a time, without padding and masks."""

    def __init__(self, directory):
        self.weights = read_safetensors(directory + "/model.safetensors")
        with open(directory + "/config.json", encoding="utf-8") as file:
            self.config = json.load(file)

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def normalise(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.config["layer_norm_eps"])
        return scaled * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def attend(self, x, name):
        tokens, width = x.shape
        heads = self.config["num_attention_heads"]

        def split(projection):
            return self.linear(x, name + ".self." + projection).reshape(tokens, heads, -1).transpose(1, 0, 2)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(width / heads)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        joined = (scores @ value).transpose(1, 0, 2).reshape(tokens, width)
        return self.normalise(self.linear(joined, name + ".output.dense") + x, name + ".output.LayerNorm")

    def token_embeddings(self, ids):
        x = self.weights["embeddings.word_embeddings.weight"][ids]
        x = x + self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + self.weights["embeddings.token_type_embeddings.weight"][0]
        x = self.normalise(x, "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            name = "encoder.layer.%d" % layer
            x = self.attend(x, name + ".attention")
            wide = self.linear(x, name + ".intermediate.dense")
            wide = wide * 0.5 * (1.0 + erf(wide / math.sqrt(2.0)))
            x = self.normalise(self.linear(wide, name + ".output.dense") + x, name + ".output.LayerNorm")
        return x

    def embed(self, ids):
        mean = self.token_embeddings(ids).mean(axis=0)
        return mean / np.linalg.norm(mean)


def main():
    directory = sys.argv[1]
    encoder = Encoder(directory)
    tokenizer = Tokenizer.from_file(directory + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    sentences = json.load(sys.stdin)
    json.dump([encoder.embed(tokenizer.encode(text).ids).tolist() for text in sentences], sys.stdout)


if __name__ == "__main__":
    main()
