import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import type { FuzzTarget } from "./target.ts";
import { Watchdog } from "./watchdog.ts";

export interface AttackOptions {
  readonly count: number;
  readonly seed: number;
  /** Of one input; null for `count` of them. */
  readonly path: string | null;
}

export interface AttackReport {
  readonly target: string;
  readonly inputs: number;
  /** Of the inputs, those that were not refused: where there are none, the attack stops at the door. */
  readonly taken: number;
  readonly seconds: number;
  readonly slowestMs: number;
  /** Names the slowest input, as `--path`. */
  readonly slowestPath: string;
  /** What the process held after the last input beyond what it held after a quarter of them, when all garbage was collected. */
  readonly keptBytes: number;
  readonly residentBytes: number;
  /** Message about an input that failed, with the command that repeats it; null if all inputs passed. */
  readonly failure: string | null;
}

/** Far above what an input takes on a machine that has other work. */
const inputMsMax = 30_000;
/** Compiled code, inline caches and what fast-check remembers; a leak of 100 bytes for each of 100,000 inputs would pass it. */
const keptBytesMax = 8 * 1024 * 1024;

/** Gives the target `count` inputs, one after another. */
export async function attackTarget(target: FuzzTarget, options: AttackOptions): Promise<AttackReport> {
  const { count, seed, path } = options;
  const command = `npm run fuzz -- --target=${target.name} --seed=${seed}`;
  const collect = garbageCollector();
  await using watchdog = new Watchdog(command, inputMsMax);
  await using attack = await target.open();
  let index = 0;
  let taken = 0;
  let slowest = { ms: 0, path: "0" };
  let quarterBytes = 0;
  const startedMs = performance.now();
  const property = fc.asyncProperty(target.inputs, async (input) => {
    watchdog.begin(index);
    const beganMs = performance.now();
    if (await attack.attempt(input)) taken += 1;
    const ms = performance.now() - beganMs;
    if (ms > slowest.ms) slowest = { ms, path: path ?? String(index) };
    index += 1;
    if (index === Math.ceil(count / 4)) quarterBytes = await heldBytes(collect);
  });
  const details = await fc.check(property, path === null ? { numRuns: count, seed } : { seed, path });
  const seconds = (performance.now() - startedMs) / 1000;
  const keptBytes = path === null ? (await heldBytes(collect)) - quarterBytes : 0;
  const told = details.failed
    ? `${fc.defaultReportMessage(details)}\n${stackOf(details.errorInstance)}\nrepeat it: ${command} --path=${details.counterexamplePath}`
    : keptBytes > keptBytesMax
      ? `the process kept ${keptBytes} bytes; repeat it: ${command} --count=${count}`
      : null;
  return {
    target: target.name,
    inputs: index,
    taken,
    seconds,
    slowestMs: slowest.ms,
    slowestPath: slowest.path,
    keptBytes,
    residentBytes: process.memoryUsage().rss,
    failure: told,
  };
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

/** Sockets that have ended, and what their handles hold, go a turn of the event loop after nobody knows them any more. */
async function heldBytes(collect: () => void): Promise<number> {
  for (let turn = 0; turn < collectedTurns; turn++) {
    collect();
    await setImmediate();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const collectedTurns = 3;

function garbageCollector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}
