import { type Clock, InferenceError } from "@galatea/base";
import type { InferenceRequest, Instance, Outcome } from "@galatea/server/inference";
import type { Arena } from "@galatea/server/tensor";
import type { LoadedAlgorithm } from "./algorithm-threads.ts";

export interface AlgorithmInstanceDependencies {
  readonly name: string;
  readonly modelName: string;
  readonly version: string;
  readonly loaded: LoadedAlgorithm;
  readonly arena: Arena;
  readonly clock: Clock;
}

/** Size of the length prefix of an element of a BYTES tensor. */
const lengthBytes = 4;

/** Creates an instance that handles requests one after another, each in the thread of its model. */
export function algorithmInstance({ name, clock, ...parts }: AlgorithmInstanceDependencies): Instance {
  return {
    name,
    executionsMax: 1,
    supervision: null,
    abandonRequest: () => {},
    async execute(batch) {
      const startNs = clock.monotonicNs();
      const outcomes: Outcome[] = [];
      for (const request of batch) outcomes.push(await outcomeOf(request, parts));
      return { outcomes, computeInputNs: 0, computeInferNs: clock.monotonicNs() - startNs, computeOutputNs: 0 };
    },
  };
}

type InvocationDependencies = Omit<AlgorithmInstanceDependencies, "name" | "clock">;

async function outcomeOf(
  request: InferenceRequest,
  { loaded, arena, modelName, version }: InvocationDependencies,
): Promise<Outcome> {
  try {
    const [body] = request.inputs;
    if (body === undefined) throw new InferenceError("INVALID_ARG", `model '${modelName}' has no input 'body'`);
    const response = await loaded.invoke({
      // A copy, because the arena's memory cannot be transferred to the thread.
      bytes: Uint8Array.from(body.data.subarray(lengthBytes)),
      contentType: textParameter(request, "content_type"),
      accept: textParameter(request, "accept"),
    });
    const block = arena.allocate(response.bytes.length + lengthBytes);
    const { bytes: data } = block;
    new DataView(data.buffer, data.byteOffset).setUint32(0, response.bytes.length, true);
    data.set(response.bytes, lengthBytes);
    return {
      modelName,
      modelVersion: version,
      parameters: new Map<string, string | bigint>([
        ["status", BigInt(response.status)],
        ["content_type", response.contentType],
      ]),
      outputs: [{ name: "answer", datatype: "BYTES", shape: [1], data, block }],
    };
  } catch (error) {
    return InferenceError.from(error);
  }
}

function textParameter({ parameters }: InferenceRequest, name: string): string {
  const value = parameters.get(name);
  return typeof value === "string" ? value : "";
}
