import { InferenceError } from "@galatea/base";
import { type Pickled, PickledObject, PickleError, readPickle } from "../../formats/index.ts";

/** The content of a pickled `xgboost.Booster`. */
export interface PickledBooster {
  /** The model in the format of `Booster.save_raw` or `Booster.serialize`. */
  readonly model: Uint8Array;
  /** Number of trees per output with the best result in training (`best_ntree_limit`); 0 to use all. */
  readonly bestTreeLimit: number;
}

/** First byte of a pickle of protocol 2 or later. */
const protocolOpcode = 0x80;
const boosterName = "xgboost.core.Booster";

export function isPickle(bytes: Uint8Array): boolean {
  return bytes[0] === protocolOpcode && (bytes[1] ?? 255) <= 5;
}

/** Reads a pickle of a Booster without importing or running code. Throws InferenceError for a pickle of another object. */
export function readPickledBooster(bytes: Uint8Array): PickledBooster {
  const booster = readValue(bytes);
  if (!(booster instanceof PickledObject) || booster.className !== boosterName)
    throw brokenPickle("holds no xgboost.Booster");
  const model = booster.state.get("handle");
  if (!(model instanceof Uint8Array)) throw brokenPickle("holds a Booster without a model");
  const limit = booster.state.get("best_ntree_limit");
  return { model, bestTreeLimit: typeof limit === "number" && limit > 0 ? limit : 0 };
}

function readValue(bytes: Uint8Array): Pickled {
  try {
    return readPickle(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
      needs: "Booster needs",
      names: (name) => calls.get(name) ?? null,
      classes: new Set([boosterName]),
      persistent: () => null,
    });
  } catch (error) {
    if (!(error instanceof PickleError)) throw error;
    throw new InferenceError(error.isForeign ? "UNSUPPORTED" : "INVALID_ARG", `the pickle ${error.message}`, {
      cause: error,
    });
  }
}

/** The functions that a pickle of a Booster calls. Protocols before 3 write bytes as a string and the name of its encoding. */
const calls: ReadonlyMap<string, (args: readonly Pickled[]) => Pickled> = new Map([
  ["builtins.bytearray", bytesOf],
  ["__builtin__.bytearray", bytesOf],
  ["_codecs.encode", encoded],
  ["builtins.object", () => refusedCall("builtins.object")],
  ["__builtin__.object", () => refusedCall("__builtin__.object")],
  ["copyreg._reconstructor", ([created]: readonly Pickled[]) => PickledObject.of(created)],
  ["copy_reg._reconstructor", ([created]: readonly Pickled[]) => PickledObject.of(created)],
]);

function bytesOf([bytes = Buffer.alloc(0)]: readonly Pickled[]): Pickled {
  return bytes instanceof Uint8Array ? bytes : refusedCall("bytearray");
}

function encoded([text, encoding]: readonly Pickled[]): Pickled {
  return typeof text === "string" && encoding === "latin1" ? Buffer.from(text, "latin1") : refusedCall("encode");
}

function refusedCall(name: string): never {
  throw new PickleError(`calls '${name}' with arguments that it does not accept`);
}

function brokenPickle(what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the pickle ${what}`);
}
