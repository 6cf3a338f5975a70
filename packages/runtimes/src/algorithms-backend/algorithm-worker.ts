/** The program of a thread that reads and evaluates models of algorithms: one order after another. */
import { parentPort } from "node:worker_threads";
import type { AlgorithmAnswer, AlgorithmRequest } from "../algorithms/index.ts";
import { type InferenceCode, InferenceError, unreachable } from "@galatea/base";
import { type AlgorithmModel, type AlgorithmSource, readAlgorithmModel } from "./algorithm-models.ts";

/** An order to the thread; each has one reply. */
export type AlgorithmOrder =
  | { readonly kind: "load"; readonly model: number; readonly source: AlgorithmSource }
  | { readonly kind: "answer"; readonly model: number; readonly request: AlgorithmRequest };

/** An order to unload a model, without a reply. */
export interface UnloadOrder {
  readonly kind: "unload";
  readonly model: number;
}

export type AlgorithmReply =
  | { readonly outcome: "loaded"; readonly memoryBytes: number }
  | { readonly outcome: "answered"; readonly answer: AlgorithmAnswer }
  | { readonly outcome: "failed"; readonly code: InferenceCode; readonly message: string };

const models = new Map<number, AlgorithmModel>();

function carriedOut(order: AlgorithmOrder): AlgorithmReply {
  const { model } = order;
  switch (order.kind) {
    case "load": {
      const read = readAlgorithmModel(order.source);
      models.set(model, read);
      return { outcome: "loaded", memoryBytes: read.memoryBytes };
    }
    case "answer": {
      const loaded = models.get(model);
      if (loaded === undefined) throw new InferenceError("INTERNAL", "the model is not loaded in its thread");
      return { outcome: "answered", answer: loaded.answer(order.request) };
    }
    default:
      return unreachable(order);
  }
}

parentPort?.on("message", (order: AlgorithmOrder | UnloadOrder) => {
  if (order.kind === "unload") {
    models.get(order.model)?.discard();
    models.delete(order.model);
    return;
  }
  let reply: AlgorithmReply;
  try {
    reply = carriedOut(order);
  } catch (error) {
    const { code, message } = InferenceError.from(error);
    reply = { outcome: "failed", code, message };
  }
  parentPort?.postMessage(reply, []);
});
