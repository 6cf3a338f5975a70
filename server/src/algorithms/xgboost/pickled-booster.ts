import { InferenceError } from "../../base/index.ts";

/** What a pickled `xgboost.Booster` holds. */
export interface PickledBooster {
  /** The model, as `Booster.save_raw` and `Booster.serialize` write it. */
  readonly model: Uint8Array;
  /** Trees of a class, or rounds, that training found best; 0 for all. */
  readonly bestTreeLimit: number;
}

/** Pickles of protocol 2 and later begin with this. */
const protocolOpcode = 0x80;
const depthMax = 10_000;

export function isPickle(bytes: Uint8Array): boolean {
  return bytes[0] === protocolOpcode && (bytes[1] ?? 255) <= 5;
}

/**
 * Reads a pickle of a Booster and nothing else: no name that it holds is looked up, and no code of it runs. Throws InferenceError for a pickle of
 * anything else.
 */
export function readPickledBooster(bytes: Uint8Array): PickledBooster {
  const booster = new PickleReader(bytes).read();
  if (!(booster instanceof PickledObject) || booster.name !== boosterName)
    throw brokenPickle("holds no xgboost.Booster");
  const model = booster.state.get("handle");
  if (!(model instanceof Uint8Array)) throw brokenPickle("holds a Booster without a model");
  const limit = booster.state.get("best_ntree_limit");
  return { model, bestTreeLimit: typeof limit === "number" && limit > 0 ? limit : 0 };
}

const boosterName = "xgboost.core Booster";

/** Names that pickles of a Booster hold, and what is made with each. */
const knownNames: ReadonlyMap<string, "class" | "bytes" | "encoded" | "object" | "reconstructor"> = new Map([
  [boosterName, "class"],
  ["builtins bytearray", "bytes"],
  ["__builtin__ bytearray", "bytes"],
  ["_codecs encode", "encoded"],
  ["builtins object", "object"],
  ["__builtin__ object", "object"],
  ["copyreg _reconstructor", "reconstructor"],
  ["copy_reg _reconstructor", "reconstructor"],
] as const);

class PickledName {
  readonly name: string;

  constructor(name: string) {
    if (!knownNames.has(name)) {
      throw new InferenceError(
        "UNSUPPORTED",
        `the pickle names '${name.slice(0, 100)}': it is not run, only a Booster is read`,
      );
    }
    this.name = name;
  }
}

class PickledObject {
  readonly name: string;
  readonly state = new Map<PickleValue, PickleValue>();

  constructor(name: string) {
    this.name = name;
  }
}

const mark: unique symbol = Symbol("mark");

type PickleValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | PickledName
  | PickledObject
  | PickleValue[]
  | Map<PickleValue, PickleValue>
  | typeof mark;

class PickleReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #stack: PickleValue[] = [];
  readonly #memo = new Map<number, PickleValue>();
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): PickleValue {
    for (;;) {
      const opcode = String.fromCharCode(this.#view.getUint8(this.#take(1)));
      if (opcode === ".") return this.#pop();
      const apply = opcodes.get(opcode);
      if (apply === undefined) throw brokenPickle(`has an opcode that a Booster needs not, at byte ${this.#at - 1}`);
      apply(this);
    }
  }

  #take(byteLength: number): number {
    if (!(byteLength <= this.#bytes.length - this.#at)) throw brokenPickle("ends too early");
    const at = this.#at;
    this.#at += byteLength;
    return at;
  }

  #pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined) throw brokenPickle("takes what is not there");
    return value;
  }

  push(value: PickleValue): void {
    if (this.#stack.length === depthMax) throw brokenPickle("is too deep");
    this.#stack.push(value);
  }

  unsigned(byteLength: 1 | 2 | 4 | 8): number {
    const at = this.#take(byteLength);
    if (byteLength === 1) return this.#view.getUint8(at);
    if (byteLength === 2) return this.#view.getUint16(at, true);
    return byteLength === 4 ? this.#view.getUint32(at, true) : Number(this.#view.getBigUint64(at, true));
  }

  signed32(): number {
    return this.#view.getInt32(this.#take(4), true);
  }

  double(): number {
    return this.#view.getFloat64(this.#take(8), false);
  }

  bytes(byteLength: number): Uint8Array {
    const at = this.#take(byteLength);
    return this.#bytes.subarray(at, at + byteLength);
  }

  text(byteLength: number): string {
    return new TextDecoder().decode(this.bytes(byteLength));
  }

  line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    if (end === -1) throw brokenPickle("ends too early");
    const text = this.text(end - this.#at);
    this.#take(1);
    return text;
  }

  memoize(index: number): void {
    this.#memo.set(index, this.#stack.at(-1) ?? null);
  }

  memoizeNext(): void {
    this.memoize(this.#memo.size);
  }

  recall(index: number): void {
    const value = this.#memo.get(index);
    if (value === undefined) throw brokenPickle("takes what is not there");
    this.push(value);
  }

  /** What stands above the last mark, which goes with it. */
  popToMark(): PickleValue[] {
    const at = this.#stack.lastIndexOf(mark);
    if (at === -1) throw brokenPickle("takes what is not there");
    return this.#stack.splice(at).slice(1);
  }

  tuple(count: number): void {
    if (this.#stack.length < count) throw brokenPickle("takes what is not there");
    this.push(this.#stack.splice(this.#stack.length - count));
  }

  named(): void {
    const name = this.#pop();
    const module = this.#pop();
    if (typeof module !== "string" || typeof name !== "string") throw brokenPickle("has a name that is none");
    this.push(new PickledName(`${module} ${name}`));
  }

  setItems(pairs: readonly PickleValue[]): void {
    const target = this.#stack.at(-1);
    if (!(target instanceof Map)) throw brokenPickle("sets items of what is no dictionary");
    for (let at = 0; at + 1 < pairs.length; at += 2) target.set(pairs[at] as PickleValue, pairs[at + 1] as PickleValue);
  }

  setItem(): void {
    const value = this.#pop();
    const key = this.#pop();
    this.setItems([key, value]);
  }

  append(values: readonly PickleValue[]): void {
    const target = this.#stack.at(-1);
    if (!Array.isArray(target)) throw brokenPickle("adds to what is no list");
    for (const value of values) target.push(value);
  }

  appendOne(): void {
    this.append([this.#pop()]);
  }

  newObject(): void {
    this.#pop();
    const name = this.#pop();
    if (!(name instanceof PickledName)) throw brokenPickle("makes an object of what is no class");
    this.push(new PickledObject(name.name));
  }

  build(): void {
    const state = this.#pop();
    const target = this.#stack.at(-1);
    if (!(target instanceof PickledObject) || !(state instanceof Map)) throw brokenPickle("has a state that is none");
    for (const [key, value] of state) target.state.set(key, value);
  }

  /** Calls one of the few things that pickles of a Booster call. */
  reduce(): void {
    const values = this.#pop();
    const called = this.#pop();
    if (!(called instanceof PickledName) || !Array.isArray(values)) throw brokenPickle("calls what is no name");
    const [first, second] = values;
    const kind = knownNames.get(called.name);
    if (kind === "bytes" && first instanceof Uint8Array) return this.push(first);
    if (kind === "bytes" && first === undefined) return this.push(new Uint8Array(0));
    if (kind === "encoded" && typeof first === "string" && second === "latin1") {
      return this.push(Uint8Array.from(Buffer.from(first, "latin1")));
    }
    if (kind === "reconstructor" && first instanceof PickledName) return this.push(new PickledObject(first.name));
    throw brokenPickle(`calls '${called.name}' with what it does not take`);
  }
}

/** The opcodes that pickles of protocols 2 to 5 have for a Booster's parts. */
const opcodes: ReadonlyMap<string, (from: PickleReader) => void> = new Map([
  ["\x80", (from: PickleReader) => void from.unsigned(1)],
  ["\x95", (from) => void from.unsigned(8)],
  ["N", (from) => from.push(null)],
  ["\x88", (from) => from.push(true)],
  ["\x89", (from) => from.push(false)],
  ["J", (from) => from.push(from.signed32())],
  ["K", (from) => from.push(from.unsigned(1))],
  ["M", (from) => from.push(from.unsigned(2))],
  ["G", (from) => from.push(from.double())],
  ["X", (from) => from.push(from.text(from.unsigned(4)))],
  ["\x8c", (from) => from.push(from.text(from.unsigned(1)))],
  ["\x8d", (from) => from.push(from.text(from.unsigned(8)))],
  ["B", (from) => from.push(from.bytes(from.unsigned(4)))],
  ["C", (from) => from.push(from.bytes(from.unsigned(1)))],
  ["\x8e", (from) => from.push(from.bytes(from.unsigned(8)))],
  ["\x96", (from) => from.push(from.bytes(from.unsigned(8)))],
  ["}", (from) => from.push(new Map())],
  ["]", (from) => from.push([])],
  [")", (from) => from.push([])],
  ["(", (from) => from.push(mark)],
  ["t", (from) => from.push(from.popToMark())],
  ["\x85", (from) => from.tuple(1)],
  ["\x86", (from) => from.tuple(2)],
  ["\x87", (from) => from.tuple(3)],
  ["s", (from) => from.setItem()],
  ["u", (from) => from.setItems(from.popToMark())],
  ["a", (from) => from.appendOne()],
  ["e", (from) => from.append(from.popToMark())],
  ["q", (from) => from.memoize(from.unsigned(1))],
  ["r", (from) => from.memoize(from.unsigned(4))],
  ["\x94", (from) => from.memoizeNext()],
  ["h", (from) => from.recall(from.unsigned(1))],
  ["j", (from) => from.recall(from.unsigned(4))],
  ["c", (from) => from.push(new PickledName(`${from.line()} ${from.line()}`))],
  ["\x93", (from) => from.named()],
  ["\x81", (from) => from.newObject()],
  ["R", (from) => from.reduce()],
  ["b", (from) => from.build()],
]);

function brokenPickle(what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the pickle ${what}`);
}
