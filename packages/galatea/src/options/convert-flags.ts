import type { GraphOptions } from "@galatea/tools/conversion";
import { choiceFlag, integerFlag, parsedListFlag, switchFlag, textFlag, UsageError } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";

const weights = { float32: "FLOAT", float16: "FLOAT16" } as const;
const integers = { int64: "INT64", int32: "INT32" } as const;

/** The flags of `galatea convert`. */
export const convertFlags = {
  repository: textFlag({ about: "model repository to add the model to, with its config.pbtxt" }),
  name: textFlag({ about: "name of the model there" }),
  "max-batch-size": integerFlag({
    default: 16,
    min: 1,
    about: "max_batch_size of the configuration that --repository writes",
  }),
  dtype: choiceFlag(["float32", "float16"], {
    default: "float32",
    about: "numbers to compute in",
  }),
  operators: choiceFlag(["fused", "standard"], {
    default: "fused",
    about:
      "fused: ONNX Runtime's operators, the fastest on a CPU; standard: only ONNX operators, which other programs can read",
  }),
  opset: integerFlag({ default: 17, min: 17, max: 21, about: "version of ONNX's operators" }),
  integers: choiceFlag(["int64", "int32"], { default: "int64", about: "datatype of the inputs" }),
  "one-segment": switchFlag("sentences have one segment: no input token_type_ids"),
  pooler: switchFlag("add the output pooler_output"),
  rename: parsedListFlag({ about: "renames an input or output: input_ids=token_ids" }, (texts) => texts.map(renaming)),
};

type ConvertFlagOptions = OptionsOf<typeof convertFlags>;

/** The options of `galatea convert`. */
export interface ConvertOptions {
  /** The directory that contains config.json and the weights. */
  readonly source: string;
  readonly graph: GraphOptions;
  readonly batchMax: number;
  readonly to:
    | { readonly kind: "file"; readonly path: string }
    | { readonly kind: "repository"; readonly repository: string; readonly name: string };
}

export function convertOptions({ options, positionals: [source, target] }: Parsed<ConvertFlagOptions>): ConvertOptions {
  if (source === undefined) throw new UsageError("galatea convert takes a directory with config.json and weights");
  return {
    source,
    to: destination(target, options),
    batchMax: options.maxBatchSize,
    graph: {
      weights: weights[options.dtype],
      operators: options.operators,
      integers: integers[options.integers],
      opset: options.opset,
      oneSegment: options.oneSegment,
      pooler: options.pooler,
      names: new Map(options.rename),
    },
  };
}

function destination(target: string | undefined, { repository, name }: ConvertFlagOptions): ConvertOptions["to"] {
  if (repository === null && name === null && target !== undefined) {
    if (!target.endsWith(".onnx")) throw new UsageError(`galatea convert writes .onnx files, not '${target}'`);
    return { kind: "file", path: target };
  }
  if (repository === null || name === null || target !== undefined)
    throw new UsageError("galatea convert takes either a file to write or both --repository and --name");
  return { kind: "repository", repository, name };
}

function renaming(text: string): readonly [string, string] {
  const [name = "", other = "", ...more] = text.split("=");
  if (name === "" || other === "" || more.length > 0)
    throw new UsageError(`--rename takes <name>=<other name>, not '${text}'`);
  return [name, other];
}
