/** The columns that rows' values are laid out in for a model: one for each feature that a tree asks for, or two, where nodes differ in what a missing value is. */
export class ValueColumns {
  readonly #places = new Map<number, number>();

  get count(): number {
    return this.#places.size;
  }

  /** Its number; columns are made when they are first asked for. */
  place(feature: number, { missingBelow }: { readonly missingBelow: boolean }): number {
    const column = 2 * feature + (missingBelow ? 1 : 0);
    let place = this.#places.get(column);
    if (place === undefined) this.#places.set(column, (place = this.#places.size));
    return place;
  }

  /** One that has the feature's values, whatever a missing one is there. */
  anyPlace(feature: number): number {
    return this.#places.get(2 * feature + 1) ?? this.place(feature, { missingBelow: false });
  }

  /** Twice the feature, and 1 more where what is missing is below everything, by number. */
  list(): readonly number[] {
    return [...this.#places.keys()];
  }
}
