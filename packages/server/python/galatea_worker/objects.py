"""The objects of pb_utils that contain data: tensors, responses, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import datatypes, wire
from .arena import LentBlock
from .signatures import MODULE, ArgumentMismatch, checked, enumeration, refused, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .arena import Lent


_NUMBERS = datatypes.NUMBERS
_NO_NUMPY = "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
_NO_NAME = "Tensor name cannot be an empty string."


class TritonModelException(Exception):
    """Raised by a model to fail the whole batch."""

    __module__ = MODULE


def check_limit(what: str, count: int, most: int) -> None:
    """Raises TritonModelException if a model returns more than a frame can contain. `what` has a placeholder for the count."""
    if count > most:
        raise TritonModelException("%s; the Python backend accepts at most %d" % (what % count, most))


_ErrorCode = enumeration(
    "TritonError.__ErrorCode",
    (
        "UNKNOWN",
        "INTERNAL",
        "NOT_FOUND",
        "INVALID_ARG",
        "UNAVAILABLE",
        "UNSUPPORTED",
        "ALREADY_EXISTS",
        "CANCELLED",
    ),
)
_CODES = tuple(_ErrorCode.__members__.values())


class TritonError:
    """An error with an inference code, as the response to one request."""

    __module__ = MODULE
    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = _CODES

    __slots__ = ("_message", "_code")

    @checked(
        "c_python_backend_utils.TritonError(message: str,"
        " code: c_python_backend_utils.TritonError.__ErrorCode = <__ErrorCode.INTERNAL: 1>)"
    )
    def __init__(self, message: str | bytes, code: Any = INTERNAL) -> None:
        self._message = text_of(message)
        if not isinstance(code, _ErrorCode):
            raise ArgumentMismatch
        self._code = code

    def message(self) -> str:
        """Returns the text that the client receives."""
        return self._message

    def code(self) -> Any:
        """Returns one of TritonError's constants."""
        return self._code


# Needed for unpickling, which finds the class by this name.
setattr(TritonError, "__ErrorCode", _ErrorCode)


class _Exported:
    """The elements of a tensor for DLPack capsules. Writable; keeps a reference to the tensor."""

    __slots__ = ("__array_interface__", "_tensor")

    def __init__(self, tensor: Tensor, array: np.ndarray) -> None:
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = dict(array.__array_interface__, data=(address, False))
        self._tensor = tensor


class Tensor:
    """A named array. The tensor of a request is a view of the received bytes, created when it is first used."""

    __module__ = MODULE
    __slots__ = ("_name", "_datatype", "_shape", "_array", "_buffer", "_offset", "_size")

    def __init__(self, name: str | bytes, tensor: np.ndarray) -> None:
        if not isinstance(name, (str, bytes)) or not isinstance(tensor, np.ndarray):
            raise refused(
                "__init__", "c_python_backend_utils.Tensor(arg0: str, arg1: numpy.ndarray)", (name, tensor), {}
            )
        if type(name) is not str:
            name = text_of(name)
        if not name:
            raise TritonModelException(_NO_NAME)
        if type(tensor) is not np.ndarray and isinstance(tensor, np.ma.MaskedArray):
            raise TypeError(
                "Tensor: '%s' is a masked array, whose masked elements have no value: return its filled()" % name
            )
        dtype = tensor.dtype
        number = _NUMBERS.get(dtype) or datatypes.number_of_dtype(dtype)
        if number == 0:
            raise TritonModelException("NumPy dtype is not supported.")
        self._name = name
        self._datatype = number
        self._shape = tensor.shape
        self._buffer = None
        if number == datatypes.BYTES:
            # Triton copies the elements here, too, so that later changes of the array do not change the response.
            self._buffer = datatypes.serialize_elements(tensor)
            self._offset = 0
            self._size = len(self._buffer)
        elif not dtype.isnative:
            tensor = tensor.astype(dtype.newbyteorder("="), order="C")
        elif not tensor.flags.c_contiguous:
            tensor = tensor.copy()
        self._array = tensor

    def name(self) -> str:
        """Returns the tensor's name."""
        return self._name

    def shape(self) -> list[int]:
        """Returns the dimensions as a list, including the batch dimension."""
        return list(self._shape)

    def triton_dtype(self) -> int:
        """Returns the number of the datatype in Triton's configuration; TYPE_FP32 is 11."""
        return self._datatype

    def is_cpu(self) -> bool:
        """Returns True, because all tensors are in the machine's main memory."""
        return True

    def as_numpy(self) -> np.ndarray:
        """Returns the elements: a writable view for numeric datatypes, an object array of bytes for BYTES."""
        if self._array is not None:
            return self._array
        dtype = datatypes.DTYPES[self._datatype]
        if dtype is None:
            raise TritonModelException(_NO_NUMPY)
        if self._datatype != datatypes.BYTES:
            array = self._elements(dtype)
            self._buffer = None
        else:
            view = memoryview(self._buffer)[self._offset : self._offset + self._size]
            elements = datatypes.deserialize_elements(view)
            array = np.empty(len(elements), np.object_)
            array[:] = elements
            array = array.reshape(self._shape)
        self._array = array
        return array

    def _elements(self, dtype: Any) -> np.ndarray:
        """Returns a writable array over the tensor's bytes.

        Bytes that other readers use are copied first. For sizes from 4 KiB to 16 MiB, copying is cheaper than a private mapping of the
        pages.
        """
        buffer = self._buffer
        array = np.ndarray(self._shape, dtype, buffer, self._offset)
        if type(buffer) is LentBlock:
            if buffer.is_shared:
                array = array.copy()
                self._buffer, self._offset = array, 0
            else:
                buffer.is_viewed = True
        return array

    def _copy(self) -> Tensor:
        """Returns a copy of the tensor."""
        if self._datatype != datatypes.BYTES and self._array is not None:
            return Tensor(self._name, self._array.copy())
        data = bytes(memoryview(self._buffer)[self._offset : self._offset + self._size])
        return tensor_from_wire(self._name, self._datatype, self._shape, (data, 0, len(data)))

    def to_dlpack(self) -> Any:
        """Returns a DLPack capsule over the same memory."""
        return self.__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        if self._datatype == datatypes.BYTES:
            raise TritonModelException("DLPack does not have support for string tensors.")
        if self._datatype != datatypes.BF16:
            return np.asarray(_Exported(self, self.as_numpy())).__dlpack__(**options)
        from . import dlpack

        return dlpack.bfloat_capsule(np.asarray(_Exported(self, self._elements(np.uint16))))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> Tensor:
        """Creates a tensor over the memory of `tensor`, a DLPack capsule or an object with `__dlpack__`.

        The memory must be the machine's main memory.
        """
        if not hasattr(np, "from_dlpack"):
            raise TritonModelException("Tensor.from_dlpack needs numpy 1.22 or newer, found %s" % np.__version__)
        if hasattr(tensor, "__dlpack_device__") and tensor.__dlpack_device__()[0] != 1:
            raise TritonModelException("Tensor.from_dlpack: '%s' is not in host memory" % name)
        from . import dlpack

        if not name:
            raise TritonModelException(_NO_NAME)
        try:
            array, is_bfloat = dlpack.import_array(tensor)
        except ValueError as error:
            raise TritonModelException("Tensor.from_dlpack: %s" % error) from error
        if not array.flags.c_contiguous:
            raise TritonModelException(
                "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
            )
        if is_bfloat:
            return tensor_from_wire(name, datatypes.BF16, array.shape, (array, 0, array.nbytes))
        return Tensor(name, array)


_NO_OUTPUTS = ()
_RESPONSE = (
    "c_python_backend_utils.InferenceResponse(output_tensors: List[c_python_backend_utils.Tensor] = [],"
    " error: c_python_backend_utils.TritonError = None, parameters: object = None)"
)


def _outputs_of(given: object) -> list[Tensor | None] | None:
    """Returns a list of the tensors, including Nones; returns None if the value is not a list or tuple."""
    try:
        outputs = list(given)
    except TypeError:
        return None
    for tensor in outputs:
        if type(tensor) is not Tensor and tensor is not None and not isinstance(tensor, Tensor):
            return None
    return outputs


def check_parameters(parameters: object) -> None:
    """Checks the parameters of a response, or of a request to another model. Raises TritonModelException with Triton's text."""
    if not isinstance(parameters, dict):
        raise TritonModelException("Expect parameters to be a dict, got %s" % type(parameters))
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException("Expect parameters keys to have type str, found type %s" % type(key))
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type %s" % type(value)
            )


class InferenceResponse:
    """The response to one request: tensors, or an error."""

    __module__ = MODULE
    __slots__ = ("_outputs", "_error", "_parameters")

    def __init__(
        self,
        output_tensors: Iterable[Tensor] = _NO_OUTPUTS,
        error: TritonError | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        outputs = _outputs_of(output_tensors)
        if outputs is None or not (error is None or isinstance(error, TritonError)):
            given = [] if output_tensors is _NO_OUTPUTS else [output_tensors]
            raise refused("__init__", _RESPONSE, given, {} if error is None else {"error": error})
        if parameters is not None:
            check_parameters(parameters)
        if None in outputs:
            raise TritonModelException("Output tensor for inference response should not be empty.")
        self._outputs = outputs
        self._error = error
        self._parameters = parameters

    def output_tensors(self) -> list[Tensor]:
        """Returns the tensors in a new list."""
        return list(self._outputs)

    def _copy(self) -> InferenceResponse:
        """Returns a copy of the response. Later changes of the model's arrays do not affect the copy."""
        response = InferenceResponse.__new__(InferenceResponse)
        response._outputs = [tensor._copy() for tensor in self._outputs]
        response._error = self._error
        response._parameters = self._parameters and dict(self._parameters)
        return response

    def has_error(self) -> bool:
        """Returns whether the request failed."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """Returns the error; None if the request succeeded."""
        return self._error

    def parameters(self) -> str:
        """Returns the response's parameters as JSON text."""
        import json

        return json.dumps(self._parameters) if self._parameters else ""


class CallRequest:
    """A request to another model, as plain data."""

    # Some fields have the names of fields of `wire.WireRequest`, because an InferenceRequest contains an object of either class.
    __slots__ = (
        "model_name",
        "version",
        "inputs",
        "requested",
        "request_id",
        "correlation",
        "parameters",
        "flags",
        "timeout_us",
    )


_new_tensor = Tensor.__new__


def tensors_from_wire(
    names: Sequence[str], inputs: list[wire.Input], inline: bytearray, lent: Sequence[Lent]
) -> list[Tensor]:
    """Returns the tensors of a decoded request. Their bytes are in `inline` or in a block of `lent`."""
    tensors = []
    for name_index, datatype, shape, block, offset, size in inputs:
        tensor = _new_tensor(Tensor)
        tensor._name = names[name_index]
        tensor._datatype = datatype
        tensor._shape = shape
        tensor._array = None
        tensor._buffer = inline if block == wire.INLINE else lent[block][4]
        tensor._offset = offset
        tensor._size = size
        tensors.append(tensor)
    return tensors


def tensor_from_wire(name: str, datatype: int, shape: tuple[int, ...], location: tuple[Any, int, int]) -> Tensor:
    """Returns a tensor over bytes that another object owns. `location` is (buffer, offset, size)."""
    tensor = Tensor.__new__(Tensor)
    tensor._name = name
    tensor._datatype = datatype
    tensor._shape = shape
    tensor._array = None
    tensor._buffer, tensor._offset, tensor._size = location
    return tensor


def to_bits(tensor: Tensor) -> np.ndarray:
    """Returns the elements of a BF16 tensor as 16-bit integers, because numpy has no BF16."""
    return tensor._elements(np.uint16)


def tensor_from_bits(name: str, array: np.ndarray) -> Tensor:
    """Returns a BF16 tensor over contiguous 16-bit integers."""
    return tensor_from_wire(name, datatypes.BF16, array.shape, (array, 0, array.nbytes))
