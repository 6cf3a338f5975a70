"""Trains the three models of a serial pipeline on scikit-learn's diabetes data, and writes the expected results of the chain.

python train.py sklearn DIRECTORY    a scaler and the weights of a linear model, with the framework's scikit-learn
python train.py xgboost DIRECTORY    trees over the linear model's scores, with XGBoost
"""

import json
import pathlib
import sys

import numpy

PHASE, DIRECTORY = sys.argv[1], pathlib.Path(sys.argv[2])


def with_sklearn():
    import joblib
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import StandardScaler

    features, target = load_diabetes(return_X_y=True, scaled=False)
    scaler = StandardScaler().fit(features)
    joblib.dump(scaler, DIRECTORY / "model.joblib")
    scaled = scaler.transform(features)
    linear = LinearRegression().fit(scaled, target)
    facts = {
        "rows": features[:20].tolist(),
        "weights": linear.coef_.tolist(),
        "bias": float(linear.intercept_),
        "scores": linear.predict(scaled).tolist(),
        "labels": (target > numpy.median(target)).astype(int).tolist(),
    }
    (DIRECTORY / "serial.json").write_text(json.dumps(facts))


def with_xgboost():
    import xgboost

    facts = json.loads((DIRECTORY / "serial.json").read_text())
    scores = numpy.array(facts["scores"]).reshape(-1, 1)
    # Thresholds equal scores of training rows, for which the last bit of a float would decide.
    asked = len(facts["rows"])
    seen = xgboost.DMatrix(scores[asked:], label=facts["labels"][asked:])
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 2, "seed": 1}, seen, 5)
    booster.save_model(DIRECTORY / "xgboost-model.json")
    probabilities = booster.predict(xgboost.DMatrix(scores[:asked]))
    facts["probabilities"] = [float(each) for each in probabilities]
    (DIRECTORY / "serial.json").write_text(json.dumps(facts))


{"sklearn": with_sklearn, "xgboost": with_xgboost}[PHASE]()
