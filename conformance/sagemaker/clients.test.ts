import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { platformOperations } from "./conversation/platform-operations.ts";
import { ScriptedPlatform } from "./scripted-platform.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
let platform: ScriptedPlatform;

before(async () => {
  platform = await ScriptedPlatform.open();
});
after(() => platform[Symbol.asyncDispose]());

test("the sagemaker SDK v3 creates resources and deploys with ModelBuilder", async () => {
  const output = await platform.run(path("sdk_v3.py"), [], { proxy: true, environment: "sagemaker-v3" });
  assert(!output.includes("FAILED"), output);
});

test("the sagemaker SDK v3 handles updates, components, streams, asynchronous, serverless and multi-model endpoints and transform jobs", async () => {
  const operations = (await platformOperations()).flatMap(
    (operation) => /^sagemaker(?:-runtime)?\.(.*)$/.exec(operation)?.[1] ?? [],
  );
  assert.ok(operations.length >= 30, `${operations.length}`);
  const output = await platform.run(path("sdk_v3_hosting.py"), operations, {
    proxy: true,
    environment: "sagemaker-v3",
  });
  assert(!output.includes("FAILED"), output);
});

test("the AWS CLI creates a bucket, deploys an endpoint, invokes it and reads its logs", async () => {
  await platform.run(path("aws_cli.py"), [], { proxy: true, environment: "aws-cli" });
});
