/** Worker thread that evaluates slices of rows, one at a time, and sends one reply for each. */
import { parentPort, workerData } from "node:worker_threads";
import { type MappedMemory, mapMemory } from "@galatea/base/system";
import { predictionColumns, contributionColumns } from "./evaluation/output-form.ts";
import { Evaluator, type TreeModel } from "./evaluation/evaluator.ts";
import type { WasmModule } from "./evaluation/web-assembly.ts";

/** Consecutive rows of one request, with the offsets of the rows and of their results in the arena. */
export interface RowSegment {
  readonly rowsAt: number;
  readonly rowCount: number;
  /** Offset of the predictions, and below of the contributions; null if they are not requested. */
  readonly predictionsAt: number | null;
  readonly contributionsAt: number | null;
}

export type TreeWorkerCommand =
  | { readonly kind: "arena"; readonly id: number; readonly fd: number; readonly byteLength: number }
  | { readonly kind: "model"; readonly id: number; readonly model: TreeModel }
  | { readonly kind: "run"; readonly model: number; readonly arena: number; readonly segments: readonly RowSegment[] }
  | { readonly kind: "forget-arena"; readonly id: number }
  | { readonly kind: "forget-model"; readonly id: number };

/** The reply for a slice: an error message, or null for success. */
export interface TreeWorkerReply {
  readonly failure: string | null;
}

export interface TreeWorkerData {
  readonly walk: WasmModule;
  /** Index of this thread's workspace in each model. */
  readonly workspace: number;
}

const { walk, workspace } = workerData as TreeWorkerData;
const arenas = new Map<number, MappedMemory>();
const models = new Map<number, { readonly model: TreeModel; readonly evaluator: Evaluator }>();

parentPort?.on("message", (command: TreeWorkerCommand) => {
  switch (command.kind) {
    case "arena":
      arenas.set(command.id, mapMemory(command.fd, command.byteLength));
      return;
    case "model":
      models.set(command.id, { model: command.model, evaluator: new Evaluator(walk, command.model, workspace) });
      return;
    case "forget-arena":
      arenas.get(command.id)?.unmap();
      arenas.delete(command.id);
      return;
    case "forget-model":
      models.delete(command.id);
      return;
    case "run":
      parentPort?.postMessage(run(command), []);
  }
});

function run({ model: id, arena: arenaId, segments }: TreeWorkerCommand & { kind: "run" }): TreeWorkerReply {
  try {
    const { model, evaluator } = models.get(id) as { model: TreeModel; evaluator: Evaluator };
    const arena = arenas.get(arenaId) as MappedMemory;
    const { featureCount } = model.forest;
    const columnCount = predictionColumns(model.forest, model.outputForm);
    const viewOf = (at: number | null, columns: number) =>
      at === null ? null : new Float32Array(arena.view(at, 4 * columns));
    for (const { rowsAt, rowCount, predictionsAt, contributionsAt } of segments) {
      const rows = new Int32Array(arena.view(rowsAt, 4 * rowCount * featureCount));
      const predictions = viewOf(predictionsAt, rowCount * columnCount);
      const contributions = viewOf(contributionsAt, rowCount * contributionColumns(model.forest));
      evaluator.evaluate({ rows, rowCount, predictions, contributions });
    }
    return { failure: null };
  } catch (error) {
    return { failure: String(error) };
  }
}
