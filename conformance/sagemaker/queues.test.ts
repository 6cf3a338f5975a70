import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const queues = fileURLToPath(new URL("queues.py", import.meta.url));
let platform: ScriptedPlatform;
const run = (step: string) => platform.run(queues, [step], { proxy: true });

before(async () => {
  // The scripts receive what SNS sends themselves.
  platform = await ScriptedPlatform.open(["--topics-to-this-machine"]);
});
after(() => platform[Symbol.asyncDispose]());

test("SNS with the real boto3: topics, subscriptions, messages, alarms that are told", async () => {
  await run("topics");
});

test("asynchronous inference with the real boto3: answers, failures, messages, refusals, no instances", async () => {
  await run("boto3");
});

test("what was accepted by a platform that is killed is answered by the next one", async () => {
  await run("accept");
  await platform.killAndStartAgain();
  await run("after-restart");
});

test("the sagemaker SDK: AsyncInferenceConfig, AsyncPredictor, WaiterConfig", async () => {
  await run("sdk");
});
