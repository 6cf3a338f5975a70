/** Model files of TensorFlow's that are damaged or made to harm: each fails its own load, or is kept to its own files, and harms nobody. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
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
  const { python } = await ensureFramework("tensorflow");
  directory = await mkdtemp(join(tmpdir(), "galatea-hostile-tensorflow-"));
  marker = join(directory, "marker");
  const secret = join(directory, "secret");
  await writeFile(secret, "nobody's business");
  const script = fileURLToPath(new URL("tensorflow_hostile.py", import.meta.url));
  const { stdout } = await promisify(execFile)(python, [script, join(directory, "repository"), marker, secret]);
  refused = stdout.trim().split("\n");
  const repositories = [join(directory, "repository")];
  server = await startGalatea({ repositories, flags: ["--model-control-mode=explicit", "--load-model=good"] });
});
after(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

const ask = (model: string) => infer(server, model, [floats("x", [1, 2, 3, 4], [1, 4])], ["y"]);

async function goodAnswers(): Promise<void> {
  const reply = await ask("good");
  assert.equal(reply.error, undefined);
  assert.equal(reply.outputs.get("y")!.data.length, 16);
}

const modelsOf = async (prefix: string) =>
  (await readdir(join(directory, "repository"))).filter((name) => name.startsWith(prefix));

test("what is damaged or too large is refused in a sentence, and its neighbour goes on", async () => {
  assert.ok(refused.length >= 20);
  for (const model of refused) {
    const error = await load(server, model);
    assert.ok(error !== null, `${model} was loaded`);
    assert.match(error, /version 1 is at UNAVAILABLE state: (\w+: )?.{20}/s, model);
    assert.ok(!error.includes("signal"), `${model}: ${error}`);
    assert.ok(!existsSync(marker), `${model} wrote a file`);
    await goodAnswers();
  }
});

test("a graph reads its own files and no others, and writes none", async () => {
  const models = await modelsOf("asks_");
  assert.ok(models.length >= 7);
  for (const model of models) {
    const error = await load(server, model);
    const reply = error === null ? await ask(model) : { error, status: 500 };
    assert.match(reply.error ?? "", model === "asks_python" ? /Could not find callback/ : /; Permission denied/, model);
    assert.ok(!existsSync(marker), `${model} wrote a file`);
    await goodAnswers();
  }
});

test("flipped bits end no other model", async () => {
  const models = await modelsOf("flipped_");
  let failed = 0;
  for (const model of models) {
    const error = await load(server, model);
    if (error !== null) {
      failed++;
      assert.match(error, /^load failed for model/, model);
    } else await ask(model);
    await goodAnswers();
  }
  assert.ok(failed > models.length / 3, `${failed} of ${models.length} failed`);
});
