"""TensorFlow's datatypes by the configuration's names."""

from __future__ import annotations

from tensorflow.core.framework import types_pb2

# TensorFlow's numbers of the datatypes that Triton's backend supports. BF16 is not supported.
NUMBERS = {
    "TYPE_BOOL": types_pb2.DT_BOOL,
    "TYPE_UINT8": types_pb2.DT_UINT8,
    "TYPE_UINT16": types_pb2.DT_UINT16,
    "TYPE_UINT32": types_pb2.DT_UINT32,
    "TYPE_UINT64": types_pb2.DT_UINT64,
    "TYPE_INT8": types_pb2.DT_INT8,
    "TYPE_INT16": types_pb2.DT_INT16,
    "TYPE_INT32": types_pb2.DT_INT32,
    "TYPE_INT64": types_pb2.DT_INT64,
    "TYPE_FP16": types_pb2.DT_HALF,
    "TYPE_FP32": types_pb2.DT_FLOAT,
    "TYPE_FP64": types_pb2.DT_DOUBLE,
    "TYPE_STRING": types_pb2.DT_STRING,
}
NAMES = {number: name for name, number in NUMBERS.items()}


def shown(name: str) -> str:
    """Returns the name of a datatype in Triton's texts about models."""
    return "TYPE_BYTES" if name == "TYPE_STRING" else name


def name_of(number: int) -> str:
    """Returns TensorFlow's name of a datatype, such as DT_FLOAT."""
    return types_pb2.DataType.Name(number) if number in types_pb2.DataType.values() else "DT_%d" % number
