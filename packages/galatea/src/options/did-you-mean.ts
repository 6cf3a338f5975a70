/**
 * Returns `, did you mean --x or --y?` with the known words that are most similar to an unknown word; "" if none is
 * similar.
 */
export function didYouMean(word: string, known: readonly string[], prefix: string): string {
  const near = known
    .map((each) => ({ each, distance: editDistance(word, each) }))
    .filter(
      ({ each, distance }) =>
        distance <= Math.max(2, Math.floor(each.length / 4)) || (word.length >= 4 && each.startsWith(word)),
    )
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 2)
    .map(({ each }) => `${prefix}${each}`);
  return near.length === 0 ? "" : `, did you mean ${near.join(" or ")}?`;
}

/** Returns the number of insertions, deletions and substitutions between two words. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
