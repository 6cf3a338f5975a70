import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import type { AwsCalls, CallError, Members } from "./client.ts";

const image = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";
const role = "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole";
const type = "application/json";
const text = (...data: readonly number[]) =>
  JSON.stringify({ inputs: [{ name: "X", shape: [data.length], datatype: "FP32", data }] });
/** Returns the numbers of a streamed response. */
const doubles = (response: unknown) =>
  [...String(response).matchAll(/"data":\[([\d.]+)\]/g)].map(([, one]) => Number(one));

/** Options of the steps: a bucket with `model.tar.gz`, a model's name, and whether the client reads event streams. */
export interface HostingOptions {
  readonly name: string;
  readonly archive: Buffer;
  readonly readsEvents: boolean;
}

/** Calls each operation of SageMaker, its runtime and Application Auto Scaling. */
export async function hosting(calls: AwsCalls, options: HostingOptions): Promise<void> {
  const { call } = calls;
  const { name, archive } = options;
  const bucket = `hosting-${name}`;
  await call("s3", "CreateBucket", { Bucket: bucket });
  await call("s3", "PutObject", { Bucket: bucket, Key: "model.tar.gz", Body: archive });
  await call("s3", "PutObject", { Bucket: bucket, Key: "in/one", Body: Buffer.from(text(4)) });
  const PrimaryContainer = { Image: image, ModelDataUrl: `s3://${bucket}/model.tar.gz` };
  const { ModelArn: arn } = await call("sagemaker", "CreateModel", {
    ModelName: name,
    ExecutionRoleArn: role,
    PrimaryContainer,
  });
  assert.equal((await call("sagemaker", "DescribeModel", { ModelName: name }))["ModelArn"], arn);
  const { Models: models } = await call("sagemaker", "ListModels", { NameContains: name });
  assert.deepEqual(
    models.map((each: Members) => each["ModelArn"]),
    [arn],
  );
  await call("sagemaker", "AddTags", { ResourceArn: arn, Tags: [{ Key: "k", Value: "v" }] });
  assert.deepEqual((await call("sagemaker", "ListTags", { ResourceArn: arn }))["Tags"], [{ Key: "k", Value: "v" }]);
  await call("sagemaker", "DeleteTags", { ResourceArn: arn, TagKeys: ["k"] });
  assert.deepEqual((await call("sagemaker", "ListTags", { ResourceArn: arn }))["Tags"], []);

  await endpoint(calls, options);
  await queue(calls, name);
  await components(calls, name);
  await job(calls, name);
  await call("sagemaker", "DeleteModel", { ModelName: name });
  await assert.rejects(call("sagemaker", "DescribeModel", { ModelName: name }), /Could not find model/);
}

const variant = (model: string, more: Members = {}) => ({
  VariantName: "all",
  ModelName: model,
  InstanceType: "ml.m5.large",
  InitialInstanceCount: 1,
  ...more,
});

async function endpoint({ call, wait }: AwsCalls, { name, readsEvents }: HostingOptions): Promise<void> {
  for (const [config, InitialVariantWeight] of [
    [name, 1],
    [`${name}-heavy`, 2],
  ] as const) {
    const ProductionVariants = [variant(name, { InitialVariantWeight })];
    await call("sagemaker", "CreateEndpointConfig", { EndpointConfigName: config, ProductionVariants });
  }
  const described = await call("sagemaker", "DescribeEndpointConfig", { EndpointConfigName: name });
  assert.equal(described["ProductionVariants"][0].ModelName, name);
  const { EndpointConfigs: configs } = await call("sagemaker", "ListEndpointConfigs", { NameContains: name });
  assert.equal(configs.length, 2);
  const named = { EndpointName: name };
  await call("sagemaker", "CreateEndpoint", { ...named, EndpointConfigName: name });
  await wait("sagemaker", "EndpointInService", named);
  const { Endpoints: endpoints } = await call("sagemaker", "ListEndpoints", { NameContains: name });
  assert.equal(endpoints[0].EndpointStatus, "InService");

  const requested = { ...named, ContentType: type, Body: Buffer.from(text(2)) };
  assert.deepEqual(doubles((await call("sagemaker-runtime", "InvokeEndpoint", requested))["Body"]), [4]);
  if (readsEvents) {
    const streamed = { ...requested, Body: Buffer.from(text(1, 2, 3)) };
    const { Body: events } = await call("sagemaker-runtime", "InvokeEndpointWithResponseStream", streamed);
    const parts = events.map((event: Members) => Buffer.from(event["PayloadPart"].Bytes).toString());
    assert.deepEqual(doubles(parts.join("")), [2, 4, 6]);
  }
  await scaling({ call, wait }, name);
  const DeploymentConfig = {
    BlueGreenUpdatePolicy: { TrafficRoutingConfiguration: { Type: "ALL_AT_ONCE", WaitIntervalInSeconds: 0 } },
  };
  await call("sagemaker", "UpdateEndpoint", { ...named, EndpointConfigName: `${name}-heavy`, DeploymentConfig });
  await wait("sagemaker", "EndpointInService", named);
  const DesiredWeightsAndCapacities = [{ VariantName: "all", DesiredWeight: 0.5 }];
  await call("sagemaker", "UpdateEndpointWeightsAndCapacities", { ...named, DesiredWeightsAndCapacities });
  await wait("sagemaker", "EndpointInService", named);
  const updated = await call("sagemaker", "DescribeEndpoint", named);
  assert.deepEqual(
    [updated["EndpointConfigName"], updated["ProductionVariants"][0].CurrentWeight],
    [`${name}-heavy`, 0.5],
  );
  await call("sagemaker", "DeleteEndpoint", named);
  await wait("sagemaker", "EndpointDeleted", named);
  for (const config of [name, `${name}-heavy`]) {
    await call("sagemaker", "DeleteEndpointConfig", { EndpointConfigName: config });
  }
  const { EndpointConfigs: left } = await call("sagemaker", "ListEndpointConfigs", { NameContains: name });
  assert.deepEqual(left, []);
}

const scalingService = "application-autoscaling";

async function scaling({ call }: AwsCalls, name: string): Promise<void> {
  const ServiceNamespace = "sagemaker";
  const target = {
    ServiceNamespace,
    ResourceId: `endpoint/${name}/variant/all`,
    ScalableDimension: "sagemaker:variant:DesiredInstanceCount",
  };
  const found = { ServiceNamespace, ResourceId: target.ResourceId };
  const bounds = { MinCapacity: 1, MaxCapacity: 2 };
  const { ScalableTargetARN: ResourceARN } = await call(scalingService, "RegisterScalableTarget", {
    ...target,
    ...bounds,
  });
  const { ScalableTargets: targets } = await call(scalingService, "DescribeScalableTargets", {
    ServiceNamespace,
    ResourceIds: [target.ResourceId],
  });
  assert.equal(targets[0].MaxCapacity, 2);
  await call(scalingService, "TagResource", { ResourceARN, Tags: { k: "v" } });
  assert.deepEqual((await call(scalingService, "ListTagsForResource", { ResourceARN }))["Tags"], { k: "v" });
  await call(scalingService, "UntagResource", { ResourceARN, TagKeys: ["k"] });
  assert.deepEqual((await call(scalingService, "ListTagsForResource", { ResourceARN }))["Tags"], {});
  const policy = { ...target, PolicyName: "busy" };
  const TargetTrackingScalingPolicyConfiguration = {
    TargetValue: 1000,
    PredefinedMetricSpecification: { PredefinedMetricType: "SageMakerVariantInvocationsPerInstance" },
  };
  const { Alarms: alarms } = await call(scalingService, "PutScalingPolicy", {
    ...policy,
    PolicyType: "TargetTrackingScaling",
    TargetTrackingScalingPolicyConfiguration,
  });
  assert.equal(alarms.length, 2);
  assert.equal((await call(scalingService, "DescribeScalingPolicies", found))["ScalingPolicies"][0].PolicyName, "busy");
  await call(scalingService, "DeleteScalingPolicy", policy);
  assert.deepEqual((await call(scalingService, "DescribeScalingPolicies", found))["ScalingPolicies"], []);
  const action = { ...target, ScheduledActionName: "nightly" };
  const nightly = { Schedule: "cron(0 3 * * ? *)", ScalableTargetAction: { MinCapacity: 1, MaxCapacity: 1 } };
  await call(scalingService, "PutScheduledAction", { ...action, ...nightly });
  const { ScheduledActions: actions } = await call(scalingService, "DescribeScheduledActions", found);
  assert.equal(actions[0].Schedule, nightly.Schedule);
  await call(scalingService, "DeleteScheduledAction", action);
  assert.deepEqual((await call(scalingService, "DescribeScheduledActions", found))["ScheduledActions"], []);
  assert.deepEqual((await call(scalingService, "DescribeScalingActivities", found))["ScalingActivities"], []);
  await call(scalingService, "DeregisterScalableTarget", target);
  const { ScalableTargets: left } = await call(scalingService, "DescribeScalableTargets", { ServiceNamespace });
  assert.deepEqual(
    left.filter((each: Members) => each["ResourceId"] === target.ResourceId),
    [],
  );
}

/** Tests an asynchronous endpoint. */
async function queue({ call, wait }: AwsCalls, name: string): Promise<void> {
  const queued = `${name}-queued`;
  const bucket = `hosting-${name}`;
  await call("sagemaker", "CreateEndpointConfig", {
    EndpointConfigName: queued,
    ProductionVariants: [variant(name)],
    AsyncInferenceConfig: { OutputConfig: { S3OutputPath: `s3://${bucket}/out` } },
  });
  await call("sagemaker", "CreateEndpoint", { EndpointName: queued, EndpointConfigName: queued });
  await wait("sagemaker", "EndpointInService", { EndpointName: queued });
  const { OutputLocation: location } = await call("sagemaker-runtime", "InvokeEndpointAsync", {
    EndpointName: queued,
    ContentType: type,
    InputLocation: `s3://${bucket}/in/one`,
  });
  const output = { Bucket: bucket, Key: location.replace(`s3://${bucket}/`, "") };
  await wait("s3", "ObjectExists", output);
  assert.deepEqual(doubles((await call("s3", "GetObject", output))["Body"]), [8]);
  await call("sagemaker", "DeleteEndpoint", { EndpointName: queued });
  await wait("sagemaker", "EndpointDeleted", { EndpointName: queued });
}

async function components({ call, wait }: AwsCalls, name: string): Promise<void> {
  const shared = `${name}-shared`;
  const { ModelName: _, ...bare } = variant(name);
  await call("sagemaker", "CreateEndpointConfig", {
    EndpointConfigName: shared,
    ExecutionRoleArn: role,
    ProductionVariants: [bare],
  });
  await call("sagemaker", "CreateEndpoint", { EndpointName: shared, EndpointConfigName: shared });
  await wait("sagemaker", "EndpointInService", { EndpointName: shared });
  const component = { InferenceComponentName: name };
  const Specification = {
    ModelName: name,
    ComputeResourceRequirements: { NumberOfCpuCoresRequired: 0.25, MinMemoryRequiredInMb: 256 },
  };
  await call("sagemaker", "CreateInferenceComponent", {
    ...component,
    EndpointName: shared,
    VariantName: "all",
    Specification,
    RuntimeConfig: { CopyCount: 1 },
  });
  const settled = () => state(call, component, ({ InferenceComponentStatus: at }) => at === "InService");
  await settled();
  const requested = { EndpointName: shared, ContentType: type, Body: Buffer.from(text(5)) };
  assert.deepEqual(
    doubles((await call("sagemaker-runtime", "InvokeEndpoint", { ...requested, ...component }))["Body"]),
    [10],
  );
  const ofEndpoint = { EndpointNameEquals: shared };
  const { InferenceComponents: listed } = await call("sagemaker", "ListInferenceComponents", ofEndpoint);
  assert.equal(listed[0].InferenceComponentName, name);
  const larger = { ...Specification.ComputeResourceRequirements, MinMemoryRequiredInMb: 300 };
  await call("sagemaker", "UpdateInferenceComponent", {
    ...component,
    Specification: { ...Specification, ComputeResourceRequirements: larger },
  });
  await settled();
  const { Specification: specified } = await call("sagemaker", "DescribeInferenceComponent", component);
  assert.equal(specified.ComputeResourceRequirements.MinMemoryRequiredInMb, 300);
  await call("sagemaker", "UpdateInferenceComponentRuntimeConfig", {
    ...component,
    DesiredRuntimeConfig: { CopyCount: 0 },
  });
  await state(call, component, ({ RuntimeConfig: { CurrentCopyCount: count } }) => count === 0);
  await call("sagemaker", "DeleteInferenceComponent", component);
  await until(
    async () => (await call("sagemaker", "ListInferenceComponents", ofEndpoint))["InferenceComponents"].length === 0,
  );
  await call("sagemaker", "DeleteEndpoint", { EndpointName: shared });
  await wait("sagemaker", "EndpointDeleted", { EndpointName: shared });
}

/** Tests a transform job that completes, and one that is stopped. */
async function job({ call, wait }: AwsCalls, name: string): Promise<void> {
  const bucket = `hosting-${name}`;
  const asked = (TransformJobName: string) => ({
    TransformJobName,
    ModelName: name,
    TransformInput: {
      DataSource: { S3DataSource: { S3DataType: "S3Prefix", S3Uri: `s3://${bucket}/in` } },
      ContentType: type,
    },
    TransformOutput: { S3OutputPath: `s3://${bucket}/transformed` },
    TransformResources: { InstanceType: "ml.m5.xlarge", InstanceCount: 1 },
  });
  await call("sagemaker", "CreateTransformJob", asked(name));
  const stopped = { TransformJobName: `${name}-stopped` };
  await call("sagemaker", "CreateTransformJob", asked(stopped.TransformJobName));
  const end = await call("sagemaker", "StopTransformJob", stopped).then(
    () => "Stopped",
    (error: CallError) => {
      assert.match(error.message, /only one that is InProgress can be stopped/);
      return "Completed";
    },
  );
  await wait("sagemaker", "TransformJobCompletedOrStopped", { TransformJobName: name });
  const { TransformJobStatus: status } = await call("sagemaker", "DescribeTransformJob", { TransformJobName: name });
  assert.equal(status, "Completed");
  const { Body: response } = await call("s3", "GetObject", { Bucket: bucket, Key: "transformed/one.out" });
  assert.deepEqual(doubles(response), [8]);
  await wait("sagemaker", "TransformJobCompletedOrStopped", stopped);
  assert.equal((await call("sagemaker", "DescribeTransformJob", stopped))["TransformJobStatus"], end);
  const { TransformJobSummaries: jobs } = await call("sagemaker", "ListTransformJobs", { NameContains: name });
  assert.equal(jobs.length, 2);
}

const state = (call: AwsCalls["call"], component: Members, fits: (found: Members) => boolean) =>
  until(async () => fits(await call("sagemaker", "DescribeInferenceComponent", component)));

/**
 * Polls as notebooks do for operations without a waiter. DescribeInferenceComponent is a long poll while a component
 * changes.
 */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pause(50);
}
