"""Maps weights from the model's file instead of copying them to memory, so that workers with equal files share the memory.

This requires that the weights have the same layout in the file as in memory. The mapping is private: a model that changes its weights gets
copies of the changed pages.
"""

from __future__ import annotations

import ctypes
import os
import zipfile
from typing import TYPE_CHECKING

import torch
from galatea_worker import current_worker

from . import archive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Minimum size of a mapped tensor in bytes: one page. A smaller tensor would not share memory.
_BYTES_MIN = 4096
_PIECE_BYTES = 1 << 20


def readable(path: str) -> str:
    """Returns the path from which the model's file should be read. This is the immutable copy that the server shares, if there is one."""
    shared = current_worker.model_file()
    return path if shared is None else "/proc/self/fd/%d" % shared


def share(tensors: Iterable[torch.Tensor]) -> None:
    """Finds tensors whose bytes are also a record of the file, frees their memory, and maps the record instead.

    The bytes are compared first, therefore the values do not change. The tensor objects stay the same.
    """
    shared = current_worker.model_file()
    if shared is None:
        return
    path = readable("")
    with zipfile.ZipFile(path) as opened, open(path, "rb") as file:
        records = _Records(file.fileno(), opened.infolist())
        whole = None
        found = {}
        with torch.no_grad():
            for tensor in tensors:
                if not _is_plain(tensor):
                    continue
                storage = tensor.untyped_storage()
                key = storage.data_ptr()
                if key not in found:
                    # Keeps a reference to the storage until the mapping. Otherwise another storage could get the same address in the
                    # meantime.
                    found[key] = (records.data_offset(key, storage.nbytes()), storage)
                begin, former = found[key]
                if begin is None:
                    continue
                if whole is None:
                    whole = torch.UntypedStorage.from_file(path, False, os.fstat(shared).st_size)
                place = tensor.storage_offset(), tensor.size(), tensor.stride()
                tensor.set_(whole[begin : begin + former.nbytes()], *place)


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_quantized
        and type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.untyped_storage().nbytes() >= _BYTES_MIN
    )


class _Records:
    """The records of an archive, grouped by size."""

    def __init__(self, descriptor: int, entries: list[zipfile.ZipInfo]) -> None:
        self._descriptor = descriptor
        self._begins = {}
        for entry in entries:
            if entry.compress_type == zipfile.ZIP_STORED and entry.file_size >= _BYTES_MIN:
                begin = archive.data_offset(
                    entry, os.pread(descriptor, archive.LOCAL_HEADER_BYTES, entry.header_offset)
                )
                self._begins.setdefault(entry.file_size, []).append(begin)

    def data_offset(self, address: int, size: int) -> int | None:
        """Returns the offset of a record with these bytes; None if there is none, or if it is not aligned for direct use."""
        for begin in self._begins.get(size, ()):
            if begin % 16 == 0 and self._is_equal(address, begin, size):
                return begin
        return None

    def _is_equal(self, address: int, begin: int, size: int) -> bool:
        for at in range(0, size, _PIECE_BYTES):
            count = min(_PIECE_BYTES, size - at)
            # The file is read instead of mapped, because a single comparison does not justify page table entries for its pages.
            if os.pread(self._descriptor, count, begin + at) != ctypes.string_at(address + at, count):
                return False
        return True


def script_tensors(module: torch.jit.ScriptModule, path: str) -> Iterator[torch.Tensor]:
    """Yields the parameters and buffers of a module, and the constants of its graphs.

    The constants contain the weights of a frozen module."""
    yield from module.parameters()
    yield from module.buffers()
    with zipfile.ZipFile(path) as opened:
        constants = [one for one in opened.infolist() if one.filename.partition("/")[2].startswith("constants/")]
    if all(one.file_size < _BYTES_MIN for one in constants):
        # Returns early because accessing a graph creates it, and many modules of a program never need their graph.
        return
    for each in module.modules():
        for name in each._c._method_names():
            for node in each._c._get_method(name).graph.findAllNodes("prim::Constant"):
                if node.hasAttribute("value") and node.kindOf("value") == "t":
                    yield node.t("value")
