import { systemClock } from "../base/index.ts";
import { dataDirectories } from "./directories.ts";
import type { UpOptions } from "./options.ts";
import { passedEnvironment } from "./passed-environment.ts";
import { platformServerLimits } from "./platform-server.ts";
import { openPlatform } from "./platform.ts";
import { endBySignal, stopSignal } from "./stop-signal.ts";
import { createTritonLog } from "./triton-log.ts";

/**
 * `galatea up`: one line with the URL when it is ready, then nothing on stdout; logs go to stderr. 0 after a signal, and death by
 * the signal where it came before the platform was open or a second one came while it stopped: kill -9 is safe for all data.
 */
export async function runUp(options: UpOptions): Promise<number> {
  using stop = stopSignal();
  const startedNs = systemClock.monotonicNs();
  const log = createTritonLog({
    verbose: false,
    info: true,
    warning: true,
    error: true,
    format: "default",
    file: "",
    pid: process.pid,
    infoTo: "stderr",
  });
  let platform;
  let opened = false;
  void stop.stopped.then((name) => {
    if (opened) return;
    log.info(`stopping: ${name}, before the platform was open`);
    endBySignal(stop, name);
  });
  try {
    platform = await openPlatform({
      host: options.host,
      port: options.port,
      directories: dataDirectories(options.dataDirectory, process.env),
      log,
      environment: passedEnvironment(),
      serverLimits: platformServerLimits,
    });
    opened = true;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint = code === "EADDRINUSE" ? `; choose another with --port, or 0 for any free one` : "";
    process.stderr.write(`galatea up: ${message}${hint}\n`);
    return 1;
  }
  const tookMs = (systemClock.monotonicNs() - startedNs) / 1e6;
  process.stdout.write(`Galatea is up at ${platform.url} (${tookMs.toFixed(0)} ms)\n`);
  const graceSecs = platformServerLimits.stopGraceMs / 1000;
  log.info(
    `stopping: ${await stop.stopped}; requests under way have ${graceSecs} s, a second signal ends them at once`,
  );
  void stop.insisted.then((name) => {
    log.info(`stopping at once: ${name}`);
    endBySignal(stop, name);
  });
  await platform[Symbol.asyncDispose]();
  return 0;
}
