/** Program of the thread that reads and evaluates models of algorithms: one order after the other. */
import { parentPort } from "node:worker_threads";
import type { AlgorithmAnswer, AlgorithmRequest } from "../algorithms/index.ts";
import { type InferenceCode, InferenceError, unreachable } from "@galatea/base";
import { type AlgorithmModel, type AlgorithmSource, readAlgorithmModel } from "./algorithm-models.ts";

/** What the thread of algorithms is told; each order has one reply. */
export type AlgorithmOrder =
  | { readonly kind: "load"; readonly id: number; readonly model: number; readonly source: AlgorithmSource }
  | { readonly kind: "answer"; readonly id: number; readonly model: number; readonly request: AlgorithmRequest }
  | { readonly kind: "unload"; readonly id: number; readonly model: number };

export type AlgorithmReply =
  | { readonly id: number; readonly outcome: "loaded"; readonly memoryBytes: number }
  | { readonly id: number; readonly outcome: "answered"; readonly answer: AlgorithmAnswer }
  | { readonly id: number; readonly outcome: "unloaded" }
  | { readonly id: number; readonly outcome: "failed"; readonly code: InferenceCode; readonly message: string };

const models = new Map<number, AlgorithmModel>();

function carriedOut(order: AlgorithmOrder): AlgorithmReply {
  const { id, model } = order;
  switch (order.kind) {
    case "load": {
      const read = readAlgorithmModel(order.source);
      models.set(model, read);
      return { id, outcome: "loaded", memoryBytes: read.memoryBytes };
    }
    case "answer": {
      const loaded = models.get(model);
      if (loaded === undefined) throw new InferenceError("INTERNAL", "the model is not loaded in its thread");
      return { id, outcome: "answered", answer: loaded.answer(order.request) };
    }
    case "unload":
      models.get(model)?.discard();
      models.delete(model);
      return { id, outcome: "unloaded" };
    default:
      return unreachable(order);
  }
}

parentPort?.on("message", (order: AlgorithmOrder) => {
  let reply: AlgorithmReply;
  try {
    reply = carriedOut(order);
  } catch (error) {
    const { code, message } = InferenceError.from(error);
    reply = { id: order.id, outcome: "failed", code, message };
  }
  parentPort?.postMessage(reply, []);
});
