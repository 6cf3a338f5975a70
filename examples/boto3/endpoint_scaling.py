"""Autoscaling of an endpoint, as SageMaker users write it; other scripts import this module.

Nothing in this file is specific to Galatea. It scales the variant AllTraffic and needs only boto3.
"""

import datetime
import json
import threading
import time

import boto3

auto_scaling_client = boto3.client("application-autoscaling")
cloudwatch_client = boto3.client("cloudwatch")
sm_client = boto3.client("sagemaker")

ENDPOINT_METRICS = "/aws/sagemaker/Endpoints"
# CloudWatch's metrics of a multi-model endpoint: the namespace and the useful statistic by name.
METRICS = {
    "Invocations": ("AWS/SageMaker", "Sum"),
    "InvocationsPerInstance": ("AWS/SageMaker", "Sum"),
    "Invocation4XXErrors": ("AWS/SageMaker", "Sum"),
    "Invocation5XXErrors": ("AWS/SageMaker", "Sum"),
    "ModelLatency": ("AWS/SageMaker", "Average"),
    "OverheadLatency": ("AWS/SageMaker", "Average"),
    "ModelLoadingWaitTime": ("AWS/SageMaker", "Maximum"),
    "ModelCacheHit": ("AWS/SageMaker", "Average"),
    "LoadedModelCount": (ENDPOINT_METRICS, "Maximum"),
    "CPUUtilization": (ENDPOINT_METRICS, "Maximum"),
    "MemoryUtilization": (ENDPOINT_METRICS, "Maximum"),
}


class ScaledEndpoint:
    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.variant = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": f"endpoint/{endpoint}/variant/AllTraffic",
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }
        self.dimensions = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": "AllTraffic"}]
        self.policies = []
        self.began = datetime.datetime.now(datetime.timezone.utc)

    def utilization(self, name):
        """Returns the specification of a utilization metric: CPUUtilization or GPUUtilization."""
        return {
            "MetricName": name,
            "Namespace": ENDPOINT_METRICS,
            "Dimensions": self.dimensions,
            "Statistic": "Average",
            "Unit": "Percent",
        }

    def register(self, least, most):
        auto_scaling_client.register_scalable_target(**self.variant, MinCapacity=least, MaxCapacity=most)

    def follow(self, name, **policy):
        """Creates a target tracking policy, which creates its own alarms."""
        made = auto_scaling_client.put_scaling_policy(
            **self.variant,
            PolicyName=name,
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={"ScaleInCooldown": 600, "ScaleOutCooldown": 200, **policy},
        )
        self.policies.append(name)
        alarms = cloudwatch_client.describe_alarms(AlarmNames=[alarm["AlarmName"] for alarm in made["Alarms"]])
        for alarm in sorted(alarms["MetricAlarms"], key=lambda each: -each["Threshold"]):
            print(f"{name}: {alarm['ComparisonOperator']} {alarm['Threshold']:g} for {alarm['EvaluationPeriods']} min")

    def instances(self):
        """Returns the number of instances once it equals the desired number."""
        described = sm_client.describe_endpoint(EndpointName=self.endpoint)
        (variant,) = described["ProductionVariants"]
        settled = described["EndpointStatus"] == "InService"
        return variant["CurrentInstanceCount"] if settled else None

    def wait_for(self, count, each_time=lambda: None):
        """Waits until the endpoint has `count` instances."""
        begun = time.time()
        while self.instances() != count:
            each_time()
            time.sleep(10)
        print(f"instances: {count} after {(time.time() - begun) / 60:.0f} min")

    def under_load(self, ask, clients, count, each_time=lambda: None):
        """Invokes the endpoint with that many clients until it has `count` instances. Returns the number of responses; none may fail."""
        ended = threading.Event()
        answered, failures = [], []

        def client():
            while not ended.is_set():
                try:
                    ask()
                    answered.append(1)
                except Exception as error:
                    failures.append(error)
                    return

        threads = [threading.Thread(target=client) for _ in range(clients)]
        for thread in threads:
            thread.start()
        try:
            self.wait_for(count, each_time)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert not failures, failures
        return len(answered)

    def activities(self):
        """Returns the scaling activities and their causes, oldest first, once all have ended."""
        while True:
            found = auto_scaling_client.describe_scaling_activities(
                ServiceNamespace="sagemaker", ResourceId=self.variant["ResourceId"]
            )["ScalingActivities"]
            if all(activity["StatusCode"] != "InProgress" for activity in found):
                break
            time.sleep(10)
        for activity in reversed(found):
            print(f"{activity['StatusCode']}: {activity['Description']} {activity['Cause']}")

    def dashboard(self):
        """Creates a dashboard with a graph for each metric."""
        name = f"{self.endpoint}-dashboard"
        region = boto3.Session().region_name
        pairs = [part for dimension in self.dimensions for part in (dimension["Name"], dimension["Value"])]
        widgets = [
            {
                "type": "metric",
                "width": 8,
                "height": 6,
                "properties": {
                    "title": metric,
                    "region": region,
                    "stat": statistic,
                    "period": 60,
                    "metrics": [[namespace, metric, *pairs]],
                },
            }
            for metric, (namespace, statistic) in METRICS.items()
        ]
        cloudwatch_client.put_dashboard(DashboardName=name, DashboardBody=json.dumps({"widgets": widgets}))
        kept = json.loads(cloudwatch_client.get_dashboard(DashboardName=name)["DashboardBody"])
        print(f"dashboard {name}: {len(kept['widgets'])} graphs")
        return name

    def values(self):
        """Prints each metric over the whole time, without metrics that have no datapoint."""
        queries = [
            {
                "Id": f"m{number}",
                "Label": name,
                "MetricStat": {
                    "Metric": {"Namespace": namespace, "MetricName": name, "Dimensions": self.dimensions},
                    "Period": 60,
                    "Stat": statistic,
                },
            }
            for number, (name, (namespace, statistic)) in enumerate(METRICS.items())
        ]
        pages = cloudwatch_client.get_paginator("get_metric_data").paginate(
            StartTime=self.began - datetime.timedelta(minutes=5),
            EndTime=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5),
            MetricDataQueries=queries,
        )
        found = {name: [] for name in METRICS}
        for page in pages:
            for result in page["MetricDataResults"]:
                found[result["Label"]] += result["Values"]
        for name, values in found.items():
            if not values:
                print(f"{name}: no datapoints")
            elif METRICS[name][1] == "Sum":
                print(f"{name}: {sum(values):g} in {len(values)} min")
            elif name.endswith(("Latency", "Time")):
                print(f"{name}: at most {max(values) / 1000:.3g} ms")
            else:
                print(f"{name}: at most {max(values):.3g}")
        return found

    def alarms_went_off(self):
        """Returns how often the alarms of the policies went into ALARM."""
        pages = cloudwatch_client.get_paginator("describe_alarm_history").paginate(HistoryItemType="StateUpdate")
        told = [item for page in pages for item in page["AlarmHistoryItems"] if self.endpoint in item["AlarmName"]]
        return sum(json.loads(item["HistoryData"])["newState"]["stateValue"] == "ALARM" for item in told)

    def release(self, dashboard):
        """Deletes everything that this module has created; the endpoint stays."""
        cloudwatch_client.delete_dashboards(DashboardNames=[dashboard])
        for name in self.policies:
            auto_scaling_client.delete_scaling_policy(**self.variant, PolicyName=name)
        auto_scaling_client.deregister_scalable_target(**self.variant)
