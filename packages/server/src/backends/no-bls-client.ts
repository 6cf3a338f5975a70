import { InferenceError } from "@galatea/base";
import { releaseTensors } from "../tensor/index.ts";
import type { BlsClient } from "./bls-client.ts";

const absent = () =>
  new InferenceError("NOT_FOUND", "calls to other models are not available while a model is only checked");

/** A BLS client for model checks and tests, which fails every call. */
export const noBlsClient: BlsClient = {
  infer(call) {
    releaseTensors(call.inputs);
    return Promise.reject(absent());
  },
  stream(call, sink) {
    releaseTensors(call.inputs);
    sink.respond(absent(), true, () => {});
    return Promise.resolve();
  },
  load: () => Promise.reject(absent()),
  unload: () => Promise.resolve(),
  isReady: () => false,
};
