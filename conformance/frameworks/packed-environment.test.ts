/** The T5 example with its own packed environment on a multi-model endpoint with boto3, compared with numpy. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";
import { checkScaled } from "../sagemaker/scaled-endpoint.ts";
import { assembleT5, referenceResponses, translateScript } from "./t5-fixture.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-t5-"));
  await assembleT5(join(directory, "models"));
});
after(() => rm(directory, { recursive: true, force: true }));

test("T5 in a packed environment returns the tokens that numpy computes from the same weights, and its endpoint scales", async () => {
  const sentences = [
    "translate English to German: The house is wonderful.",
    "summarize: the train leaves at seven and arrives at noon.",
    "My dog likes the sun.",
  ];
  const expected = await referenceResponses(sentences);
  await using platform = await ScriptedPlatform.openFast(500);
  const words = [join(directory, "models"), ...sentences, "--scale=2"];
  const text = await platform.run(translateScript, words, { environment: "sagemaker-v2" });
  checkScaled(text);
  assert.match(text, /^done$/m);
  const found = [...text.matchAll(/^tokens: (.*)$/gm)].map(([, tokens = ""]) => JSON.parse(tokens) as number[]);
  assert.deepEqual(
    found,
    expected.map(({ answer }) => answer),
  );
  // Equal results for all sentences, or one repeated token, would make the comparison meaningless.
  assert.equal(new Set(found.map(String)).size, sentences.length);
  for (const tokens of found) assert.ok(new Set(tokens).size > 5, String(tokens));
  for (const { margin } of expected) assert.ok(margin > 0.01, `a near tie: ${margin}`);
});
