"""The handler of the model server, as AWS's framework containers extend the toolkit's: the code of a model is in the model's own folder."""

import os
import sys

from sagemaker_inference.default_handler_service import DefaultHandlerService


class HandlerService(DefaultHandlerService):
    def initialize(self, context):
        sys.path.insert(0, os.path.join(context.system_properties["model_dir"], "code"))
        super().initialize(context)
