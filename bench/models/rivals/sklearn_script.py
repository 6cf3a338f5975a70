"""A script for a scikit-learn model, as SageMaker's inference toolkit calls it: its defaults read and write JSON."""

import os

import joblib


def model_fn(model_dir):
    return joblib.load(os.path.join(model_dir, "model.joblib"))


def predict_fn(data, model):
    return model.predict(data)
