/**
 * Triton's generate extension over HTTP. A request is a flat JSON object whose members are the model's inputs and parameters; the members
 * of a response object are the model's outputs. `generate` sends one response, `generate_stream` sends each response as a server-sent
 * event.
 */
export { GenerateCalls } from "./generate-calls.ts";
