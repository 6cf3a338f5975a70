import { AcceptedKeys, findKeySource, readOwnerKeys } from "@galatea/aws/owner-keys";
import { systemClock, type Logger } from "@galatea/base";
import { releaseMemoryWhenIdle } from "@galatea/base/processes";
import type { GatewayCommandOptions } from "../../options/index.ts";
import { onHangUp } from "../hang-up-signal.ts";
import { endWithNpx } from "../npx-parent.ts";
import { openProcessLog } from "../process-log.ts";
import { refusedExposure } from "../refused-exposure.ts";
import { reloadKeys } from "../reload-keys.ts";
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
  let keys: AcceptedKeys | null;
  try {
    const refusal = refusedExposure(options);
    if (refusal !== null) throw new Error(refusal);
    keys = options.agent.length === 0 ? null : await openKeys(options, log);
    opened = await openGateway({ ...options, keys, log });
  } catch (error) {
    process.stderr.write(`galatea gateway: ${(error as Error).message}\n`);
    return 1;
  }
  using _hangUp = onHangUp(async () => {
    if (keys !== null && !options.open)
      await reloadKeys({ replaceKeys: keys.replace.bind(keys) }, () => sourceOf(options), log);
  });
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

async function openKeys(options: GatewayCommandOptions, log: Logger): Promise<AcceptedKeys> {
  if (options.open) return new AcceptedKeys(null, "");
  const keys = await readOwnerKeys(sourceOf(options), log);
  return new AcceptedKeys(keys, keys[0].secretAccessKey);
}

function sourceOf({ credentials }: GatewayCommandOptions) {
  const source = findKeySource(credentials, process.env, "");
  if (source.from !== "data directory") return source;
  throw new Error(
    "--agent needs the keys of the platform: give the same file with --credentials, or the same GALATEA_ACCESS_KEY_ID " +
      "and GALATEA_SECRET_ACCESS_KEY",
  );
}
