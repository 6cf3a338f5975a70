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

test("inference pipelines and containers in Direct mode with the real boto3", async () => {
  await platform.run(pipelines, ["boto3"], { proxy: true });
});

test("alarms and autoscaling with the real boto3: policies, what alarms run, bounds, what goes with an endpoint", async () => {
  await platform.run(scaling, [], { proxy: true });
});

test("CloudWatch Logs with the real boto3: filter patterns, the loop of `aws logs tail --follow`, retention", async () => {
  await platform.run(logs, [], { proxy: true });
});

test("listings by botocore's paginators, one item a page, while others come and go; tokens that no listing gave", async () => {
  const output = await platform.run(pages, []);
  assert(!output.includes("FAILED"), output);
});

test("the sagemaker SDK: PipelineModel.deploy", async () => {
  await platform.run(pipelines, ["sdk"], sdk);
});

test("the sagemaker SDK: default bucket, execution role, Model.deploy, MultiDataModel", async () => {
  await platform.run(workflow, ["sdk"], sdk);
});

test("what is not built is refused by name, with what to do instead: training, processing, tuning and all other operations", async () => {
  const operations = (await platformOperations()).flatMap((each) => /^sagemaker\.(.*)$/.exec(each)?.[1] ?? []);
  await platform.run(refusals, operations, { proxy: true });
});
