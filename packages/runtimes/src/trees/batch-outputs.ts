import type { InferenceRequest } from "@galatea/server/inference";
import type { Arena, Block, Tensor } from "@galatea/server/tensor";
import { predictionColumns, contributionColumns } from "./evaluation/output-form.ts";
import type { TreeModel } from "./evaluation/evaluator.ts";
import { contributionsName, outputName } from "./configured-tensors.ts";

/** One output of a batch: the rows of all requests, in order, in one block of the arena. */
export interface OutputRows {
  readonly name: string;
  /** Dimensions of a row without dimensions of 1, like Triton's backend: three rows of `[ 1 ]` have the shape [3], not [3, 1]. */
  readonly dims: readonly number[];
  readonly rowBytes: number;
  /** Null when there are no rows. */
  readonly block: Block | null;
  /** By index of the request: true if the request selects this output. */
  readonly isRequested: readonly boolean[];
}

export interface BatchOutputs {
  readonly predictions: OutputRows | null;
  readonly contributions: OutputRows | null;
}

/** Allocates the outputs of a batch. The caller owns the blocks. Throws if the arena is full, after releasing what it has allocated. */
export function allocateBatchOutputs(
  { forest, outputForm }: TreeModel,
  { batch, rowCount, arena }: { batch: readonly InferenceRequest[]; rowCount: number; arena: Arena },
): BatchOutputs {
  const rowsFor = (name: string, columnCount: number, dims: readonly number[]): OutputRows | null => {
    const isRequested = batch.map(({ requestedOutputs }) => requestedOutputs?.includes(name) ?? true);
    if (!isRequested.includes(true)) return null;
    const rowBytes = 4 * columnCount;
    const block = rowCount === 0 ? null : arena.allocate(rowCount * rowBytes);
    return { name, dims: dims.filter((dim) => dim !== 1), rowBytes, block, isRequested };
  };
  const columns = predictionColumns(forest, outputForm);
  const predictions = rowsFor(outputName, columns, [columns]);
  if (forest.explained === null) return { predictions, contributions: null };
  try {
    const { outputCount, featureCount } = forest;
    const dims = [outputCount, featureCount + 1];
    return { predictions, contributions: rowsFor(contributionsName, contributionColumns(forest), dims) };
  } catch (error) {
    predictions?.block?.release();
    throw error;
  }
}

/** Returns the tensor of one request, whose rows begin at `firstRow`. The tensor owns its segment of the block. */
export function tensorOf(rows: OutputRows, { firstRow, rowCount }: { firstRow: number; rowCount: number }): Tensor {
  const { name, dims, rowBytes, block } = rows;
  const head = { name, datatype: "FP32", shape: [rowCount, ...dims] } as const;
  if (block === null || rowCount === 0) return { ...head, data: new Uint8Array(0), block: null };
  if (rows.isRequested.length === 1) {
    block.retain();
    return { ...head, data: block.bytes, block };
  }
  const segment = block.segment(firstRow * rowBytes, rowCount * rowBytes);
  return { ...head, data: segment.bytes, block: segment };
}
