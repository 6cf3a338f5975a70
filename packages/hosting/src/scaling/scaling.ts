import type { AlarmAction, AlarmEvent, Alarms, ReadMetricValues } from "../alarms/index.ts";
import { AwsError, delay, KeyedLock, retryWrite, TaskGroup, type Clock, type Logger } from "@galatea/base";
import { RecordedValues, type Documents } from "../records/index.ts";
import { newScalingActivity, completeActivity, newNotScaledActivity } from "./activities.ts";
import { decideCapacity, type CapacityDecision, type CapacityState } from "./capacity.ts";
import { policyAlarms, unfinishedAlarms } from "./policy-alarms.ts";
import type { ScalableTarget, ScalingActivity, ScalingPolicy, ScheduledAction } from "./policy.ts";
import { nextRunMs } from "./schedule.ts";
import { scalingKey, type CapacityCorrection, type ScalingRecord, type TargetKey } from "./scaling-record.ts";
import { stepCapacity, trackingCapacity, type MetricReadOptions, type ResourceCapacity } from "./metric-capacity.ts";

/** The resources whose capacity is scaled. */
export interface ScalableResources {
  /** Resolves with the capacity of a resource; null if it is unknown. */
  capacity(target: TargetKey): Promise<ResourceCapacity | null>;
  /** Starts a change of capacity. `done` settles when the change has ended. Both reject with an error text for users. */
  scale(target: TargetKey, to: number, signal: AbortSignal): Promise<{ readonly done: Promise<void> }>;
}

export interface ScalingLimits {
  readonly targetsMax: number;
  readonly policiesMax: number;
  readonly scheduledMax: number;
  /** Maximum number of stored activities of a target. The oldest are deleted. */
  readonly activitiesMax: number;
  /** Milliseconds between searches for targets whose resource was deleted. */
  readonly sweepMs: number;
  /** Milliseconds between checks for due scheduled actions. */
  readonly scheduleMs: number;
}

export const scalingLimits: ScalingLimits = {
  targetsMax: 3000,
  policiesMax: 50,
  scheduledMax: 200,
  activitiesMax: 100,
  sweepMs: 60_000,
  scheduleMs: 1000,
};

export interface ScalingOptions {
  readonly documents: Documents;
  readonly alarms: Alarms;
  readonly readValues: ReadMetricValues;
  readonly resources: ScalableResources;
  /** Returns an id for an activity. */
  readonly newId: () => string;
  readonly limits: ScalingLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Scalable targets and their policies. A change is written to disk before it takes effect. */
export class Scaling implements AsyncDisposable {
  readonly #options: ScalingOptions;
  readonly #store: RecordedValues<ScalingRecord>;
  readonly #records = new Map<string, ScalingRecord>();
  readonly #locks = new KeyedLock();
  readonly #reading: MetricReadOptions;
  /** Epoch time of each action's next run; null: never. */
  readonly #dueMs = new WeakMap<ScheduledAction, number | null>();
  readonly #tasks: TaskGroup;
  /** Changes of capacity in progress. */
  readonly #changes: TaskGroup;

  private constructor(options: ScalingOptions) {
    this.#options = options;
    this.#store = new RecordedValues(options.documents, "scalable-target", options.logger);
    this.#reading = { ...options, sinceMs: options.clock.epochMs() };
    const failed = (error: unknown) => options.logger.error("scaling failed", { error: String(error) });
    this.#tasks = new TaskGroup(failed);
    this.#changes = new TaskGroup(failed);
  }

  static async open(options: ScalingOptions): Promise<Scaling> {
    const scaling = new Scaling(options);
    for (const record of await scaling.#store.all()) {
      scaling.#records.set(scalingKey(record.target), scaling.#resumed(record));
    }
    await scaling.#finishAlarms();
    scaling.#every(options.limits.sweepMs, () => scaling.sweep(scaling.list().map(({ target }) => target)));
    scaling.#every(options.limits.scheduleMs, () => scaling.runScheduled());
    return scaling;
  }

  /** Returns the records sorted by resource. */
  list(): readonly ScalingRecord[] {
    return [...this.#records.values()].toSorted((a, b) => (scalingKey(a.target) < scalingKey(b.target) ? -1 : 1));
  }

  find(key: TargetKey): ScalingRecord | null {
    return this.#records.get(scalingKey(key)) ?? null;
  }

  /** Creates or changes a target. Immediately corrects a capacity outside the new bounds. Rejects with AwsError. */
  async register(target: ScalableTarget): Promise<void> {
    await this.#change(target, async (known) => {
      if (known === null && this.#records.size >= this.#options.limits.targetsMax) {
        throw new AwsError(
          "LimitExceededException",
          `There are ${this.#options.limits.targetsMax} scalable targets, which is the maximum.`,
        );
      }
      const correcting = await this.#correctionOf(target, null);
      const fresh = { policies: [], scheduled: [], lastOut: null, lastIn: null, activities: [] };
      await this.#put({ ...(known ?? fresh), target, correcting });
      await this.#correct(target);
    });
  }

  /** Deletes a target with its policies and their alarms. */
  async deregister(key: TargetKey): Promise<void> {
    await this.#change(key, async (known) => {
      if (known === null) return;
      await this.#store.delete(scalingKey(key));
      this.#records.delete(scalingKey(key));
      await this.#waitForAlarms(known.policies.map((policy) => this.#deleteAlarms(policy)));
    });
  }

  /** Creates or replaces a policy and its alarms. Rejects with AwsError. */
  async putPolicy(policy: ScalingPolicy, alarmArn: (name: string) => string): Promise<void> {
    await this.#change(policy, async (known) => {
      if (known === null) throw new AwsError("ObjectNotFoundException", "The scalable target was deleted.");
      const others = known.policies.filter(({ name }) => name !== policy.name);
      if (others.length >= this.#options.limits.policiesMax) {
        throw new AwsError(
          "LimitExceededException",
          `A target can have at most ${this.#options.limits.policiesMax} policies.`,
        );
      }
      const before = known.policies.find(({ name }) => name === policy.name);
      // The policy is written before its alarms, so that it exists when an alarm goes into ALARM.
      await this.#put({ ...known, policies: [...others, policy] });
      await this.#putAlarms(policy, alarmArn).catch(async (error: unknown) => {
        // If an alarm is rejected, the policy is removed and the previous policy is restored.
        await this.#put(known);
        await this.#deleteAlarms(policy, before);
        if (before !== undefined) await this.#putAlarms(before, alarmArn);
        throw error;
      });
      if (before !== undefined) await this.#deleteAlarms(before, policy);
    });
  }

  async deletePolicy(policy: ScalingPolicy): Promise<void> {
    await this.#change(policy, async (known) => {
      if (known === null) return;
      // The policy is deleted before its alarms. If the platform crashes in between, the alarms have no effect, and the next start deletes
      // them.
      await this.#put({ ...known, policies: known.policies.filter(({ name }) => name !== policy.name) });
      await this.#waitForAlarms([this.#deleteAlarms(policy)]);
    });
  }

  async setTags(key: TargetKey, tags: Readonly<Record<string, string>>): Promise<void> {
    await this.#change(key, async (known) => {
      if (known !== null) await this.#put({ ...known, target: { ...known.target, tags } });
    });
  }

  /** Creates or replaces a scheduled action. Rejects with AwsError. */
  async putScheduled(action: ScheduledAction): Promise<void> {
    await this.#change(action, async (known) => {
      if (known === null) throw new AwsError("ObjectNotFoundException", "The scalable target was deleted.");
      const others = known.scheduled.filter(({ name }) => name !== action.name);
      if (others.length >= this.#options.limits.scheduledMax) {
        const text = `A target can have at most ${this.#options.limits.scheduledMax} scheduled actions.`;
        throw new AwsError("LimitExceededException", text);
      }
      await this.#put({ ...known, scheduled: [...others, action] });
    });
  }

  async deleteScheduled(action: ScheduledAction): Promise<void> {
    await this.#change(action, async (known) => {
      if (known !== null) {
        await this.#put({ ...known, scheduled: known.scheduled.filter(({ name }) => name !== action.name) });
      }
    });
  }

  /** Runs all due actions. An action runs once even if several of its times have passed. Also retries pending corrections. */
  async runScheduled(): Promise<void> {
    const nowMs = this.#options.clock.epochMs();
    for (const { target, scheduled, correcting } of this.#records.values()) {
      for (const action of scheduled) {
        const dueMs = this.#due(action);
        if (dueMs !== null && dueMs <= nowMs) await this.#runAction(target, action, nowMs);
      }
      // A correction is pending if the platform ended during it, or if another change was in progress.
      if (correcting !== null) await this.#change(target, () => this.#correct(target));
    }
  }

  /** Returns the alarm action for the ARN of a policy; null for any other ARN. */
  action(arn: string): AlarmAction | null {
    const found = this.#policy(arn);
    if (found === null) return null;
    return { repeats: true, run: (event, signal) => this.#alarmed(arn, event, signal) };
  }

  /** Deletes targets whose resource was deleted, with their alarms. */
  async sweep(targets: readonly ScalableTarget[]): Promise<void> {
    for (const target of targets) {
      if ((await this.#options.resources.capacity(target)) === null) await this.deregister(target);
    }
  }

  /** Resolves when no change of a capacity is in progress. */
  async settled(): Promise<void> {
    await this.#changes.waitForTasks();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#changes[Symbol.asyncDispose]();
    await this.#tasks[Symbol.asyncDispose]();
  }

  /** Returns the correction that new bounds require, to record it with the bounds; null if none. */
  async #correctionOf(target: ScalableTarget, actionName: string | null): Promise<CapacityCorrection | null> {
    const found = await this.#options.resources.capacity(target);
    if (found === null || (!found.isMoving && bounded(found, target) === found.desired)) return null;
    return { actionName, activityId: null };
  }

  /**
   * Changes a capacity outside the target's bounds to the nearest bound, if a correction is pending. The caller holds the target's lock.
   */
  async #correct(key: TargetKey): Promise<void> {
    const record = this.find(key);
    const { target, correcting = null } = record ?? {};
    if (record === null || target === undefined || correcting === null) return;
    const isUnderWay = record.activities.some(({ id, endMs }) => id === correcting.activityId && endMs === null);
    const found = await this.#options.resources.capacity(target);
    if (isUnderWay || found === null || found.isMoving) return;
    const to = bounded(found, target);
    if (to === found.desired) return await this.#put({ ...record, correcting: null });
    const { minCapacity, maxCapacity } = target;
    const isOut = to > found.desired;
    const message = isOut ? `minimum capacity was set to ${minCapacity}` : `maximum capacity was set to ${maxCapacity}`;
    const { actionName } = correcting;
    const cause = actionName === null ? message : `${message} while scheduled action name ${actionName} was triggered`;
    const decision = { do: "scale", to, direction: isOut ? "out" : "in" } as const;
    // If the correction cannot start, its activity reports the failure. The bounds apply nevertheless.
    await this.#scale(target, decision, { from: found.desired, cooldownMs: 0, cause, correcting });
  }

  /** Returns the time of an action's next run; null if it never runs again. */
  #due(action: ScheduledAction): number | null {
    const known = this.#dueMs.get(action);
    if (known !== undefined) return known;
    const dueMs = nextRunMs(action, action.lastRunMs ?? action.createdMs - 1);
    this.#dueMs.set(action, dueMs);
    return dueMs;
  }

  async #runAction(key: TargetKey, action: ScheduledAction, nowMs: number): Promise<void> {
    await this.#change(key, async (known) => {
      if (known === null || !known.scheduled.includes(action)) return;
      const ran: ScheduledAction = { ...action, lastRunMs: nowMs };
      // An action that never runs again is deleted.
      const left = nextRunMs(ran, nowMs) === null ? [] : [ran];
      const scheduled = known.scheduled.flatMap((each) => (each === action ? left : [each]));
      const { target } = known;
      const minCapacity = action.minCapacity ?? target.minCapacity;
      const maxCapacity = action.maxCapacity ?? target.maxCapacity;
      if (target.suspended.scheduled) return this.#put({ ...known, scheduled });
      if (minCapacity > maxCapacity) {
        this.#options.logger.error("a scheduled action would set a minimum above the maximum; it is skipped", {
          action: action.name,
          resource: target.resourceId,
        });
        return this.#put({ ...known, scheduled });
      }
      const next = { ...target, minCapacity, maxCapacity };
      const correcting = await this.#correctionOf(next, action.name);
      await this.#put({ ...known, target: next, scheduled, correcting });
      await this.#correct(next);
    });
  }

  /** Runs work at an interval. A failure, for example on a full disk, is logged and does not end the repetition. */
  #every(pauseMs: number, work: () => Promise<void>): void {
    const { clock, logger } = this.#options;
    this.#tasks.run(async (closing) => {
      for (;;) {
        await delay(clock, pauseMs, closing);
        await work().catch((error: unknown) => logger.error("scaling failed", { error: String(error) }));
      }
    });
  }

  async #alarmed(arn: string, event: AlarmEvent, signal: AbortSignal): Promise<void> {
    const found = this.#policy(arn);
    if (found === null) throw new Error("the policy was deleted");
    await this.#locks.run(scalingKey(found.record.target), async () => {
      const now = this.#policy(arn);
      if (now === null) return;
      const { record, policy } = now;
      const { target } = record;
      const capacity = await this.#options.resources.capacity(target);
      if (capacity === null) throw new Error(`${target.resourceId} no longer exists`);
      if (capacity.isMoving) return;
      const state = this.#state(record, capacity);
      const requested =
        policy.type === "StepScaling"
          ? await stepCapacity(this.#reading, policy, event, state)
          : await trackingCapacity(this.#reading, record.policies, {
              policy,
              event,
              capacity,
              steadySinceMs: steadySince(record, state.nowMs),
            });
      if (requested === null) return;
      const decision = decideCapacity(requested, state);
      const cause = `monitor alarm ${event.definition.name} in state ${event.status.state} triggered policy ${policy.name}`;
      if (decision.do === "nothing") return this.#notScaled(record, decision.because, cause, capacity);
      signal.throwIfAborted();
      const cooldownMs = cooldownOf(policy, decision);
      const refusal = await this.#scale(target, decision, { from: capacity.desired, cooldownMs, cause });
      if (refusal !== null) throw refusal;
    });
  }

  #state({ target, lastOut, lastIn }: ScalingRecord, { desired }: ResourceCapacity): CapacityState {
    const { minCapacity, maxCapacity, suspended } = target;
    return { nowMs: this.#options.clock.epochMs(), desired, minCapacity, maxCapacity, suspended, lastOut, lastIn };
  }

  /**
   * Records an activity and starts a change of capacity. Records the end later, in the background. Resolves with the error text if the
   * change could not start; otherwise null. The caller holds the target's lock.
   */
  async #scale(
    target: ScalableTarget,
    { to, direction }: Extract<CapacityDecision, { readonly do: "scale" }>,
    change: {
      readonly from: number;
      readonly cooldownMs: number;
      readonly cause: string;
      readonly correcting?: CapacityCorrection;
    },
  ): Promise<Error | null> {
    const { clock, newId, logger, resources } = this.#options;
    const atMs = clock.epochMs();
    const id = newId();
    const activity = newScalingActivity(target, { id, to, atMs, cause: change.cause });
    const last = { atMs, from: change.from, to, cooldownMs: change.cooldownMs };
    const record = this.#records.get(scalingKey(target));
    if (record === undefined) return null;
    // An increase ends the cooldown of a decrease.
    const cooldowns = direction === "out" ? { lastOut: last, lastIn: null } : { lastIn: last };
    const correcting = change.correcting === undefined ? record.correcting : { ...change.correcting, activityId: id };
    const activities = this.#kept([...record.activities, activity]);
    await this.#put({ ...record, ...cooldowns, activities, correcting });
    const started = await resources.scale(target, to, this.#tasks.signal).catch((error: unknown) => asError(error));
    if (started instanceof Error) {
      await this.#ended(target, activity, started.message);
      return started;
    }
    this.#changes.run(async (closing) => {
      const failure = await started.done.then(
        () => null,
        (error: unknown) => asError(error).message,
      );
      closing.throwIfAborted();
      const end = () => this.#change(target, () => this.#ended(target, activity, failure));
      const [recordDescription, ownerName] = ["the end of a change", target.resourceId];
      await retryWrite(end, { clock, logger, recordDescription, ownerName, retries: "disk faults", signal: closing });
    });
    return null;
  }

  async #ended(target: TargetKey, activity: ScalingActivity, failure: string | null): Promise<void> {
    const record = this.#records.get(scalingKey(target));
    if (record === undefined) return;
    const ended = completeActivity(activity, failure, this.#options.clock.epochMs());
    await this.#put({
      ...record,
      correcting: record.correcting?.activityId === activity.id ? null : record.correcting,
      activities: record.activities.map((each) => (each.id === activity.id ? ended : each)),
    });
  }

  /** Records a not-scaled activity, unless the last one has the same reason and cause. Otherwise, each evaluation would add one. */
  async #notScaled(
    record: ScalingRecord,
    because: Extract<CapacityDecision, { readonly do: "nothing" }>["because"],
    cause: string,
    { desired }: ResourceCapacity,
  ): Promise<void> {
    if (because === "suspended" || because === "cooldown") return;
    const last = record.activities.at(-1);
    if (last?.notScaled?.code === because && last.cause === cause) return;
    const { target } = record;
    const atMs = this.#options.clock.epochMs();
    const activity = newNotScaledActivity(target, { id: this.#options.newId(), atMs, cause, because, desired });
    await this.#put({ ...record, activities: this.#kept([...record.activities, activity]) });
  }

  /** Completes changes of alarms that a crash interrupted. A failure is logged; the next start tries again. */
  async #finishAlarms(): Promise<void> {
    const { alarms } = this.#options;
    const policies = [...this.#records.values()].flatMap((record) => record.policies);
    const definitions = alarms.list().map(({ definition }) => definition);
    const { missing, orphaned } = unfinishedAlarms(policies, definitions);
    await this.#waitForAlarms([
      ...missing.map((alarm) => alarms.put(alarm)),
      ...orphaned.map((name) => alarms.delete([name])),
    ]);
  }

  /**
   * Waits for changes of alarms. Failures, such as the deletion of an alarm that a composite alarm uses, are logged; the next start tries
   * again.
   */
  async #waitForAlarms(works: readonly Promise<void>[]): Promise<void> {
    const { logger } = this.#options;
    for (const work of await Promise.allSettled(works)) {
      if (work.status === "rejected")
        logger.error("the alarms of a policy could not be repaired", { error: String(work.reason) });
    }
  }

  /** Marks activities that were in progress when the platform ended as overridden. The endpoints complete the changes themselves. */
  #resumed(record: ScalingRecord): ScalingRecord {
    const activities = record.activities.map((each): ScalingActivity =>
      each.status === "InProgress"
        ? {
            ...each,
            endMs: this.#options.clock.epochMs(),
            status: "Overridden",
            statusMessage: "The platform was stopped meanwhile.",
          }
        : each,
    );
    return { ...record, activities };
  }

  #policy(arn: string): { readonly record: ScalingRecord; readonly policy: ScalingPolicy } | null {
    for (const record of this.#records.values()) {
      const policy = record.policies.find((each) => each.arn === arn);
      if (policy !== undefined) return { record, policy };
    }
    return null;
  }

  async #putAlarms(policy: ScalingPolicy, alarmArn: (name: string) => string): Promise<void> {
    if (policy.type !== "TargetTrackingScaling") return;
    for (const alarm of policyAlarms(policy, alarmArn)) await this.#options.alarms.put(alarm);
  }

  async #deleteAlarms(policy: ScalingPolicy, kept?: ScalingPolicy): Promise<void> {
    if (policy.type !== "TargetTrackingScaling") return;
    const keeping = kept?.type === "TargetTrackingScaling" ? [kept.highAlarm, kept.lowAlarm] : [];
    const names = [policy.highAlarm, policy.lowAlarm].filter(
      (name): name is string => name !== null && !keeping.includes(name),
    );
    const there = names.filter((name) => this.#options.alarms.get(name) !== null);
    if (there.length > 0) await this.#options.alarms.delete(there);
  }

  #kept(activities: readonly ScalingActivity[]): readonly ScalingActivity[] {
    return activities.slice(-this.#options.limits.activitiesMax);
  }

  async #put(record: ScalingRecord): Promise<void> {
    await this.#store.put(scalingKey(record.target), record);
    this.#records.set(scalingKey(record.target), record);
  }

  #change(key: TargetKey, change: (known: ScalingRecord | null) => Promise<void>): Promise<void> {
    return this.#locks.run(scalingKey(key), () => change(this.find(key)));
  }
}

/**
 * Returns the epoch time at which the last change of a target's capacity ended. Ends in the future are ignored, because the clock was set
 * back.
 */
function steadySince({ activities }: ScalingRecord, nowMs: number): number {
  const ends = activities.flatMap(({ endMs, notScaled }) => (notScaled === null && endMs !== null ? [endMs] : []));
  return Math.max(0, ...ends.filter((endMs) => endMs <= nowMs));
}

/** Returns the capacity within the bounds that is closest to the desired one. */
function bounded({ desired }: ResourceCapacity, { minCapacity, maxCapacity }: ScalableTarget): number {
  return Math.min(maxCapacity, Math.max(minCapacity, desired));
}

function cooldownOf(policy: ScalingPolicy, { direction }: { readonly direction: "out" | "in" }): number {
  if (policy.type === "StepScaling") return policy.cooldownMs;
  return direction === "out" ? policy.scaleOutCooldownMs : policy.scaleInCooldownMs;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
