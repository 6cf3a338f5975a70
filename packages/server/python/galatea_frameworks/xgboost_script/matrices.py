"""Converts bodies to XGBoost's matrices, for the content types of SageMaker's XGBoost container."""

from __future__ import annotations

import csv

import numpy as np
import scipy.sparse
import xgboost

from galatea_frameworks.toolkit import content_types, errors

from . import recordio

LIBSVM = "text/libsvm"
X_LIBSVM = "text/x-libsvm"
X_RECORDIO_PROTOBUF = "application/x-recordio-protobuf"

_SNIFFED_CHARACTERS = 512
# Maximum number of cells, which need half a gigabyte as float64. Without this limit, a small body could name a column with a huge number.
_CELLS_MAX = 1 << 26


def decode(body: str | bytes, content_type: str | None) -> xgboost.DMatrix:
    """Decodes a body. Raises UnsupportedFormatError for other content types; ValueError or XGBoost's exceptions for an invalid body."""
    media_type = _media_type(content_type or "")
    decoder = _DECODERS.get(media_type)
    if decoder is None:
        raise errors.UnsupportedFormatError(media_type)
    return decoder(body)


def _media_type(content_type: str) -> str:
    """Returns the content type without its parameters."""
    return content_type.partition(";")[0].strip()


def _text(body: str | bytes) -> str:
    return body if isinstance(body, str) else bytes(body).decode("utf-8")


def _csv_to_dmatrix(body: str | bytes) -> xgboost.DMatrix:
    """Parses delimited text.

    The separator is guessed from the first line; an empty cell is a missing value. An empty line at the end counts as a row.
    """
    lines = _text(body).split("\n")
    found = csv.Sniffer().sniff(lines[0][:_SNIFFED_CHARACTERS]).delimiter
    delimiter = "," if found.isalnum() else found
    rows = [[_number(cell) for cell in line.split(delimiter)] for line in lines]
    return xgboost.DMatrix(np.array(rows, np.float64))


def _number(cell: str) -> float:
    try:
        return float(cell) if cell else np.nan
    except ValueError:
        # Raises an error with numpy's text. numpy itself would need an array in which every text has the width of the longest one.
        raise ValueError("could not convert string to float: %r" % np.str_(cell[:100])) from None


def _libsvm_to_dmatrix(body: str | bytes) -> xgboost.DMatrix:
    """Parses libsvm text.

    Columns count from 1 unless there is a column 0. Missing columns are zero. Cells without a colon are labels and are ignored.
    """
    rows = [_named_cells(line) for line in _text(body).strip().split("\n")]
    if not any(rows):
        return xgboost.DMatrix(np.empty((0, 0)))
    first = 1 if min(min(row) for row in rows if row) >= 1 else 0
    width = max(max(row) for row in rows if row) - first + 1
    if width * len(rows) > _CELLS_MAX:
        raise ValueError("%d rows of %d columns are more than can be held" % (len(rows), width))
    cells = np.zeros((len(rows), width))
    for at, row in enumerate(rows):
        for column, value in row.items():
            cells[at, column - first] = value
    return xgboost.DMatrix(cells)


def _named_cells(line: str) -> dict[int, float]:
    cells = {}
    for item in line.split():
        column, colon, value = item.partition(":")
        if colon:
            cells[int(column)] = float(value)
    return cells


def _recordio_to_dmatrix(body: str | bytes) -> xgboost.DMatrix:
    """Returns the features of each record, and the labels if all records have one."""
    data = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    rows = [recordio.features_and_label(record) for record in recordio.records(data)]
    rows = [row for row in rows if row is not None]
    if not rows:
        raise ValueError("No records found in RecordIO-Protobuf data")
    labels = [label for _, label in rows if label is not None]
    features = [feature for feature, _ in rows]
    if any(scipy.sparse.issparse(one) for one in features):
        matrix = scipy.sparse.vstack([scipy.sparse.csr_matrix(one) for one in features]).tocsr()
    else:
        matrix = np.vstack(features)
    return xgboost.DMatrix(matrix, label=np.concatenate(labels) if labels else None)


_DECODERS = {
    content_types.CSV: _csv_to_dmatrix,
    LIBSVM: _libsvm_to_dmatrix,
    X_LIBSVM: _libsvm_to_dmatrix,
    X_RECORDIO_PROTOBUF: _recordio_to_dmatrix,
}
