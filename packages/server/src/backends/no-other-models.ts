import { InferenceError } from "@galatea/base";
import { releaseTensors } from "../tensor/index.ts";
import type { OtherModels } from "./other-models.ts";

const absent = () =>
  new InferenceError("NOT_FOUND", "calls to other models are not available while a model is only checked");

/** A namespace without other models: for model checks and tests. */
export const noOtherModels: OtherModels = {
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
