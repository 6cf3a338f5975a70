"""The objects that model code sees: tensors, requests, responses, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import datatypes, wire
from .arena import LentBlock

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence
    from typing import Any, NoReturn

    from .arena import Lent
    from .calls import ResponseIterator
    from .made_request import InferenceTrace
    from .response_sender import InferenceResponseSender


def text_of(what: str, value: object) -> str:
    """A name or message that the model gave: str, or bytes of UTF-8. Raises TypeError."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if not isinstance(value, str):
        raise TypeError("%s must be a str, found %s" % (what, type(value).__name__))
    return value


_NUMBERS = datatypes.NUMBERS


class TritonModelException(Exception):
    """Raised by a model to fail the whole batch."""


def check_limit(what: str, count: int, most: int) -> None:
    """Raises TritonModelException where a model gives more than a frame takes; `what` has a place for the count."""
    if count > most:
        raise TritonModelException("%s; the Python backend takes %d at most" % (what % count, most))


class TritonError:
    """An error with one of the inference codes; the answer to one request."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7

    __slots__ = ("_message", "_code")

    def __init__(self, message: str | bytes, code: int = INTERNAL) -> None:
        message = text_of("TritonError: message", message)
        if not isinstance(code, int) or not 0 <= code <= 7:
            raise TypeError("TritonError: %r is not a TritonError code" % (code,))
        self._message = message
        self._code = code

    def message(self) -> str:
        """The text that the client reads."""
        return self._message

    def code(self) -> int:
        """One of TritonError's constants."""
        return self._code


class Tensor:
    """A named array. Of a request: a view of the bytes that the client sent, made when first asked for."""

    __slots__ = ("_name", "_datatype", "_shape", "_array", "_buffer", "_offset", "_size")

    def __init__(self, name: str | bytes, tensor: np.ndarray) -> None:
        if type(name) is not str:
            name = text_of("Tensor: name", name)
        if not isinstance(tensor, np.ndarray):
            raise TypeError("Tensor: a numpy.ndarray is needed for '%s', found %s" % (name, type(tensor).__name__))
        if type(tensor) is not np.ndarray and isinstance(tensor, np.ma.MaskedArray):
            raise TypeError(
                "Tensor: '%s' is a masked array, whose masked places have no value: answer its filled()" % name
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
            # As in Triton, the elements are taken now: what the array holds later is not answered.
            self._buffer = datatypes.serialize_elements(tensor)
            self._offset = 0
            self._size = len(self._buffer)
        elif not dtype.isnative:
            tensor = tensor.astype(dtype.newbyteorder("="), order="C")
        elif not tensor.flags.c_contiguous:
            tensor = tensor.copy()
        self._array = tensor

    def name(self) -> str:
        """The tensor's name."""
        return self._name

    def shape(self) -> list[int]:
        """Dimensions as a list, the batch dimension included."""
        return list(self._shape)

    def triton_dtype(self) -> int:
        """The datatype's number in the configuration (TYPE_FP32 is 11)."""
        return self._datatype

    def is_cpu(self) -> bool:
        """True: tensors lie in the machine's memory."""
        return True

    def as_numpy(self) -> np.ndarray:
        """The elements: a writable view for numeric datatypes, an object array of bytes for BYTES."""
        if self._array is not None:
            return self._array
        dtype = datatypes.DTYPES[self._datatype]
        if dtype is None:
            raise TritonModelException("Tensor '%s' of BF16 cannot be converted to NumPy." % self._name)
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
        """An array over the tensor's bytes that the model may write to: a copy where others read them as well.

        Copied by hand: a private mapping of the pages costs more than copying them from 4 KiB to 16 MiB, read or written.
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

    def taken(self) -> Tensor:
        """The same tensor over bytes of its own."""
        if self._datatype != datatypes.BYTES and self._array is not None:
            return Tensor(self._name, self._array.copy())
        data = bytes(memoryview(self._buffer)[self._offset : self._offset + self._size])
        return tensor_of_wire(self._name, self._datatype, self._shape, (data, 0, len(data)))

    def to_dlpack(self) -> Any:
        """A DLPack capsule over the same memory."""
        return self.__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        if self._datatype == datatypes.BYTES:
            raise TritonModelException("DLPack does not have support for string tensors.")
        if self._datatype != datatypes.BF16:
            return self.as_numpy().__dlpack__(**options)
        from . import dlpack

        return dlpack.bfloat_capsule(self._elements(np.uint16))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> Tensor:
        """A tensor over what `tensor`, a DLPack capsule or an object with `__dlpack__`, exports in the machine's memory."""
        if not hasattr(np, "from_dlpack"):
            raise TritonModelException("Tensor.from_dlpack needs numpy 1.22 or newer, found %s" % np.__version__)
        if hasattr(tensor, "__dlpack_device__") and tensor.__dlpack_device__()[0] != 1:
            raise TritonModelException("Tensor.from_dlpack: '%s' does not lie in the machine's memory" % name)
        from . import dlpack

        try:
            array, is_bfloat = dlpack.import_array(tensor)
        except ValueError as error:
            raise TritonModelException("Tensor.from_dlpack: %s" % error) from error
        if not array.flags.c_contiguous:
            raise TritonModelException(
                "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
            )
        if is_bfloat:
            return tensor_of_wire(name, datatypes.BF16, array.shape, (array, 0, array.nbytes))
        return Tensor(name, array)


class InferenceRequest:
    """One request of a batch; or one that the model makes, for another model."""

    # `_wire` is the request as it was decoded (`wire.WireRequest`): most models look at nothing but its tensors. One that the model made has
    # no `_place`, and a name and version of the model that it is for.
    __slots__ = ("_inputs", "_wire", "_requested", "_place", "_reply", "_answers", "_model_name", "_wanted_version")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        from .made_request import make

        make(self, *arguments, **options)

    def inputs(self) -> list[Tensor]:
        """The input tensors, in a list of the caller's own."""
        return list(self._inputs)

    def request_id(self) -> str:
        """The client's id, '' without one."""
        return self._wire.request_id

    def correlation_id(self) -> int | str:
        """The sequence's id: int or str, 0 without one."""
        return self._wire.correlation

    def flags(self) -> int:
        """TRITONSERVER_REQUEST_FLAG_* bits."""
        return self._wire.flags

    def set_flags(self, flags: int) -> None:
        """Replaces the flags."""
        self._wire.flags = flags

    def timeout(self) -> int:
        """Microseconds, 0 for none."""
        return self._wire.timeout_us

    def parameters(self) -> str:
        """The request's parameters as JSON text, '{}' without any."""
        return self._wire.parameters or "{}"

    def requested_output_names(self) -> set[str]:
        """Names of the outputs that the client wants, as a set."""
        return set(self._requested)

    def is_cancelled(self) -> bool:
        """Whether the client has gone away. The answer of such a request is dropped: what costs time may be left undone."""
        from .current_worker import is_given_up

        return self._place is not None and is_given_up(*self._place)

    def trace(self) -> InferenceTrace:
        """The request's trace. Traces are not built: it has no context."""
        from .made_request import InferenceTrace

        return InferenceTrace()

    def get_response_sender(self) -> InferenceResponseSender:
        """What may send this request's one response, in place of returning it; any number of them in a decoupled model."""
        from .response_sender import DecoupledResponseSender, InferenceResponseSender, Reply

        if self._place is None:
            raise TritonModelException("The request was made by the model itself: it has no response sender.")
        if self._answers is not None:
            return DecoupledResponseSender(self._answers)
        if self._reply is None:
            self._reply = Reply(self)
        return InferenceResponseSender(self._reply)

    def set_release_flags(self, _flags: int) -> NoReturn:
        """Rescheduling is not built."""
        raise TritonModelException("pb_utils.InferenceRequest.set_release_flags() is not supported yet")

    def exec(self, decoupled: bool = False) -> InferenceResponse | ResponseIterator:
        """Asks the model and waits: the InferenceResponse, an error among it; with `decoupled` an iterator over any number of them."""
        from .made_request import execute

        return execute(self, decoupled)

    def async_exec(self, decoupled: bool = False) -> Coroutine[Any, Any, InferenceResponse | ResponseIterator]:
        """The same to be awaited."""
        from .made_request import execute_awaited

        return execute_awaited(self, decoupled)


class InferenceResponse:
    """The answer to one request: tensors, or an error."""

    __slots__ = ("_outputs", "_error", "_parameters")

    def __init__(
        self,
        output_tensors: Iterable[Tensor] | None = None,
        error: TritonError | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        outputs = [] if output_tensors is None else list(output_tensors)
        for tensor in outputs:
            if type(tensor) is not Tensor and not isinstance(tensor, Tensor):
                raise TypeError(
                    "InferenceResponse: output_tensors must hold pb_utils.Tensor, found %s" % type(tensor).__name__
                )
        if error is not None and not isinstance(error, TritonError):
            raise TypeError("InferenceResponse: error must be a pb_utils.TritonError, found %s" % type(error).__name__)
        if parameters is not None and not isinstance(parameters, dict):
            raise TypeError("InferenceResponse: parameters must be a dict, found %s" % type(parameters).__name__)
        for key, value in parameters.items() if parameters else ():
            if not isinstance(key, str) or not isinstance(value, (bool, int, str)):
                raise TypeError("InferenceResponse: parameters must map str to bool, int or str")
        self._outputs = outputs
        self._error = error
        self._parameters = parameters

    def output_tensors(self) -> list[Tensor]:
        """The tensors, in a list of the caller's own."""
        return list(self._outputs)

    def taken(self) -> InferenceResponse:
        """The same response over bytes of its own: what the model does to its arrays from now on changes nothing."""
        response = InferenceResponse.__new__(InferenceResponse)
        response._outputs = [tensor.taken() for tensor in self._outputs]
        response._error = self._error
        response._parameters = self._parameters and dict(self._parameters)
        return response

    def has_error(self) -> bool:
        """Whether the request failed."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """The error or None."""
        return self._error

    def parameters(self) -> str:
        """The response's parameters as JSON text."""
        import json

        return json.dumps(self._parameters) if self._parameters else ""


def request_of_wire(
    decoded: wire.WireRequest, inputs: list[Tensor], requested: Sequence[str], place: tuple[int, int]
) -> InferenceRequest:
    """An InferenceRequest over decoded parts; `place` is its execution's id and its position there."""
    request = InferenceRequest.__new__(InferenceRequest)
    request._inputs = inputs
    request._wire = decoded
    request._requested = requested
    request._place = place
    request._reply = None
    request._answers = None
    return request


_new_tensor = Tensor.__new__


def tensors_of_wire(
    names: Sequence[str], inputs: list[wire.Input], inline: bytearray, lent: Sequence[Lent]
) -> list[Tensor]:
    """The Tensors of a request's decoded inputs, whose bytes lie in `inline` or in one of the blocks `lent`."""
    tensors = []
    for name_index, datatype, shape, place, offset, size in inputs:
        tensor = _new_tensor(Tensor)
        tensor._name = names[name_index]
        tensor._datatype = datatype
        tensor._shape = shape
        tensor._array = None
        tensor._buffer = inline if place == wire.INLINE else lent[place][4]
        tensor._offset = offset
        tensor._size = size
        tensors.append(tensor)
    return tensors


def tensor_of_wire(name: str, datatype: int, shape: tuple[int, ...], place: tuple[Any, int, int]) -> Tensor:
    """A Tensor over bytes that somebody else owns; `place` is (buffer, offset, size)."""
    tensor = Tensor.__new__(Tensor)
    tensor._name = name
    tensor._datatype = datatype
    tensor._shape = shape
    tensor._array = None
    tensor._buffer, tensor._offset, tensor._size = place
    return tensor


def bits_of(tensor: Tensor) -> np.ndarray:
    """The elements of a tensor of BF16, for which numpy has no name, as numbers of 16 bits."""
    return tensor._elements(np.uint16)


def tensor_of_bits(name: str, array: np.ndarray) -> Tensor:
    """A tensor of BF16 over such numbers, which are contiguous."""
    return tensor_of_wire(name, datatypes.BF16, array.shape, (array, 0, array.nbytes))
