/** Every operation of the platform is called by every kind of client. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { create } from "tar";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { callers, openBoto3, openCli } from "./conversation/callers.ts";
import { hosting } from "./conversation/hosting.ts";
import { metrics } from "./conversation/metrics.ts";
import { objects } from "./conversation/objects.ts";
import { platformOperations } from "./conversation/platform-operations.ts";
import type { AwsCalls } from "./conversation/client.ts";
import { logs } from "./conversation/log-groups.ts";
import { identities, topics } from "./conversation/small-services.ts";
import { ScriptedPlatform } from "./scripted-platform.ts";

/** A decoupled model that sends the double of each number as a separate response. */
const model = {
  "config.pbtxt": `name: "double" backend: "python" model_transaction_policy { decoupled: true }
    input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]`,
  "1/model.py": `
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in pb_utils.get_input_tensor_by_name(request, "X").as_numpy():
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", number.reshape(1) * 2)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
`,
};

let platform: ScriptedPlatform;
let archive: Buffer;

before(async () => {
  // A subscription's endpoint is a server of this test.
  platform = await ScriptedPlatform.open(["--topics-to-this-machine"]);
  for (const [path, text] of Object.entries(model)) {
    await mkdir(join(platform.directory, "repository/double/1"), { recursive: true });
    await writeFile(join(platform.directory, "repository/double", path), text);
  }
  const file = join(platform.directory, "model.tar.gz");
  await create({ gzip: true, file, cwd: join(platform.directory, "repository") }, ["double"]);
  archive = await readFile(file);
});
after(() => platform[Symbol.asyncDispose]());

for (const { name, lacks, open } of callers) {
  test(`${name}: every operation of the platform is called and responds`, async () => {
    await using caller = await open(await platform.variables());
    const operations = await platformOperations();
    const requested = new Set<string>();
    const calls: AwsCalls = {
      wait: (service, waiter, input) => caller.wait(service, waiter, input),
      call: (service, operation, input) => {
        requested.add(`${service}.${operation}`);
        return caller.call(service, operation, input);
      },
    };
    await identities(calls, name);
    await topics(calls, name);
    await logs(calls, { name, tails: lacks.length === 0 });
    await objects(calls, name);
    await metrics(calls, name);
    await hosting(calls, { name, archive, readsEvents: lacks.length === 0 });
    const isOwed = (operation: string) => !requested.has(operation) && !lacks.includes(operation);
    assert.deepEqual(operations.filter(isOwed), []);
  });
}

test("aws logs start-live-tail prints events as they are written, until it is interrupted", async () => {
  const variables = await platform.variables();
  await using caller = await openBoto3(variables);
  const group = { logGroupName: "/tails/cli" };
  const stream = { ...group, logStreamName: "one" };
  await caller.call("logs", "CreateLogGroup", group);
  await caller.call("logs", "CreateLogStream", stream);
  const { logGroups: groups } = await caller.call("logs", "DescribeLogGroups", { logGroupNamePrefix: "/tails/" });
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "aws-cli");
  const words = ["logs", "start-live-tail", "--log-group-identifiers", groups[0].logGroupArn];
  const child = spawn(python, ["-m", "awscli", ...words, "--log-event-filter-pattern", "heard -un"], {
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const printed: string[] = [];
  child.stdout.on("data", (text) => printed.push(String(text)));
  // The command does not print when its session has started, so events are written until one is printed.
  while (printed.length === 0) {
    const logEvents = ["un heard", "heard here"].map((message) => ({ timestamp: Date.now(), message }));
    await caller.call("logs", "PutLogEvents", { ...stream, logEvents });
    await pause(100);
  }
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [0, null]);
  assert.match(printed.join(""), /^(heard here\n)+$/);
});

test("aws s3 copies, synchronizes, moves and removes folders with a multipart object", async () => {
  await using caller = await openCli(await platform.variables());
  const aws = async (...words: readonly string[]) =>
    String((await caller.call("shell", "s3", { Words: ["s3", ...words] }))["Output"]);
  const folder = join(platform.directory, "folder");
  await mkdir(join(folder, "deep"), { recursive: true });
  const large = randomBytes(20 * 2 ** 20);
  await writeFile(join(folder, "large"), large);
  await writeFile(join(folder, "deep/small"), "small");
  await aws("mb", "s3://copied");
  await aws("cp", join(folder, "large"), "s3://copied/large");
  assert.doesNotMatch(await aws("sync", folder, "s3://copied"), /large/, "what is there is not sent again");
  assert.match(await aws("ls", "--recursive", "s3://copied"), /5 deep\/small\n.* 20971520 large\n/);
  // The CLI copies objects of more than 8 MiB in parts, and reads them in concurrent ranges.
  await aws("mv", "s3://copied/large", "s3://copied/moved/large");
  await aws("sync", "s3://copied/moved", join(folder, "back"));
  assert((await readFile(join(folder, "back/large"))).equals(large));
  await aws("rm", "--recursive", "s3://copied");
  await aws("rb", "s3://copied");
  await assert.rejects(aws("ls", "s3://copied"), /NoSuchBucket/);
});
