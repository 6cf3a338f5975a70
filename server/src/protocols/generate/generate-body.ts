import { InferenceError } from "../../base/index.ts";
import type { ServedModel } from "../../engine/index.ts";
import type { ParameterValue } from "../../inference/index.ts";
import { releaseTensors, type IntegerRange, type Tensor } from "../../tensor/index.ts";
import { exchangeBytes, gatherBody, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import { placeInputs } from "../infer-codec/index.ts";
import { mapGenerateRequest } from "./generate-mapping.ts";

export interface GenerateBodyOptions {
  readonly model: ServedModel;
  readonly limits: HttpLimits;
  readonly integerRange: IntegerRange;
}

/** A decoded request. The receiver owns the tensors. */
export interface GenerateBody {
  readonly id: string;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly tensors: readonly Tensor[];
}

/** Reads and decodes a request's body; numbers go from its text straight to where the tensors will stay. Nothing stays allocated when it throws. */
export async function readGenerateBody(exchange: Exchange, options: GenerateBodyOptions): Promise<GenerateBody> {
  const { memory } = exchange;
  const body = await gatherBody(exchange, options.limits);
  const gatheredBytes = memory.bytes - exchangeBytes;
  try {
    return decode(body.bytes(), exchange, options);
  } finally {
    body.discard();
    memory.shrinkBy(gatheredBytes);
  }
}

function decode(body: Buffer, exchange: Exchange, options: GenerateBodyOptions): GenerateBody {
  const { model, integerRange } = options;
  const { inputBytesMax } = options.limits;
  if (body.length > inputBytesMax) {
    throw new InferenceError(
      "INVALID_ARG",
      `request JSON size of ${body.length} bytes exceeds the maximum allowed input size of ${inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
    );
  }
  const { memory } = exchange;
  const mapping = mapGenerateRequest(body, { config: model.view.config, inputBytesMax, memory });
  const { tensors } = placeInputs(mapping, {
    modelName: model.view.config.name,
    tailBytes: 0,
    arena: model.arena,
    integerRange,
    memory,
  });
  if (mapping.failure !== null) {
    releaseTensors(tensors);
    throw mapping.failure;
  }
  return { id: mapping.id, parameters: mapping.parameters, tensors };
}
