/** Files of DALI's that are damaged or made to harm: each fails its own load, with a sentence, and nobody else. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework, startGalatea, type RunningServer } from "../environments/index.ts";
import { floats, infer, load } from "./framework-fixture.ts";

let directory: string;
let marker: string;
let server: RunningServer;
let refused: readonly string[];
before(async () => {
  const { python } = await ensureFramework("dali");
  directory = await mkdtemp(join(tmpdir(), "galatea-hostile-dali-"));
  marker = join(directory, "marker");
  const script = fileURLToPath(new URL("dali_hostile.py", import.meta.url));
  const { stdout } = await promisify(execFile)(python, [script, join(directory, "repository"), marker]);
  refused = stdout.trim().split("\n");
  const repositories = [join(directory, "repository")];
  server = await startGalatea({ repositories, flags: ["--model-control-mode=explicit", "--load-model=good"] });
});
after(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

async function isAnswered(model: string, factor: number): Promise<void> {
  const reply = await infer(server, model, [floats("value", [1, 2.5, -3], [1, 3])], ["double"]);
  assert.equal(reply.error, undefined);
  const found = new Float32Array(new Uint8Array(reply.outputs.get("double")!.data).buffer);
  assert.deepEqual([...found], [factor, 2.5 * factor, -3 * factor]);
}

test("damaged and harmful files fail their load with a sentence, and a model beside them goes on", async () => {
  for (const model of refused) {
    const error = await load(server, model);
    assert.notEqual(error, null, `${model} was loaded`);
    assert.match(error!, /^load failed for model '[^']*': version 1 is at UNAVAILABLE state: .{20,}/s, model);
    await isAnswered("good", 2);
  }
  assert.equal(existsSync(marker), false, "a file's own code was run");
});

test("operators that are not served are named", async () => {
  const sentences: Readonly<Record<string, RegExp>> = {
    python_function: /operator 'PythonFunction' \(double\) calls a function of the process that wrote the file/,
    reads: /operator 'readers\.File' \(double\) reads files by itself/,
    writes: /operator 'DumpImage' \(double\) writes files/,
    unknown: /operator 'no\.such\.Operator' \(double\) is none of this DALI's \(2\.\d/,
    threads: /a pipeline has from 1 to 1024 threads, found 1073741824/,
  };
  for (const [model, sentence] of Object.entries(sentences)) assert.match((await load(server, model))!, sentence);
});

test("what is written by hand is a pipeline, and hints that ask for a petabyte are not followed", async () => {
  for (const model of ["by_hand", "of_2021", "hints"]) {
    assert.equal(await load(server, model), null);
    await isAnswered(model, 1);
  }
});

test("what fails when it runs fails its request", async () => {
  for (const model of ["bad_type", "huge"]) {
    assert.equal(await load(server, model), null);
    const reply = await infer(server, model, [floats("value", [1, 2], [1, 2])], ["double"]);
    assert.match(reply.error ?? "", /.{20,}/s, model);
    await isAnswered("good", 2);
  }
});

test("files with flipped bits load or fail, and end nothing", async () => {
  const all = await readdir(join(directory, "repository"));
  const flipped = all.filter((name) => name.startsWith("flipped_"));
  const results = await Promise.all(flipped.map((model) => load(server, model)));
  for (const [index, error] of results.entries())
    if (error === null) await infer(server, flipped[index]!, [floats("value", [1, 2], [1, 2])], ["double"]);
  const failed = results.filter((error) => error !== null);
  for (const error of failed)
    assert.match(error, /^load failed for model '[^']*': version 1 is at UNAVAILABLE state: .{20,}/s);
  // Bits of names that tell people where a pipeline was written change nothing.
  assert.ok(failed.length > flipped.length / 4, `${failed.length} of ${flipped.length} failed`);
  await isAnswered("good", 2);
});
