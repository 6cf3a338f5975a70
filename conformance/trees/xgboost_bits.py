"""Writes XGBoost models with many trees, 10,000 rows and the library's predictions: python xgboost_bits.py DIRECTORY."""

import json
import pathlib
import sys

import numpy
import xgboost

ROWS = 10_000
FEATURES = 12
ROUNDS = 60
COMMON = {"seed": 3, "nthread": 2, "max_depth": 6, "tree_method": "hist"}


def models(target):
    levels = numpy.digitize(target, [-1, 0, 1, 2])
    targets = numpy.stack([target, -target, target * 2], 1)
    return {
        "squared_error": ({"objective": "reg:squarederror"}, target),
        "logistic": ({"objective": "binary:logistic"}, target > 1),
        "softprob": ({"objective": "multi:softprob", "num_class": 5}, levels),
        "dart": ({"objective": "reg:squarederror", "booster": "dart", "rate_drop": 0.2}, target),
        "poisson": ({"objective": "count:poisson"}, numpy.round(numpy.exp(numpy.clip(target, -3, 3) / 2))),
        "vectors": ({"objective": "reg:squarederror", "multi_strategy": "multi_output_tree"}, targets),
    }


def main(directory):
    random = numpy.random.default_rng(5)
    rows = random.normal(size=(ROWS, FEATURES)).astype(numpy.float32)
    target = rows[:, 0] * 2 + rows[:, 1] ** 2 + numpy.sin(3 * rows[:, 2]) + random.normal(size=ROWS) / 3
    rows[random.random(rows.shape) < 0.05] = numpy.nan
    rows.astype("<f4").tofile(directory / "rows")
    columns = {}
    for name, (settings, labels) in models(target).items():
        booster = xgboost.train({**COMMON, **settings}, xgboost.DMatrix(rows, labels.astype(numpy.float32)), ROUNDS)
        predicted = booster.predict(xgboost.DMatrix(rows))
        columns[name] = 1 if predicted.ndim == 1 else predicted.shape[1]
        version = directory / "repository" / name / "1"
        version.mkdir(parents=True)
        booster.save_model(version / "xgboost.ubj")
        predicted.astype("<f4").tofile(directory / ("%s.predicted" % name))
        (version.parent / "config.pbtxt").write_text(
            'backend: "fil"\nmax_batch_size: %d\n' % ROWS
            + 'input { name: "input__0" data_type: TYPE_FP32 dims: [ %d ] }\n' % FEATURES
            + 'output { name: "output__0" data_type: TYPE_FP32 dims: [ %d ] }\n' % columns[name]
            + "instance_group { kind: KIND_CPU }\n"
            + 'parameters { key: "model_type" value: { string_value: "xgboost_ubj" } }\n'
            + 'parameters { key: "is_classifier" value: { string_value: "false" } }\n'
        )
    print(json.dumps({"features": FEATURES, "columns": columns}))


main(pathlib.Path(sys.argv[1]))
