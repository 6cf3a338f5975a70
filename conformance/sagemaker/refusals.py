"""What of SageMaker is not built, with the real boto3: every operation that it knows is answered, or refused by name with what to do instead.

python refusals.py OPERATION...

The operations that are built.
"""

import re
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from statements import finish, proven

# Refusals come before members are looked at, so none have to be given.
client = boto3.client("sagemaker", config=Config(parameter_validation=False, retries={"total_max_attempts": 1}))
WORDS = r"^The operation sagemaker\.%s is not implemented by this server: .+\.$"
# What the SDK's Estimator, Processor, HyperparameterTuner, AutoML, Model.compile, Model.register, ModelMonitor and Pipeline call.
NAMED = {
    "CreateTrainingJob": "models are trained elsewhere",
    "CreateProcessingJob": "data is processed elsewhere",
    "CreateHyperParameterTuningJob": "models are tuned elsewhere",
    "CreateAutoMLJob": "models are found and trained elsewhere",
    "CreateAutoMLJobV2": "models are found and trained elsewhere",
    "CreateCompilationJob": "models are compiled elsewhere",
    "CreateLabelingJob": "this platform hosts models",
    "CreateModelPackage": "there is no registry",
    "CreateMonitoringSchedule": "CloudWatch's metrics and logs",
    "CreatePipeline": "an inference pipeline is CreateModel with Containers",
    "CreateNotebookInstance": "this platform hosts models",
    "CreateInferenceExperiment": "give CreateEndpointConfig ShadowProductionVariants",
}


def told(operation):
    """The refusal's text; None where the operation is built."""
    try:
        client._make_api_call(operation, {})
    except ClientError as error:
        found = error.response["Error"]
        return found["Message"] if found["Code"] == "UnknownOperationException" else None
    return None


refused = {name: told(name) for name in client.meta.service_model.operation_names}
for name, text in NAMED.items():
    proven("%s is refused by name" % name, refused[name] and text in refused[name], str(refused[name]))
texts = {name: text for name, text in refused.items() if text is not None}
proven(
    "all %d that are not built are refused with a sentence" % len(texts),
    [name for name, text in texts.items() if not re.match(WORDS % name, text)] == [],
    str([text for name, text in texts.items() if not re.match(WORDS % name, text)][:3]),
)
built = sorted(set(refused) - set(texts))
proven("and those that are built are not", built == sorted(sys.argv[1:]), str(built))
finish()
