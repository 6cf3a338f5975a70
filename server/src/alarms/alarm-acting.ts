import { openDeadline, Semaphore, type Clock, type Logger, type TaskGroup } from "../base/index.ts";
import type { AlarmAct, AlarmActions, AlarmEvent, AlarmRecord, HistoryItem } from "./alarm.ts";

export interface AlarmActingOptions {
  readonly actions: AlarmActions;
  readonly limits: { readonly actionMs: number; readonly actionsMax: number };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  /** Writes to an alarm's history. */
  readonly tell: (name: string, item: HistoryItem) => Promise<void>;
}

const repeatMs = 60_000;
/** Actions that wait for a place; beyond it they are refused in the alarm's history. */
const waitingMax = 1000;

/** Runs what alarms say is to be done, away from those who look at them. */
export class AlarmActing {
  readonly #options: AlarmActingOptions;
  readonly #places: Semaphore;
  /** When each alarm's repeating actions have last run. */
  readonly #lastMs = new Map<string, number>();

  constructor(options: AlarmActingOptions) {
    this.#options = options;
    this.#places = new Semaphore(options.limits.actionsMax);
  }

  begins(event: AlarmEvent): void {
    this.#lastMs.set(event.definition.name, event.atMs);
    this.#run(event, false);
  }

  /** An alarm was found in the state it had. */
  stays({ definition, status }: AlarmRecord, atMs: number): void {
    const lastMs = this.#lastMs.get(definition.name) ?? status.transitionedMs;
    if (atMs - lastMs < repeatMs) return;
    this.#lastMs.set(definition.name, atMs);
    this.#run({ definition, status, before: status.state, atMs }, true);
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
      if (this.#places.waitingCount >= waitingMax) {
        this.#options.logger.error("an alarm's action is left out: too many wait", {
          alarm: definition.name,
          action: arn,
        });
        continue;
      }
      this.#options.tasks.run(async (closing) => {
        using _place = await this.#places.acquire(closing);
        await this.#act(arn, act, event, closing);
      });
    }
  }

  async #act(arn: string, act: AlarmAct, event: AlarmEvent, closing: AbortSignal): Promise<void> {
    const { clock, limits, tell } = this.#options;
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
    await tell(event.definition.name, { atMs: clock.epochMs(), kind: "Action", summary, data });
  }
}
