import { InferenceError } from "@galatea/base";
import type { ModelConfigMessage } from "./message.ts";
import type { ModelConfig } from "./model-config.ts";

interface UnbuiltFeature {
  readonly field: string;
  readonly used: (message: ModelConfigMessage) => boolean;
}

/** Backends that join the tensors of a batch, which those of different shapes are not joined to. The others see each request's own. */
const joiningBackends: ReadonlySet<string> = new Set(["onnxruntime", "fil", "pytorch", "tensorrt"]);

/** Backends that make the tensors of ragged batches, and cut outputs by them. */
const raggedBackends: ReadonlySet<string> = new Set(["tensorflow"]);

/** What the configuration can say and this server does not do yet. Hints that change speed only are accepted and not listed. */
const unbuiltFeatures: readonly UnbuiltFeature[] = [
  { field: "sequence_batching", used: (m) => m.schedulingChoice.case === "sequenceBatching" },
  { field: "response_cache", used: (m) => m.responseCache?.enable === true },
  { field: "model_repository_agents", used: (m) => (m.modelRepositoryAgents?.agents.length ?? 0) > 0 },
  { field: "batch_input", used: (m) => !raggedBackends.has(m.backend) && m.batchInput.length > 0 },
  { field: "batch_output", used: (m) => !raggedBackends.has(m.backend) && m.batchOutput.length > 0 },
  {
    field: "input.allow_ragged_batch",
    used: (m) => joiningBackends.has(m.backend) && m.input.some((input) => input.allowRaggedBatch),
  },
  {
    field: "model_operations.op_library_filename",
    used: (m) => (m.modelOperations?.opLibraryFilename.length ?? 0) > 0,
  },
  { field: "model_metrics", used: (m) => (m.modelMetrics?.metricControl.length ?? 0) > 0 },
  { field: "runtime", used: (m) => m.runtime !== "" && m.runtime !== "model.py" },
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

/** Names of the fields in use that are not built yet. */
export function unbuiltFields(message: ModelConfigMessage): readonly string[] {
  return unbuiltFeatures.filter((feature) => feature.used(message)).map((feature) => feature.field);
}

/** Refuses (UNSUPPORTED) a model that needs something this server does not do yet, by name: nothing is ever ignored. */
export function refuseUnbuilt(config: ModelConfig): void {
  const fields = unbuiltFields(config.message);
  if (fields.length === 0) return;
  const list = fields.map((field) => `'${field}'`).join(", ");
  throw new InferenceError(
    "UNSUPPORTED",
    `model '${config.name}' uses ${list}, which this server does not support yet; the model is not loaded rather than served without it`,
  );
}
