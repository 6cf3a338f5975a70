import { setImmediate as nextTurn } from "node:timers/promises";
import { AwsError, openDeadline, Semaphore, TaskGroup, type Clock, type Logger } from "@galatea/base";
import { QueryLimitExceeded, runQuery, type QueryEvent, type QueryResult } from "../../../insights/index.ts";
import type { LogPage, LogStreams } from "@galatea/hosting";

export interface LogQueriesOptions {
  readonly store: Pick<LogStreams, "streamNames" | "read">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly newId: () => string;
}

/** The input of a valid query. */
export interface QueryInput {
  readonly text: string;
  readonly groups: readonly string[];
  readonly accountId: string;
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number;
  readonly limit: number;
}

export interface QueryStatistics {
  readonly recordsScanned: number;
  readonly bytesScanned: number;
}

type QueryState =
  | { readonly at: "Scheduled" | "Running"; readonly stop: AbortController }
  | { readonly at: "Complete"; readonly result: QueryResult }
  | { readonly at: "Failed" | "Cancelled" | "Timeout" };

export interface LogQuery {
  readonly id: string;
  readonly input: QueryInput;
  readonly createdMs: number;
  readonly endedMs: number | null;
  readonly state: QueryState;
  readonly statistics: QueryStatistics;
}

/** Maximum number of queries that run at the same time, each in a thread. */
const runningMax = 2;
/** Maximum number of running and queued queries, as in CloudWatch Logs. */
const underWayMax = 30;
/** Time limit of a query, in milliseconds. */
const runMsMax = 15 * 60_000;
/** Maximum number of ended queries whose results are kept; the oldest ones are removed. */
const keptMax = 100;
const keptLengthMax = 64 * 1024 * 1024;
/** Number of events that are processed in one event loop tick, which takes about a millisecond. */
const eventsPerRead = 2000;

/**
 * The queries of CloudWatch Logs Insights. Each query runs over the log files in a thread. Queries are not stored, so a
 * restart of the platform loses them.
 */
export class LogQueries implements AsyncDisposable {
  readonly #options: LogQueriesOptions;
  /** Queries by id, in the order in which they started. */
  readonly #queries = new Map<string, LogQuery>();
  readonly #tasks: TaskGroup;
  readonly #threads = new Semaphore(runningMax);

  constructor(options: LogQueriesOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) =>
      options.logger.error("a query of log groups failed", {
        error: error instanceof Error ? error.stack : String(error),
      }),
    );
  }

  get(id: string): LogQuery | null {
    return this.#queries.get(id) ?? null;
  }

  /** Returns the queries, newest first. */
  list(): readonly LogQuery[] {
    return [...this.#queries.values()].toReversed();
  }

  /** Starts a query. Throws AwsError if too many queries are running or queued. */
  start(requested: QueryInput): string {
    if (this.list().filter(isUnderWay).length >= underWayMax) {
      throw new AwsError(
        "LimitExceededException",
        `Query limit (${underWayMax}) reached: wait until a query has ended.`,
      );
    }
    const { clock, newId } = this.#options;
    const stop = new AbortController();
    const query: LogQuery = {
      id: newId(),
      input: requested,
      createdMs: clock.epochMs(),
      endedMs: null,
      state: { at: "Scheduled", stop },
      statistics: { recordsScanned: 0, bytesScanned: 0 },
    };
    this.#queries.set(query.id, query);
    this.#tasks.run((closing) => this.#run(query, AbortSignal.any([stop.signal, closing])));
    return query.id;
  }

  /** Stops a query. Returns whether it was running or queued. */
  stop(id: string): boolean {
    const query = this.#queries.get(id);
    if (query === undefined || !isUnderWay(query)) return false;
    this.#setState(id, { at: "Cancelled" });
    if ("stop" in query.state) query.state.stop.abort();
    return true;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#tasks[Symbol.asyncDispose]();
  }

  async #run({ id, input: requested, state }: LogQuery, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    using deadline = openDeadline({ clock, afterMs: runMsMax, signal });
    try {
      using _place = await this.#threads.acquire(deadline.signal);
      if ("stop" in state) this.#setState(id, { at: "Running", stop: state.stop });
      const query = { text: requested.text, limit: requested.limit, nowMs: clock.epochMs() };
      const result = await runQuery(query, this.#events(id, requested, deadline.signal), deadline.signal);
      this.#setState(id, { at: "Complete", result });
    } catch (error) {
      if (deadline.hasExpired) return this.#setState(id, { at: "Timeout" });
      // The query was stopped, or the platform stops.
      if (signal.aborted) return;
      this.#setState(id, { at: "Failed" });
      if (!(error instanceof QueryLimitExceeded)) throw error;
      logger.warning("a query of log groups exceeded a limit", { query: id, bound: error.message });
    }
  }

  /** Changes a query's state; every change goes through this method. A final state is never replaced. */
  #setState(id: string, state: QueryState): void {
    const query = this.#queries.get(id);
    if (query === undefined || !isUnderWay(query)) return;
    const hasEnded = state.at !== "Scheduled" && state.at !== "Running";
    this.#queries.set(id, { ...query, state, endedMs: hasEnded ? this.#options.clock.epochMs() : null });
    if (hasEnded) this.#removeOldest();
  }

  #removeOldest(): void {
    let [count, length] = [0, 0];
    for (const query of this.list()) {
      if (isUnderWay(query)) continue;
      count += 1;
      length += lengthOf(query);
      if (count > keptMax || (count > 1 && length > keptLengthMax)) this.#queries.delete(query.id);
    }
  }

  async *#events(id: string, requested: QueryInput, signal: AbortSignal): AsyncGenerator<readonly QueryEvent[]> {
    const { store, clock } = this.#options;
    const { startMs: startTimeMs, endMs: endTimeMs } = requested;
    const read = { startTimeMs, endTimeMs, startFromHead: true, eventsMax: eventsPerRead };
    for (const group of requested.groups) {
      for (const stream of await store.streamNames(group, "")) {
        for (let token: string | null = null; ;) {
          await nextTurn(undefined, { signal });
          const page: LogPage | null = await store.read(group, stream, { ...read, token }).catch(noneOfDeleted);
          if (page === null || page.events.length === 0) break;
          const events = page.events.map(({ timestampMs, message, id: eventId }) => ({
            timestampMs,
            ingestedMs: Math.min(timestampMs, clock.epochMs()),
            message,
            stream,
            log: `${requested.accountId}:${group}`,
            pointer: Buffer.from(JSON.stringify([group, stream, eventId])).toString("base64"),
          }));
          this.#scanned(id, events);
          yield events;
          token = page.forwardToken;
        }
      }
    }
  }

  #scanned(id: string, events: readonly QueryEvent[]): void {
    const query = this.#queries.get(id);
    if (query === undefined) return;
    const { recordsScanned, bytesScanned } = query.statistics;
    const length = events.reduce((sum, { message }) => sum + message.length, 0);
    const statistics = { recordsScanned: recordsScanned + events.length, bytesScanned: bytesScanned + length };
    this.#queries.set(id, { ...query, statistics });
  }
}

function isUnderWay({ state }: LogQuery): boolean {
  return state.at === "Scheduled" || state.at === "Running";
}

function lengthOf({ state, input: query }: LogQuery): number {
  const rows = state.at === "Complete" ? state.result.rows : [];
  return rows.reduce(
    (sum, row) => row.reduce((all, [name, value]) => all + name.length + value.length, sum),
    query.text.length,
  );
}

/** Returns null for the error of a stream that was deleted during the query. Rethrows every other error. */
function noneOfDeleted(error: unknown): null {
  if (error instanceof AwsError && error.code === "ResourceNotFoundException") return null;
  throw error;
}
