import type { EnsembleMessage, ModelConfigMessage } from "./message.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

/** Checks the graph of an ensemble: steps are complete, every tensor is written once and read, every output is reachable. */
export function checkEnsembleGraph(message: ModelConfigMessage): void {
  const name = message.name;
  const choice = message.schedulingChoice;
  if (message.platform !== "ensemble") {
    if (choice.case === "ensembleScheduling") {
      throwInvalidConfig(`ensemble scheduling cannot be set for model '${name}' whose platform is not ensemble`);
    }
    return;
  }
  if (choice.case !== "ensembleScheduling")
    throwInvalidConfig(`ensemble scheduling must be set for ensemble ${name} whose platform is ensemble`);
  if (message.instanceGroup.length > 0)
    throwInvalidConfig(`instance group should not be specified for ensemble '${name}'`);
  if (message.optimization !== undefined)
    throwInvalidConfig(`optimization should not be specified for ensemble '${name}'`);
  if (message.modelWarmup.length > 0) throwInvalidConfig(`model_warmup can not be specified for ensemble '${name}'`);
  checkSteps(choice.value, name);
  checkTensorFlow(message, choice.value);
}

function checkSteps(ensemble: EnsembleMessage, name: string): void {
  if (ensemble.step.length === 0) throwInvalidConfig(`must specify 'step' for ensemble '${name}'`);
  const written = new Set<string>();
  ensemble.step.forEach((step, index) => {
    const missing =
      step.modelName === ""
        ? "model_name"
        : Object.keys(step.inputMap).length === 0
          ? "input_map"
          : Object.keys(step.outputMap).length === 0
            ? "output_map"
            : null;
    if (missing !== null) throwInvalidConfig(`must specify '${missing}' in step ${index} of ensemble '${name}'`);
    for (const tensor of Object.values(step.outputMap)) {
      if (written.has(tensor)) {
        throwInvalidConfig(
          `ensemble tensor '${tensor}' can appear in an output map only once for ensemble '${name}' step ${index}`,
        );
      }
      written.add(tensor);
    }
  });
}

/** Checks the data flow as Triton does: it starts from the ensemble's inputs and follows the steps that become ready. */
function checkTensorFlow(message: ModelConfigMessage, ensemble: EnsembleMessage): void {
  const name = message.name;
  const steps = ensemble.step.map((step) => ({
    reads: Object.values(step.inputMap),
    writes: Object.values(step.outputMap),
  }));
  const read = new Set(steps.flatMap((step) => step.reads));
  const ready = new Set(message.input.map((input) => input.name));
  for (const input of ready) {
    // The stray quote is part of Triton's text.
    if (!read.has(input)) throwInvalidConfig(`ensemble input '${input}' for ensemble ${name}' is not used`);
  }
  for (const step of steps) {
    const overwritten = step.writes.find((tensor) => ready.has(tensor));
    if (overwritten !== undefined) {
      throwInvalidConfig(`ensemble input '${overwritten}' is written by a step of ensemble '${name}'`);
    }
  }
  let waiting = steps;
  for (;;) {
    const able = waiting.filter((step) => step.reads.every((tensor) => ready.has(tensor)));
    if (able.length === 0) break;
    for (const tensor of able.flatMap((step) => step.writes)) ready.add(tensor);
    waiting = waiting.filter((step) => !able.includes(step));
  }
  for (const { name: output } of message.output) {
    if (ready.has(output)) continue;
    const missing = missingFor(output, waiting, ready);
    throwInvalidConfig(
      `output '${output}' for ensemble '${name}' is not written: at least one of its depending tensors, '${missing}', is not connected`,
    );
  }
  for (const step of waiting) {
    const missing = step.reads.find((tensor) => !ready.has(tensor))!;
    throwInvalidConfig(`ensemble tensor '${missing}' is not written by any step that can run in ensemble '${name}'`);
  }
  const outputs = new Set(message.output.map((output) => output.name));
  for (const tensor of steps.flatMap((step) => step.writes)) {
    if (!read.has(tensor) && !outputs.has(tensor))
      throwInvalidConfig(`ensemble tensor '${tensor}' is unused in ensemble '${name}'`);
  }
}

/** Follows the graph upstream from `output` and returns the first tensor that no step writes. */
function missingFor(
  output: string,
  waiting: readonly { reads: readonly string[]; writes: readonly string[] }[],
  ready: ReadonlySet<string>,
): string {
  let tensor = output;
  const visited = new Set<string>();
  while (!visited.has(tensor)) {
    visited.add(tensor);
    const writer = waiting.find((step) => step.writes.includes(tensor));
    const next = writer?.reads.find((name) => !ready.has(name));
    if (next === undefined) break;
    tensor = next;
  }
  return tensor;
}
