import { KeyedLock, LazyResource, type Logger } from "@galatea/base";
import { RecordedValues, type Documents } from "@galatea/hosting/records";
import type { MetricFilterRecord, MetricFilters, MetricFiltersOptions } from "./metric-filters/index.ts";

type GroupFiltersOptions = Omit<MetricFiltersOptions, "groupLocks">;

/** Opens the store of metric filters in `documents`. */
export const openMetricFilterStore = (documents: Documents, logger: Logger) =>
  new RecordedValues<MetricFilterRecord>(documents, "metric-filter", logger);

/**
 * The metric filters of log groups. Their code is loaded at the start if filters are stored, otherwise when the first
 * filter is put.
 */
export class GroupFilters implements AsyncDisposable {
  /**
   * Locks by group. They are used even before the filters' code is loaded, so that no filter is put on a group that is
   * being deleted.
   */
  readonly #groupLocks = new KeyedLock();
  readonly #filters: LazyResource<MetricFilters>;

  private constructor(options: GroupFiltersOptions) {
    const groupLocks = this.#groupLocks;
    this.#filters = new LazyResource(async () => {
      const { MetricFilters } = await import("./metric-filters/index.ts");
      return MetricFilters.open({ ...options, groupLocks });
    });
  }

  static async open(options: GroupFiltersOptions): Promise<GroupFilters> {
    const filters = new GroupFilters(options);
    if ((await options.store.all()).length > 0) await filters.get();
    return filters;
  }

  get(): Promise<MetricFilters> {
    return this.#filters.get();
  }

  async countOf(group: string): Promise<number> {
    return (await this.#filters.opened)?.countOf(group) ?? 0;
  }

  /** Creates a group, and first removes the filters of a deleted group with the same name. */
  async createGroup(group: string, create: () => Promise<void>): Promise<void> {
    const filters = await this.#filters.opened;
    return filters === null ? this.#groupLocks.run(group, create) : filters.createGroup(group, create);
  }

  /** Deletes a group and its filters. */
  async deleteGroup(group: string, remove: () => Promise<void>): Promise<void> {
    const filters = await this.#filters.opened;
    return filters === null ? this.#groupLocks.run(group, remove) : filters.deleteGroup(group, remove);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#filters[Symbol.asyncDispose]();
  }
}
