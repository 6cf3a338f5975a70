import { open, readFile, stat, type FileHandle } from "node:fs/promises";
import { basename, join } from "node:path";
import { ConversionError } from "./conversion-error.ts";
import { readSafetensors } from "./safetensors-header.ts";
import { readTorchTensors } from "./torch-tensors.ts";
import { numberCount, type StoredTensor, type WeightFile } from "./stored-tensor.ts";

/** A directory in the format of `save_pretrained`: the model's configuration, and its tensors by name. */
export interface Checkpoint extends AsyncDisposable {
  readonly directory: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly tensors: ReadonlyMap<string, StoredTensor>;
}

const configBytesMax = 16 * 2 ** 20;
const filesMax = 1000;

/** Opens `config.json` and the weight files in the same directory. Reads no tensor data. Throws ConversionError. */
export async function openCheckpoint(directory: string): Promise<Checkpoint> {
  const config = await readJsonObject(join(directory, "config.json"));
  if (config === null) throw new ConversionError(`'${directory}' has no config.json, which says what its weights are`);
  const { paths, read } = await weightPaths(directory);
  const handles: FileHandle[] = [];
  const close = async () => void (await Promise.all(handles.map((handle) => handle.close())));
  try {
    const tensors = new Map<string, StoredTensor>();
    for (const path of paths) {
      const file = await openWeights(path);
      handles.push(file.handle);
      for (const tensor of await read(file)) {
        const other = tensors.get(tensor.name);
        if (other !== undefined)
          throw new ConversionError(`the tensor '${tensor.name}' is in '${other.file.path}' and in '${path}'`);
        tensors.set(tensor.name, tensor);
      }
    }
    return { directory, config, tensors, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openWeights(path: string): Promise<WeightFile> {
  try {
    return { path, handle: await open(path, "r") };
  } catch (error) {
    throw new ConversionError(`'${path}' cannot be opened: ${(error as Error).message}`, { cause: error });
  }
}

/** File names of weights, in order of priority. */
const forms = [
  { whole: "model.safetensors", read: readSafetensors },
  { whole: "pytorch_model.bin", read: readTorchTensors },
];

/** Returns the paths of the weight files: a single file, or the files that an index names. */
async function weightPaths(directory: string): Promise<{ paths: readonly string[]; read: typeof readSafetensors }> {
  for (const { whole, read } of forms) {
    const path = join(directory, whole);
    if (await isFile(path)) return { paths: [path], read };
    const paths = await indexedPaths(directory, `${whole}.index.json`);
    if (paths !== null) return { paths, read };
  }
  throw new ConversionError(
    `'${directory}' has neither ${forms.map(({ whole }) => whole).join(" nor ")}, nor an index of either`,
  );
}

/** Returns the paths that an index names; null if there is no index with this name. */
async function indexedPaths(directory: string, name: string): Promise<readonly string[] | null> {
  const indexPath = join(directory, name);
  const index = await readJsonObject(indexPath);
  if (index === null) return null;
  const names = new Set(Object.values((index["weight_map"] ?? {}) as Record<string, unknown>));
  if (names.size === 0 || names.size > filesMax)
    throw new ConversionError(`'${indexPath}' names ${names.size} files of weights`);
  return [...names].map((each) => {
    // A name with a directory part could refer to any file of the machine.
    if (typeof each !== "string" || basename(each) !== each || each === "" || each.startsWith("."))
      throw new ConversionError(`'${indexPath}' names ${JSON.stringify(each)}, which is not a file beside it`);
    return join(directory, each);
  });
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

/** Reads a JSON object; null if the file does not exist. */
async function readJsonObject(path: string): Promise<Record<string, unknown> | null> {
  const found = await stat(path).catch(() => null);
  if (found?.isFile() !== true) return null;
  if (found.size > configBytesMax) throw new ConversionError(`'${path}' has ${found.size} bytes`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new ConversionError(`'${path}' is not JSON: ${(error as Error).message}`, { cause: error });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new ConversionError(`'${path}' is not a JSON object`);
  return parsed as Record<string, unknown>;
}

/** Returns the named tensor, which must have exactly this shape. */
export function tensorOfShape(checkpoint: Checkpoint, name: string, shape: readonly number[]): StoredTensor {
  const tensor = checkpoint.tensors.get(name);
  if (tensor === undefined) throw new ConversionError(`the weights in '${checkpoint.directory}' have no '${name}'`);
  if (tensor.shape.join() !== shape.join() || numberCount(shape) === 0)
    throw new ConversionError(
      `'${name}' in '${tensor.file.path}' is [${tensor.shape.join(", ")}], and config.json says [${shape.join(", ")}]`,
    );
  return tensor;
}
