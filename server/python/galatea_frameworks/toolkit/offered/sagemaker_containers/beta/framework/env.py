"""Where the model lies."""

import os

model_dir = os.environ.get("SM_MODEL_DIR", "/opt/ml/model")
