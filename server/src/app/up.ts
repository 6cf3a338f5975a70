import { systemClock } from "../base/index.ts";
import { dataDirectories } from "./directories.ts";
import type { UpOptions } from "./options.ts";
import { passedEnvironment } from "./passed-environment.ts";
import { platformServerLimits } from "./platform-server.ts";
import { openPlatform } from "./platform.ts";
import { stopSignal } from "./stop-signal.ts";
import { createTritonLog } from "./triton-log.ts";

/** `galatea up`: one line with the URL when it is ready, then nothing on stdout; logs go to stderr. 0 after a signal. */
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
  try {
    platform = await openPlatform({
      host: options.host,
      port: options.port,
      directories: dataDirectories(options.dataDirectory, process.env),
      log,
      environment: passedEnvironment(),
      serverLimits: platformServerLimits,
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint = code === "EADDRINUSE" ? `; choose another with --port, or 0 for any free one` : "";
    process.stderr.write(`galatea up: ${message}${hint}\n`);
    return 1;
  }
  const tookMs = (systemClock.monotonicNs() - startedNs) / 1e6;
  process.stdout.write(`Galatea is up at ${platform.url} (${tookMs.toFixed(0)} ms)\n`);
  log.info(`stopping: ${await stop.stopped}`);
  await platform[Symbol.asyncDispose]();
  return 0;
}
