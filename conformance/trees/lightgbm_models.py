"""Writes LightGBM models in its text format."""

import lightgbm
import numpy
from cases import FEATURES, Case, classes, data, extremes, with_edges

ROUNDS = 20
COMMON = {"seed": 7, "num_threads": 1, "num_leaves": 15, "min_data_in_leaf": 5, "verbose": -1, "deterministic": True}


def thresholds(booster):
    found = []

    def walk(node):
        if "split_feature" not in node:
            return
        if node["decision_type"] == "<=":
            found.append((node["split_feature"], node["threshold"]))
        walk(node["left_child"])
        walk(node["right_child"])

    for tree in booster.dump_model()["tree_info"]:
        walk(tree["tree_structure"])
    return found


def write(
    out,
    name,
    settings,
    seed,
    *,
    target=lambda v: v,
    categories=0,
    missing=False,
    rounds=ROUNDS,
    answer=None,
    parameters=None,
    zeros=False,
    explain=False,
):
    rows, values = data(seed, missing=missing, categories=categories)
    if zeros:
        rows[numpy.random.default_rng(seed).random(rows.shape) < 0.2] = 0
    training = lightgbm.Dataset(
        rows.astype(numpy.float64),
        target(values),
        categorical_feature=[FEATURES - 1] if categories else [],
        free_raw_data=False,
    )
    booster = lightgbm.train({**COMMON, **settings}, training, rounds)
    rows, edges = with_edges(rows, thresholds(booster), 11)
    extra = extremes(FEATURES)
    if categories:
        # LightGBM truncates values that are not categories to integers, whose behaviour out of range is not documented.
        extra = extra[numpy.abs(numpy.nan_to_num(extra[:, -1])) < 1e9]
        between = numpy.repeat(rows[40:48], 2, axis=0)
        between[:, -1] = numpy.array([-0.5, 0.5, 1.5, 2.99, 39.5, 40, 63, 64, 65, 1000, 1e6, -1, -1.5, -7, 31.5, 32])
        extra = numpy.concatenate([extra, between])
    rows = numpy.concatenate([extra, rows])
    case = Case(out, name)
    booster.save_model(case.version / "model.txt")
    predictions = booster.predict(rows.astype(numpy.float64))
    contributions = None
    if explain:
        contributions = booster.predict(rows.astype(numpy.float64), pred_contrib=True)
        if predictions.ndim > 1:
            contributions = contributions.reshape(len(rows), predictions.shape[1], FEATURES + 1)
    answers = predictions if answer is None else answer(predictions)
    case.write("lightgbm", rows, answers, edges, contributions=contributions, **(parameters or {}))


def binary(values):
    return (values > numpy.median(values)).astype(int)


def positive(values):
    return numpy.exp(values / 3)


def write_all(out):
    write(out, "lgb_regression", {"objective": "regression"}, 21)
    write(out, "lgb_missing", {"objective": "regression"}, 22, missing=True)
    write(out, "lgb_no_missing", {"objective": "regression", "use_missing": False}, 23, missing=True)
    write(out, "lgb_zero_missing", {"objective": "regression", "zero_as_missing": True}, 24, missing=True, zeros=True)
    write(out, "lgb_zeros", {"objective": "regression"}, 24, zeros=True)
    write(out, "lgb_explained", {"objective": "binary"}, 66, target=binary, missing=True, explain=True)
    explained = {"objective": "multiclass", "num_class": 3}
    write(out, "lgb_explained_multi", explained, 67, target=lambda v: classes(v, 3), explain=True)
    write(out, "lgb_sqrt", {"objective": "regression", "reg_sqrt": True}, 25, target=lambda v: v * 5)
    write(out, "lgb_binary", {"objective": "binary", "sigmoid": 1.7}, 26, target=binary)
    classify = {"is_classifier": "true"}
    write(out, "lgb_class", {"objective": "binary"}, 26, target=binary, answer=lambda p: p > 0.5, parameters=classify)
    multi = {"objective": "multiclass", "num_class": 3}
    write(out, "lgb_multi", multi, 27, target=lambda v: classes(v, 3))
    best = lambda predictions: predictions.argmax(1)
    write(out, "lgb_class_multi", multi, 27, target=lambda v: classes(v, 3), answer=best, parameters=classify)
    write(out, "lgb_ova", {"objective": "multiclassova", "num_class": 3}, 28, target=lambda v: classes(v, 3))
    for objective in ("poisson", "gamma", "tweedie"):
        write(out, f"lgb_{objective}", {"objective": objective}, 29, target=positive)
    for objective in ("quantile", "huber", "mape"):
        write(out, f"lgb_{objective}", {"objective": objective}, 30)
    write(out, "lgb_xentropy", {"objective": "cross_entropy"}, 31, target=lambda v: 1 / (1 + numpy.exp(-v)))
    write(out, "lgb_xentlambda", {"objective": "cross_entropy_lambda"}, 31, target=lambda v: 1 / (1 + numpy.exp(-v)))
    write(out, "lgb_dart", {"objective": "regression", "boosting": "dart"}, 32)
    forest = {"objective": "regression", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    write(out, "lgb_forest", forest, 33)
    write(
        out, "lgb_categories", {"objective": "regression", "min_data_per_group": 5, "cat_smooth": 1}, 34, categories=40
    )
    write(
        out,
        "lgb_categories_missing",
        {"objective": "binary", "min_data_per_group": 5, "cat_smooth": 1},
        35,
        categories=70,
        missing=True,
        target=binary,
    )
    linear = {"objective": "regression", "linear_tree": True}
    write(out, "lgb_linear", linear, 70)
    write(out, "lgb_linear_missing", linear, 71, missing=True)
    write(out, "lgb_linear_categories", {**linear, "min_data_per_group": 5, "cat_smooth": 1}, 72, categories=40)
    write(out, "lgb_linear_multi", {**multi, "linear_tree": True}, 74, target=lambda v: classes(v, 3))
    write(out, "lgb_linear_leaves", {**linear, "min_gain_to_split": 1e9}, 75)
    write(out, "lgb_leaves", {"objective": "binary", "min_gain_to_split": 1e9}, 36, target=binary)
    write(
        out, "lgb_large", {"objective": "regression", "num_leaves": 63}, 37, target=lambda v: v * 1e5 + 1e6, rounds=100
    )
