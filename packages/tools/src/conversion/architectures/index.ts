/** The supported encoder architectures, by the `model_type` in config.json. */
export { planEncoder } from "./plan-encoder.ts";
