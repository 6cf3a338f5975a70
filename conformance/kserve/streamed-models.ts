import { ensemble, python, type ModelSource, type PythonOptions, type Step, type Tensor } from "./model-source.ts";

const code: readonly Tensor[] = [["CODE", "STRING", [1]]];
const out: readonly Tensor[] = [["OUT", "STRING", [1]]];
const decoupled = "model_transaction_policy { decoupled: true }";
const streams: PythonOptions = {
  inputs: code,
  outputs: [...out, ["MORE", "INT32", [1]], ["LARGE", "INT32", [-1]]],
  more: decoupled,
};

/** Returns a step of each kind from its input tensor and its output tensor. */
const streaming = (from: string, to: string, model = "streams"): Step => ({
  model,
  inputs: { CODE: from },
  outputs: { OUT: to },
});
const evaluating = (from: string, to: string, model = "evaluates"): Step => streaming(from, to, model);
const joining = (left: string, right: string, to: string): Step => ({
  model: "joins",
  inputs: { LEFT: left, RIGHT: right },
  outputs: { OUT: to },
});
const graph = (steps: readonly Step[], more = "", outputs: readonly Tensor[] = out): ModelSource =>
  ensemble({ inputs: code, outputs, more }, steps);
const text = (...names: readonly string[]): readonly Tensor[] => names.map((name) => [name, "STRING", [1]]);

/** Ensembles with steps that send any number of responses. */
export const streamedModels = {
  streams: python("streams.py", streams),
  streams_counted: python("streams.py", streams),
  streams_batch: python("streams.py", { ...streams, more: `${decoupled} dynamic_batching { }`, batch: 2 }),
  evaluates: python("evaluates.py", { inputs: code, outputs: out }),
  evaluates_counted: python("evaluates.py", { inputs: code, outputs: out }),
  joins: python("joins.py", { inputs: text("LEFT", "RIGHT"), outputs: out }),
  many_alone: graph([streaming("CODE", "OUT")]),
  many_then: graph([streaming("CODE", "T"), evaluating("T", "OUT")]),
  then_many: graph([evaluating("CODE", "T"), streaming("T", "OUT")]),
  many_many: graph([streaming("CODE", "T"), streaming("T", "OUT")]),
  many_many_then: graph([streaming("CODE", "T"), streaming("T", "U"), evaluating("U", "OUT")]),
  /** An ensemble that is not decoupled, with a step that omits an output. */
  leaves_out: ensemble(
    {
      inputs: [["K", "INT32", [1]]],
      outputs: [
        ["FIRST", "INT32", [1]],
        ["SECOND", "INT32", [1]],
      ],
    },
    [{ model: "odd_outputs", inputs: { KIND: "K" }, outputs: { OUT: "FIRST", SECOND: "SECOND" } }],
  ),
  odd_outputs: python("odd_outputs.py", {
    inputs: [["KIND", "INT32", [1]]],
    outputs: [
      ["OUT", "INT32", [1]],
      ["SECOND", "INT32", [1]],
    ],
  }),
  many_joined: graph([
    streaming("CODE", "T"),
    evaluating("T", "U"),
    evaluating("T", "V"),
    joining("U", "V", "W"),
    joining("W", "T", "OUT"),
  ]),
  /** The tensor between the steps is an output too. */
  many_open: graph([streaming("CODE", "BETWEEN"), evaluating("BETWEEN", "OUT")], "", text("OUT", "BETWEEN")),
  /** The step that sends several responses has two outputs. */
  many_pairs: graph(
    [{ model: "streams", inputs: { CODE: "CODE" }, outputs: { OUT: "T", MORE: "N" } }, evaluating("T", "OUT")],
    "",
    [["N", "INT32", [1]], ...out],
  ),
  many_nested: graph([streaming("CODE", "T", "many_then"), evaluating("T", "OUT")]),
  nested_many: graph([evaluating("CODE", "T"), streaming("T", "OUT", "many_many")]),
  many_counted: graph([streaming("CODE", "T", "streams_counted"), evaluating("T", "OUT", "evaluates_counted")]),
  many_batch: ensemble({ inputs: code, outputs: out, batch: 2 }, [
    streaming("CODE", "T", "streams_batch"),
    evaluating("T", "OUT"),
  ]),
  says_decoupled: graph([evaluating("CODE", "OUT")], decoupled),
  says_not_decoupled: graph(
    [streaming("CODE", "T"), evaluating("T", "OUT")],
    "model_transaction_policy { decoupled: false }",
  ),
} satisfies Record<string, ModelSource>;

/** Ensembles with steps that read responses of different models, and with outputs of different models. */
export const mixedModels = {
  mixes_input: graph([streaming("CODE", "T"), joining("T", "CODE", "OUT")]),
  /** The mixing step produces no output of the ensemble. */
  mixes_within: graph([streaming("CODE", "T"), joining("T", "CODE", "W"), evaluating("W", "OUT")]),
  mixes_two: graph([streaming("CODE", "T"), streaming("CODE", "U"), joining("T", "U", "OUT")]),
  mixes_levels: graph([streaming("CODE", "T"), streaming("T", "U"), joining("T", "U", "OUT")]),
  mixes_outputs: graph(
    [streaming("CODE", "T"), evaluating("CODE", "FIRST"), evaluating("T", "OUT")],
    "",
    text("FIRST", "OUT"),
  ),
  mixes_between: graph([streaming("CODE", "T"), streaming("T", "OUT")], "", text("T", "OUT")),
} satisfies Record<string, ModelSource>;
