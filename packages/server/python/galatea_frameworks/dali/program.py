"""Runs one instance of a model: builds its pipeline and executes batches with it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import triton_python_backend_utils as pb_utils
from galatea_worker.failures import ModelError
from nvidia.dali.pipeline import Pipeline

from . import configuration, files, plugins, samples
from .definition import THREADS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, InferenceResponse

    from .definition import Definition

_BATCH_SIZE_MAX = 1 << 20
_FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
# The exception types of DALI's pipelines. pybind11 converts each C++ exception to one of these.
_RUN_ERRORS = (RuntimeError, IndexError, ValueError, TypeError)


class TritonPythonModel:
    """The Python backend's model class for serialized DALI pipelines."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Completes the configuration from the pipeline.

        The inputs are the pipeline's external sources; outputs are identified by their position. Samples of a batch may have different
        shapes.
        """
        config_dict = config.as_dict()
        directory = pb_utils.get_model_dir()
        plugins.reject_model_plugins(config_dict)
        # The instance's GPU is not known yet, but it does not affect inputs and outputs.
        on_gpu = any(one.get("kind") == "KIND_GPU" for one in config_dict.get("instance_group", ()))
        definition = files.load(directory, config_dict.get("default_model_filename", ""), 0 if on_gpu else None)
        batched = not configuration.disables_batching(os.path.dirname(directory))
        configuration.complete(config_dict, definition, batched=batched)
        return config

    def initialize(self, args: dict[str, str]) -> None:
        """Checks the configuration against the file, with Triton's texts, and builds the pipeline."""
        config = json.loads(args["model_config"])
        self._batched = int(config.get("max_batch_size", 0)) > 0
        directory = os.path.join(args["model_repository"], args["model_version"])
        plugins.reject_model_plugins(config)
        gpu = int(args["model_instance_device_id"]) if args["model_instance_kind"] == "GPU" else None
        definition = files.load(directory, config.get("default_model_filename", ""), gpu)
        configuration.check(config, definition, batched=self._batched)
        self._decoupled = configuration.is_decoupled(config)
        self._video = definition.video
        self._input_names = [one.name for one in definition.inputs]
        self._output_names = [one["name"] for one in config["output"]]
        self._split = frozenset(configuration.split_outputs(config))
        self._serialized = definition.encode()
        self._batch_size = int(config["max_batch_size"]) if self._batched else definition.batch_size
        self._threads = _threads(config, definition)
        if not 1 <= self._batch_size <= _BATCH_SIZE_MAX:
            raise ModelError("a batch size of %d is not from 1 to %d" % (self._batch_size, _BATCH_SIZE_MAX))
        try:
            self._pipeline = self._build_pipeline()
        except _RUN_ERRORS as error:
            raise ModelError("Error while instantiating DALI pipeline: %s" % error) from error
        self._at_end = None if self._video is None else self._error_without_data()

    def _build_pipeline(self) -> Pipeline:
        """Returns a pipeline that runs one batch at a time, without prefetching."""
        return Pipeline.deserialize(
            self._serialized,
            batch_size=self._batch_size,
            num_threads=self._threads,
            prefetch_queue_depth=1,
            exec_pipelined=False,
            exec_async=False,
        )

    def _error_without_data(self) -> str:
        """Returns the error text of a run without data.

        A run with this error marks the end of a video, because a pipeline reports the end in no other way.
        """
        try:
            self._build_pipeline().run()
        except _RUN_ERRORS as error:
            return _encountered(error)
        raise ModelError("the pipeline runs without a video, so it would never end")

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse] | None:
        """Runs the whole batch at once; a model without batching gets its requests one by one."""
        if not self._decoupled:
            return self._run_batch(requests)
        if self._video is not None:
            for request in requests:
                self._stream(request)
        else:
            for request, response in zip(requests, self._run_batch(requests)):
                request.get_response_sender().send(response, flags=_FINAL)
        return None

    def _stream(self, request: InferenceRequest) -> None:
        """Decodes a video in a separate pipeline and sends one response for each run.

        Ends at the end of the video, or when the request is cancelled.
        """
        sender = request.get_response_sender()
        try:
            (column,), count = samples.to_inputs(request, self._input_names)
            if count != 1:
                raise samples.InvalidRequest("input '%s' is one video, and not %d" % (self._video, count))
            pipeline = self._build_pipeline()
            pipeline.feed_input(self._video, column)
        except (samples.InvalidRequest, *_RUN_ERRORS) as error:
            return sender.send(_failed("DALI Backend error: %s" % error), flags=_FINAL)
        has_begun = False
        while not sender.is_cancelled():
            try:
                given = [one.as_cpu() for one in pipeline.run()]
            except _RUN_ERRORS as error:
                if has_begun and _encountered(error) == self._at_end:
                    break
                return sender.send(_failed("Runtime error: %s" % error), flags=_FINAL)
            columns = [
                samples.to_outputs(name, one, [len(one)], split=name in self._split, keep=False)
                for name, one in zip(self._output_names, given)
            ]
            sender.send(_response(self._output_names, columns, 0))
            has_begun = True
        return sender.send(flags=_FINAL)

    def _run_batch(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        responses = [None] * len(requests)
        valid = []
        for index, request in enumerate(requests):
            try:
                valid.append((index, *samples.to_inputs(request, self._input_names)))
            except samples.InvalidRequest as error:
                responses[index] = _failed("DALI Backend error: %s" % error)
        if self._batched and len(valid) > 1:
            try:
                self._run(valid, responses, keep=False)
            except _RUN_ERRORS as error:
                # A sample that cannot be decoded fails the run of all requests. Therefore each request is run again alone, and only the
                # invalid one fails.
                pb_utils.Logger.log_verbose(
                    "a batch of %d requests failed, and is run one by one: %s" % (len(valid), error)
                )
            else:
                return responses
        for one in valid:
            try:
                self._run([one], responses, keep=len(valid) > 1)
            except _RUN_ERRORS as error:
                responses[one[0]] = _failed("Runtime error: %s" % error)
        return responses

    def _run(self, valid: Sequence[tuple[int, Any, int]], responses: list[Any], *, keep: bool) -> None:
        """Runs the requests and sends their responses.

        An exception of DALI leaves the pipeline unusable. The pipeline is therefore built again before the exception is raised.
        """
        rows = [count for _, _, count in valid]
        try:
            for position, name in enumerate(self._input_names):
                self._pipeline.feed_input(name, samples.joined([columns[position] for _, columns, _ in valid]))
            # Outputs on a GPU are copied to main memory; other outputs are not copied.
            given = [one.as_cpu() for one in self._pipeline.run()]
        except _RUN_ERRORS:
            self._pipeline = self._build_pipeline()
            raise
        columns = [
            samples.to_outputs(name, one, rows, split=name in self._split, keep=keep) if len(one) == sum(rows) else None
            for name, one in zip(self._output_names, given)
        ]
        for row, (index, _, _) in enumerate(valid):
            responses[index] = _response(self._output_names, columns, row)


def _response(names: Sequence[str], columns: Sequence[Sequence[Any] | None], index: int) -> InferenceResponse:
    tensors = []
    for name, column in zip(names, columns):
        if column is None:
            return _failed("DALI Backend error: output '%s' has not as many samples as the requests" % name)
        if isinstance(column[index], samples.InvalidRequest):
            return _failed("DALI Backend error: %s" % column[index])
        tensors.append(column[index])
    return pb_utils.InferenceResponse(tensors)


def _encountered(error: Exception) -> str:
    """Returns the text of an error without the location in the pipeline's source code."""
    return str(error).rpartition("encountered:")[2]


def _failed(message: str) -> InferenceResponse:
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.UNKNOWN))


def _threads(config: dict[str, Any], definition: Definition) -> int:
    """Returns the number of threads of the pipeline.

    If the parameter `num_threads` is absent or -1, the number in the pipeline's file is used. Raises ModelError for an invalid number."""
    text = config.get("parameters", {}).get("num_threads", {}).get("string_value", "-1").strip()
    try:
        count = int(text)
    except ValueError:
        raise ModelError("parameter 'num_threads' must be a number, found '%s'" % text[:64]) from None
    if count == -1:
        count = definition.threads
    if not 1 <= count <= THREADS_MAX:
        raise ModelError("a pipeline has from 1 to %d threads, found %d" % (THREADS_MAX, count))
    return count
