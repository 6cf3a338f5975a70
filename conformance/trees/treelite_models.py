"""Writes scikit-learn's forests as treelite checkpoints, and models of the other libraries through treelite."""

import lightgbm
import numpy
import sklearn.ensemble
import treelite
import xgboost
from cases import FEATURES, Case, classes, data, extremes, with_edges

COMMON = {"random_state": 7}


def thresholds(estimator):
    found = []
    for part in numpy.ravel(getattr(estimator, "estimators_", [])):
        tree = part.tree_
        found += [(f, t) for f, t, left in zip(tree.feature, tree.threshold, tree.children_left) if left != -1]
    return found


def write(out, name, estimator, seed, *, target=lambda v: v, predict, parameters=None, missing=False, infinite=True):
    rows, values = data(seed, missing=missing)
    estimator.fit(rows, target(values))
    rows, edges = with_edges(rows, thresholds(estimator), 11)
    extra = extremes(FEATURES)
    # scikit-learn rejects infinity, and missing values that the training data did not have.
    extra = extra[numpy.isfinite(extra).all(1)]
    rows = numpy.concatenate([extra, rows])
    case = Case(out, name)
    treelite.sklearn.import_model(estimator).serialize(str(case.version / "checkpoint.tl"))
    case.write("treelite_checkpoint", rows, predict(estimator, rows), edges, **(parameters or {}))


def binary(values):
    return (values > numpy.median(values)).astype(int)


def positive_class(estimator, rows):
    return estimator.predict_proba(rows)[:, 1]


def write_all(out):
    e = sklearn.ensemble
    value = lambda estimator, rows: estimator.predict(rows)
    proba = lambda estimator, rows: estimator.predict_proba(rows)
    three = lambda v: classes(v, 3)
    classify = {"is_classifier": "true"}
    probabilities = {**classify, "predict_proba": "true"}
    write(out, "sk_forest", e.RandomForestRegressor(20, **COMMON), 41, predict=value)
    write(
        out,
        "sk_forest_binary",
        e.RandomForestClassifier(20, **COMMON),
        42,
        target=binary,
        predict=value,
        parameters=classify,
    )
    write(
        out,
        "sk_forest_both",
        e.RandomForestClassifier(20, **COMMON),
        42,
        target=binary,
        predict=proba,
        parameters=probabilities,
    )
    write(
        out,
        "sk_forest_multi",
        e.RandomForestClassifier(20, **COMMON),
        43,
        target=three,
        predict=proba,
        parameters=probabilities,
    )
    write(
        out,
        "sk_forest_class",
        e.RandomForestClassifier(20, **COMMON),
        43,
        target=three,
        predict=value,
        parameters=classify,
    )
    write(out, "sk_extra", e.ExtraTreesRegressor(20, **COMMON), 44, predict=value)
    write(out, "sk_extra_multi", e.ExtraTreesClassifier(20, **COMMON), 45, target=three, predict=proba)
    write(out, "sk_boosting", e.GradientBoostingRegressor(n_estimators=30, **COMMON), 46, predict=value)
    write(
        out,
        "sk_boosting_binary",
        e.GradientBoostingClassifier(n_estimators=30, **COMMON),
        47,
        target=binary,
        predict=positive_class,
    )
    write(
        out,
        "sk_boosting_multi",
        e.GradientBoostingClassifier(n_estimators=15, **COMMON),
        48,
        target=three,
        predict=proba,
        parameters=probabilities,
    )
    write(out, "sk_hist", e.HistGradientBoostingRegressor(max_iter=20, **COMMON), 49, missing=True, predict=value)
    write(
        out, "sk_hist_multi", e.HistGradientBoostingClassifier(max_iter=10, **COMMON), 50, target=three, predict=proba
    )
    write(
        out,
        "sk_isolation",
        e.IsolationForest(n_estimators=20, **COMMON),
        51,
        predict=lambda estimator, rows: -estimator.score_samples(rows),
    )
    write(
        out,
        "sk_targets",
        e.RandomForestRegressor(10, **COMMON),
        52,
        target=lambda v: numpy.stack([v, -v, v * v], 1),
        predict=value,
    )
    categories(out)
    explained(out)


def explained(out):
    """Tests contributions through treelite, compared with those of XGBoost and LightGBM for the same trees."""
    rows, values = data(54, missing=True)
    booster = xgboost.train({"max_depth": 4, "nthread": 1}, xgboost.DMatrix(rows, values), 20)
    case = Case(out, "tl_explained_xgboost")
    treelite.frontend.from_xgboost(booster).serialize(str(case.version / "checkpoint.tl"))
    matrix = xgboost.DMatrix(rows)
    contributions = booster.predict(matrix, pred_contribs=True)
    case.write("treelite_checkpoint", rows, booster.predict(matrix), contributions=contributions)
    rows, values = data(55)
    settings = {"num_leaves": 15, "verbose": -1, "num_threads": 1, "seed": 7}
    booster = lightgbm.train(settings, lightgbm.Dataset(rows.astype(numpy.float64), values), 20)
    case = Case(out, "tl_explained_lightgbm")
    treelite.frontend.from_lightgbm(booster).serialize(str(case.version / "checkpoint.tl"))
    doubles = rows.astype(numpy.float64)
    contributions = booster.predict(doubles, pred_contrib=True)
    case.write("treelite_checkpoint", rows, booster.predict(doubles), contributions=contributions)


def categories(out):
    """Tests XGBoost's categories in treelite's format."""
    rows, values = data(53, categories=40, missing=True)
    types = ["q"] * (FEATURES - 1) + ["c"]
    matrix = lambda rows, target=None: xgboost.DMatrix(rows, target, feature_types=types, enable_categorical=True)
    booster = xgboost.train(
        {"max_depth": 4, "nthread": 1, "max_cat_to_onehot": 3, "base_score": 0.5}, matrix(rows, values), 20
    )
    case = Case(out, "tl_categories")
    model = treelite.frontend.from_xgboost(booster)
    model.serialize(str(case.version / "checkpoint.tl"))
    case.write("treelite_checkpoint", rows, booster.predict(matrix(rows)))
