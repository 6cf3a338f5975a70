import { availableParallelism } from "node:os";
import type { Clock } from "@galatea/base";
import { processorYield } from "@galatea/base/system";
import { SpinBackoff } from "./spin-backoff.ts";

/** A response that is due within this time is polled for: sleeping and waking take as long, on both sides. */
export const briefNs = 100_000;

/**
 * Time of polling after which the loop yields the processor. The kernel may have put a client or a worker behind a loop that never
 * sleeps, and leaves it there for some milliseconds. (add_sub, one client, two cores: series of requests of 350 us among those of 45.)
 */
const giveWayNs = 30_000;

/** A loop that got its core back later than this was preempted. */
const preemptedNs = 500_000;

/** Maximum number of workers that poll, on any number of cores. */
const awakeWorkersMax = 4;

/** Time for which two concurrent executions are remembered. */
const overlapMemoryNs = 2_000_000;

/**
 * Counts executions in all instances of a backend, and decides whether to busy-poll for the next event. During brief executions the event
 * loop takes its next tick without sleeping, until none has started or ended for `briefNs`. Events are handled as usual, so this serves
 * one client and fifty (three small steps, 8 clients, two cores: 7,900 requests/s with sleep, 10,200 without; bench/rows/throughput.ts).
 */
export class BusyPolling {
  readonly #clock: Clock;
  readonly #giveWay: () => void;
  readonly #hasCores: boolean;
  /** All cores but one, which is the event loop's. */
  readonly #awakeMax: number;
  #executionCount = 0;
  #overlappedNs = Number.NEGATIVE_INFINITY;
  #lastBriefNs = 0;
  #awake = false;
  readonly #backoff = new SpinBackoff();
  /** Marks of the instances that executed last, the latest first. */
  readonly #latest: object[] = [];

  constructor(clock: Clock, coreCount = availableParallelism(), giveWay = processorYield()) {
    this.#clock = clock;
    this.#giveWay = giveWay;
    this.#hasCores = coreCount > 1;
    this.#awakeMax = Math.max(1, Math.min(coreCount - 1, awakeWorkersMax));
  }

  /** `brief`: true if the instance's last execution was brief. */
  began(brief: boolean): void {
    this.#executionCount++;
    const nowNs = this.#clock.monotonicNs();
    if (this.#executionCount > 1) this.#overlappedNs = nowNs;
    if (brief) this.#stayAwake(nowNs);
  }

  ended(brief: boolean): void {
    this.#executionCount--;
    if (brief) this.#stayAwake(this.#clock.monotonicNs());
  }

  /** True while one request follows another. Then a worker should also poll; with more work it would take the core from others. */
  get isLone(): boolean {
    return this.#executionCount === 1 && this.#clock.monotonicNs() - this.#overlappedNs > overlapMemoryNs;
  }

  /**
   * Records that the instance with this mark executes, and returns whether its worker may poll for the next execution: only if no more
   * instances alternate than there are cores. (Three small steps on two cores: p50 at 1 client 213 us with polling workers, which take
   * the cores from each other, 176 us with sleeping ones; bench/rows/latency.ts.)
   */
  mayWaitAwake(mark: object): boolean {
    const latest = this.#latest;
    if (!this.#backoff.maySpin(this.#clock.monotonicNs())) return false;
    if (latest[0] === mark) return true;
    const place = latest.indexOf(mark);
    if (place !== -1) latest.splice(place, 1);
    else if (latest.length >= this.#awakeMax) latest.pop();
    latest.unshift(mark);
    return place !== -1;
  }

  #stayAwake(nowNs: number): void {
    this.#lastBriefNs = nowNs;
    if (this.#awake || !this.#hasCores || !this.#backoff.maySpin(nowNs)) return;
    this.#awake = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    const nowNs = this.#clock.monotonicNs();
    const quietNs = nowNs - this.#lastBriefNs;
    const isAwake = quietNs <= briefNs && (quietNs <= giveWayNs || this.#gaveWay(nowNs));
    if (isAwake) setImmediate(this.#turn);
    else this.#awake = false;
  };

  /** Yields the core once. Returns false, and starts a pause, if another process had it for long. */
  #gaveWay(beganNs: number): boolean {
    this.#giveWay();
    const backNs = this.#clock.monotonicNs();
    if (backNs - beganNs < preemptedNs) return true;
    this.#backoff.preempted(backNs);
    return false;
  }
}
