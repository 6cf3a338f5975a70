import { assert, InferenceError } from "../core/index.ts";
import { printFamilyHeader, printHistogram, printLabels, printSample } from "./exposition.ts";
import {
  cellCount,
  emptyTotals,
  gaugeValue,
  addToClosedTotals,
  sumCells,
  type ClosedWriterTotals,
  type CustomMetricKind,
} from "./series-cells.ts";

/** Float64 cells in shared memory, initially zero. Disposing the lease releases the cells. */
export interface SharedCellsLease extends Disposable {
  readonly cells: Float64Array;
  readonly byteOffset: number;
}

/** Allocates cells in the shared memory of one namespace. Throws UNAVAILABLE if there is no free memory. */
export type AllocateSharedCells = (count: number) => SharedCellsLease;

export interface MetricFamilyDescription {
  readonly name: string;
  readonly description: string;
  readonly kind: CustomMetricKind;
}

/** Limits on the families that the models of one namespace create. */
export interface CustomMetricLimits {
  /** Maximum number of lines in the exposition. */
  readonly linesMax: number;
  /** Maximum length of names, descriptions and labels. */
  readonly textLengthMax: number;
  /** Maximum number of objects in models that refer to a family or a series. */
  readonly writersMax: number;
  /** Maximum number of bytes of shared memory. */
  readonly bytesMax: number;
  readonly boundsMax: number;
}

interface SeriesWriter {
  readonly id: number;
  readonly cells: Float64Array;
  readonly lease: SharedCellsLease;
}

/** Maximum number of lines that are printed in one event loop tick. */
const chunkLinesMax = 1000;
/** Minimum size of a block of shared memory. */
const blockBytesMin = 256;
/** Largest id of a writer. A gauge stores the id of its last writer (`gaugeCells`). */
const writerIdMax = 2 ** 20;

class Series implements Disposable {
  readonly labels: string;
  readonly bounds: readonly number[];
  readonly #kind: CustomMetricKind;
  readonly #shared: SharedCellsLease | null;
  readonly #closedTotals: ClosedWriterTotals;
  readonly #writers = new Map<number, SeriesWriter>();
  #lastWriterId = 0;

  constructor(kind: CustomMetricKind, labels: string, bounds: readonly number[], allocate: AllocateSharedCells) {
    this.#kind = kind;
    this.labels = labels;
    this.bounds = bounds;
    this.#shared = kind === "gauge" ? allocate(1) : null;
    this.#closedTotals = emptyTotals(kind, bounds.length);
  }

  get sharedByteOffset(): number {
    return this.#shared?.byteOffset ?? 0;
  }

  get lineCount(): number {
    return linesOf(this.#kind, this.bounds);
  }

  /** Size of the cells of one writer, in bytes. */
  get writerBytes(): number {
    return Math.max(blockBytesMin, 8 * cellCount(this.#kind, this.bounds.length));
  }

  get hasWriters(): boolean {
    return this.#writers.size > 0;
  }

  add(allocate: AllocateSharedCells): SeriesWriter {
    const lease = allocate(cellCount(this.#kind, this.bounds.length));
    do this.#lastWriterId = (this.#lastWriterId % writerIdMax) + 1;
    while (this.#writers.has(this.#lastWriterId));
    const writer = { id: this.#lastWriterId, cells: lease.cells, lease };
    this.#writers.set(writer.id, writer);
    return writer;
  }

  remove(writer: SeriesWriter): void {
    addToClosedTotals(this.#kind, this.#sharedCells, this.#closedTotals, writer);
    this.#writers.delete(writer.id);
    writer.lease[Symbol.dispose]();
  }

  /** Frees the shared cells. Called when the last writer is closed. */
  [Symbol.dispose](): void {
    this.#shared?.[Symbol.dispose]();
  }

  value(): number {
    if (this.#kind === "histogram")
      throw new InferenceError("UNSUPPORTED", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value");
    if (this.#kind === "counter") return sumCells(this.#closedTotals, this.#writers.values())[0]!;
    return gaugeValue(this.#sharedCells, this.#closedTotals, this.#writers.values());
  }

  print(name: string, namespace: string): string {
    const labels = [this.labels, namespace].filter((text) => text !== "").join(",");
    if (this.#kind !== "histogram") return printSample(name, labels, this.value());
    const [sum, ...counts] = sumCells(this.#closedTotals, this.#writers.values());
    return printHistogram(name, labels, { bounds: this.bounds, counts: Float64Array.from(counts), sum: sum! });
  }

  get #sharedCells(): Float64Array {
    return this.#shared?.cells ?? noCells;
  }
}

const noCells = new Float64Array(1);

function linesOf(kind: CustomMetricKind, bounds: readonly number[]): number {
  return kind === "histogram" ? bounds.length + 3 : 1;
}

interface Family {
  readonly head: MetricFamilyDescription;
  readonly series: Map<string, Series>;
  writerCount: number;
}

interface MetricUsage {
  readonly lines?: number;
  readonly textLength?: number;
  readonly writers?: number;
  readonly bytes?: number;
}

/** The resources that the families of one namespace use, checked against its limits. */
class NamespaceUsage {
  readonly #limits: CustomMetricLimits;
  #lines = 0;
  #textLength = 0;
  #writers = 0;
  #bytes = 0;

  constructor(limits: CustomMetricLimits) {
    this.#limits = limits;
  }

  add({ lines = 0, textLength = 0, writers = 0, bytes = 0 }: MetricUsage): void {
    const { linesMax, textLengthMax, writersMax, bytesMax } = this.#limits;
    if (this.#lines + lines > linesMax) throw full(`${linesMax} lines of metrics`);
    if (this.#textLength + textLength > textLengthMax) throw full(`names and labels of ${textLengthMax} characters`);
    if (this.#writers + writers > writersMax) throw full(`${writersMax} families and metrics`);
    if (this.#bytes + bytes > bytesMax) throw full(`${bytesMax} bytes of metrics`);
    this.#add(1, { lines, textLength, writers, bytes });
  }

  subtract(acquired: MetricUsage): void {
    this.#add(-1, acquired);
  }

  #add(sign: number, { lines = 0, textLength = 0, writers = 0, bytes = 0 }: MetricUsage): void {
    this.#lines += sign * lines;
    this.#textLength += sign * textLength;
    this.#writers += sign * writers;
    this.#bytes += sign * bytes;
  }
}

function full(what: string): InferenceError {
  return new InferenceError("UNAVAILABLE", `limit reached: the models of this namespace already have ${what}`);
}

interface NamespaceDependencies {
  readonly namespace: string;
  readonly limits: CustomMetricLimits;
  /** Returns true if the server itself prints a metric with that name. */
  readonly isReserved: (name: string) => boolean;
  readonly allocate: AllocateSharedCells;
}

/** The custom metric families of the models in one namespace. */
export class NamespaceMetricFamilies {
  readonly families = new Map<string, Family>();
  readonly #dependencies: NamespaceDependencies;
  readonly #usage: NamespaceUsage;

  constructor(dependencies: NamespaceDependencies) {
    this.#dependencies = dependencies;
    this.#usage = new NamespaceUsage(dependencies.limits);
  }

  /** The namespace label of the printed rows; "" for the namespace without a name. */
  get label(): string {
    const { namespace } = this.#dependencies;
    return namespace === "" ? "" : printLabels([["namespace", namespace]]);
  }

  family(head: MetricFamilyDescription) {
    const family = this.#openFamily(head);
    const writers: (readonly [Series, SeriesWriter])[] = [];
    let isOpen = true;
    return {
      openSeries: (labels: ReadonlyMap<string, string>, bounds: readonly number[]) => {
        assert(isOpen, "the metric family is closed");
        const series = this.#series(family, labels, bounds);
        const writer = this.#addWriter(family, series);
        writers.push([series, writer]);
        const { sharedByteOffset } = series;
        const { cells, byteOffset } = writer.lease;
        return {
          id: writer.id,
          cells,
          byteOffset,
          bounds: series.bounds,
          sharedByteOffset,
          value: () => series.value(),
        };
      },
      [Symbol.dispose]: () => {
        if (!isOpen) return;
        isOpen = false;
        for (const [series, writer] of writers) {
          series.remove(writer);
          this.#usage.subtract({ writers: 1, bytes: series.writerBytes });
          this.#removeIfUnused(family, series);
        }
        this.#closeFamily(family);
      },
    };
  }

  #openFamily(head: MetricFamilyDescription): Family {
    checkName(head.name);
    const known = this.families.get(head.name);
    if (known !== undefined && known.head.kind !== head.kind)
      throw new InferenceError("INVALID_ARG", "Family name already exists with different type");
    if (namesOf(head).some((name) => this.#dependencies.isReserved(name)))
      throw new InferenceError("INVALID_ARG", `Metrics of the name '${head.name}' are the server's own`);
    this.#usage.add({ writers: 1, textLength: known === undefined ? textLengthOf(head) : 0 });
    const family = known ?? { head, series: new Map<string, Series>(), writerCount: 0 };
    family.writerCount++;
    this.families.set(head.name, family);
    return family;
  }

  #closeFamily(family: Family): void {
    const { head } = family;
    const isLast = --family.writerCount === 0;
    if (isLast) this.families.delete(head.name);
    this.#usage.subtract({ writers: 1, textLength: isLast ? textLengthOf(head) : 0 });
  }

  #series({ head, series }: Family, labels: ReadonlyMap<string, string>, bounds: readonly number[]): Series {
    for (const name of labels.keys()) checkLabel(name, head.kind, this.#dependencies.namespace);
    const text = printLabels(labels);
    const known = series.get(text);
    if (known !== undefined) return known;
    const own = checkedBounds(bounds, this.#dependencies.limits.boundsMax);
    const acquired = { lines: linesOf(head.kind, own), textLength: text.length };
    this.#usage.add(acquired);
    try {
      const created = new Series(head.kind, text, own, this.#dependencies.allocate);
      series.set(text, created);
      return created;
    } catch (error) {
      this.#usage.subtract(acquired);
      throw error;
    }
  }

  #addWriter(family: Family, series: Series): SeriesWriter {
    try {
      const acquired = { writers: 1, bytes: series.writerBytes };
      this.#usage.add(acquired);
      try {
        return series.add(this.#dependencies.allocate);
      } catch (error) {
        this.#usage.subtract(acquired);
        throw error;
      }
    } catch (error) {
      this.#removeIfUnused(family, series);
      throw error;
    }
  }

  #removeIfUnused(family: Family, series: Series): void {
    if (series.hasWriters) return;
    series[Symbol.dispose]();
    family.series.delete(series.labels);
    this.#usage.subtract({ lines: series.lineCount, textLength: series.labels.length });
  }
}

/** The custom metric families of models in all namespaces. */
export class CustomMetricFamilies {
  readonly #isReserved: (name: string) => boolean;
  readonly #namespaces = new Set<NamespaceMetricFamilies>();

  constructor(isTaken: (name: string) => boolean) {
    this.#isReserved = isTaken;
  }

  /** Opens a namespace. Disposing the result removes its families from the exposition. */
  open(
    namespace: string,
    limits: CustomMetricLimits,
    allocate: AllocateSharedCells,
  ): NamespaceMetricFamilies & Disposable {
    const opened = new NamespaceMetricFamilies({ namespace, limits, isReserved: this.#isReserved, allocate: allocate });
    this.#namespaces.add(opened);
    return Object.assign(opened, { [Symbol.dispose]: () => void this.#namespaces.delete(opened) });
  }

  /**
   * Yields the exposition in chunks of a bounded number of lines. Families may be added or removed between two chunks.
   * A name that several namespaces share is printed once, as `untyped` if the namespaces disagree on its type.
   */
  *print(): Generator<string> {
    const names = new Set<string>();
    for (const { families } of this.#namespaces) for (const name of families.keys()) names.add(name);
    for (const name of names) yield* this.#printFamily(name);
  }

  *#printFamily(name: string): Generator<string> {
    const rows: { readonly label: string; readonly head: MetricFamilyDescription; readonly series: Series }[] = [];
    for (const { families, label } of this.#namespaces) {
      const family = families.get(name);
      if (family === undefined) continue;
      for (const series of family.series.values()) rows.push({ label, head: family.head, series });
    }
    const [first] = rows;
    if (first === undefined) return;
    const isAgreed = rows.every(({ head }) => head.kind === first.head.kind);
    let text = printFamilyHeader(name, first.head.description, isAgreed ? first.head.kind : "untyped");
    let lineCount = 0;
    for (const { label, series } of rows) {
      if (!series.hasWriters) continue;
      text += series.print(name, label);
      lineCount += series.lineCount;
      if (lineCount < chunkLinesMax) continue;
      yield text;
      [text, lineCount] = ["", 0];
    }
    yield text;
  }
}

function checkName(name: string): void {
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name) || name.startsWith("__"))
    throw new InferenceError("INVALID_ARG", "Invalid metric name");
}

function checkLabel(name: string, kind: CustomMetricKind, namespace: string): void {
  // Triton accepts a label `le` and prints it in addition to each bucket's own `le`, which no client can parse.
  const isOurs = (kind === "histogram" && name === "le") || (namespace !== "" && name === "namespace");
  if (isOurs || !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) || name.startsWith("__"))
    throw new InferenceError("INVALID_ARG", "Invalid label name");
}

/** Returns the bounds without a final +Inf, because every histogram has a bucket for +Inf anyway. */
function checkedBounds(bounds: readonly number[], boundsMax: number): readonly number[] {
  if (bounds.length > boundsMax)
    throw new InferenceError("INVALID_ARG", `${bounds.length} bucket boundaries; at most ${boundsMax} are accepted`);
  if (!bounds.every((bound, index) => (index === 0 ? !Number.isNaN(bound) : bound > bounds[index - 1]!)))
    throw new InferenceError("INVALID_ARG", "Bucket Boundaries must be strictly sorted");
  return bounds.at(-1) === Infinity ? bounds.slice(0, -1) : bounds;
}

/** Returns the names that the family's lines have. */
function namesOf({ name, kind }: MetricFamilyDescription): string[] {
  return kind === "histogram" ? [name, `${name}_count`, `${name}_sum`, `${name}_bucket`] : [name];
}

function textLengthOf({ name, description }: MetricFamilyDescription): number {
  return name.length + description.length;
}
