"""Classifies photographs on a server with tritonclient: pip install "tritonclient[http]" pillow scikit-learn

python classify.py HOST:PORT [PICTURE...] [--save DIRECTORY]

Without pictures it uses scikit-learn's two photographs, as one batch. `--save` stores the request and the response.
"""

import os
import sys

import numpy as np
import tritonclient.http as triton
from PIL import Image

MODEL = "resnet"
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
SIDE = 224


def pixels(path):
    """Returns [3, 224, 224]: the center of the picture after scaling its shorter side to 256, normalized like ImageNet."""
    picture = Image.open(path).convert("RGB")
    scale = 256 / min(picture.size)
    picture = picture.resize([round(side * scale) for side in picture.size], Image.Resampling.BILINEAR)
    left, top = ((side - SIDE) // 2 for side in picture.size)
    picture = picture.crop((left, top, left + SIDE, top + SIDE))
    values = (np.asarray(picture, np.float32) / 255 - MEAN) / DEVIATION
    return np.ascontiguousarray(values.transpose(2, 0, 1))


def photographs():
    """Returns the directory of scikit-learn's photographs without importing scikit-learn."""
    from importlib.util import find_spec

    images = os.path.join(os.path.dirname(find_spec("sklearn").origin), "datasets", "images")
    return [os.path.join(images, name) for name in ("china.jpg", "flower.jpg")]


def main(arguments):
    saved = None
    if "--save" in arguments:
        at = arguments.index("--save")
        saved = arguments[at + 1]
        del arguments[at : at + 2]
    server, *paths = arguments
    paths = paths or photographs()
    batch = np.stack([pixels(path) for path in paths])
    client = triton.InferenceServerClient(server)
    given = triton.InferInput("INPUT__0", list(batch.shape), "FP32")
    given.set_data_from_numpy(batch)
    answers = client.infer(MODEL, [given]).as_numpy("OUTPUT__0")
    for path, scores in zip(paths, answers):
        best = np.argsort(scores)[::-1][:3]
        print("%s: %s" % (os.path.basename(path), ", ".join("class %d (%.2f)" % (each, scores[each]) for each in best)))
    if saved is not None:
        batch.tofile(os.path.join(saved, "sent.f32"))
        answers.tofile(os.path.join(saved, "answered.f32"))


if __name__ == "__main__":
    main(sys.argv[1:])
