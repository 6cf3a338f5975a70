/**
 * Runs the example as README describes, with scikit-learn's photographs, and compares the results with PyTorch's own
 * forward pass without TorchScript.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ScriptedPlatform } from "../../conformance/sagemaker/scripted-platform.ts";
import {
  cacheDirectory,
  ensureEnvironment,
  ensureFramework,
  startGalatea,
  type RunningServer,
} from "../../conformance/environments/index.ts";

const run = promisify(execFile);
const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

let directory: string;
let python: string;
let server: RunningServer;
before(async () => {
  ({ python } = await ensureFramework("pytorch"));
  directory = await mkdtemp(join(tmpdir(), "galatea-resnet50-"));
  const { stdout } = await run(python, [beside("resnet50.py"), "write", join(directory, "models")]);
  assert.match(stdout, /25557032 parameters/);
  server = await startGalatea({ repositories: [join(directory, "models")] });
});
after(async () => {
  await server?.stop();
  await rm(directory, { recursive: true, force: true });
});

async function numbers(name: string): Promise<Float32Array> {
  const bytes = await readFile(join(directory, name));
  return new Float32Array(new Uint8Array(bytes).buffer);
}

const largestApart = (a: Float32Array, b: Float32Array) =>
  a.reduce((most, value, index) => Math.max(most, Math.abs(value - b[index]!)), 0);

test("two photographs get the classes that PyTorch computes", async () => {
  const { python: clients } = await ensureEnvironment(cacheDirectory(process.env), "photographs");
  const requested = [beside("classify.py"), `127.0.0.1:${server.httpPort}`, "--save", directory];
  const { stdout } = await run(clients, requested);
  assert.match(stdout, /^china\.jpg: class \d+ \(.*\nflower\.jpg: class \d+ \(.*\n$/);

  await run(python, [
    beside("resnet50.py"),
    "answer",
    join(directory, "models"),
    join(directory, "sent.f32"),
    join(directory, "computed.f32"),
  ]);
  const [responses, computed] = await Promise.all([numbers("answered.f32"), numbers("computed.f32")]);
  assert.equal(responses.length, 2000);
  const [china, flower] = [computed.subarray(0, 1000), computed.subarray(1000)];
  const spread = Math.max(...china) - Math.min(...china);
  // Equal results for both pictures would make the comparison meaningless.
  assert.notEqual(china.indexOf(Math.max(...china)), flower.indexOf(Math.max(...flower)));
  assert.ok(spread > 1 && largestApart(china, flower) > 0.1 * spread, `spread ${spread}`);
  assert.ok(largestApart(responses, computed) <= 1e-4 * spread, `${largestApart(responses, computed)} apart`);
});

test("boto3 deploys the model on a multi-model endpoint with autoscaling and reads its metrics", async () => {
  const { python: clients } = await ensureEnvironment(cacheDirectory(process.env), "photographs");
  const { stdout } = await run(clients, ["-c", "from classify import photographs; print(*photographs())"], {
    cwd: beside("."),
  });
  await using platform = await ScriptedPlatform.open();
  const models = join(directory, "models");
  const requested = [models, models, "--pictures", ...stdout.trim().split(" ")];
  const output = await platform.run(beside("autoscaled_endpoint.py"), requested, { environment: "photographs" });
  const lines = output.trimEnd().split("\n");
  const classes = lines.filter((line) => / is class \d+ /.test(line)).map((line) => line.replace(/^\S+ /, ""));
  assert.equal(classes.length, 4, output);
  assert.deepEqual(classes.slice(0, 2), classes.slice(2), "one model under two names");
  assert.deepEqual(
    lines.filter((line) => line.includes("ScalingPolicy: ")),
    [
      "GPUUtil-ScalingPolicy: GreaterThanThreshold 60 for 3 min",
      "GPUUtil-ScalingPolicy: LessThanThreshold 54 for 15 min",
      "Invocations-ScalingPolicy: GreaterThanThreshold 1000 for 3 min",
      "Invocations-ScalingPolicy: LessThanThreshold 900 for 15 min",
    ],
  );
  assert(lines.includes("Invocations: 2") && lines.includes("ModelCacheHit: 0"), output);
  assert.equal(lines.at(-1), "done");
});
