/**
 * Typical code of real model.py files: at the top level, in threads, with files, the environment and unusual arrays.
 */
import type { Case, Comparison, Difference, Step } from "../case.ts";
import { habitNames, returned } from "../habit-models.ts";
import { differs, infer, input } from "../requests.ts";

const asked = (values: readonly number[], id = "") => ({ id, inputs: [input("IN", "FP32", [values.length], values)] });

const comparisonOf = (name: string): Comparison => {
  // The number of shown frames depends on the lengths of the texts.
  if (name === "raises_too_deep") return "status";
  return name.startsWith("raises_") ? "error" : "json";
};

/** Sends the request twice: the second response shows what is kept between requests. */
const habit = (name: string): Case => ({
  name: `habit: ${name}`,
  fixture: "habits",
  steps: [
    infer(name, asked([1.5, -2], "first"), comparisonOf(name)),
    infer(name, asked([3], "second"), comparisonOf(name)),
  ],
});

const taken = (...includes: string[]): Difference => ({ row: "numpy-types", status: 200, includes });
const refused = (...includes: string[]): Difference => ({ row: "python-types", status: 500, includes });
const noArray = refused("1. c_python_backend_utils.Tensor(arg0: str, arg1: numpy.ndarray)");
const noList = (found: string) => refused("Expected a list in the execute return, found type", found);

const arrayDifferences: Readonly<Record<string, Difference>> = {
  "a scalar of numpy": noArray,
  "a list": noArray,
  "a number": noArray,
  "a memory view": noArray,
  "big-endian floats": taken('"data":[1.5,-2.0]'),
  "big-endian integers": taken('"data":[1,-2]'),
  "fixed-width text": taken('"data":["ab","c"]'),
  "a masked array": refused("TypeError: Tensor: 'OUT' is a masked array"),
};

const returnDifferences: Readonly<Record<string, Difference>> = {
  returns_a_generator: noList("generator"),
  returns_one_response: noList("InferenceResponse"),
  returns_none: { ...noList("NoneType"), notAsked: true },
  returns_none_in_a_list: { ...refused("found type", "NoneType"), notAsked: true },
};

const arrays: Readonly<Record<string, string>> = {
  "reversed, with a negative stride": "np.arange(6, dtype=np.float32)[::-1]",
  "every second element": "np.arange(6, dtype=np.int64)[::2]",
  "a transposed array": "np.arange(6, dtype=np.float32).reshape(2, 3).T",
  "columns first": "np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))",
  "broadcast, with a stride of zero": "np.broadcast_to(np.float32(3), (2, 3))",
  "no dimension": "np.array(5, dtype=np.float32)",
  "a scalar of numpy": "np.float32(5)",
  "no element, two dimensions": "np.zeros((0, 3), np.float32)",
  "no element of strings": "np.array([], dtype=object)",
  "big-endian floats": "np.array([1.5, -2], dtype='>f4')",
  "big-endian integers": "np.array([1, -2], dtype='>i8')",
  "half floats": "np.array([1.5, -2], dtype=np.float16)",
  booleans: "np.array([True, False])",
  "bytes in an object array": "np.array([b'a', b'\\xff\\x00', b''], dtype=object)",
  "text and bytes in an object array": "np.array(['grüße', b'b'], dtype=object)",
  "numbers in an object array": "np.array([1, 2.5], dtype=object)",
  "None in an object array": "np.array([None, 'a'], dtype=object)",
  "lists in an object array": "np.array([[1, 2], [3]], dtype=object)",
  "fixed-width bytes": "np.array([b'ab', b'c'])",
  "fixed-width text": "np.array(['ab', 'c'])",
  "complex numbers": "np.array([1j])",
  dates: "np.array(['2024-01-01'], dtype='datetime64[D]')",
  records: "np.array([(1, 2.0)], dtype=[('a', 'i4'), ('b', 'f4')])",
  "a matrix": "np.matrix([[1.0, 2.0]], dtype=np.float32)",
  "a masked array": "np.ma.array(np.arange(3, dtype=np.float32), mask=[0, 1, 0])",
  "long doubles": "np.array([1.5], dtype=np.longdouble)",
  "a list": "[1.0, 2.0]",
  "a number": "5.0",
  "a memory view": "memoryview(b'abc')",
  "a read-only array": "np.frombuffer(b'\\x00\\x00\\x80?', dtype=np.float32)",
  "a slice of a larger array": "np.arange(1000, dtype=np.float32)[10:13]",
  "not aligned": "np.frombuffer(b'x' + np.arange(2, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32)",
};

const oneStep = (name: string, step: Step, difference: Difference | undefined): Case => ({
  name: `habit: ${name}`,
  fixture: "habits",
  steps: [difference === undefined ? step : differs(step, difference)],
});

const array = ([name, code]: readonly [string, string]): Case =>
  oneStep(
    `answers with ${name}`,
    infer("arrays", { inputs: [input("CODE", "BYTES", [1], [code])] }),
    arrayDifferences[name],
  );

const returning = (name: string): Case => oneStep(name, infer(name, asked([1, 2])), returnDifferences[name]);

export const modelHabits: readonly Case[] = [
  ...habitNames.map(habit),
  ...Object.entries(arrays).map(array),
  ...Object.keys(returned).map(returning),
];
