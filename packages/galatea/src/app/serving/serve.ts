import { releaseMemoryWhenIdle } from "@galatea/base/processes";
import type { ConfinementRow } from "@galatea/server/backends/python";
import { asDiskError, InferenceError, systemClock, type ByteBudget, type Logger } from "@galatea/base";
import type { EngineCore } from "@galatea/server/engine";
import type { Listener } from "@galatea/server/protocols";
import { checkRepositoryPath } from "@galatea/server/repository";
import { ContainerRefusal } from "@galatea/runtimes/container-runtimes";
import {
  containerFrontEnd,
  containerPlan,
  type ContainerFrontEnd,
  type ContainerPlan,
} from "../container-environment.ts";
import { dataDirectories } from "../../data-directory/index.ts";
import { openGpus, type OpenedGpus } from "../gpus.ts";
import { onHangUp } from "../hang-up-signal.ts";
import { endWithNpx } from "../npx-parent.ts";
import type { ServeOptions } from "../../options/index.ts";
import { exitWithoutPings } from "./ping-watch.ts";
import { createServerMetrics, type ServerMetrics } from "./server-metrics.ts";
import { requestMemory } from "../request-memory.ts";
import { openListeners } from "./serve-listeners.ts";
import { createServingEngine } from "./serving-engine.ts";
import { stopSignal } from "../stop-signal.ts";
import { createTritonLog, type TritonLog } from "./triton-log.ts";
import { serverVersion } from "../version.ts";

/**
 * The umask of the platform's containers. Their files are readable, because the data directory that contains them is
 * inaccessible to other users of the machine.
 */
const containerUmask = 0o022;

/**
 * Runs `galatea serve`. Resolves with 0 after a signal, and with 1 after a failed start or stop. As in Triton, the
 * listeners open after the initial load of models, with Triton's log lines.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const startedMs = performance.now();
  // The platform's umask would prevent the users that tenants run as from reading the packages that are installed for
  // them.
  if (options.endWithoutPingsSecs !== null) process.umask(containerUmask);
  const planned = plannedContainer(options);
  if (planned === null) return 1;
  const { plan, frontEnd } = planned;
  const log = openLog(options);
  if (log === null) return 1;
  logNotes(log, options, plan);
  using stop = stopSignal();
  await endWithNpx(process.env, process.ppid, systemClock);
  using pings = exitWithoutPings(options.endWithoutPingsSecs, log);
  const stopping = new AbortController();
  void stop.stopped.then((reason) => {
    log.info(`stopping: ${reason}`);
    stopping.abort(new InferenceError("UNAVAILABLE", "Server exiting"));
  });
  const budget = requestMemory(options.requestMemoryBytes);
  await using gpus = await openGpus(process.env, options.allowMetrics ? options.metricsIntervalMs : 0, log);
  const metrics = metricsOf(options, budget, gpus);
  let unconfined: Readonly<Record<string, string>> | null = null;
  const engine = createServingEngine({
    onConfinement: (rows) => (unconfined = missingOf(rows)),
    options,
    budget,
    plan,
    log,
    metrics,
    gpus,
    directories: dataDirectories(options.data, process.env),
  });
  const listeners: Listener[] = [];
  const opened = Promise.withResolvers<Awaited<ReturnType<typeof openListeners>>>();
  using _hangUp = onHangUp(async () => await reload(await opened.promise, log));
  try {
    const refusal = await refusalOf(options.modelRepository);
    if (refusal !== null) log.error(`creating server: ${refusal}`);
    if (refusal !== null && !options.exitOnError) engine.fail();
    else if (refusal !== null || !(await loadAtStart(engine, options, plan, log, stopping.signal))) {
      await shutDown(listeners, engine, options.exitTimeoutSecs, log);
      return 1;
    }
    // Failures to install packages of the command line must be reported at the start, and not to the first tenant.
    if (options.pythonPackages.length > 0) await engine.warmUp();
    const contract = { frontEnd, unconfined: () => unconfined, onPing: () => pings?.pinged() };
    opened.resolve(await openListeners({ engine, budget, options, log, metrics, ...contract }, listeners));
    pings?.opened();
  } catch (error) {
    if (!stopping.signal.aborted) log.error(InferenceError.from(error).message);
    const code = await shutDown(listeners, engine, options.exitTimeoutSecs, log);
    return stopping.signal.aborted ? code : 1;
  }
  log.info(`ready in ${(performance.now() - startedMs).toFixed(0)} ms`, { version: serverVersion });
  // Prepares in the background what all tenants share, before the first tenant arrives.
  if (plan?.multiModel === true)
    engine.warmUp().catch((error: unknown) => log.verbose(`the warm-up failed: ${(error as Error).message}`));
  using _released = releaseMemoryWhenIdle(log);
  await stop.stopped;
  // Awaited before `stop` is disposed: until the shutdown has ended, a second signal must not have its default action.
  const code = await shutDown(listeners, engine, options.exitTimeoutSecs, log);
  // Without this limit, a reader of the log that has stopped reading would keep the process alive.
  if (!(await log.written(lastLinesMsMax))) process.exit(code);
  return code;
}

interface PlannedContainer {
  readonly plan: ContainerPlan | null;
  readonly frontEnd: ContainerFrontEnd | null;
}

/** Reads the container's environment. If it is invalid, reports the error and returns null. */
function plannedContainer(options: ServeOptions): PlannedContainer | null {
  try {
    const plan = planOf(options);
    return { plan, frontEnd: options.container === null ? null : (plan ?? containerFrontEnd(process.env)) };
  } catch (error) {
    if (!(error instanceof ContainerRefusal)) throw error;
    process.stderr.write(`${error.message}\n`);
    return null;
  }
}

/** Handles SIGHUP. The log file needs no handling: it is opened for each write, and created again after a rotation. */
async function reload(certificates: (() => Promise<void>) | null, log: Logger): Promise<void> {
  if (certificates === null) {
    log.info("SIGHUP: there are no certificates to reload; a log file is opened for each write");
    return;
  }
  try {
    await certificates();
    log.info("SIGHUP: certificates reloaded for new connections");
  } catch (error) {
    log.error(`SIGHUP: certificates not reloaded: ${(error as Error).message}`);
  }
}

function metricsOf(options: ServeOptions, budget: ByteBudget, gpus: OpenedGpus): ServerMetrics {
  return createServerMetrics({
    hostGauges: options.allowMetrics && options.allowCpuMetrics,
    intervalMs: options.metricsIntervalMs,
    clock: systemClock,
    budget,
    gpus: options.allowMetrics && options.allowGpuMetrics ? gpus.watch : null,
  });
}

function planOf({ container }: ServeOptions): ContainerPlan | null {
  return container?.fromEnvironment === true ? containerPlan(container.kind, process.env, container.mlRoot) : null;
}

function missingOf(rows: readonly ConfinementRow[]): Readonly<Record<string, string>> {
  return Object.fromEntries(rows.flatMap(({ what, missing }) => (missing === null ? [] : [[what, missing]])));
}

/** Opens the log. If its file cannot be written, reports that on stderr and returns null. */
function openLog(options: ServeOptions): TritonLog | null {
  try {
    return createTritonLog({
      verbose: options.logVerbose > 0,
      info: options.logInfo,
      warning: options.logWarning,
      error: options.logError,
      format: options.logFormat,
      file: options.logFile,
      pid: process.pid,
      infoTo: "stdout",
    });
  } catch (error) {
    const { message } = asDiskError(error, `'${options.logFile}'`) as Error;
    process.stderr.write(`--log-file cannot be written: ${message}\n`);
    return null;
  }
}

function logNotes(log: Logger, { strictModelConfig }: ServeOptions, plan: ContainerPlan | null): void {
  for (const note of plan?.notes ?? []) log.info(note);
  if (strictModelConfig !== null)
    log.warning("'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.");
}

/** Maximum time to wait until the last lines of the log are written, in milliseconds. */
const lastLinesMsMax = 1000;

/** Returns the reason why the first invalid repository cannot be served; null if all can be served. */
async function refusalOf(repositories: readonly string[]): Promise<string | null> {
  for (const each of repositories) {
    const refusal = await checkRepositoryPath(each);
    if (refusal !== null) return refusal;
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
  const explicit = options.modelControlMode === "explicit" || plan !== null;
  const desired = [...(plan?.loadModels ?? []), ...options.loadModel];
  const failed = await engine.loadAtStart(!explicit || desired.includes("*") ? "all" : desired, signal);
  signal.throwIfAborted();
  if (failed.length === 0) return true;
  log.error(`failed to load: ${failed.join(", ")}`);
  if (!options.exitOnError) return true;
  log.error("creating server: Internal - failed to load all models");
  return false;
}

/** Maximum delay of Node's timers (about 24 days), less the time that the shutdown adds to it. */
const timerMsMax = 2 ** 31 - 1 - 1000;

/**
 * Shuts down in this order: rejects new requests, lets running requests complete (up to a time limit), unloads models,
 * ends processes.
 */
async function shutDown(
  listeners: readonly Listener[],
  engine: EngineCore,
  exitTimeoutSecs: number,
  log: Logger,
): Promise<number> {
  const exitTimeoutMs = Math.min(exitTimeoutSecs * 1000, timerMsMax);
  const deadline = new AbortController();
  const late = Promise.withResolvers<"late">();
  let isExpired = false;
  const clock = systemClock;
  using _expired = clock.timer(exitTimeoutMs, () => {
    isExpired = true;
    log.error("Exit timeout expired. Exiting immediately.");
    engine.abandon(`the server exits, and its exit timeout of ${exitTimeoutSecs} s is over`);
  });
  // Pending requests receive an error response before the connections are closed.
  using _cut = clock.timer(exitTimeoutMs + 500, () => deadline.abort());
  using _late = clock.timer(exitTimeoutMs + 1000, () => late.resolve("late"));
  const ended = await Promise.race([closeAll(listeners, engine, deadline.signal), late.promise]);
  if (ended === "late") process.exit(1);
  return isExpired ? 1 : 0;
}

async function closeAll(listeners: readonly Listener[], engine: EngineCore, deadline: AbortSignal): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.close(deadline)));
  await engine[Symbol.asyncDispose]();
}
