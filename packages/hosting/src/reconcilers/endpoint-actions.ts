import { delay } from "@galatea/base";
import type { Retirements } from "../capacity/index.ts";
import { nameKey } from "../definitions/index.ts";
import {
  moveEndpoint,
  nextChangeAction,
  RunningEndpoint,
  stateChangeOf,
  type Change,
  type EndpointEvent,
  type EndpointRecord,
  type RunningEndpointParts,
} from "../endpoints/index.ts";
import type { HostingStore, WriteConsequences } from "../store/index.ts";
import { alarmLookMs, raisedAlarm, withinDeadline, type ReadAlarmState } from "./deployment-limits.ts";
import type { InState, ReconciledKind, RecordStep, StepOutcome } from "./reconciler.ts";

export interface EndpointActionsOptions {
  readonly store: HostingStore;
  readonly parts: RunningEndpointParts;
  readonly retirements: Retirements;
  readonly alarmState: ReadAlarmState;
}

type EndpointStep<Found extends EndpointRecord = EndpointRecord> = RecordStep<EndpointRecord, EndpointEvent, Found>;
type EndpointOutcome = Promise<StepOutcome<EndpointRecord, EndpointEvent>>;

/** What runs for endpoints, and what is done in each of their states. */
export class EndpointActions implements ReconciledKind<EndpointRecord, EndpointEvent> {
  readonly what = "an endpoint";
  readonly records: HostingStore["kinds"]["endpoints"];
  readonly transition = moveEndpoint;
  readonly actions: ReconciledKind<EndpointRecord, EndpointEvent>["actions"] = {
    Creating: (step) => this.#create(step),
    InService: null,
    Updating: (step) => this.#change(step),
    RollingBack: (step) => this.#change(step),
    UpdateRollbackFailed: null,
    OutOfService: (step) => this.#stop(step),
    Deleting: (step) => this.#tearDown(step),
    Failed: (step) => this.#discard(step),
  };
  readonly #options: EndpointActionsOptions;
  readonly #running = new Map<string, RunningEndpoint>();
  /** Those that are not in service for the first time yet: no request goes to them. */
  readonly #created = new Map<string, RunningEndpoint>();

  constructor(options: EndpointActionsOptions) {
    this.#options = options;
    this.records = options.store.kinds.endpoints;
  }

  /** What runs for an endpoint; undefined while no request is taken for it. */
  running(name: string): RunningEndpoint | undefined {
    return this.#running.get(nameKey(name));
  }

  allRunning(): Iterable<RunningEndpoint> {
    return this.#running.values();
  }

  async resume(record: EndpointRecord): Promise<void> {
    const { at } = record.state;
    if (at === "Creating" || at === "Deleting" || at === "Failed" || at === "OutOfService") return;
    const running = new RunningEndpoint(record, this.#options.parts);
    running.resume(record);
    this.#running.set(nameKey(record.name), running);
    this.#options.parts.fleet.logger.verbose("an endpoint is brought back", { endpoint: record.name });
  }

  consequences(before: EndpointRecord, after: EndpointRecord | null): WriteConsequences {
    const nowMs = after?.modifiedMs ?? this.#options.parts.fleet.clock.epochMs();
    return { stateChange: stateChangeOf(before, after, nowMs) };
  }

  /** Stops every instance. */
  async leave(): Promise<void> {
    const all = [...this.#running.values(), ...this.#created.values()];
    await Promise.all(all.map((running) => running.leave()));
    this.#running.clear();
    this.#created.clear();
  }

  async #create(step: EndpointStep): EndpointOutcome {
    const running = this.#runningFor(step);
    return await this.#outcome(step, running, async () => {
      await this.#bringUp(step, running);
      return { kind: "ready" };
    });
  }

  async #change(step: EndpointStep<InState<EndpointRecord, "Updating" | "RollingBack">>): EndpointOutcome {
    const running = this.#runningFor(step);
    const { change } = step.record.state;
    const { clock } = this.#options.parts.fleet;
    const { deadlineMs } = change;
    return await this.#outcome(step, running, () =>
      withinDeadline({ deadlineMs, clock, signal: step.signal, what: "deployment" }, async (signal) => {
        const action = nextChangeAction(change, clock.epochMs());
        if (action.do === "bring-up") {
          this.#lookAtAlarms(change);
          await this.#bringUp({ ...step, signal }, running);
          return { kind: "reached", nowMs: clock.epochMs() };
        }
        if (action.do === "bake") await this.#bake(change, action.untilMs, signal);
        await running.inService(signal);
        if (action.do === "bake") this.#lookAtAlarms(change);
        return { kind: "advanced" };
      }),
    );
  }

  /** With what the work comes to, or its failure. */
  async #outcome(step: EndpointStep, running: RunningEndpoint, work: () => Promise<EndpointEvent>): EndpointOutcome {
    const event = await work().catch((error: unknown): EndpointEvent => {
      step.signal.throwIfAborted();
      return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
    });
    const recorded = (moved: EndpointRecord) => {
      if (moved.state.at === "Failed") return;
      this.#created.delete(step.key);
      this.#running.set(step.key, running);
      this.#follow(step, running, moved);
    };
    return { do: "transition", event, recorded };
  }

  /** Instances that drain are waited for where the nodes have no room for new ones beside them. They have their time, unless a roll-back needs it. */
  async #bringUp({ key, record, signal }: EndpointStep, running: RunningEndpoint): Promise<void> {
    running.countBy(record);
    {
      using _hurry = record.state.at === "RollingBack" ? this.#options.retirements.hurry(key, signal) : null;
      await running.room(signal);
    }
    await running.bringUp(record, signal);
  }

  async #bake(change: Change, untilMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.parts.fleet;
    for (;;) {
      this.#lookAtAlarms(change);
      const leftMs = untilMs - clock.epochMs();
      if (leftMs <= 0) return;
      await delay(clock, change.alarms.length === 0 ? leftMs : Math.min(leftMs, alarmLookMs), signal);
    }
  }

  #lookAtAlarms({ alarms }: Change): void {
    const reason = raisedAlarm(alarms, this.#options.alarmState);
    if (reason !== null) throw new Error(reason);
  }

  /** In the background: the next step need not wait for the requests that old instances have. */
  #follow({ key, background }: EndpointStep, running: RunningEndpoint, record: EndpointRecord): void {
    const { retirements } = this.#options;
    background((closing) => retirements.leave(key, closing, (signal) => running.follow(record, signal)));
  }

  /** In the background: the endpoint may start again meanwhile. */
  async #stop(step: EndpointStep): EndpointOutcome {
    step.background(() => this.#retire(step));
    return null;
  }

  /** The name is free when everything that ran has ended. */
  async #tearDown(step: EndpointStep): EndpointOutcome {
    await this.#discard(step);
    await this.#retire(step);
    return { do: "forget" };
  }

  async #retire({ key, record, closing }: EndpointStep): Promise<void> {
    const running = this.#running.get(key);
    if (running === undefined) return;
    this.#running.delete(key);
    running.countBy(record);
    await this.#options.retirements.end(key, closing, (signal) => running.retire(signal));
  }

  /** Ends what never came into service. */
  async #discard({ key }: EndpointStep): EndpointOutcome {
    const created = this.#created.get(key);
    this.#created.delete(key);
    await created?.[Symbol.asyncDispose]();
    return null;
  }

  #runningFor({ key, record }: EndpointStep): RunningEndpoint {
    const found = this.#running.get(key) ?? this.#created.get(key);
    if (found !== undefined) return found;
    const running = new RunningEndpoint(record, this.#options.parts);
    this.#created.set(key, running);
    return running;
  }
}
