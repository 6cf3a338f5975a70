import { PickleError, readPickle, type Pickled } from "@galatea/runtimes/formats";
import { ConversionError } from "./conversion-error.ts";
import { numberCount, storedTypes, type StoredTensor, type StoredType, type WeightFile } from "./stored-tensor.ts";
import { readEntry, readTorchArchive, type StoredFile } from "./torch-archive.ts";

const pickleBytesMax = 64 * 2 ** 20;

/** Element types by the class of the storage; null for types that weights never have. */
const storageTypes: Readonly<Record<string, StoredType | null>> = {
  DoubleStorage: "F64",
  FloatStorage: "F32",
  HalfStorage: "F16",
  BFloat16Storage: "BF16",
  LongStorage: null,
  IntStorage: null,
  ShortStorage: null,
  CharStorage: null,
  ByteStorage: null,
  BoolStorage: null,
};

class StorageKind {
  readonly type: StoredType | null;

  constructor(type: StoredType | null) {
    this.type = type;
  }
}

class Storage {
  readonly type: StoredType | null;
  readonly entry: StoredFile;

  constructor(type: StoredType | null, entry: StoredFile) {
    this.type = type;
    this.entry = entry;
  }
}

class Unnamed {
  readonly storage: Storage;
  readonly first: number;
  readonly shape: readonly number[];
  readonly isWhole: boolean;

  constructor(storage: Storage, [first, shape, strides]: readonly [number, readonly number[], readonly number[]]) {
    this.storage = storage;
    this.first = first;
    this.shape = shape;
    this.isWhole = isRowMajor(shape, strides);
  }
}

/**
 * Reads the tensors of a `pytorch_model.bin`: a zip archive with a pickle and a file for each storage. The pickle is
 * parsed as data, and nothing in it is called. Omits integer tensors. Throws ConversionError.
 */
export async function readTorchTensors(file: WeightFile): Promise<readonly StoredTensor[]> {
  const entries = await readTorchArchive(file);
  const pickle = entries.find(({ name }) => name.endsWith("/data.pkl"));
  if (pickle === undefined || entries.some(({ name }) => name.includes("/code/")))
    throw new ConversionError(
      `'${file.path}' is not a file of weights` +
        (pickle === undefined ? "" : ", but a TorchScript program, which backend 'pytorch' serves as it is"),
    );
  if (pickle.byteLength > pickleBytesMax)
    throw new ConversionError(
      `Cannot convert '${file.path}': data.pkl has ${pickle.byteLength} bytes (maximum ${pickleBytesMax})`,
    );
  const root = pickle.name.slice(0, -"data.pkl".length);
  const byName = new Map(entries.map((entry) => [entry.name, entry]));
  const order = byName.get(`${root}byteorder`);
  if (order !== undefined && order.byteLength < 16 && (await readEntry(file, order)).toString() !== "little")
    throw new ConversionError(`'${file.path}' was written on a machine of another byte order`);
  try {
    const read = readPickle(await readEntry(file, pickle), {
      needs: "weights need",
      classes: new Set(),
      names: (name) => calls.get(name) ?? storageName(name),
      persistent: (id) => storageOf(id, root, byName),
    });
    return tensorsOf(file, read);
  } catch (error) {
    if (!(error instanceof PickleError)) throw error;
    throw new ConversionError(`'${file.path}': its pickle ${error.message}`);
  }
}

const calls: ReadonlyMap<string, (args: readonly Pickled[]) => Pickled> = new Map([
  ["collections.OrderedDict", () => new Map()],
  ["torch._utils._rebuild_tensor_v2", rebuild],
  ["torch._utils._rebuild_parameter", ([data]: readonly Pickled[]) => data],
]);

/** Returns a constructor for the name of a storage's class. It returns the name; no class is loaded or called. */
function storageName(name: string): (() => Pickled) | null {
  const [, kind = ""] = /^torch\.(\w+)$/.exec(name) ?? [];
  if (!Object.hasOwn(storageTypes, kind)) return null;
  return () => new StorageKind(storageTypes[kind] ?? null);
}

function isCounts(value: Pickled): value is readonly number[] {
  return Array.isArray(value) && value.every((each) => Number.isSafeInteger(each) && (each as number) >= 0);
}

function rebuild([storage, first, shape, strides]: readonly Pickled[]): Unnamed {
  if (!(storage instanceof Storage) || !isCounts([first]) || !isCounts(shape) || !isCounts(strides))
    throw new PickleError("has an invalid tensor");
  if (shape.length !== strides.length || shape.length > 8) throw new PickleError("has an invalid tensor");
  return new Unnamed(storage, [first as number, shape, strides]);
}

/** Returns whether the numbers are row-major. The stride of a dimension of size one does not matter. */
function isRowMajor(shape: readonly number[], strides: readonly number[]): boolean {
  let expected = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    if (shape[i] !== 1 && strides[i] !== expected) return false;
    expected *= shape[i] as number;
  }
  return true;
}

/**
 * Parses a pickled reference to a storage, ("storage", class, key, device, count). The zip archive contains the storage
 * as `data/<key>`.
 */
function storageOf(id: Pickled, root: string, byName: ReadonlyMap<string, StoredFile>): Storage {
  const [word, kind, key] = Array.isArray(id) ? (id as readonly Pickled[]) : [];
  const created =
    kind instanceof Object && "call" in kind ? (kind.call as (args: readonly Pickled[]) => Pickled)([]) : null;
  if (word !== "storage" || !(created instanceof StorageKind) || typeof key !== "string")
    throw new PickleError("has an invalid storage");
  const entry = byName.get(`${root}data/${key}`);
  if (entry === undefined) throw new PickleError(`has a storage 'data/${key.slice(0, 100)}', which does not exist`);
  return new Storage(created.type, entry);
}

function tensorsOf(file: WeightFile, read: Pickled): readonly StoredTensor[] {
  if (!(read instanceof Map)) throw new PickleError("is not a dictionary of tensors");
  const tensors: StoredTensor[] = [];
  for (const [name, value] of read) {
    if (typeof name !== "string" || !(value instanceof Unnamed)) continue;
    const { storage, first, shape, isWhole } = value;
    const { type, entry } = storage;
    if (type === null) continue;
    if (!isWhole) throw new PickleError(`has '${name}' in another order than row by row; save it with .contiguous()`);
    const offset = first * storedTypes[type];
    if (offset + numberCount(shape) * storedTypes[type] > entry.byteLength)
      throw new PickleError(`has '${name}', [${shape.join(", ")}], beyond the end of '${entry.name}'`);
    tensors.push({ name, type, shape, file, offset: entry.offset + offset });
  }
  if (tensors.length === 0) throw new PickleError("has no tensors");
  return tensors;
}
