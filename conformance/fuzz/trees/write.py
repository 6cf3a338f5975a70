"""Writes the small model files that the target `tree-files` begins with: python write.py DIRECTORY, with the packages of environment `trees`,
and python write.py DIRECTORY binary, with those of `trees-before`, whose XGBoost still writes its binary form."""

import pathlib
import sys

import numpy
import xgboost

out = pathlib.Path(sys.argv[1])
random = numpy.random.default_rng(3)
rows = random.integers(0, 9, size=(120, 3)).astype(numpy.float32)
rows[random.random(rows.shape) < 0.1] = numpy.nan
values = numpy.nan_to_num(rows[:, 0]) - 2 * (numpy.nan_to_num(rows[:, 1]) == 3) + numpy.nan_to_num(rows[:, 2]) / 3
settings = {"max_depth": 3, "nthread": 1, "seed": 1}


def write_binary():
    dart = {**settings, "booster": "dart", "rate_drop": 0.5}
    xgboost.train(dart, xgboost.DMatrix(rows, values), 3).save_model(out / "dart.deprecated")
    (out / "dart.deprecated").rename(out / "dart.model")


def write_all():
    import lightgbm
    import sklearn.ensemble
    import treelite

    types = ["q", "c", "q"]
    booster = xgboost.train(
        {**settings, "max_cat_to_onehot": 1},
        xgboost.DMatrix(rows, values, feature_types=types, enable_categorical=True),
        3,
    )
    booster.save_model(out / "categories.json")
    booster.save_model(out / "categories.ubj")
    targets = numpy.stack([values, -values], 1)
    vectors = xgboost.train({**settings, "multi_strategy": "multi_output_tree"}, xgboost.DMatrix(rows, targets), 2)
    vectors.save_model(out / "vectors.json")
    vectors.save_model(out / "vectors.ubj")
    treelite.frontend.from_xgboost(booster).serialize(str(out / "categories.tl"))
    training = lightgbm.Dataset(rows.astype(numpy.float64), values, categorical_feature=[1])
    forest = {"num_leaves": 5, "min_data_in_leaf": 3, "min_data_per_group": 3, "cat_smooth": 1, "verbose": -1}
    lightgbm.train(forest, training, 3).save_model(out / "categories.txt")
    linear = {**forest, "linear_tree": True}
    lightgbm.train(linear, lightgbm.Dataset(numpy.nan_to_num(rows), values), 2).save_model(out / "linear.txt")
    classes = sklearn.ensemble.RandomForestClassifier(2, max_depth=3, random_state=1)
    classes.fit(numpy.nan_to_num(rows), (values > 2).astype(int) + (values > 5))
    treelite.sklearn.import_model(classes).serialize(str(out / "classes.tl"))


if __name__ == "__main__":
    write_binary() if sys.argv[2:] == ["binary"] else write_all()
