import {
  AwsError,
  delay,
  KeyedLock,
  openDeadline,
  orAborted,
  patientWrite,
  TaskGroup,
  unreachable,
} from "@galatea/base";
import {
  claimSum,
  ComponentCopies,
  componentFootprint,
  moreCopies,
  moveComponent,
  nextComponentAction,
  noClaim,
  type ComponentAction,
  type ComponentClaim,
  type ComponentEvent,
  type ComponentRecord,
  type SharedInstance,
} from "../components/index.ts";
import { nameKey } from "../definitions/index.ts";
import { failureSentence, footprintBeyond, type FleetParts } from "../endpoints/index.ts";
import type { Reservations } from "../capacity/index.ts";
import type { Retirements } from "../capacity/index.ts";
import type { LookAtAlarm } from "./endpoint-reconciler.ts";
import type { HostingStore } from "../store/index.ts";
import type { SharedVariants } from "./shared-variants.ts";

export interface ComponentReconcilerOptions {
  readonly store: HostingStore;
  readonly parts: FleetParts;
  readonly variants: SharedVariants;
  readonly retirements: Retirements;
  readonly alarmState: LookAtAlarm;
  readonly reservations: Pick<Reservations, "reserveComponent">;
}

/** How often the alarms of an update are looked at while a batch of it bakes. */
const alarmLookMs = 1000;

interface Recorded {
  readonly value: ComponentRecord;
  readonly version: number;
}

/**
 * Makes the moves of inference components: what runs for one follows what its record says. Copies are placed while nobody else places any on
 * the same endpoint, and are recorded before they start, so that what is claimed of an instance is never more than it has.
 */
export class ComponentReconciler implements AsyncDisposable {
  readonly #options: ComponentReconcilerOptions;
  readonly #running = new Map<string, ComponentCopies>();
  readonly #driving = new Map<string, AbortController>();
  readonly #queues = new KeyedLock();
  readonly #tasks: TaskGroup;
  /** All there are, as they were last recorded: the limit of an account bounds them. */
  readonly #records = new Map<string, ComponentRecord>();

  constructor(options: ComponentReconcilerOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.parts.fleet.logger.error("an inference component's move ended unexpectedly", { error: String(error) });
    });
  }

  /** What runs for a component; undefined while nothing answers for it. */
  running(name: string): ComponentCopies | undefined {
    return this.#running.get(nameKey(name));
  }

  allRunning(): Iterable<ComponentCopies> {
    return this.#running.values();
  }

  /** Those of an endpoint. */
  of(endpointName: string): readonly ComponentRecord[] {
    const key = nameKey(endpointName);
    return [...this.#records.values()].filter((each) => nameKey(each.endpointName) === key);
  }

  /** Goes on with what an earlier life of the platform was doing. */
  resume(record: ComponentRecord): void {
    const key = nameKey(record.name);
    this.#records.set(key, record);
    const { at } = record.state;
    // Instances that the earlier life had begun to give up.
    if (at === "Failed" || at === "InService") this.#release(record);
    if (at === "Failed") return;
    this.#tasks.run((closing) =>
      this.#queues.run(key, async () => {
        const copies = await this.#open(record);
        copies?.resume(record);
        await this.#drive(key, closing);
      }),
    );
  }

  /** Goes on with one whose record was moved: what was being done for the record before is given up. */
  go(record: ComponentRecord): void {
    const key = nameKey(record.name);
    this.#records.set(key, record);
    this.#driving.get(key)?.abort(new Error("the component is to be something else"));
    this.#tasks.run((closing) => this.#queues.run(key, () => this.#drive(key, closing)));
  }

  /** Records a move that is decided on the record as it is; null where it is gone, or `decide` finds that there is none to make. */
  async record(
    key: string,
    decide: (record: ComponentRecord) => ComponentEvent | null,
  ): Promise<ComponentRecord | null> {
    const { store } = this.#options;
    return await store.attempt(async () => {
      const found = await store.kinds.components.find(key);
      if (found.at !== "found") return null;
      const event = decide(found.value);
      return event === null ? null : await this.#write(key, found, event);
    });
  }

  /** Copies stop; records stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#running.values()].map((copies) => copies.leave()));
    this.#running.clear();
  }

  async #write(key: string, { value, version }: Recorded, event: ComponentEvent): Promise<ComponentRecord> {
    const { store, parts } = this.#options;
    const moved = { ...moveComponent(value, event), modifiedMs: parts.fleet.clock.epochMs() };
    await store.write([store.kinds.components.put(key, moved, version)]);
    this.#records.set(key, moved);
    return moved;
  }

  /** Null where its endpoint or variant is gone. */
  async #open(record: ComponentRecord): Promise<ComponentCopies | null> {
    const key = nameKey(record.name);
    const found = this.#running.get(key);
    if (found !== undefined) return found;
    const shared = await this.#options.variants.find(record);
    if (shared === null) return null;
    const copies = new ComponentCopies(record, shared, this.#options.parts);
    this.#running.set(key, copies);
    return copies;
  }

  /** Makes one move after the other until there is none to make, or somebody else is to go on. */
  async #drive(key: string, closing: AbortSignal): Promise<void> {
    const { components } = this.#options.store.kinds;
    const aborter = new AbortController();
    this.#driving.set(key, aborter);
    const signal = AbortSignal.any([closing, aborter.signal]);
    try {
      const step = async () => {
        const found = await components.find(key);
        return found.at === "found" && (await this.#step(key, found, { signal, closing }));
      };
      const { clock, logger } = this.#options.parts.fleet;
      // A step changes nothing before it is recorded, so all of it is made again.
      for (let more = true; more && !signal.aborted;)
        more = await patientWrite(step, {
          clock,
          logger,
          what: "a move",
          name: key,
          outlasts: "disk faults",
          signal,
        });
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      if (this.#driving.get(key) === aborter) this.#driving.delete(key);
    }
  }

  /** Whether there may be another one. */
  async #step(
    key: string,
    found: Recorded,
    { signal, closing }: { readonly signal: AbortSignal; readonly closing: AbortSignal },
  ): Promise<boolean> {
    const { value: record } = found;
    const { at } = record.state;
    if (at === "Deleting") {
      await this.#tearDown(key, record, closing);
      return false;
    }
    if (at === "InService" || at === "Failed") return false;
    const copies = await this.#open(record);
    if (copies === null) {
      await this.#write(key, found, { kind: "failed", reason: "Its endpoint or variant is gone.", copies: [] });
      return false;
    }
    const { goal } = record.state;
    const alarm = goal.alarms?.find((name) => this.#options.alarmState(name) === "ALARM");
    if (alarm !== undefined) {
      const reason = `The CloudWatch alarm ${alarm} is in the state ALARM.`;
      return await this.#fail(key, found, { copies, reason, closing });
    }
    try {
      await this.#within(goal.deadlineMs, signal, (limited) => this.#bringUp(record, copies, limited));
    } catch (error) {
      signal.throwIfAborted();
      const reason = failureSentence(error, record.variantName);
      return await this.#fail(key, found, { copies, reason, closing });
    }
    const moved = await this.#place(key, found, copies);
    switch (moved.do) {
      case "nothing":
        return false;
      case "moved":
        this.#follow(copies, moved.record);
        if (moved.record.state.at === "InService") this.#release(moved.record);
        return true;
      case "bake":
        // Looked at again, alarms and all, before it goes on.
        await delay(
          this.#options.parts.fleet.clock,
          hasAlarms(record) ? Math.min(moved.forMs, alarmLookMs) : moved.forMs,
          signal,
        );
        return true;
      case "refused":
        return await this.#fail(key, found, { copies, reason: moved.reason, closing });
      case "no-memory": {
        const late = moved.freed === null ? null : await this.#untilFreed(record, moved.freed, signal);
        if (moved.freed !== null && late === null) return true;
        return await this.#fail(key, found, { copies, reason: late ?? noMemory(record, moved.missingCount), closing });
      }
      case "no-room": {
        const refusal = await this.#options.variants.grow(record, signal);
        if (refusal === null) return true;
        const reason = `${noRoom(record, moved.missingCount)} ${refusal}`.trim();
        return await this.#fail(key, found, { copies, reason, closing });
      }
      default:
        return unreachable(moved);
    }
  }

  /**
   * Copies that leave are waited for where the node has no room for those to come beside them. They have their time, unless something is
   * to be undone.
   */
  async #bringUp(record: ComponentRecord, copies: ComponentCopies, signal: AbortSignal): Promise<void> {
    const { name, state } = record;
    copies.countBy(record);
    const isUndone = state.at === "Updating" && state.undoing !== null;
    {
      using _hurry = isUndone ? this.#options.retirements.hurry(nameKey(name), signal) : null;
      await copies.room(signal);
    }
    await copies.bringUp(record, signal);
  }

  /** Waits for what leaves. Null, or else why the component has no time to. */
  async #untilFreed(record: ComponentRecord, freed: Promise<void>, signal: AbortSignal): Promise<string | null> {
    const { name, state, variantName } = record;
    const isUndone = state.at === "Updating" && state.undoing !== null;
    using _hurry = isUndone ? this.#options.retirements.hurry(nameKey(name), signal) : null;
    const deadlineMs = "goal" in state ? state.goal.deadlineMs : null;
    try {
      await this.#within(deadlineMs, signal, (limited) => orAborted(freed, limited));
      return null;
    } catch (error) {
      signal.throwIfAborted();
      return failureSentence(error, variantName);
    }
  }

  /** While nobody else places copies on the endpoint. */
  async #place(key: string, found: Recorded, copies: ComponentCopies): Promise<Placed> {
    const { value: record } = found;
    const { variants, parts, reservations } = this.#options;
    return await variants.placing(record.endpointName, async () => {
      const instances = await this.instancesFor(record);
      const nowMs = parts.fleet.clock.epochMs();
      const freed = copies.freed();
      const moreCount = moreCopies(record, parts.fleet.nodes.freeBytes);
      const room = { instances, moreCount, isMade: freed !== null };
      const action: ComponentAction = nextComponentAction(record, room, nowMs);
      switch (action.do) {
        case "place": {
          const event = { kind: "placed", copies: action.copies, nowMs } as const;
          const more = footprintBeyond(componentFootprint(moveComponent(record, event)), componentFootprint(record));
          const reserved = reservedOr(() => reservations.reserveComponent(key, more));
          if (reserved instanceof AwsError) return { do: "refused", reason: reserved.message };
          using _reserved = reserved;
          return { do: "moved", record: await this.#write(key, found, event) };
        }
        case "no-memory":
          return { ...action, freed };
        case "settle":
          return { do: "moved", record: await this.#write(key, found, { kind: "settled" }) };
        case "bake":
          return { do: "bake", forMs: action.untilMs - nowMs };
        case "no-room":
          return action;
        case "tear-down":
        case "nothing":
          return { do: "nothing" };
        default:
          return unreachable(action);
      }
    });
  }

  /** The instances of a component's variant, with what all components have on each. */
  async instancesFor(record: ComponentRecord): Promise<readonly SharedInstance[]> {
    const shared = await this.#options.variants.find(record);
    if (shared === null) return [];
    return sharedInstances(shared, record, this.of(record.endpointName));
  }

  async #fail(
    key: string,
    found: Recorded,
    {
      copies,
      reason,
      closing,
    }: { readonly copies: ComponentCopies; readonly reason: string; readonly closing: AbortSignal },
  ): Promise<boolean> {
    const { value: record } = found;
    const event = { kind: "failed", reason, copies: copies.inService(record) } as const;
    const moved = await this.#write(key, found, event);
    if (moved.state.at !== "Failed") {
      this.#follow(copies, moved);
      return true;
    }
    this.#running.delete(key);
    await this.#options.retirements.end(key, closing, (signal) => copies.retire(moved, signal));
    this.#release(moved);
    return false;
  }

  /** Nothing is waited for: the next move need not wait for the requests that ending copies hold. */
  #follow(copies: ComponentCopies, record: ComponentRecord): void {
    const { retirements } = this.#options;
    const key = nameKey(record.name);
    this.#tasks.run((closing) => retirements.leave(key, closing, (signal) => copies.follow(record, signal)));
  }

  /** Nothing is waited for, either: what it gives up is taken back when somebody needs it. */
  #release(record: ComponentRecord): void {
    const { variants } = this.#options;
    this.#tasks.run((closing) => variants.release(record, () => this.of(record.endpointName), closing));
  }

  async #tearDown(key: string, record: ComponentRecord, closing: AbortSignal): Promise<void> {
    const { store, variants } = this.#options;
    const { components, tags } = store.kinds;
    const copies = this.#running.get(key);
    this.#running.delete(key);
    if (copies !== undefined) {
      await this.#options.retirements.end(key, closing, (signal) => copies.retire(record, signal));
    }
    const going = this.#records.get(key);
    // Nothing of it is on an instance any more.
    this.#records.delete(key);
    // While its record is there: the next life of a platform that is killed now does it again.
    if (going !== undefined) await variants.release(going, () => this.of(going.endpointName), closing);
    await store.attempt(async () => {
      const found = await components.find(key);
      if (found.at !== "found") return;
      await store.write([components.delete(key, found.version), tags.delete(found.value.arn, "any")]);
    });
  }

  async #within(
    deadlineMs: number | null,
    signal: AbortSignal,
    act: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    if (deadlineMs === null) return await act(signal);
    const { clock } = this.#options.parts.fleet;
    const late = () => new Error("The update took longer than its MaximumExecutionTimeoutInSeconds.");
    using limit = openDeadline({ clock, afterMs: Math.max(0, deadlineMs - clock.epochMs()), signal, late });
    await act(limit.signal);
  }
}

type Placed =
  | { readonly do: "moved"; readonly record: ComponentRecord }
  | { readonly do: "bake"; readonly forMs: number }
  | { readonly do: "no-room"; readonly missingCount: number }
  /** A limit of the account is reached. */
  | { readonly do: "refused"; readonly reason: string }
  /** `freed`: of copies that leave; null where none do. */
  | { readonly do: "no-memory"; readonly missingCount: number; readonly freed: Promise<void> | null }
  | { readonly do: "nothing" };

/** What is reserved, or why it is not. */
function reservedOr(reserve: () => Disposable): Disposable | AwsError {
  try {
    return reserve();
  } catch (error) {
    if (error instanceof AwsError) return error;
    throw error;
  }
}

const hasAlarms = ({ state }: ComponentRecord) => "goal" in state && (state.goal.alarms ?? []).length > 0;

const noResources =
  "There are not enough hardware resources on the instances for this endpoint to create a copy of the inference component.";

/** SageMaker's sentence, and what is missing. */
function noRoom(record: ComponentRecord, missingCount: number): string {
  const claim = goalClaim(record);
  return (
    `${noResources} No instance has room for the next of ${missingCount} more copies, which takes ${claim.cpuCores} CPU cores, ` +
    `${Math.round(claim.memoryBytes / 2 ** 20)} MiB of memory and ${claim.acceleratorCount} accelerators. ` +
    "Lower the resource requirements, delete other inference components, or give the endpoint more instances."
  );
}

function noMemory(record: ComponentRecord, missingCount: number): string {
  return (
    `${noResources} The node has no memory for the next of ${missingCount} more copies, which takes ` +
    `${Math.round(goalClaim(record).memoryBytes / 2 ** 20)} MiB, beside what runs. Lower the resource requirements, or delete what is no ` +
    "longer needed; where a component has several copies, old ones make room for new ones."
  );
}

function goalClaim({ state, specs }: ComponentRecord): ComponentClaim {
  const goal = "goal" in state ? state.goal.spec : 0;
  return specs.find(({ number }) => number === goal)?.claim ?? noClaim;
}

/** What each instance of a variant has, what components have taken of it, and how many copies of this one are on it. */
export function sharedInstances(
  { has, instanceCount }: { readonly has: ComponentClaim; readonly instanceCount: number },
  { name, variantName }: Pick<ComponentRecord, "name" | "variantName">,
  components: readonly ComponentRecord[],
): readonly SharedInstance[] {
  const instances = Array.from({ length: instanceCount }, () => ({ has, taken: noClaim, ownCount: 0 }));
  for (const component of components) {
    if (component.variantName !== variantName) continue;
    const claims = new Map(component.specs.map(({ number, claim }) => [number, claim]));
    for (const { spec, instance } of component.copies) {
      const shared = instances[instance];
      if (shared === undefined) continue;
      shared.taken = claimSum(shared.taken, claims.get(spec) ?? noClaim);
      if (component.name === name) shared.ownCount += 1;
    }
  }
  return instances;
}
