"""The functions of CUDA's runtime library that this backend needs, called with ctypes."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NAMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")
_OUT_OF_MEMORY = 2
_HOST_TO_DEVICE = 1
_DEVICE_TO_HOST = 2
# Flag for a stream that does not synchronize with CUDA's default stream.
_NON_BLOCKING = 1
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76
_POINTER = ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_OUT_INT = ctypes.POINTER(ctypes.c_int)
_SIGNATURES = {
    "cudaSetDevice": (ctypes.c_int,),
    "cudaDeviceGetAttribute": (_OUT_INT, ctypes.c_int, ctypes.c_int),
    "cudaMalloc": (_OUT, ctypes.c_size_t),
    "cudaFree": (_POINTER,),
    "cudaMemset": (_POINTER, ctypes.c_int, ctypes.c_size_t),
    "cudaMemcpyAsync": (_POINTER, _POINTER, ctypes.c_size_t, ctypes.c_int, _POINTER),
    "cudaStreamCreateWithFlags": (_OUT, ctypes.c_uint),
    "cudaStreamSynchronize": (_POINTER,),
    "cudaStreamDestroy": (_POINTER,),
}


class CudaError(Exception):
    """A failed CUDA call, with CUDA's error text."""


class OutOfDeviceMemory(CudaError, MemoryError):
    """The GPU has too little free memory."""


def load_library() -> Any:
    """Loads CUDA's runtime library: the one that the loader finds, or the one in the environment's packages. Raises ModelError."""
    for path in (*_NAMES, *_packaged()):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name, arguments in _SIGNATURES.items():
            getattr(library, name).argtypes = arguments
        library.cudaGetErrorString.argtypes = (ctypes.c_int,)
        library.cudaGetErrorString.restype = ctypes.c_char_p
        return library
    raise ModelError("CUDA's runtime library (libcudart.so) was not found; searched: %s" % ", ".join(_NAMES))


def _packaged() -> list[str]:
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else found.submodule_search_locations or []
    return sorted(
        path
        for place in places
        for path in glob.glob(os.path.join(place, "*", "lib", "libcudart.so.*"))
        if path[-1:].isdigit()
    )


class Device:
    """A GPU with a stream that executes all work in order. Only the thread that created the object may use it."""

    def __init__(self, library: Any, number: int) -> None:
        self._library = library
        self.number = number
        self._call(library.cudaSetDevice, number)
        stream = ctypes.c_void_p()
        self._call(library.cudaStreamCreateWithFlags, ctypes.byref(stream), _NON_BLOCKING)
        self.stream = stream.value or 0

    def capability(self) -> str:
        """Returns the compute capability of the GPU, such as 9.0."""
        return ".".join(str(self._attribute(one)) for one in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR))

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call(self._library.cudaDeviceGetAttribute, ctypes.byref(value), which, self.number)
        return value.value

    def allocate(self, size: int) -> int:
        """Allocates GPU memory and clears it, because it may contain another model's data. Raises OutOfDeviceMemory."""
        pointer = ctypes.c_void_p()
        self._call(self._library.cudaMalloc, ctypes.byref(pointer), max(size, 1))
        address = pointer.value or 0
        self._call(self._library.cudaMemset, address, 0, max(size, 1))
        return address

    def free(self, address: int) -> None:
        """Frees GPU memory."""
        self._call(self._library.cudaFree, address)

    def put(self, address: int, host: int, size: int) -> None:
        """Copies from main memory to the GPU, after all earlier work. The main memory must stay valid until `finish`."""
        self._call(self._library.cudaMemcpyAsync, address, host, size, _HOST_TO_DEVICE, self.stream)

    def take(self, host: int, address: int, size: int) -> None:
        """Copies from the GPU to main memory, after all earlier work. The main memory must stay valid until `finish`."""
        self._call(self._library.cudaMemcpyAsync, host, address, size, _DEVICE_TO_HOST, self.stream)

    def finish(self) -> None:
        """Waits until all work has completed. Raises CudaError if any of it has failed."""
        self._call(self._library.cudaStreamSynchronize, self.stream)

    def close(self) -> None:
        """Destroys the stream."""
        self._call(self._library.cudaStreamDestroy, self.stream)

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        status = function(*arguments)
        if status == 0:
            return
        text = self._library.cudaGetErrorString(status).decode("utf-8", "replace")
        raise OutOfDeviceMemory(text) if status == _OUT_OF_MEMORY else CudaError(text)


class Buffer:
    """GPU memory that grows on demand."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.address = 0
        self.size = -1

    def reach(self, size: int) -> int:
        """Returns the address of at least `size` bytes. If the memory grows, its content is lost. Raises OutOfDeviceMemory."""
        if size > self.size:
            self.free()
            self.address = self._device.allocate(size)
            self.size = size
        return self.address

    def free(self) -> None:
        """Frees the memory."""
        if self.size >= 0:
            self._device.free(self.address)
        self.address = 0
        self.size = -1
