import { assert, InferenceError } from "../core/index.ts";
import { printHead, printHistogram, printLabels, printLine } from "./exposition.ts";
import { cellCount, emptyCells, gaugeValue, keep, summed, type KeptCells, type SeriesKind } from "./series-cells.ts";

/** Numbers in shared memory, initially zero. */
export interface LeasedCells extends Disposable {
  readonly cells: Float64Array;
  readonly byteOffset: number;
}

/** Takes cells of one namespace's shared memory. Throws UNAVAILABLE when there is no free memory. */
export type TakeCells = (count: number) => LeasedCells;

export interface FamilyHead {
  readonly name: string;
  readonly description: string;
  readonly kind: SeriesKind;
}

/** Limits of the families that the models of one namespace create. */
export interface FamilyLimits {
  /** Lines of the exposition. */
  readonly linesMax: number;
  /** Length of names, descriptions and labels. */
  readonly textLengthMax: number;
  /** Objects in models that refer to a family or a series. */
  readonly holdersMax: number;
  /** Bytes of shared memory. */
  readonly bytesMax: number;
  readonly boundsMax: number;
}

interface Part {
  readonly id: number;
  readonly cells: Float64Array;
  readonly held: LeasedCells;
}

/** Maximum lines printed before the event loop runs again. */
const pieceLinesMax = 1000;
/** Minimum size of a block of shared memory. */
const blockBytesMin = 256;
/** Number of the ids that identify the last writer of a gauge: see `series-cells.ts`. */
const partIdMax = 2 ** 20;

class Series implements Disposable {
  readonly labels: string;
  readonly bounds: readonly number[];
  readonly #kind: SeriesKind;
  readonly #shared: LeasedCells | null;
  readonly #kept: KeptCells;
  readonly #parts = new Map<number, Part>();
  #lastPartId = 0;

  constructor(kind: SeriesKind, labels: string, bounds: readonly number[], take: TakeCells) {
    this.#kind = kind;
    this.labels = labels;
    this.bounds = bounds;
    this.#shared = kind === "gauge" ? take(1) : null;
    this.#kept = emptyCells(kind, bounds.length);
  }

  get sharedByteOffset(): number {
    return this.#shared?.byteOffset ?? 0;
  }

  get lineCount(): number {
    return linesOf(this.#kind, this.bounds);
  }

  /** Bytes of the cells of one holder. */
  get partBytes(): number {
    return Math.max(blockBytesMin, 8 * cellCount(this.#kind, this.bounds.length));
  }

  get isHeld(): boolean {
    return this.#parts.size > 0;
  }

  add(take: TakeCells): Part {
    const held = take(cellCount(this.#kind, this.bounds.length));
    do this.#lastPartId = (this.#lastPartId % partIdMax) + 1;
    while (this.#parts.has(this.#lastPartId));
    const part = { id: this.#lastPartId, cells: held.cells, held };
    this.#parts.set(part.id, part);
    return part;
  }

  remove(part: Part): void {
    keep(this.#kind, this.#sharedCells, this.#kept, part);
    this.#parts.delete(part.id);
    part.held[Symbol.dispose]();
  }

  /** Called when the last holder is gone. */
  [Symbol.dispose](): void {
    this.#shared?.[Symbol.dispose]();
  }

  value(): number {
    if (this.#kind === "histogram")
      throw new InferenceError("UNSUPPORTED", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value");
    if (this.#kind === "counter") return summed(this.#kept, this.#parts.values())[0]!;
    return gaugeValue(this.#sharedCells, this.#kept, this.#parts.values());
  }

  print(name: string, namespace: string): string {
    const labels = [this.labels, namespace].filter((text) => text !== "").join(",");
    if (this.#kind !== "histogram") return printLine(name, labels, this.value());
    const [sum, ...counts] = summed(this.#kept, this.#parts.values());
    return printHistogram(name, labels, { bounds: this.bounds, counts: Float64Array.from(counts), sum: sum! });
  }

  get #sharedCells(): Float64Array {
    return this.#shared?.cells ?? noCells;
  }
}

const noCells = new Float64Array(1);

function linesOf(kind: SeriesKind, bounds: readonly number[]): number {
  return kind === "histogram" ? bounds.length + 3 : 1;
}

interface Family {
  readonly head: FamilyHead;
  readonly series: Map<string, Series>;
  holderCount: number;
}

interface Taken {
  readonly lines?: number;
  readonly textLength?: number;
  readonly holders?: number;
  readonly bytes?: number;
}

/** Usage of one namespace under its limits. */
class Allowance {
  readonly #limits: FamilyLimits;
  #lines = 0;
  #textLength = 0;
  #holders = 0;
  #bytes = 0;

  constructor(limits: FamilyLimits) {
    this.#limits = limits;
  }

  take({ lines = 0, textLength = 0, holders = 0, bytes = 0 }: Taken): void {
    const { linesMax, textLengthMax, holdersMax, bytesMax } = this.#limits;
    if (this.#lines + lines > linesMax) throw full(`${linesMax} lines of metrics`);
    if (this.#textLength + textLength > textLengthMax) throw full(`names and labels of ${textLengthMax} characters`);
    if (this.#holders + holders > holdersMax) throw full(`${holdersMax} families and metrics`);
    if (this.#bytes + bytes > bytesMax) throw full(`${bytesMax} bytes of metrics`);
    this.#add(1, { lines, textLength, holders, bytes });
  }

  give(taken: Taken): void {
    this.#add(-1, taken);
  }

  #add(sign: number, { lines = 0, textLength = 0, holders = 0, bytes = 0 }: Taken): void {
    this.#lines += sign * lines;
    this.#textLength += sign * textLength;
    this.#holders += sign * holders;
    this.#bytes += sign * bytes;
  }
}

function full(what: string): InferenceError {
  return new InferenceError("UNAVAILABLE", `the models of this namespace have ${what}, and no more are accepted`);
}

interface NamespaceParts {
  readonly namespace: string;
  readonly limits: FamilyLimits;
  /** Returns true if the server itself prints a metric of that name. */
  readonly isTaken: (name: string) => boolean;
  readonly take: TakeCells;
}

/** The families of the models of one namespace. `family` returns a metric family of the backends' contract. */
export class NamespaceFamilies {
  readonly families = new Map<string, Family>();
  readonly #parts: NamespaceParts;
  readonly #allowance: Allowance;

  constructor(parts: NamespaceParts) {
    this.#parts = parts;
    this.#allowance = new Allowance(parts.limits);
  }

  /** The namespace label of the rows in a scrape; "" for none. */
  get label(): string {
    const { namespace } = this.#parts;
    return namespace === "" ? "" : printLabels([["namespace", namespace]]);
  }

  family(head: FamilyHead) {
    const family = this.#enter(head);
    const parts: (readonly [Series, Part])[] = [];
    let isOpen = true;
    return {
      part: (labels: ReadonlyMap<string, string>, bounds: readonly number[]) => {
        assert(isOpen, "a family without holders has no cells");
        const series = this.#series(family, labels, bounds);
        const part = this.#join(family, series);
        parts.push([series, part]);
        const { sharedByteOffset } = series;
        const { cells, byteOffset } = part.held;
        return { id: part.id, cells, byteOffset, bounds: series.bounds, sharedByteOffset, value: () => series.value() };
      },
      [Symbol.dispose]: () => {
        if (!isOpen) return;
        isOpen = false;
        for (const [series, part] of parts) {
          series.remove(part);
          this.#allowance.give({ holders: 1, bytes: series.partBytes });
          this.#forgetUnheld(family, series);
        }
        this.#leave(family);
      },
    };
  }

  #enter(head: FamilyHead): Family {
    checkName(head.name);
    const known = this.families.get(head.name);
    if (known !== undefined && known.head.kind !== head.kind)
      throw new InferenceError("INVALID_ARG", "Family name already exists with different type");
    if (namesOf(head).some((name) => this.#parts.isTaken(name)))
      throw new InferenceError("INVALID_ARG", `Metrics of the name '${head.name}' are the server's own`);
    this.#allowance.take({ holders: 1, textLength: known === undefined ? textLengthOf(head) : 0 });
    const family = known ?? { head, series: new Map<string, Series>(), holderCount: 0 };
    family.holderCount++;
    this.families.set(head.name, family);
    return family;
  }

  #leave(family: Family): void {
    const { head } = family;
    const isLast = --family.holderCount === 0;
    if (isLast) this.families.delete(head.name);
    this.#allowance.give({ holders: 1, textLength: isLast ? textLengthOf(head) : 0 });
  }

  #series({ head, series }: Family, labels: ReadonlyMap<string, string>, bounds: readonly number[]): Series {
    for (const name of labels.keys()) checkLabel(name, head.kind, this.#parts.namespace);
    const text = printLabels(labels);
    const known = series.get(text);
    if (known !== undefined) return known;
    const own = checkedBounds(bounds, this.#parts.limits.boundsMax);
    const taken = { lines: linesOf(head.kind, own), textLength: text.length };
    this.#allowance.take(taken);
    try {
      const made = new Series(head.kind, text, own, this.#parts.take);
      series.set(text, made);
      return made;
    } catch (error) {
      this.#allowance.give(taken);
      throw error;
    }
  }

  #join(family: Family, series: Series): Part {
    try {
      const taken = { holders: 1, bytes: series.partBytes };
      this.#allowance.take(taken);
      try {
        return series.add(this.#parts.take);
      } catch (error) {
        this.#allowance.give(taken);
        throw error;
      }
    } catch (error) {
      this.#forgetUnheld(family, series);
      throw error;
    }
  }

  #forgetUnheld(family: Family, series: Series): void {
    if (series.isHeld) return;
    series[Symbol.dispose]();
    family.series.delete(series.labels);
    this.#allowance.give({ lines: series.lineCount, textLength: series.labels.length });
  }
}

/** The custom metric families of models in all namespaces. */
export class ModelFamilies {
  readonly #isTaken: (name: string) => boolean;
  readonly #namespaces = new Set<NamespaceFamilies>();

  constructor(isTaken: (name: string) => boolean) {
    this.#isTaken = isTaken;
  }

  /** Opens a namespace. Disposing the result removes its families from the exposition. */
  open(namespace: string, limits: FamilyLimits, take: TakeCells): NamespaceFamilies & Disposable {
    const opened = new NamespaceFamilies({ namespace, limits, isTaken: this.#isTaken, take });
    this.#namespaces.add(opened);
    return Object.assign(opened, { [Symbol.dispose]: () => void this.#namespaces.delete(opened) });
  }

  /**
   * Yields the exposition in chunks of a bounded number of lines; families may come and go between two of them. A name that several
   * namespaces share is printed once, as `untyped` when they disagree on its type.
   */
  *print(): Generator<string> {
    const names = new Set<string>();
    for (const { families } of this.#namespaces) for (const name of families.keys()) names.add(name);
    for (const name of names) yield* this.#printFamily(name);
  }

  *#printFamily(name: string): Generator<string> {
    const rows: { readonly label: string; readonly head: FamilyHead; readonly series: Series }[] = [];
    for (const { families, label } of this.#namespaces) {
      const family = families.get(name);
      if (family === undefined) continue;
      for (const series of family.series.values()) rows.push({ label, head: family.head, series });
    }
    const [first] = rows;
    if (first === undefined) return;
    const isAgreed = rows.every(({ head }) => head.kind === first.head.kind);
    let text = printHead(name, first.head.description, isAgreed ? first.head.kind : "untyped");
    let lineCount = 0;
    for (const { label, series } of rows) {
      if (!series.isHeld) continue;
      text += series.print(name, label);
      lineCount += series.lineCount;
      if (lineCount < pieceLinesMax) continue;
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

function checkLabel(name: string, kind: SeriesKind, namespace: string): void {
  // Triton prints a label `le` in addition to its own of each bucket, which no client can parse.
  const isOurs = (kind === "histogram" && name === "le") || (namespace !== "" && name === "namespace");
  if (isOurs || !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) || name.startsWith("__"))
    throw new InferenceError("INVALID_ARG", "Invalid label name");
}

/** Returns the bounds without a final +Inf, which every histogram has. */
function checkedBounds(bounds: readonly number[], boundsMax: number): readonly number[] {
  if (bounds.length > boundsMax)
    throw new InferenceError("INVALID_ARG", `${bounds.length} bucket boundaries; at most ${boundsMax} are accepted`);
  if (!bounds.every((bound, index) => (index === 0 ? !Number.isNaN(bound) : bound > bounds[index - 1]!)))
    throw new InferenceError("INVALID_ARG", "Bucket Boundaries must be strictly sorted");
  return bounds.at(-1) === Infinity ? bounds.slice(0, -1) : bounds;
}

/** Returns all names that the family's lines have. */
function namesOf({ name, kind }: FamilyHead): string[] {
  return kind === "histogram" ? [name, `${name}_count`, `${name}_sum`, `${name}_bucket`] : [name];
}

function textLengthOf({ name, description }: FamilyHead): number {
  return name.length + description.length;
}
