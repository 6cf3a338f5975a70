import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { InferenceError, silentLogger, systemClock } from "@galatea/base";
import { openPipe, openSocketPair } from "@galatea/base/system";
import { adoptOrphans } from "@galatea/base/processes";
import { createArena, type Arena } from "../../tensor/index.ts";
import type { NamespaceMetrics } from "../namespace-metrics.ts";
import { noNamespaceMetrics } from "../no-namespace-metrics.ts";
import { noBlsClient } from "../no-bls-client.ts";
import type { BlsClient } from "../bls-client.ts";
import { ExecuteEncoder } from "./execute-encoder.ts";
import { FailureLog } from "./failure-log.ts";
import { PipelineDepth } from "./pipeline-depth.ts";
import { PythonInstance } from "./python-instance.ts";
import { PythonWorker } from "./python-worker.ts";
import { BusyPolling } from "./busy-polling.ts";

/** An environment without an interpreter: these workers have no Python process. */
const noEnvironment = { key: "", command: [], env: {}, directory: null, imports: [], packageHint: "" };

/** A worker for tests whose process does nothing. The test controls the worker's end of the socket. */
export interface HostileWorker extends AsyncDisposable {
  readonly worker: PythonWorker;
  /** The worker's end of the socket. */
  readonly socket: Socket;
}

/** An instance with a hostile worker, of a model with one input IN and outputs OUT and TEXT. */
export interface HostileInstance extends HostileWorker {
  readonly instance: PythonInstance;
  readonly arena: Arena;
}

export async function openHostileWorker(
  others: BlsClient = noBlsClient,
  arena: Arena = createArena({ capacityBytes: 64 * 2 ** 20 }),
  metrics: NamespaceMetrics = noNamespaceMetrics,
): Promise<HostileWorker> {
  adoptOrphans();
  const pair = openSocketPair();
  const lifeline = openPipe();
  const output = openPipe();
  closeSync(lifeline.readFd);
  closeSync(output.writeFd);
  const forked = {
    pid: await idleProcess(),
    socketFd: pair.ours,
    lifelineFd: lifeline.writeFd,
    outputFd: output.readFd,
  };
  const quiet = { clock: systemClock, logger: silentLogger, print: () => {} };
  const worker = new PythonWorker("hostile_0", forked, {
    ...quiet,
    environment: noEnvironment,
    others,
    metrics,
    arena,
    file: null,
    inlineBytesMax: 64,
  });
  const socket = new Socket({ fd: pair.theirs, readable: true, writable: true });
  socket.on("error", () => {}); // The server closes the socket after an invalid frame, which may cause an error here.
  socket.resume();
  return {
    worker,
    socket,
    async [Symbol.asyncDispose]() {
      worker.kill("the test is over");
      await worker.ended;
      socket.destroy();
    },
  };
}

export async function openHostileInstance({
  isDecoupled = false,
  others = noBlsClient,
  metrics = (_arena: Arena) => noNamespaceMetrics,
} = {}): Promise<HostileInstance> {
  const arena = createArena({ capacityBytes: 64 * 2 ** 20 });
  const hostile = await openHostileWorker(others, arena, metrics(arena));
  const instance = new PythonInstance(
    {
      name: "hostile_0",
      frameContext: {
        modelName: "hostile",
        modelVersion: "1",
        inputIndex: new Map([["IN", 0]]),
        outputIndex: new Map([
          ["OUT", 0],
          ["TEXT", 1],
        ]),
        outputNames: ["OUT", "TEXT"],
        isDecoupled,
        arena,
        inlineBytesMax: 64,
      },
      encoder: new ExecuteEncoder(),
      busyPolling: new BusyPolling(systemClock),
      pipelineDepth: new PipelineDepth(systemClock, 1),
      failures: new FailureLog(systemClock, silentLogger, { model: "hostile", version: "1" }),
      clock: systemClock,
      logger: silentLogger,
      random: Math.random,
      hangReportMs: 60_000,
      hangKillMs: null,
      finalizeMs: 0,
      onHealth: () => {},
      owner: others,
      start: () => Promise.reject(new InferenceError("UNAVAILABLE", "there is one hostile worker only")),
    },
    hostile.worker,
  );
  return {
    ...hostile,
    instance,
    arena,
    async [Symbol.asyncDispose]() {
      await hostile[Symbol.asyncDispose]();
      await instance[Symbol.asyncDispose]();
      arena[Symbol.dispose]();
    },
  };
}

/** Starts an orphan process in its own session, like a forked worker. */
async function idleProcess(): Promise<number> {
  const child = spawn("/bin/sh", ["-c", "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let message = "";
  child.stdout.on("data", (chunk: Buffer) => (message += chunk.toString()));
  await once(child, "close");
  return Number(message);
}
