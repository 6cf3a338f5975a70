"""Imported by the zygote before workers are forked: modules that nearly all scikit-learn models need."""

from __future__ import annotations

import io

import joblib
import numpy as np
import sklearn.ensemble
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing

from galatea_frameworks.toolkit import warm_up  # noqa: F401

from . import handler, legacy_joblib  # noqa: F401


def _warm_up() -> None:
    """Saves, loads and calls a small model in the calling thread."""
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    labels = np.array([0, 1, 1, 0])
    parts = [("scale", sklearn.preprocessing.StandardScaler()), ("fit", sklearn.linear_model.LogisticRegression())]
    for model in (sklearn.pipeline.Pipeline(parts), sklearn.ensemble.RandomForestClassifier(2, n_jobs=1)):
        model.fit(rows, labels)
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        joblib.load(file).predict(rows)


_warm_up()
