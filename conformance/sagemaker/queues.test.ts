import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const queues = fileURLToPath(new URL("queues.py", import.meta.url));
let platform: ScriptedPlatform;
const run = (step: string, environment: "clients" | "sagemaker-v2" = "clients") =>
  platform.run(queues, [step], { proxy: true, environment });

before(async () => {
  // The scripts' own HTTP endpoints receive the messages of SNS.
  platform = await ScriptedPlatform.open(["--topics-to-this-machine"]);
});
after(() => platform[Symbol.asyncDispose]());

test("boto3 creates SNS topics and subscriptions, publishes messages, and receives notifications of alarms", async () => {
  await run("topics");
});

test("asynchronous inference with boto3 returns results, failures and notifications, and accepted requests survive kill -9 of the platform", async () => {
  await run("boto3");
  await run("accept");
  await platform.killAndStartAgain();
  await run("after-restart");
});

test("the sagemaker SDK invokes asynchronously with AsyncInferenceConfig, AsyncPredictor and WaiterConfig", async () => {
  await run("sdk", "sagemaker-v2");
});
