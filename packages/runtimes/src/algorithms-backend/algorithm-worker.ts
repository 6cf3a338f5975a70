/** Worker thread that loads and evaluates models of algorithms, one command at a time. */
import { parentPort } from "node:worker_threads";
import type { AlgorithmResponse, AlgorithmRequest } from "../algorithms/index.ts";
import { type InferenceCode, InferenceError, unreachable } from "@galatea/base";
import { type AlgorithmModel, type AlgorithmSource, readAlgorithmModel } from "./algorithm-models.ts";

/** A command to the thread, which sends one reply for each. */
export type AlgorithmCommand =
  | { readonly kind: "load"; readonly model: number; readonly source: AlgorithmSource }
  | { readonly kind: "invoke"; readonly model: number; readonly request: AlgorithmRequest };

/** A command to unload a model, without a reply. */
export interface UnloadCommand {
  readonly kind: "unload";
  readonly model: number;
}

export type AlgorithmReply =
  | { readonly outcome: "loaded"; readonly memoryBytes: number }
  | { readonly outcome: "responded"; readonly response: AlgorithmResponse }
  | { readonly outcome: "failed"; readonly code: InferenceCode; readonly message: string };

const models = new Map<number, AlgorithmModel>();

function execute(command: AlgorithmCommand): AlgorithmReply {
  const { model } = command;
  switch (command.kind) {
    case "load": {
      const read = readAlgorithmModel(command.source);
      models.set(model, read);
      return { outcome: "loaded", memoryBytes: read.memoryBytes };
    }
    case "invoke": {
      const loaded = models.get(model);
      if (loaded === undefined) throw new InferenceError("INTERNAL", "the model is not loaded in its thread");
      return { outcome: "responded", response: loaded.invoke(command.request) };
    }
    default:
      return unreachable(command);
  }
}

parentPort?.on("message", (command: AlgorithmCommand | UnloadCommand) => {
  if (command.kind === "unload") {
    models.get(command.model)?.discard();
    models.delete(command.model);
    return;
  }
  let reply: AlgorithmReply;
  try {
    reply = execute(command);
  } catch (error) {
    const { code, message } = InferenceError.from(error);
    reply = { outcome: "failed", code, message };
  }
  parentPort?.postMessage(reply, []);
});
