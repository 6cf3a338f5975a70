import {
  delay,
  KeyedLock,
  openDeadline,
  patientWrite,
  TaskGroup,
  unreachable,
  type PatientWriteOptions,
} from "@galatea/base";
import { DocumentConflict } from "../records/index.ts";
import { nameKey } from "../definitions/index.ts";
import {
  moveEndpoint,
  nextAction,
  RunningEndpoint,
  stateChangeOf,
  type Change,
  type EndpointAction,
  type EndpointEvent,
  type EndpointRecord,
  type FleetOptions,
  type FleetParts,
} from "../endpoints/index.ts";
import type { Mirrors } from "../mirrors/index.ts";
import type { Retirements } from "../capacity/index.ts";
import type { HostingStore } from "../store/index.ts";

/** Of a CloudWatch alarm by its name; null for one that there is not. */
export type LookAtAlarm = (name: string) => "OK" | "ALARM" | "INSUFFICIENT_DATA" | null;

export interface EndpointReconcilerOptions {
  readonly store: HostingStore;
  readonly fleet: FleetOptions;
  readonly mirrors: Mirrors;
  readonly retirements: Retirements;
  /** In [0, 1): which instance a request goes to. */
  readonly random: () => number;
  readonly newInstanceId: () => string;
  readonly alarmState: LookAtAlarm;
  readonly claim: FleetParts["claim"];
  readonly memorySeen: FleetParts["memorySeen"];
}

interface Move {
  readonly event: EndpointEvent;
  /** Called when it is recorded, before anybody is told. */
  readonly recorded?: (moved: EndpointRecord) => void;
}

/** Between looks at the alarms of an endpoint that bakes. */
const alarmLookMs = 1000;

/**
 * Makes the moves of endpoints: what runs for one follows what its record says. Each move is recorded before anything follows from it, and
 * only while the record is the one that the move was decided on, so whatever was recorded meanwhile (a deletion, another update) goes
 * first. The moves of one endpoint are made one after the other: what a deletion gives up has ended before its name is free again.
 */
export class EndpointReconciler implements AsyncDisposable {
  readonly #options: EndpointReconcilerOptions;
  readonly #running = new Map<string, RunningEndpoint>();
  readonly #driving = new Map<string, AbortController>();
  readonly #queues = new KeyedLock();
  readonly #tasks: TaskGroup;

  constructor(options: EndpointReconcilerOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.fleet.logger.error("an endpoint's move ended unexpectedly", { error: String(error) });
    });
  }

  /** What runs for an endpoint; undefined while nothing answers for it. */
  running(name: string): RunningEndpoint | undefined {
    return this.#running.get(nameKey(name));
  }

  allRunning(): Iterable<RunningEndpoint> {
    return this.#running.values();
  }

  /** Goes on with what an earlier life of the platform was doing. */
  resume(record: EndpointRecord): void {
    const { logger } = this.#options.fleet;
    const { at } = record.state;
    if (at === "Failed" || at === "OutOfService") return;
    this.#tasks.run((closing) =>
      this.#queues.run(nameKey(record.name), async () => {
        if (at !== "Creating" && at !== "Deleting") {
          try {
            const running = this.#open(record);
            running.resume(record);
            this.#running.set(nameKey(record.name), running);
          } catch (error) {
            return logger.error("an endpoint cannot be brought back", { endpoint: record.name, error: String(error) });
          }
          logger.verbose("an endpoint is brought back", { endpoint: record.name });
        }
        await this.#drive(nameKey(record.name), closing);
      }),
    );
  }

  /** Goes on with an endpoint whose record was moved: what was being done for the record before is given up. */
  go({ name }: EndpointRecord): void {
    const key = nameKey(name);
    this.#driving.get(key)?.abort(new Error("the endpoint is to be something else"));
    this.#tasks.run((closing) => this.#queues.run(key, () => this.#drive(key, closing)));
  }

  /** Records a move that is decided on the record as it is; null where `decide` finds that there is none to make. */
  async record(key: string, decide: (record: EndpointRecord) => EndpointEvent | null): Promise<EndpointRecord | null> {
    const { store } = this.#options;
    return await store.attempt(async () => {
      const found = await store.kinds.endpoints.find(key);
      if (found.at !== "found") return null;
      const event = decide(found.value);
      return event === null ? null : await this.#write(key, found, { event });
    });
  }

  /** Stops every instance; records stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#running.values()].map((running) => running.leave()));
    this.#running.clear();
  }

  #open(record: EndpointRecord): RunningEndpoint {
    const { fleet, mirrors, random, newInstanceId: newId, claim, memorySeen } = this.#options;
    return new RunningEndpoint(record, { fleet, mirrors, random, newId, claim, memorySeen });
  }

  async #write(
    key: string,
    { value, version }: { readonly value: EndpointRecord; readonly version: number },
    { event, recorded = () => {} }: Move,
  ): Promise<EndpointRecord> {
    const { store, fleet } = this.#options;
    const moved = { ...moveEndpoint(value, event), modifiedMs: fleet.clock.epochMs() };
    await store.write([store.kinds.endpoints.put(key, moved, version)], {
      stateChange: stateChangeOf(value, moved, moved.modifiedMs),
      recorded: () => recorded(moved),
    });
    return moved;
  }

  /** Null where the record is another by now. */
  async #writeUnlessMoved(
    key: string,
    found: { readonly value: EndpointRecord; readonly version: number },
    move: Move,
  ): Promise<EndpointRecord | null> {
    try {
      return await this.#write(key, found, move);
    } catch (error) {
      if (error instanceof DocumentConflict) return null;
      throw error;
    }
  }

  /** Makes one move after the other until there is none to make, or somebody else has moved the record: who did so goes on. */
  async #drive(key: string, closing: AbortSignal): Promise<void> {
    const { store, fleet } = this.#options;
    const aborter = new AbortController();
    this.#driving.set(key, aborter);
    const signal = AbortSignal.any([closing, aborter.signal]);
    // Of one that is being created nothing answers before it is in service.
    let created: RunningEndpoint | null = null;
    try {
      while (!signal.aborted) {
        const found = await store.kinds.endpoints.find(key);
        if (found.at !== "found") return;
        const { value: record } = found;
        const action = nextAction(record, fleet.clock.epochMs());
        if (action.do === "tear-down") return await this.#tearDown(key, record, closing);
        if (action.do === "nothing") return this.#stopped(key, record);
        const running = this.#running.get(key) ?? (created ??= this.#open(record));
        const event = await this.#make(action, record, { running, signal });
        if (event === null) return;
        // Whoever is told of the move finds what runs for it.
        const recorded = (moved: EndpointRecord) => {
          if (moved.state.at === "Failed") return;
          this.#running.set(key, running);
          created = null;
          this.#follow(running, moved);
        };
        const write = () => this.#writeUnlessMoved(key, found, { event, recorded });
        const moved = await patientWrite(write, this.#patience(key, signal));
        if (moved === null || moved.state.at === "Failed") return;
      }
    } catch (error) {
      // Somebody else has moved the record while the disk was full, or the platform ends.
      if (!signal.aborted) throw error;
    } finally {
      if (this.#driving.get(key) === aborter) this.#driving.delete(key);
      await created?.[Symbol.asyncDispose]();
    }
  }

  /** What came of an action; null where it was given up. */
  async #make(
    action: Exclude<EndpointAction, { readonly do: "nothing" | "tear-down" }>,
    record: EndpointRecord,
    { running, signal }: { readonly running: RunningEndpoint; readonly signal: AbortSignal },
  ): Promise<EndpointEvent | null> {
    const { clock } = this.#options.fleet;
    const { state } = record;
    const change = state.at === "Updating" || state.at === "RollingBack" ? state.change : null;
    const afterMs = change === null || change.deadlineMs === null ? null : change.deadlineMs - clock.epochMs();
    using limit = afterMs === null ? null : openDeadline({ clock, afterMs, signal, late: tooLate });
    try {
      await this.#await(action, record, { running, signal: limit?.signal ?? signal });
      if (action.do === "bake") this.#lookAtAlarms(change);
    } catch (error) {
      if (signal.aborted) return null;
      return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
    }
    if (signal.aborted) return null;
    if (state.at === "Creating") return { kind: "ready" };
    return action.do === "bring-up" ? { kind: "reached", nowMs: clock.epochMs() } : { kind: "advanced" };
  }

  async #await(
    action: Exclude<EndpointAction, { readonly do: "nothing" | "tear-down" }>,
    record: EndpointRecord,
    { running, signal }: { readonly running: RunningEndpoint; readonly signal: AbortSignal },
  ): Promise<void> {
    switch (action.do) {
      case "bring-up":
        this.#lookAtAlarms(record.state.at === "Updating" ? record.state.change : null);
        running.countBy(record);
        await this.#room(record, running, signal);
        return await running.bringUp(record, signal);
      case "bake":
        await this.#bake(record, action.untilMs, signal);
        return await running.inService(signal);
      case "advance":
        return await running.inService(signal);
      default:
        return unreachable(action);
    }
  }

  /**
   * Instances that leave are waited for where the nodes have no room for those to come beside them. They have their time, unless something
   * is to be undone.
   */
  async #room({ name, state }: EndpointRecord, running: RunningEndpoint, signal: AbortSignal): Promise<void> {
    using _hurry = state.at === "RollingBack" ? this.#options.retirements.hurry(nameKey(name), signal) : null;
    await running.room(signal);
  }

  async #bake({ state }: EndpointRecord, untilMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.fleet;
    const change = state.at === "Updating" ? state.change : null;
    for (;;) {
      this.#lookAtAlarms(change);
      const leftMs = untilMs - clock.epochMs();
      if (leftMs <= 0) return;
      await delay(
        clock,
        change === null || change.alarms.length === 0 ? leftMs : Math.min(leftMs, alarmLookMs),
        signal,
      );
    }
  }

  #lookAtAlarms(change: Change | null): void {
    const raised = change?.alarms.find((name) => this.#options.alarmState(name) === "ALARM");
    if (raised !== undefined) throw new Error(`The CloudWatch alarm ${raised} is in the state ALARM.`);
  }

  /** Nothing is waited for: the next move need not wait for the requests that old instances hold. */
  #follow(running: RunningEndpoint, record: EndpointRecord): void {
    const key = nameKey(record.name);
    const { retirements } = this.#options;
    this.#tasks.run((closing) => retirements.leave(key, closing, (signal) => running.follow(record, signal)));
  }

  #stopped(key: string, record: EndpointRecord): void {
    const running = this.#running.get(key);
    if (record.state.at !== "OutOfService" || running === undefined) return;
    this.#running.delete(key);
    running.countBy(record);
    const { retirements } = this.#options;
    this.#tasks.run((closing) => retirements.end(key, closing, (signal) => running.retire(signal)));
  }

  async #tearDown(key: string, record: EndpointRecord, closing: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const { endpoints, tags } = store.kinds;
    const running = this.#running.get(key);
    this.#running.delete(key);
    if (running !== undefined) {
      running.countBy(record);
      await this.#options.retirements.end(key, closing, (signal) => running.retire(signal));
    }
    const forget = async () => {
      const found = await endpoints.find(key);
      if (found.at !== "found") return;
      const changes = [endpoints.delete(key, found.version), tags.delete(found.value.arn, "any")];
      const nowMs = this.#options.fleet.clock.epochMs();
      await store.write(changes, { stateChange: stateChangeOf(found.value, null, nowMs) });
    };
    await patientWrite(() => store.attempt(forget), this.#patience(key, closing));
  }

  #patience(name: string, signal: AbortSignal): PatientWriteOptions {
    const { clock, logger } = this.#options.fleet;
    return { clock, logger, what: "a move", name, outlasts: "disk faults", signal };
  }
}

const tooLate = () => new Error("The deployment took longer than its MaximumExecutionTimeoutInSeconds.");
