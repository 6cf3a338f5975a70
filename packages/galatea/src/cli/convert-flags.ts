import type { ConvertOptions } from "../app/index.ts";
import type { PlanShapes } from "@galatea/tools/conversion";
import { UsageError, type Flag, type ParsedFlags } from "./flags.ts";

export const convertFlags: readonly Flag[] = [
  { name: "repository", kind: "string", about: "model repository to add the model to, with its config.pbtxt" },
  { name: "name", kind: "string", about: "name of the model there" },
  {
    name: "max-batch-size",
    kind: "integer",
    min: 1,
    default: 16,
    about: "of the configuration that --repository writes, and the largest batch of a plan",
  },
  { name: "dtype", kind: "string", default: "float32", about: "numbers to compute in: float32 or float16" },
  {
    name: "operators",
    kind: "string",
    default: "fused",
    about: "fused: ONNX Runtime's own, the fastest on a CPU; standard: ONNX's alone, which other programs read",
  },
  { name: "opset", kind: "integer", min: 17, max: 21, default: 17, about: "version of ONNX's operators" },
  { name: "integers", kind: "string", default: "int64", about: "datatype of the inputs: int64 or int32" },
  { name: "one-segment", kind: "switch", about: "sentences have one segment: no input token_type_ids" },
  { name: "pooler", kind: "switch", about: "answer pooler_output as well" },
  { name: "rename", kind: "string", repeatable: true, about: "input or output to call otherwise: input_ids=token_ids" },
  { name: "plan", kind: "switch", about: "with --repository: build a TensorRT plan; needs TensorRT and a GPU" },
  {
    name: "max-tokens",
    kind: "integer",
    min: 1,
    about: "longest sentence of a plan (default: what the encoder takes)",
  },
  { name: "min-shapes", kind: "string", about: "smallest inputs of the plan of an ONNX file: input:1x3x224x224" },
  { name: "opt-shapes", kind: "string", about: "inputs that it is the fastest for" },
  { name: "max-shapes", kind: "string", about: "largest inputs" },
];

const words = {
  dtype: { float32: "FLOAT", float16: "FLOAT16" },
  operators: { fused: "fused", standard: "standard" },
  integers: { int64: "INT64", int32: "INT32" },
} as const;

export function convertOptions({ values, lists, given, positionals }: ParsedFlags): ConvertOptions {
  const [source, target] = positionals;
  if (source === undefined)
    throw new UsageError("galatea convert takes a directory with config.json and weights, or an ONNX file");
  const to = destination(target, values);
  const isPlan = given.has("plan") || (to.kind === "file" && to.path.endsWith(".plan"));
  return {
    source,
    to,
    plan: isPlan
      ? { shapes: planShapes(values), tokensMax: (values.get("max-tokens") as number | undefined) ?? null }
      : null,
    batchMax: values.get("max-batch-size") as number,
    graph: {
      weights: chosen("dtype", values),
      operators: chosen("operators", values),
      integers: chosen("integers", values),
      opset: values.get("opset") as number,
      oneSegment: given.has("one-segment"),
      pooler: given.has("pooler"),
      names: new Map((lists.get("rename") ?? []).map(renaming)),
    },
  };
}

function destination(target: string | undefined, values: ParsedFlags["values"]): ConvertOptions["to"] {
  const repository = values.get("repository") as string | undefined;
  const name = values.get("name") as string | undefined;
  if (repository === undefined && name === undefined && target !== undefined) {
    if (!/\.(onnx|plan)$/.test(target))
      throw new UsageError(`galatea convert writes .onnx and .plan files, and not '${target}'`);
    return { kind: "file", path: target };
  }
  if (repository === undefined || name === undefined || target !== undefined)
    throw new UsageError("galatea convert takes either a file to write or both --repository and --name");
  return { kind: "repository", repository, name };
}

function planShapes(values: ParsedFlags["values"]): PlanShapes | null {
  const [min, opt, max] = ["min-shapes", "opt-shapes", "max-shapes"].map(
    (name) => values.get(name) as string | undefined,
  );
  if (min === undefined && opt === undefined && max === undefined) return null;
  if (min === undefined || opt === undefined || max === undefined)
    throw new UsageError("--min-shapes, --opt-shapes and --max-shapes are given together");
  return { min, opt, max };
}

function chosen<Name extends keyof typeof words>(
  name: Name,
  values: ParsedFlags["values"],
): (typeof words)[Name][keyof (typeof words)[Name]] {
  const value = values.get(name) as string;
  const known = words[name];
  if (!Object.hasOwn(known, value))
    throw new UsageError(`--${name} is one of ${Object.keys(known).join(", ")}, and not '${value}'`);
  return known[value as keyof typeof known];
}

function renaming(text: string): readonly [string, string] {
  const [name = "", other = "", ...more] = text.split("=");
  if (name === "" || other === "" || more.length > 0)
    throw new UsageError(`--rename takes <name>=<other name>, and not '${text}'`);
  return [name, other];
}
