"""Computes the example's T5 with numpy alone, without the libraries of model.py: no transformers, no JAX, no cache.

    python reference.py LAYERS SENTENCE...

The output is JSON: for each sentence its tokens, the output tokens, and the smallest margin to the second best token.

The weights come from the same seed. Formulas: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" and
the layout of parameters in transformers.
"""

import json
import math
import sys

import numpy as np
from make_model import model, tokenizer

HEADS = 8
BUCKETS = 32
DISTANCE = 128
MAX_LENGTH = 24


def norm(x, weights):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weights["weight"]


def bucket(distance, both_ways):
    """Returns the embedding of a relative position: near positions have their own, far ones share one by their logarithm."""
    count, offset = BUCKETS, 0
    if both_ways:
        count //= 2
        offset = count if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = count // 2
    if distance < exact:
        return offset + distance
    far = exact + int(math.log(distance / exact) / math.log(DISTANCE / exact) * (count - exact))
    return offset + min(far, count - 1)


def positions(embedding, length, both_ways):
    buckets = [[bucket(key - query, both_ways) for key in range(length)] for query in range(length)]
    return embedding[np.array(buckets)].transpose(2, 0, 1)


def attend(x, source, weights, bias):
    def heads(values, name):
        return (values @ weights[name]["kernel"]).reshape(len(values), HEADS, -1).transpose(1, 0, 2)

    # T5 does not divide by the root of the width.
    scores = heads(x, "q") @ heads(source, "k").transpose(0, 2, 1) + bias
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = scores / scores.sum(-1, keepdims=True) @ heads(source, "v")
    return mixed.transpose(1, 0, 2).reshape(len(x), -1) @ weights["o"]["kernel"]


def stack(tokens, weights, embedding, encoded=None):
    """Returns the encoder's states of tokens, or with `encoded` the decoder's."""
    x = embedding[tokens]
    both_ways = encoded is None
    table = weights["block"]["0"]["layer"]["0"]["SelfAttention"]["relative_attention_bias"]["embedding"]
    bias = positions(table, len(tokens), both_ways)
    if not both_ways:
        bias = bias + np.triu(np.full((len(tokens), len(tokens)), -1e30), 1)
    for index in range(len(weights["block"])):
        layer = weights["block"][str(index)]["layer"]
        inner = norm(x, layer["0"]["layer_norm"])
        x = x + attend(inner, inner, layer["0"]["SelfAttention"], bias)
        if not both_ways:
            x = x + attend(norm(x, layer["1"]["layer_norm"]), encoded, layer["1"]["EncDecAttention"], 0.0)
        last = layer["1" if both_ways else "2"]
        dense = last["DenseReluDense"]
        inner = np.maximum(norm(x, last["layer_norm"]) @ dense["wi"]["kernel"], 0)
        x = x + inner @ dense["wo"]["kernel"]
    return norm(x, weights["final_layer_norm"])


def doubles(tree):
    return {
        name: doubles(each) if isinstance(each, dict) else np.asarray(each, np.float64) for name, each in tree.items()
    }


def answer(tokens, weights):
    embedding = weights["shared"]["embedding"]
    encoded = stack(tokens, weights["encoder"], embedding)
    said, nearest = [0], math.inf
    while len(said) < MAX_LENGTH and said[-1] != 1:
        scores = stack(said, weights["decoder"], embedding, encoded)[-1] @ weights["lm_head"]["kernel"]
        second, best = np.argsort(scores)[-2:]
        nearest = min(nearest, float(scores[best] - scores[second]))
        said.append(int(best))
    return {"tokens": tokens, "answer": said + [0] * (MAX_LENGTH - len(said)), "margin": nearest}


def main(layers, *sentences):
    pieces = tokenizer()
    weights = doubles(model(int(layers), pieces.get_vocab_size()).params)
    print(json.dumps([answer(pieces.encode(sentence).ids, weights) for sentence in sentences]))


if __name__ == "__main__":
    main(*sys.argv[1:])
