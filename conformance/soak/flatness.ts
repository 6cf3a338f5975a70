/** A measured value, and its maximum growth from the first round after the warm-up to the last round. */
export interface Tolerance {
  readonly name: string;
  readonly unit: string;
  readonly growthMax: number;
}

export interface Verdict extends Tolerance {
  readonly first: number;
  readonly last: number;
  /** The median of the slopes between any two rounds, multiplied by the number of rounds. */
  readonly growth: number;
  readonly isFlat: boolean;
}

/** Returns the median of the slopes between any two values (Theil-Sen estimator), which few outliers do not change. */
export function medianSlope(values: readonly number[]): number {
  const slopes: number[] = [];
  for (const [from, value] of values.entries())
    for (let to = from + 1; to < values.length; to++) slopes.push((values[to]! - value) / (to - from));
  slopes.sort((a, b) => a - b);
  if (slopes.length === 0) return 0;
  const middle = Math.floor(slopes.length / 2);
  return slopes.length % 2 === 1 ? slopes[middle]! : (slopes[middle - 1]! + slopes[middle]!) / 2;
}

/** Judges a series. The first quarter of the rounds, at least two, are the warm-up and are ignored. */
export function judgeFlatness(tolerance: Tolerance, rounds: readonly number[]): Verdict {
  const values = rounds.slice(Math.max(2, Math.floor(rounds.length / 4)));
  const growth = medianSlope(values) * Math.max(0, values.length - 1);
  const isFlat = growth <= tolerance.growthMax;
  return { ...tolerance, first: values[0] ?? 0, last: values.at(-1) ?? 0, growth, isFlat };
}
