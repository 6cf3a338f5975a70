import { ensemble, python, type ModelSource } from "./model-source.ts";

interface WarmUp {
  readonly data: string;
  readonly type?: string;
  readonly dims?: string;
  readonly batch?: number;
  readonly count?: number;
  readonly input?: string;
}

const sample = (name: string, warm: WarmUp) =>
  `model_warmup { name: "${name}" batch_size: ${warm.batch ?? 1} count: ${warm.count ?? 0} inputs { key: "${warm.input ?? "IN"}" value { ` +
  `${warm.type === "" ? "" : `data_type: TYPE_${warm.type ?? "FP32"}`} dims: ${warm.dims ?? "[2]"} ${warm.data} } } }\n`;

const warmed = (
  samples: string,
  rest: Partial<ModelSource> & { readonly type?: string; readonly batch?: number; readonly more?: string } = {},
): ModelSource =>
  python(
    "warm_up.py",
    {
      inputs: [["IN", rest.type ?? "FP32", [2], rest.more ?? ""]],
      outputs: [["SEEN", "STRING", [1]]],
      batch: rest.batch ?? 4,
      more: samples,
    },
    rest.files === undefined ? {} : { files: rest.files },
  );

const zero = "zero_data: true";
const file = 'input_data_file: "sample"';
/** Sample files: the bytes of two FP32, of two BYTES elements, and of less than two FP32. */
const floatsFile = { "warmup/sample": "AAAABBBB" };
const stringsFile = { "warmup/sample": "\x02\0\0\0ab\x01\0\0\0c" };

/** Models with a warm-up; those that fail to load come last. */
export const warmModels = {
  zeros: warmed(sample("s", { data: zero })),
  zeros_denied: warmed(sample("s", { data: "zero_data: false" })),
  batch_of_three: warmed(sample("s", { data: zero, batch: 3 })),
  batch_of_none: warmed(sample("s", { data: zero, batch: 0 })),
  counted: warmed(sample("s", { data: zero, batch: 2, count: 3 })),
  two_samples: warmed(sample("a", { data: zero }) + sample("b", { data: file, batch: 2 }), { files: floatsFile }),
  without_batching: warmed(sample("s", { data: zero }), { batch: 0 }),
  with_reshape: warmed(sample("s", { data: zero }), { more: "reshape { shape: [1, 2] }" }),
  longer_file: warmed(sample("s", { data: file }), { files: { "warmup/sample": "AAAABBBBCCCC" } }),
  empty_strings: warmed(sample("s", { data: zero, type: "STRING" }), { type: "STRING" }),
  random_strings: warmed(sample("s", { data: "random_data: true", type: "STRING" }), { type: "STRING" }),
  strings_of_file: warmed(sample("s", { data: file, type: "STRING" }), { type: "STRING", files: stringsFile }),
  failing: warmed(sample("a", { data: zero, batch: 2 }) + sample("b", { data: zero })),
  shorter_file: warmed(sample("s", { data: file }), { files: { "warmup/sample": "AAAA" } }),
  no_file: warmed(sample("s", { data: file })),
  file_elsewhere: warmed(sample("s", { data: 'input_data_file: "../../nobody"' })),
  no_data: warmed(sample("s", { data: "" })),
  no_datatype: warmed(sample("s", { data: zero, type: "" })),
  another_datatype: warmed(sample("s", { data: zero, type: "INT32" })),
  another_shape: warmed(sample("s", { data: zero, dims: "[3]" })),
  variable_shape: warmed(sample("s", { data: zero, dims: "[-1]" })),
  too_large: warmed(sample("s", { data: zero, batch: 8 })),
  no_inputs: warmed('model_warmup { name: "s" batch_size: 1 }\n'),
  ensemble: ensemble(
    { inputs: [["A", "FP32", [2]]], outputs: [["B", "STRING", [1]]], more: sample("s", { data: zero, input: "A" }) },
    [{ model: "without_batching", inputs: { IN: "A" }, outputs: { SEEN: "B" } }],
  ),
} satisfies Record<string, ModelSource>;
