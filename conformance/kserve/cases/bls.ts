/** Models that call other models (BLS): each case is a program that a model runs, and its result. */
import type { Case, Comparison, Difference, Step } from "../case.ts";
import { differs, infer, input, post } from "../requests.ts";

const asked = (code: string, model: string, compare: Comparison = "json"): Step =>
  infer(model, { inputs: [input("CODE", "BYTES", [1], [code])] }, compare);
const runs = (code: string, ...before: readonly string[]): Case => ({
  name: `bls: ${code}`,
  fixture: "bls",
  steps: [...before, code].map((each) => asked(each, "calls")),
});
const awaits = (code: string): Case => ({
  name: `bls, asynchronous: ${code}`,
  fixture: "bls",
  steps: [asked(code, "calls_async")],
});
const raises = (code: string): Case => ({
  name: `bls raises: ${code}`,
  fixture: "bls",
  steps: [asked(code, "calls", "error")],
});
const different = (code: string, difference: Difference, compare?: Comparison): Case => ({
  name: `bls: ${code}`,
  fixture: "bls",
  steps: [differs(asked(code, "calls", compare), difference)],
});
const loads = (model: string): Case => ({
  name: `bls in a model's life: load ${model}`,
  fixture: "bls",
  steps: [post(`/v2/repository/models/${model}/load`, {}, "error")],
});

const sum = '["OUTPUT0"]';
const streamed = (text: string, more = "") =>
  `r = asked("streams", code(${JSON.stringify(text)}), ["OUT"]).exec(decoupled=True); ${more}out = [shown(each) for each in r]`;

export const bls: readonly Case[] = [
  ...[
    'out = call("add_sub", pair, ["OUTPUT0", "OUTPUT1"])',
    `out = call("add_sub", pair, ${sum})`,
    'out = call("add_sub", pair, ["OUTPUT1", "OUTPUT0"])',
    'out = call("add_sub", pair, ["OUTPUT0", "OUTPUT0"])',
    'out = call("add_sub", pair, [])',
    'out = call("add_sub", pair, ["NONE"])',
    `out = call("nowhere", pair, ${sum})`,
    `out = call("not_loaded", pair, ${sum})`,
    `out = call("add_sub", pair, ${sum}, model_version=1)`,
    `out = call("add_sub", pair, ${sum}, model_version=-1)`,
    `out = call("add_sub", pair, ${sum}, model_version=9)`,
    `out = call("add_sub", pair, ${sum}, model_version=0)`,
    `out = call("add_sub", pair, ${sum}, model_version=-5)`,
    `out = call("add_sub", {}, ${sum})`,
    `out = call("add_sub", {"INPUT0": np.ones(4, np.float32)}, ${sum})`,
    `out = call("add_sub", {**pair, "INPUT1": np.ones(4, np.int32)}, ${sum})`,
    `out = call("add_sub", {**pair, "INPUT1": np.ones(5, np.float32)}, ${sum})`,
    `out = call("add_sub", pair, ${sum}, request_id="abc")`,
    `out = call("add_sub", {**pair, "INPUT1": np.ones(5, np.float32)}, ${sum}, request_id="abc")`,
    'out = call("upper", {"TEXT": np.array([b"a", "\\u00fc".encode()], object)}, ["UPPER"])',
    'out = call("upper", {"TEXT": np.array(["a", "\\u00fc"], object)}, ["UPPER"])',
    ...[0, 1, 2, 3, 4, 5, 6, 7, 10].map(
      (kind) => `out = call("errors", {"KIND": np.array([${kind}], np.int32)}, ["OUT"])`,
    ),
    ...[12, 13, 16].map((kind) => `out = call("errors", {"KIND": np.array([${kind}], np.int32)}, ["OUT"])`),
    'out = call("chain", {"A": pair["INPUT0"], "B": pair["INPUT1"]}, ["SUM"])',
    'out = call("chain", {"A": pair["INPUT0"]}, ["SUM"])',
    'out = call("report", {"INPUT0": np.ones((1, 2), np.float32)}, ["REPORT"], request_id="i", correlation_id=7, flags=1, timeout=99999999)',
    'out = call("report", {"INPUT0": np.ones((1, 2), np.float32)}, ["REPORT"], correlation_id="text", flags=2)',
    'out = call("report", {"INPUT0": np.ones((1, 2), np.float32)}, ["REPORT", "OTHER"])',
    'out = call("report", {"INPUT0": np.ones((2, 2), np.float32)}, ["REPORT"], correlation_id=2**64 - 1)',
    'out = call("report", {"INPUT0": np.ones((1, 2), np.float32)}, ["REPORT"], parameters={"a": 1, "b": True, "c": "text", "d": -(2**63)})',
    'out = call("report", {"INPUT0": np.ones((9, 2), np.float32)}, ["REPORT"])',
    'out = call("identity_matrix", {"INPUT0": np.arange(6, dtype=np.float32).reshape(2, 3)}, ["OUTPUT0"])',
    'out = call("identity_matrix", {"INPUT0": np.arange(6, dtype=np.float32).reshape(3, 2).T}, ["OUTPUT0"])',
    'out = call("identity_matrix", {"INPUT0": np.zeros((0, 3), np.float32)}, ["OUTPUT0"])',
    ...["BOOL", "UINT8", "INT16", "INT64", "UINT64", "FP64"].map(
      (type) =>
        `out = call("identity_all", {"INPUT_${type}": np.array([1, 0, 1], pb_utils.triton_string_to_numpy("TYPE_${type}"))}, ["OUTPUT_${type}"])`,
    ),
    'x = np.arange(60000, dtype=np.float32).reshape(-1, 3); r = asked("identity_matrix", {"INPUT0": x}, ["OUTPUT0"]).exec(); out = bool((r.output_tensors()[0].as_numpy() == x).all())',
    'out = [call("add_sub", pair, ["OUTPUT0"])["OUTPUT0"][i] for i in range(4)]',
    `r = asked("add_sub", pair, ${sum}); out = [shown(r.exec()), shown(r.exec())]`,
    `r = asked("add_sub", pair, ${sum}); out = sorted(n for n in dir(r) if n[0] != "_")`,
    `r = asked("add_sub", pair, ${sum}, request_id="i", correlation_id=5, flags=1, timeout=8, parameters={"k": 1}); out = (r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters(), r.requested_output_names(), [t.name() for t in r.inputs()])`,
    `r = asked("add_sub", pair, ${sum}); out = (r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters())`,
    `r = asked("add_sub", pair, ${sum}); r.set_flags(2); out = r.flags()`,
    `r = asked("add_sub", pair, ${sum}).exec(); out = (r.has_error(), r.error(), pb_utils.get_output_tensor_by_name(r, "OUTPUT0").shape(), pb_utils.get_output_tensor_by_name(r, "x"))`,
    `r = asked("add_sub", pair, ${sum}).exec(); out = r.output_tensors()[0].is_cpu()`,
    'r = asked("nowhere", pair, []).exec(); out = (r.has_error(), type(r.error()).__name__, r.output_tensors())',
    `out = call("add_sub", pair, ${sum}, preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0))`,
    `out = call("add_sub", pair, ${sum}, preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU))`,
    `out = call("add_sub", pair, ${sum}, trace=request.trace())`,
    "out = (type(request.trace()).__name__, request.trace().get_context())",
    "out = (int(pb_utils.TRITONSERVER_MEMORY_CPU), int(pb_utils.TRITONSERVER_MEMORY_GPU))",
  ].map((code) => runs(code)),
  ...[
    'x = np.ones((1400, 3), np.float32); r = asked("identity_matrix", {"INPUT0": x}, ["OUTPUT0"]).exec(); x[:] = 5; out = float(r.output_tensors()[0].as_numpy().sum())',
    'x = np.ones((1400, 3), np.float32); r = asked("identity_matrix", {"INPUT0": x}, ["OUTPUT0"]).exec(); r.output_tensors()[0].as_numpy()[:] = 5; out = float(x.sum())',
    't = pb_utils.Tensor("X", np.full(3000, 2, np.float32)); q = pb_utils.InferenceRequest(model_name="spoils", inputs=[t, pb_utils.Tensor("TEXT", np.array([b"a"], object))], requested_output_names=["SEEN"]); out = [(float(q.exec().output_tensors()[0].as_numpy().sum()), float(t.as_numpy().sum())) for _ in range(3)]',
    'a = asked("identity_matrix", {"INPUT0": np.full((2000, 3), 2, np.float32)}, ["OUTPUT0"]).exec().output_tensors()[0]; q = pb_utils.InferenceRequest(model_name="spoils", inputs=[pb_utils.Tensor("X", a.as_numpy().reshape(-1)), pb_utils.Tensor("TEXT", np.array([b"a"], object))], requested_output_names=["SPOILT"]); q.exec(); out = float(a.as_numpy().sum())',
    'request.inputs()[0].as_numpy()[0] = b"changed"; out = request.inputs()[0].as_numpy()[0]',
  ].map((code) => runs(code)),
  ...[
    "out = [pb_utils.is_model_ready(m) for m in ('add_sub', 'nowhere', 'not_loaded', 'calls')]",
    "out = [pb_utils.is_model_ready('add_sub', v) for v in ('', '1', '9')]",
    "out = raised(lambda: pb_utils.load_model('raises_in_initialize'))",
    `out = (pb_utils.load_model('comes'), pb_utils.is_model_ready('comes'), call("comes", pair, ${sum}), pb_utils.unload_model('comes'))`,
    "out = (pb_utils.load_model(model_name='comes'), pb_utils.unload_model('comes', unload_dependents=True), [pb_utils.is_model_ready('comes') for _ in range(200) if time.sleep(0.02)])",
    "out = raised(lambda: pb_utils.unload_model('nowhere'))",
    'out = raised(lambda: pb_utils.load_model(\'comes\', config=\'{"backend": "python", "parameters": {"configured": {"string_value": "yes"}}}\'))',
    "out = raised(lambda: pb_utils.load_model('comes', files={'file:1/model.py': 'text'}))",
  ].map((code) => runs(code)),
  ...[
    streamed("sender.send(answer(1)); sender.send(answer(2), FINAL)"),
    streamed("sender.send(answer(1)); sender.send(flags=FINAL)"),
    streamed("sender.send(flags=FINAL)"),
    streamed('sender.send(error("at the end"), FINAL)'),
    streamed('raise ValueError("raised")'),
    streamed("[sender.send(answer(i)) for i in range(50)]; sender.send(flags=FINAL)"),
    streamed("sender.send(answer(1)); sender.send(answer(2), FINAL)", "next(iter(r)); "),
    'r = asked("streams", code("sender.send(answer(1), FINAL)"), ["OUT"]).exec(decoupled=True); out = [(each.has_error(), len(each.output_tensors())) for each in r]',
    'out = raised(lambda: call("streams", code("sender.send(answer(1), FINAL)"), ["OUT"]))',
    `r = asked("add_sub", pair, ${sum}).exec(decoupled=True); out = [shown(each) for each in r]`,
    `r = asked("nowhere", pair, ${sum}).exec(decoupled=True); out = [shown(each) for each in r]`,
    'r = asked("add_sub", {}, []).exec(decoupled=True); out = [shown(each) for each in r]',
    'r = asked("chain", {"A": pair["INPUT0"], "B": pair["INPUT1"]}, ["SUM"]).exec(decoupled=True); out = [shown(each) for each in r]',
  ].map((code) => runs(code)),
  ...[
    `r = await asked("add_sub", pair, ${sum}).async_exec(); out = shown(r)`,
    `r = await asyncio.gather(*[asked("add_sub", pair, ${sum}).async_exec() for _ in range(20)]); out = [shown(each) for each in r] == [shown(r[0])] * 20`,
    'r = await asked("nowhere", pair, []).async_exec(); out = shown(r)',
    `r = asked("add_sub", pair, ${sum}).exec(); out = shown(r)`,
    'r = await asked("streams", code("sender.send(answer(1)); sender.send(answer(2), FINAL)"), ["OUT"]).async_exec(decoupled=True); out = [shown(each) for each in r]',
    'import time; t = time.monotonic(); r = await asked("streams", code("time.sleep(0.3); sender.send(answer(1), FINAL)"), ["OUT"]).async_exec(decoupled=True); out = [time.monotonic() - t > 0.2] + [shown(each) for each in r]',
    `r = asked("add_sub", pair, ${sum}).async_exec(); out = (inspect.isawaitable(r), shown(await r))`,
    `out = sorted([shown(await each)["OUTPUT0"][0] for each in asyncio.as_completed([asked("add_sub", {"INPUT0": np.full(4, i, np.float32), "INPUT1": pair["INPUT1"]}, ${sum}).async_exec() for i in range(5)])])`,
  ].map(awaits),
  ...[
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], parameters={"a": 1.5})',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], parameters={1: 1})',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], correlation_id=1.5)',
  ].map(raises),
  ...[
    "out = pb_utils.InferenceRequest()",
    'out = pb_utils.InferenceRequest(model_name="add_sub")',
    'out = pb_utils.InferenceRequest(model_name="add_sub", inputs=[])',
    "out = pb_utils.InferenceRequest(model_name=5, requested_output_names=[], inputs=[])",
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=["OUTPUT0"], inputs=[1])',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[1], inputs=[])',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names="OUTPUT0", inputs=[])',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=None)',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], model_version="1")',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], timeout=-1)',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], flags=-1)',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], request_id=5)',
    'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], more=5)',
    'out = pb_utils.InferenceRequest("add_sub", [], [])',
  ].map(raises),
  // Triton's error texts contain types of its C++ library.
  ...(
    [
      [
        'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], parameters=[])',
        "Expect parameters to be a dict",
      ],
      [
        'out = pb_utils.InferenceRequest(model_name="add_sub", requested_output_names=[], inputs=[], correlation_id=-1)',
        "a correlation id of 64 bits is needed",
      ],
    ] as const
  ).map(([code, reported]) => different(code, { row: "python-arguments", status: 500, includes: [reported] }, "error")),
  ...[
    'out = raised(lambda: pb_utils.PreferredMemory("x"))',
    "out = raised(lambda: pb_utils.is_model_ready(7))",
    "out = raised(lambda: pb_utils.load_model())",
    "out = raised(lambda: pb_utils.load_model(5))",
  ].map((code) => runs(code)),
  different("out = raised(lambda: pb_utils.load_model('nowhere'))", {
    row: "load-reasons",
    status: 200,
    includes: [
      "failed to load 'nowhere', failed to poll from model repository: model 'nowhere' is not in any model repository",
    ],
  }),
  different("out = raised(lambda: pb_utils.load_model('comes', config='nothing'))", {
    row: "load-reasons",
    status: 200,
    includes: ["failed to poll from model repository: Invalid config override"],
  }),
  different("out = raised(lambda: pb_utils.load_model('comes', files={'file:1/model.py': b'text'}))", {
    row: "load-reasons",
    notAsked: true,
    status: 200,
    includes: [
      "failed to load 'comes', failed to poll from model repository: Load parameter 'config' must be specified",
    ],
  }),
  different("out = raised(lambda: pb_utils.load_model('comes', files={'1/model.py': b'text'}))", {
    row: "load-files-prefix",
    notAsked: true,
    status: 200,
    includes: ["the names of 'files' must begin with 'file:' (found '1/model.py')"],
  }),
  different(streamed('sender.send(answer(1)); sender.send(error("in the middle")); sender.send(answer(2), FINAL)'), {
    row: "error-between-answers",
    status: 200,
    includes: ["{'OUT': [b'1']}, 'error 1: in the middle', {'OUT': [b'2']}"],
  }),
  different(
    streamed("sender.send(answer(1)); sender.send(answer(2), FINAL)", "first = [shown(each) for each in r]; "),
    { row: "answers-read-once", status: 200, includes: ['"[]"'] },
  ),
  different(
    'r = asked("streams", code("sender.send(answer(request.is_cancelled())); time.sleep(0.3); sender.send(answer(request.is_cancelled()), FINAL)"), ["OUT"]).exec(decoupled=True); next(iter(r)); r.cancel(); out = [shown(each) for each in r][-1:]',
    { row: "newer-release", status: 200, includes: ["cancelled"] },
  ),
  different("out = raised(lambda: pb_utils.is_model_ready('add_sub', 'x'))", {
    row: "readiness-of-no-version",
    status: 200,
    includes: ["failed to get model version from specified version string 'x'"],
    notAsked: true,
  }),
  different("out = request.trace().get_context(), raised(lambda: request.exec())", {
    row: "executing-what-came",
    status: 200,
    includes: ["TritonModelException"],
    notAsked: true,
  }),
  loads("calls_in_initialize"),
  loads("calls_in_completion"),
  loads("controls_in_initialize"),
];
