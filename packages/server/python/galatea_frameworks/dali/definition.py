"""A serialized pipeline: its operators, inputs and outputs. Field numbers are those of DALI's `dali.proto`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from galatea_worker.failures import ModelError

from . import protobuf

if TYPE_CHECKING:
    pass

FILE_BYTES_MAX = 64 << 20
OPERATORS_MAX = 10_000
THREADS_MAX = 1024
# DALI's device number for a pipeline without a GPU.
CPU_ONLY = -99999
_UNTOLD = -1
_UINT8 = 0
_VIDEO_INPUTS = ("inputs__Video", "experimental__inputs__Video")


class _Pipeline:
    THREADS, BATCH_SIZE, OPERATOR, OUTPUT, DEVICE, BYTES_HINT = 1, 2, 5, 7, 8, 15


class _Operator:
    NAME, INPUT, OUTPUT, ARGUMENT, INSTANCE = 1, 2, 3, 4, 5


class _Edge:
    NAME, DEVICE, DATATYPE, DIMENSIONS = 1, 2, 5, 6


class _Argument:
    NAME, TYPE, FLOATS, NUMBERS, TEXTS, BOOLEANS, ELEMENTS, IS_VECTOR = 1, 2, 3, 4, 5, 6, 7, 8


# The field that contains an argument's value, by the argument's type. DALI reads the field even when it is absent.
_VALUES = {
    "string": _Argument.TEXTS,
    "int64": _Argument.NUMBERS,
    "float": _Argument.FLOATS,
    "bool": _Argument.BOOLEANS,
}
# Names of arguments that are lists of equal length. Each list has an entry for every call that created the operator.
_ORIGINS = ("_origin_stack_filename", "_origin_stack_lineno", "_origin_stack_name", "_origin_stack_line")


class Tensor(NamedTuple):
    """The declaration of an input or output. An undeclared datatype or number of dimensions is -1."""

    name: str
    datatype: int
    dimensions: int


class Operator:
    """One operator of a pipeline."""

    def __init__(self, message: protobuf.Message) -> None:
        """Parses an operator. Raises ModelError for an invalid one."""
        self._message = message
        self.name = message.text(_Operator.NAME)
        if self.name == "_ExternalSource":
            # The operator had this name until 2021, and DALI still accepts it.
            self.name = "ExternalSource"
        self.instance = message.text(_Operator.INSTANCE)
        self._edges = message.messages(_Operator.INPUT) + message.messages(_Operator.OUTPUT)
        self._arguments = [(one.text(_Argument.NAME), one) for one in message.messages(_Operator.ARGUMENT)]
        for name, argument in self._arguments:
            _check_argument(name, argument)
        origins = [self.argument(name) for name in _ORIGINS]
        if len({None if one is None else len(one.messages(_Argument.ELEMENTS)) for one in origins}) != 1:
            raise ModelError("operator '%s' has an incomplete origin" % self.name)
        self.device = self.text("device") or "cpu"

    @property
    def shown(self) -> str:
        """The operator's name in Python: `decoders__Image` in a file is `decoders.image`."""
        return self.name.replace("__", ".")

    @property
    def takes_nothing(self) -> bool:
        """True if the operator has no inputs."""
        return not self._message.has(_Operator.INPUT)

    @property
    def takes_video(self) -> bool:
        """True if the operator is an input that splits a video into the data of several runs."""
        return self.name in _VIDEO_INPUTS

    def argument(self, name: str) -> protobuf.Message | None:
        """Returns the argument with this name; None if there is none."""
        found = [one for own, one in self._arguments if own == name]
        return found[-1] if found else None

    def number(self, name: str, default: int) -> int:
        """Returns the value of a numeric argument; `default` if it is absent."""
        found = self.argument(name)
        return default if found is None else found.number(_Argument.NUMBERS, default)

    def text(self, name: str) -> str:
        """Returns the value of a text argument; "" if it is absent."""
        found = self.argument(name)
        return "" if found is None else found.text(_Argument.TEXTS)

    def put_on_cpu(self) -> None:
        """Moves the operator, with its inputs and outputs, to the CPU, and removes its reserved GPU memory."""
        device = self.argument("device")
        if device is not None:
            device.set_text(_Argument.TEXTS, "cpu")
        for edge in self._edges:
            edge.set_text(_Edge.DEVICE, "cpu")
        hints = [one for name, one in self._arguments if name == "bytes_per_sample_hint"]
        self._message.remove(_Operator.ARGUMENT, hints)


def _check_argument(name: str, argument: protobuf.Message) -> None:
    is_vector = argument.number(_Argument.IS_VECTOR, 0) != 0
    for one in argument.messages(_Argument.ELEMENTS) if is_vector else [argument]:
        place = _VALUES.get(one.text(_Argument.TYPE))
        if place is not None and not one.has(place):
            raise ModelError("argument '%s' has no value of its type" % name)


class Definition:
    """A pipeline, as declared in its file."""

    def __init__(self, data: bytes) -> None:
        """Parses a pipeline. Raises ModelError for an invalid one."""
        if len(data) > FILE_BYTES_MAX:
            raise ModelError("it has %d bytes; a pipeline has %d at most" % (len(data), FILE_BYTES_MAX))
        self._message = protobuf.Message(data)
        self.operators = [Operator(one) for one in self._message.messages(_Pipeline.OPERATOR)]
        if not self.operators or not self._message.has(_Pipeline.BATCH_SIZE):
            raise ModelError("it has no operators or no batch size")
        if len(self.operators) > OPERATORS_MAX:
            raise ModelError("it has %d operators; at most %d are allowed" % (len(self.operators), OPERATORS_MAX))
        self.batch_size = self._message.number(_Pipeline.BATCH_SIZE, 0)
        self.threads = self._message.number(_Pipeline.THREADS, 1)
        self._edges = self._message.messages(_Pipeline.OUTPUT)
        # The inputs of the pipeline (external sources and videos), sorted by name.
        self.inputs = sorted(_input(one) for one in self.operators if one.name == "ExternalSource" or one.takes_video)
        # Name of the input that splits a video into the data of several runs; None if there is none.
        self.video = next((one.instance for one in self.operators if one.takes_video), None)
        # The outputs in the pipeline's own order.
        self.outputs = [_output(one) for one in self._edges]

    def put_on_cpu(self) -> None:
        """Moves the whole pipeline to the CPU. All of its operators must support the CPU."""
        for operator in self.operators:
            operator.put_on_cpu()
        for edge in self._edges:
            edge.set_text(_Edge.DEVICE, "cpu")
        self._message.set_number(_Pipeline.DEVICE, CPU_ONLY)
        self._message.clear(_Pipeline.BYTES_HINT)

    def put_on_gpu(self, number: int) -> None:
        """Selects this GPU. Each operator stays on the kind of device that the pipeline declares."""
        self._message.set_number(_Pipeline.DEVICE, number)

    def encode(self) -> bytes:
        """Returns the serialized pipeline."""
        return self._message.encode()


def _input(operator: Operator) -> Tensor:
    if operator.takes_video:
        return Tensor(operator.instance, _UINT8, 1)
    layout = operator.text("layout")
    dimensions = operator.number("ndim", len(layout) if layout else _UNTOLD)
    return Tensor(operator.instance, operator.number("dtype", _UNTOLD), dimensions)


def _output(edge: protobuf.Message) -> Tensor:
    return Tensor(edge.text(_Edge.NAME), edge.number(_Edge.DATATYPE, _UNTOLD), edge.number(_Edge.DIMENSIONS, _UNTOLD))
