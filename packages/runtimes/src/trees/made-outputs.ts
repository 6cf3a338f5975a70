import type { InferenceRequest } from "@galatea/server/inference";
import type { Arena, Block, Tensor } from "@galatea/server/tensor";
import { answerColumns, contributionColumns } from "./evaluation/answer.ts";
import type { TreeModel } from "./evaluation/evaluator.ts";
import { contributionsName, outputName } from "./plan-answer.ts";

/** An output of a batch, in one block, with the rows of consecutive requests. */
export interface MadeRows {
  readonly name: string;
  /** Dimensions of a row, without those of 1, whatever the configuration says, as in Triton: [3] for three rows of `[ 1 ]`. */
  readonly dims: readonly number[];
  readonly rowBytes: number;
  /** Null when there are no rows. */
  readonly block: Block | null;
  /** True for requests that select it. */
  readonly wanted: readonly boolean[];
}

export interface BatchOutputs {
  readonly answers: MadeRows | null;
  readonly contributions: MadeRows | null;
}

/** Allocates the outputs of a batch; the caller owns the blocks. When there is no memory, throws and leaves nothing allocated. */
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

/** Returns the tensor of one request, whose rows begin at `firstRow`; it owns its segment of the block. */
export function tensorOf(made: MadeRows, { firstRow, rowCount }: { firstRow: number; rowCount: number }): Tensor {
  const { name, dims, rowBytes, block } = made;
  const head = { name, datatype: "FP32", shape: [rowCount, ...dims] } as const;
  if (block === null || rowCount === 0) return { ...head, data: new Uint8Array(0), block: null };
  if (made.wanted.length === 1) {
    block.retain();
    return { ...head, data: block.bytes, block };
  }
  const part = block.segment(firstRow * rowBytes, rowCount * rowBytes);
  return { ...head, data: part.bytes, block: part };
}
