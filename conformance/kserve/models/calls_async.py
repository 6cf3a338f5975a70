"""Runs the statements in CODE as a coroutine, which may await other models, and gives back the repr of what they leave in `out`."""

import ast
import asyncio
import inspect

import numpy as np
import triton_python_backend_utils as pb_utils


def asked(model, inputs, outputs, **options):
    tensors = [pb_utils.Tensor(name, np.array(value)) for name, value in inputs.items()]
    return pb_utils.InferenceRequest(model_name=model, inputs=tensors, requested_output_names=outputs, **options)


def shown(response):
    if response.has_error():
        return "error %d: %s" % (int(response.error().code()), response.error().message())
    return {tensor.name(): tensor.as_numpy().tolist() for tensor in response.output_tensors()}


class TritonPythonModel:
    async def execute(self, requests):
        responses = []
        for request in requests:
            code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0].decode()
            scope = {
                "asyncio": asyncio,
                "inspect": inspect,
                "pb_utils": pb_utils,
                "np": np,
                "asked": asked,
                "shown": shown,
                "pair": {"INPUT0": np.arange(4, dtype=np.float32), "INPUT1": np.ones(4, np.float32)},
                "code": lambda text: {"CODE": np.array([text.encode()], object)},
                "out": None,
            }
            running = eval(compile(code, "CODE", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
            if inspect.iscoroutine(running):
                await running
            text = repr(scope["out"])
            scope.clear()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], dtype=object))]))
        return responses
