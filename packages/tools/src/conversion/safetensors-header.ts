import type { StoredTensor, WeightFile } from "./stored-tensor.ts";
import { numberCount, storedTypes } from "./stored-tensor.ts";
import { ConversionError } from "./conversion-error.ts";

/** Maximum size of a header in bytes, as in the `safetensors` library. */
const headerBytesMax = 100_000_000;
const dimsMax = 8;

/**
 * Reads the tensors of a .safetensors file. The file has the header's length as a uint64, the header, and the numbers.
 * The header is JSON with a dtype, shape and offsets for each name. Omits integer tensors, which are buffers of
 * encoders. Throws ConversionError for an inconsistent file.
 */
export async function readSafetensors(file: WeightFile): Promise<readonly StoredTensor[]> {
  const { path, handle } = file;
  const fileBytes = (await handle.stat()).size;
  const wrong = (why: string) => new ConversionError(`'${path}' is not a safetensors file: ${why}`);
  const head = Buffer.alloc(8);
  if ((await handle.read(head, 0, 8, 0)).bytesRead < 8) throw wrong(`it has only ${fileBytes} bytes`);
  const headerBytes = head.readBigUInt64LE(0);
  if (headerBytes > BigInt(headerBytesMax))
    throw wrong(`its header would have ${headerBytes} bytes, more than the maximum of ${headerBytesMax}`);
  const dataStart = 8 + Number(headerBytes);
  if (dataStart > fileBytes) throw wrong(`its header ends at byte ${dataStart}, and it has ${fileBytes}`);
  const text = Buffer.alloc(dataStart - 8);
  let read = 0;
  while (read < text.byteLength) {
    const { bytesRead } = await handle.read(text, read, text.byteLength - read, 8 + read);
    if (bytesRead === 0) throw wrong("it was cut short while it was read");
    read += bytesRead;
  }
  const tensors: StoredTensor[] = [];
  for (const [name, entry] of Object.entries(parseHeader(text, wrong))) {
    if (name === "__metadata__") continue;
    const tensor = tensorOf(name, entry, { file, dataStart, dataBytes: fileBytes - dataStart });
    if (tensor !== null) tensors.push(tensor);
  }
  return tensors;
}

function parseHeader(text: Buffer, wrong: (why: string) => ConversionError): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text.toString("utf8"));
  } catch (error) {
    throw wrong(`its header is not JSON (${(error as Error).message})`);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw wrong("its header is not a JSON object");
  return parsed as Record<string, unknown>;
}

interface Location {
  readonly file: WeightFile;
  readonly dataStart: number;
  readonly dataBytes: number;
}

/** Parses the description of a tensor. Returns null for an element type that weights never have. */
function tensorOf(name: string, entry: unknown, { file, dataStart, dataBytes }: Location): StoredTensor | null {
  const wrong = (why: string) => new ConversionError(`'${file.path}': the tensor '${name}' ${why}`);
  if (typeof entry !== "object" || entry === null) throw wrong("has no description");
  const { dtype, shape, data_offsets: offsets } = entry as Record<string, unknown>;
  if (!isCounts(shape) || shape.length > dimsMax) throw wrong("has no shape");
  if (!isCounts(offsets) || offsets.length !== 2) throw wrong("has no offsets in the file");
  const [start, end] = offsets as [number, number];
  if (start > end || end > dataBytes)
    throw wrong(`lies in bytes ${start} to ${end} of the data, which has ${dataBytes}`);
  if (typeof dtype !== "string" || !Object.hasOwn(storedTypes, dtype)) return null;
  const type = dtype as keyof typeof storedTypes;
  const byteLength = numberCount(shape) * storedTypes[type];
  if (byteLength !== end - start)
    throw wrong(`is ${dtype} [${shape.join(", ")}], which is ${byteLength} bytes, and ${end - start} are there`);
  return { name, type, shape, file, offset: dataStart + start };
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((each) => Number.isSafeInteger(each) && (each as number) >= 0);
}
