/** Worker thread that reads models, one at a time, and sends one reply for each. */
import { parentPort } from "node:worker_threads";
import { type InferenceCode, InferenceError } from "@galatea/base";
import type { TreeModel } from "./evaluation/evaluator.ts";
import { type ReadTreeModelOptions, readTreeModel } from "./read-tree-model.ts";

export type ReadingReply =
  | { readonly ok: true; readonly model: TreeModel }
  | { readonly ok: false; readonly code: InferenceCode; readonly message: string };

parentPort?.on("message", (options: ReadTreeModelOptions) => {
  const reply = (result: ReadingReply) => parentPort?.postMessage(result, []);
  readTreeModel(options).then(
    (model) => reply({ ok: true, model }),
    (error: unknown) => {
      const { code, message } = InferenceError.from(error);
      reply({ ok: false, code, message });
    },
  );
});
