"""Records the responses of SageMaker's XGBoost container in script mode: `record_xgboost.py >conformance/vectors/xgboost-scripts.json`.

Runs where `sagemaker_xgboost_container` (github.com/aws/sagemaker-xgboost-container, as of 2026-06: images 3.0-5), sagemaker-containers 2.8.6,
sagemaker-inference and xgboost 3.0.5 are importable. The test of the same name plays the requests again, and needs none of these.
"""

import base64
import io
import json
import os
import struct
import sys
import tempfile

import numpy as np
import xgboost
from real_toolkit import run
from sagemaker_containers import _recordio
from sagemaker_xgboost_container.handler_service import HandlerService
from scipy.sparse import csr_matrix

LOADING = """
import os
import xgboost

def model_fn(model_dir):
    return xgboost.Booster(model_file=os.path.join(model_dir, "model.json"))
"""
SHOWING = """
import json

def model_fn(model_dir):
    return None

def predict_fn(data, model):
    cells = data.get_data()
    shown = [cells.indptr, cells.indices, cells.data, data.get_label()]
    return json.dumps([[data.num_row(), data.num_col()], *(each.tolist() for each in shown)])

def output_fn(prediction, accept):
    return prediction
"""
JSON, CSV, LIBSVM, RECORDIO = "application/json", "text/csv", "text/libsvm", "application/x-recordio-protobuf"


def dense(array, labels=None):
    file = io.BytesIO()
    _recordio._write_numpy_to_dense_tensor(file, array, labels)
    return file.getvalue()


def sparse(array, labels=None):
    file = io.BytesIO()
    _recordio._write_spmatrix_to_sparse_tensor(file, csr_matrix(array), labels)
    return file.getvalue()


ROWS = np.array([[0.5, 1.5, -2.0], [1.0, 0.0, 3.25]])
BODIES = [
    ("1,2,3\n4,5,6", CSV),
    ("1,2,3\r\n4,5,6", CSV),
    ("1,,3\n,5,", CSV),
    ("1;2;3", CSV),
    ("1\t2\t3", CSV),
    ("1 2 3\n4 5 6", CSV),
    ("1|2|3", CSV),
    ("1,2,3\n", CSV),
    ("\n1,2,3", CSV),
    ("5", CSV),
    ("1,2\n3", CSV),
    ("1,x", CSV),
    ("1e3,nan,-inf", CSV),
    ("", CSV),
    ("0:1.5 2:2", LIBSVM),
    ("1:1.5 3:2", LIBSVM),
    ("1 1:1.5 3:2\n0 2:7\n", LIBSVM),
    ("1 1:1.5 3:2\n\n0 2:7", "text/x-libsvm; charset=utf-8"),
    ("", LIBSVM),
    ("1 2", LIBSVM),
    ("1:x", LIBSVM),
    ("a:1", LIBSVM),
    (dense(ROWS.astype(np.float32)), RECORDIO),
    (dense(ROWS), RECORDIO),
    (dense(ROWS.astype(int)), RECORDIO),
    (dense(ROWS, np.array([1.0, 0.0])), RECORDIO),
    (sparse(ROWS), RECORDIO),
    (sparse(ROWS.astype(np.float32), np.array([1.0, 2.0])), RECORDIO),
    (b"", RECORDIO),
    (dense(ROWS)[:-4], RECORDIO),
    (struct.pack("<II", 1, 2) + b"xx", RECORDIO),
    ("[1]", JSON),
    ("PAR1", "application/x-parquet"),
    ("x", "csv"),
]


def model():
    rows = np.random.default_rng(7).normal(size=(200, 3))
    target = rows[:, 0] - rows[:, 1] * rows[:, 2]
    settings = {"max_depth": 3, "nthread": 1, "seed": 1, "tree_method": "hist"}
    booster = xgboost.train(settings, xgboost.DMatrix(rows, target), 4)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "model.json")
        booster.save_model(path)
        with open(path, "rb") as file:
            return file.read()


def asked(body, content_type, accept=None):
    headers = {"Content-Type": content_type, **({} if accept is None else {"Accept": accept})}
    data = body.encode() if isinstance(body, str) else body
    return {"body": base64.b64encode(data).decode(), "headers": headers}


def main():
    rows = "0.5,1.5,-2\n1,,3.25"
    accepts = (None, "*/*", JSON, CSV, "application/x-npy", "application/x-npz", "text/csv, application/json", "x/y")
    scripts = [
        {
            "name": "the default functions predict with a Booster",
            "files": {"code/inference.py": LOADING.encode(), "model.json": model()},
            "requests": [asked(rows, CSV, accept) for accept in accepts]
            + [asked("1,2", CSV), asked("1,2,3,4", CSV), asked("1:0.5 3:2", LIBSVM, CSV), asked(dense(ROWS), RECORDIO)],
        },
        {
            "name": "the matrix of a body",
            "files": {"code/inference.py": SHOWING.encode()},
            "requests": [asked(*body) for body in BODIES],
        },
        {"name": "no model_fn", "files": {"code/inference.py": b"def predict_fn(d, m): pass\n"}, "requests": []},
    ]
    recorded = []
    for script in scripts:
        answers = run(script, HandlerService.DefaultXGBoostUserModuleInferenceHandler())
        files = {name: base64.b64encode(text).decode() for name, text in script["files"].items()}
        recorded.append({**script, "files": files, **answers})
    json.dump(recorded, sys.stdout, indent=1)


main()
