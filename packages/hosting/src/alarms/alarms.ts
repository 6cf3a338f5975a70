import { AwsError, delay, KeyedLock, TaskGroup, type Clock, type Logger } from "@galatea/base";
import type { Documents } from "../records/index.ts";
import type {
  ResolveAlarmAction,
  AlarmDefinition,
  AlarmEvent,
  AlarmRecord,
  AlarmState,
  AlarmStatus,
  CompositeAlarm,
  AlarmHistoryItem,
  MetricAlarm,
  ReadMetricValues,
} from "./alarm.ts";
import { AlarmActionRunner } from "./alarm-action-runner.ts";
import { AlarmStore, type DeletedAlarm } from "./alarm-store.ts";
import { alarmNamesInRule, parseAlarmRule, isRuleTrue, type AlarmRule } from "./composite-rule.ts";
import { evaluateWindow, percentileSamplesMin, periodsToRead, type EvaluationRule } from "./evaluation.ts";
import { stateTransition, suppressedActions } from "./history-items.ts";
import { nextSuppression } from "./suppression.ts";
import { stateReasonData, stateReason, initialStateReason, type EvaluationInput } from "./reasons.ts";

export interface AlarmLimits {
  /** Maximum number of alarms. */
  readonly alarmsMax: number;
  /** Maximum number of items in an alarm's history; the newest are kept. */
  readonly historyMax: number;
  /** Interval between evaluations of an alarm, in milliseconds. */
  readonly tickMs: number;
  /** Time limit of one alarm action, in milliseconds. */
  readonly actionMs: number;
  /** Maximum number of concurrent actions. */
  readonly actionsMax: number;
  /** Retention of the histories of deleted alarms: maximum age in milliseconds and maximum number. */
  readonly deletedKeptMs: number;
  readonly deletedKeptMax: number;
}

export const alarmLimits: AlarmLimits = {
  alarmsMax: 5000,
  historyMax: 100,
  tickMs: 10_000,
  actionMs: 60_000,
  actionsMax: 16,
  deletedKeptMs: 14 * 86_400_000,
  deletedKeptMax: 1000,
};

export interface AlarmsOptions {
  readonly documents: Documents;
  readonly readValues: ReadMetricValues;
  readonly actions: ResolveAlarmAction;
  readonly limits: AlarmLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Entry extends AlarmRecord {
  /** The parsed AlarmRule of a composite alarm; null for a metric alarm. */
  readonly rule: AlarmRule | null;
  /** Names of the alarms in the rule. */
  readonly named: ReadonlySet<string>;
  /** Names of all alarms whose states a composite alarm depends on: those in the rule and the suppressor. */
  readonly reads: ReadonlySet<string>;
}

/** Delay of evaluations after each interval, in milliseconds: the interval's metrics must be recorded before. */
const afterTickMs = 500;
const rulesDeep = 10;
/** Maximum number of pending actions of one alarm; each action above the limit replaces the oldest one. */
const pendingActionsMax = 50;

/** All CloudWatch alarms of the platform. Each change is written to disk before a caller sees it and before actions run. */
export class Alarms implements AsyncDisposable {
  readonly #options: AlarmsOptions;
  readonly #store: AlarmStore;
  readonly #entries = new Map<string, Entry>();
  /** Deleted alarms, the earliest deleted first. */
  readonly #deleted = new Map<string, DeletedAlarm>();
  readonly #locks = new KeyedLock();
  readonly #tasks: TaskGroup;
  readonly #actions: TaskGroup;
  readonly #runner: AlarmActionRunner;

  private constructor(options: AlarmsOptions) {
    this.#options = options;
    this.#store = new AlarmStore(options);
    const { logger } = options;
    this.#tasks = new TaskGroup((error) =>
      logger.error("alarm evaluation has stopped until the platform restarts", { error: String(error) }),
    );
    this.#actions = new TaskGroup((error) =>
      logger.error("failed to record the result of an alarm action; the action runs again after a restart", {
        error: String(error),
      }),
    );
    this.#runner = new AlarmActionRunner({
      ...options,
      tasks: this.#actions,
      recordResult: (...of) => this.#recordAction(...of),
    });
  }

  static async open(options: AlarmsOptions): Promise<Alarms> {
    const alarms = new Alarms(options);
    for (const record of await alarms.#store.listAlarms()) {
      const { definition } = record;
      const rule = definition.kind === "composite" ? parseAlarmRule(definition.rule) : null;
      alarms.#entries.set(definition.name, entryOf(record, rule));
    }
    const removed = await alarms.#store.listDeleted();
    for (const each of removed.toSorted((a, b) => a.deletedMs - b.deletedMs)) alarms.#deleted.set(each.name, each);
    alarms.#tasks.run((closing) => alarms.#watch(closing));
    return alarms;
  }

  /** Runs the actions that were pending when the previous process ended. Call it after the services that the actions call are open. */
  resume(): void {
    for (const entry of this.#entries.values()) this.#runner.resume(entry);
  }

  get(name: string): AlarmRecord | null {
    return this.#entries.get(name) ?? null;
  }

  /** Returns the alarms sorted by name. */
  list(): readonly AlarmRecord[] {
    return [...this.#entries.values()].toSorted((a, b) => (a.definition.name < b.definition.name ? -1 : 1));
  }

  /** Returns the names of the composite alarms whose rules contain the alarm. */
  parentsOf(name: string): readonly string[] {
    const parents = [...this.#entries.values()].filter(({ named }) => named.has(name));
    return parents.map(({ definition }) => definition.name);
  }

  /** Returns the existing alarms, and the deleted alarms whose history is still stored. */
  listWithDeleted(): readonly Pick<AlarmDefinition, "name" | "kind">[] {
    const removed = [...this.#deleted.values()].filter(({ name }) => !this.#entries.has(name));
    return [...this.list().map(({ definition }) => definition), ...removed];
  }

  history(name: string): Promise<readonly AlarmHistoryItem[]> {
    return this.#store.history(name);
  }

  /** Creates an alarm or reconfigures an existing one. A reconfigured alarm keeps its state until its next evaluation. Throws AwsError. */
  async put(definition: AlarmDefinition): Promise<void> {
    const rule = definition.kind === "composite" ? parseAlarmRule(definition.rule) : null;
    await this.#locks.run(definition.name, async () => {
      const known = this.#entries.get(definition.name);
      if (known !== undefined && known.definition.kind !== definition.kind) {
        const is = known.definition.kind === "metric" ? "metric" : "composite";
        throw new AwsError("ValidationError", `The type of ${definition.name}, a ${is} alarm, cannot be changed.`);
      }
      if (known === undefined && this.#entries.size >= this.#options.limits.alarmsMax) {
        throw new AwsError("LimitExceeded", `Alarm limit (${this.#options.limits.alarmsMax}) reached.`);
      }
      if (rule !== null) this.#checkRule(definition.name, rule);
      if (definition.kind === "composite") this.#checkSuppressor(definition);
      const atMs = this.#options.clock.epochMs();
      const fresh: AlarmStatus = {
        state: "INSUFFICIENT_DATA",
        reason: initialStateReason,
        reasonData: null,
        updatedMs: atMs,
        transitionedMs: atMs,
      };
      const { suppression: _suppression, ...status } = known?.status ?? fresh;
      // The new record has no suppression: a suppression belongs to the previous configuration.
      const record = { definition, status, pendingActions: known?.pendingActions ?? [] };
      const did = known === undefined ? "created" : "updated";
      const data = JSON.stringify({ version: "1.0", type: known === undefined ? "Create" : "Update" });
      const item: AlarmHistoryItem = {
        atMs,
        kind: "ConfigurationUpdate",
        summary: `Alarm "${definition.name}" ${did}`,
        data,
      };
      await this.#store.put(record, [item]);
      this.#entries.set(definition.name, entryOf(record, rule));
    });
    await this.#evaluate(definition.name);
  }

  /** Changes the description or the tags of an alarm without evaluating it; does nothing if the alarm does not exist. */
  async amend(name: string, change: (definition: AlarmDefinition) => AlarmDefinition): Promise<void> {
    await this.#locks.run(name, async () => {
      const entry = this.#entries.get(name);
      if (entry === undefined) return;
      const amended = { ...entry, definition: change(entry.definition) };
      await this.#store.put(amended, []);
      this.#entries.set(name, amended);
    });
  }

  /** Deletes all of the alarms or none. Throws AwsError for an unknown alarm, and if a remaining composite alarm depends on one. */
  async delete(names: readonly string[]): Promise<void> {
    const going = [...new Set(names)].toSorted();
    // The locks delay the deletion until current writes end. Without them, a write after the deletion would restore the alarm.
    await this.#withLocks(going, () => this.#delete(going));
    await this.#removeOldHistories();
  }

  async #delete(names: readonly string[]): Promise<void> {
    const absent = names.filter((name) => !this.#entries.has(name));
    if (absent.length > 0) throw absentAlarm(absent);
    for (const entry of this.#entries.values()) {
      const isGoing = names.includes(entry.definition.name);
      const held = isGoing ? undefined : names.find((name) => entry.reads.has(name));
      if (held === undefined) continue;
      const text = `${held} cannot be deleted: composite alarm ${entry.definition.name} depends on it. Delete or change that alarm first.`;
      throw new AwsError("ValidationError", text);
    }
    const records = names.flatMap((name) => this.#entries.get(name) ?? []);
    const deletedMs = this.#options.clock.epochMs();
    await this.#store.delete(records, deletedMs);
    for (const { definition } of records) {
      const { name, kind } = definition;
      this.#entries.delete(name);
      this.#runner.forget(name);
      // The entry is removed and inserted again so that the map stays ordered by time of deletion.
      this.#deleted.delete(name);
      this.#deleted.set(name, { name, kind, deletedMs });
    }
  }

  /** Acquires the locks of all names, in sorted order. Without a fixed order, two callers could deadlock. */
  #withLocks<T>([first, ...others]: readonly string[], work: () => Promise<T>): Promise<T> {
    return first === undefined ? work() : this.#locks.run(first, () => this.#withLocks(others, work));
  }

  /** Sets a state that lasts until the alarm's next evaluation. */
  async setState(name: string, state: AlarmState, reason: string, reasonData: string | null): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw absentAlarm([name]);
    await this.#changeState(entry.definition, { state, reason, reasonData });
  }

  /** Evaluates all alarms now. Rejects with the signal's reason. */
  async evaluateAll(signal: AbortSignal): Promise<void> {
    await this.#removeOldHistories().catch((error: unknown) => {
      this.#options.logger.error("failed to remove the histories of deleted alarms; the next evaluation retries", {
        error: String(error),
      });
    });
    for (const name of this.#entries.keys()) {
      signal.throwIfAborted();
      // If the state cannot be written, for example on a full disk, the next tick evaluates the alarm again.
      await this.#evaluate(name).catch((error: unknown) => {
        this.#options.logger.error("failed to evaluate an alarm; the next evaluation retries", {
          alarm: name,
          error: String(error),
        });
      });
    }
  }

  /** Resolves when no alarm action is running. */
  async whenActionsEnd(): Promise<void> {
    await this.#actions.waitForTasks();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#actions[Symbol.asyncDispose]();
    await this.#tasks[Symbol.asyncDispose]();
  }

  /** Evaluates every alarm after each interval. */
  async #watch(closing: AbortSignal): Promise<void> {
    const { clock, limits } = this.#options;
    for (;;) {
      const sinceTickMs = (clock.epochMs() - afterTickMs) % limits.tickMs;
      await delay(clock, limits.tickMs - sinceTickMs, closing);
      await this.evaluateAll(closing);
    }
  }

  async #evaluate(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    if (entry.rule !== null) return this.#evaluateRule(entry, entry.rule);
    const definition = entry.definition as MetricAlarm;
    const looked = await this.#readInput(definition).catch((error: unknown) => ({ error }));
    // A failed write is no evaluation error: the caller logs it, and the next tick evaluates the alarm again.
    if (!("error" in looked)) return this.#evaluateMetric(definition, looked);
    // Users see an evaluation error as the StateReason of the alarm.
    const reason = `Evaluation error: ${looked.error instanceof Error ? looked.error.message : String(looked.error)}`;
    if (entry.status.reason !== reason) {
      await this.#changeState(definition, { state: "INSUFFICIENT_DATA", reason, reasonData: null });
    }
  }

  async #readInput(definition: MetricAlarm): Promise<EvaluationInput> {
    const { clock, readValues } = this.#options;
    const { periodMs } = definition.watched;
    const queriedMs = clock.epochMs();
    // Periods of a minute or more end on full minutes. Shorter periods end on multiples of their length.
    const stepMs = Math.min(periodMs, 60_000);
    const length = periodsToRead(definition);
    const endMs = Math.floor(queriedMs / stepMs) * stepMs;
    const startMs = endMs - length * periodMs;
    const found = await readValues(definition.watched, { startMs, endMs });
    const values = Array.from({ length }, (_, position) => found.get(startMs + position * periodMs) ?? null);
    return { values, startMs, queriedMs };
  }

  async #evaluateMetric(definition: MetricAlarm, looked: EvaluationInput): Promise<void> {
    const { values, startMs, queriedMs } = looked;
    const { periodMs } = definition.watched;
    const rule: EvaluationRule = { ...definition, missing: definition.missing ?? "missing" };
    const now = this.#entries.get(definition.name);
    // The alarm was reconfigured during the evaluation: its new definition is evaluated at the next tick.
    if (now?.definition !== definition) return;
    const evaluation = evaluateWindow(values, rule, now.status.state);
    const decidedMs = evaluation.decided.map((position) => startMs + position * periodMs);
    if (await this.#hasFewSamples(definition, decidedMs)) return this.#runner.repeatActions(now, queriedMs);
    if (evaluation.state === now.status.state && now.status.reason !== initialStateReason) {
      return this.#runner.repeatActions(now, queriedMs);
    }
    const reason = stateReason(definition, evaluation, looked, now.status.state);
    await this.#changeState(definition, {
      state: evaluation.state,
      reason,
      reasonData: stateReasonData(definition, evaluation, looked),
    });
  }

  /** Returns whether one of the deciding datapoints has too few samples for the alarm's percentile. */
  async #hasFewSamples({ watched, ignoresFewSamples }: MetricAlarm, decidedMs: readonly number[]): Promise<boolean> {
    const [firstMs, lastMs] = [decidedMs[0], decidedMs.at(-1)];
    if (ignoresFewSamples !== true || watched.kind !== "metric" || firstMs === undefined || lastMs === undefined)
      return false;
    const needed = percentileSamplesMin(Number(watched.statistic.slice(1)));
    const range = { startMs: firstMs, endMs: lastMs + watched.periodMs };
    const counts = await this.#options.readValues({ ...watched, statistic: "SampleCount" }, range);
    return decidedMs.some((atMs) => (counts.get(atMs) ?? 0) < needed);
  }

  async #evaluateRule(entry: Entry, rule: AlarmRule): Promise<void> {
    const state = isRuleTrue(rule, (name) => this.#entries.get(name)?.status.state ?? "INSUFFICIENT_DATA")
      ? "ALARM"
      : "OK";
    if (state === entry.status.state) return this.#suppress(entry.definition as CompositeAlarm);
    const reason = `The alarm rule is ${state === "ALARM" ? "true" : "false"} for the states of its alarms.`;
    const states = alarmNamesInRule(rule).map((name) => {
      const of = this.#entries.get(name);
      return of === undefined ? { name } : { arn: of.definition.arn, state: { value: of.status.state } };
    });
    await this.#changeState(entry.definition, {
      state,
      reason,
      reasonData: JSON.stringify({ triggeringAlarms: states }),
    });
  }

  /** Stores the new state of an alarm, starts its actions, and evaluates the composite alarms that depend on it. */
  async #changeState(
    definition: AlarmDefinition,
    found: Pick<AlarmStatus, "state" | "reason" | "reasonData">,
  ): Promise<void> {
    const { name } = definition;
    const moved = await this.#locks.run(name, async () => {
      const entry = this.#entries.get(name);
      // The alarm was reconfigured or deleted during the evaluation.
      if (entry?.definition !== definition) return null;
      const atMs = this.#options.clock.epochMs();
      const before = entry.status.state;
      const isNew = found.state !== before;
      const transitionedMs = isNew ? atMs : entry.status.transitionedMs;
      const { suppression, acts } = this.#suppressionOf(definition, entry.status, found.state);
      const status: AlarmStatus = {
        ...found,
        updatedMs: atMs,
        transitionedMs,
        ...(suppression === null ? {} : { suppression }),
      };
      const event = { definition, status, before, atMs };
      const pendingActions = [...entry.pendingActions, ...(acts ? this.#runner.pendingActionsOf(event) : [])].slice(
        -pendingActionsMax,
      );
      const record = { definition, status, pendingActions };
      await this.#store.put(record, isNew ? [stateTransition(record, entry.status), ...suppressedActions(status)] : []);
      this.#entries.set(name, { ...entry, status, pendingActions });
      return isNew ? { event, acts } : null;
    });
    if (moved === null) return;
    if (moved.acts) this.#runner.startActions(moved.event);
    for (const above of this.#entries.values()) {
      if (above.reads.has(name)) await this.#evaluate(above.definition.name);
    }
  }

  /** Updates the suppression of a composite alarm whose state is unchanged: its suppressor may have changed state, or a period may have ended. */
  async #suppress(definition: CompositeAlarm): Promise<void> {
    const { name } = definition;
    if (definition.suppressor === undefined) return;
    const event = await this.#locks.run(name, async () => {
      const entry = this.#entries.get(name);
      if (entry?.definition !== definition) return null;
      const { suppression: held, ...status } = entry.status;
      const { suppression, acts } = this.#suppressionOf(definition, entry.status, status.state);
      if (suppression?.by === held?.by && !acts) return null;
      const next: AlarmStatus = suppression === null ? status : { ...status, suppression };
      const before = held?.actedState ?? status.state;
      const acting = { definition, status: next, before, atMs: this.#options.clock.epochMs() };
      const pendingActions = [...entry.pendingActions, ...(acts ? this.#runner.pendingActionsOf(acting) : [])].slice(
        -pendingActionsMax,
      );
      await this.#store.put({ definition, status: next, pendingActions }, []);
      this.#entries.set(name, { ...entry, status: next, pendingActions });
      return acts ? acting : null;
    });
    if (event !== null) this.#runner.startActions(event);
  }

  #suppressionOf(definition: AlarmDefinition, { state: before, suppression }: AlarmStatus, state: AlarmState) {
    const suppressor = definition.kind === "composite" ? definition.suppressor : undefined;
    if (suppressor === undefined) return { suppression: null, acts: state !== before };
    const isSuppressing = this.#entries.get(suppressor.alarm)?.status.state === "ALARM";
    const nowMs = this.#options.clock.epochMs();
    return nextSuppression(suppression ?? null, { suppressor, isSuppressing, state, before, nowMs });
  }

  /** Removes the histories of deleted alarms that are older than the retention time or above the maximum number. */
  async #removeOldHistories(): Promise<void> {
    const { clock, limits } = this.#options;
    const sinceMs = clock.epochMs() - limits.deletedKeptMs;
    let left = this.#deleted.size;
    const names: string[] = [];
    for (const { name, deletedMs } of this.#deleted.values()) {
      if (left <= limits.deletedKeptMax && deletedMs >= sinceMs) break;
      names.push(name);
      left -= 1;
    }
    if (names.length === 0) return;
    await this.#store.forgetHistories(names);
    for (const name of names) this.#deleted.delete(name);
  }

  #checkRule(name: string, rule: AlarmRule): void {
    const absent = alarmNamesInRule(rule).filter((each) => each !== name && !this.#entries.has(each));
    if (absent.length > 0) {
      throw new AwsError(
        "ValidationError",
        `AlarmRule contains alarms that do not exist: ${absent.join(", ")}. Create them first.`,
      );
    }
    // An alarm is visited again only at a greater depth: visiting every path could take exponential time.
    const deepest = new Map<string, number>();
    const visit = (each: AlarmRule, depth: number): void => {
      if (depth > rulesDeep)
        throw new AwsError("ValidationError", `Composite alarms can be nested at most ${rulesDeep} levels deep.`);
      for (const read of alarmNamesInRule(each)) {
        if (read === name)
          throw new AwsError(
            "ValidationError",
            `AlarmRule forms a cycle: ${name} depends on itself through the alarms in its rule.`,
          );
        const next = this.#entries.get(read)?.rule ?? null;
        if (next === null || depth <= (deepest.get(read) ?? -1)) continue;
        deepest.set(read, depth);
        visit(next, depth + 1);
      }
    };
    visit(rule, 0);
  }

  #checkSuppressor({ name, suppressor }: CompositeAlarm): void {
    if (suppressor === undefined) return;
    if (suppressor.alarm === name) throw new AwsError("ValidationError", "An alarm cannot suppress its own actions.");
    if (this.#entries.has(suppressor.alarm)) return;
    throw new AwsError(
      "ValidationError",
      `ActionsSuppressor alarm ${suppressor.alarm} does not exist. Create it first.`,
    );
  }

  async #recordAction({ definition: { name }, atMs }: AlarmEvent, arn: string, item: AlarmHistoryItem): Promise<void> {
    await this.#locks.run(name, async () => {
      const entry = this.#entries.get(name);
      if (entry === undefined) return;
      const pendingActions = entry.pendingActions.filter((each) => each.arn !== arn || each.atMs !== atMs);
      await this.#store.put({ ...entry, pendingActions }, [item]);
      this.#entries.set(name, { ...entry, pendingActions });
    });
  }
}

/** Returns the entry of an alarm. It contains the alarm names of the rule because each state change looks them up in all entries. */
function entryOf(record: AlarmRecord, rule: AlarmRule | null): Entry {
  const { definition } = record;
  const named = new Set(rule === null ? [] : alarmNamesInRule(rule));
  const suppressor = definition.kind === "composite" ? definition.suppressor : undefined;
  return { ...record, rule, named, reads: suppressor === undefined ? named : new Set([...named, suppressor.alarm]) };
}

const absentAlarm = (names: readonly string[]) =>
  new AwsError("ResourceNotFound", `Alarm not found: ${names.join(", ")}.`);
