import { open, realpath, type FileHandle } from "node:fs/promises";
import { join, normalize, sep } from "node:path";
import { InferenceError } from "@galatea/base";
import type { ModelConfig, WarmUpInput } from "../modelconfig/index.ts";
import { datatypes, elementCount, type Arena, type Block, type Tensor } from "../tensor/index.ts";

export interface WarmUpData {
  readonly arena: Arena;
  readonly source: { readonly modelDirectory: string };
  readonly config: ModelConfig;
  readonly fillRandom: (bytes: Uint8Array) => void;
}

/** Folder of the `input_data_file` files in a model's directory. */
const warmUpFolder = "warmup";
/** Limit of a file of strings, which is read to a buffer. */
const stringFileBytesMax = 256 * 1024 * 1024;

/** Returns the tensor of one row that a warm-up sample describes, in a separate block, which the caller owns. */
export async function warmUpTensor(input: WarmUpInput, data: WarmUpData): Promise<Tensor> {
  const { name } = input;
  const { datatype, shape, bytes } = layoutOf(input, data.config);
  const block = await blockOf(input, bytes, data);
  return { name, datatype, shape, data: block.bytes, block };
}

function layoutOf({ name, datatype, dims }: WarmUpInput, config: ModelConfig) {
  if (datatype === null) {
    const expected = config.inputs.find((each) => each.name === name)?.datatype ?? "";
    throw refused(
      `inference input '${name}' data-type is '<invalid>', but model '${config.name}' expects '${expected}'`,
    );
  }
  const shape = config.maxBatchSize > 0 ? [1, ...dims] : [...dims];
  // An empty string consists only of its length field, so a tensor of empty strings is all zeros.
  const bytes = elementCount(shape) * (datatypes[datatype].byteSize || 4);
  return { datatype, shape, bytes };
}

function withoutData({ name }: WarmUpInput): InferenceError {
  return refused(`warmup setting expects input '${name}' to have input_data_type set`);
}

async function blockOf(input: WarmUpInput, bytes: number, data: WarmUpData): Promise<Block> {
  const { content } = input;
  switch (content.kind) {
    case "zero":
      return filled(data.arena.allocate(bytes), (into) => into.fill(0));
    case "random":
      // Random bytes would not be valid strings or booleans.
      return filled(data.arena.allocate(bytes), (into) => {
        if (input.datatype === "BYTES") into.fill(0);
        else data.fillRandom(into);
        if (input.datatype === "BOOL") for (let i = 0; i < into.length; i++) into[i]! &= 1;
      });
    case "file":
      return readFile(input, content.file, bytes, data);
    default:
      throw withoutData(input);
  }
}

function filled(block: Block, fill: (into: Uint8Array) => void): Block {
  fill(block.bytes);
  return block;
}

/** Reads as many bytes of a file as the tensor needs. A file of strings is read whole; each string has a length prefix. */
async function readFile(
  input: WarmUpInput,
  file: string,
  bytes: number,
  { arena, source }: WarmUpData,
): Promise<Block> {
  const opened = await openData(input, file, bytes, source.modelDirectory);
  await using handle = opened.handle;
  const block = arena.allocate(opened.usedBytes);
  try {
    for (let at = 0; at < block.bytes.length;) {
      const { bytesRead } = await handle.read(block.bytes, at, block.bytes.length - at, at);
      if (bytesRead === 0)
        throw refused(`warmup data ${file} of input '${input.name}' was truncated while it was read`);
      at += bytesRead;
    }
    return block;
  } catch (error) {
    block.release();
    throw error;
  }
}

interface OpenData {
  readonly handle: FileHandle;
  /** Number of bytes of the file that the tensor needs. */
  readonly usedBytes: number;
}

async function openData(input: WarmUpInput, file: string, bytes: number, modelDirectory: string): Promise<OpenData> {
  const handle = await openInside(join(modelDirectory, warmUpFolder), file);
  try {
    const { size } = await handle.stat();
    const isText = input.datatype === "BYTES";
    if (!isText && size < bytes) {
      throw refused(`warmup setting expects ${bytes} bytes, but the data provided from ${file}only has ${size} bytes`);
    }
    if (isText && size > stringFileBytesMax) {
      throw refused(
        `warmup data ${file} of input '${input.name}' has ${size} bytes, max allowed is ${stringFileBytesMax}`,
      );
    }
    return { handle, usedBytes: isText ? size : bytes };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Opens a regular file inside the folder. Rejects a name that leads outside of the folder, because the model's configuration contains the
 * name.
 */
async function openInside(folder: string, file: string): Promise<FileHandle> {
  const path = `${folder}/${file}`;
  const failed = (why: string) =>
    new InferenceError("INTERNAL", `failed to open text file for read ${path.replace(/\/+/g, "/")}: ${why}`);
  const inside = normalize(file.replace(/^\/+/, ""));
  if (inside === ".." || inside.startsWith(`..${sep}`) || file.includes("\0")) {
    throw failed("No such file or directory (the file must be in the model's warmup folder)");
  }
  let handle: FileHandle;
  try {
    const real = await realpath(join(folder, inside));
    const base = await realpath(join(folder, ".."));
    if (!real.startsWith(`${base}${sep}`)) throw failed("it is a link to a path outside the model's directory");
    handle = await open(real);
  } catch (error) {
    if (error instanceof InferenceError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw failed(code === "ENOENT" || code === "ENOTDIR" ? "No such file or directory" : message);
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw failed("it is not a file");
}

/**
 * Returns an error with the prefix "<id_unknown>", because Triton's errors about inputs begin with a request id and a warm-up request has
 * none.
 */
function refused(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", `[request id: <id_unknown>] ${message}`);
}
