"""Default functions for a PyTorch script that does not define its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from galatea_worker.failures import ModelError

from galatea_frameworks.pytorch import archive
from galatea_frameworks.toolkit import content_types, decoder, encoder, errors
from galatea_frameworks.toolkit.accept import parse_accept
from galatea_frameworks.toolkit.defaults import DefaultInferenceHandler

if TYPE_CHECKING:
    from typing import Any

_FILENAME = "model.pt"


class ModelLoadError(Exception):
    """The only model file of an archive cannot be loaded without a script."""


class PyTorchHandler(DefaultInferenceHandler):
    """The default functions of SageMaker's PyTorch container."""

    def default_model_fn(self, model_dir: str) -> Any:
        """Loads `model.pt`, or the only TorchScript file in the directory."""
        path = os.path.join(model_dir, _FILENAME)
        if not os.path.exists(path):
            files = [name for name in sorted(os.listdir(model_dir)) if _is_model(os.path.join(model_dir, name))]
            if len(files) != 1:
                raise ValueError("Exactly one .pth or .pt file is required for PyTorch models: %s" % files)
            path = os.path.join(model_dir, files[0])
        try:
            archive.find_loader(path, os.path.basename(path))
            return torch.jit.load(path, map_location="cpu").eval()
        except (RuntimeError, ModelError) as error:
            raise ModelLoadError("Failed to load %s. Please ensure model is saved using torchscript." % path) from error

    def default_input_fn(self, input_data: Any, content_type: str | None) -> torch.Tensor:
        """Decodes the body to a tensor. Numbers in text formats become float32."""
        array = decoder.decode(input_data, content_type)
        return torch.FloatTensor(array) if content_type in content_types.UTF8_TYPES else torch.from_numpy(array)

    def default_predict_fn(self, data: Any, model: Any) -> Any:
        """Calls the model once with the data."""
        with torch.no_grad():
            model.eval()
            return model(data)

    def default_output_fn(self, prediction: Any, accept: str) -> str | bytes:
        """Encodes the prediction in the first accepted type that is supported."""
        if type(prediction) is torch.Tensor:
            prediction = prediction.detach().cpu().numpy().tolist()
        for content_type in parse_accept(accept):
            if content_type in encoder.SUPPORTED_CONTENT_TYPES:
                return encoder.encode(prediction, content_type)
        raise errors.UnsupportedFormatError(accept)


def _is_model(path: str) -> bool:
    return os.path.isfile(path) and os.path.splitext(path)[1] in (".pt", ".pth")
