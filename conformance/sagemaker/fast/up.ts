/**
 * `galatea up` with its services on a fast clock: FAST_CLOCK has the clock's start in milliseconds and its speed.
 * Instances, which are processes, use the machine's time.
 */
import { up } from "../../../packages/galatea/src/app/up.ts";
import { systemClock, type Clock } from "@galatea/base";
import { parseFlags, upFlags, upOptions } from "../../../packages/galatea/src/options/index.ts";

const [beganMs = 0, factor = 1] = (process.env["FAST_CLOCK"] ?? "").split(",").map(Number);
const fast: Clock = {
  epochMs: () => beganMs + (systemClock.epochMs() - beganMs) * factor,
  monotonicNs: () => systemClock.monotonicNs() * factor,
  timer: (delayMs, fire) => systemClock.timer(delayMs / factor, fire),
};
const [, , , ...flags] = process.argv;
process.exitCode = await up(upOptions(parseFlags(flags, upFlags)), fast);
