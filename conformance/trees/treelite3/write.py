"""Writes checkpoints with treelite 3.9.1, which needs its own Python environment, and the same trees in another format:

python write.py OUT               (with lightgbm: the models)
python write.py OUT xgboost       (with xgboost 2.1: one more)
python write.py OUT checkpoints   (with treelite 3.9.1: of the models)
python write.py OUT forest        (with treelite 4 and scikit-learn: a forest, whose other form is treelite 4's)
"""

import pathlib
import pickle
import sys

import numpy

out = pathlib.Path(sys.argv[1])
step = sys.argv[2] if len(sys.argv) > 2 else "models"
random = numpy.random.default_rng(3)
rows = random.integers(0, 9, size=(120, 3)).astype(numpy.float32)
values = rows[:, 0] - 2 * (rows[:, 1] == 3) + rows[:, 2] / 3
classes = (values > 2).astype(int) + (values > 5)


def write_models():
    import lightgbm

    settings = {"num_leaves": 5, "min_data_in_leaf": 3, "min_data_per_group": 3, "cat_smooth": 1, "verbose": -1}
    training = lightgbm.Dataset(rows.astype(numpy.float64), values, categorical_feature=[1])
    lightgbm.train(settings, training, 3).save_model(out / "categories.txt")
    multi = {**settings, "objective": "multiclass", "num_class": 3}
    lightgbm.train(multi, lightgbm.Dataset(rows.astype(numpy.float64), classes), 2).save_model(out / "multi.txt")


def write_xgboost():
    import xgboost

    settings = {"max_depth": 3, "nthread": 1, "objective": "binary:logistic", "base_score": 0.3}
    missing = numpy.where(random.random(rows.shape) < 0.1, numpy.nan, rows)
    xgboost.train(settings, xgboost.DMatrix(missing, values > 2), 3).save_model(out / "logistic.json")


def write_forest():
    import sklearn.ensemble
    import treelite

    forest = sklearn.ensemble.RandomForestClassifier(3, max_depth=3, random_state=1).fit(rows, classes)
    (out / "forest.pickle").write_bytes(pickle.dumps(forest))
    treelite.sklearn.import_model(forest).serialize(str(out / "forest-4.tl"))


def write_checkpoints():
    import treelite

    # treelite 3.9 requests a copy with the semantics of NumPy 1.
    make = numpy.array
    numpy.array = lambda values, copy=True, **more: make(values, **more)
    load = treelite.Model.load
    load(str(out / "categories.txt"), model_format="lightgbm").serialize(str(out / "categories.tl"))
    load(str(out / "multi.txt"), model_format="lightgbm").serialize(str(out / "multi.tl"))
    load(str(out / "logistic.json"), model_format="xgboost_json").serialize(str(out / "logistic.tl"))
    forest = pickle.loads((out / "forest.pickle").read_bytes())
    treelite.sklearn.import_model(forest).serialize(str(out / "forest.tl"))


if __name__ == "__main__":
    {
        "models": write_models,
        "xgboost": write_xgboost,
        "forest": write_forest,
        "checkpoints": write_checkpoints,
    }[step]()
