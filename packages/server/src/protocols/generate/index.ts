/**
 * Triton's generate extension over HTTP. A request is a flat JSON object whose members are the model's inputs or parameters, and a
 * response is one whose members are its outputs. `generate` sends one response, `generate_stream` sends each response as a server-sent
 * event.
 */
export { GenerateCalls } from "./generate-calls.ts";
