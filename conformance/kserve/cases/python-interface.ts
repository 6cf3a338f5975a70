/** `triton_python_backend_utils` as models see it: each case is an expression that a model evaluates. */
import type { Case, Difference, Step } from "../case.ts";
import { differs, infer, input } from "../requests.ts";

const evaluated = (code: string): Step =>
  infer(
    "evaluates",
    { inputs: [input("CODE", "BYTES", [1], [code])] },
    code.startsWith("run:raise") ? "error" : "json",
  );
const expression = (code: string): Case => ({
  name: `pb_utils: ${code}`,
  fixture: "main",
  steps: [evaluated(code)],
});
const different = (code: string, row: string, ...includes: string[]): Case => {
  const difference: Difference = { row, status: 200, includes };
  return { name: `pb_utils: ${code}`, fixture: "main", steps: [differs(evaluated(code), difference)] };
};
const refused = (code: string): Case => ({
  name: `pb_utils raises: ${code}`,
  fixture: "main",
  steps: [infer("evaluates", { inputs: [input("CODE", "BYTES", [1], [`run:${code}`])] }, "error")],
});
const sends = (what: string, kind: number, difference?: Difference): Case => {
  const step = infer("sends", { inputs: [input("KIND", "INT32", [1], [kind])] }, "error");
  return {
    name: `response sender: ${what}`,
    fixture: "main",
    steps: [difference === undefined ? step : differs(step, difference)],
  };
};

const sendsInTask = (what: string, kind: number): Case => ({
  name: `response sender of a task, after an asynchronous execute has returned: ${what}`,
  fixture: "main",
  steps: [infer("sends_async", { inputs: [input("KIND", "INT32", [1], [kind])] }, "error")],
});

const bytes = "pb_utils.serialize_byte_tensor";
const array = "np.array([b'a', b'bc'], dtype=object)";

export const pythonInterface: readonly Case[] = [
  ...[
    "request.parameters()",
    `${bytes}(${array})`,
    `${bytes}(np.array(['a', 'ü'], dtype=object))`,
    `${bytes}(np.array([b'a', b'bc']))`,
    `${bytes}(np.array(['a', 'bc']))`,
    `${bytes}(np.array([1, None], dtype=object))`,
    `${bytes}(np.array([], dtype=object))`,
    `${bytes}(np.array([1.5]))`,
    `pb_utils.deserialize_bytes_tensor(${bytes}(${array}))`,
    "pb_utils.deserialize_bytes_tensor(b'')",
    "pb_utils.deserialize_bytes_tensor(b'\\x05\\x00\\x00\\x00a')",
    "pb_utils.deserialize_bytes_tensor(b'\\x05')",
    "[t and t.__name__.rstrip('_') for t in map(pb_utils.triton_to_numpy_type, range(1, 15))]",
    "[pb_utils.triton_to_numpy_type(i) for i in (0, 99, 'x', None)]",
    "[pb_utils.numpy_to_triton_type(t) for t in (np.bool_, np.int8, np.uint64, np.float16, np.float32, np.float64, np.object_, np.bytes_)]",
    "[pb_utils.numpy_to_triton_type(t) for t in (bool, int, str, np.str_, np.complex64, np.dtype('float32'), np.dtype('S3'), 'x', None)]",
    "pb_utils.triton_string_to_numpy('TYPE_FP32')",
    "pb_utils.triton_string_to_numpy('TYPE_BF16')",
    "pb_utils.Tensor(b'F', np.array([1], np.int32)).name()",
    "pb_utils.TritonError(b'text').message()",
    "[pb_utils.TritonError.INTERNAL, pb_utils.TritonError('x').code(), pb_utils.TritonError('x', pb_utils.TritonError.CANCELLED).code()]",
    "[pb_utils.Logger.INFO, pb_utils.Logger.LogLevel.ERROR, pb_utils.TRITONSERVER_MEMORY_CPU, pb_utils.TRITONSERVER_MEMORY_GPU]",
    "[f(e) for f in (str, int, type, hash) for e in (pb_utils.TritonError.NOT_FOUND, pb_utils.Logger.WARNING, pb_utils.TRITONSERVER_MEMORY_CPU)]",
    "[(e.name, e.value, e == 1, e == 2, e != 1) for e in (pb_utils.TritonError.INTERNAL,)]",
    "sorted(type(pb_utils.TritonError.INTERNAL).__members__)",
    "[c.__module__ for c in (pb_utils.Tensor, pb_utils.TritonError, pb_utils.InferenceRequest, pb_utils.InferenceResponse, pb_utils.TritonModelException, pb_utils.Logger)]",
    "request.get_response_sender() is request.get_response_sender()",
    "request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)",
    'pb_utils.ModelConfig(\'{"name": "m"}\')._model_config',
    "int(pb_utils.TritonError('text').code())",
    "pb_utils.Tensor('F', np.array([1], np.complex64))",
    "pb_utils.Tensor('F', np.array([b'a'])).as_numpy()",
    "pb_utils.Tensor('F', np.array(['a', 1, b'x'], dtype=object)).as_numpy()",
    "pb_utils.Tensor('F', np.arange(6).reshape(2, 3).T).as_numpy().flags.c_contiguous",
    "pb_utils.Tensor('F', np.arange(6).reshape(2, 3)).shape()",
    "pb_utils.Tensor('S', np.array([b'x'], dtype=object)).to_dlpack()",
    "type(request.get_response_sender()).__name__",
    "request.get_response_sender().is_cancelled()",
    "(request.inputs().clear(), len(request.inputs()))",
    "(request.requested_output_names().clear(), request.requested_output_names())",
    "request.inputs()[0].as_numpy() is request.inputs()[0].as_numpy()",
    "(lambda r: (r.output_tensors().clear(), len(r.output_tensors())))(pb_utils.InferenceResponse([pb_utils.Tensor('F', np.arange(2))]))",
    "[pb_utils.get_input_tensor_by_name(request, name) for name in ('x', b'CODE')]",
    "pb_utils.get_input_config_by_name({}, 'a')",
    "pb_utils.using_decoupled_model_transaction_policy({})",
    "__import__('sys').argv",
    "run:a = np.array([b'before'], dtype=object); t = pb_utils.Tensor('OUT', a); a[0] = b'after'; out = pb_utils.InferenceResponse([t])",
    "run:t = request.inputs()[0]; t.as_numpy()[0] = b'after'; out = pb_utils.InferenceResponse([pb_utils.Tensor('OUT', t.as_numpy())])",
    "run:x = np.arange(6).reshape(2, 3).T; t = pb_utils.Tensor('A', x); x[:] = 9; out = t.as_numpy().tolist()",
    "run:x = np.arange(6); t = pb_utils.Tensor('A', x); x[:] = 9; out = t.as_numpy().tolist()",
    "run:out = pb_utils.Tensor.from_dlpack('x', pb_utils.Tensor('y', np.arange(3))).as_numpy()",
    "run:t = pb_utils.Tensor.from_dlpack('x', pb_utils.Tensor('s', np.zeros(2)).to_dlpack()); out = pb_utils.Tensor.from_dlpack('y', t.to_dlpack()).as_numpy().tolist()",
    "run:a = np.zeros(2); a.flags.writeable = False; out = pb_utils.Tensor.from_dlpack('y', pb_utils.Tensor('x', a).to_dlpack()).as_numpy().tolist()",
    "run:from sys import getrefcount as count; t = pb_utils.Tensor('x', np.zeros(2)); held = [count(t)]; c = t.to_dlpack(); held.append(count(t)); del c; held.append(count(t)); out = [n - held[0] for n in held]",
  ].map(expression),
  ...[
    "raise Exception",
    "raise KeyError()",
    "assert False",
    "raise pb_utils.TritonModelException()",
    "raise ValueError('two\\nlines')",
    "raise KeyboardInterrupt()",
    "def f(): g()\ndef g(): raise RuntimeError('deep')\nf()",
    "def f(n):\n  if n: f(n - 1)\n  raise ValueError('from far below')\nf(100)",
    "pb_utils.Tensor('F', np.array([1], np.complex64))",
    "pb_utils.Tensor('', np.zeros(1))",
    "pb_utils.Tensor.from_dlpack('', np.zeros(1))",
    "pb_utils.Tensor('F', [1])",
    "pb_utils.TritonError('x', 3)",
    "pb_utils.TritonError()",
    "pb_utils.TritonError('x', kode=1)",
    "pb_utils.PreferredMemory(1)",
    "pb_utils.InferenceRequest(inputs=[], requested_output_names=['a', ''], model_name='m', request_id='r')",
    "pb_utils.InferenceRequest(inputs=[request.inputs()[0], None], requested_output_names=[''], model_name='m', request_id='r')",
    // The text is not compared, because it contains addresses of the interpreter.
    "try:\n  pb_utils.InferenceRequest(inputs=[], requested_output_names=[], model_name='m', correlation_id=None)\nexcept TypeError:\n  raise RuntimeError('TypeError') from None",
    "pb_utils.InferenceResponse([None], pb_utils.TritonError('x'))",
    "pb_utils.Logger()",
    "pb_utils.Logger.log(1)",
    "pb_utils.Logger.log('x', 1)",
    "pb_utils.Logger.log_info()",
    // The exception is raised again, because the standard library's lines contain the directory of the oracle's Python.
    "try:\n  pb_utils.ModelConfig({})\nexcept TypeError as e:\n  raise TypeError(e) from None",
    "pb_utils.is_model_ready('m', 1)",
    "pb_utils.load_model()",
    "try:\n  raise ValueError('a')\nexcept ValueError as e:\n  raise RuntimeError('b') from e",
  ].map(refused),
  different("pb_utils.Tensor('F', np.array(['a'])).as_numpy()", "numpy-types", "array(['a'], dtype='<U1')"),
  different("pb_utils.Tensor('F', np.array([1], '>i4')).as_numpy()", "numpy-types", "array([1], dtype=int32)"),
  sends("instead of a returned list", 0),
  sends("in addition to a returned list with None", 1),
  sends("only the final flag", 2),
  sends("obtained but not used", 3),
  sends("an error", 4),
  sends("followed by an exception", 5),
  sends("the response has the content of the arrays when it was sent", 6),
  sends("an unknown flag", 7, {
    row: "unknown-flag",
    status: 500,
    includes: ["TritonModelException: Unable to send response. Unsupported flag provided."],
    notAsked: true,
  }),
  sends("neither response nor flag", 8),
  sends("the final flag before a response", 9),
  sends("from a thread, after execute has returned", 10),
  sends("a second response", 11, { row: "second-response", status: 200, includes: ['"data":[21]'], notAsked: true }),
  sends("cancelled", 12),
  sendsInTask("made by the task", 0),
  sendsInTask("made before", 1),
  sendsInTask("in addition to a returned list with None", 2),
];
