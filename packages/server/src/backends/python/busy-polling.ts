import { availableParallelism } from "node:os";
import type { Clock } from "@galatea/base";
import { processorYield } from "@galatea/base/system";
import { SpinBackoff } from "./spin-backoff.ts";

/** The event loop polls for a response that is due within this time, because sleeping and waking up would take as long on both sides. */
export const pollableNs = 100_000;

/**
 * Time of polling after which the event loop yields its processor. Without this, the kernel may leave a client or worker waiting behind the
 * polling thread for some milliseconds. With add_sub, one client and two cores, series of requests took 350 us each instead of 45 us.
 */
const yieldNs = 30_000;

/** A polling thread that gets its core back later than this was preempted by another process. */
const preemptedNs = 500_000;

/** Maximum number of polling workers, on any number of cores. */
const pollingWorkersMax = 4;

/** Time for which two concurrent executions are remembered; until then, executions do not count as running one at a time. */
const overlapMemoryNs = 2_000_000;

/**
 * Counts executions in all instances of a backend, and decides whether to poll for the next event instead of sleeping. While executions are
 * brief, the event loop continues to its next tick without sleeping, until no execution has started or ended for `pollableNs`. Events are
 * handled as usual. Three small steps with 8 clients on two cores reach 10,200 requests/s, and 7,900 with sleeping
 * (bench/rows/throughput.ts).
 */
export class BusyPolling {
  readonly #clock: Clock;
  readonly #yieldProcessor: () => void;
  readonly #hasCores: boolean;
  /** Maximum number of polling workers: one for each core except the event loop's. */
  readonly #pollingMax: number;
  #executionCount = 0;
  #overlappedNs = Number.NEGATIVE_INFINITY;
  #lastBriefNs = 0;
  #polling = false;
  readonly #backoff = new SpinBackoff();
  /** Marks of the instances that have executed most recently, the latest first. */
  readonly #latest: object[] = [];

  constructor(clock: Clock, coreCount = availableParallelism(), yieldProcessor = processorYield()) {
    this.#clock = clock;
    this.#yieldProcessor = yieldProcessor;
    this.#hasCores = coreCount > 1;
    this.#pollingMax = Math.max(1, Math.min(coreCount - 1, pollingWorkersMax));
  }

  /** Records the start of an execution. `brief` is true if the instance's last execution was brief. */
  began(brief: boolean): void {
    this.#executionCount++;
    const nowNs = this.#clock.monotonicNs();
    if (this.#executionCount > 1) this.#overlappedNs = nowNs;
    if (brief) this.#keepPolling(nowNs);
  }

  ended(brief: boolean): void {
    this.#executionCount--;
    if (brief) this.#keepPolling(this.#clock.monotonicNs());
  }

  /**
   * True while executions follow each other without overlap. Only then should a worker poll. With more work, a polling worker would use a
   * core that other processes need.
   */
  get isLone(): boolean {
    return this.#executionCount === 1 && this.#clock.monotonicNs() - this.#overlappedNs > overlapMemoryNs;
  }

  /**
   * Records that an instance (represented by its mark) executes. Returns whether its worker may poll for the next execution. It may only if
   * there are at least as many cores as instances that execute alternately. Otherwise polling workers preempt each other: with three small
   * steps on two cores and one client, p50 is 213 us instead of 176 us (bench/rows/latency.ts).
   */
  mayPoll(mark: object): boolean {
    const latest = this.#latest;
    if (!this.#backoff.maySpin(this.#clock.monotonicNs())) return false;
    if (latest[0] === mark) return true;
    const index = latest.indexOf(mark);
    if (index !== -1) latest.splice(index, 1);
    else if (latest.length >= this.#pollingMax) latest.pop();
    latest.unshift(mark);
    return index !== -1;
  }

  #keepPolling(nowNs: number): void {
    this.#lastBriefNs = nowNs;
    if (this.#polling || !this.#hasCores || !this.#backoff.maySpin(nowNs)) return;
    this.#polling = true;
    setImmediate(this.#tick);
  }

  readonly #tick = (): void => {
    const nowNs = this.#clock.monotonicNs();
    const idleNs = nowNs - this.#lastBriefNs;
    const keepsPolling = idleNs <= pollableNs && (idleNs <= yieldNs || this.#yieldCore(nowNs));
    if (keepsPolling) setImmediate(this.#tick);
    else this.#polling = false;
  };

  /** Yields the core once. If another process kept the core for long, starts a pause of polling and returns false. */
  #yieldCore(beganNs: number): boolean {
    this.#yieldProcessor();
    const backNs = this.#clock.monotonicNs();
    if (backNs - beganNs < preemptedNs) return true;
    this.#backoff.preempted(backNs);
    return false;
  }
}
