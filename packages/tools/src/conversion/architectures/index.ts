/** Encoder architectures as rows: `model_type` of a config.json, and how its plan is read. */
export { planEncoder } from "./plan-encoder.ts";
