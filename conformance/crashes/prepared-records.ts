import assert from "node:assert/strict";
import { RegisterScalableTargetCommand } from "@aws-sdk/client-application-auto-scaling";
import { CreateBucketCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateEndpointCommand, CreateEndpointConfigCommand, CreateModelCommand } from "@aws-sdk/client-sagemaker";
import { NoResponse } from "./acknowledged-value.ts";
import { bucket, type Clients, type Workload } from "./clients.ts";
import { stableEndpoint } from "./hosting-workloads.ts";
import { modelArchive, requestBody } from "./model-archive.ts";

const image = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";
/** The models of the endpoint `many`. */
export const models = ["m1.tar.gz", "m2.tar.gz"];

/** Creates the models, the configurations and the endpoints that exist during all runs. */
export async function prepare(clients: Clients): Promise<void> {
  const { s3, sagemaker, scaling } = clients;
  const archive = await modelArchive();
  await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  const objects = {
    question: requestBody,
    "one/model.tar.gz": archive,
    ...Object.fromEntries(models.map((m) => [`many/${m}`, archive])),
  };
  for (const [Key, Body] of Object.entries(objects)) await s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
  const containers = {
    one: { Image: image, ModelDataUrl: `s3://${bucket}/one/model.tar.gz` },
    many: { Image: image, ModelDataUrl: `s3://${bucket}/many/`, Mode: "MultiModel" as const },
  };
  for (const [ModelName, PrimaryContainer] of Object.entries(containers)) {
    const ExecutionRoleArn = "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole";
    await sagemaker.send(new CreateModelCommand({ ModelName, ExecutionRoleArn, PrimaryContainer }));
  }
  const variant = { VariantName: "v", InitialInstanceCount: 1, InstanceType: "ml.m5.large" as const };
  const AsyncInferenceConfig = { OutputConfig: { S3OutputPath: `s3://${bucket}/answers/` } };
  const configs = [
    { EndpointConfigName: "first", ProductionVariants: [{ ...variant, ModelName: "one" }] },
    { EndpointConfigName: "second", ProductionVariants: [{ ...variant, ModelName: "one" }] },
    ...["third", "fourth"].map((EndpointConfigName) => ({
      EndpointConfigName,
      ProductionVariants: [{ ...variant, ModelName: "one", InitialInstanceCount: 2 }],
    })),
    { EndpointConfigName: "many", ProductionVariants: [{ ...variant, ModelName: "many" }] },
    { EndpointConfigName: "queued", ProductionVariants: [{ ...variant, ModelName: "one" }], AsyncInferenceConfig },
    {
      EndpointConfigName: "shared",
      ProductionVariants: [variant],
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole",
    },
  ];
  for (const config of configs) await sagemaker.send(new CreateEndpointConfigCommand(config));
  const staying = ["many", "queued", "shared"];
  for (const name of staying) {
    await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
  }
  for (const name of staying) assert.equal((await stableEndpoint(clients, name))?.status, "InService");
  const ResourceId = "endpoint/queued/variant/v";
  const target = {
    ServiceNamespace: "sagemaker",
    ScalableDimension: "sagemaker:variant:DesiredInstanceCount",
  } as const;
  await scaling.send(new RegisterScalableTargetCommand({ ...target, ResourceId, MinCapacity: 1, MaxCapacity: 1 }));
}

/** Runs the workload's steps one after another until the platform is killed. */
export async function operate(workload: Workload, clients: Clients, dead: Promise<void>): Promise<void> {
  try {
    await workload.begin(clients);
    for (;;) await workload.step(clients);
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error;
    await dead;
  }
}
