"""The functions of `torch_script.py` as a handler of TorchServe."""

from torch_script import input_fn, model_fn, output_fn, predict_fn


class Handler:
    def initialize(self, context):
        self.model = model_fn(context.system_properties["model_dir"])

    def handle(self, data, context):
        return [output_fn(predict_fn(input_fn(one["body"], None), self.model), None)[0] for one in data]
