import { featureCellsMax, type FeatureRows } from "./algorithm-request.ts";

/** One example: `dense` lists all features; `sparse` lists some features with their column numbers. */
export type ExampleFeatures =
  | { readonly kind: "dense"; readonly values: ArrayLike<number> }
  | {
      readonly kind: "sparse";
      readonly values: ArrayLike<number>;
      readonly keys: ArrayLike<number>;
      /** 0 when the example does not declare the number of columns. */
      readonly columnCount: number;
    };

export interface FeatureTableOptions {
  /** Value of the columns that a sparse example does not list. */
  readonly absent: number;
  /** Minimum number of columns of the table; 0 if only the examples determine it. */
  readonly columnCount: number;
  /** Maximum number of columns, checked before memory is allocated: a small sparse example may declare any column number. */
  readonly columnsMax: number;
}

/** The error for examples with more columns than their model has. */
export class TooManyColumns extends RangeError {
  readonly columnCount: number;

  constructor(columnCount: number) {
    super(`the payload has ${columnCount} columns`);
    this.columnCount = columnCount;
  }
}

/** Combines examples into one table. Throws RangeError if they differ in length, or have too many columns. */
export function featureTable(examples: readonly ExampleFeatures[], options: FeatureTableOptions): FeatureRows {
  const rowCount = examples.length;
  let columnCount = options.columnCount;
  for (const example of examples) columnCount = Math.max(columnCount, columnsOf(example));
  if (columnCount > options.columnsMax) throw new TooManyColumns(columnCount);
  if (!(rowCount * columnCount <= featureCellsMax)) {
    throw new RangeError(`${rowCount} rows of ${columnCount} columns are more than ${featureCellsMax} cells`);
  }
  const values = new Float32Array(rowCount * columnCount);
  if (options.absent !== 0) values.fill(options.absent);
  for (const [row, example] of examples.entries()) {
    const start = row * columnCount;
    if (example.kind === "dense") {
      const expected = (examples[0] as ExampleFeatures).values.length;
      if (example.values.length !== expected) {
        throw new RangeError(`row ${row} has ${example.values.length} columns, the first one has ${expected}`);
      }
      values.set(example.values, start);
      continue;
    }
    for (let at = 0; at < example.keys.length; at += 1) {
      values[start + (example.keys[at] as number)] = example.values[at] as number;
    }
  }
  return { rowCount, columnCount, values };
}

function columnsOf(example: ExampleFeatures): number {
  if (example.kind === "dense") return example.values.length;
  const { keys, values, columnCount } = example;
  if (keys.length !== values.length) {
    throw new RangeError(`${values.length} values have ${keys.length} keys`);
  }
  let columns = columnCount;
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at] as number;
    if (!Number.isInteger(key) || key < 0) throw new RangeError(`a key is ${key}`);
    if (columnCount > 0 && key >= columnCount) throw new RangeError(`key ${key} exceeds the shape ${columnCount}`);
    columns = Math.max(columns, key + 1);
  }
  return columns;
}
