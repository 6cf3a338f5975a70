import type { Case, Step } from "../case.ts";
import { post } from "../requests.ts";

/** Returns a request whose code the decoupled model runs. */
const body = (code: string | readonly string[], more: object = {}) => ({
  CODE: typeof code === "string" ? code : code.join("\n"),
  ...more,
});
const generate = (code: string | readonly string[], more: object = {}): Step =>
  post("/v2/models/streams/generate", body(code, more), "bytes");
const stream = (code: string | readonly string[], more: object = {}): Step =>
  post("/v2/models/streams/generate_stream", body(code, more), "bytes");

/** Returns cases of `generate` and `generate_stream` with one program. */
const both = (name: string, code: string | readonly string[], more: object = {}): Case => ({
  name: `generate decoupled: ${name}`,
  fixture: "main",
  steps: [generate(code, more), stream(code, more)],
});
const item = (name: string, ...steps: readonly Step[]): Case => ({
  name: `generate decoupled: ${name}`,
  fixture: "main",
  steps,
});

/** Returns cases of `generate` and `generate_stream` for an ensemble with a decoupled step. */
const ensemble = (model: string, name: string, code: string | readonly string[]): Case => ({
  name: `generate decoupled: ensemble: ${model}: ${name}`,
  fixture: "streamed",
  steps: ["generate", "generate_stream"].map((verb) => post(`/v2/models/${model}/${verb}`, body(code), "bytes")),
});
/**
 * Returns code that sends responses which the next step evaluates. The final flag is sent when the later steps of all
 * earlier responses have ended.
 */
const said = (...values: readonly string[]) => values.map((value) => `sender.send(answer(${JSON.stringify(value)}))`);
const settled = "time.sleep(0.3)";

const three = "for i in range(3): sender.send(answer(i))";
const final = "sender.send(flags=FINAL)";
const one = "sender.send(answer('one'), FINAL)";
const send = (response: string) => `sender.send(pb_utils.InferenceResponse(${response}), FINAL)`;
const text = "pb_utils.Tensor('OUT', np.array(['a'], dtype=object))";

/** `generate` and `generate_stream` of models that send any number of responses. */
export const generatesDecoupled: readonly Case[] = [
  both("one answer with the flag", one),
  both("one answer, then the flag", ["sender.send(answer('one'))", final]),
  both("no answer", final),
  both("two answers", ["sender.send(answer(1))", "sender.send(answer(2), FINAL)"]),
  both("several answers, then the flag", [three, final]),
  both("an id", [three, final], { id: "r1" }),
  both("an empty final response is requested", [three, final], { triton_enable_empty_final_response: true }),
  both("no answer, an empty final response is requested", final, {
    parameters: { triton_enable_empty_final_response: true },
  }),
  both("an error alone", "sender.send(error('no'), FINAL)"),
  both("an error alone, then the flag", ["sender.send(error('no'))", final]),
  both("an error between answers", [
    "sender.send(answer(1))",
    "sender.send(error('no \"quotes\" é'))",
    "sender.send(answer(2), FINAL)",
  ]),
  both("an error before answers", ["sender.send(error('no'))", "sender.send(answer(2), FINAL)"]),
  both("an error after an answer", ["sender.send(answer(1))", "sender.send(error('no'), FINAL)"]),
  both("execute raises", "raise ValueError('no')"),
  both("execute raises after an answer", ["sender.send(answer(1))", "raise ValueError('no')"]),
  both("execute returns an answer", "result = [answer(1)]"),
  both("an answer without outputs", send("[]")),
  both("an output of several elements", send("[pb_utils.Tensor('LARGE', np.arange(5, dtype=np.int32))]")),
  both("several outputs", send(`[${text}, pb_utils.Tensor('MORE', np.array([1], dtype=np.int32))]`)),
  both("an output without elements", send("[pb_utils.Tensor('LARGE', np.zeros([0], dtype=np.int32))]")),
  both("texts with line ends", send("[pb_utils.Tensor('OUT', np.array(['a\\n\\nb\\r\"'], dtype=object))]")),
  both("an output that JSON cannot represent, between answers", [
    "sender.send(answer(1))",
    "sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([b'\\xff'], dtype=object))]))",
    "sender.send(answer(2), FINAL)",
  ]),
  both("answers from a thread after execute returned", [
    "def later(sender=sender, answer=answer, FINAL=FINAL, time=time):",
    "  for i in range(3):",
    "    time.sleep(0.02)",
    "    sender.send(answer(i))",
    "  sender.send(flags=FINAL)",
    "threading.Thread(target=later).start()",
  ]),
  both("parameters of the request", "sender.send(answer(request.parameters()), FINAL)", {
    a: 1,
    b: "x",
    c: true,
    d: 0.5,
    parameters: { e: -1 },
  }),
  both("more answers than the queue can hold", ["for i in range(50): sender.send(answer(i))", final]),
  item(
    "a batch",
    post("/v2/models/streams_batch/generate", { CODE: "sender.send(answer(len(requests)), FINAL)" }, "bytes"),
    post("/v2/models/streams_batch/generate_stream", { CODE: [three, final].join("\n") }, "bytes"),
  ),
  item(
    "an asynchronous execute",
    post("/v2/models/streams_async/generate", { CODE: "1" }, "bytes"),
    post("/v2/models/streams_async/generate_stream", { CODE: "3" }, "bytes"),
  ),
  ensemble("many_then", "a step for each answer", [...said("1", "2 + 3", "'x'"), settled, final]),
  ensemble("many_then", "one answer", [...said("1"), settled, final]),
  ensemble("many_then", "no answer", final),
  ensemble("many_then", "a step that fails for one of the answers", [
    ...said("1"),
    settled,
    ...said("1 / 0"),
    settled,
    ...said("2"),
    settled,
    final,
  ]),
  ensemble("many_alone", "an error between answers", [...said("1"), "sender.send(error('no'))", ...said("2"), final]),
  ensemble("many_nested", "an ensemble of an ensemble", [...said("'1 + 1'", "'2 + 2'"), settled, final]),
  item(
    "requests that cannot be mapped",
    post("/v2/models/streams/generate_stream", { NO: 1 }, "error"),
    post("/v2/models/streams/generate_stream", { CODE: [one, one] }, "error"),
    post("/v2/models/streams/generate_stream", { CODE: 1 }, "error"),
    post("/v2/models/streams/generate_stream", { CODE: one, parameters: 1 }, "error"),
    post("/v2/models/streams/generate", "{", "error"),
    post("/v2/models/streams/versions/9/generate_stream", { CODE: one }, "error"),
  ),
  item(
    "other HTTP paths",
    post("/v2/models/streams/infer", "{", "error"),
    post("/v2/models/streams_batch/infer", { inputs: [] }, "error"),
  ),
];
