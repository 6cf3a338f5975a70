import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ensureFramework } from "../environments/index.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";

const program = fileURLToPath(new URL("model_builder.py", import.meta.url));
let platform: ScriptedPlatform;

before(async () => {
  platform = await ScriptedPlatform.open();
  for (const name of ["pytorch", "sklearn"] as const) await ensureFramework(name);
});
after(() => platform[Symbol.asyncDispose]());

for (const kind of ["pytorch", "scikit-learn"]) {
  test(`the sagemaker SDK v3 deploys a ModelBuilder with an inference_spec in the ${kind} container`, async () => {
    const output = await platform.run(program, [kind], { proxy: true, environment: "sagemaker-v3" });
    assert.equal(output.match(/^ok/gm)?.length, 3, output);
  });
}
