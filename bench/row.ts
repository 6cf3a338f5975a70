import type { Environment } from "../conformance/environments/index.ts";

/** One measurement, with Triton's figure where it exists. */
export interface Row {
  readonly name: string;
  readonly measure: (context: BenchContext) => Promise<readonly Measure[]>;
}

export interface BenchContext {
  readonly oracle: Environment;
  /** Number of alternating rounds: each measures both servers, one after the other. */
  readonly rounds: number;
  /** True for short runs that only prove that the row works. */
  readonly quick: boolean;
  /** Options of the row `zipf`. */
  readonly zipfModels: number;
  readonly zipfSeconds: number;
  readonly log: (line: string) => void;
  /** Logs a line that belongs to the row's figures: it is also printed below the table and kept in the results. */
  readonly note: (line: string) => void;
}

export interface Measure {
  readonly what: string;
  readonly unit: string;
  /** One figure per round. */
  readonly ours: readonly number[];
  /** Figures of the other server in the same rounds; empty if nothing is compared. */
  readonly oracle: readonly number[];
  /** Our figure divided by the oracle's; our figure itself if `oracle` is empty. */
  /** The goal; null for a figure that is printed for information only. */
  readonly goal: Goal | null;
}

export interface Goal {
  readonly kind: "at most" | "at least";
  readonly of: "ratio" | "ours";
  readonly value: number;
}

export interface Verdict {
  readonly measure: Measure;
  readonly oursMedian: number;
  readonly oracleMedian: number | null;
  /** Median of the rounds' ratios; null if nothing is compared. */
  readonly ratioMedian: number | null;
  readonly reached: boolean;
}

export function judgeMeasure(measure: Measure): Verdict {
  const ratios = measure.oracle.map((theirs, round) => (measure.ours[round] ?? Number.NaN) / theirs);
  const ratioMedian = ratios.length > 0 ? median(ratios) : null;
  const oursMedian = median(measure.ours);
  const verdict = {
    measure,
    oursMedian,
    oracleMedian: measure.oracle.length > 0 ? median(measure.oracle) : null,
    ratioMedian,
  };
  if (measure.goal === null) return { ...verdict, reached: true };
  const judged = measure.goal.of === "ratio" ? ratioMedian : oursMedian;
  if (judged === null) throw new Error(`'${measure.what}' has a ratio as its goal and nothing to compare with`);
  return {
    ...verdict,
    reached: measure.goal.kind === "at most" ? judged <= measure.goal.value : judged >= measure.goal.value,
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
