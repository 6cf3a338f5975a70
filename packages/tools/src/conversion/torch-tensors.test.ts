import assert from "node:assert/strict";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ConversionError } from "./conversion-error.ts";
import { numberCount, readNumbers } from "./stored-tensor.ts";
import { readTorchTensors } from "./torch-tensors.ts";

interface Weights {
  readonly expected: Readonly<Record<string, readonly [readonly number[], readonly number[]]>>;
  readonly files: Readonly<Record<"plain" | "module" | "turned" | "old", string>>;
}

let directory: string;
let weights: Weights;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-torch-"));
  weights = JSON.parse(await readFile(new URL("golden/torch/weights.json", import.meta.url), "utf8")) as Weights;
});

after(() => rm(directory, { recursive: true }));

/** Returns the names, shapes and numbers of a file's tensors. The numbers are rounded to float32. */
async function tensorsOf(bytes: Uint8Array): Promise<Map<string, readonly [readonly number[], readonly number[]]>> {
  const path = join(directory, "pytorch_model.bin");
  await writeFile(path, bytes);
  await using handle = await open(path, "r");
  const read = new Map<string, readonly [readonly number[], readonly number[]]>();
  for (const tensor of await readTorchTensors({ path, handle })) {
    const numbers = new Float32Array(Math.min(1000, numberCount(tensor.shape)));
    await readNumbers(tensor, 0, numbers);
    read.set(tensor.name, [tensor.shape, [...numbers]]);
  }
  return read;
}

const file = (name: keyof Weights["files"]) => Buffer.from(weights.files[name], "base64");

/** Returns the error message for a file; null if it can be read. Rethrows any other error. */
async function refusal(bytes: Uint8Array): Promise<string | null> {
  try {
    await tensorsOf(bytes);
    return null;
  } catch (error) {
    if (error instanceof ConversionError) return error.message;
    throw error;
  }
}

test("tensors of all types, parameters and views are read as PyTorch wrote them; integers are left out", async () => {
  const read = await tensorsOf(file("plain"));
  const expected = Object.entries(weights.expected).filter(([name]) => name !== "count" && name !== "mask");
  assert.deepEqual([...read.keys()].toSorted(), expected.map(([name]) => name).toSorted());
  for (const [name, [shape, numbers]] of expected)
    assert.deepEqual(read.get(name), [shape, [...Float32Array.from(numbers)]], name);
  assert.deepEqual(
    [...(await tensorsOf(file("module")))],
    [
      ["weight", [[3], [1, 1, 1]]],
      ["bias", [[3], [0, 0, 0]]],
    ],
  );
});

test("a pickled global that weights do not need is rejected and not imported", async () => {
  const bytes = file("plain");
  const from = Buffer.from("ccollections\nOrderedDict\n");
  const at = bytes.indexOf(from);
  assert.notEqual(at, -1);
  for (const name of ["subprocess1\ncheck_outpu", "__builtin__\neval_______", "torch._util\n_rebuild_te"]) {
    bytes.write(`c${name}\n`, at, "latin1");
    assert.equal(
      await refusal(bytes),
      `'${join(directory, "pytorch_model.bin")}': its pickle names '${name.replace("\n", ".")}', which no weights need; it was not looked up`,
    );
  }
});

test("a file that has no weights is reported with what it contains", async () => {
  assert.match((await refusal(file("old")))!, /is not a file of PyTorch's: it is not a zip archive, or is truncated$/);
  assert.match(
    (await refusal(file("turned")))!,
    /its pickle has 'turned' in another order than row by row; save it with \.contiguous\(\)$/,
  );
  assert.match((await refusal(Buffer.alloc(0)))!, /is not a zip archive, or is truncated$/);
  const program = file("plain");
  for (let at = 0; (at = program.indexOf("/data/1", at)) !== -1;) program.write("/code/1", at);
  assert.match(
    (await refusal(program))!,
    /is not a file of weights, but a TorchScript program, which backend 'pytorch' serves as it is$/,
  );
});

test("a truncated file and one with flipped bits give tensors or a clear error", async () => {
  const complete = file("plain");
  for (let cut = 0; cut < complete.byteLength; cut += 97) assert.ok(await refusal(complete.subarray(0, cut)), `${cut}`);
  let refused = 0;
  for (let round = 0; round < 1500; round++) {
    const damaged = Buffer.from(complete);
    damaged[(round * 7919) % damaged.byteLength]! ^= 1 << (round % 8);
    if ((await refusal(damaged)) !== null) refused++;
  }
  assert.ok(refused > 100, `${refused}`);
});
