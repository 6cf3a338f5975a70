/** Requests that a serverless variant accepts run concurrently, in the number of workers that fit in its memory. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateEndpointCommand, CreateEndpointConfigCommand, CreateModelCommand } from "@aws-sdk/client-sagemaker";
import { faultyRequest } from "./http-client.ts";
import { outputOfCode, writeCallingModel } from "./calling-model.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, endpointIs, image, invoke, Platform } from "./platform.ts";
import { openServing } from "./serving.ts";
import { tarball } from "./tarball.ts";
import { pidIn } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url), "utf8");
const concurrency = 5;
let platform: Platform;

before(async () => {
  platform = await Platform.open();
});
after(() => platform[Symbol.asyncDispose]());

async function deploy(name: string, text: string): Promise<void> {
  const archive = tarball([
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: text },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${name}.tar.gz`, Body: archive }));
  await platform.sagemaker.send(
    new CreateModelCommand({
      ModelName: name,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      PrimaryContainer: {
        Image: image,
        ModelDataUrl: `s3://${bucket}/${name}.tar.gz`,
        Environment: { FAULTS_MEETING: platform.workspace.meeting },
      },
    }),
  );
  await platform.sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: name,
      ProductionVariants: [
        {
          VariantName: "all",
          ModelName: name,
          ServerlessConfig: { MemorySizeInMB: 1024, MaxConcurrency: concurrency },
        },
      ],
    }),
  );
  await platform.sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
  await endpointIs(platform, name, "InService");
}

/** A request that blocks its model until `release` is called. */
function hold(name: string, word: string) {
  const response = invoke(platform, name, null, faultyRequest(`hold ${word}`));
  response.catch(() => {});
  const marker = join(platform.workspace.meeting, word);
  return { answer: response, running: () => pidIn(`${marker}.running`), go: () => writeFile(`${marker}.go`, "") };
}

test("MaxConcurrency requests are executed at the same time, each in its own worker", async () => {
  await deploy("wide", program);
  const pending = Array.from({ length: concurrency }, (_, index) => hold("wide", `wide-${index}`));
  const pids = await Promise.all(pending.map(({ running }) => running()));
  assert.equal(new Set(pids).size, concurrency);
  await Promise.all(pending.map(({ go }) => go()));
  for (const { answer } of pending) assert.match(await answer, /"OUT"/);
});

test("workers that do not fit the variant's memory are not started; the other workers execute their requests", async () => {
  const large = program.replace("self.kept = []", "self.kept = [np.ones(300 << 20, np.uint8)]");
  await deploy("large", large);
  const pending = Array.from({ length: concurrency }, (_, index) => hold("large", `large-${index}`));
  const pids = new Set<number>();
  for (const { answer, running, go } of pending) {
    pids.add(await running());
    await go();
    assert.match(await answer, /"OUT"/);
  }
  assert.ok(pids.size <= 3, `${pids.size} workers of 300 MiB each in 1 GiB`);
});

test("a model that calls itself is executed by an instance that is started for the call, however long that takes", async () => {
  await using serving = await openServing({
    flags: ["--model-control-mode=explicit", "--load-model=self", "--python-instances-on-demand=2"],
    write: ({ repository }) => writeCallingModel(repository, "self"),
  });
  const port = serving.server.httpPort;
  // The inner call takes longer than a call in a deadlock, which fails after about a second.
  const inner = "time.sleep(2.5); out = os.getpid()";
  assert.match(await outputOfCode(port, "self", `out = call("self", ${JSON.stringify(inner)})`), /^\[\[b'\d+'\]\]$/);
  // If all instances wait for each other, the newest call fails.
  const deep = `out = call("self", ${JSON.stringify(`out = call("self", "out = 1")`)})`;
  assert.match(await outputOfCode(port, "self", deep), /waits for 'self', whose instances all wait/);
});
