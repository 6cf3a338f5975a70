import { BatchInput_Kind, BatchOutput_Kind, DataType, type ModelConfigMessage } from "./message.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

/** Checks batch_input (tensors that the server creates for ragged batches) and batch_output (outputs that the server splits). */
export function checkBatchTensors(message: ModelConfigMessage): void {
  const model = message.name;
  const inputs = new Set(message.input.map((input) => input.name));
  const outputs = new Set(message.output.map((output) => output.name));
  const checkSources = (what: string, sources: readonly string[]) => {
    if (sources.length !== 1) throwInvalidConfig(`${what} expects 1 source input, got ${sources.length} for ${model}`);
    for (const source of sources)
      if (!inputs.has(source)) throwInvalidConfig(`unknown source input name '${source}' for ${model}`);
  };
  for (const batch of message.batchInput) {
    if (batch.dataType !== DataType.TYPE_INT32 && batch.dataType !== DataType.TYPE_FP32) {
      throwInvalidConfig(`batch input data type must be TYPE_INT32 or TYPE_FP32 for ${model}`);
    }
    checkSources(`batch input kind '${BatchInput_Kind[batch.kind]}'`, batch.sourceInput);
  }
  const targets = new Set<string>();
  for (const batch of message.batchOutput) {
    for (const target of batch.targetName) {
      if (!outputs.has(target)) throwInvalidConfig(`unknown target output name '${target}' for ${model}`);
      if (targets.has(target))
        throwInvalidConfig(`target output name '${target}' can only be specified once for ${model}`);
      targets.add(target);
    }
    checkSources(`batch output kind '${BatchOutput_Kind[batch.kind]}'`, batch.sourceInput);
  }
}
