/**
 * Runs the example as its README describes, and compares the results with scikit-learn's, trained again in a separate
 * process.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../../conformance/environments/index.ts";
import { ScriptedPlatform } from "../../conformance/sagemaker/scripted-platform.ts";

interface ReceivedResponse {
  readonly topic: string;
  readonly scores: readonly number[];
}

const run = promisify(execFile);
const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

test("the models quality, recognition and topic return what scikit-learn predicts, as a pipeline and as an ensemble", async () => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-reading-"));
  try {
    const [repository, strips] = [join(directory, "models"), join(directory, "strips.json")];
    const { python } = await ensureEnvironment(cacheDirectory(process.env), "trees");
    await run(python, [beside("train.py"), "write", repository, strips]);
    await using platform = await ScriptedPlatform.open();
    const text = await platform.run(beside("read_strips.py"), [repository, strips, "--json"]);
    assert.match(text, /^done$/m);
    const found = JSON.parse(/^answers: (.*)$/m.exec(text)?.[1] ?? "") as ReceivedResponse[];
    const { stdout } = await run(python, [beside("train.py"), "answer", strips]);
    const expected = JSON.parse(stdout) as ReceivedResponse[];
    assert.deepEqual(
      found.map(({ topic }) => topic),
      expected.map(({ topic }) => topic),
    );
    for (const [index, { scores }] of expected.entries())
      for (const [position, score] of scores.entries())
        assert.ok(Math.abs(score - found[index]!.scores[position]!) < 1e-5, `${index}: ${score}`);
    // Equal topics for all strips would make the comparison meaningless.
    assert.deepEqual(new Set(found.map(({ topic }) => topic)), new Set(["animals", "food", "travel", "unreadable"]));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
