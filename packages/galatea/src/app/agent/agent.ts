import { asDiskError, systemClock } from "@galatea/base";
import { releaseMemoryWhenIdle } from "@galatea/base/processes";
import { checkDataLayout, dataDirectories, machineFrameworks, platformUmask } from "../../data-directory/index.ts";
import type { AgentOptions } from "../../options/index.ts";
import { endWithNpx } from "../npx-parent.ts";
import { passedEnvironment } from "../passed-environment.ts";
import { openProcessLog } from "../process-log.ts";
import { endBySignal, stopSignal } from "../stop-signal.ts";
import { openAgent, type AgentProcess } from "./open-agent.ts";

/** Maximum time that a stop waits until the last log lines are written, in milliseconds. */
const lastLinesMsMax = 1000;

/**
 * Runs `galatea agent`. Prints the agent's URL on stdout when it is ready; logs go to stderr. Resolves with 0 after a
 * signal, when the agent's instances have ended. A second signal kills the process.
 */
export async function agent(options: AgentOptions): Promise<number> {
  process.umask(platformUmask);
  using stop = stopSignal();
  await endWithNpx(process.env, process.ppid, systemClock);
  const log = openProcessLog();
  const directories = dataDirectories(options.data, process.env);
  let opened: AgentProcess | null = null;
  void stop.stopped.then((name) => {
    if (opened === null) endBySignal(stop, name);
  });
  try {
    await checkDataLayout(directories);
    const environment = { ...passedEnvironment(), GALATEA_FRAMEWORKS: machineFrameworks(process.env) };
    opened = await openAgent({ ...options, directories, environment, log });
  } catch (error) {
    process.stderr.write(`galatea agent: ${(asDiskError(error, `'${directories.root}'`) as Error).message}\n`);
    return 1;
  }
  using _released = releaseMemoryWhenIdle(log);
  const probes = opened.probePort === null ? "" : `, probes at port ${opened.probePort}`;
  process.stdout.write(`Galatea agent is ready at ${opened.url}${probes}\n`);
  const name = await stop.stopped;
  log.info(`stopping: ${name}; requests in flight get ${options.drainSecs} s, a second signal ends them at once`);
  void stop.insisted.then((second) => {
    log.info(`stopping at once: ${second}`);
    log.writeNow();
    endBySignal(stop, second);
  });
  await opened.drain();
  await opened[Symbol.asyncDispose]();
  if (!(await log.written(lastLinesMsMax))) process.exit(0);
  return 0;
}
