import { AwsError, delay, rejectOnAbort, unreachable } from "@galatea/base";
import type { Reservations, DrainLimiter } from "../capacity/index.ts";
import {
  ComponentCopies,
  componentFootprint,
  isComponentInTransition,
  applyComponentEvent,
  nextComponentAction,
  noClaim,
  type ComponentAction,
  type ComponentClaim,
  type ComponentEvent,
  type ComponentRecord,
} from "../components/index.ts";
import { nameKey } from "../definitions/index.ts";
import { instanceFailureReason, footprintDifference, type FleetDependencies } from "../endpoints/index.ts";
import type { HostingStore, WriteEffects } from "../store/index.ts";
import { alarmPollMs, alarmFailureReason, runWithinDeadline, type ReadAlarmState } from "./deployment-limits.ts";
import type { RecordInState, ReconciledKind, ActionContext, ActionOutcome } from "./reconciler.ts";
import { sharedInstanceUsage, type SharedVariants } from "./shared-variants.ts";

export interface ComponentActionsOptions {
  readonly store: HostingStore;
  readonly parts: FleetDependencies;
  readonly variants: SharedVariants;
  readonly drainLimiter: DrainLimiter;
  readonly alarmState: ReadAlarmState;
  readonly reservations: Pick<Reservations, "reserveComponent">;
}

type ComponentStep = ActionContext<ComponentRecord, ComponentEvent>;
type Approaching = RecordInState<ComponentRecord, "Creating" | "Updating">;
type ApproachStep = ActionContext<ComponentRecord, ComponentEvent, Approaching>;
type ComponentOutcome = Promise<ActionOutcome<ComponentRecord, ComponentEvent>>;

/**
 * The running inference components, and the action of each state of a component. Copies of one endpoint are placed under a lock and recorded
 * before they start. Without this, two components could claim more of an instance than it has.
 */
export class ComponentActions implements ReconciledKind<ComponentRecord, ComponentEvent> {
  readonly what = "inference component";
  readonly isTransient = isComponentInTransition;
  readonly records: HostingStore["kinds"]["components"];
  readonly transition = applyComponentEvent;
  readonly actions: ReconciledKind<ComponentRecord, ComponentEvent>["actions"] = {
    Creating: (step) => this.#approach(step),
    Updating: (step) => this.#approach(step),
    InService: (step) => this.#release(step),
    Failed: (step) => this.#end(step),
    Deleting: (step) => this.#tearDown(step),
  };
  readonly #options: ComponentActionsOptions;
  readonly #running = new Map<string, ComponentCopies>();
  /** All components as last recorded, by name. The account's quota limits their number. */
  readonly #recorded = new Map<string, ComponentRecord>();

  constructor(options: ComponentActionsOptions) {
    this.#options = options;
    this.records = options.store.kinds.components;
  }

  /** Returns the running copies of a component; undefined while no requests are routed to the component. */
  running(name: string): ComponentCopies | undefined {
    return this.#running.get(nameKey(name));
  }

  /** Returns the components of an endpoint. */
  of(endpointName: string): readonly ComponentRecord[] {
    const key = nameKey(endpointName);
    return [...this.#recorded.values()].filter((each) => nameKey(each.endpointName) === key);
  }

  added(record: ComponentRecord): void {
    this.#recorded.set(nameKey(record.name), record);
  }

  async resume(record: ComponentRecord): Promise<void> {
    const { at } = record.state;
    if (at === "Failed" || at === "Deleting") return;
    (await this.#copiesOf(record))?.resume(record);
  }

  consequences(_before: ComponentRecord, after: ComponentRecord | null): WriteEffects {
    return after === null ? {} : { recorded: () => this.added(after) };
  }

  /** Stops every copy. */
  async shutDown(): Promise<void> {
    await Promise.all([...this.#running.values()].map((copies) => copies.shutDown()));
    this.#running.clear();
  }

  /**
   * Returns the copies of a component; creates the object at the first call. Resolves with null if the endpoint or variant does not exist.
   */
  async #copiesOf(record: ComponentRecord): Promise<ComponentCopies | null> {
    const key = nameKey(record.name);
    const found = this.#running.get(key);
    if (found !== undefined) return found;
    const shared = await this.#options.variants.find(record);
    if (shared === null) return null;
    const copies = new ComponentCopies(record, shared, this.#options.parts);
    this.#running.set(key, copies);
    return copies;
  }

  /** Repeats attempts until new copies are placed, or the goal is reached or has failed. */
  async #approach(step: ApproachStep): ComponentOutcome {
    const { record } = step;
    const copies = await this.#copiesOf(record);
    if (copies === null) {
      return { do: "transition", event: { kind: "failed", reason: deletedReason, copies: [] } };
    }
    let approach = await this.#attempt(step, copies);
    while (approach.do === "again") approach = await this.#attempt(step, copies);
    if (approach.do === "placed") return null;
    const event: ComponentEvent =
      approach.do === "settle"
        ? { kind: "settled" }
        : { kind: "failed", reason: approach.reason, copies: copies.inService(record) };
    const recorded = (moved: ComponentRecord) => {
      if (moved.state.at !== "Failed") this.#follow(step, copies, moved);
    };
    return { do: "transition", event, recorded };
  }

  async #attempt(step: ApproachStep, copies: ComponentCopies): Promise<Approach> {
    const { record, signal } = step;
    const { clock } = this.#options.parts.fleet;
    const { alarms = [] } = record.state.goal;
    const raised = alarmFailureReason(alarms, this.#options.alarmState);
    if (raised !== null) return missed(raised);
    const late = await this.#within(step, (limited) => this.#bringUp({ ...step, signal: limited }, copies));
    if (late !== null) return missed(late);
    const placed = await this.#place(step, copies).catch(limitReached);
    switch (placed.do) {
      case "placed":
      case "settle":
      case "missed":
        return placed;
      case "bake": {
        const bakesMs = placed.untilMs - clock.epochMs();
        await delay(clock, alarms.length === 0 ? bakesMs : Math.min(bakesMs, alarmPollMs), signal);
        return again;
      }
      case "no-node-memory": {
        const { freed } = placed;
        if (freed === null) return missed(noNodeMemoryText(record, placed.missingCount));
        const tooLate = await this.#within(step, async (limited) => {
          using _shortenedDrain = this.#shortenDrain(step, limited);
          await rejectOnAbort(freed, limited);
        });
        return tooLate === null ? again : missed(tooLate);
      }
      case "no-instance-capacity": {
        const refusal = await this.#options.variants.grow(record, signal);
        return refusal === null
          ? again
          : missed(`${noInstanceCapacityText(record, placed.missingCount)} ${refusal}`.trim());
      }
      default:
        return unreachable(placed);
    }
  }

  /** Runs work with the deadline of the component's goal. Resolves with null on success, or with the error text. */
  async #within(
    { record, signal }: ApproachStep,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<string | null> {
    const { deadlineMs } = record.state.goal;
    const { clock } = this.#options.parts.fleet;
    try {
      await runWithinDeadline({ deadlineMs, clock, signal, what: "update" }, work);
      return null;
    } catch (error) {
      signal.throwIfAborted();
      return instanceFailureReason(error, record.variantName);
    }
  }

  /** Starts the copies of the record. If the nodes lack memory, waits for draining copies first. */
  async #bringUp(step: ApproachStep, copies: ComponentCopies): Promise<void> {
    const { record, signal } = step;
    copies.reserveForRecord(record);
    {
      using _shortenedDrain = this.#shortenDrain(step, signal);
      await copies.waitForCapacity(signal);
    }
    await copies.start(record, signal);
  }

  /** Shortens the drain of copies during a rollback, because the rollback needs their memory. */
  #shortenDrain({ key, record: { state } }: ApproachStep, signal: AbortSignal): Disposable | null {
    return state.at === "Updating" && state.undoing !== null ? this.#options.drainLimiter.shorten(key, signal) : null;
  }

  /** Places copies on instances while holding the endpoint's placement lock. */
  async #place(step: ApproachStep, copies: ComponentCopies): Promise<Placed> {
    const { key, record } = step;
    const { variants, parts, reservations } = this.#options;
    return await variants.placing(record.endpointName, async () => {
      const shared = await variants.find(record);
      if (shared === null) return missed(deletedReason);
      const instances = sharedInstanceUsage(shared, record, this.of(record.endpointName));
      const nowMs = parts.fleet.clock.epochMs();
      const freed = copies.whenMemoryFreed();
      const nodes = variants.nodesFor(record, shared);
      const action = nextComponentAction(record, { instances, nodes, isDraining: freed !== null }, nowMs);
      if (action.do === "no-node-memory") return { ...action, freed };
      if (action.do !== "place") return action;
      const event = { kind: "placed", copies: action.copies, nowMs } as const;
      const more = footprintDifference(
        componentFootprint(applyComponentEvent(record, event)),
        componentFootprint(record),
      );
      using _reserved = reservations.reserveComponent(key, more);
      this.#follow(step, copies, await step.transition(event));
      return { do: "placed" };
    });
  }

  /** Drains removed copies in the background, so that the next step does not wait for their requests. */
  #follow({ key, background }: ComponentStep, copies: ComponentCopies, record: ComponentRecord): void {
    const { drainLimiter } = this.#options;
    background((closing) => drainLimiter.drainUpdated(key, closing, (signal) => copies.reduceTo(record, signal)));
  }

  /** Removes instances without copies in the background. `grow` adds instances again when a component needs them. */
  async #release({ record, background }: ComponentStep): ComponentOutcome {
    const { variants } = this.#options;
    background((closing) => variants.release(record, () => this.of(record.endpointName), closing));
    return null;
  }

  async #end(step: ComponentStep): ComponentOutcome {
    await this.#drain(step);
    return await this.#release(step);
  }

  async #tearDown(step: ComponentStep): ComponentOutcome {
    const { key, record, closing } = step;
    await this.#drain(step);
    // Without this line, `release` would treat the instances of the stopped copies as used.
    this.#recorded.delete(key);
    // The instances are removed before the record. If the platform is killed in between, the next start repeats the removal.
    await this.#options.variants.release(record, () => this.of(record.endpointName), closing);
    return { do: "forget" };
  }

  async #drain({ key, record, closing }: ComponentStep): Promise<void> {
    const copies = this.#running.get(key);
    this.#running.delete(key);
    await this.#options.drainLimiter.drainDeleted(key, closing, async (signal) => await copies?.drain(record, signal));
  }
}

/** The outcome of one attempt to reach a component's goal. */
type Approach =
  | { readonly do: "again" }
  /** A new placement of copies was recorded. */
  | { readonly do: "placed" }
  | { readonly do: "settle" }
  | { readonly do: "missed"; readonly reason: string };

type Placed =
  | Exclude<Approach, { readonly do: "again" }>
  | Extract<ComponentAction, { readonly do: "bake" | "no-instance-capacity" }>
  /** No node has memory for the copies. `freed` resolves when draining copies have freed memory; null if none drain. */
  | { readonly do: "no-node-memory"; readonly missingCount: number; readonly freed: Promise<void> | null };

const deletedReason = "Its endpoint or variant was deleted.";
const again: Approach = { do: "again" };
const missed = (reason: string) => ({ do: "missed", reason }) as const;

function limitReached(error: unknown): Placed {
  if (error instanceof AwsError) return missed(error.message);
  throw error;
}

const insufficientResourcesText =
  "There are not enough hardware resources on the instances for this endpoint to create a copy of the inference component.";

/** Returns SageMaker's failure reason with the missing resources. */
function noInstanceCapacityText(record: Approaching, missingCount: number): string {
  const { cpuCores, memoryBytes, acceleratorCount } = goalClaim(record);
  return (
    `${insufficientResourcesText} No instance can hold the next of ${missingCount} more copies, which needs ${cpuCores} CPU cores, ` +
    `${Math.round(memoryBytes / 2 ** 20)} MiB of memory and ${acceleratorCount} accelerators. ` +
    "Lower the resource requirements, delete other inference components, or give the endpoint more instances."
  );
}

function noNodeMemoryText(record: Approaching, missingCount: number): string {
  return (
    `${insufficientResourcesText} The node has no memory for the next of ${missingCount} more copies, which takes ` +
    `${Math.round(goalClaim(record).memoryBytes / 2 ** 20)} MiB in addition to the running copies. Lower the resource requirements, or delete what is no ` +
    "longer needed; where a component has several copies, old ones make room for new ones."
  );
}

function goalClaim({ state, specs }: Approaching): ComponentClaim {
  return specs.find(({ number }) => number === state.goal.spec)?.claim ?? noClaim;
}
