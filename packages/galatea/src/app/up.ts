import { resolve } from "node:path";
import { releaseMemoryWhenIdle } from "@galatea/base/processes";
import { asDiskError, DiskError, systemClock, type Clock, type Logger } from "@galatea/base";
import { isInvokableEndpoint } from "@galatea/hosting";
import { isolationGaps, readIsolationCapabilities } from "@galatea/hosting/process-host";
import { findKeySource, readOwnerKeys, type KeySource } from "@galatea/aws/owner-keys";
import {
  announcePlatform,
  credentialsPath,
  dataDirectories,
  machineFrameworks,
  type DataDirectories,
  checkDataLayout,
  platformUmask,
} from "../data-directory/index.ts";
import { onHangUp } from "./hang-up-signal.ts";
import type { UpOptions } from "../options/index.ts";
import { endWithNpx } from "./npx-parent.ts";
import { passedEnvironment } from "./passed-environment.ts";
import { platformServerLimits } from "@galatea/aws/http-server";
import { callableUrl, openPlatform, type Platform } from "./platform/platform.ts";
import { refusedExposure } from "./refused-exposure.ts";
import { reloadKeys } from "./reload-keys.ts";
import { requestMemory } from "./request-memory.ts";
import { openAsStandby } from "./standby.ts";
import { endBySignal, stopSignal } from "./stop-signal.ts";
import { onRestart, replaceProcess, takeListeningSocket } from "./restart-signal.ts";
import { programWords } from "./shell-words.ts";
import { startSummary } from "./start-summary.ts";
import { serverVersion } from "./version.ts";
import type { TritonLog } from "./serving/triton-log.ts";
import { openProcessLog } from "./process-log.ts";

/** Maximum time that a stop waits until the last log lines are written, in milliseconds. */
const lastLinesMsMax = 1000;
const graceSecs = platformServerLimits.stopGraceMs / 1000;

/**
 * Runs `galatea up`. Prints a summary with the URL on stdout when the platform is ready; logs go to stderr. Resolves
 * with 0 after a signal, and with 1 when another platform has acquired the records.
 *
 * A signal before the platform is ready, or a second one during the stop, kills the process. This is safe, because even
 * SIGKILL loses no data. `clock` is the clock of the platform's services.
 */
export async function up(options: UpOptions, clock: Clock = systemClock): Promise<number> {
  process.umask(platformUmask);
  using stop = stopSignal();
  using restart = onRestart();
  const listeningFd = takeListeningSocket();
  await endWithNpx(process.env, process.ppid, systemClock);
  const startedNs = systemClock.monotonicNs();
  const log = openProcessLog();
  const refusal = refusedExposure(options) ?? refusedEndpoint(options);
  if (refusal !== null) {
    process.stderr.write(`galatea up: ${refusal}\n`);
    return 1;
  }
  const directories = dataDirectories(options.data, process.env);
  const opened = Promise.withResolvers<Platform>();
  let platform: Platform | null = null;
  using _hangUp = onHangUp(
    async () => await reloadKeys(await opened.promise, () => sourceOf(options, directories), log),
  );
  void stop.stopped.then((name) => {
    if (platform !== null) return;
    log.info(`stopping: ${name}, before the platform was open`);
    log.writeNow();
    endBySignal(stop, name);
  });
  try {
    const keys = await startingKeys(options, directories, log);
    const platformOptions = {
      ...options,
      directories,
      keys: options.open ? null : keys,
      proxySecret: keys[0].secretAccessKey,
      log,
      // Set for all containers, so that they search the same framework directory as this process, whatever variables
      // their models set.
      environment: { ...passedEnvironment(), GALATEA_FRAMEWORKS: machineFrameworks(process.env) },
      serverLimits: platformServerLimits,
      requestMemory: requestMemory(options.requestMemoryBytes),
      clock,
    };
    const open = (fd: number | null) => openPlatform({ ...platformOptions, listeningFd: fd });
    platform = await (options.standby ? openAsStandby(open, { options, listeningFd, log }) : open(listeningFd));
    opened.resolve(platform);
  } catch (error) {
    const reported = asDiskError(error, `'${directories.root}'`) as NodeJS.ErrnoException;
    process.stderr.write(`galatea up: ${reported.message}${hintFor(reported)}\n`);
    return 1;
  }
  using _released = releaseMemoryWhenIdle(log);
  const exitCode = await runUntilStopped(platform, options, { directories, startedNs, log, stop, restart });
  // Without this limit, a reader of stderr that has stopped reading would keep the process alive.
  if (!(await log.written(lastLinesMsMax))) process.exit(exitCode);
  return exitCode;
}

interface Running {
  readonly directories: DataDirectories;
  readonly startedNs: number;
  readonly log: TritonLog;
  readonly stop: ReturnType<typeof stopSignal>;
  readonly restart: ReturnType<typeof onRestart>;
}

/** Waits until the platform has stopped, and resolves with the exit code. */
async function runUntilStopped(
  platform: Platform,
  options: UpOptions,
  { directories, startedNs, log, stop, restart }: Running,
): Promise<number> {
  using _announced = await announced(options, { directories, url: platform.url, log });
  printSummary(options, directories, { url: platform.url, startedNs });
  if (options.open)
    log.warning(
      "authentication is disabled (--open): any process that reaches this address has full access, including model code",
    );
  const cause = await Promise.race([stop.stopped, restart.requested, platform.recordsLost]);
  if (cause === "restart") await restartPlatform(platform, log);
  const isLost = cause instanceof Error;
  if (isLost) log.error(cause.message);
  const reason = isLost ? "another platform uses the records" : cause;
  log.info(`stopping: ${reason}; requests in flight get ${graceSecs} s, a second signal ends them at once`);
  void stop.insisted.then((name) => {
    log.info(`stopping at once: ${name}`);
    log.writeNow();
    endBySignal(stop, name);
  });
  await platform[Symbol.asyncDispose]();
  return isLost ? 1 : 0;
}

function printSummary(
  options: UpOptions,
  directories: DataDirectories,
  { url, startedNs }: { readonly url: string; readonly startedNs: number },
): void {
  const summary = startSummary({
    url,
    startMs: (systemClock.monotonicNs() - startedNs) / 1e6,
    dataDirectory: directories.root,
    program: programWords(process.env),
    keys: options.open ? null : sourceOf(options, directories),
    confinementGaps: Object.keys(isolationGaps(readIsolationCapabilities())),
  });
  process.stdout.write(summary);
}

/** Stops this platform, leaves its instances running, and replaces this process with the installed program. */
async function restartPlatform(platform: Platform, log: TritonLog): Promise<never> {
  log.info("restarting: instances keep running, and the new platform process adopts them");
  const listeningFd = platform.detach();
  await platform[Symbol.asyncDispose]();
  log.writeNow();
  return replaceProcess(listeningFd);
}

function sourceOf({ credentials }: UpOptions, directories: DataDirectories): KeySource {
  return findKeySource(credentials, process.env, credentialsPath(directories));
}

/**
 * Returns the keys with which the platform starts. Checks the data directory first, because it may contain the file of
 * keys.
 */
async function startingKeys(options: UpOptions, directories: DataDirectories, log: Logger) {
  await checkDataLayout(directories);
  if (options.standby && !options.open && sourceOf(options, directories).from === "data directory") {
    throw new Error(
      "--standby needs the keys of the other platform: give both the same file with --credentials, or the same " +
        "GALATEA_ACCESS_KEY_ID and GALATEA_SECRET_ACCESS_KEY",
    );
  }
  return await readOwnerKeys(sourceOf(options, directories), log);
}

/** Writes the file with which other commands find this platform. Disposal removes the file. */
async function announced(
  options: UpOptions,
  { directories, url, log }: { readonly directories: DataDirectories; readonly url: string; readonly log: Logger },
): Promise<Disposable> {
  const { hostname, port } = new URL(callableUrl(url));
  const source = sourceOf(options, directories);
  const described = {
    dataDirectory: directories.root,
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port || 80),
    region: options.region,
    version: serverVersion,
    credentialsPath: source.from === "environment" ? null : resolve(source.path),
  };
  return await announcePlatform(described, { env: process.env, log });
}

function hintFor(error: NodeJS.ErrnoException): string {
  if (error.code === "EADDRINUSE") return "; choose another with --port, or 0 for any free one";
  return error instanceof DiskError ? "; choose another directory with --data" : "";
}

/**
 * Returns the reason why an `--invokable-endpoint` is invalid; null if all are valid. The flag table cannot check this,
 * because `serve` also loads the table and must not load hosting code.
 */
function refusedEndpoint({ invokableEndpoint }: UpOptions): string | null {
  const invalid = invokableEndpoint.find((each) => !isInvokableEndpoint(each));
  if (invalid === undefined) return null;
  return `--invokable-endpoint must be the name of an endpoint, or * for all (found '${invalid}')`;
}
