import { availableParallelism } from "node:os";
import type { Clock } from "../../base/index.ts";

/** An answer that is due within this time is looked for: falling asleep and being woken costs as much, on both sides. */
export const briefNs = 100_000;

/** For how long two executions at once are remembered. */
const overlapMemoryNs = 2_000_000;

/**
 * Executions under way in all instances of a backend, and whether to stay awake for what comes next.
 *
 * While brief executions come and go the event loop takes its next turn without sleeping, until `briefNs` pass in which none began or
 * ended. What it finds then is handled as ever, so this serves one client and fifty (three small steps, 8 clients, two cores:
 * 7,900 requests/s with sleep, 10,200 without; bench/rows/throughput.ts).
 */
export class Traffic {
  readonly #clock: Clock;
  readonly #hasCores = availableParallelism() > 1;
  #executionCount = 0;
  #overlappedNs = Number.NEGATIVE_INFINITY;
  #lastBriefNs = 0;
  #awake = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `brief`: the instance's last execution was. */
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

  /** One request after another: then a worker, too, does better to wait awake. With more to do it would take the core from others. */
  get isLone(): boolean {
    return this.#executionCount === 1 && this.#clock.monotonicNs() - this.#overlappedNs > overlapMemoryNs;
  }

  #stayAwake(nowNs: number): void {
    this.#lastBriefNs = nowNs;
    if (this.#awake || !this.#hasCores) return;
    this.#awake = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    if (this.#clock.monotonicNs() - this.#lastBriefNs > briefNs) this.#awake = false;
    else setImmediate(this.#turn);
  };
}
