import { execFile } from "node:child_process";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { assembleInception } from "../inception/assemble.ts";
import { fetchPhotographs } from "../inception/photographs.ts";
import { frameworkPython } from "../framework-python.ts";
import { goldenSentences } from "./golden-sentences.ts";
import { Hosting, type EndpointPlan } from "./hosting.ts";
import { bestLabels, pictureTable, type PictureResult } from "./picture-results.ts";
import { picturePage } from "./picture-page.ts";
import { agreement, nearestNeighbours } from "./similarity.ts";
import type { StoryContext, TryIt } from "./story-context.ts";
import { embed } from "./visits.ts";

const picturesArchive = "pictures.tar.gz";
const sentencesArchive = "sentences.tar.gz";
const warmCalls = 3;
/** Maximum difference of scores: an independent decoder and scaler give nearly the same picture. */
const scoreDifferenceMax = 0.02;
const outputBytesMax = 2 ** 24;
const reference = fileURLToPath(new URL("../inception/reference.py", import.meta.url));
const plan: EndpointPlan = { name: "pictures-and-sentences", prefix: "pictures/", environment: {} };

/** The files that are created once and kept. */
interface Pictures {
  readonly photographs: readonly string[];
  /** The model repository of DALI before Inception v3. */
  readonly repository: string;
  readonly tensorflow: string;
}

/** Classifies photographs and embeds sentences on one endpoint. Writes a page with the photographs. */
export async function imagesStory(context: StoryContext): Promise<TryIt> {
  const { data, platform, progress, signal } = context;
  const created = await preparePictures(context);
  const hosting = new Hosting(plan, { ...platform, signal });
  await progress.step("two ensembles' archives in S3", async (detail) => {
    await hosting.makeBucket();
    await hosting.upload(picturesArchive, created.repository, detail);
    await hosting.upload(sentencesArchive, context.sentences, detail);
  });
  await progress.step("multi-model endpoint", () => hosting.createEndpoint());
  const responses = await progress.step("pictures, cold then warm", () => askPictures(hosting, created));
  const golden = await goldenSentences();
  const { embeddings, tookMs } = await progress.step("sentences, on the same endpoint", () =>
    embed(
      hosting,
      sentencesArchive,
      golden.map(({ text }) => text),
    ),
  );
  const truth = await progress.step("TensorFlow alone, to compare", () => scoresAlone(created, signal));
  process.stdout.write(`\n${pictureTable(responses)}`);
  const pictureDifference = agreement([responses.map(({ scores }) => scores)], truth);
  const sentenceDifference = agreement(
    [embeddings],
    golden.map(({ embedding }) => embedding),
  );
  process.stdout.write(
    `\nLargest difference from TensorFlow alone, with its own decoder: ${pictureDifference.toFixed(4)}` +
      `; of the sentences from the reference: ${sentenceDifference.toExponential(1)}\n`,
  );
  if (!(pictureDifference < scoreDifferenceMax)) throw new Error(`scores differ by ${pictureDifference}`);
  if (!(sentenceDifference < 1e-4)) throw new Error(`embeddings differ from the reference by ${sentenceDifference}`);
  const sentences = golden.map(({ text }, index) => ({ text, nearest: nearestNeighbours(embeddings)[index]! }));
  const page = join(data, "story", "pictures.html");
  await writeFile(page, picturePage({ endpoint: plan.name, answers: responses, sentences, sentencesMs: tookMs }));
  process.stdout.write(`\nThe pictures with their labels: ${page}\n`);
  return { endpoint: plan.name, archive: sentencesArchive, sentence: golden[0]?.text ?? "" };
}

/** Prepares the frameworks, the photographs and the network, if they do not exist yet. */
async function preparePictures({ data, platform, python, progress, signal }: StoryContext): Promise<Pictures> {
  const framework = (name: string, about: string) =>
    progress.step(about, (detail) => frameworkPython(name, { data: platform.data, detail, signal }));
  const dali = await framework("dali", "DALI");
  const tensorflow = await framework("tensorflow", "TensorFlow");
  const photographs = await progress.step("photographs", (detail) =>
    fetchPhotographs(join(data, "photographs"), { python, detail, signal }),
  );
  const repository = join(data, "story", "picture-models");
  await progress.step("Inception v3 behind DALI, two-step ensemble", async () => {
    if ((await stat(repository).catch(() => null)) !== null) return;
    const partial = `${repository}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true });
    await assembleInception({ targetDirectory: partial, photographs, pythons: { dali, tensorflow }, signal });
    await rename(partial, repository);
  });
  return { photographs, repository, tensorflow };
}

async function askPictures(hosting: Hosting, { photographs, repository }: Pictures): Promise<readonly PictureResult[]> {
  const labels = (await readFile(join(repository, "inception_graphdef", "inception_labels.txt"), "utf8")).split("\n");
  const responses: PictureResult[] = [];
  for (const path of photographs) {
    const jpeg = await readFile(path);
    const input = { name: "INPUT", shape: [1, jpeg.length], datatype: "UINT8", data: [...jpeg] };
    const request = () => hosting.ask(picturesArchive, { inputs: [input] });
    const { outputs, tookMs: firstMs } = await request();
    const warmMs: number[] = [];
    for (let call = 0; call < warmCalls; call++) warmMs.push((await request()).tookMs);
    const scores = outputs.find(({ name }) => name === "OUTPUT")?.data ?? [];
    responses.push({ name: basename(path), jpeg, scores, best: bestLabels(scores, labels), firstMs, warmMs });
  }
  return responses;
}

async function scoresAlone(
  { photographs, repository, tensorflow }: Pictures,
  signal: AbortSignal,
): Promise<readonly (readonly number[])[]> {
  const graph = join(repository, "inception_graphdef", "1", "model.graphdef");
  const options = { maxBuffer: outputBytesMax, signal };
  const { stdout } = await promisify(execFile)(tensorflow, [reference, graph, ...photographs], options);
  return JSON.parse(stdout) as number[][];
}
