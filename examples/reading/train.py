"""Trains three models of a pipeline with scikit-learn and its digits data set; needs only scikit-learn.

    python train.py write REPOSITORY STRIPS.json   writes the models of models/ with their weights, and strips of eight digits as requests
    python train.py answer STRIPS.json             prints scikit-learn's own results for those strips as JSON, trained again

Quality is a logistic regression over the amounts of ink, contrast and edges. Recognition is a network with two layers. Topic is naive Bayes over
pairs of digits: a word is written as on telephone keys, "cat" as 228, and padded with 0.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neural_network import MLPClassifier

WORDS = {
    "animals": "cat dog horse tiger sheep rabbit monkey parrot dolphin elephant squirrel lizard penguin turtle pigeon",
    "food": "bread butter cheese apple orange tomato potato noodle salad pepper garlic biscuit pancake sausage omelette",
    "travel": "train ticket airport hotel luggage harbour station passport platform journey bicycle highway compass voyage tourist",
}
TOPICS = [*WORDS, "unreadable"]
KEYS = {
    letter: key
    for key, letters in enumerate(["abc", "def", "ghi", "jkl", "mno", "pqrs", "tuv", "wxyz"], 2)
    for letter in letters
}
LENGTH = 8
SEED = 3


def coded(word):
    return [KEYS[letter] for letter in word] + [0] * (LENGTH - len(word))


def pairs(digits):
    return np.bincount([10 * left + right for left, right in zip(digits, digits[1:])], minlength=100)


def strips_of(words, images, labels, random):
    """Returns a picture of each word, with digits in different handwriting."""
    return np.array(
        [[images[random.choice(np.flatnonzero(labels == digit))] for digit in coded(word)] for word in words]
    )


def faded(strips, random):
    """Returns unreadable pictures: little contrast, and noise."""
    return 7 + strips / 16 + random.normal(0, 0.3, strips.shape)


def features(strip):
    return [strip.mean(), strip.std(), np.abs(np.diff(strip, axis=2)).mean()]


def stretched(strip):
    low, high = strip.min((1, 2), keepdims=True), strip.max((1, 2), keepdims=True)
    return 16 * (strip - low) / np.maximum(high - low, 1e-6)


def train():
    """Trains the models and creates the strips, always with equal results."""
    random = np.random.default_rng(SEED)
    digits = load_digits()
    held = len(digits.images) - 500
    words = [word for each in WORDS.values() for word in each.split()]
    topics = [topic for topic, each in WORDS.items() for _ in each.split()]
    good = strips_of(words, digits.images[:held], digits.target[:held], random)
    seen = [features(strip) for strip in (*good, *faded(good, random))]
    quality = LogisticRegression().fit(seen, [1] * len(good) + [0] * len(good))
    recognition = MLPClassifier((64,), random_state=SEED, max_iter=400, tol=1e-3)
    recognition.fit(
        np.array([stretched(one[None])[0] for one in digits.images[:held]]).reshape(held, 64) / 16, digits.target[:held]
    )
    topic = MultinomialNB(alpha=0.1).fit([pairs(coded(word)) for word in words], topics)
    # Digits in handwriting that no model was trained on.
    asked = strips_of(words, digits.images[held:], digits.target[held:], random)
    asked[::6] = faded(asked[::6], random)
    return quality, recognition, topic, asked.round(2)


def write(repository, strips_file):
    quality, recognition, topic, strips = train()
    shutil.copytree(pathlib.Path(__file__).parent / "models", repository, dirs_exist_ok=True)
    (repository / "reading" / "1").mkdir(exist_ok=True)
    save = lambda model, **weights: np.savez(repository / model / "1" / "weights.npz", **weights)
    save("quality", coefficients=quality.coef_[0], intercept=quality.intercept_[0])
    (w0, w1), (b0, b1) = recognition.coefs_, recognition.intercepts_
    save("recognition", w0=w0, b0=b0, w1=w1, b1=b1)
    save("topic", likelihoods=topic.feature_log_prob_, priors=topic.class_log_prior_)
    strips_file.write_text(json.dumps(strips.reshape(len(strips), -1).tolist()))


def answer(strips_file):
    quality, recognition, topic, _ = train()
    strips = np.array(json.loads(strips_file.read_text()), np.float32).reshape(-1, LENGTH, 8, 8)
    answers = []
    for strip in strips:
        if quality.predict([features(strip)])[0] == 0:
            answers.append({"topic": "unreadable", "scores": [0.0, 0.0, 0.0, 1.0]})
            continue
        digits = recognition.predict(stretched(strip).reshape(LENGTH, 64) / 16)
        scores = topic.predict_proba([pairs(digits)])[0].tolist()
        answers.append({"topic": TOPICS[int(np.argmax(scores))], "scores": [*scores, 0.0]})
    print(json.dumps(answers))


if __name__ == "__main__":
    {"write": write, "answer": answer}[sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))
