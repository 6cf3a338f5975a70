import { openDeadline, Semaphore, type Clock, type Logger, type TaskGroup } from "@galatea/base";
import type { AlarmAct, AlarmActions, AlarmEvent, AlarmRecord, HistoryItem, PendingAction } from "./alarm.ts";

export interface AlarmActingOptions {
  readonly actions: AlarmActions;
  readonly limits: { readonly actionMs: number; readonly actionsMax: number };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  /** Writes an item to an alarm's history and records that the action of that state is done. */
  readonly done: (event: AlarmEvent, arn: string, item: HistoryItem) => Promise<void>;
}

const repeatMs = 60_000;
/**
 * Maximum number of actions that wait for a free slot. Further ones are dropped and logged; repeating actions run again
 * later, others stay pending.
 */
const waitingMax = 1000;

/** Runs the actions of alarms in the background. */
export class AlarmActing {
  readonly #options: AlarmActingOptions;
  readonly #places: Semaphore;
  /** Time of the last run of each alarm's repeating actions. */
  readonly #lastMs = new Map<string, number>();

  constructor(options: AlarmActingOptions) {
    this.#options = options;
    this.#places = new Semaphore(options.limits.actionsMax);
  }

  begins(event: AlarmEvent): void {
    this.#lastMs.set(event.definition.name, event.atMs);
    this.#run(event, false);
  }

  /** Runs the repeating actions of an alarm that is still in its state, at most once a minute. */
  repeatActions({ definition, status }: AlarmRecord, atMs: number): void {
    const lastMs = this.#lastMs.get(definition.name) ?? status.transitionedMs;
    // The absolute difference is used: otherwise a clock that was set back by a day would suppress actions for a day.
    if (Math.abs(atMs - lastMs) < repeatMs) return;
    this.#lastMs.set(definition.name, atMs);
    this.#run({ definition, status, before: status.state, atMs }, true);
  }

  /** Returns the actions that run once when a state begins. */
  pendingActionsOf({ definition, status, before, atMs }: AlarmEvent): readonly PendingAction[] {
    if (!definition.actionsEnabled) return [];
    const arns = definition.actions[status.state].filter((arn) => this.#options.actions(arn)?.repeats === false);
    return arns.map((arn) => ({ arn, status, before, atMs }));
  }

  /** Runs the actions that a previous run of the platform has not recorded as done. */
  resume({ definition, pendingActions }: AlarmRecord): void {
    for (const { arn, status, before, atMs } of pendingActions) {
      const act = this.#options.actions(arn);
      if (act !== null) this.#begin(arn, act, { definition, status, before, atMs });
    }
  }

  forget(name: string): void {
    this.#lastMs.delete(name);
  }

  #run(event: AlarmEvent, isRepeated: boolean): void {
    const { definition, status } = event;
    if (!definition.actionsEnabled) return;
    for (const arn of definition.actions[status.state]) {
      const act = this.#options.actions(arn);
      if (act === null || (isRepeated && !act.repeats)) continue;
      this.#begin(arn, act, event);
    }
  }

  #begin(arn: string, act: AlarmAct, event: AlarmEvent): void {
    if (this.#places.waitingCount >= waitingMax) {
      const alarm = event.definition.name;
      this.#options.logger.error("an alarm's action is dropped: too many actions are waiting", { alarm, action: arn });
      return;
    }
    this.#options.tasks.run(async (closing) => {
      using _place = await this.#places.acquire(closing);
      await this.#act(arn, act, event, closing);
    });
  }

  async #act(arn: string, act: AlarmAct, event: AlarmEvent, closing: AbortSignal): Promise<void> {
    const { clock, limits, done } = this.#options;
    using deadline = openDeadline({ clock, afterMs: limits.actionMs, signal: closing });
    const failure = await act.run(event, deadline.signal).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    closing.throwIfAborted();
    const summary =
      failure === null
        ? `Successfully executed action ${arn}`
        : `Failed to execute action ${arn}. Received error: "${failure}"`;
    const data = JSON.stringify({
      actionState: failure === null ? "Succeeded" : "Failed",
      stateUpdateTimestamp: event.status.updatedMs,
      notificationResource: arn,
      error: failure,
    });
    await done(event, arn, { atMs: clock.epochMs(), kind: "Action", summary, data });
  }
}
