/** Model files of PyTorch's that are damaged or made to harm: each fails its own load, with a sentence, and nobody else. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework, startGalatea, type RunningServer } from "../environments/index.ts";
import { floats, infer, load } from "./framework-fixture.ts";

let directory: string;
let marker: string;
let secret: string;
let server: RunningServer;
let refused: readonly string[];
before(async () => {
  const { python } = await ensureFramework("pytorch");
  directory = await mkdtemp(join(tmpdir(), "galatea-hostile-pytorch-"));
  marker = join(directory, "marker");
  secret = join(directory, "secret");
  await writeFile(secret, new Float32Array([1, 2, 3, 4]));
  const script = fileURLToPath(new URL("pytorch_hostile.py", import.meta.url));
  const { stdout } = await promisify(execFile)(python, [script, join(directory, "repository"), marker, secret]);
  refused = stdout.trim().split("\n");
  const repositories = [join(directory, "repository")];
  server = await startGalatea({ repositories, flags: ["--model-control-mode=explicit", "--load-model=good"] });
});
after(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

async function goodAnswers(): Promise<void> {
  const reply = await infer(server, "good", [floats("INPUT__0", [1, 2, 3, 4], [1, 4])], ["OUTPUT__0"]);
  assert.equal(reply.error, undefined);
  assert.equal(reply.outputs.get("OUTPUT__0")!.data.length, 16);
}

test("what is damaged or runs code is refused in a sentence, and its neighbour goes on", async () => {
  assert.ok(refused.length >= 13);
  for (const model of refused) {
    const error = await load(server, model);
    assert.ok(error !== null, `${model} was loaded`);
    assert.match(error, new RegExp(`failed to load model '${model}': .{10}`, "s"), model);
    assert.ok(!error.includes("signal"), `${model}: ${error}`);
    assert.ok(!existsSync(marker), `${model} ran code`);
    await goodAnswers();
  }
});

test("a program of a file reads its own files and no others, and writes none", async () => {
  const models = (await readdir(join(directory, "repository"))).filter((name) => name.startsWith("asks_"));
  assert.equal(models.length, 6);
  const before = await readFile(secret);
  for (const model of models) {
    assert.equal(await load(server, model), null, model);
    const reply = await infer(server, model, [floats("INPUT__0", [1, 2, 3, 4], [1, 4])], ["OUTPUT__0"]);
    assert.match(reply.error ?? "it was answered", /^PyTorch execute failure: .*Permission denied/s, model);
    assert.ok(!existsSync(marker), `${model} made a file`);
    assert.deepEqual(await readFile(secret), before, `${model} wrote to a file`);
    await goodAnswers();
  }
});

test("a file that PyTorch dies of ends no other model", async () => {
  assert.match((await load(server, "deep"))!, /^load failed for model 'deep'.*is not healthy\. \(signal SIGSEGV/);
  await goodAnswers();
});

test("flipped bits behind right checksums end no other model", async () => {
  const models = (await readdir(join(directory, "repository"))).filter((name) => name.startsWith("flipped_"));
  let failed = 0;
  for (const model of models) {
    const error = await load(server, model);
    if (error !== null) {
      failed++;
      assert.match(error, /^load failed for model/, model);
    } else await infer(server, model, [floats("INPUT__0", [1, 2, 3, 4], [1, 4])], ["OUTPUT__0"]);
    await goodAnswers();
  }
  assert.ok(failed > models.length / 2, `${failed} of ${models.length} failed`);
});
