"""Runs the statements in CODE, which share their names from one request to the next, and gives back the repr of what they leave in `out`."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        family = pb_utils.MetricFamily
        self.scope = {"pb_utils": pb_utils, "np": np, "MetricFamily": family, "COUNTER": family.COUNTER}
        self.scope.update(GAUGE=family.GAUGE, HISTOGRAM=family.HISTOGRAM)
        # Of all instances there is one metric.
        self.family = family(name="at_start", description="made in initialize", kind=family.COUNTER)
        self.metric = self.family.Metric(labels={"kind": "start"})
        self.metric.increment(2)

    def execute(self, requests):
        responses = []
        for request in requests:
            code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0].decode()
            self.scope["out"] = None
            try:
                exec(code, self.scope)
                out = repr(self.scope["out"])
            except Exception as error:
                # Triton names the constructors and functions that it has, and where an object lies, in the lines behind the first.
                out = "%s: %s" % (type(error).__name__, str(error).split("\n")[0])
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([out], dtype=object))]))
        return responses
