"""Writes the checkpoint and the tokenizer of the example's T5, in the environment that create_hf_env.sh made.

    python make_model.py MODEL_DIRECTORY [--layers 6]    MODEL_DIRECTORY/1/checkpoint and MODEL_DIRECTORY/tokenizer.json

The architecture is that of T5 with the layers, heads and widths of T5-small; its tokens are a few hundred. Trained weights have to be
downloaded, which this script does not do: its weights come from a fixed seed, so its output is always the same and meaningless. A
purely random network repeats one token for every input, so its head is not tied to its embedding, and its
attention is sharper.
"""

import argparse
import math
import os
import re

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SEED = 5
SENTENCES = """The house is wonderful. The garden behind the house is small and green.
A translation is a text that says the same in another language. translate English to German: translate English to French:
The weather was cold in the morning and warm in the afternoon. We walked along the river until it was dark.
She reads a book about the history of the city. He writes a letter to his brother who lives in the mountains.
The train leaves at seven and arrives at noon. Nobody knew why the ship was late.
summarize: the teacher asked a question and the children answered it. The answer was shorter than the question.
My dog likes to sleep in the sun, and my cat likes to look out of the window.
Three apples, two pears and one orange lie on the table in the kitchen.
Music is heard from the open windows of the old theatre. The orchestra plays until ten.
It takes two hours to go from here to the sea, and a little longer on the way back."""


def tokenizer():
    """Returns words and letters with the logarithms of their frequencies, in T5's SentencePiece format: 0 is padding, 1 the end, 2 unknown."""
    words = re.findall(r"\w+", SENTENCES)
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [("\u2581" + word, math.log(words.count(word) / len(words))) for word in sorted(set(words))]
    pieces += [(chr(code), -12.0) for code in (*range(33, 127), 0x2581)]
    made = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return made


def sharpen(attention):
    """Sharpens the attention, so that it is on few near tokens instead of the mean of all."""
    for name, parameter, factor in (
        ("q", "kernel", 8),
        ("o", "kernel", 4),
        ("relative_attention_bias", "embedding", 4),
    ):
        if name in attention:
            attention[name][parameter] = factor * attention[name][parameter]


def model(layers, tokens):
    """Creates the weights, which are always the same."""
    from transformers import FlaxT5ForConditionalGeneration, T5Config

    config = T5Config(
        vocab_size=tokens,
        d_model=512,
        d_kv=64,
        d_ff=2048,
        num_layers=layers,
        num_heads=8,
        tie_word_embeddings=False,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    made = FlaxT5ForConditionalGeneration(config, seed=SEED)
    for part in ("encoder", "decoder"):
        for block in made.params[part]["block"].values():
            for layer in block["layer"].values():
                for attention in (layer.get("SelfAttention"), layer.get("EncDecAttention")):
                    sharpen(attention or {})
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--layers", type=int, default=6)
    options = parser.parse_args()
    checkpoint = os.path.join(options.directory, "1", "checkpoint")
    os.makedirs(checkpoint, exist_ok=True)
    pieces = tokenizer()
    pieces.save(os.path.join(options.directory, "tokenizer.json"))
    model(options.layers, pieces.get_vocab_size()).save_pretrained(checkpoint)


if __name__ == "__main__":
    main()
