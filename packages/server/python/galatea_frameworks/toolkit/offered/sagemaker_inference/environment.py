"""The toolkit's module `environment`: paths of models."""

import os

base_dir = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
model_dir = os.environ.get("SM_MODEL_DIR", os.path.join(base_dir, "model"))
code_dir = os.path.join(model_dir, "code")
