import { delay } from "@galatea/base";
import type { DrainLimiter } from "../capacity/index.ts";
import { nameKey } from "../definitions/index.ts";
import {
  isTransientState,
  applyEndpointEvent,
  nextChangeAction,
  RunningEndpoint,
  detectStateChange,
  type EndpointChange,
  type EndpointEvent,
  type EndpointRecord,
  type RunningEndpointDependencies,
} from "../endpoints/index.ts";
import type { HostingStore, WriteEffects } from "../store/index.ts";
import { alarmPollMs, alarmFailureReason, runWithinDeadline, type ReadAlarmState } from "./deployment-limits.ts";
import type { RecordInState, ReconciledKind, ActionContext, ActionOutcome } from "./reconciler.ts";

export interface EndpointActionsOptions {
  readonly store: HostingStore;
  readonly parts: RunningEndpointDependencies;
  readonly drainLimiter: DrainLimiter;
  readonly alarmState: ReadAlarmState;
}

type EndpointStep<Found extends EndpointRecord = EndpointRecord> = ActionContext<EndpointRecord, EndpointEvent, Found>;
type EndpointOutcome = Promise<ActionOutcome<EndpointRecord, EndpointEvent>>;

/** The running endpoints, and the action of each state of an endpoint. */
export class EndpointActions implements ReconciledKind<EndpointRecord, EndpointEvent> {
  readonly what = "endpoint";
  readonly isTransient = isTransientState;
  readonly records: HostingStore["kinds"]["endpoints"];
  readonly transition = applyEndpointEvent;
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
  /** Endpoints that have never been in service. No requests are routed to them. */
  readonly #created = new Map<string, RunningEndpoint>();

  constructor(options: EndpointActionsOptions) {
    this.#options = options;
    this.records = options.store.kinds.endpoints;
  }

  /** Returns a running endpoint; undefined while no requests are routed to the endpoint. */
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
    this.#options.parts.fleet.logger.verbose("an endpoint is resumed", { endpoint: record.name });
  }

  consequences(before: EndpointRecord, after: EndpointRecord | null): WriteEffects {
    const nowMs = after?.modifiedMs ?? this.#options.parts.fleet.clock.epochMs();
    return { stateChange: detectStateChange(before, after, nowMs) };
  }

  /** Stops every instance. */
  async shutDown(): Promise<void> {
    const all = [...this.#running.values(), ...this.#created.values()];
    await Promise.all(all.map((running) => running.shutDown()));
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

  async #change(step: EndpointStep<RecordInState<EndpointRecord, "Updating" | "RollingBack">>): EndpointOutcome {
    const running = this.#runningFor(step);
    const { change } = step.record.state;
    const { clock } = this.#options.parts.fleet;
    const { deadlineMs } = change;
    return await this.#outcome(step, running, () =>
      runWithinDeadline({ deadlineMs, clock, signal: step.signal, what: "deployment" }, async (signal) => {
        const action = nextChangeAction(change, clock.epochMs());
        if (action.do === "bring-up") {
          this.#checkAlarms(change);
          await this.#bringUp({ ...step, signal }, running);
          return { kind: "reached", nowMs: clock.epochMs() };
        }
        if (action.do === "bake") await this.#bake(change, action.untilMs, signal);
        await running.inService(signal);
        if (action.do === "bake") this.#checkAlarms(change);
        return { kind: "advanced" };
      }),
    );
  }

  /** Runs work and returns its event as a transition. If the work fails, the transition is a `failed` event. */
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

  /** Starts the instances of a step. If the nodes lack memory, waits for draining instances first; a rollback shortens their drain. */
  async #bringUp({ key, record, signal }: EndpointStep, running: RunningEndpoint): Promise<void> {
    running.countBy(record);
    {
      using _shortenedDrain =
        record.state.at === "RollingBack" ? this.#options.drainLimiter.shorten(key, signal) : null;
      await running.untilCapacity(signal);
    }
    await running.bringUp(record, signal);
  }

  async #bake(change: EndpointChange, untilMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.parts.fleet;
    for (;;) {
      this.#checkAlarms(change);
      const leftMs = untilMs - clock.epochMs();
      if (leftMs <= 0) return;
      await delay(clock, change.alarms.length === 0 ? leftMs : Math.min(leftMs, alarmPollMs), signal);
    }
  }

  #checkAlarms({ alarms }: EndpointChange): void {
    const reason = alarmFailureReason(alarms, this.#options.alarmState);
    if (reason !== null) throw new Error(reason);
  }

  /** Drains removed instances in the background, so that the next step does not wait for their requests. */
  #follow({ key, background }: EndpointStep, running: RunningEndpoint, record: EndpointRecord): void {
    const { drainLimiter } = this.#options;
    background((closing) => drainLimiter.drainUpdated(key, closing, (signal) => running.follow(record, signal)));
  }

  /** Drains the instances in the background, so that the endpoint can be started again before they have ended. */
  async #stop(step: EndpointStep): EndpointOutcome {
    step.background(() => this.#drain(step));
    return null;
  }

  /** Drains all instances, and then deletes the record, which makes the name available again. */
  async #tearDown(step: EndpointStep): EndpointOutcome {
    await this.#discard(step);
    await this.#drain(step);
    return { do: "forget" };
  }

  async #drain({ key, record, closing }: EndpointStep): Promise<void> {
    const running = this.#running.get(key);
    if (running === undefined) return;
    this.#running.delete(key);
    running.countBy(record);
    await this.#options.drainLimiter.drainDeleted(key, closing, (signal) => running.drain(signal));
  }

  /** Stops the instances of an endpoint that has never been in service. */
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
