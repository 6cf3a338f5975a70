/**
 * The columns into which features of rows are written for a model. A feature that trees use has one column, or two if some nodes need its
 * missing values below and others above all numbers.
 */
export class ValueColumns {
  readonly #paths = new Map<number, number>();

  get count(): number {
    return this.#paths.size;
  }

  /** Returns the number of the column for a feature; creates the column if it does not exist. */
  place(feature: number, { missingBelow }: { readonly missingBelow: boolean }): number {
    const column = 2 * feature + (missingBelow ? 1 : 0);
    let position = this.#paths.get(column);
    if (position === undefined) this.#paths.set(column, (position = this.#paths.size));
    return position;
  }

  /** Returns the number of a column with the feature, with either order of missing values. */
  anyPlace(feature: number): number {
    return this.#paths.get(2 * feature + 1) ?? this.place(feature, { missingBelow: false });
  }

  /** Returns, by column number, twice the feature, plus 1 if missing values are below all numbers. */
  list(): readonly number[] {
    return [...this.#paths.keys()];
  }
}
