import { assert } from "../base/index.ts";

export type Labels = Readonly<Record<string, string>>;

/** One number of a family, under one set of labels. Bound once, then as cheap as adding to a field. */
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

/** A named family of rows. `row` makes a row at 0 the first time its labels are asked for. */
export interface Family<Row> {
  row(labels: Labels): Row;
  /** Nothing happens when there is no such row. */
  remove(labels: Labels): void;
}

/** A gauge family whose rows may also be read only when somebody asks. */
export interface GaugeFamily extends Family<GaugeRow> {
  readFrom(labels: Labels, read: () => number): void;
}

interface Row {
  print(name: string, labels: string): string;
}

interface AnyFamily {
  readonly name: string;
  print(): string;
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };

/** Labels sorted by name, as Triton prints them; "" without labels. */
function printLabels(labels: Labels): string {
  const pairs = Object.keys(labels)
    .sort()
    .map((name) => `${name}="${labels[name]?.replaceAll(/[\\"\n]/g, (character) => escapes[character] as string)}"`);
  return pairs.join(",");
}

function printNumber(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return "Nan";
  return value > 0 ? "+Inf" : "-Inf";
}

function line(name: string, labels: string, value: number): string {
  return labels === "" ? `${name} ${printNumber(value)}\n` : `${name}{${labels}} ${printNumber(value)}\n`;
}

class Counter implements CounterRow, Row {
  value = 0;
  add(amount: number): void {
    this.value += amount;
  }
  print(name: string, labels: string): string {
    return line(name, labels, this.value);
  }
}

class Gauge implements GaugeRow, Row {
  value = 0;
  set(value: number): void {
    this.value = value;
  }
  print(name: string, labels: string): string {
    return line(name, labels, this.value);
  }
}

class ReadGauge implements Row {
  readonly #read: () => number;
  constructor(read: () => number) {
    this.#read = read;
  }
  print(name: string, labels: string): string {
    return line(name, labels, this.#read());
  }
}

class Histogram implements HistogramRow, Row {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count++;
    const index = this.#bounds.findIndex((bound) => value <= bound);
    if (index >= 0) this.#counts[index] = (this.#counts[index] as number) + 1;
  }

  print(name: string, labels: string): string {
    const comma = labels === "" ? "" : ",";
    let text = line(`${name}_count`, labels, this.#count) + line(`${name}_sum`, labels, this.#sum);
    let cumulated = 0;
    for (const [index, bound] of this.#bounds.entries()) {
      cumulated += this.#counts[index] as number;
      text += line(`${name}_bucket`, `${labels}${comma}le="${printNumber(bound)}"`, cumulated);
    }
    return text + line(`${name}_bucket`, `${labels}${comma}le="+Inf"`, this.#count);
  }
}

class RowFamily<Made extends Row> implements AnyFamily {
  readonly name: string;
  readonly #head: string;
  readonly #rows = new Map<string, Row>();
  readonly #rowsMax: number;
  readonly #make: () => Made;

  constructor(head: { name: string; help: string; type: string }, rowsMax: number, make: () => Made) {
    this.name = head.name;
    this.#head = `# HELP ${head.name} ${head.help}\n# TYPE ${head.name} ${head.type}\n`;
    this.#rowsMax = rowsMax;
    this.#make = make;
  }

  row(labels: Labels): Made {
    const key = printLabels(labels);
    const known = this.#rows.get(key);
    if (known !== undefined) return known as Made;
    const made = this.#make();
    this.#add(key, made);
    return made;
  }

  readFrom(labels: Labels, read: () => number): void {
    this.#add(printLabels(labels), new ReadGauge(read));
  }

  remove(labels: Labels): void {
    this.#rows.delete(printLabels(labels));
  }

  /** A family without rows is not printed, as in Triton. */
  print(): string {
    if (this.#rows.size === 0) return "";
    let text = this.#head;
    for (const [labels, row] of this.#rows) text += row.print(this.name, labels);
    return text;
  }

  #add(key: string, row: Row): void {
    if (this.#rows.size >= this.#rowsMax && !this.#rows.has(key)) {
      throw new RangeError(`metric family '${this.name}' is full: it holds ${this.#rowsMax} rows`);
    }
    this.#rows.set(key, row);
  }
}

/** All families of one exposition, in the order they were made. */
export class MetricRegistry {
  readonly #families = new Map<string, AnyFamily>();
  readonly #rowsMax: number;

  /** `rowsMax`: rows of one family at most; making one more throws RangeError. */
  constructor(options: { readonly rowsMax: number }) {
    this.#rowsMax = options.rowsMax;
  }

  counter(name: string, help: string): Family<CounterRow> {
    return this.#add(new RowFamily({ name, help, type: "counter" }, this.#rowsMax, () => new Counter()));
  }

  gauge(name: string, help: string): GaugeFamily {
    return this.#add(new RowFamily({ name, help, type: "gauge" }, this.#rowsMax, () => new Gauge()));
  }

  /** `bounds` ascend and leave out +Inf. */
  histogram(name: string, help: string, bounds: readonly number[]): Family<HistogramRow> {
    return this.#add(new RowFamily({ name, help, type: "histogram" }, this.#rowsMax, () => new Histogram(bounds)));
  }

  /** The Prometheus text format, version 0.0.4. */
  print(): string {
    let text = "";
    for (const family of this.#families.values()) text += family.print();
    return text;
  }

  #add<Added extends AnyFamily>(family: Added): Added {
    assert(!this.#families.has(family.name), `metric family '${family.name}' is made twice`);
    this.#families.set(family.name, family);
    return family;
  }
}
