"""Cannot be loaded."""


class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("cannot be initialised")

    def execute(self, requests):
        return []
