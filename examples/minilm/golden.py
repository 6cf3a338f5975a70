"""Creates golden.json: embeddings of sentences by the original library.

    python3 -m venv venv && venv/bin/pip install sentence-transformers
    venv/bin/python golden.py <package model directory> > golden.json

Run once; the test compares with its output and needs neither sentence-transformers nor torch.
"""

import json
import sys

import sentence_transformers
import torch
import transformers
from sentence_transformers import SentenceTransformer

SENTENCES = [
    "The cat sits on the mat.",
    "A kitten is resting on a rug.",
    "Where is the nearest railway station?",
    "How do I get to the train?",
    "The stock market fell sharply on Monday.",
    "ONNX Runtime runs the encoder; Python does the rest.",
    "Der Zug fährt um acht Uhr ab — 日本語も少し.",
    "",
    "word " * 400,
]


def main():
    model = SentenceTransformer(sys.argv[1], device="cpu")
    # One at a time, so that the numbers do not depend on other sentences of a batch.
    embeddings = [model.encode(text, normalize_embeddings=True) for text in SENTENCES]
    golden = {
        "made_by": {
            "sentence-transformers": sentence_transformers.__version__,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        },
        "sentences": [
            {"text": text, "embedding": [round(float(value), 7) for value in row]}
            for text, row in zip(SENTENCES, embeddings)
        ],
    }
    json.dump(golden, sys.stdout, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
