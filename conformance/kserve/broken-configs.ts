import type { ModelSource } from "./model-source.ts";

/** config.pbtxt broken in many ways; each is a model directory with a working program. */
export function brokenConfigs(): Record<string, ModelSource> {
  const good = 'backend: "python"\n';
  const input = (text: string) =>
    `${good}max_batch_size: 0\ninput { ${text} }\noutput { name: "OUTPUT0" data_type: TYPE_FP32 dims: [1] }\n`;
  const output = (text: string) =>
    `${good}input { name: "INPUT0" data_type: TYPE_FP32 dims: [1] }\noutput { ${text} }\n`;
  const inputs =
    'input { name: "A" data_type: TYPE_FP32 dims: [1] }\noutput { name: "B" data_type: TYPE_FP32 dims: [1] }\n';
  const steps = (text: string) => `platform: "ensemble"\n${inputs}ensemble_scheduling { ${text} }\n`;
  const texts: Record<string, string> = {
    syntax: "name: \n",
    unknown_field: `${good}colour: "red"\n`,
    unclosed: `${good}input {\n`,
    wrong_type: `${good}max_batch_size: "eight"\n`,
    wrong_enum: input('name: "INPUT0" data_type: TYPE_FLOAT dims: [1]'),
    wrong_name: `name: "another"\n${good}${inputs}`,
    no_backend: inputs,
    unknown_backend: `backend: "nonesuch"\n${inputs}`,
    platform_only: `platform: "nonesuch_plan"\n${inputs}`,
    negative_batch: `${good}max_batch_size: -1\n${inputs}`,
    input_without_name: input("data_type: TYPE_FP32 dims: [1]"),
    input_without_type: input('name: "INPUT0" dims: [1]'),
    input_without_dims: input('name: "INPUT0" data_type: TYPE_FP32'),
    input_zero_dim: input('name: "INPUT0" data_type: TYPE_FP32 dims: [0]'),
    input_negative_dim: input('name: "INPUT0" data_type: TYPE_FP32 dims: [-2]'),
    input_empty_reshape: input('name: "INPUT0" data_type: TYPE_FP32 dims: [1] reshape { shape: [] }'),
    input_reshape_size: input('name: "INPUT0" data_type: TYPE_FP32 dims: [4] reshape { shape: [3] }'),
    input_reshape_variable: input('name: "INPUT0" data_type: TYPE_FP32 dims: [-1, 2] reshape { shape: [2, 2] }'),
    input_nhwc: input('name: "INPUT0" data_type: TYPE_FP32 dims: [4] format: FORMAT_NHWC'),
    input_shape_tensor: input('name: "INPUT0" data_type: TYPE_INT32 dims: [4] is_shape_tensor: true'),
    output_without_name: output("data_type: TYPE_FP32 dims: [1]"),
    output_without_type: output('name: "OUTPUT0" dims: [1]'),
    output_without_dims: output('name: "OUTPUT0" data_type: TYPE_FP32'),
    preferred_too_large: `${good}max_batch_size: 4\n${inputs}dynamic_batching { preferred_batch_size: [8] }\n`,
    preferred_zero: `${good}max_batch_size: 4\n${inputs}dynamic_batching { preferred_batch_size: [0] }\n`,
    priority_default: `${good}max_batch_size: 4\n${inputs}dynamic_batching { priority_levels: 2 }\n`,
    priority_policy: `${good}max_batch_size: 4\n${inputs}dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 5 value { } } }\n`,
    priority_ordering: `${good}max_batch_size: 4\n${inputs}dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }\n`,
    gpu_instances: `${good}${inputs}instance_group { kind: KIND_CPU gpus: [0] }\n`,
    platform_of_another_backend: `${good}platform: "onnxruntime_onnx"\n${inputs}`,
    platform_python_alone: `platform: "python"\n${inputs}`,
    platform_nobody_knows: `${good}platform: "nonesuch"\n${inputs}`,
    input_twice: `${good}${inputs}input { name: "A" data_type: TYPE_FP32 dims: [1] }\n`,
    output_twice: `${good}${inputs}output { name: "B" data_type: TYPE_FP32 dims: [1] }\n`,
    ensemble_without_steps: `platform: "ensemble"\n${inputs}`,
    ensemble_empty_steps: `platform: "ensemble"\n${inputs}ensemble_scheduling { }\n`,
    ensemble_with_backend: `platform: "ensemble"\nbackend: "python"\n${inputs}ensemble_scheduling { step { model_name: "add_sub" model_version: -1 } }\n`,
    ensemble_step_without_model: steps(
      'step { model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_step_without_input: steps(
      'step { model_name: "add_sub" model_version: -1 output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_step_without_output: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } }',
    ),
    ensemble_unwritten_output: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "C" } }',
    ),
    ensemble_written_twice: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT1" value: "A" } output_map { key: "OUTPUT0" value: "B" } output_map { key: "OUTPUT1" value: "B" } }',
    ),
    ensemble_unmapped_input: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_unknown_input: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT7" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_shapes: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT1" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_with_instances: `${steps('step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "B" } }')}instance_group { count: 2 }\n`,
  };
  return Object.fromEntries(
    Object.entries(texts).map(([name, config]) => [
      `broken_${name}`,
      { config, program: "add_sub.py" } satisfies ModelSource,
    ]),
  );
}
