import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const queues = fileURLToPath(new URL("queues.py", import.meta.url));
let platform: ScriptedPlatform;
const run = (step: string, environment: "clients" | "sagemaker-v2" = "clients") =>
  platform.run(queues, [step], { proxy: true, environment });

before(async () => {
  // The scripts receive what SNS sends themselves.
  platform = await ScriptedPlatform.open(["--topics-to-this-machine"]);
});
after(() => platform[Symbol.asyncDispose]());

test("SNS with the real boto3: topics, subscriptions, messages, alarms that are told", async () => {
  await run("topics");
});

test("asynchronous inference with the real boto3: answers, failures, messages, refusals, no instances; what a platform that is killed had accepted is answered by the next one", async () => {
  await run("boto3");
  await run("accept");
  await platform.killAndStartAgain();
  await run("after-restart");
});

test("the sagemaker SDK: AsyncInferenceConfig, AsyncPredictor, WaiterConfig", async () => {
  await run("sdk", "sagemaker-v2");
});
