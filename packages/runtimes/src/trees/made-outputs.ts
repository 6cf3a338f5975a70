import type { InferenceRequest } from "@galatea/server/inference";
import type { Arena, Block, Tensor } from "@galatea/server/tensor";
import { answerColumns, contributionColumns } from "./evaluation/answer.ts";
import type { TreeModel } from "./evaluation/evaluator.ts";
import { contributionsName, outputName } from "./plan-answer.ts";

/** An output of a batch: its numbers lie in one block, those of one request behind those of another. */
export interface MadeRows {
  readonly name: string;
  /** Of a row; dimensions of 1 are left out, whatever the configuration says, as in Triton: [3] for three rows of `[ 1 ]`. */
  readonly dims: readonly number[];
  readonly rowBytes: number;
  /** Null where there are no rows. */
  readonly block: Block | null;
  /** Which requests want it. */
  readonly wanted: readonly boolean[];
}

export interface BatchOutputs {
  readonly answers: MadeRows | null;
  readonly contributions: MadeRows | null;
}

/** Allocates what the batch asks for; the blocks are the caller's. Throws, and leaves nothing behind, where there is no memory. */
export function outputsFor(
  { forest, answer }: TreeModel,
  { batch, rowCount, arena }: { batch: readonly InferenceRequest[]; rowCount: number; arena: Arena },
): BatchOutputs {
  const made = (name: string, columnCount: number, dims: readonly number[]): MadeRows | null => {
    const wanted = batch.map(({ requestedOutputs }) => requestedOutputs?.includes(name) ?? true);
    if (!wanted.includes(true)) return null;
    const rowBytes = 4 * columnCount;
    const block = rowCount === 0 ? null : arena.allocate(rowCount * rowBytes);
    return { name, dims: dims.filter((dim) => dim !== 1), rowBytes, block, wanted };
  };
  const columns = answerColumns(forest, answer);
  const answers = made(outputName, columns, [columns]);
  if (forest.explained === null) return { answers, contributions: null };
  try {
    const { outputCount, featureCount } = forest;
    const dims = [outputCount, featureCount + 1];
    return { answers, contributions: made(contributionsName, contributionColumns(forest), dims) };
  } catch (error) {
    answers?.block?.release();
    throw error;
  }
}

/** The tensor of one request, whose rows begin at `firstRow`; it owns its part of the block. */
export function tensorOf(made: MadeRows, { firstRow, rowCount }: { firstRow: number; rowCount: number }): Tensor {
  const { name, dims, rowBytes, block } = made;
  const head = { name, datatype: "FP32", shape: [rowCount, ...dims] } as const;
  if (block === null || rowCount === 0) return { ...head, data: new Uint8Array(0), block: null };
  if (made.wanted.length === 1) {
    block.retain();
    return { ...head, data: block.bytes, block };
  }
  const part = block.part(firstRow * rowBytes, rowCount * rowBytes);
  return { ...head, data: part.bytes, block: part };
}
