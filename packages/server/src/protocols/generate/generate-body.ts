import { InferenceError, type EventLoopQueue } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import type { ParameterValue } from "../../inference/index.ts";
import { JsonScanner, releaseTensors, type Tensor } from "../../tensor/index.ts";
import { exchangeMemoryBytes, bufferBody, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import { placeInputs, placeInputsInChunks, scanInChunks, wholeTextBytesMax } from "../infer-codec/index.ts";
import { mapGenerateRequest } from "./generate-mapping.ts";

export interface GenerateBodyOptions {
  readonly model: ServedModel;
  readonly limits: HttpLimits;
  /** Lets the decoder yield to the event loop while it reads long JSON. */
  readonly loopQueue: EventLoopQueue;
}

/** A decoded request. The receiver owns the tensors. */
export interface GenerateBody {
  readonly id: string;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly tensors: readonly Tensor[];
}

/**
 * Reads and decodes a request's body. Numbers are written from the JSON text directly to tensor memory. Releases all memory when it throws.
 */
export async function readGenerateBody(exchange: Exchange, options: GenerateBodyOptions): Promise<GenerateBody> {
  const { memory } = exchange;
  const body = await bufferBody(exchange, options.limits);
  const gatheredBytes = memory.bytes - exchangeMemoryBytes;
  try {
    return await decode(body.bytes(), exchange, options);
  } finally {
    body.discard();
    memory.shrinkBy(gatheredBytes);
  }
}

/** Decodes a long body in chunks, and yields to the event loop between them. */
async function decode(body: Buffer, exchange: Exchange, options: GenerateBodyOptions): Promise<GenerateBody> {
  const { model, loopQueue } = options;
  const { inputBytesMax } = options.limits;
  if (body.length > inputBytesMax) {
    throw new InferenceError(
      "INVALID_ARG",
      `request JSON size of ${body.length} bytes exceeds the maximum allowed input size of ${inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
    );
  }
  const { memory, signal } = exchange;
  const yieldOptions = { loopQueue, signal };
  const isLong = body.length > wholeTextBytesMax;
  const scanner = isLong ? await scanInChunks(body, yieldOptions) : new JsonScanner(body);
  const mapping = mapGenerateRequest(scanner, { config: model.view.config, inputBytesMax, memory });
  const location = { modelName: model.view.config.name, tailBytes: 0, arena: model.arena, memory };
  const { tensors } = isLong
    ? await placeInputsInChunks(mapping, location, yieldOptions)
    : placeInputs(mapping, location);
  if (mapping.failure !== null) {
    releaseTensors(tensors);
    throw mapping.failure;
  }
  return { id: mapping.id, parameters: mapping.parameters, tensors };
}
