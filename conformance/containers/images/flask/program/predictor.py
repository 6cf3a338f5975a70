"""A linear model over CSV rows; the model's file has its weights and its intercept."""

import json

from flask import Flask, Response, request

app = Flask(__name__)


def model():
    with open("/opt/ml/model/weights.json") as file:
        return json.load(file)


@app.route("/ping")
def ping():
    return Response(status=200 if model() else 404)


@app.route("/invocations", methods=["POST"])
def invocations():
    if request.content_type != "text/csv":
        return Response("this model reads text/csv only\n", status=415, mimetype="text/plain")
    learned = model()
    rows = [[float(cell) for cell in line.split(",")] for line in request.get_data(as_text=True).split()]
    print("predicting %d rows" % len(rows))
    scores = [learned["intercept"] + sum(w * x for w, x in zip(learned["weights"], row)) for row in rows]
    return Response("".join("%g\n" % score for score in scores), mimetype="text/csv")
