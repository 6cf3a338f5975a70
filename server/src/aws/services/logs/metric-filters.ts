import { setImmediate as nextTurn } from "node:timers/promises";
import { AwsError, KeyedLock, type Logger } from "../../../base/index.ts";
import type { MinuteSeries } from "../../../metrics/index.ts";
import type { LogStore, StoreFollower } from "./log-store.ts";
import { metricFilter, type MetricFilterRecord, type MetricSample } from "./metric-filter.ts";

/** Where filters are kept. */
export interface MetricFilterStore {
  all(): Promise<readonly MetricFilterRecord[]>;
  put(filter: MetricFilterRecord): Promise<void>;
  delete(filter: MetricFilterRecord): Promise<void>;
}

export interface MetricFiltersOptions {
  readonly store: MetricFilterStore;
  readonly logs: Pick<LogStore, "follow">;
  readonly series: Pick<MinuteSeries, "record">;
  readonly logger: Logger;
}

interface OpenFilter {
  readonly record: MetricFilterRecord;
  readonly sampleOf: (message: string) => MetricSample | null;
}

/** As in CloudWatch Logs, and of all groups together. */
const ofGroupMax = 100;
const filtersMax = 1000;
const minuteMs = 60_000;

/** Metrics out of log events, from the moment a filter is put: of what containers print and of what clients put. */
export class MetricFilters implements Disposable {
  readonly #options: MetricFiltersOptions;
  readonly #groups = new Map<string, Map<string, OpenFilter>>();
  readonly #changing = new KeyedLock();
  readonly #following: Disposable;
  #count = 0;

  static async open(options: MetricFiltersOptions): Promise<MetricFilters> {
    const filters = new MetricFilters(options);
    for (const record of await options.store.all()) {
      try {
        filters.#set({ record, sampleOf: metricFilter(record) });
      } catch (error) {
        const { group, name } = record;
        options.logger.error("a metric filter cannot be read and is left out", { group, name, error: String(error) });
      }
    }
    return filters;
  }

  private constructor(options: MetricFiltersOptions) {
    this.#options = options;
    const follower: StoreFollower = {
      wants: (group) => this.#groups.has(group),
      take: (group, _stream, events) => this.#take(group, events),
    };
    this.#following = options.logs.follow(follower);
  }

  /** By group and name. */
  list(): readonly MetricFilterRecord[] {
    const all = [...this.#groups.values()].flatMap((filters) => [...filters.values()].map(({ record }) => record));
    const keyOf = ({ group, name }: MetricFilterRecord) => JSON.stringify([group, name]);
    return all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }

  countOf(group: string): number {
    return this.#groups.get(group)?.size ?? 0;
  }

  /** On disk, then at work. Throws AwsError. */
  async put(record: MetricFilterRecord): Promise<void> {
    const { group, name } = record;
    const sampleOf = metricFilter(record);
    await this.#changing.run(group, async () => {
      const isNew = this.#groups.get(group)?.has(name) !== true;
      if (isNew && (this.countOf(group) >= ofGroupMax || this.#count >= filtersMax)) {
        const text = `A log group has ${ofGroupMax} metric filters at most, and all together ${filtersMax}.`;
        throw new AwsError("LimitExceededException", text);
      }
      await this.#options.store.put(record);
      this.#set({ record, sampleOf });
    });
  }

  async delete(group: string, name: string): Promise<void> {
    await this.#changing.run(group, async () => {
      const filters = this.#groups.get(group);
      const found = filters?.get(name);
      if (filters === undefined || found === undefined) {
        throw new AwsError("ResourceNotFoundException", "The specified metric filter does not exist.");
      }
      await this.#options.store.delete(found.record);
      filters.delete(name);
      this.#count -= 1;
      if (filters.size === 0) this.#groups.delete(group);
    });
  }

  /** A group's filters go with it. */
  async deleteOf(group: string): Promise<void> {
    for (const each of this.list()) if (each.group === group) await this.delete(group, each.name);
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

  /** Who prints waits for it: a turn of the event loop for each filter. */
  async #take(group: string, events: Parameters<StoreFollower["take"]>[2]): Promise<void> {
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
