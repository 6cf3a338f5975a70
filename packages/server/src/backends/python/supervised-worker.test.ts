import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { silentLogger, type Clock } from "@galatea/base";
import { SupervisedWorker, type WorkerProcess } from "./supervised-worker.ts";
import { nextWorkerState, type WorkerEvent, type WorkerState } from "./worker-state.ts";

const events = fc.oneof(
  fc.record({ is: fc.constant("ended" as const), worker: fc.nat(2), reason: fc.constant("it ended") }),
  fc.record({ is: fc.constant("started" as const), worker: fc.nat(2) }),
  fc.record({ is: fc.constant("start failed" as const), reason: fc.constant("it did not start") }),
  fc.constantFrom(
    { is: "sound" as const },
    { is: "wait over" as const },
    { is: "needed" as const },
    { is: "closed" as const },
  ),
);

test("property: for any events in any order a worker changes state by its own events only, and ends once", () => {
  const walked = (happened: readonly WorkerEvent<number>[], isSpare: boolean) => {
    let current: WorkerState<number> = isSpare
      ? { at: "dormant", isResting: false }
      : { at: "up", worker: 0, failureCount: 0 };
    for (const event of happened) {
      const next: WorkerState<number> = nextWorkerState(current, event);
      const transition = `${current.at} ${next === current ? "stays" : next.at}`;
      const transitions: Readonly<Record<WorkerEvent<number>["is"], readonly string[]>> = {
        ended: ["up starting", "up down"],
        sound: ["up up"],
        started: ["starting up"],
        "start failed": ["starting down", "starting dormant"],
        "wait over": ["down starting", "dormant dormant"],
        needed: ["dormant starting"],
        closed: ["up closed", "starting closed", "down closed", "dormant closed"],
      };
      assert.ok(next === current || transitions[event.is].includes(transition), `${event.is}: ${transition}`);
      if (event.is === "ended" && next !== current) assert.equal(current.at === "up" && current.worker, event.worker);
      if (current.at === "closed") assert.equal(next, current);
      else if (event.is === "closed") assert.equal(next.at, "closed");
      // The worker is restarted without a pause only after a first failure. Only a worker that ran well resets the number of failures.
      if (transition === "up starting") assert.equal(current.at === "up" && current.failureCount, 0);
      if (next.at === "down") assert.ok(next.failureCount >= (event.is === "ended" ? 2 : 1));
      if ("failureCount" in next && "failureCount" in current && next.failureCount < current.failureCount)
        assert.equal(event.is, "sound");
      current = next;
    }
  };
  fc.assert(fc.property(fc.array(events, { maxLength: 30 }), fc.boolean(), walked));
});

/** A clock that the test controls. */
class MovedClock implements Clock {
  readonly timers = new Set<{ readonly atMs: number; readonly fire: () => void }>();
  #nowMs = 0;

  epochMs(): number {
    return this.#nowMs;
  }
  monotonicNs(): number {
    return this.#nowMs * 1e6;
  }
  timer(delayMs: number, fire: () => void): Disposable {
    const timer = { atMs: this.#nowMs + delayMs, fire };
    this.timers.add(timer);
    return { [Symbol.dispose]: () => void this.timers.delete(timer) };
  }
  move(ms: number): void {
    this.#nowMs += ms;
    for (const timer of this.timers) if (timer.atMs <= this.#nowMs && this.timers.delete(timer)) timer.fire();
  }
}

class FakeWorker implements WorkerProcess {
  alive = true;
  readonly ended: Promise<string>;
  readonly #resolve: (reason: string) => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    this.#resolve = resolve;
  }
  kill(reason: string): void {
    this.alive = false;
    queueMicrotask(() => this.#resolve(reason));
  }
  finalize(): Promise<void> {
    this.kill("finalized");
    return Promise.resolve();
  }
}

/** A supervisor with fake workers. The test decides when their starts end. */
class Supervision {
  readonly clock = new MovedClock();
  readonly workers = [new FakeWorker()];
  readonly starts: PromiseWithResolvers<FakeWorker>[] = [];
  readonly health: (string | null)[] = [];
  endCount = 0;
  up: FakeWorker | null = null;
  readonly supervised: SupervisedWorker<FakeWorker>;

  constructor(isSpare = false) {
    if (isSpare) this.workers.length = 0;
    this.supervised = new SupervisedWorker(
      {
        name: "m_0",
        clock: this.clock,
        logger: silentLogger,
        random: () => 0,
        start: () => {
          const start = Promise.withResolvers<FakeWorker>();
          this.starts.push(start);
          return start.promise;
        },
        onUp: (worker) => (this.up = worker),
        onEnd: () => (this.endCount += 1),
        onHealth: (reason) => this.health.push(reason),
      },
      this.workers[0] ?? null,
    );
  }

  get living(): FakeWorker[] {
    return this.workers.filter(({ alive }) => alive);
  }

  startIs(how: "good" | "bad" | "dead"): void {
    const start = this.starts.shift();
    if (start === undefined) return;
    if (how === "bad") return start.reject(new Error("no"));
    const worker = new FakeWorker();
    this.workers.push(worker);
    // The worker ends before the supervisor receives it.
    if (how === "dead") worker.kill("stillborn");
    start.resolve(worker);
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

const steps = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("die", "start good", "start bad", "start dead", "tick", "long tick") },
  { weight: 1, arbitrary: fc.constantFrom("abandon", "close") },
);

test("property: one worker runs or is starting until the end, after which none is left", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 25 }), async (does) => {
      const fixture = new Supervision();
      const { supervised, clock } = fixture;
      let isClosed = false;
      let closing: Promise<void> | null = null;
      for (const step of does) {
        if (step === "die") fixture.living[0]?.kill("died");
        else if (step === "tick") clock.move(250);
        else if (step === "long tick") clock.move(60_000);
        else if (step === "abandon") supervised.abandon("given up");
        else if (step === "close") closing ??= supervised.close(0);
        else fixture.startIs(step.slice("start ".length) as "good" | "bad" | "dead");
        isClosed ||= step === "abandon" || step === "close";
        assert.notEqual(supervised.up?.alive, false);
        await settled();
        assert.ok(fixture.living.length <= 1, "workers at once");
        assert.equal(supervised.up, isClosed ? null : (fixture.living[0] ?? null));
        const waits = fixture.living.length === 0 ? clock.timers.size : 0;
        if (isClosed) assert.equal(waits, 0);
        else assert.equal(fixture.starts.length + waits, fixture.living.length === 1 ? 0 : 1, step);
        if (!isClosed && fixture.living.length === 1) assert.equal(fixture.up, fixture.living[0]);
        if (!isClosed) assert.equal((fixture.health.at(-1) ?? null) === null, fixture.living.length === 1);
      }
      let isOver = false;
      closing = (closing ?? supervised.close(0)).then(() => void (isOver = true));
      await settled();
      assert.equal(isOver, fixture.starts.length === 0, "an end waits for the start that is under way");
      fixture.startIs("good");
      await closing;
      assert.deepEqual([fixture.living.length, clock.timers.size], [0, 0]);
      assert.match((await supervised.coming()) as string, /is not healthy/);
    }),
    { numRuns: 300 },
  );
});

test("waits between failing starts grow, and a worker that lives for ten seconds counts as sound", async () => {
  const fixture = new Supervision();
  const waits: number[] = [];
  fixture.workers[0]!.kill("died");
  await settled();
  for (let failure = 0; failure < 12; failure++) {
    fixture.startIs("bad");
    await settled();
    const [timer] = fixture.clock.timers;
    const waitMs = timer!.atMs - fixture.clock.epochMs();
    waits.push(waitMs);
    fixture.clock.move(waitMs);
  }
  assert.deepEqual(waits.slice(0, 4), [200, 400, 800, 1600]);
  assert.equal(waits.at(-1), 30_000);
  fixture.startIs("good");
  await settled();
  fixture.clock.move(10_000);
  assert.equal(fixture.clock.timers.size, 0);
  fixture.living[0]!.kill("died");
  await settled();
  assert.equal(fixture.starts.length, 1);
});

test("a worker that has executed a request counts as sound: its successor is started at once", async () => {
  const fixture = new Supervision();
  for (let death = 0; death < 5; death++) {
    fixture.living[0]!.kill("died");
    await settled();
    fixture.startIs("good");
    await settled();
    fixture.supervised.proven();
    assert.deepEqual([fixture.supervised.state, fixture.clock.timers.size], ["up", 0]);
  }
});

test("a dormant worker is started on demand; after a failed start it waits, is dormant again, and is not reported as unhealthy", async () => {
  const fixture = new Supervision(true);
  const { supervised, clock } = fixture;
  assert.deepEqual([supervised.state, fixture.starts.length], ["dormant", 0]);
  for (let tick = 0; tick < 2; tick++) {
    supervised.needed();
    supervised.needed();
    assert.deepEqual([supervised.state, fixture.starts.length], ["restarting", 1]);
    fixture.startIs("bad");
    await settled();
    supervised.needed();
    assert.deepEqual([supervised.state, fixture.starts.length], ["dormant", 0]);
    clock.move(10_000);
  }
  supervised.needed();
  fixture.startIs("good");
  await settled();
  assert.equal(supervised.state, "up");
  assert.deepEqual(fixture.health, [null]);
  fixture.living[0]!.kill("died");
  await settled();
  assert.deepEqual([supervised.state, fixture.starts.length], ["restarting", 1]);
  fixture.startIs("good");
  await supervised.close(0);
});

test("a dormant worker that was never needed closes at once", async () => {
  const fixture = new Supervision(true);
  await fixture.supervised.close(0);
  fixture.supervised.needed();
  assert.deepEqual([fixture.starts.length, fixture.supervised.state], [0, "failed"]);
});

test("callers get the worker that is being started; callers during failing starts get the reason", async () => {
  const fixture = new Supervision();
  fixture.workers[0]!.kill("died");
  const waiting = fixture.supervised.coming();
  await settled();
  fixture.startIs("good");
  assert.equal(await waiting, fixture.workers[1]);
  fixture.living[0]!.kill("died again");
  await settled();
  const again = fixture.supervised.coming();
  assert.equal(fixture.supervised.state, "restarting");
  fixture.clock.move(60_000);
  fixture.startIs("bad");
  await settled();
  assert.equal(fixture.supervised.state, "failed");
  assert.equal(await again, await fixture.supervised.coming());
  assert.equal(await fixture.supervised.coming(), "Stub process 'm_0' is not healthy. (restart failed: no)");
  await fixture.supervised.close(0);
});

test("a worker that ended before the first check is replaced", async () => {
  const fixture = new Supervision();
  fixture.workers[0]!.kill("died");
  await settled();
  fixture.startIs("dead");
  await settled();
  assert.equal(fixture.supervised.up, null);
  assert.equal(fixture.endCount, 2);
  fixture.clock.move(200);
  fixture.startIs("good");
  await settled();
  assert.equal(fixture.supervised.up, fixture.workers[2]);
});
