/** Program of the thread that reads and evaluates models of algorithms: one order after the other. */
import { parentPort } from "node:worker_threads";
import { InferenceError, unreachable } from "../base/index.ts";
import type { AlgorithmOrder, AlgorithmReply } from "./algorithm-messages.ts";
import { type AlgorithmModel, readAlgorithmModel } from "./algorithm-models.ts";

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
