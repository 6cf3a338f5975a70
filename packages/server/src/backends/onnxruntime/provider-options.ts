import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { ExecutionProvider } from "../../native/index.ts";

/**
 * Converts a parameter of an accelerator to options of the library. Returns no options when the parameter has no effect. Throws for an
 * invalid value.
 */
type Parameter = (key: string, value: string, model: ModelConfig) => ExecutionProvider["options"];

const bool: Parameter = (key, text) => {
  const value = ["1", "true"].includes(text.toLowerCase());
  if (!value && !["0", "false"].includes(text.toLowerCase())) throw unconverted(key, text, "boolean value");
  return [[key, value ? "1" : "0"]];
};

const complete: Parameter = (key, value) => {
  if (!/^\d{1,20}$/.test(value)) throw unconverted(key, value, "integral number");
  return [[key, value]];
};

const asText: Parameter = (key, value) => (value === "" ? [] : [[key, value]]);

const oneOf =
  (...names: readonly string[]): Parameter =>
  (key, value) => {
    if (!names.includes(value)) throw invalid(`unsupported ${key} value '${value}' is requested`);
    return [[key, value]];
  };

const named =
  (option: string, parameter: Parameter): Parameter =>
  (key, value, model) =>
    parameter(key, value, model).map(([, found]) => [option, found] as const);

/** Converts a path, which must be relative and inside the model's directory. A model must not access other files. */
const ownPath: Parameter = (key, value, { name }) => {
  const segments = value.split("/");
  if (value === "" || value.startsWith("/") || segments.includes("..") || value.includes("\0"))
    throw invalid(
      `parameter '${key}' of model '${name}' names '${value}'; it has to be a path from the model's directory, and to stay below it`,
    );
  return [[key, value]];
};

const ownName: Parameter = (key, value, model) => {
  if (value.includes("/")) throw invalid(`parameter '${key}' of model '${model.name}' is a file's name, not a path`);
  return ownPath(key, value, model);
};

const refused =
  (why: string): Parameter =>
  (key, _value, { name }) => {
    throw new InferenceError("UNSUPPORTED", `parameter '${key}' of model '${name}' is not served: ${why}`);
  };

const algorithms = ["EXHAUSTIVE", "HEURISTIC", "DEFAULT"] as const;
const strategies = ["kNextPowerOfTwo", "kSameAsRequested"] as const;

/**
 * Parameters of the CUDA accelerator that a configuration may set. Others are rejected, because some of the library's options are addresses
 * of functions that the library calls.
 */
const cudaParameters: Readonly<Record<string, Parameter>> = {
  cudnn_conv_algo_search: oneOf(...algorithms),
  gpu_mem_limit: complete,
  arena_extend_strategy: oneOf(...strategies),
  do_copy_in_default_stream: bool,
  use_ep_level_unified_stream: bool,
  cudnn_conv_use_max_workspace: bool,
  cudnn_conv1d_pad_to_nc1d: bool,
  enable_skip_layer_norm_strict_mode: bool,
  prefer_nhwc: bool,
  use_tf32: bool,
  fuse_conv_bias: bool,
  tunable_op_enable: bool,
  tunable_op_tuning_enable: bool,
  tunable_op_max_tuning_duration_ms: complete,
};

const precisions: Readonly<Record<string, string | null>> = {
  FP32: null,
  FP16: "trt_fp16_enable",
  BF16: "trt_bf16_enable",
  INT8: "trt_int8_enable",
};

const precision: Parameter = (_key, value) => {
  const option = Object.hasOwn(precisions, value) ? precisions[value] : undefined;
  if (option === undefined) throw invalid(`unsupported precision mode '${value}' is requested`);
  return option === null ? [] : [[option, "1"]];
};

const writesElsewhere = "it writes files where the server runs";

/** Parameters of the TensorRT accelerator, as in Triton. */
const tensorRtParameters: Readonly<Record<string, Parameter>> = {
  precision_mode: precision,
  max_workspace_size_bytes: named("trt_max_workspace_size", complete),
  int8_calibration_table_name: named("trt_int8_calibration_table_name", ownName),
  int8_use_native_calibration_table: named("trt_int8_use_native_calibration_table", bool),
  trt_max_partition_iterations: complete,
  trt_min_subgraph_size: complete,
  trt_dla_enable: bool,
  trt_dla_core: complete,
  trt_engine_cache_enable: bool,
  trt_engine_cache_path: ownPath,
  trt_engine_cache_prefix: ownName,
  trt_force_sequential_engine_build: bool,
  trt_context_memory_sharing_enable: bool,
  trt_layer_norm_fp32_fallback: bool,
  trt_timing_cache_enable: bool,
  trt_timing_cache_path: ownPath,
  trt_force_timing_cache: bool,
  trt_detailed_build_log: bool,
  trt_build_heuristics_enable: bool,
  trt_sparsity_enable: bool,
  trt_builder_optimization_level: complete,
  trt_auxiliary_streams: (key, value) => (value === "-1" ? [[key, value]] : complete(key, value, undefined as never)),
  trt_tactic_sources: asText,
  trt_profile_min_shapes: asText,
  trt_profile_max_shapes: asText,
  trt_profile_opt_shapes: asText,
  trt_cuda_graph_enable: bool,
  trt_extra_plugin_lib_paths: refused("it opens a library in a process that models share"),
  trt_dump_subgraphs: refused(writesElsewhere),
  trt_dump_ep_context_model: refused(writesElsewhere),
  trt_ep_context_file_path: refused(writesElsewhere),
  trt_ep_context_embed_mode: refused(writesElsewhere),
};

/** Options of the TensorRT provider that are paths inside the model's directory. */
export const pathOptions: ReadonlySet<string> = new Set(["trt_engine_cache_path", "trt_timing_cache_path"]);
/** Options that are valid only with a path option. Without a path, TensorRT would write files to the server's working directory. */
const needsPath = [
  ["trt_engine_cache_enable", "trt_engine_cache_path"],
  ["trt_timing_cache_enable", "trt_timing_cache_path"],
] as const;

/** Parameters of the model itself that configure the CUDA provider, in Triton's older form. Their values are numbers instead of names. */
const modelParameters: Readonly<Record<string, Parameter>> = {
  cudnn_conv_algo_search: byNumber(algorithms),
  gpu_mem_limit: complete,
  arena_extend_strategy: byNumber(strategies),
  do_copy_in_default_stream: bool,
  use_ep_level_unified_stream: bool,
};

export const cudaModelParameters: readonly string[] = Object.keys(modelParameters);

function byNumber(names: readonly string[]): Parameter {
  return (key, value) => {
    if (!/^-?\d{1,9}$/.test(value)) throw unconverted(key, value, "integral number");
    const name = names[Number(value)];
    if (name === undefined) throw invalid(`unsupported ${key} value '${value}' is requested`);
    return [[key, name]];
  };
}

/**
 * Returns the execution providers of a model on a GPU, in order of preference: TensorRT if the model requests it, then CUDA, as in Triton.
 * Throws INVALID_ARG or UNSUPPORTED with Triton's text, which names the parameter.
 */
export function providersOnGpu(config: ModelConfig, device: number): readonly ExecutionProvider[] {
  const accelerators = config.message.optimization?.executionAccelerators?.gpuExecutionAccelerator ?? [];
  const cuda = new Map<string, string>();
  const tensorRt: ExecutionProvider[] = [];
  for (const { name, parameters } of accelerators) {
    if (name === "tensorrt") {
      const options = read("TensorRT", tensorRtParameters, parameters, config);
      tensorRt.push({ name: "tensorrt", options: [...checkPaths(options), ["device_id", String(device)]] });
    } else if (name === "cuda") {
      for (const [key, value] of read("CUDA", cudaParameters, parameters, config)) cuda.set(key, value);
    } else throw invalid(`unknown Execution Accelerator '${name}' is requested`);
  }
  for (const [key, parameter] of Object.entries(modelParameters)) {
    const value = config.parameters.get(key);
    if (value === undefined) continue;
    for (const [option, found] of parameter(key, value, config)) cuda.set(option, found);
  }
  return [...tensorRt, { name: "cuda", options: [...cuda, ["device_id", String(device)]] }];
}

function read(
  accelerator: "TensorRT" | "CUDA",
  known: Readonly<Record<string, Parameter>>,
  input: Readonly<Record<string, string>>,
  config: ModelConfig,
): ExecutionProvider["options"] {
  return Object.entries(input).flatMap(([key, value]) => {
    const parameter = Object.hasOwn(known, key) ? known[key] : undefined;
    if (parameter === undefined)
      throw invalid(`unknown parameter '${key}' is provided for ${accelerator} Execution Accelerator`);
    return parameter(key, value, config);
  });
}

function checkPaths(options: ExecutionProvider["options"]): ExecutionProvider["options"] {
  const found = new Map(options);
  for (const [enable, path] of needsPath) {
    if (found.get(enable) === "1" && !found.has(path))
      throw invalid(`parameter '${enable}' needs '${path}', a directory of the model's own`);
  }
  return options;
}

function unconverted(key: string, value: string, to: string): InferenceError {
  return invalid(`failed to convert parameter '${key}' value '${value}' to ${to}`);
}

function invalid(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}
