import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@galatea/base";
import { ExecutionWatch, type RunningExecution } from "./execution-watch.ts";

/** A watch of one running execution, and a clock that the test controls. */
class WatchBench {
  readonly happened: string[] = [];
  running: RunningExecution | null = null;
  readonly watch: ExecutionWatch;
  #nowMs = 0;
  #timer: { readonly atMs: number; readonly fire: () => void } | null = null;

  constructor() {
    const clock: Clock = {
      epochMs: () => this.#nowMs,
      monotonicNs: () => this.#nowMs * 1e6,
      timer: (delayMs, fire) => {
        this.#timer = { atMs: this.#nowMs + delayMs, fire };
        return { [Symbol.dispose]: () => (this.#timer = null) };
      },
    };
    this.watch = new ExecutionWatch({
      clock,
      reportMs: 30_000,
      running: () => this.running,
      report: (runMs) => this.happened.push(`reported after ${runMs} ms`),
      end: (limitMs) => this.happened.push(`ended at ${this.#nowMs}, limit ${limitMs}`),
    });
  }

  begin(executionId: number, limitMs: number | null, isCalling = false): void {
    this.running = { executionId, sinceNs: this.#nowMs * 1e6, limitMs, isCalling };
    this.watch.began(this.#nowMs * 1e6, limitMs);
  }

  /** Simulates a busy event loop: the time advances, and no timer fires. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  move(ms: number): void {
    const untilMs = this.#nowMs + ms;
    while (this.#timer !== null && this.#timer.atMs <= untilMs) {
      const { atMs, fire } = this.#timer;
      this.#timer = null;
      this.#nowMs = Math.max(this.#nowMs, atMs);
      fire();
    }
    this.#nowMs = untilMs;
  }
}

test("an execution is reported once, and terminated at its limit to the millisecond, whenever it began", () => {
  const bench = new WatchBench();
  bench.begin(1, 59_000);
  bench.move(25_000);
  bench.begin(2, 59_000);
  bench.move(58_999);
  assert.deepEqual(bench.happened, ["reported after 30000 ms"]);
  bench.move(1);
  assert.equal(bench.happened[1], "ended at 84000, limit 59000");
});

test("an execution with a shorter limit than the previous one is checked by its own limit, and reported shortly before it", () => {
  const bench = new WatchBench();
  bench.begin(1, null);
  bench.move(1000);
  bench.begin(2, 2000);
  bench.move(2000);
  assert.deepEqual(bench.happened, ["reported after 1800 ms", "ended at 3000, limit 2000"]);
});

test("an execution whose limit passed before the first check is reported, and terminated after its worker had time to print", () => {
  const bench = new WatchBench();
  bench.begin(1, 2000);
  bench.stall(5000);
  bench.move(199);
  assert.deepEqual(bench.happened, ["reported after 5000 ms"]);
  bench.move(1);
  assert.equal(bench.happened[1], "ended at 5200, limit 2000");
});

test("an execution without a limit is reported and continues", () => {
  const bench = new WatchBench();
  bench.begin(1, null);
  bench.move(3_600_000);
  assert.deepEqual(bench.happened, ["reported after 30000 ms"]);
});

test("an execution over its limit that waits for another model's response is terminated once it stops waiting", () => {
  const bench = new WatchBench();
  bench.begin(1, 2000, true);
  bench.move(60_000);
  assert.deepEqual(bench.happened, ["reported after 1800 ms"]);
  bench.running = { ...bench.running!, isCalling: false };
  bench.move(1000);
  assert.equal(bench.happened.length, 2);
});

test("a disposed watch does nothing", () => {
  const bench = new WatchBench();
  bench.begin(1, 2000);
  bench.watch[Symbol.dispose]();
  bench.begin(2, 1000);
  bench.move(60_000);
  assert.deepEqual(bench.happened, []);
});
