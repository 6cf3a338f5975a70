"""Converts between DLPack capsules and numpy arrays. numpy has no BF16 type, so BF16 is passed as uint16 with another type code."""

from __future__ import annotations

import ctypes

import numpy as np

# DLDataTypeCode of dlpack.h, and its offset in a DLManagedTensor: after data (8 bytes), device (8) and ndim (4).
_UNSIGNED = 1
_BFLOAT = 4
_CODE_OFFSET = 20
_NAME = b"dltensor"

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Exporter:
    """Wraps a capsule in an object with `__dlpack__`, which `numpy.from_dlpack` requires."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_options: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _type_code(capsule: object) -> ctypes.c_uint8:
    return ctypes.c_uint8.from_address(_pointer_of(capsule, _NAME) + _CODE_OFFSET)


def bfloat_capsule(words: np.ndarray) -> object:
    """Returns a DLPack capsule of BF16 elements over the memory of a uint16 array."""
    capsule = words.__dlpack__()
    _type_code(capsule).value = _BFLOAT
    return capsule


def import_array(source: object) -> tuple[np.ndarray, bool]:
    """Returns (array, is_bfloat) over the memory of `source`, a capsule or an object with `__dlpack__`.

    BF16 elements are uint16 in the array.
    """
    if isinstance(source, np.ndarray):
        return source, False
    capsule = source.__dlpack__() if hasattr(source, "__dlpack__") else source
    if not _is_valid(capsule, _NAME):
        raise ValueError("expected a DLPack capsule that was not used yet, or an object with __dlpack__")
    code = _type_code(capsule)
    is_bfloat = code.value == _BFLOAT
    if is_bfloat:
        # This function owns the capsule from here on. The type code may be changed, because the capsule's deleter does not read it.
        code.value = _UNSIGNED
    return np.from_dlpack(_Exporter(capsule)), is_bfloat
