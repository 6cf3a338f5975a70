import type { Case, Comparison } from "../case.ts";
import { modelInfer, modelStream, rawInput, rpc } from "../grpc-messages.ts";
import { differs, get, infer, input, post, strings } from "../requests.ts";
import { mixedModels } from "../streamed-models.ts";

const bool = (value: boolean) => ({ parameterChoice: { case: "boolParam" as const, value } });
const wantsEmpty = { parameters: { triton_enable_empty_final_response: bool(true) } };
type Code = string | readonly string[];

const run = (modelName: string, code: Code, more: object = {}) => ({
  modelName,
  id: "1",
  inputs: [rawInput("CODE", "BYTES", [1])],
  rawInputContents: [strings(typeof code === "string" ? code : code.join("\n"))],
  ...more,
});

const asked = (name: string, ...steps: Case["steps"]): Case => ({
  name: `streamed ensemble: ${name}`,
  fixture: "streamed",
  steps,
});

/** Returns a case with one request on its own stream. Triton prints the maps of ensembles' responses in any order. */
const one = (name: string, modelName: string, code: Code, more: object = {}, compare: Comparison = "map") =>
  asked(name, modelStream([run(modelName, code, more)], compare));

/** Returns code that sends responses with these values: a list of Python statements for `evaluates`. */
const said = (...values: readonly string[]) => values.map((value) => `sender.send(answer(${JSON.stringify(value)}))`);
/** A pause, so that the later steps of all earlier responses have ended before the final flag. */
const settled = "time.sleep(0.3)";
const final = "sender.send(flags=FINAL)";
const last = (value: string) => `sender.send(answer(${JSON.stringify(value)}), FINAL)`;
/** Returns an expression for `evaluates` that returns the text unchanged, which a decoupled step then runs. */
const gives = (code: string) =>
  `run:out = pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([${JSON.stringify(code)}], dtype=object))])`;
const waits = "run:import time; time.sleep(0.2); out = 'waited'";
const failing = "run:out = pb_utils.InferenceResponse(error=pb_utils.TritonError('no'))";
const empty = "run:out = pb_utils.InferenceResponse([])";

/** Returns a case without a response from Triton: it waits for both outputs although only one is requested. */
const subset = (name: string, output: string, contents: readonly string[]): Case =>
  asked(
    name,
    differs(
      modelStream([run("many_open", [...said("1", "2 + 3"), settled, final], { outputs: [{ name: output }] })], "map"),
      { row: "ensemble-output-subset", status: 200, includes: contents },
    ),
  );

const generated = (name: string, verb: "generate" | "generate_stream", model: string, code: Code): Case =>
  asked(
    name,
    post(`/v2/models/${model}/${verb}`, { CODE: typeof code === "string" ? code : code.join("\n") }, "bytes"),
  );

/** Returns a case in which a model calls the ensemble and returns its responses. */
const called = (name: string, model: string, program: Code): Case => {
  const written = JSON.stringify(typeof program === "string" ? program : program.join("\n"));
  const code = [
    "run:def told(response):",
    "  if response.has_error(): return response.error().message()",
    "  return [str(tensor.as_numpy()[0]) for tensor in response.output_tensors()]",
    `inputs = [pb_utils.Tensor('CODE', np.array([${written}], dtype=object))]`,
    `asked = pb_utils.InferenceRequest(model_name='${model}', requested_output_names=['OUT'], inputs=inputs)`,
    "out = [told(response) for response in asked.exec(decoupled=True)]",
  ];
  return asked(name, infer("evaluates_counted", { inputs: [input("CODE", "BYTES", [1], [code.join("\n")])] }));
};

/** Ensembles with decoupled steps: later steps run once for each response. */
export const grpcEnsembles: readonly Case[] = [
  one("a decoupled model alone", "many_alone", [...said("1", "2", "3"), settled, final]),
  one(
    "only a decoupled model, an empty final response is requested",
    "many_alone",
    [...said("1", "2"), settled, final],
    wantsEmpty,
  ),
  one("a decoupled model alone, the last answer with the flag", "many_alone", [...said("1"), last("2")], wantsEmpty),
  one("a step for each answer", "many_then", [...said("1", "2 + 3", "'x'"), settled, final]),
  one(
    "a step for each answer, an empty final response is requested",
    "many_then",
    [...said("1", "2"), settled, final],
    wantsEmpty,
  ),
  one("the last answer with the flag", "many_then", [...said("1"), settled, last("2")], wantsEmpty),
  asked(
    "the flag while the last answer's step runs",
    differs(modelStream([run("many_then", [...said(waits), final], wantsEmpty)], "map"), {
      row: "final-flag-apart",
      status: 200,
      includes: [
        '{"infer_response":{"model_name":"many_then","id":"1","parameters":{"triton_final_response":{"bool_param":true}}}}',
      ],
    }),
  ),
  one("one answer", "many_then", last("1")),
  one("no answer", "many_then", final),
  one("no answer, an empty final response is requested", "many_then", final, wantsEmpty),
  one("a model before the decoupled one", "then_many", gives("sender.send(answer(7), FINAL)")),
  one("two decoupled models, one after the other", "many_many", [
    ...said("sender.send(answer('a')); sender.send(answer('b')); time.sleep(0.1); sender.send(flags=FINAL)"),
    settled,
    ...said("sender.send(answer('c')); time.sleep(0.1); sender.send(flags=FINAL)"),
    settled,
    final,
  ]),
  one("two decoupled models, the first sends no answer", "many_many", final, wantsEmpty),
  one(
    "two decoupled models, the second sends no answer",
    "many_many",
    [...said(final, final), settled, final],
    wantsEmpty,
  ),
  one("two decoupled models and a step", "many_many_then", [
    ...said("sender.send(answer('1')); sender.send(answer('2')); time.sleep(0.2); sender.send(flags=FINAL)"),
    settled,
    settled,
    final,
  ]),
  one("branches that join", "many_joined", [...said("1", "2 + 3"), settled, final]),
  one(
    "the tensor between the steps is an output",
    "many_open",
    [...said("1", "2 + 3"), settled, final],
    {},
    "ensemble",
  ),
  subset("the tensor between the steps is the only requested output", "BETWEEN", ["AQAAADE=", "BQAAADIgKyAz"]),
  subset("the last tensor is the only requested output", "OUT", ["AQAAADE=", "AQAAADU="]),
  one(
    "two outputs of the decoupled model",
    "many_pairs",
    [
      "for i in range(2):",
      "  tensors = [pb_utils.Tensor('OUT', np.array([str(i)], dtype=object)), pb_utils.Tensor('MORE', np.array([i], dtype=np.int32))]",
      "  sender.send(pb_utils.InferenceResponse(tensors))",
      settled,
      final,
    ],
    {},
    "ensemble",
  ),
  one("one of two outputs left out", "many_pairs", [...said("1"), settled, final], wantsEmpty),
  one("an answer without outputs", "many_then", [
    "sender.send(pb_utils.InferenceResponse([]))",
    settled,
    ...said("1"),
    settled,
    final,
  ]),
  one("an answer without outputs, alone", "many_alone", [
    "sender.send(pb_utils.InferenceResponse([]))",
    settled,
    ...said("1"),
    settled,
    final,
  ]),
  one("a step that responds to an answer without outputs", "many_then", [...said("1", empty, "2"), settled, final]),
  one("an ensemble of an ensemble", "many_nested", [...said("1", "2 + 3"), settled, final], wantsEmpty),
  one(
    "an ensemble with two decoupled models behind a step",
    "nested_many",
    gives(
      [
        "for i in range(2): sender.send(answer('sender.send(answer(7)); time.sleep(0.1); sender.send(flags=FINAL)'))",
        "time.sleep(0.5)",
        final,
      ].join("\n"),
    ),
  ),
  one("an error of the decoupled model", "many_then", ["sender.send(error('no'))", settled, final]),
  one("an error of the decoupled model, with the flag", "many_then", "sender.send(error('no'), FINAL)", wantsEmpty),
  one("an error of the decoupled model between answers", "many_then", [
    ...said("1"),
    settled,
    "sender.send(error('no'))",
    settled,
    ...said("2"),
    settled,
    final,
  ]),
  one("an exception of the decoupled model", "many_then", "raise ValueError('no')"),
  one("an exception of the decoupled model after an answer", "many_then", [
    ...said("1"),
    settled,
    "raise ValueError('no')",
  ]),
  one("an error of a later step", "many_then", [...said("1", failing, "2"), settled, final], wantsEmpty),
  one("an error of a later step while the decoupled model sends answers", "many_then", [
    ...said(failing),
    settled,
    ...said("1"),
    settled,
    final,
  ]),
  one("an error of the second decoupled model", "many_many", [
    ...said("sender.send(answer('a')); time.sleep(0.1); sender.send(error('no'), FINAL)"),
    settled,
    ...said(last("b")),
    settled,
    final,
  ]),
  one("a step that is given the wrong shape", "many_then", [
    "sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array(['1', '2'], dtype=object))]))",
    settled,
    ...said("1"),
    final,
  ]),
  asked(
    "two requests on one stream",
    modelStream(
      [
        run("many_then", ["time.sleep(0.3)", ...said("1"), settled, final]),
        run("joins", "", {
          id: "2",
          inputs: [rawInput("LEFT", "BYTES", [1]), rawInput("RIGHT", "BYTES", [1])],
          rawInputContents: [strings("a"), strings("b")],
        }),
      ],
      "map",
    ),
  ),
  asked(
    "a batch",
    modelStream(
      [
        {
          modelName: "many_batch",
          id: "1",
          inputs: [rawInput("CODE", "BYTES", [1, 1])],
          rawInputContents: [strings([...said("1", "2"), settled, final].join("\n"))],
        },
      ],
      "map",
    ),
  ),
  one("decoupled in its configuration alone", "says_decoupled", "7", wantsEmpty),
  asked(
    "decoupled in its configuration alone, over HTTP",
    infer("says_decoupled", { inputs: [input("CODE", "BYTES", [1], ["7"])] }, "ensemble"),
  ),
  asked("decoupled in its configuration alone, one request", modelInfer(run("says_decoupled", "7"), "map")),
  asked("the configuration of a decoupled ensemble", get("/v2/models/says_decoupled/config", "map")),
  one("not decoupled in its configuration", "says_not_decoupled", [...said("1", "2"), settled, final]),
  asked("the configuration of an ensemble that is not decoupled", get("/v2/models/says_not_decoupled/config", "map")),
  asked(
    "the configuration of an ensemble without a transaction policy",
    get("/v2/models/many_then/config", "map"),
    get("/v2/models/many_then"),
  ),
  asked("an ordinary request over HTTP", infer("many_then", { inputs: [input("CODE", "BYTES", [1], ["x"])] }, "error")),
  asked("an ordinary request over gRPC", modelInfer(run("many_then", final), "error")),
  asked(
    "a step whose response lacks one of two outputs, in an ensemble that is not decoupled",
    infer("leaves_out", { inputs: [input("K", "INT32", [1], [2])] }, "ensemble"),
  ),
  ...(["generate", "generate_stream"] as const).flatMap((verb) => [
    generated(`${verb}: one answer`, verb, "many_then", last("2 + 3")),
    generated(`${verb}: several answers`, verb, "many_then", [...said("1", "2 + 3"), settled, final]),
    generated(`${verb}: no answer`, verb, "many_then", final),
    generated(`${verb}: an error of a later step`, verb, "many_then", [...said("1", failing), settled, final]),
    generated(`${verb}: two decoupled models`, verb, "many_many", last(last("7"))),
  ]),
  asked(
    "statistics",
    modelStream([run("many_counted", [...said("1", "2"), settled, final])], "map"),
    modelStream([run("many_counted", final)], "map"),
    ...["many_counted", "streams_counted", "evaluates_counted"].map((name) =>
      get(`/v2/models/${name}/stats`, "statistics"),
    ),
    rpc("modelStatistics", { name: "many_counted", version: "" }, "statistics"),
  ),
  // The calling model was counted in the statistics above.
  called("called by a model", "many_then", [...said("1", "2 + 3"), settled, final]),
  called("called by a model, two decoupled models", "many_many", last(last("7"))),
  called("called by a model, no answer", "many_then", final),
  ...Object.keys(mixedModels).map((name) =>
    asked(`refused: ${name}`, post(`/v2/repository/models/${name}/load`, undefined, "bytes")),
  ),
];
