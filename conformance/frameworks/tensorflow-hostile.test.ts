/** Damaged and malicious TensorFlow files: each fails only its own load, or can access only its own files. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { floats, infer, load } from "./framework-fixture.ts";
import { type HostileModels, modelsOf, openHostile, shareRefused } from "./hostile-fixture.ts";

let models: HostileModels;
before(async () => {
  models = await openHostile("tensorflow", async (directory) => {
    const secret = join(directory, "secret");
    await writeFile(secret, "nobody's business");
    return [secret];
  });
});
after(() => models?.[Symbol.asyncDispose]());

const request = (model: string) => infer(models.server, model, [floats("x", [1, 2, 3, 4], [1, 4])], ["y"]);

async function assertGoodResponses(): Promise<void> {
  const reply = await request("good");
  assert.equal(reply.error, undefined);
  assert.equal(reply.outputs.get("y")!.data.length, 16);
}

test("damaged and oversized TensorFlow files are rejected with an error, and another model keeps responding", async () => {
  assert.ok(models.refused.length >= 20);
  for (const model of models.refused) {
    const error = await load(models.server, model);
    assert.ok(error !== null, `${model} was loaded`);
    assert.match(error, /version 1 is at UNAVAILABLE state: (\w+: )?.{20}/s, model);
    assert.ok(!error.includes("signal"), `${model}: ${error}`);
    assert.ok(!existsSync(models.marker), `${model} wrote a file`);
    await assertGoodResponses();
  }
});

test("a graph can read only its own files and cannot write any", async () => {
  const asking = await modelsOf(models, "asks_");
  assert.ok(asking.length >= 7);
  for (const model of asking) {
    const error = await load(models.server, model);
    const reply = error === null ? await request(model) : { error, status: 500 };
    assert.match(reply.error ?? "", model === "asks_python" ? /Could not find callback/ : /; Permission denied/, model);
    assert.ok(!existsSync(models.marker), `${model} wrote a file`);
    await assertGoodResponses();
  }
});

test("bit-flipped and truncated files end no other model", async () => {
  const flipped = await shareRefused(models, { prefix: "flipped_", ask: request, goodAnswers: assertGoodResponses });
  assert.ok(flipped > 1 / 3, `${flipped} of them failed`);
  const cut = await shareRefused(models, { prefix: "cut_", ask: request, goodAnswers: assertGoodResponses });
  assert.ok(cut > 3 / 4, `${cut} of them failed`);
});
