/**
 * The program of `npm run cluster`: starts a Kubernetes cluster of two nodes on this machine, runs the tests of `cluster/tests` in it, and
 * stops it. Must run as root. With a command (`npm run cluster -- bash`), it runs this command instead of the tests.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { cacheDirectory } from "../conformance/environments/index.ts";
import { acquireLock } from "../conformance/environments/lock.ts";
import { figuresTable } from "./figures.ts";
import { ensureGalateaImage, writePauseImage } from "./images.ts";
import { ensurePrograms, missingPackages } from "./programs.ts";

const root = join(import.meta.dirname, "..");
const nodes = 2;
/** Time limit of a test. The start of a pod and its model can take most of a minute on a busy machine. */
const testTimeoutMs = 300_000;

process.exitCode = await main(process.argv.slice(2));

async function main(command: readonly string[]): Promise<number> {
  const missing = missingPackages(process.env["PATH"] ?? "");
  if (process.getuid?.() !== 0 || missing.length > 0) {
    process.stderr.write(
      process.getuid?.() === 0
        ? `The laboratory needs packages that this machine lacks: apt-get install ${missing.join(" ")}\n`
        : "The laboratory makes namespaces, mounts and cgroups: run it as root.\n",
    );
    return 1;
  }
  const ending = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => ending.abort());
  const making = { signal: ending.signal, progress: (line: string) => process.stdout.write(`${line}\n`) };
  const cache = cacheDirectory(process.env);
  const folder = join(cache, "cluster/run");
  await mkdir(join(cache, "cluster"), { recursive: true });
  // Only one laboratory may run at a time, because each removes the files of a killed run from the folder.
  using _lock = await acquireLock(join(cache, "cluster/run.lock"), ending.signal);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder);
  const programs = await timed("programs", ensurePrograms(cache, making));
  if (spawnSync(process.execPath, ["scripts/build.ts"], { cwd: root, stdio: "inherit" }).status !== 0) return 1;
  const image = await timed("image", ensureGalateaImage(cache, making));
  const pause = await writePauseImage(programs, join(folder, "pause"));
  const environment = { PROGRAMS: programs, RUN: folder, IMAGES: `${pause} ${image}` };
  const status = await runLaboratory(command.length > 0 ? command : testCommand(), environment, ending.signal);
  process.stdout.write(figuresTable(folder));
  // After a failure the folder is kept until the next run, because it has the logs of every component.
  if (status === 0) await rm(folder, { recursive: true });
  else process.stderr.write(`The logs of the laboratory are in ${folder}\n`);
  return status;
}

function testCommand(): readonly string[] {
  const files = globSync("cluster/tests/*.test.ts", { cwd: root }).toSorted();
  return [process.execPath, "--test", "--test-concurrency=1", `--test-timeout=${testTimeoutMs}`, ...files];
}

/** Resolves with the exit status of the command. On an abort, ends the laboratory first. */
async function runLaboratory(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  // If this process is killed, the kernel sends SIGTERM to lab.sh.
  const script = ["--pdeathsig", "TERM", join(root, "cluster/lab.sh"), String(nodes)];
  const child = spawn("setpriv", [...script, ...command], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  signal.addEventListener("abort", () => child.kill("SIGTERM"));
  const [status, ended] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return status ?? 128 + constants.signals[ended ?? "SIGKILL"];
}

async function timed<Value>(what: string, work: Promise<Value>): Promise<Value> {
  const start = performance.now();
  const value = await work;
  process.stdout.write(`${what}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
  return value;
}
