"""Checks with boto3 that every operation of SageMaker is implemented, or rejected by name with advice.

python refusals.py OPERATION...

The arguments are the implemented operations.
"""

import re
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from statements import finish, proven

# Operations are rejected before members are validated, so none are needed.
client = boto3.client("sagemaker", config=Config(parameter_validation=False, retries={"total_max_attempts": 1}))
WORDS = r"^The operation sagemaker\.%s is not implemented by this server: .+\.$"
# Operations that the SDK's Estimator, Processor, HyperparameterTuner, AutoML, Model.compile, Model.register, ModelMonitor and Pipeline call.
NAMED = {
    "CreateTrainingJob": "models are trained elsewhere",
    "CreateProcessingJob": "data is processed elsewhere",
    "CreateHyperParameterTuningJob": "models are tuned elsewhere",
    "CreateAutoMLJob": "models are found and trained elsewhere",
    "CreateAutoMLJobV2": "models are found and trained elsewhere",
    "CreateCompilationJob": "models are compiled elsewhere",
    "CreateLabelingJob": "this platform only hosts models",
    "CreateModelPackage": "there is no registry",
    "CreateMonitoringSchedule": "CloudWatch's metrics and logs",
    "CreatePipeline": "an inference pipeline is CreateModel with Containers",
    "CreateNotebookInstance": "this platform only hosts models",
    "CreateInferenceExperiment": "give CreateEndpointConfig ShadowProductionVariants",
}


def told(operation):
    """Returns the error text; None for an implemented operation."""
    try:
        client._make_api_call(operation, {})
    except ClientError as error:
        found = error.response["Error"]
        return found["Message"] if found["Code"] == "UnknownOperationException" else None
    return None


refused = {name: told(name) for name in client.meta.service_model.operation_names}
for name, text in NAMED.items():
    proven("%s is rejected by name" % name, refused[name] and text in refused[name], str(refused[name]))
texts = {name: text for name, text in refused.items() if text is not None}
proven(
    "all %d unsupported operations are rejected with advice" % len(texts),
    [name for name, text in texts.items() if not re.match(WORDS % name, text)] == [],
    str([text for name, text in texts.items() if not re.match(WORDS % name, text)][:3]),
)
built = sorted(set(refused) - set(texts))
proven("implemented operations are not rejected", built == sorted(sys.argv[1:]), str(built))
finish()
