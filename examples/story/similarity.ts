/** Returns for each unit vector the index of the nearest other one, and their cosine. */
export function nearestNeighbours(
  embeddings: readonly (readonly number[])[],
): readonly { readonly index: number; readonly cosine: number }[] {
  return embeddings.map((one, i) => {
    let best = { index: i, cosine: -2 };
    embeddings.forEach((other, j) => {
      if (i === j) return;
      const cosine = one.reduce((sum, x, k) => sum + x * (other[k] ?? 0), 0);
      if (cosine > best.cosine) best = { index: j, cosine };
    });
    return best;
  });
}

/** Returns the largest absolute difference between any tenant's embeddings and the reference; NaN if shapes differ. */
export function agreement(
  tenants: readonly (readonly (readonly number[])[])[],
  reference: readonly (readonly number[])[],
): number {
  let largest = 0;
  for (const embeddings of tenants) {
    if (embeddings.length !== reference.length) return Number.NaN;
    embeddings.forEach((row, i) => {
      const desired = reference[i] ?? [];
      if (row.length !== desired.length) largest = Number.NaN;
      row.forEach((x, k) => {
        largest = Math.max(largest, Math.abs(x - (desired[k] ?? Number.NaN)));
      });
    });
  }
  return largest;
}
