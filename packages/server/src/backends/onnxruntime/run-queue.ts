import { type Clock, InferenceError } from "@galatea/base";
import { chooseRun, type ActiveRun, type RunOwner, type RunLimits } from "./choose-run.ts";

type Admit = (slot: Disposable) => void;

interface Tenant {
  readonly queues: Map<string, Queue>;
  usedNs: number;
  runCount: number;
}

/** The waiting runs of one model, in order of arrival. */
interface Queue extends RunOwner {
  readonly of: Tenant;
  readonly waiting: Set<Admit>;
}

/** Maximum number of idle tenants whose used time is kept. */
const tenantsMax = 1024;

/**
 * Queues of runs. `chooseRun` divides the processing time fairly among tenants. The callers limit the length of the queues, because each
 * instance of a model runs one batch at a time.
 */
export class RunQueue {
  readonly #limits: RunLimits;
  readonly #clock: Clock;
  /** Tenants with running or waiting runs, and idle tenants that have used more time than the floor. */
  readonly #tenants = new Map<number, Tenant>();
  readonly #queues = new Set<Queue>();
  readonly #running = new Set<ActiveRun>();
  #timer: Disposable | null = null;
  /**
   * Used time, in nanoseconds, of the tenant that was admitted last. A new tenant starts with at least this value, so that a tenant cannot
   * accumulate credit while it is idle.
   */
  #floorNs = 0;

  constructor(limits: RunLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get waitingCount(): number {
    let count = 0;
    for (const { waiting } of this.#queues) count += waiting.size;
    return count;
  }

  /** Resolves when the owner may start a run; disposing the result ends the run. Rejects with CANCELLED if the signal aborts first. */
  enter(owner: RunOwner, signal: AbortSignal | null): Promise<Disposable> {
    if (signal?.aborted) return Promise.reject(new InferenceError("CANCELLED", "Request cancelled"));
    const queue = this.#queue(owner);
    return new Promise((resolve, reject) => {
      const admit: Admit = (slot) => {
        signal?.removeEventListener("abort", giveUp);
        resolve(slot);
      };
      const giveUp = () => {
        this.#leaveQueue(queue, admit);
        this.#forgetIdle(queue);
        reject(new InferenceError("CANCELLED", "Request cancelled"));
      };
      signal?.addEventListener("abort", giveUp, { once: true });
      queue.waiting.add(admit);
      this.#advance();
    });
  }

  #queue({ tenant, model }: RunOwner): Queue {
    const of = this.#tenant(tenant);
    const known = of.queues.get(model);
    if (known !== undefined) return known;
    const queue: Queue = { tenant, model, of, waiting: new Set() };
    of.queues.set(model, queue);
    this.#queues.add(queue);
    return queue;
  }

  #tenant(id: number): Tenant {
    const known = this.#tenants.get(id);
    if (known !== undefined) {
      if (isIdle(known)) known.usedNs = Math.max(known.usedNs, this.#floorNs);
      return known;
    }
    const tenant: Tenant = { usedNs: this.#floorNs, runCount: 0, queues: new Map() };
    this.#tenants.set(id, tenant);
    return tenant;
  }

  #advance(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = null;
    while (this.#queues.size > 0) {
      const nowNs = this.#clock.monotonicNs();
      const waiting = Array.from(this.#queues, (owner) => ({ owner, usedNs: owner.of.usedNs }));
      const choice = chooseRun({ running: this.#running, waiting, nowNs }, this.#limits);
      if (choice.kind === "later") {
        if (choice.atNs === null) return;
        const delayMs = Math.max(1, Math.ceil((choice.atNs - nowNs) / 1e6));
        this.#timer = this.#clock.timer(delayMs, () => this.#advance());
        return;
      }
      this.#admit(choice.owner, nowNs);
    }
  }

  #admit(queue: Queue, sinceNs: number): void {
    const admit = queue.waiting.values().next().value as Admit;
    const { of, tenant, model } = queue;
    this.#leaveQueue(queue, admit);
    this.#floorNs = Math.max(this.#floorNs, of.usedNs);
    const run: ActiveRun = { owner: { tenant, model }, sinceNs };
    this.#running.add(run);
    of.runCount += 1;
    admit({
      [Symbol.dispose]: () => {
        if (!this.#running.delete(run)) return;
        of.runCount -= 1;
        of.usedNs += this.#clock.monotonicNs() - sinceNs;
        this.#forgetIdle(queue);
        this.#advance();
      },
    });
  }

  #leaveQueue(queue: Queue, admit: Admit): void {
    queue.waiting.delete(admit);
    if (queue.waiting.size > 0) return;
    this.#queues.delete(queue);
    queue.of.queues.delete(queue.model);
  }

  #forgetIdle({ tenant, of }: Queue): void {
    if (!isIdle(of) || this.#tenants.get(tenant) !== of) return;
    if (of.usedNs <= this.#floorNs || this.#tenants.size > tenantsMax) this.#tenants.delete(tenant);
  }
}

function isIdle({ runCount, queues }: Tenant): boolean {
  return runCount === 0 && queues.size === 0;
}
