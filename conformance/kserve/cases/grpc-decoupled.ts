import type { Case } from "../case.ts";
import { modelInfer, modelStream, rawInput } from "../grpc-messages.ts";
import { differs, get, infer, input, newer, strings } from "../requests.ts";

const bool = (value: boolean) => ({ parameterChoice: { case: "boolParam" as const, value } });

/** Returns a request whose code the model runs. */
const run = (id: string, code: string | readonly string[], more: object = {}) => ({
  modelName: "streams",
  id,
  inputs: [rawInput("CODE", "BYTES", [1])],
  rawInputContents: [strings(typeof code === "string" ? code : code.join("\n"))],
  ...more,
});
const wantsEmpty = { parameters: { triton_enable_empty_final_response: bool(true) } };
const batched = { modelName: "streams_batch", inputs: [rawInput("CODE", "BYTES", [1, 1])] };

const stream = (name: string, ...steps: Case["steps"]): Case => ({
  name: `decoupled: ${name}`,
  fixture: "main",
  steps,
});

/** Returns a case with one request on its own stream. */
const one = (name: string, code: string | readonly string[], more: object = {}) =>
  stream(name, modelStream([run("1", code, more)]));

/** Returns a case in which Triton's stream never ends. */
const dropped = (name: string, code: string | readonly string[]) =>
  stream(
    name,
    differs(modelStream([run("1", code)]), {
      row: "decoupled-dropped",
      status: 200,
      includes: [
        "The response sender went away without having sent the final flag.",
        '"triton_final_response":{"bool_param":true}',
      ],
      notAsked: true,
    }),
  );

/** Returns code that sends the exception of a statement as a response. */
const raised = (statement: string) => [
  "said = 'nothing'",
  "try:",
  `  ${statement}`,
  "except Exception as e:",
  "  said = type(e).__name__ + ': ' + str(e)",
];
const later = (...statements: readonly string[]) => [
  "def later(sender=sender, answer=answer, error=error, FINAL=FINAL, time=time):",
  "  time.sleep(0.05)",
  ...statements.map((statement) => `  ${statement}`),
  "threading.Thread(target=later).start()",
];

const three = "for i in range(3): sender.send(answer(i))";
const final = "sender.send(flags=FINAL)";

/** Models that send any number of responses to a request. */
export const grpcDecoupled: readonly Case[] = [
  one("several answers", [three, final]),
  one("the last answer with the final flag", [three, "sender.send(answer(3), FINAL)"]),
  one(
    "the last answer with the final flag, an empty final response is requested",
    [three, "sender.send(answer(3), FINAL)"],
    wantsEmpty,
  ),
  one("no answer", final),
  one("no answer, an empty final response is requested", final, wantsEmpty),
  one("an empty final response is requested", [three, final], wantsEmpty),
  one("an empty final response is requested without an id", [three, final], { ...wantsEmpty, id: "" }),
  one("one answer", "sender.send(answer(1), flags=FINAL)"),
  one("an error between answers", [
    "sender.send(answer(1))",
    "sender.send(error('no'))",
    "sender.send(answer(2), FINAL)",
  ]),
  one("an error with the final flag", ["sender.send(answer(1))", "sender.send(error('no'), FINAL)"]),
  one(
    "an error with the final flag, an empty final response is requested",
    "sender.send(error('no'), FINAL)",
    wantsEmpty,
  ),
  one("an error alone, then the flag", ["sender.send(error('no'))", final]),
  one("an answer without outputs", ["sender.send(pb_utils.InferenceResponse([]))", final]),
  stream(
    "parameters of answers",
    newer(
      modelStream([run("1", ["sender.send(pb_utils.InferenceResponse([], parameters={'a': 'b'}))", final])]),
      200,
      '"a":{"string_param":"b"}',
    ),
  ),
  one("answers from a thread after execute returned", later(three, final)),
  one("the flag from a thread after execute returned", ["sender.send(answer(1))", ...later(final)]),
  one("two senders of one request", ["sender.send(answer(1))", "request.get_response_sender().send(answer(2), FINAL)"]),
  one("an answer after the final flag", [
    "sender.send(answer(1))",
    "model.kept['other'] = 1",
    ...raised("sender.send(answer(1), FINAL); sender.send(answer(2))"),
    "model.kept['said'] = said",
  ]),
  stream(
    "the error for an answer after the final flag",
    modelStream([
      run("1", [...raised("sender.send(answer(1), FINAL); sender.send(answer(2))"), "model.kept['a'] = said"]),
    ]),
    modelStream([run("2", ["sender.send(answer(model.kept['a']), FINAL)"])]),
  ),
  stream(
    "the error for a second final flag",
    modelStream([
      run("1", [...raised("sender.send(flags=FINAL); sender.send(flags=FINAL)"), "model.kept['b'] = said"]),
    ]),
    modelStream([run("2", ["sender.send(answer(model.kept['b']), FINAL)"])]),
  ),
  one("an unknown flag", [...raised("sender.send(answer(1), 7)"), "sender.send(answer(said), FINAL)"]),
  one("neither answer nor flag", [...raised("sender.send()"), "sender.send(answer(said), FINAL)"]),
  one(
    "a sender that returns whether its client is disconnected",
    "sender.send(answer([sender.is_cancelled(), request.is_cancelled()]), FINAL)",
  ),
  one("execute returns a list of None", ["sender.send(answer(1))", "result = [None]"]),
  one("execute returns a list of None after the final flag", ["sender.send(answer(1), FINAL)", "result = [None]"]),
  one("execute returns an answer", ["result = [answer(1)]"]),
  one("execute returns a text", ["result = 'x'"]),
  one("execute raises", ["raise ValueError('no')"]),
  one("execute raises, an empty final response is requested", ["raise ValueError('no')"], wantsEmpty),
  one("execute raises after an answer", ["sender.send(answer(1))", "raise ValueError('no')"]),
  one("execute raises after the final flag", ["sender.send(answer(1), FINAL)", "raise ValueError('no')"]),
  dropped("a sender that is dropped", "del sender"),
  dropped("a sender that is dropped after an answer", ["sender.send(answer(1))", "del sender"]),
  stream(
    "two requests whose answers interleave",
    modelStream([
      run("1", [
        "model.kept['go'] = go = threading.Event()",
        "model.kept['gone'] = gone = threading.Event()",
        "sender.send(answer('1a'))",
        "def later(sender=sender, answer=answer, FINAL=FINAL, go=go, gone=gone):",
        "  go.wait(20)",
        "  sender.send(answer('1b'), FINAL)",
        "  gone.set()",
        "threading.Thread(target=later).start()",
      ]),
      run("2", [
        "sender.send(answer('2a'))",
        "model.kept['go'].set()",
        "model.kept['gone'].wait(20)",
        "sender.send(answer('2b'), FINAL)",
      ]),
    ]),
  ),
  stream(
    "answers of a batch",
    modelStream([
      run("1", ["sender.send(answer(len(requests)))", final], batched),
      run("2", ["sender.send(answer(len(requests)))", "sender.send(error('no'))", final], batched),
    ]),
  ),
  stream(
    "a request to an ordinary model after one to a decoupled model",
    modelStream([run("1", [three, final]), run("2", "sender.send(answer(1), FINAL)")]),
  ),
  one(
    "one requested output",
    [
      "sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array(['a'], dtype=object)), pb_utils.Tensor('MORE', np.array([1], dtype=np.int32))]), FINAL)",
    ],
    {
      outputs: [{ name: "MORE" }],
    },
  ),
  one("large answers", [
    "for i in range(3): sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('LARGE', np.full([20000], i, dtype=np.int32))]))",
    final,
  ]),
  stream("an ordinary request over HTTP", infer("streams", { inputs: [input("CODE", "BYTES", [1], ["x"])] }, "error")),
  stream("an asynchronous execute", modelStream([run("1", "3", { modelName: "streams_async" })])),
  stream(
    "two asynchronous executes at once",
    modelStream(
      ["wait", "go"].map((code, index) => run(String(index + 1), code, { modelName: "streams_async", ...wantsEmpty })),
    ),
  ),
  stream("an ordinary request over gRPC", modelInfer(run("1", final), "error")),
  stream("metadata", get("/v2/models/streams"), get("/v2/models/streams/config", "map")),
  stream(
    "statistics",
    modelStream([run("1", [three, final], { modelName: "streams_counted" })]),
    modelStream([run("2", final, { modelName: "streams_counted" })]),
    modelStream([run("3", "raise ValueError('no')", { modelName: "streams_counted" })]),
    modelStream([
      run("4", ["sender.send(answer(1))", "sender.send(error('no'), FINAL)"], { modelName: "streams_counted" }),
    ]),
    modelStream([
      run("5", ["sender.send(error('no'))", "sender.send(answer(1), FINAL)"], { modelName: "streams_counted" }),
    ]),
    modelStream([run("6", ["sender.send(error('no'))", final], { modelName: "streams_counted" })]),
    get("/v2/models/streams_counted/stats", "statistics"),
  ),
];
