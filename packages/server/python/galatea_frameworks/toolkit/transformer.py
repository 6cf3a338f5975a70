"""The toolkit's Transformer, which users' handler services extend."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import content_types
from .defaults import DefaultInferenceHandler
from .script import DEFAULT_PROGRAM, Script
from .script_response import error_response

if TYPE_CHECKING:
    from typing import Any

    from .context import Context


class Transformer:
    """Runs a user's script.

    Imports the script when it is first needed, and handles requests with the script's functions. A default handler provides missing
    functions.
    """

    def __init__(self, default_inference_handler: DefaultInferenceHandler | None = None) -> None:
        self._default_inference_handler = default_inference_handler or DefaultInferenceHandler()
        self._script = None
        self._model = None

    def validate_and_initialize(self, model_dir: str | None = None, context: Context | None = None) -> None:
        """Loads the script and its model once. Raises the exceptions of both."""
        if self._script is not None:
            return
        program = os.environ.get("SAGEMAKER_PROGRAM") or DEFAULT_PROGRAM
        script = Script(program, self._default_inference_handler, context)
        self._model = script.load(model_dir or os.environ["SM_MODEL_DIR"])
        self._script = script

    def transform(self, data: list[dict[str, Any]], context: Context) -> list[Any]:
        """Returns the script's result for each request; if the script raises, one error for all requests."""
        try:
            self.validate_and_initialize(context.system_properties.get("model_dir"), context)
            return [self._one(each.get("body"), context) for each in data]
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the script becomes the error response
            failed = error_response(error)
            context.set_response_status(failed.status, " ".join(str(getattr(error, "phrase", error)).split()))
            return [failed.body.decode("utf-8")]

    def _one(self, body: Any, context: Context) -> Any:
        headers = context.request_processor[0].get_request_properties()
        said = {name.lower().replace("-", ""): value for name, value in headers.items()}
        content_type, accept = said.get("contenttype"), said.get("accept")
        if not accept or accept == content_types.ANY:
            accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", content_types.JSON)
        if content_type in content_types.UTF8_TYPES:
            body = body.decode("utf-8")
        result = self._script.transform(self._model, body, content_type, accept)
        if isinstance(result, tuple):
            result, accept = result[0], result[1]
        context.set_response_content_type(0, accept)
        return result
