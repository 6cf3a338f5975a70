/** A range of UTF-16 code units. Both ends are included. */
export interface CodeRange {
  readonly first: number;
  readonly last: number;
}

const lastCode = 0xffff;

/** A set of UTF-16 code units, as ascending ranges that are not adjacent. */
export type CodeUnits = readonly CodeRange[];

export const everyCodeUnit: CodeUnits = [{ first: 0, last: lastCode }];

export function codeUnits(ranges: readonly CodeRange[]): CodeUnits {
  const found: CodeRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = found.at(-1);
    if (before === undefined || range.first > before.last + 1) found.push(range);
    else if (range.last > before.last) found[found.length - 1] = { first: before.first, last: range.last };
  }
  return found;
}

export function complementOf(than: CodeUnits): CodeUnits {
  const found: CodeRange[] = [];
  let first = 0;
  for (const range of than) {
    if (range.first > first) found.push({ first, last: range.first - 1 });
    first = range.last + 1;
  }
  if (first <= lastCode) found.push({ first, last: lastCode });
  return found;
}
