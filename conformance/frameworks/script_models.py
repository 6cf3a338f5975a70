"""Writes archives for containers in script mode, with the framework that reads them.

python script_models.py sklearn|pytorch|xgboost DIRECTORY
"""

import os
import sys
import tarfile
import tempfile

SCRIPT = """
import os
import joblib

def model_fn(model_dir):
    return joblib.load(os.path.join(model_dir, "model.joblib"))
"""


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, source in files.items():
            tar.add(source, name)


def sklearn(directory):
    import joblib
    import numpy as np
    from sklearn.linear_model import LinearRegression

    for scale in (1, 10):
        model = LinearRegression().fit(np.eye(3), scale * np.array([1.0, 2.0, 3.0]))
        model.intercept_ = 0.0
        model.coef_ = scale * np.array([1.0, 2.0, 3.0])
        with tempfile.TemporaryDirectory() as made:
            joblib.dump(model, os.path.join(made, "model.joblib"))
            with open(os.path.join(made, "inference.py"), "w") as script:
                script.write(SCRIPT)
            files = {"model.joblib": os.path.join(made, "model.joblib")}
            archive(os.path.join(directory, "sklearn-%d.tar.gz" % scale), files)
            files["code/inference.py"] = os.path.join(made, "inference.py")
            archive(os.path.join(directory, "sklearn-scripted-%d.tar.gz" % scale), files)


def pytorch(directory):
    import torch

    layer = torch.nn.Linear(3, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0]]))
        layer.bias.fill_(0.5)
    with tempfile.TemporaryDirectory() as made:
        torch.jit.save(torch.jit.script(layer), os.path.join(made, "model.pth"))
        torch.save(layer.state_dict(), os.path.join(made, "weights.pt"))
        archive(os.path.join(directory, "pytorch.tar.gz"), {"model.pth": os.path.join(made, "model.pth")})
        archive(os.path.join(directory, "pytorch-weights.tar.gz"), {"weights.pt": os.path.join(made, "weights.pt")})


def xgboost(directory):
    """Writes models that return 1 or 2 by the first feature, and ten times that, with XGBoost's own predictions."""
    import numpy as np
    from xgboost import Booster, DMatrix, train

    rows = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [3.0, 8.0]])
    for scale in (1, 10):
        settings = {"max_depth": 1, "eta": 1.0, "lambda": 0.0, "min_child_weight": 0, "base_score": 0.0, "nthread": 1}
        model = train(settings, DMatrix(rows, scale * np.array([1.0, 1.0, 2.0, 2.0])), 1)
        assert Booster.predict(model, DMatrix(rows)).tolist() == [scale, scale, 2 * scale, 2 * scale]
        with tempfile.TemporaryDirectory() as made:
            model.save_model(os.path.join(made, "xgboost-model.ubj"))
            name = "xgboost-%d.tar.gz" % scale
            archive(os.path.join(directory, name), {"xgboost-model": os.path.join(made, "xgboost-model.ubj")})


{"sklearn": sklearn, "pytorch": pytorch, "xgboost": xgboost}[sys.argv[1]](sys.argv[2])
