import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { infer, outputOf, type HttpResponse } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";

export interface CallingModel {
  readonly count?: number;
  readonly decoupled?: boolean;
  /** The program of the model; null for models/calling.py. */
  readonly text?: string;
}

const config = ({ count = 1, decoupled = false }: CallingModel) => `backend: "python"
max_batch_size: 0
input [
  { name: "CODE" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "VALUE" data_type: TYPE_INT32 dims: [ -1 ] optional: true }
]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }, { name: "VALUE" data_type: TYPE_INT32 dims: [ -1 ] } ]
instance_group { count: ${count} kind: KIND_CPU }
model_transaction_policy { decoupled: ${decoupled} }
`;

/** Writes a model that runs the code of its requests, which may call other models: models/calling.py. */
export async function writeCallingModel(repository: string, name: string, model: CallingModel = {}): Promise<void> {
  const program = fileURLToPath(new URL("models/calling.py", import.meta.url));
  await writeFaultyModel(repository, name, {
    config: config(model),
    text: model.text ?? (await readFile(program, "utf8")),
  });
}

const body = (code: string) =>
  JSON.stringify({
    inputs: [{ name: "CODE", datatype: "BYTES", shape: [1], data: [code] }],
    outputs: [{ name: "OUT" }],
  });

/** Runs code in the model, and resolves with its result. */
export function runCode(port: number, model: string, code: string, signal?: AbortSignal): Promise<HttpResponse> {
  return infer(port, model, body(code), signal === undefined ? {} : { signal });
}

/** The value of `out` after the code has run. */
export async function outputOfCode(port: number, model: string, code: string): Promise<string> {
  return String(outputOf(await runCode(port, model, code), "OUT")[0]);
}
