import type { GatewayCommandOptions } from "../../options/index.ts";
import { systemClock } from "@galatea/base";
import { releaseMemoryWhenIdle } from "@galatea/base/processes";
import { endWithNpx } from "../npx-parent.ts";
import { openProcessLog } from "../process-log.ts";
import { endBySignal, stopSignal } from "../stop-signal.ts";
import { openGateway, type GatewayProcess } from "./open-gateway.ts";

/** Maximum time that a stop waits until the last log lines are written, in milliseconds. */
const lastLinesMsMax = 1000;

/**
 * Runs `galatea gateway`. Prints the URL on stdout when the port is open; logs go to stderr. Resolves with 0 after a
 * signal, when the requests in flight have ended. A second signal kills the process.
 */
export async function gateway(options: GatewayCommandOptions): Promise<number> {
  using stop = stopSignal();
  await endWithNpx(process.env, process.ppid, systemClock);
  const log = openProcessLog();
  let opened: GatewayProcess;
  try {
    opened = await openGateway({ ...options, log });
  } catch (error) {
    process.stderr.write(`galatea gateway: ${(error as Error).message}\n`);
    return 1;
  }
  using _released = releaseMemoryWhenIdle(log);
  process.stdout.write(`Galatea gateway is ready at ${opened.url}\n`);
  const name = await stop.stopped;
  log.info(`stopping: ${name}; requests in flight get ${opened.graceSecs} s, a second signal ends them at once`);
  void stop.insisted.then((second) => {
    log.info(`stopping at once: ${second}`);
    log.writeNow();
    endBySignal(stop, second);
  });
  await opened[Symbol.asyncDispose]();
  if (!(await log.written(lastLinesMsMax))) process.exit(0);
  return 0;
}
