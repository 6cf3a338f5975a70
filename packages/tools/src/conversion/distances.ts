import type { GraphContext } from "./operator-set.ts";

const distanceRows = 32;
const exactMax = 8;
const farthest = 128;

/**
 * Adds MPNet's scores for the distance of two tokens, [1, heads, tokens, tokens]. A table contains the scores of all
 * distances, from minus the longest to the longest. For each pair of tokens, the graph reads one row.
 */
export function distanceScores({ plan, graph, weights }: GraphContext, name: string, ids: string): string {
  const longest = plan.positionCount - 1;
  const positions = Int32Array.from({ length: 2 * longest + 1 }, (_, index) => rowOfDistance(index - longest));
  const table = weights.rows(name, [distanceRows, plan.headCount], positions);
  const tokens = graph.add("Gather", [graph.add("Shape", [ids]), graph.integers("integer/1", [1], [])]);
  const range = graph.add("Range", [
    graph.integers("integer/0", [0], []),
    tokens,
    graph.integers("integer/1", [1], []),
  ]);
  const across = graph.add("Unsqueeze", [range, graph.integers("integers/0", [0])]);
  const down = graph.add("Unsqueeze", [range, graph.integers("integers/1", [1])]);
  const distance = graph.add("Add", [
    graph.add("Sub", [across, down]),
    graph.integers(`integer/${longest}`, [longest], []),
  ]);
  const scores = graph.add("Transpose", [graph.add("Gather", [table, distance])], {
    attributes: { perm: Int32Array.from([2, 0, 1]) },
  });
  return graph.add("Unsqueeze", [scores, graph.integers("integers/0", [0])]);
}

/**
 * Returns the row of a distance. Near distances have a row each. Farther distances share rows by their logarithm, which
 * is computed in single precision as in `transformers`.
 */
export function rowOfDistance(ahead: number): number {
  const half = distanceRows / 2;
  const base = ahead > 0 ? half : 0;
  const distance = Math.abs(ahead);
  if (distance < exactMax) return base + distance;
  const logarithm = Math.fround(Math.log(Math.fround(distance / exactMax)));
  const share = Math.fround(logarithm / Math.fround(Math.log(farthest / exactMax)));
  return base + Math.min(half - 1, exactMax + Math.trunc(Math.fround(share * (half - exactMax))));
}
