/** The example as its README part says, with the photographs of scikit-learn; the truth is PyTorch's own forward without TorchScript. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
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

test("two photographs have the classes that PyTorch computes for them", async () => {
  const { python: clients } = await ensureEnvironment(cacheDirectory(process.env), "photographs");
  const asked = [beside("classify.py"), `127.0.0.1:${server.httpPort}`, "--save", directory];
  const { stdout } = await run(clients, asked);
  assert.match(stdout, /^china\.jpg: class \d+ \(.*\nflower\.jpg: class \d+ \(.*\n$/);

  await run(python, [
    beside("resnet50.py"),
    "answer",
    join(directory, "models"),
    join(directory, "sent.f32"),
    join(directory, "computed.f32"),
  ]);
  const [answered, computed] = await Promise.all([numbers("answered.f32"), numbers("computed.f32")]);
  assert.equal(answered.length, 2000);
  const [china, flower] = [computed.subarray(0, 1000), computed.subarray(1000)];
  const spread = Math.max(...china) - Math.min(...china);
  // Both would pass with anything if all pictures were answered alike.
  assert.notEqual(china.indexOf(Math.max(...china)), flower.indexOf(Math.max(...flower)));
  assert.ok(spread > 1 && largestApart(china, flower) > 0.1 * spread, `spread ${spread}`);
  assert.ok(largestApart(answered, computed) <= 1e-4 * spread, `${largestApart(answered, computed)} apart`);
});
