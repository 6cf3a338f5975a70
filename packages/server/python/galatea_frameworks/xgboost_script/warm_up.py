"""Imported by the zygote before workers are forked: modules that nearly all XGBoost models need."""

from __future__ import annotations

import os
import pickle
import tempfile

import joblib  # noqa: F401
import numpy as np
import pandas as pd
import xgboost

from galatea_frameworks.toolkit import warm_up  # noqa: F401

from . import handler


def _warm_up() -> None:
    """Trains, saves, loads and calls small models in the calling thread, so that no thread of XGBoost exists when workers are forked."""
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    labels = np.array([0, 1, 1, 0])
    one_thread = {"nthread": 1, "objective": "binary:logistic", "tree_method": "hist", "max_depth": 2}
    booster = xgboost.train(one_thread, xgboost.DMatrix(rows, labels, nthread=1), 2)
    booster.predict(xgboost.DMatrix(pd.DataFrame(rows), nthread=1))
    pickle.loads(pickle.dumps(booster)).inplace_predict(rows)
    with tempfile.TemporaryDirectory() as directory:
        for name in ("model.json", "model.ubj"):
            path = os.path.join(directory, name)
            booster.save_model(path)
            loaded = xgboost.Booster({"nthread": 1}, model_file=path)
            defaults = handler.XGBoostHandler()
            for body, content_type in (("0,1\n1,0", "text/csv"), ("0:1\n1:2", "text/libsvm")):
                predicted = defaults.default_predict_fn(defaults.default_input_fn(body, content_type), loaded)
                defaults.default_output_fn(predicted, "text/csv")
        classifier = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1, tree_method="hist")
        classifier.fit(rows, labels).predict(rows)


_warm_up()
