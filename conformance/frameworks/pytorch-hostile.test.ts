/** Damaged and malicious PyTorch files: each fails only its own load, with an error. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { floats, infer, load } from "./framework-fixture.ts";
import { type HostileModels, modelsOf, openHostile, shareRefused } from "./hostile-fixture.ts";

let models: HostileModels;
let secret: string;
before(async () => {
  models = await openHostile("pytorch", async (directory) => {
    secret = join(directory, "secret");
    await writeFile(secret, new Float32Array([1, 2, 3, 4]));
    return [secret];
  });
});
after(() => models?.[Symbol.asyncDispose]());

const request = (model: string) =>
  infer(models.server, model, [floats("INPUT__0", [1, 2, 3, 4], [1, 4])], ["OUTPUT__0"]);

async function assertGoodResponses(): Promise<void> {
  const reply = await request("good");
  assert.equal(reply.error, undefined);
  assert.equal(reply.outputs.get("OUTPUT__0")!.data.length, 16);
}

test("damaged PyTorch files and files with code are rejected with an error, and another model keeps responding", async () => {
  assert.ok(models.refused.length >= 13);
  for (const model of models.refused) {
    const error = await load(models.server, model);
    assert.ok(error !== null, `${model} was loaded`);
    assert.match(error, new RegExp(`failed to load model '${model}': .{10}`, "s"), model);
    assert.ok(!error.includes("signal"), `${model}: ${error}`);
    assert.ok(!existsSync(models.marker), `${model} ran code`);
    await assertGoodResponses();
  }
});

test("the program in a model file can read only its own files and cannot write any", async () => {
  const asking = await modelsOf(models, "asks_");
  assert.equal(asking.length, 6);
  const before = await readFile(secret);
  for (const model of asking) {
    assert.equal(await load(models.server, model), null, model);
    const reply = await request(model);
    assert.match(reply.error ?? "the call succeeded", /^PyTorch execute failure: .*Permission denied/s, model);
    assert.ok(!existsSync(models.marker), `${model} made a file`);
    assert.deepEqual(await readFile(secret), before, `${model} wrote to a file`);
    await assertGoodResponses();
  }
});

test("a file that crashes PyTorch ends no other model", async () => {
  assert.match(
    (await load(models.server, "deep"))!,
    /^load failed for model 'deep'.*is not healthy\. \(signal SIGSEGV/,
  );
  await assertGoodResponses();
});

test("bit-flipped (also with corrected checksums) and truncated files end no other model", async () => {
  const shares = ["flipped_", "cut_", "exported_flipped_", "exported_cut_", "resealed_"].map(
    async (prefix) =>
      [prefix, await shareRefused(models, { prefix, ask: request, goodAnswers: assertGoodResponses })] as const,
  );
  for (const [prefix, share] of await Promise.all(shares))
    assert.ok(share > (prefix.includes("cut") ? 0.9 : 0.5), `${share} of those called ${prefix} failed`);
});
