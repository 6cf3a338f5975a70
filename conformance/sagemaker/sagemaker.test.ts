import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { platformOperations } from "./conversation/platform-operations.ts";
import { ScriptedPlatform } from "./scripted-platform.ts";

const workflow = fileURLToPath(new URL("workflow.py", import.meta.url));
const refusals = fileURLToPath(new URL("refusals.py", import.meta.url));
const scaling = fileURLToPath(new URL("scaling.py", import.meta.url));
const pipelines = fileURLToPath(new URL("pipelines.py", import.meta.url));
const logs = fileURLToPath(new URL("logs.py", import.meta.url));
const pages = fileURLToPath(new URL("pages.py", import.meta.url));
let platform: ScriptedPlatform;
const sdk = { proxy: true, environment: "sagemaker-v2" } as const;

before(async () => {
  platform = await ScriptedPlatform.open();
});
after(() => platform[Symbol.asyncDispose]());

test("boto3 deploys and invokes inference pipelines and containers in Direct mode", async () => {
  await platform.run(pipelines, ["boto3"], { proxy: true });
});

test("boto3 creates alarms and scaling policies, which act within their bounds and are deleted with their endpoint", async () => {
  await platform.run(scaling, [], { proxy: true });
});

test("boto3 uses CloudWatch Logs' filter patterns, retention and the polling of `aws logs tail --follow`", async () => {
  await platform.run(logs, [], { proxy: true });
});

test("botocore's paginators list all resources with one item a page while others change, and invalid tokens are rejected", async () => {
  const output = await platform.run(pages, []);
  assert(!output.includes("FAILED"), output);
});

test("the sagemaker SDK deploys a PipelineModel", async () => {
  await platform.run(pipelines, ["sdk"], sdk);
});

test("the sagemaker SDK gets a default bucket and an execution role, and deploys a Model and a MultiDataModel", async () => {
  await platform.run(workflow, ["sdk"], sdk);
});

test("unsupported operations (training, processing, tuning and others) are rejected by name with advice", async () => {
  const operations = (await platformOperations()).flatMap((each) => /^sagemaker\.(.*)$/.exec(each)?.[1] ?? []);
  await platform.run(refusals, operations, { proxy: true });
});
