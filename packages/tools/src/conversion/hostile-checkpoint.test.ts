import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { convertEncoder } from "./convert-encoder.ts";
import { ConversionError } from "./conversion-error.ts";
import { readGolden, safetensors, writeCheckpoint } from "./golden-fixture.ts";

let directory: string;
let source: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-hostile-"));
  source = join(directory, "source");
  await writeCheckpoint(source, await readGolden("bert"));
});

after(() => rm(directory, { recursive: true }));

/**
 * Converts a checkpoint. Returns null after a success, and the message of a ConversionError. Rethrows any other error.
 */
async function refusal(from = source): Promise<string | null> {
  const target = join(directory, "model.onnx");
  try {
    await convertEncoder({
      source: from,
      target,
      weights: "FLOAT",
      integers: "INT64",
      operators: "fused",
      opset: 17,
      oneSegment: false,
      pooler: true,
      names: new Map(),
      fileBytesMax: 2 ** 31,
      signal: new AbortController().signal,
    });
    return null;
  } catch (error) {
    assert.deepEqual(
      (await readdir(directory)).filter((name) => name.startsWith(".")),
      [],
    );
    if (error instanceof ConversionError) return error.message;
    throw error;
  }
}

test("a file truncated at any byte is rejected with a clear error", async () => {
  const path = join(source, "model.safetensors");
  const complete = await readFile(path);
  // The file ends with eight bytes of a buffer that the encoder does not use.
  const cuts = [0, 1, 7, 8, 9, 500, 2000, complete.byteLength >> 1, complete.byteLength - 9, complete.byteLength - 1];
  for (const cut of cuts) {
    await writeFile(path, complete.subarray(0, cut));
    assert.match((await refusal())!, /'.*model\.safetensors'/, `${cut}`);
  }
  await writeFile(path, complete);
  assert.equal(await refusal(), null);
});

test("a header is accepted if it fits the file, and rejected otherwise", async () => {
  const path = join(source, "model.safetensors");
  const complete = await readFile(path);
  const headerBytes = Number(complete.readBigUInt64LE(0));
  const text = complete.toString("utf8", 8, 8 + headerBytes);
  const changed = async (from: string | RegExp, to: string): Promise<string> => {
    const header = Buffer.from(text.replace(from, to));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.byteLength));
    await writeFile(path, Buffer.concat([length, header, complete.subarray(8 + headerBytes)]));
    return (await refusal())!;
  };
  const words = "embeddings.word_embeddings.weight";
  assert.match(
    await changed('"shape":[48,16]', '"shape":[48,17]'),
    new RegExp(`'${words}' is F32 \\[48, 17\\], which is 3264 bytes`),
  );
  assert.match(await changed('"shape":[48,16]', '"shape":[16,48]'), /is \[16, 48\], and config\.json says \[48, 16\]/);
  assert.match(await changed('"data_offsets":[0,3072]', '"data_offsets":[3072,0]'), /lies in bytes 3072 to 0/);
  assert.match(await changed('"data_offsets":[0,3072]', '"data_offsets":[-1,3071]'), /has no offsets in the file/);
  assert.match(
    await changed('"data_offsets":[0,3072]', '"data_offsets":[0,9007199254740993]'),
    /has no offsets in the file/,
  );
  assert.match(
    await changed('"data_offsets":[0,3072]', '"data_offsets":[999996928,1000000000]'),
    /of the data, which has/,
  );
  assert.match(await changed('"shape":[48,16]', '"shape":[1e300,16]'), /has no shape/);
  assert.match(await changed('"shape":[48,16]', `"shape":${"[".repeat(9)}${"]".repeat(9)}`), /has no shape/);
  assert.match(await changed(/"dtype":"F32"/, '"dtype":"F8_E5M2"'), new RegExp(`have no '${words}'`));
  assert.match(await changed(`"${words}"`, '"__proto__"'), new RegExp(`have no '${words}'`));
  assert.match(await changed(/^.*$/s, "[]"), /its header is not a JSON object/);
  const far = Buffer.from(complete);
  far.writeBigUInt64LE(2n ** 63n, 0);
  await writeFile(path, far);
  assert.match((await refusal())!, /its header would have 9223372036854775808 bytes/);
  await writeFile(path, complete);
});

test("flipped bits of a header give a model or a clear error", async () => {
  const path = join(source, "model.safetensors");
  const complete = await readFile(path);
  let refused = 0;
  for (let round = 0; round < 400; round++) {
    const damaged = Buffer.from(complete);
    const at = (round * 7919) % (8 + Number(complete.readBigUInt64LE(0)));
    damaged[at]! ^= 1 << (round % 8);
    await writeFile(path, damaged);
    if ((await refusal()) !== null) refused++;
  }
  assert.ok(refused > 100, `${refused}`);
  await writeFile(path, complete);
});

test("an index may not name other directories or put a tensor in two files", async () => {
  const other = join(directory, "sharded");
  const golden = await readGolden("bert");
  await writeCheckpoint(other, golden, { shards: 2 });
  const index = join(other, "model.safetensors.index.json");
  const text = await readFile(index, "utf8");
  await writeFile(index, text.replace("model-1-of-2.safetensors", "../source/model.safetensors"));
  assert.match((await refusal(other))!, /names "\.\.\/source\/model\.safetensors", which is not a file beside it/);
  await writeFile(index, text);
  await writeFile(join(other, "model-2-of-2.safetensors"), await readFile(join(other, "model-1-of-2.safetensors")));
  assert.match((await refusal(other))!, /the tensor '.*' is in '.*1-of-2.safetensors' and in '.*2-of-2.safetensors'/);
  await rm(join(other, "model-2-of-2.safetensors"));
  assert.match((await refusal(other))!, /'.*2-of-2.safetensors' cannot be opened: ENOENT/);
});

test("a number outside float16's range is rejected, not converted to infinity", async () => {
  const golden = await readGolden("bert");
  const other = join(directory, "large");
  await mkdir(other);
  await writeFile(join(other, "config.json"), JSON.stringify(golden.config));
  const tensors = golden.tensors.map(([name, shape]) => {
    const numbers = new Float32Array(shape.reduce((product, dim) => product * dim, 1));
    if (name === "encoder.layer.1.output.dense.weight") numbers[7] = 1e5;
    return { name, shape, dtype: "F32", bytes: Buffer.from(numbers.buffer) };
  });
  await writeFile(join(other, "model.safetensors"), safetensors(tensors));
  const options = { integers: "INT64", operators: "standard", opset: 17, oneSegment: false, pooler: false } as const;
  const target = join(directory, "half.onnx");
  const converting = convertEncoder({
    ...options,
    source: other,
    target,
    weights: "FLOAT16",
    names: new Map(),
    fileBytesMax: 2 ** 31,
    signal: new AbortController().signal,
  });
  await assert.rejects(
    converting,
    /'encoder\.layer\.1\.output\.dense\.weight' in '.*' has the number 100000, which float16/,
  );
});

test("memory does not grow with the weights", async () => {
  const golden = await readGolden("bert");
  const large = join(directory, "bulky");
  await mkdir(large);
  // The embeddings of words have 256 MiB. Two matrices that must be transposed have 96 MiB each.
  const inner = 2 ** 20 + 2 ** 19;
  const config = { ...golden.config, vocab_size: 2 ** 22, intermediate_size: inner, num_hidden_layers: 1 };
  await writeFile(join(large, "config.json"), JSON.stringify(config));
  const sized = golden.tensors
    .filter(([name]) => !name.includes("layer.1."))
    .map(([name, shape]) => [
      name,
      shape.map((dim) => (dim === 48 ? 2 ** 22 : dim === 24 ? inner : dim)),
    ]) as readonly (readonly [string, readonly number[]])[];
  let end = 0;
  const header: Record<string, unknown> = {};
  for (const [name, shape] of sized)
    header[name] = { dtype: "F32", shape, data_offsets: [end, (end += 4 * shape.reduce((a, b) => a * b, 1))] };
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength));
  {
    await using file = await open(join(large, "model.safetensors"), "w");
    await file.write(Buffer.concat([length, text]));
    // The file is sparse: the numbers occupy no disk space and read as zeros.
    await file.truncate(8 + text.byteLength + end);
  }
  const script = `
    const { convertEncoder } = await import(${JSON.stringify(new URL("convert-encoder.ts", import.meta.url).href)});
    const before = process.resourceUsage().maxRSS;
    const { byteLength } = await convertEncoder({
      source: process.argv[1], target: process.argv[1] + "/model.onnx", weights: "FLOAT", integers: "INT64", operators: "fused",
      opset: 17, oneSegment: false, pooler: false, names: new Map(), fileBytesMax: 2 ** 28, signal: new AbortController().signal,
    });
    console.log(JSON.stringify({ byteLength, grownKiB: process.resourceUsage().maxRSS - before }));
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script, large], {
    encoding: "utf8",
  });
  const { byteLength, grownKiB } = JSON.parse(stdout || `{"error":${JSON.stringify(stderr)}}`);
  assert.ok(byteLength > 384 * 2 ** 20);
  assert.ok(grownKiB < 130 * 1024, `${grownKiB} KiB`);
});
