"""Converts tensors of requests to PyTorch's tensors, and results to tensors of responses. Copies bytes only when necessary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import triton_python_backend_utils as pb_utils
from galatea_worker import datatypes

from galatea_frameworks.batched_model import InvalidRequest, split_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from triton_python_backend_utils import Tensor

# PyTorch's datatypes by the configuration's names. Unlike Triton's backend, BF16 and all unsigned types are supported.
DTYPES = {
    "TYPE_BOOL": torch.bool,
    "TYPE_UINT8": torch.uint8,
    "TYPE_UINT16": torch.uint16,
    "TYPE_UINT32": torch.uint32,
    "TYPE_UINT64": torch.uint64,
    "TYPE_INT8": torch.int8,
    "TYPE_INT16": torch.int16,
    "TYPE_INT32": torch.int32,
    "TYPE_INT64": torch.int64,
    "TYPE_FP16": torch.float16,
    "TYPE_FP32": torch.float32,
    "TYPE_FP64": torch.float64,
    "TYPE_BF16": torch.bfloat16,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def to_value(tensor: Tensor | None, name: str) -> torch.Tensor | list[str]:
    """Converts a request's tensor to a writable PyTorch tensor over the same bytes, or to a list of texts."""
    if tensor is None:
        raise InvalidRequest("input '%s' is missing: forward() needs all of its arguments" % name)
    datatype = tensor.triton_dtype()
    if datatype == datatypes.BYTES:
        try:
            return [bytes(one).decode("utf-8") for one in tensor.as_numpy().ravel()]
        except UnicodeDecodeError as error:
            raise InvalidRequest("input '%s' has a string that is not UTF-8: %s" % (name, error)) from None
    if datatype == datatypes.BF16:
        return torch.from_dlpack(tensor.to_dlpack())
    array = tensor.as_numpy()
    return torch.from_numpy(array if array.flags.aligned and array.flags.writeable else array.copy())


def joined(column: Sequence[torch.Tensor | list[str]]) -> torch.Tensor | list[str]:
    """Concatenates the values of one input of several requests."""
    if isinstance(column[0], list):
        return [text for texts in column for text in texts]
    return torch.cat(column, 0)


def split(name: str, datatype: str, value: Any, rows: list[int] | None, count: int) -> Iterable[Tensor]:
    """Yields the tensor of an output for each of `count` requests.

    `rows` has the number of rows of each request; it is None for a model without batching. Raises InvalidRequest.
    """
    if isinstance(value, torch.Tensor):
        return _split_tensor(name, datatype, value, rows)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        if datatype != "TYPE_STRING":
            raise _other_type(name, datatype, "TYPE_STRING")
        texts = np.empty(len(value), np.object_)
        texts[:] = [one.encode("utf-8") for one in value]
        return [pb_utils.Tensor(name, one) for one in split_rows(name, texts, rows)]
    raise InvalidRequest("output '%s' must be of type Tensor or List[str]." % name)


def _split_tensor(name: str, datatype: str, value: torch.Tensor, rows: list[int] | None) -> list[Tensor]:
    found = _NAMES.get(value.dtype)
    if found is None:
        raise InvalidRequest("output '%s' is of %s, which has no datatype" % (name, value.dtype))
    if found != datatype:
        raise _other_type(name, datatype, found)
    if value.dim() == 0:
        raise InvalidRequest("output '%s' is a scalar which is not supported." % name)
    if value.layout != torch.strided:
        value = value.to_dense()
    value = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if value.dtype == torch.bfloat16:
        return [pb_utils.Tensor.from_dlpack(name, one) for one in split_rows(name, value, rows)]
    return [pb_utils.Tensor(name, one) for one in split_rows(name, value.numpy(), rows)]


def _other_type(name: str, configured: str, found: str) -> InvalidRequest:
    return InvalidRequest(
        "configuration expects datatype %s for output '%s', model provides %s"
        % (_shown(configured), name, _shown(found))
    )


def _shown(datatype: str) -> str:
    # Triton's name for the datatype in this error text is TYPE_BYTES.
    return "TYPE_BYTES" if datatype == "TYPE_STRING" else datatype
