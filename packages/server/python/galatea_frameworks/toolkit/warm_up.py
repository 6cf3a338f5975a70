"""Imported by the zygote before workers are forked: modules that every script needs."""

import csv  # noqa: F401
import http.client  # noqa: F401
import importlib.util  # noqa: F401
import inspect  # noqa: F401
import io  # noqa: F401
import traceback  # noqa: F401

from . import (  # noqa: F401
    context,
    decoder,
    defaults,
    encoder,
    errors,
    handler_service,
    import_paths,
    joined_rows,
    program,
    script,
    script_response,
    shared_libraries,
    streams,
    transformer,
)
