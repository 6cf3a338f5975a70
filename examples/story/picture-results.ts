const bestCount = 5;

export interface Label {
  readonly label: string;
  readonly score: number;
}

/** An ensemble's response to a picture. */
export interface PictureResult {
  readonly name: string;
  readonly jpeg: Uint8Array;
  /** The scores of all classes, which add up to 1. */
  readonly scores: readonly number[];
  /** The highest scores first. */
  readonly best: readonly Label[];
  /** Latencies on the client's side: of the first request, and of later ones. */
  readonly firstMs: number;
  readonly warmMs: readonly number[];
}

export function bestLabels(scores: readonly number[], labels: readonly string[]): readonly Label[] {
  return scores
    .map((score, index) => ({ label: labels[index] ?? `class ${index}`, score }))
    .toSorted((a, b) => b.score - a.score)
    .slice(0, bestCount);
}

export function pictureTable(responses: readonly PictureResult[]): string {
  const width = Math.max(...responses.map(({ name }) => name.length), "picture".length);
  const rows = responses.map(({ name, best, firstMs, warmMs }) => {
    const lines = best.slice(0, 3).map(({ label, score }) => `${label} ${score.toFixed(3)}`);
    return `  ${name.padEnd(width)}  ${firstMs.toFixed(0).padStart(8)}  ${median(warmMs).toFixed(0).padStart(7)}  ${lines.join(", ")}`;
  });
  return `  ${"picture".padEnd(width)}  first ms  warm ms  best classes\n${rows.join("\n")}\n`;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
