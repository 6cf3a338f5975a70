/** The program of a thread that evaluates models: one slice of rows after another, each with one reply. */
import { parentPort, workerData } from "node:worker_threads";
import { type MappedMemory, mapMemory } from "@galatea/base/system";
import { answerColumns, contributionColumns } from "./evaluation/answer.ts";
import { Evaluator, type TreeModel } from "./evaluation/evaluator.ts";
import type { WasmModule } from "./evaluation/web-assembly.ts";

/** Rows of one request, with their offset and the offset of their results in the arena. */
export interface RowSegment {
  readonly rowsAt: number;
  readonly rowCount: number;
  /** Null when not requested; the same applies to `contributionsAt`. */
  readonly answersAt: number | null;
  readonly contributionsAt: number | null;
}

export type TreeLaneOrder =
  | { readonly kind: "arena"; readonly id: number; readonly fd: number; readonly byteLength: number }
  | { readonly kind: "model"; readonly id: number; readonly model: TreeModel }
  | { readonly kind: "run"; readonly model: number; readonly arena: number; readonly pieces: readonly RowSegment[] }
  | { readonly kind: "forget-arena"; readonly id: number }
  | { readonly kind: "forget-model"; readonly id: number };

/** The error of a run; null for success. */
export interface TreeLaneReply {
  readonly failure: string | null;
}

export interface TreeLaneData {
  readonly walk: WasmModule;
  /** Index of this thread's workspace in each model. */
  readonly desk: number;
}

const { walk, desk } = workerData as TreeLaneData;
const arenas = new Map<number, MappedMemory>();
const models = new Map<number, { readonly model: TreeModel; readonly evaluator: Evaluator }>();

parentPort?.on("message", (order: TreeLaneOrder) => {
  switch (order.kind) {
    case "arena":
      arenas.set(order.id, mapMemory(order.fd, order.byteLength));
      return;
    case "model":
      models.set(order.id, { model: order.model, evaluator: new Evaluator(walk, order.model, desk) });
      return;
    case "forget-arena":
      arenas.get(order.id)?.unmap();
      arenas.delete(order.id);
      return;
    case "forget-model":
      models.delete(order.id);
      return;
    case "run":
      parentPort?.postMessage(run(order), []);
  }
});

function run({ model: id, arena: arenaId, pieces }: TreeLaneOrder & { kind: "run" }): TreeLaneReply {
  try {
    const { model, evaluator } = models.get(id) as { model: TreeModel; evaluator: Evaluator };
    const arena = arenas.get(arenaId) as MappedMemory;
    const { featureCount } = model.forest;
    const columnCount = answerColumns(model.forest, model.answer);
    const viewOf = (at: number | null, columns: number) =>
      at === null ? null : new Float32Array(arena.view(at, 4 * columns));
    for (const { rowsAt, rowCount, answersAt, contributionsAt } of pieces) {
      const rows = new Int32Array(arena.view(rowsAt, 4 * rowCount * featureCount));
      const answers = viewOf(answersAt, rowCount * columnCount);
      const contributions = viewOf(contributionsAt, rowCount * contributionColumns(model.forest));
      evaluator.evaluate({ rows, rowCount, answers, contributions });
    }
    return { failure: null };
  } catch (error) {
    return { failure: String(error) };
  }
}
