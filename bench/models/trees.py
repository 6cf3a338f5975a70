"""Tree models and their libraries in a bare loop.

python trees.py train DIRECTORY          writes <library>/config.pbtxt and <library>/1/<file> for each
python trees.py loop DIRECTORY LIBRARY ROWS SECONDS          prints predictions (calls) a second
"""

import pathlib
import pickle
import sys
import time

import lightgbm
import numpy
import sklearn.ensemble
import treelite
import xgboost

FEATURES = 32
TREES = 500

CONFIG = """backend: "fil"
max_batch_size: 10000
input { name: "input__0" data_type: TYPE_FP32 dims: [ 32 ] }
output { name: "output__0" data_type: TYPE_FP32 dims: [ 1 ] }
instance_group { count: 2 kind: KIND_CPU }
dynamic_batching { }
parameters { key: "model_type" value: { string_value: "KIND" } }
parameters { key: "is_classifier" value: { string_value: "false" } }
"""


def data(rows):
    random = numpy.random.default_rng(5)
    features = random.normal(size=(rows, FEATURES)).astype(numpy.float32)
    return features, (features[:, 0] * features[:, 1] + numpy.sin(features[:, 2] * 3) > 0).astype(int)


def train(directory):
    rows, target = data(2000)
    for library, kind in (("xgboost", "xgboost_ubj"), ("lightgbm", "lightgbm"), ("sklearn", "treelite_checkpoint")):
        (directory / library / "1").mkdir(parents=True)
        (directory / library / "config.pbtxt").write_text(CONFIG.replace('"KIND"', f'"{kind}"'))
    settings = {"objective": "binary:logistic", "max_depth": 6, "seed": 1}
    xgboost.train(settings, xgboost.DMatrix(rows, target), TREES).save_model(directory / "xgboost/1/xgboost.ubj")
    settings = {"objective": "binary", "num_leaves": 31, "seed": 1, "verbose": -1}
    lightgbm.train(settings, lightgbm.Dataset(rows, target), TREES).save_model(directory / "lightgbm/1/model.txt")
    forest = sklearn.ensemble.RandomForestRegressor(100, random_state=1, n_jobs=-1).fit(rows, target)
    treelite.sklearn.import_model(forest).serialize(str(directory / "sklearn/1/checkpoint.tl"))
    (directory / "sklearn/forest.pickle").write_bytes(pickle.dumps(forest))


def predictor(directory, library):
    if library == "xgboost":
        return xgboost.Booster(model_file=str(directory / "xgboost/1/xgboost.ubj")).inplace_predict
    if library == "lightgbm":
        return lightgbm.Booster(model_file=str(directory / "lightgbm/1/model.txt")).predict
    return pickle.loads((directory / "sklearn/forest.pickle").read_bytes()).predict


def loop(directory, library, count, seconds):
    predict = predictor(directory, library)
    rows, _ = data(count)
    for _ in range(3):
        predict(rows)
    calls = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        predict(rows)
        calls += 1
    print(calls / (time.perf_counter() - start))


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(pathlib.Path(sys.argv[2]))
    else:
        loop(pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
