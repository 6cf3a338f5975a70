import { setImmediate as nextTurn } from "node:timers/promises";
import { AwsError, type KeyedLock, type Logger } from "@galatea/base";
import type { MetricStore } from "@galatea/base/metrics";
import type { LogFollower, LogStreams } from "@galatea/hosting";
import type { RecordedValues } from "@galatea/hosting/records";
import { compileMetricFilter, type MetricFilterRecord, type MetricSample } from "./metric-filter.ts";

/** Metric filters by group and name, stored as documents. */
export type MetricFilterStore = Pick<RecordedValues<MetricFilterRecord>, "all" | "put" | "deleteAll">;

export interface MetricFiltersOptions {
  readonly store: MetricFilterStore;
  readonly logs: Pick<LogStreams, "follow" | "groupNames" | "retentionDays">;
  readonly series: Pick<MetricStore, "record">;
  readonly logger: Logger;
  /** Locks by group, which serialize changes of a group and of its filters. */
  readonly groupLocks: KeyedLock;
}

interface OpenFilter {
  readonly record: MetricFilterRecord;
  readonly sampleOf: (message: string) => MetricSample | null;
}

/** Maximum number of filters of one log group, as in CloudWatch Logs. */
const ofGroupMax = 100;
const filtersMax = 1000;
const minuteMs = 60_000;

const keyOf = ({ group, name }: MetricFilterRecord) => JSON.stringify([group, name]);

/** Records metrics from the log events that containers and clients write after a filter is put. */
export class MetricFilters implements Disposable {
  readonly #options: MetricFiltersOptions;
  readonly #groups = new Map<string, Map<string, OpenFilter>>();
  readonly #following: Disposable;
  #count = 0;

  static async open(options: MetricFiltersOptions): Promise<MetricFilters> {
    const filters = new MetricFilters(options);
    for (const record of await options.store.all()) {
      try {
        filters.#set({ record, sampleOf: compileMetricFilter(record) });
      } catch (error) {
        const { group, name } = record;
        options.logger.error("a metric filter cannot be read and is left out", { group, name, error: String(error) });
      }
    }
    await filters.#dropOrphans();
    return filters;
  }

  private constructor(options: MetricFiltersOptions) {
    this.#options = options;
    const follower: LogFollower = {
      wants: (group) => this.#groups.has(group),
      receive: (group, _stream, events) => this.#take(group, events),
    };
    this.#following = options.logs.follow(follower);
  }

  /** Returns the filters sorted by group and name. */
  list(): readonly MetricFilterRecord[] {
    const all = [...this.#groups.values()].flatMap((filters) => [...filters.values()].map(({ record }) => record));
    return all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }

  countOf(group: string): number {
    return this.#groups.get(group)?.size ?? 0;
  }

  /**
   * Stores and activates a filter. Throws AwsError for an invalid filter, for an unknown group, and above the limits.
   */
  async put(record: MetricFilterRecord): Promise<void> {
    const { group, name } = record;
    const sampleOf = compileMetricFilter(record);
    await this.#options.groupLocks.run(group, async () => {
      await this.#options.logs.retentionDays(group);
      const isNew = this.#groups.get(group)?.has(name) !== true;
      if (isNew && (this.countOf(group) >= ofGroupMax || this.#count >= filtersMax)) {
        const text = `A log group can have at most ${ofGroupMax} metric filters, and all log groups together ${filtersMax}.`;
        throw new AwsError("LimitExceededException", text);
      }
      await this.#options.store.put(keyOf(record), record);
      this.#set({ record, sampleOf });
    });
  }

  async delete(group: string, name: string): Promise<void> {
    await this.#options.groupLocks.run(group, async () => {
      const found = this.#groups.get(group)?.get(name);
      if (found === undefined) {
        throw new AwsError("ResourceNotFoundException", "The specified metric filter does not exist.");
      }
      await this.#drop(group, [found]);
    });
  }

  /**
   * Creates a log group without filters. First removes filters that an interrupted deletion of an earlier group with
   * this name has left.
   */
  async createGroup(group: string, create: () => Promise<void>): Promise<void> {
    await this.#options.groupLocks.run(group, async () => {
      if (this.countOf(group) > 0 && !(await this.#hasGroup(group))) await this.#dropAll(group);
      await create();
    });
  }

  /**
   * Deletes a log group, then its filters. If an interrupted deletion has already deleted the group, only deletes its
   * filters.
   */
  async deleteGroup(group: string, remove: () => Promise<void>): Promise<void> {
    await this.#options.groupLocks.run(group, async () => {
      if (this.countOf(group) === 0 || (await this.#hasGroup(group))) await remove();
      await this.#dropAll(group);
    });
  }

  [Symbol.dispose](): void {
    this.#following[Symbol.dispose]();
  }

  #set(filter: OpenFilter): void {
    const { group, name } = filter.record;
    const filters = this.#groups.get(group) ?? new Map<string, OpenFilter>();
    if (!filters.has(name)) this.#count += 1;
    this.#groups.set(group, filters);
    filters.set(name, filter);
  }

  /** Removes filters of groups that no longer exist, which a crash during a deletion may leave. */
  async #dropOrphans(): Promise<void> {
    if (this.#groups.size === 0) return;
    const { logs, logger } = this.#options;
    const there = new Set(await logs.groupNames(""));
    for (const group of [...this.#groups.keys()].filter((each) => !there.has(each))) {
      logger.warning("the metric filters of a deleted log group are removed", { group });
      try {
        await this.#dropAll(group);
      } catch (error) {
        logger.error("the metric filters of a deleted log group cannot be removed", {
          group,
          error: String(error),
        });
      }
    }
  }

  async #hasGroup(group: string): Promise<boolean> {
    return (await this.#options.logs.groupNames(group)).includes(group);
  }

  async #dropAll(group: string): Promise<void> {
    await this.#drop(group, [...(this.#groups.get(group)?.values() ?? [])]);
  }

  async #drop(group: string, dropped: readonly OpenFilter[]): Promise<void> {
    if (dropped.length === 0) return;
    await this.#options.store.deleteAll(dropped.map(({ record }) => keyOf(record)));
    const filters = this.#groups.get(group);
    for (const { record } of dropped) if (filters?.delete(record.name) === true) this.#count -= 1;
    if (filters?.size === 0) this.#groups.delete(group);
  }

  /**
   * Computes samples for new events, with one event loop tick for each filter. Writers of the events wait until this
   * resolves.
   */
  async #take(group: string, events: Parameters<LogFollower["receive"]>[2]): Promise<void> {
    for (const [index, { record, sampleOf }] of [...(this.#groups.get(group)?.values() ?? [])].entries()) {
      if (index > 0) await nextTurn();
      const { namespace, name: metricName, unit } = record.metric;
      for (const { timestampMs, message } of events) {
        const sample = sampleOf(message);
        if (sample === null) continue;
        const { value, dimensions } = sample;
        const key = { namespace, metricName, dimensions, unit };
        this.#options.series.record(key, { value, count: 1 }, { timestampMs, resolutionMs: minuteMs });
      }
    }
  }
}
