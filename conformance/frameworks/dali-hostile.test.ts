/** Damaged and malicious DALI files: each fails only its own load, with an error. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { floats, infer, load } from "./framework-fixture.ts";
import { type HostileModels, openHostile, shareRefused } from "./hostile-fixture.ts";

let models: HostileModels;
before(async () => (models = await openHostile("dali")));
after(() => models?.[Symbol.asyncDispose]());

async function hasResponse(model: string, factor: number): Promise<void> {
  const reply = await infer(models.server, model, [floats("value", [1, 2.5, -3], [1, 3])], ["double"]);
  assert.equal(reply.error, undefined);
  const found = new Float32Array(new Uint8Array(reply.outputs.get("double")!.data).buffer);
  assert.deepEqual([...found], [factor, 2.5 * factor, -3 * factor]);
}

test("damaged and malicious DALI files fail their load with an error, and another model keeps responding", async () => {
  for (const model of models.refused) {
    const error = await load(models.server, model);
    assert.notEqual(error, null, `${model} was loaded`);
    assert.match(error!, /^load failed for model '[^']*': version 1 is at UNAVAILABLE state: .{20,}/s, model);
    await hasResponse("good", 2);
  }
  assert.equal(existsSync(models.marker), false, "a file's own code was run");
});

test("the error for an unsupported DALI operator names it", async () => {
  const sentences: Readonly<Record<string, RegExp>> = {
    python_function: /operator 'PythonFunction' \(double\) calls a function of the process that wrote the file/,
    reads: /operator 'readers\.File' \(double\) reads files itself/,
    writes: /operator 'DumpImage' \(double\) writes files/,
    unknown: /operator 'no\.such\.Operator' \(double\) is not an operator of this DALI \(2\.\d/,
    threads: /a pipeline has from 1 to 1024 threads, found 1073741824/,
  };
  for (const [model, sentence] of Object.entries(sentences))
    assert.match((await load(models.server, model))!, sentence);
});

test("handwritten pipelines load, and a memory hint of a petabyte is ignored", async () => {
  for (const model of ["by_hand", "of_2021", "hints"]) {
    assert.equal(await load(models.server, model), null);
    await hasResponse(model, 1);
  }
});

test("a pipeline that fails at run time fails only its request", async () => {
  for (const model of ["bad_type", "huge"]) {
    assert.equal(await load(models.server, model), null);
    const reply = await infer(models.server, model, [floats("value", [1, 2], [1, 2])], ["double"]);
    assert.match(reply.error ?? "", /.{20,}/s, model);
    await hasResponse("good", 2);
  }
});

test("bit-flipped and truncated DALI files load or fail, and no process dies", async () => {
  const request = (model: string) => infer(models.server, model, [floats("value", [1, 2], [1, 2])], ["double"]);
  const assertGoodResponses = () => hasResponse("good", 2);
  // Bits in debug names have no effect, so some flipped files load.
  const flipped = await shareRefused(models, { prefix: "flipped_", ask: request, goodAnswers: assertGoodResponses });
  assert.ok(flipped > 1 / 4, `${flipped} of them failed`);
  const cut = await shareRefused(models, { prefix: "cut_", ask: request, goodAnswers: assertGoodResponses });
  assert.ok(cut > 3 / 4, `${cut} of them failed`);
});
