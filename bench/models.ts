import type { BenchModels } from "./servers.ts";

const tensor = (field: "input" | "output", name: string, type: string, dims: string) =>
  `${field} { name: "${name}" data_type: ${type} dims: [${dims}] }\n`;
const cpu = "instance_group { count: 1 kind: KIND_CPU }\n";

const pair = (dims: string) =>
  tensor("input", "INPUT0", "TYPE_FP32", dims) +
  tensor("input", "INPUT1", "TYPE_FP32", dims) +
  tensor("output", "OUTPUT0", "TYPE_FP32", dims) +
  tensor("output", "OUTPUT1", "TYPE_FP32", dims);

/** The repository of the small rows: sum and difference of two vectors of sixteen numbers. */
export const addSub: BenchModels = {
  add_sub: { config: `backend: "python"\n${pair("16")}${cpu}`, program: "add_sub.py" },
};

export const addSubDynamic: BenchModels = {
  add_sub: {
    config: `backend: "python"\nmax_batch_size: 64\n${pair("16")}${cpu}dynamic_batching { }\n`,
    program: "add_sub.py",
  },
};

export const identity: BenchModels = {
  identity: {
    config: `backend: "python"\n${tensor("input", "INPUT0", "TYPE_FP32", "-1")}${tensor("output", "OUTPUT0", "TYPE_FP32", "-1")}${cpu}`,
    program: "identity.py",
  },
};

const step = (model: string, input: string, output: string) =>
  `step { model_name: "${model}" model_version: -1 input_map { key: "X" value: "${input}" } output_map { key: "Y" value: "${output}" } }\n`;
const stage = {
  config: `backend: "python"\n${tensor("input", "X", "TYPE_FP32", "16")}${tensor("output", "Y", "TYPE_FP32", "16")}${cpu}`,
  program: "stage.py",
};

/** A model that returns a vector of sixteen numbers unchanged. */
export const onward: BenchModels = {
  onward: {
    config: `backend: "python"\n${tensor("input", "X", "TYPE_FP32", "16")}${tensor("output", "X", "TYPE_FP32", "16")}${cpu}`,
    program: "onward.py",
  },
};

/** Three small Python steps in sequence. */
export const threeSteps: BenchModels = {
  before: stage,
  middle: stage,
  after: stage,
  pipeline: {
    config:
      `platform: "ensemble"\n${tensor("input", "IN", "TYPE_FP32", "16")}${tensor("output", "OUT", "TYPE_FP32", "16")}` +
      `ensemble_scheduling {\n${step("before", "IN", "a")}${step("middle", "a", "b")}${step("after", "b", "OUT")}}\n`,
    program: null,
  },
};

/** Sends the number of responses that the request contains. */
export const decoupled: BenchModels = {
  decoupled: {
    config: `backend: "python"\n${tensor("input", "COUNT", "TYPE_INT32", "1")}${tensor("output", "INDEX", "TYPE_INT32", "1")}${cpu}model_transaction_policy { decoupled: true }\n`,
    program: "decoupled.py",
  },
};

export const weighty: BenchModels = {
  weighty: {
    config: `backend: "python"\n${tensor("input", "IN", "TYPE_INT32", "1")}${tensor("output", "ANSWERS", "TYPE_INT32", "1")}${cpu}`,
    program: "weighty.py",
  },
};

/**
 * A tenant's ensemble of three Python steps. The middle one has its own weights. `suffix` ends the names of the models.
 * Further outputs are the tenant's number, and the number of responses of the middle step since its load.
 */
export function tenantEnsemble(weights: Uint8Array, suffix = ""): BenchModels {
  const scorer = {
    config:
      `backend: "python"\n${tensor("input", "X", "TYPE_FP32", "16")}${tensor("output", "Y", "TYPE_FP32", "16")}` +
      `${tensor("output", "TENANT", "TYPE_INT32", "1")}${tensor("output", "ANSWERS", "TYPE_INT32", "1")}${cpu}`,
    program: "scorer.py",
    files: { "weights.bin": weights },
  };
  const score =
    `step { model_name: "score${suffix}" model_version: -1 input_map { key: "X" value: "a" } ` +
    'output_map { key: "Y" value: "b" } output_map { key: "TENANT" value: "TENANT" } output_map { key: "ANSWERS" value: "ANSWERS" } }\n';
  return {
    [`prepare${suffix}`]: stage,
    [`score${suffix}`]: scorer,
    [`finish${suffix}`]: stage,
    [`tenant${suffix}`]: {
      config:
        `platform: "ensemble"\n${tensor("input", "IN", "TYPE_FP32", "16")}${tensor("output", "OUT", "TYPE_FP32", "16")}` +
        `${tensor("output", "TENANT", "TYPE_INT32", "1")}${tensor("output", "ANSWERS", "TYPE_INT32", "1")}` +
        `ensemble_scheduling {\n${step(`prepare${suffix}`, "IN", "a")}${score}${step(`finish${suffix}`, "b", "OUT")}}\n`,
      program: null,
    },
  };
}

/** `count` models of the add_sub program under different names. */
export function manyAddSub(count: number): BenchModels {
  const model = addSub["add_sub"];
  if (model === undefined) throw new Error("model 'add_sub' is missing");
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`add_sub_${index}`, model]));
}
