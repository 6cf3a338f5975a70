import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import type { FuzzTarget } from "./target.ts";
import { Watchdog } from "./watchdog.ts";

export interface AttackOptions {
  readonly count: number;
  readonly seed: number;
  /** The path of one input; null to try `count` inputs. */
  readonly path: string | null;
}

export interface AttackReport {
  readonly target: string;
  readonly inputs: number;
  /** Number of inputs that were accepted. If it is 0, the attack does not get past the first check. */
  readonly used: number;
  readonly seconds: number;
  readonly slowestMs: number;
  /** The slowest input, as a value for `--path`. */
  readonly slowestPath: string;
  /** Growth of the process's memory between a quarter of the inputs and the last one, after garbage collection, in bytes. */
  readonly keptBytes: number;
  readonly residentBytes: number;
  /** Message about an input that failed, with the command that repeats it; null if all inputs passed. */
  readonly failure: string | null;
}

/** Far more than an input takes on a busy machine. */
const inputMsMax = 30_000;
/** Compiled code, inline caches and the state of fast-check; a leak of 100 bytes for each of 100,000 inputs exceeds it. */
const keptBytesMax = 8 * 1024 * 1024;

/** Passes `count` inputs to the target, one after another. */
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
  const message = details.failed
    ? `${fc.defaultReportMessage(details)}\n${stackOf(details.errorInstance)}\nrepeat it: ${command} --path=${details.counterexamplePath}`
    : keptBytes > keptBytesMax
      ? `the process kept ${keptBytes} bytes; repeat it: ${command} --count=${count}`
      : null;
  return {
    target: target.name,
    inputs: index,
    used: taken,
    seconds,
    slowestMs: slowest.ms,
    slowestPath: slowest.path,
    keptBytes,
    residentBytes: process.memoryUsage().rss,
    failure: message,
  };
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

/** The handles of closed sockets are freed one event loop tick after their last reference is dropped. */
async function heldBytes(collect: () => void): Promise<number> {
  for (let tick = 0; tick < collectedTurns; tick++) {
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
