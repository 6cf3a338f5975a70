import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";
import { startDocker } from "./docker-engine.ts";

const engine = await startDocker("toolkit");
after(() => engine[Symbol.asyncDispose]());

test("boto3 deploys containers with SageMaker's inference toolkit and multi-model-server, with one model and with many", async () => {
  const image = await engine.build("toolkit");
  await using platform = await ScriptedPlatform.open([`--container-engine=${engine.address}`]);
  const printed = await platform.run(join(import.meta.dirname, "toolkit_image.py"), [image]);
  assert.deepEqual(printed.trim().split("\n"), [
    "one application/json [4.0, 9.0]",
    "model error 500 True",
    "logged",
    "many a application/json [13.0, 18.0]",
    "many b application/json [23.0, 28.0]",
    "many a application/json [13.0, 18.0]",
    "model error 500 True",
    "ValidationError",
    "replaced application/json [33.0, 38.0]",
  ]);
  assert.equal(await engine.docker("ps", "--all", "--quiet"), "");
});
