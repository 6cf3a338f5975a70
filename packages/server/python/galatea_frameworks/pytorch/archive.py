"""Checks a model file before PyTorch reads it.

PyTorch's reader verifies no checksums, and allocates any size that a file declares."""

from __future__ import annotations

import mmap
import struct
import zipfile
import zlib

from galatea_worker.failures import ModelError

TORCHSCRIPT = "TorchScript"
EXPORTED = "torch.export"

_LOCAL_HEADER = struct.Struct("<4s22xHH")
LOCAL_HEADER_BYTES = _LOCAL_HEADER.size
_STORED = 0
# Limit of the decompressed size of all entries together, in bytes. Only code and its source maps are compressed.
_INFLATED_BYTES_MAX = 256 << 20
_PIECE_BYTES = 1 << 20


def find_loader(path: str, name: str) -> str:
    """Returns which loader a file needs. `name` is the file's name in errors.

    Raises ModelError for a file of an unknown kind, a damaged file, or one that would become much larger when it is decompressed.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            entries = opened.infolist()
            kind = _kind([entry.filename for entry in entries])
            _check(path, opened, entries)
            return kind
    except (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, EOFError, OverflowError) as error:
        raise ModelError("'%s' is not a PyTorch archive, or is damaged: %s" % (name, error)) from error


def _kind(filenames: list[str]) -> str:
    inner = {name.partition("/")[2] for name in filenames}
    if any(name.startswith("data/aotinductor/") for name in inner):
        raise ModelError(
            "the file is a package of AOTInductor, which holds machine code: it is not served; save the program with torch.export.save"
        )
    if any(name.startswith("models/") for name in inner) or "serialized_exported_program.json" in filenames:
        return EXPORTED
    if "constants.pkl" in inner:
        return TORCHSCRIPT
    raise ModelError(
        "the file was written by torch.save and contains no program: save one with torch.jit.save or torch.export.save"
    )


def _check(path: str, opened: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> None:
    compressed = [entry for entry in entries if entry.compress_type != _STORED]
    if sum(entry.file_size for entry in compressed) > _INFLATED_BYTES_MAX:
        raise ModelError("its compressed records would become more than %d MiB" % (_INFLATED_BYTES_MAX >> 20))
    for entry in compressed:
        # Reading exactly the declared size also verifies the checksum.
        with opened.open(entry) as stream:
            while stream.read(_PIECE_BYTES):
                pass
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        for entry in entries:
            if entry.compress_type == _STORED:
                _check_stored(entry, whole)


def data_offset(entry: zipfile.ZipInfo, local_header: bytes) -> int:
    """Returns the offset of an entry's content. The content follows a local header of variable length. Raises ModelError."""
    magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(local_header)
    if magic != b"PK\3\4":
        raise _misplaced(entry)
    return entry.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes


def _misplaced(entry: zipfile.ZipInfo) -> ModelError:
    return ModelError("'%s' is not at the position that the archive declares" % entry.filename)


def _check_stored(entry: zipfile.ZipInfo, whole: mmap.mmap) -> None:
    begin = data_offset(entry, whole[entry.header_offset : entry.header_offset + LOCAL_HEADER_BYTES])
    end = begin + entry.file_size
    if entry.file_size != entry.compress_size or end > len(whole):
        raise _misplaced(entry)
    total = 0
    view = memoryview(whole)
    try:
        for at in range(begin, end, _PIECE_BYTES):
            total = zlib.crc32(view[at : min(at + _PIECE_BYTES, end)], total)
    finally:
        view.release()
    if total != entry.CRC:
        raise ModelError("'%s' is damaged: its checksum differs" % entry.filename)
