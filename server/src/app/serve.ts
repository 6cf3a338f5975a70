import { stat } from "node:fs/promises";
import { InferenceError, systemClock, type Logger } from "../base/index.ts";
import type { EngineCore } from "../engine/index.ts";
import type { HttpListener } from "../protocols/index.ts";
import {
  ContainerRefusal,
  containerFrontEnd,
  containerPlan,
  type ContainerFrontEnd,
  type ContainerPlan,
} from "./container-environment.ts";
import { dataDirectories } from "./directories.ts";
import type { ServeOptions } from "./options.ts";
import { createServerMetrics } from "./server-metrics.ts";
import { openListeners } from "./serve-listeners.ts";
import { createServingEngine } from "./serving-engine.ts";
import { stopSignal } from "./stop-signal.ts";
import { createTritonLog } from "./triton-log.ts";
import { serverVersion } from "./version.ts";

/**
 * `galatea serve`, from options to exit code: 0 after a signal, 1 when it could not start or could not stop in time.
 * As in the original, the listeners open when the initial load has ended, and announce themselves in these words.
 */
export async function runServe(options: ServeOptions): Promise<number> {
  const startedMs = performance.now();
  let plan: ContainerPlan | null = null;
  let frontEnd: ContainerFrontEnd | null = null;
  try {
    plan = options.container?.fromEnvironment === true ? containerPlan(process.env, options.container.mlRoot) : null;
    frontEnd = options.container === null ? null : (plan ?? containerFrontEnd(process.env));
  } catch (error) {
    if (!(error instanceof ContainerRefusal)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
  let log: Logger;
  try {
    log = createTritonLog({
      ...options.log,
      verbose: plan?.logVerbose ?? options.log.verbose,
      pid: process.pid,
      infoTo: "stdout",
    });
  } catch (error) {
    process.stderr.write(`--log-file cannot be written: ${(error as Error).message}\n`);
    return 1;
  }
  for (const note of plan?.notes ?? []) log.info(note);
  using stop = stopSignal();
  const stopping = new AbortController();
  void stop.stopped.then((reason) => {
    log.info(`stopping: ${reason}`);
    stopping.abort(new InferenceError("UNAVAILABLE", "Server exiting"));
  });
  const { hostGauges = false, intervalMs = 0 } = options.metrics ?? {};
  const metrics = createServerMetrics({ hostGauges, intervalMs, clock: systemClock });
  const engine = createServingEngine({
    options,
    plan,
    log,
    metrics,
    directories: dataDirectories(options.dataDirectory, process.env),
  });
  const listeners: HttpListener[] = [];
  try {
    const refusal = await refusedRepository(options.repositories);
    if (refusal !== null) log.error(`creating server: ${refusal}`);
    if (refusal !== null || !(await loadAtStart(engine, options, plan, log, stopping.signal))) {
      await engine[Symbol.asyncDispose]();
      return 1;
    }
    await openListeners({ engine, options, plan, frontEnd, log, metrics }, listeners);
  } catch (error) {
    if (!stopping.signal.aborted) log.error(InferenceError.from(error).message);
    await closeAll(listeners, engine, AbortSignal.abort());
    return stopping.signal.aborted ? 0 : 1;
  }
  log.info(`ready in ${(performance.now() - startedMs).toFixed(0)} ms`, { version: serverVersion });
  // The first tenant comes in a moment; what all of them share need not wait for it.
  if (plan?.multiModel === true)
    engine.warmUp().catch((error: unknown) => log.verbose(`nothing is warm yet: ${(error as Error).message}`));
  await stop.stopped;
  // Awaited here: until it is over another signal must not end the process by default.
  return await shutDown(listeners, engine, options.exitTimeoutSecs, log);
}

/** What the original says of the first repository that is no directory; null when all are. */
async function refusedRepository(repositories: readonly string[]): Promise<string | null> {
  for (const path of repositories) {
    const found = await stat(path).catch(() => null);
    if (found === null) return `Internal - failed to stat file ${path}`;
    if (!found.isDirectory()) return "Invalid argument - repository path is not a valid directory";
  }
  return null;
}

async function loadAtStart(
  engine: EngineCore,
  options: ServeOptions,
  plan: ContainerPlan | null,
  log: Logger,
  signal: AbortSignal,
): Promise<boolean> {
  const explicit = options.control === "explicit" || plan !== null;
  const wanted = plan?.loadModels ?? options.loadModels;
  const failed = await engine.loadAtStart(!explicit || wanted.includes("*") ? "all" : wanted, signal);
  signal.throwIfAborted();
  if (failed.length === 0) return true;
  log.error(`failed to load: ${failed.join(", ")}`);
  if (!options.exitOnError) return true;
  log.error("creating server: Internal - failed to load all models");
  return false;
}

/** What Node's timers can count, less what is added to it: some 24 days. */
const timerMsMax = 2 ** 31 - 1 - 1000;

/** In this order: no new requests, the running ones end (bounded), models go, processes end. */
async function shutDown(
  listeners: readonly HttpListener[],
  engine: EngineCore,
  exitTimeoutSecs: number,
  log: Logger,
): Promise<number> {
  const exitTimeoutMs = Math.min(exitTimeoutSecs * 1000, timerMsMax);
  const deadline = AbortSignal.timeout(exitTimeoutMs);
  const closing = closeAll(listeners, engine, deadline);
  const late = new Promise<"late">((resolve) => {
    // One more second for what the cut-off itself has to do.
    systemClock.timer(exitTimeoutMs + 1000, () => resolve("late"));
  });
  if ((await Promise.race([closing, late])) === "late") {
    log.error("Exit timeout expired. Exiting immediately.");
    process.exit(1);
  }
  return 0;
}

async function closeAll(listeners: readonly HttpListener[], engine: EngineCore, deadline: AbortSignal): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.close(deadline)));
  await engine[Symbol.asyncDispose]();
}
