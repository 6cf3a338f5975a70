"""Creates archives of models."""

import io
import tarfile

DOUBLING = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        print("received a request for a double", flush=True)
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("Y", pb_utils.get_input_tensor_by_name(request, "X").as_numpy() * 2)])
            for request in requests
        ]
"""
DOUBLING_CONFIG = """
name: "double"
backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
# A Triton repository whose model doubles its input.
doubling = {"double/config.pbtxt": DOUBLING_CONFIG, "double/1/model.py": DOUBLING}

TWICE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        found = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * 2)]) for x in found]
"""
TWICE_CONFIG = """
name: "twice" backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
# A model that doubles two numbers at a time and prints nothing.
twice = {"twice/config.pbtxt": TWICE_CONFIG, "twice/1/model.py": TWICE}
TWICE_BODY = '{"inputs":[{"name":"X","shape":[2],"datatype":"FP32","data":[1,2]}]}'


def archive(files):
    """Returns a tar.gz of these texts or bytes by path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo("./" + path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
