/**
 * Triton's generate extension over HTTP: a flat JSON object in, whose members are the model's inputs or else parameters, and one out,
 * whose members are its outputs. `generate` sends the one answer, `generate_stream` each answer as a server-sent event when it is there.
 */
export { GenerateCalls } from "./generate-calls.ts";
