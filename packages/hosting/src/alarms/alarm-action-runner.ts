import { openDeadline, Semaphore, type Clock, type Logger, type TaskGroup } from "@galatea/base";
import type {
  AlarmAction,
  ResolveAlarmAction,
  AlarmEvent,
  AlarmRecord,
  AlarmHistoryItem,
  PendingAction,
} from "./alarm.ts";

export interface AlarmActionRunnerOptions {
  readonly actions: ResolveAlarmAction;
  readonly limits: { readonly actionMs: number; readonly actionsMax: number };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  /** Writes an item to the alarm's history and removes the action from the alarm's pending actions. */
  readonly recordResult: (event: AlarmEvent, arn: string, item: AlarmHistoryItem) => Promise<void>;
}

const repeatMs = 60_000;
/**
 * Maximum number of actions that wait for a free slot. An action above the limit is dropped with a log line. A repeating
 * action runs again a minute later; any other action stays in the alarm's pending actions until the platform restarts.
 */
const waitingMax = 1000;

/** Runs the actions of alarms in the background. */
export class AlarmActionRunner {
  readonly #options: AlarmActionRunnerOptions;
  readonly #slots: Semaphore;
  /** Epoch milliseconds at which the actions of each alarm last ran, by alarm name. */
  readonly #lastMs = new Map<string, number>();

  constructor(options: AlarmActionRunnerOptions) {
    this.#options = options;
    this.#slots = new Semaphore(options.limits.actionsMax);
  }

  /** Starts the actions of the state that an alarm has just entered. */
  startActions(event: AlarmEvent): void {
    this.#lastMs.set(event.definition.name, event.atMs);
    this.#run(event, false);
  }

  /** Runs the repeating actions of an alarm whose state has not changed, at most once a minute. */
  repeatActions({ definition, status }: AlarmRecord, atMs: number): void {
    const lastMs = this.#lastMs.get(definition.name) ?? status.transitionedMs;
    // The absolute difference is used: otherwise a clock that was set back by a day would suppress actions for a day.
    if (Math.abs(atMs - lastMs) < repeatMs) return;
    this.#lastMs.set(definition.name, atMs);
    this.#run({ definition, status, before: status.state, atMs }, true);
  }

  /**
   * Returns the non-repeating actions of an event. The caller records them as pending, so that a restart does not lose
   * them.
   */
  pendingActionsOf({ definition, status, before, atMs }: AlarmEvent): readonly PendingAction[] {
    if (!definition.actionsEnabled) return [];
    const arns = definition.actions[status.state].filter((arn) => this.#options.actions(arn)?.repeats === false);
    return arns.map((arn) => ({ arn, status, before, atMs }));
  }

  /** Runs the actions that were pending when the previous process ended. */
  resume({ definition, pendingActions }: AlarmRecord): void {
    for (const { arn, status, before, atMs } of pendingActions) {
      const action = this.#options.actions(arn);
      if (action !== null) this.#enqueue(arn, action, { definition, status, before, atMs });
    }
  }

  forget(name: string): void {
    this.#lastMs.delete(name);
  }

  #run(event: AlarmEvent, isRepetition: boolean): void {
    const { definition, status } = event;
    if (!definition.actionsEnabled) return;
    for (const arn of definition.actions[status.state]) {
      const action = this.#options.actions(arn);
      if (action === null || (isRepetition && !action.repeats)) continue;
      this.#enqueue(arn, action, event);
    }
  }

  #enqueue(arn: string, action: AlarmAction, event: AlarmEvent): void {
    if (this.#slots.waitingCount >= waitingMax) {
      const alarm = event.definition.name;
      this.#options.logger.error("alarm action dropped: too many actions are waiting", {
        alarm,
        action: arn,
        waitingMax,
      });
      return;
    }
    this.#options.tasks.run(async (closing) => {
      using _place = await this.#slots.acquire(closing);
      await this.#execute(arn, action, event, closing);
    });
  }

  async #execute(arn: string, action: AlarmAction, event: AlarmEvent, closing: AbortSignal): Promise<void> {
    const { clock, limits, recordResult } = this.#options;
    using deadline = openDeadline({ clock, afterMs: limits.actionMs, signal: closing });
    const failure = await action.run(event, deadline.signal).then(
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
    await recordResult(event, arn, { atMs: clock.epochMs(), kind: "Action", summary, data });
  }
}
