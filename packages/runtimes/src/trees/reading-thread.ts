/** The program of the thread that reads models: one order after another, each with one reply. */
import { parentPort } from "node:worker_threads";
import { type InferenceCode, InferenceError } from "@galatea/base";
import type { TreeModel } from "./evaluation/evaluator.ts";
import { type ReadingOrder, readTreeModel } from "./read-tree-model.ts";

export type ReadingReply =
  | { readonly ok: true; readonly model: TreeModel }
  | { readonly ok: false; readonly code: InferenceCode; readonly message: string };

parentPort?.on("message", (order: ReadingOrder) => {
  const reply = (what: ReadingReply) => parentPort?.postMessage(what, []);
  readTreeModel(order).then(
    (model) => reply({ ok: true, model }),
    (error: unknown) => {
      const { code, message } = InferenceError.from(error);
      reply({ ok: false, code, message });
    },
  );
});
