"""Requests to generated models: rows from fixed seeds, and files with the predictions of the models' libraries."""

import json

import numpy

ROWS = 400
FEATURES = 8


class Case:
    """The rows for a model, and its expected results."""

    def __init__(self, out, name):
        self.name = name
        self.cases = out / "cases"
        self.version = out / "repository" / name / "1"
        self.version.mkdir(parents=True, exist_ok=True)
        self.cases.mkdir(parents=True, exist_ok=True)

    def write(self, model_type, rows, expected, edges=0, batch=512, contributions=None, **parameters):
        """The last `edges` rows are at thresholds, or one float next to them. Contributions are [row][output][features, then the remainder]."""
        expected = numpy.asarray(expected, dtype=numpy.float64)
        columns = 1 if expected.ndim == 1 else expected.shape[1]
        settings = {"model_type": model_type, "is_classifier": "false", **parameters}
        texts = "".join(
            f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n' for key, value in settings.items()
        )
        explained = ""
        if contributions is not None:
            dims = ", ".join(map(str, contributions.shape[1:]))
            explained = f'output {{ name: "treeshap_output" data_type: TYPE_FP32 dims: [ {dims} ] }}\n'
            contributions.astype("<f8").tofile(self.cases / f"{self.name}.contributions")
        (self.version.parent / "config.pbtxt").write_text(
            f'backend: "fil"\nmax_batch_size: {batch}\n'
            f'input {{ name: "input__0" data_type: TYPE_FP32 dims: [ {rows.shape[1]} ] }}\n'
            f'output {{ name: "output__0" data_type: TYPE_FP32 dims: [ {columns} ] }}\n'
            f"{explained}instance_group {{ kind: KIND_CPU }}\n{texts}"
        )
        about = {"rows": len(rows), "features": rows.shape[1], "columns": columns, "edges": edges}
        (self.cases / f"{self.name}.json").write_text(json.dumps(about))
        rows.astype("<f4").tofile(self.cases / f"{self.name}.rows")
        expected.astype("<f8").tofile(self.cases / f"{self.name}.expected")


def data(seed, *, missing=False, categories=0, features=FEATURES):
    """Returns float32 rows with a target. Optionally a tenth of the values is missing, or the last column has categories."""
    random = numpy.random.default_rng(seed)
    rows = random.normal(size=(ROWS, features)).astype(numpy.float32)
    if categories:
        rows[:, -1] = random.integers(0, categories, ROWS)
    target = rows[:, 0] * 2 + numpy.sin(rows[:, 1] * 3) + rows[:, 2] * rows[:, 3]
    if categories:
        target = target + (rows[:, -1].astype(int) * 7919 % 5) * 0.7
    if missing:
        rows[random.random(rows.shape) < 0.1] = numpy.nan
        if categories:
            rows[:20, -1] = numpy.nan
    return rows, target.astype(numpy.float32)


def with_edges(rows, thresholds, seed):
    """Adds rows at thresholds and one float on either side; `thresholds` are pairs of a feature and a value."""
    random = numpy.random.default_rng(seed)
    pairs = [pair for pair in thresholds if numpy.isfinite(pair[1]) and abs(pair[1]) < 1e30]
    picked = [pairs[place] for place in random.permutation(len(pairs))[:60]]
    edges = []
    for feature, threshold in picked:
        near = numpy.float32(threshold)
        for value in (
            near,
            numpy.nextafter(near, numpy.float32(-numpy.inf)),
            numpy.nextafter(near, numpy.float32(numpy.inf)),
        ):
            row = rows[random.integers(len(rows))].copy()
            row[feature] = value
            edges.append(row)
    if not edges:
        return rows, 0
    return numpy.concatenate([rows, numpy.stack(edges).astype(numpy.float32)]), len(edges)


def extremes(features):
    """Returns rows with all kinds of floats."""
    values = [0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, 1e-38, -1e-40, 3e38, -3e38, 1.0, -1.0]
    return numpy.array([[value] * features for value in values], dtype=numpy.float32)


def classes(target, count):
    edges = numpy.quantile(target, numpy.linspace(0, 1, count + 1)[1:-1])
    return numpy.digitize(target, edges)
