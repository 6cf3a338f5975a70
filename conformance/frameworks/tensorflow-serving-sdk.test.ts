import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";
import { ServingArchives } from "./serving-fixture.ts";

let archives: ServingArchives;
let platform: ScriptedPlatform;

before(async () => {
  archives = await ServingArchives.make();
  platform = await ScriptedPlatform.open();
});
after(async () => {
  await platform[Symbol.asyncDispose]();
  await archives[Symbol.asyncDispose]();
});

test("the sagemaker SDK deploys a TensorFlowModel, a script and a MultiDataModel, predicts, and runs a transform job", async () => {
  const program = fileURLToPath(new URL("tensorflow_containers.py", import.meta.url));
  await platform.run(program, [archives.directory], { proxy: true, environment: "sagemaker-v2" });
});
