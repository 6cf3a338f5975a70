"""Writes conformance/vectors/xgboost-models.json: small models in all the forms that XGBoost saves and pickles, and what it predicts.

python xgboost_files.py NEW > half.json            with XGBoost 3.2.0, of the environment `trees`
python xgboost_files.py BEFORE half.json > all.json  with XGBoost 2.1.4, of `trees-before`, the last to write the binary form
"""

import base64
import json
import pickle
import sys

import numpy
import xgboost

IS_NEW = sys.argv[1] == "NEW"


def forms(booster, objective):
    if not IS_NEW:
        yield "binary", booster.save_raw("deprecated")
    else:
        yield "ubj", booster.save_raw("ubj")
    if objective not in ("binary:logistic", "multi:softprob"):
        return
    if IS_NEW:
        yield "json", booster.save_raw("json")
    for protocol in (2, 3, 4, 5) if IS_NEW else (4,):
        yield "pickle%d" % protocol, pickle.dumps(booster, protocol=protocol)


random = numpy.random.RandomState(5)
features = random.randn(200, 4).astype("float32")
features[random.rand(200, 4) < 0.1] = numpy.nan
known = numpy.nan_to_num(features)
two = (known[:, 0] + known[:, 2] > 0).astype(float)
three = numpy.digitize(known[:, 0], [-0.5, 0.5])
labels = {
    "reg:squarederror": known[:, 0] * 2 - known[:, 1],
    "binary:logistic": two,
    "binary:logitraw": two,
    "binary:hinge": two,
    "multi:softprob": three,
    "multi:softmax": three,
}
rows = features[:6]
models = []
LINEAR = ("reg:squarederror", "binary:logistic", "multi:softprob", "multi:softmax")
for objective, label, booster in [(*each, "gbtree") for each in labels.items()] + [
    (objective, labels[objective], "gblinear") for objective in LINEAR
]:
    if not IS_NEW and objective not in ("reg:squarederror", "binary:logistic", "multi:softprob"):
        continue
    parameters = {"objective": objective, "seed": 1}
    parameters |= (
        {"max_depth": 3} if booster == "gbtree" else {"booster": booster, "updater": "coord_descent", "nthread": 1}
    )
    if objective.startswith("multi"):
        parameters["num_class"] = 3
    trained = xgboost.train(parameters, xgboost.DMatrix(features, label=label), 4)
    models.append(
        {
            "objective": objective,
            "booster": booster,
            "version": xgboost.__version__,
            "predictions": trained.predict(xgboost.DMatrix(rows)).astype(float).tolist(),
            "files": {form: base64.b64encode(content).decode() for form, content in forms(trained, objective)},
        }
    )
if not IS_NEW:
    with open(sys.argv[2]) as half:
        models = json.load(half)["models"] + models
table = [[None if numpy.isnan(value) else float(value) for value in row] for row in rows]
json.dump({"rows": table, "models": models}, sys.stdout, indent=1)
