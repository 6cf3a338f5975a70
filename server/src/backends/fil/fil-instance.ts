import { type Clock, InferenceError } from "../../base/index.ts";
import {
  type Execution,
  type InferenceRequest,
  type Instance,
  noParameters,
  type Outcome,
} from "../../inference/index.ts";
import type { Arena, Block, Tensor } from "../../tensor/index.ts";
import { answerColumns } from "./evaluation/answer.ts";
import type { Evaluator } from "./evaluation/evaluator.ts";
import { outputName } from "./plan-answer.ts";
import type { OpenModel } from "./shared-models.ts";
import { type RequestRows, sliceRows } from "./slice-rows.ts";
import type { TreeLanes } from "./tree-lanes.ts";

export interface FilInstanceParts {
  readonly name: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly opened: OpenModel;
  /** At the desk of this thread. */
  readonly evaluator: Evaluator;
  readonly lanes: TreeLanes;
  readonly threadsMax: number;
  readonly arena: Arena;
  readonly clock: Clock;
}

/**
 * A batch of so few steps, some 25 microseconds, is evaluated at once, by the thread that serves: to hand it to another and to hear of its end
 * takes longer.
 */
const stepsAtOnceMax = 2 ** 15;

/** One batch of a model at a time. */
export function filInstance(parts: FilInstanceParts): Instance {
  let running: { readonly waiting: Set<InferenceRequest>; readonly controller: AbortController } | null = null;
  return {
    name: parts.name,
    executionsMax: 1,
    givenUp(request) {
      if (running?.waiting.delete(request) === true && running.waiting.size === 0) {
        running.controller.abort(new InferenceError("CANCELLED", "nobody waits for the answers"));
      }
    },
    async execute(batch) {
      running = { waiting: new Set(batch), controller: new AbortController() };
      const { clock } = parts;
      const startNs = clock.monotonicNs();
      let inferNs = startNs;
      let outputNs = startNs;
      const finish = (outcomes: readonly Outcome[]): Execution => ({
        outcomes,
        computeInputNs: inferNs - startNs,
        computeInferNs: outputNs - inferNs,
        computeOutputNs: clock.monotonicNs() - outputNs,
      });
      let answers: Block | null = null;
      try {
        const rows = batch.map((request) => rowsOf(parts, request));
        const answerBytes = 4 * answerColumns(parts.opened.model.forest, parts.opened.model.answer);
        const rowCount = rows.reduce((sum, one) => sum + one.rowCount, 0);
        answers = rowCount === 0 ? null : parts.arena.allocate(rowCount * answerBytes);
        inferNs = outputNs = clock.monotonicNs();
        if (answers !== null) await evaluate(parts, { rows, answers, answerBytes, signal: running.controller.signal });
        outputNs = clock.monotonicNs();
        return finish(outcomesOf(parts, { batch, rows, answers }));
      } catch (error) {
        const failure = InferenceError.from(error);
        return finish(batch.map(() => failure));
      } finally {
        answers?.release();
        running = null;
      }
    },
  };
}

/** A request's rows, which lie in `data`. */
interface GivenRows {
  readonly rowCount: number;
  readonly tensor: Tensor;
}

function rowsOf({ opened }: FilInstanceParts, { inputs: [tensor] }: InferenceRequest): GivenRows {
  const { featureCount } = opened.model.forest;
  const rowCount = tensor?.shape[0] ?? 0;
  if (tensor === undefined || tensor.data.byteLength !== 4 * rowCount * featureCount) {
    throw new InferenceError("INTERNAL", `a request without ${featureCount} features for each of its ${rowCount} rows`);
  }
  return { rowCount, tensor };
}

interface Evaluation {
  readonly rows: readonly GivenRows[];
  /** For the answers of all, one behind the other. */
  readonly answers: Block;
  readonly answerBytes: number;
  readonly signal: AbortSignal;
}

async function evaluate(parts: FilInstanceParts, { rows, answers, answerBytes, signal }: Evaluation): Promise<void> {
  const { opened, lanes, arena, evaluator } = parts;
  const { featureCount, rowSteps } = opened.model.forest;
  const rowCount = answers.byteLength / answerBytes;
  if (rowCount * rowSteps <= stepsAtOnceMax) {
    let at = 0;
    for (const given of rows) {
      const byteLength = given.rowCount * answerBytes;
      evaluator.evaluate({
        rows: integersOf(given.tensor.data),
        rowCount: given.rowCount,
        answers: new Float32Array(answers.bytes.buffer, answers.bytes.byteOffset + at, byteLength / 4),
      });
      at += byteLength;
    }
    return;
  }
  const copies: Block[] = [];
  try {
    let answersAt = answers.byteOffset;
    const placed = rows.map((given): RequestRows => {
      const one = {
        rowsAt: placeInArena(given.tensor, arena, copies),
        rowCount: given.rowCount,
        answersAt,
        rowBytes: 4 * featureCount,
        answerBytes,
      };
      answersAt += given.rowCount * answerBytes;
      return one;
    });
    await lanes.run({ opened, arena, slices: sliceRows(placed, rowSteps), threadsMax: parts.threadsMax, signal });
  } finally {
    for (const copy of copies) copy.release();
  }
}

/** Views of integers begin at a multiple of their size; a tensor may not. */
function integersOf(data: Uint8Array): Int32Array {
  const { buffer, byteOffset, byteLength } = data.byteOffset % 4 === 0 ? data : data.slice();
  return new Int32Array(buffer, byteOffset, byteLength / 4);
}

/** Where in the arena a tensor's data lie, or lie after they have been copied. */
function placeInArena({ block, data }: Tensor, arena: Arena, copies: Block[]): number {
  if (block !== null && block.arenaId === arena.id) {
    const at = block.byteOffset + (data.byteOffset - block.bytes.byteOffset);
    if (at % 4 === 0) return at;
  }
  const copy = arena.allocate(data.byteLength);
  copies.push(copy);
  copy.bytes.set(data);
  return copy.byteOffset;
}

interface Answered {
  readonly batch: readonly InferenceRequest[];
  readonly rows: readonly GivenRows[];
  readonly answers: Block | null;
}

/** Each response owns its part of the block. */
function outcomesOf(
  { modelName, modelVersion, opened }: FilInstanceParts,
  { batch, rows, answers }: Answered,
): readonly Outcome[] {
  const columnCount = answerColumns(opened.model.forest, opened.model.answer);
  let at = 0;
  return batch.map(({ requestedOutputs }, index) => {
    const { rowCount } = rows[index] as GivenRows;
    const start = at;
    at += 4 * rowCount * columnCount;
    const isWanted = requestedOutputs?.includes(outputName) ?? true;
    return {
      modelName,
      modelVersion,
      outputs: isWanted ? [answerTensor({ rowCount, columnCount, start, answers, isWhole: batch.length === 1 })] : [],
      parameters: noParameters,
    };
  });
}

interface AnswerPlace {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly start: number;
  readonly answers: Block | null;
  readonly isWhole: boolean;
}

/** As in Triton, a dimension of 1 is left out of an answer's shape, whatever its configuration says: [3] for three rows of `[ 1 ]`. */
function answerTensor({ rowCount, columnCount, start, answers, isWhole }: AnswerPlace): Tensor {
  const head = {
    name: outputName,
    datatype: "FP32",
    shape: columnCount === 1 ? [rowCount] : [rowCount, columnCount],
  } as const;
  if (answers === null || rowCount === 0) return { ...head, data: new Uint8Array(0), block: null };
  if (isWhole) {
    answers.retain();
    return { ...head, data: answers.bytes, block: answers };
  }
  const block = answers.part(start, 4 * rowCount * columnCount);
  return { ...head, data: block.bytes, block };
}
