/** Encoder architectures as rows: `model_type` of a config.json, and the reader of its plan. */
export { planEncoder } from "./plan-encoder.ts";
