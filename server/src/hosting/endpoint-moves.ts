import { KeyedLock, openDeadline, TaskGroup } from "../base/index.ts";
import { nameKey, type VariantPlan } from "./definitions/index.ts";
import {
  moveEndpoint,
  RunningEndpoint,
  type EndpointEvent,
  type EndpointRecord,
  type EndpointState,
  type FleetOptions,
} from "./endpoints/index.ts";
import type { HostingStore } from "./store/index.ts";

export interface EndpointMovesOptions {
  readonly store: HostingStore;
  readonly fleet: FleetOptions;
  readonly retireMsMax: number;
  /** In [0, 1): which instance a request goes to. */
  readonly random: () => number;
  readonly newInstanceId: () => string;
}

/** What an endpoint is moved to run. */
interface Deployment {
  readonly configName: string;
  readonly plans: readonly VariantPlan[];
}

/**
 * Makes the moves of endpoints: what runs for one follows what its record says. Each move is recorded before anybody is told of it, and
 * only from the state that it is made from. The moves of one endpoint are made one after the other: what a deletion gives up has ended before
 * its name is free again.
 */
export class EndpointMoves implements AsyncDisposable {
  readonly #options: EndpointMovesOptions;
  readonly #running = new Map<string, RunningEndpoint>();
  readonly #starting = new Map<string, AbortController>();
  readonly #queues = new KeyedLock();
  readonly #tasks: TaskGroup;

  constructor(options: EndpointMovesOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.fleet.logger.error("an endpoint's move ended unexpectedly", { error: String(error) });
    });
  }

  /** What runs for an endpoint; undefined while nothing does. */
  running(name: string): RunningEndpoint | undefined {
    return this.#running.get(nameKey(name));
  }

  allRunning(): Iterable<RunningEndpoint> {
    return this.#running.values();
  }

  /** Goes on with what an earlier life of the platform was doing. */
  resume(record: EndpointRecord): void {
    const { logger } = this.#options.fleet;
    try {
      this.#takeUp(record);
    } catch (error) {
      logger.error("an endpoint cannot be brought back", { endpoint: record.name, error: String(error) });
    }
  }

  /** For one that is recorded as being created. */
  bringUp({ name }: EndpointRecord): void {
    this.#enqueue(name, (closing) => this.#bringUp(nameKey(name), closing));
  }

  /** For one that is recorded as being updated. */
  replace({ name }: EndpointRecord): void {
    this.#enqueue(name, (closing) => this.#replace(nameKey(name), closing));
  }

  /** For one that is recorded as being deleted: what is being brought up for it is given up. */
  tearDown({ name }: EndpointRecord): void {
    const key = nameKey(name);
    this.#starting.get(key)?.abort(new Error("the endpoint is deleted"));
    this.#enqueue(name, (closing) => this.#tearDown(key, closing));
  }

  /** Records a move; null where the endpoint is not in the state any more that the move is made from. */
  async record(
    key: string,
    from: EndpointState["at"],
    event: EndpointEvent,
    deployed: Deployment | null = null,
  ): Promise<EndpointRecord | null> {
    const { store, fleet } = this.#options;
    const { endpoints } = store.kinds;
    return await store.attempt(async () => {
      const found = await endpoints.find(key);
      if (found.at !== "found" || found.value.state.at !== from) return null;
      const { state } = found.value;
      const modifiedMs = fleet.clock.epochMs();
      const moved = { ...found.value, ...deployed, state: moveEndpoint(state, event), modifiedMs };
      await store.write([endpoints.put(key, moved, found.version)]);
      return moved;
    });
  }

  /** Stops every instance; records stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#running.values()].map((running) => running.leave()));
    this.#running.clear();
  }

  #takeUp(record: EndpointRecord): void {
    const { at } = record.state;
    if (at === "Creating") this.bringUp(record);
    if (at === "Deleting") this.tearDown(record);
    if (at !== "InService" && at !== "Updating" && at !== "RollingBack") return;
    this.#enqueue(record.name, async (closing) => {
      const key = nameKey(record.name);
      const running = this.#open(record, record);
      this.#running.set(key, running);
      running.resume();
      this.#options.fleet.logger.info("an endpoint is brought back", { endpoint: record.name });
      if (at === "Updating") await this.#replace(key, closing);
      if (at === "RollingBack") await this.record(key, "RollingBack", { kind: "rolled-back" });
    });
  }

  #enqueue(name: string, move: (closing: AbortSignal) => Promise<void>): void {
    this.#tasks.run((closing) => this.#queues.run(nameKey(name), () => move(closing)));
  }

  #open(record: EndpointRecord, deployment: Deployment): RunningEndpoint {
    const { fleet, random, newInstanceId: newId } = this.#options;
    return new RunningEndpoint(record, deployment, { fleet, random, newId });
  }

  async #bringUp(key: string, closing: AbortSignal): Promise<void> {
    const record = await this.#inState(key, "Creating");
    if (record === null) return;
    const running = this.#open(record, record);
    const failure = await this.#start(key, running, closing);
    if (closing.aborted) return await running[Symbol.asyncDispose]();
    if (failure === null) this.#running.set(key, running);
    const event: EndpointEvent = failure === null ? { kind: "ready" } : { kind: "failed", reason: failure };
    if ((await this.record(key, "Creating", event)) === null) await this.#drop(key, running);
  }

  /** Blue and green at once: the new fleets come up beside the old ones, then all traffic goes to them. */
  async #replace(key: string, closing: AbortSignal): Promise<void> {
    const record = await this.#inState(key, "Updating");
    if (record === null || record.state.at !== "Updating") return;
    const { next } = record.state;
    const running = this.#open(record, next);
    const failure = await this.#start(key, running, closing);
    if (closing.aborted) return await running[Symbol.asyncDispose]();
    if (failure !== null) {
      const moved = await this.record(key, "Updating", { kind: "failed", reason: failure });
      if (moved !== null) await this.record(key, "RollingBack", { kind: "rolled-back" });
      return;
    }
    // Deleted meanwhile: what was in service is what the deletion retires.
    const moved = await this.record(key, "Updating", { kind: "ready" }, next);
    if (moved === null) return await running[Symbol.asyncDispose]();
    const before = this.#running.get(key);
    this.#running.set(key, running);
    // Not part of the move: the next one need not wait for the requests that the old instances hold.
    if (before !== undefined) this.#tasks.run((over) => this.#retire(before, over));
  }

  async #tearDown(key: string, closing: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const { endpoints, tags } = store.kinds;
    const running = this.#running.get(key);
    this.#running.delete(key);
    if (running !== undefined) await this.#retire(running, closing);
    await store.attempt(async () => {
      const found = await endpoints.find(key);
      if (found.at !== "found") return;
      await store.write([endpoints.delete(key, found.version), tags.delete(found.value.arn, "any")]);
    });
  }

  async #inState(key: string, at: EndpointState["at"]): Promise<EndpointRecord | null> {
    const found = await this.#options.store.kinds.endpoints.find(key);
    return found.at === "found" && found.value.state.at === at ? found.value : null;
  }

  /** Null when every instance is in service, else the failure sentence. */
  async #start(key: string, running: RunningEndpoint, closing: AbortSignal): Promise<string | null> {
    const aborter = new AbortController();
    this.#starting.set(key, aborter);
    try {
      await running.start(AbortSignal.any([closing, aborter.signal]));
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      if (this.#starting.get(key) === aborter) this.#starting.delete(key);
    }
  }

  async #drop(key: string, running: RunningEndpoint): Promise<void> {
    if (this.#running.get(key) === running) this.#running.delete(key);
    await running[Symbol.asyncDispose]();
  }

  /** The limit is longer than any request: a cold model is waited for 55 s, its answer 59 s. */
  async #retire(running: RunningEndpoint, closing: AbortSignal): Promise<void> {
    const { fleet, retireMsMax } = this.#options;
    using limit = openDeadline({ clock: fleet.clock, afterMs: retireMsMax, signal: closing });
    await running.retire(limit.signal);
  }
}
