import { InferenceError } from "@galatea/base";
import type { ModelConfigMessage } from "./message.ts";
import type { ModelConfig } from "./model-config.ts";

interface UnsupportedFeature {
  readonly field: string;
  /**
   * The condition under which the field is rejected, as text for the reference documentation. Absent if every value except the default is
   * rejected.
   */
  readonly when?: string;
  readonly used: (message: ModelConfigMessage) => boolean;
}

/**
 * Backends that concatenate the tensors of a batch, whose shapes must therefore be equal. Other backends receive the tensors of each
 * request.
 */
const joiningBackends: ReadonlySet<string> = new Set(["onnxruntime", "fil", "pytorch", "tensorrt"]);

/** Backends that support batch_input and batch_output (ragged batches). */
const raggedBackends: ReadonlySet<string> = new Set(["tensorflow"]);

/** Features of a configuration that are not implemented. The list omits hints that affect only speed, which are accepted and ignored. */
export const unsupportedFeatures: readonly UnsupportedFeature[] = [
  { field: "sequence_batching", used: (m) => m.schedulingChoice.case === "sequenceBatching" },
  { field: "response_cache", when: "`enable: true`", used: (m) => m.responseCache?.enable === true },
  { field: "model_repository_agents", used: (m) => (m.modelRepositoryAgents?.agents.length ?? 0) > 0 },
  {
    field: "batch_input",
    when: `with backends other than ${[...raggedBackends].join(", ")}`,
    used: (m) => !raggedBackends.has(m.backend) && m.batchInput.length > 0,
  },
  {
    field: "batch_output",
    when: `with backends other than ${[...raggedBackends].join(", ")}`,
    used: (m) => !raggedBackends.has(m.backend) && m.batchOutput.length > 0,
  },
  {
    field: "input.allow_ragged_batch",
    when: `with the backends ${[...joiningBackends].join(", ")}`,
    used: (m) => joiningBackends.has(m.backend) && m.input.some((input) => input.allowRaggedBatch),
  },
  {
    field: "model_operations.op_library_filename",
    used: (m) => (m.modelOperations?.opLibraryFilename.length ?? 0) > 0,
  },
  { field: "model_metrics", used: (m) => (m.modelMetrics?.metricControl.length ?? 0) > 0 },
  { field: "runtime", when: "other than `model.py`", used: (m) => m.runtime !== "" && m.runtime !== "model.py" },
  {
    field: "instance_group.rate_limiter.resources",
    used: (m) => m.instanceGroup.some((group) => (group.rateLimiter?.resources.length ?? 0) > 0),
  },
  { field: "instance_group.passive", used: (m) => m.instanceGroup.some((group) => group.passive) },
  {
    field: "instance_group.secondary_devices",
    used: (m) => m.instanceGroup.some((g) => g.secondaryDevices.length > 0),
  },
  {
    field: "ensemble_scheduling.step.model_namespace",
    used: (m) =>
      m.schedulingChoice.case === "ensembleScheduling" &&
      m.schedulingChoice.value.step.some((step) => step.modelNamespace !== ""),
  },
];

/** Returns the names of the fields in use that are not implemented. */
export function unsupportedFields(message: ModelConfigMessage): readonly string[] {
  return unsupportedFeatures.filter((feature) => feature.used(message)).map((feature) => feature.field);
}

/** Rejects a model that uses unimplemented features (UNSUPPORTED). The error names all of them. */
export function rejectUnsupported(config: ModelConfig): void {
  const fields = unsupportedFields(config.message);
  if (fields.length === 0) return;
  const list = fields.map((field) => `'${field}'`).join(", ");
  throw new InferenceError(
    "UNSUPPORTED",
    `model '${config.name}' uses ${list}, which this server does not support yet; the model is not loaded rather than served without it`,
  );
}
