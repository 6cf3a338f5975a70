"""write_rivals.py sklearn|torch DIRECTORY COUNT PACKAGES: the same models in the format of each server, in a
directory for each.
"""

import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "rivals")

TRITON = """backend: "python"
input { name: "ROWS" data_type: TYPE_FP64 dims: [ -1, 4 ] }
output { name: "LABELS" data_type: TYPE_INT64 dims: [ -1 ] }
instance_group { count: 2 kind: KIND_CPU }
parameters { key: "PACKAGES" value { string_value: "%s" } }
"""


def put(directory, files):
    """`files` maps a path below the directory to the path of a source file or to a text."""
    for name, content in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isfile(content):
            shutil.copy(content, path)
        else:
            with open(path, "w") as file:
                file.write(content)


def sklearn(root, count, packages):
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = os.path.join(root, "model.joblib")
    joblib.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(*load_iris(return_X_y=True)), model)
    script = os.path.join(PROGRAMS, "sklearn_script.py")
    for index in range(count):
        name = "sk%d" % index
        settings = {
            "name": name,
            "implementation": "mlserver_sklearn.SKLearnModel",
            "parameters": {"uri": "./model.joblib"},
        }
        put(
            root,
            {
                "galatea/models/%s/model/model.joblib" % name: model,
                "galatea/models/%s/model/code/inference.py" % name: script,
                "mms/%s/model.joblib" % name: model,
                "mms/%s/inference.py" % name: script,
                "mlserver/%s/model.joblib" % name: model,
                "mlserver/%s/model-settings.json" % name: json.dumps(settings),
                "triton/%s/config.pbtxt" % name: TRITON % packages,
                "triton/%s/1/model.joblib" % name: model,
                "triton/%s/1/model.py" % name: os.path.join(PROGRAMS, "sklearn_triton.py"),
            },
        )


def torch(root, count, packages):
    import torch
    from torch import nn

    sys.path.insert(0, os.path.join(HERE, "..", "..", "examples", "resnet50"))
    from resnet50 import ResNet50

    torch.manual_seed(1)
    small = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8)).eval()
    files = {kind: os.path.join(root, kind + ".pt") for kind in ("small", "resnet")}
    with torch.no_grad():
        torch.jit.save(torch.jit.script(small), files["small"])
        torch.jit.save(torch.jit.trace(ResNet50().eval(), torch.zeros(1, 3, 64, 64)), files["resnet"])
    script = os.path.join(PROGRAMS, "torch_script.py")
    for name in ["mlp%d" % index for index in range(count)] + ["resnet"]:
        file = files["resnet" if name == "resnet" else "small"]
        manifest = {"modelName": name, "serializedFile": "model.pt", "handler": "handler.py", "modelVersion": "1.0"}
        put(
            root,
            {
                "galatea/models/%s/model/model.pt" % name: file,
                "galatea/models/%s/model/code/inference.py" % name: script,
                "torchserve/%s/model.pt" % name: file,
                "torchserve/%s/torch_script.py" % name: script,
                "torchserve/%s/handler.py" % name: os.path.join(PROGRAMS, "torch_handler.py"),
                "torchserve/%s/MAR-INF/MANIFEST.json" % name: json.dumps(
                    {"runtime": "python", "model": manifest, "archiverVersion": "0.12.0"}
                ),
            },
        )


{"sklearn": sklearn, "torch": torch}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), sys.argv[4])
