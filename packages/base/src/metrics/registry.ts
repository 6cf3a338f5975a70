import { assert } from "../core/index.ts";
import { printFamilyHeader, printHistogram, printLabels, printSample } from "./exposition.ts";

export type MetricLabels = Readonly<Record<string, string>>;

/**
 * One time series of a counter family. Callers should keep the row, because `add` is then only an addition to a field.
 */
export interface CounterRow {
  /** Never negative. */
  add(amount: number): void;
  readonly value: number;
}

export interface GaugeRow {
  set(value: number): void;
  readonly value: number;
}

export interface HistogramRow {
  observe(value: number): void;
}

/** A metric family. `row` returns the time series with these labels; the first call creates it with value 0. */
export interface MetricFamily<Row> {
  row(labels: MetricLabels): Row;
  /** Removes a row. Does nothing if there is no row with these labels. */
  remove(labels: MetricLabels): void;
}

/** A gauge family. A callback may supply the value of a row at each scrape. */
export interface GaugeFamily extends MetricFamily<GaugeRow> {
  readFrom(labels: MetricLabels, read: () => number): void;
}

interface Row {
  print(name: string, labels: string): string;
}

interface AnyFamily {
  readonly name: string;
  readonly type: string;
  print(): string;
}

class Counter implements CounterRow, Row {
  value = 0;
  add(amount: number): void {
    this.value += amount;
  }
  print(name: string, labels: string): string {
    return printSample(name, labels, this.value);
  }
}

class Gauge implements GaugeRow, Row {
  value = 0;
  set(value: number): void {
    this.value = value;
  }
  print(name: string, labels: string): string {
    return printSample(name, labels, this.value);
  }
}

class ReadGauge implements Row {
  readonly #read: () => number;
  constructor(read: () => number) {
    this.#read = read;
  }
  print(name: string, labels: string): string {
    return printSample(name, labels, this.#read());
  }
}

class Histogram implements HistogramRow, Row {
  readonly #bounds: readonly number[];
  /** Counts per bucket, not cumulative, with +Inf last. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    this.#sum += value;
    const index = this.#bounds.findIndex((bound) => value <= bound);
    this.#counts[index === -1 ? this.#bounds.length : index]!++;
  }

  print(name: string, labels: string): string {
    return printHistogram(name, labels, { bounds: this.#bounds, counts: this.#counts, sum: this.#sum });
  }
}

class RowFamily<Made extends Row> implements AnyFamily {
  readonly name: string;
  readonly type: string;
  readonly #head: string;
  readonly #rows = new Map<string, Row>();
  readonly #rowsMax: number;
  readonly #make: () => Made;

  constructor(head: { name: string; help: string; type: string }, rowsMax: number, make: () => Made) {
    this.name = head.name;
    this.type = head.type;
    this.#head = printFamilyHeader(head.name, head.help, head.type);
    this.#rowsMax = rowsMax;
    this.#make = make;
  }

  row(labels: MetricLabels): Made {
    const key = printLabels(Object.entries(labels));
    const known = this.#rows.get(key);
    if (known !== undefined) return known as Made;
    const created = this.#make();
    this.#add(key, created);
    return created;
  }

  readFrom(labels: MetricLabels, read: () => number): void {
    this.#add(printLabels(Object.entries(labels)), new ReadGauge(read));
  }

  remove(labels: MetricLabels): void {
    this.#rows.delete(printLabels(Object.entries(labels)));
  }

  /** Prints the family. As in Triton, a family without rows prints nothing. */
  print(): string {
    if (this.#rows.size === 0) return "";
    let text = this.#head;
    for (const [labels, row] of this.#rows) text += row.print(this.name, labels);
    return text;
  }

  #add(key: string, row: Row): void {
    if (this.#rows.size >= this.#rowsMax && !this.#rows.has(key)) {
      throw new RangeError(`metric family '${this.name}' has reached its limit of ${this.#rowsMax} label sets`);
    }
    this.#rows.set(key, row);
  }
}

/** The metric families of one exposition, which are printed in order of registration. */
export class MetricRegistry {
  readonly #families = new Map<string, AnyFamily>();
  readonly #rowsMax: number;

  /** `rowsMax` is the maximum number of rows of one family. Adding another row throws RangeError. */
  constructor(options: { readonly rowsMax: number }) {
    this.#rowsMax = options.rowsMax;
  }

  counter(name: string, help: string): MetricFamily<CounterRow> {
    return this.#add(new RowFamily({ name, help, type: "counter" }, this.#rowsMax, () => new Counter()));
  }

  gauge(name: string, help: string): GaugeFamily {
    return this.#add(new RowFamily({ name, help, type: "gauge" }, this.#rowsMax, () => new Gauge()));
  }

  /** Adds a histogram. `bounds` must ascend and omit +Inf. */
  histogram(name: string, help: string, bounds: readonly number[]): MetricFamily<HistogramRow> {
    return this.#add(new RowFamily({ name, help, type: "histogram" }, this.#rowsMax, () => new Histogram(bounds)));
  }

  /** Returns whether the exposition has, or may later have, a line with that name. */
  has(name: string): boolean {
    if (this.#families.has(name)) return true;
    const [, stem = ""] = /^(.*)_(?:count|sum|bucket)$/.exec(name) ?? [];
    return this.#families.get(stem)?.type === "histogram";
  }

  /** Prints the Prometheus text format, version 0.0.4. */
  print(): string {
    let text = "";
    for (const family of this.#families.values()) text += family.print();
    return text;
  }

  #add<Added extends AnyFamily>(family: Added): Added {
    assert(!this.#families.has(family.name), `metric family '${family.name}' is created twice`);
    this.#families.set(family.name, family);
    return family;
  }
}
