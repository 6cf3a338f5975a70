"""Models of XGBoost: objectives, boosters, base scores, categories, missing values, three file formats."""

import json

import numpy
import xgboost
from cases import FEATURES, Case, classes, data, extremes, with_edges

ROUNDS = 20
COMMON = {"seed": 7, "nthread": 1, "max_depth": 4, "tree_method": "hist"}
JSON = ("xgboost_json", "xgboost.json")
UBJ = ("xgboost_ubj", "xgboost.ubj")
BINARY = ("xgboost", "xgboost.model")


def thresholds(booster):
    trees = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    trees = trees.get("gbtree", trees)["model"]["trees"]
    return [
        (feature, threshold)
        for tree in trees
        for feature, threshold, left, kind in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], tree["split_type"]
        )
        if left != -1 and kind == 0
    ]


def predicted(booster, rows, types, **how):
    return booster.predict(matrix(rows, None, types), **how)


def matrix(rows, target, types):
    return xgboost.DMatrix(rows, target, feature_types=types, enable_categorical=types is not None)


def train(settings, seed, *, target=lambda values: values, rounds=ROUNDS, categories=0, missing=False):
    rows, values = data(seed, missing=missing, categories=categories)
    types = ["q"] * (FEATURES - 1) + ["c"] if categories else None
    booster = xgboost.train({**COMMON, **settings}, matrix(rows, target(values), types), rounds)
    return booster, rows, types


def write(out, name, kind, trained, *, answer=None, parameters=None, extreme=True, explain=False):
    """Writes a booster and its predictions; `answer` computes the expected response from the predictions."""
    booster, rows, types = trained
    rows, edges = with_edges(rows, thresholds(booster), 11)
    if extreme and types is None:
        # XGBoost rejects infinity.
        extra = extremes(FEATURES)
        rows = numpy.concatenate([extra[~numpy.isinf(extra).any(1)], rows])
    case = Case(out, name)
    booster.save_model(case.version / kind[1]) if kind is not BINARY else write_binary(booster, case.version / kind[1])
    predictions = predicted(booster, rows, types)
    case.write(
        kind[0],
        rows,
        predictions if answer is None else answer(booster, rows, types),
        edges,
        contributions=predicted(booster, rows, types, pred_contribs=True) if explain else None,
        **(parameters or {}),
    )


def write_binary(booster, path):
    booster.save_model(path.with_suffix(".deprecated"))
    path.with_suffix(".deprecated").rename(path)


def binary(values):
    return (values > numpy.median(values)).astype(int)


def positive(values):
    return numpy.exp(values / 3)


def write_all(out):
    for kind, suffix in ((JSON, "json"), (UBJ, "ubj")):
        write(out, f"xgb_squared_{suffix}", kind, train({}, 1))
        write(out, f"xgb_missing_{suffix}", kind, train({"base_score": 3.25}, 2, missing=True))
        write(
            out,
            f"xgb_multi_{suffix}",
            kind,
            train({"objective": "multi:softprob", "num_class": 4}, 3, target=lambda v: classes(v, 4)),
        )
        dart = {"booster": "dart", "rate_drop": 0.3, "objective": "binary:logistic", "base_score": 0.3}
        write(out, f"xgb_dart_{suffix}", kind, train(dart, 4, target=binary))
        write(out, f"xgb_categories_{suffix}", kind, train({"max_cat_to_onehot": 3}, 5, categories=40, missing=True))
    logistic = {"objective": "binary:logistic"}
    both = lambda booster, rows, types: numpy.stack([1 - (p := predicted(booster, rows, types)), p], 1)
    above = lambda booster, rows, types: (predicted(booster, rows, types) > 0.3).astype(float)
    classify = {"is_classifier": "true"}
    write(
        out,
        "xgb_proba_both",
        JSON,
        train(logistic, 6, target=binary),
        answer=both,
        parameters={**classify, "predict_proba": "true"},
    )
    write(
        out, "xgb_proba_one", JSON, train(logistic, 6, target=binary), parameters={**classify, "predict_proba": "true"}
    )
    write(
        out,
        "xgb_class",
        JSON,
        train(logistic, 6, target=binary),
        answer=above,
        parameters={**classify, "threshold": "0.3"},
    )
    softmax = {"objective": "multi:softmax", "num_class": 3}
    write(out, "xgb_class_multi", JSON, train(softmax, 7, target=lambda v: classes(v, 3)), parameters=classify)
    write(out, "xgb_logitraw", JSON, train({"objective": "binary:logitraw", "base_score": 0.2}, 8, target=binary))
    write(out, "xgb_hinge", JSON, train({"objective": "binary:hinge"}, 9, target=binary))
    for objective in ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox"):
        name = objective.split(":")[1]
        write(
            out, f"xgb_{name}", UBJ, train({"objective": objective}, 10, target=lambda v: numpy.round(positive(v)) + 1)
        )
    write(out, "xgb_absolute", JSON, train({"objective": "reg:absoluteerror"}, 11))
    quantiles = {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}
    write(out, "xgb_quantiles", JSON, train(quantiles, 12))
    many = lambda values: numpy.stack([values, -values * 2, values**2], 1)
    write(out, "xgb_targets", JSON, train({}, 13, target=many))
    write(out, "xgb_vectors", JSON, train({"multi_strategy": "multi_output_tree"}, 13, target=many))
    write(out, "xgb_explained", JSON, train({}, 61, missing=True), explain=True)
    write(out, "xgb_explained_binary", UBJ, train({**logistic, "max_depth": 8}, 62, target=binary), explain=True)
    explained = train({"objective": "multi:softprob", "num_class": 3}, 63, target=lambda v: classes(v, 3))
    write(out, "xgb_explained_multi", UBJ, explained, explain=True)
    write(out, "xgb_explained_dart", JSON, train({"booster": "dart", "rate_drop": 0.3}, 64), explain=True)
    forest = {"num_parallel_tree": 30, "learning_rate": 1, "subsample": 0.7, "colsample_bynode": 0.7, "max_depth": 8}
    write(out, "xgb_forest", UBJ, train(forest, 14, rounds=1))
    write(out, "xgb_rank", JSON, rank())
    # No split is good enough: every tree has one leaf.
    write(out, "xgb_leaves", JSON, train({"gamma": 1e9, **logistic, "base_score": 0.1}, 15, target=binary))
    write(out, "xgb_some_leaves", JSON, train({"gamma": 20.0}, 16))


def rank():
    rows, values = data(17)
    training = xgboost.DMatrix(rows, numpy.clip(numpy.round(values + 2), 0, 4))
    training.set_group([20] * (len(rows) // 20))
    return xgboost.train({**COMMON, "objective": "rank:ndcg"}, training, ROUNDS), rows, None


def write_before(out):
    write(out, "xgb_binary_squared", BINARY, train({"base_score": 1.5}, 1, missing=True))
    write(
        out, "xgb_binary_logistic", BINARY, train({"objective": "binary:logistic", "base_score": 0.7}, 2, target=binary)
    )
    multi = {"objective": "multi:softprob", "num_class": 3}
    write(out, "xgb_binary_multi", BINARY, train(multi, 3, target=lambda v: classes(v, 3)))
    dart = {"booster": "dart", "rate_drop": 0.3}
    write(out, "xgb_binary_dart", BINARY, train(dart, 4))
    write(out, "xgb_binary_explained", BINARY, train({}, 65), explain=True)
    write(out, "xgb_2_1_json", JSON, train({"objective": "reg:gamma"}, 5, target=positive))
