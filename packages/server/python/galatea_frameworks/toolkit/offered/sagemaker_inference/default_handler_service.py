"""The toolkit's handler service, which a user's handler service may extend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .transformer import Transformer

if TYPE_CHECKING:
    from typing import Any


class DefaultHandlerService:
    """Handles requests with a Transformer, which runs the user's script."""

    def __init__(self, transformer: Transformer | None = None) -> None:
        self._service = transformer or Transformer()

    def initialize(self, context: Any) -> None:
        """Loads the script."""
        self._service.validate_and_initialize(context.system_properties.get("model_dir"), context)

    def handle(self, data: list[dict[str, Any]], context: Any) -> list[Any]:
        """Returns the responses to requests."""
        return self._service.transform(data, context)
