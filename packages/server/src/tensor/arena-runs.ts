import { assert } from "@galatea/base";

/**
 * The free granules of an arena, as runs of adjacent granules in lists by size. Adjacent free runs are merged. A `dirty` run may have
 * resident memory pages, a `clean` one has none; the two are never merged, so that the resident size stays exact. Dirty runs are used
 * first, because their pages are resident. The owner releases the pages; this class only does the bookkeeping.
 */
export class GranuleRuns {
  readonly #granuleCount: number;
  /** Free runs by their first granule, and by the granule after their last one. */
  readonly #byStart = new Map<number, Run>();
  readonly #byEnd = new Map<number, Run>();
  readonly #dirtyBins: Set<Run>[] = [];
  readonly #cleanBins: Set<Run>[] = [];
  #dirtyGranules = 0;

  constructor(granuleCount: number) {
    this.#granuleCount = granuleCount;
    for (let bin = 0; bin <= 32; bin++) {
      this.#dirtyBins.push(new Set());
      this.#cleanBins.push(new Set());
    }
    this.#add({ start: 0, length: granuleCount, dirty: false });
  }

  /** Number of free granules that may have pages. */
  get dirtyGranules(): number {
    return this.#dirtyGranules;
  }

  /** Allocates a run of exactly `length` granules. Returns its first granule, or -1 when no free run is long enough. */
  allocate(length: number): number {
    const run = findRun(this.#dirtyBins, length) ?? findRun(this.#cleanBins, length);
    if (run === null) return -1;
    this.#remove(run);
    if (run.length > length) this.#add({ start: run.start + length, length: run.length - length, dirty: run.dirty });
    return run.start;
  }

  /** Frees a run, which is dirty from then on. */
  release(start: number, length: number): void {
    assert(start >= 0 && length > 0 && start + length <= this.#granuleCount, "a run outside the arena");
    this.#join({ start, length, dirty: true });
  }

  /**
   * Makes up to `granulesMax` dirty granules clean, the longest runs first. Calls `punch` for each run to release its pages. Returns the
   * number of granules.
   */
  clean(granulesMax: number, punch: (start: number, length: number) => void): number {
    let cleaned = 0;
    for (let bin = this.#dirtyBins.length - 1; bin >= 0; bin--) {
      for (const run of this.#dirtyBins[bin]!) {
        if (cleaned >= granulesMax) return cleaned;
        const length = Math.min(run.length, granulesMax - cleaned);
        this.#remove(run);
        if (run.length > length) this.#add({ start: run.start + length, length: run.length - length, dirty: true });
        punch(run.start, length);
        this.#join({ start: run.start, length, dirty: false });
        cleaned += length;
      }
    }
    return cleaned;
  }

  #join(run: Run): void {
    const before = this.#byEnd.get(run.start);
    if (before?.dirty === run.dirty) {
      this.#remove(before);
      run.start = before.start;
      run.length += before.length;
    }
    const after = this.#byStart.get(run.start + run.length);
    if (after?.dirty === run.dirty) {
      this.#remove(after);
      run.length += after.length;
    }
    this.#add(run);
  }

  #add(run: Run): void {
    this.#byStart.set(run.start, run);
    this.#byEnd.set(run.start + run.length, run);
    (run.dirty ? this.#dirtyBins : this.#cleanBins)[binOf(run.length)]!.add(run);
    if (run.dirty) this.#dirtyGranules += run.length;
  }

  #remove(run: Run): void {
    this.#byStart.delete(run.start);
    this.#byEnd.delete(run.start + run.length);
    (run.dirty ? this.#dirtyBins : this.#cleanBins)[binOf(run.length)]!.delete(run);
    if (run.dirty) this.#dirtyGranules -= run.length;
  }
}

interface Run {
  start: number;
  length: number;
  dirty: boolean;
}

/**
 * Number of runs of a list that are examined before the next larger list is searched. The first list may contain runs that are too short.
 */
const probesMax = 8;

function findRun(bins: readonly Set<Run>[], length: number): Run | null {
  const first = binOf(length);
  let looks = 0;
  for (const run of bins[first]!) {
    if (run.length >= length) return run;
    if (++looks === probesMax) break;
  }
  for (let bin = first + 1; bin < bins.length; bin++) for (const run of bins[bin]!) return run;
  // The remaining runs of the first list are searched last. Without this, an allocation could fail although a run fits.
  if (looks === probesMax) for (const run of bins[first]!) if (run.length >= length) return run;
  return null;
}

function binOf(length: number): number {
  return 31 - Math.clz32(length);
}
