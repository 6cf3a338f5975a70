import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";
import { startDocker } from "./docker-engine.ts";

const engine = await startDocker();
after(() => engine[Symbol.asyncDispose]());

test("boto3 deploys a container with nginx, gunicorn and Flask, invokes it, reads its log and deletes it", async () => {
  const image = await engine.build("flask");
  await using platform = await ScriptedPlatform.open([`--container-engine=${engine.address}`]);
  const printed = await platform.run(join(import.meta.dirname, "own_image.py"), [image]);
  assert.deepEqual(printed.trim().split("\n"), [
    "scores ['4', '9'] text/csv; charset=utf-8",
    "refused 415 this model reads text/csv only",
    "logged",
  ]);
  assert.equal(await engine.docker("ps", "--all", "--quiet"), "");
});
