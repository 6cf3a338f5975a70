/**
 * The columns of rows' values for a model: one for each feature that a tree uses, or two, if nodes differ in the order of missing values.
 */
export class ValueColumns {
  readonly #paths = new Map<number, number>();

  get count(): number {
    return this.#paths.size;
  }

  /** Returns the number of a column, which is created when first used. */
  place(feature: number, { missingBelow }: { readonly missingBelow: boolean }): number {
    const column = 2 * feature + (missingBelow ? 1 : 0);
    let place = this.#paths.get(column);
    if (place === undefined) this.#paths.set(column, (place = this.#paths.size));
    return place;
  }

  /** Returns a column with the feature's values, whatever its order of missing values is. */
  anyPlace(feature: number): number {
    return this.#paths.get(2 * feature + 1) ?? this.place(feature, { missingBelow: false });
  }

  /** Returns by column number twice the feature, plus 1 if missing values are below everything. */
  list(): readonly number[] {
    return [...this.#paths.keys()];
  }
}
