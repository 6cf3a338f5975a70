// Reads pickles as data. A pickle is a program that names functions and calls them. This reader imports and runs nothing: it only calls the
// functions that the caller supplies for some names, and fails at any other name.

/** A value that a pickle builds: a Python value, or a result of the reader's functions `names` or `persistent`. */
export type Pickled = unknown;

export interface PickleReader {
  /** The purpose of the file and a verb, for errors such as "which no weights need". */
  readonly needs: string;
  /** Returns the function that replaces "module.name" of Python; null to reject the name. */
  readonly names: (name: string) => ((args: readonly Pickled[]) => Pickled) | null;
  /** Names of classes whose instances are read as `PickledObject`, without running code of the class. */
  readonly classes: ReadonlySet<string>;
  /** Returns the object for a persistent id, which refers to data outside of the pickle. */
  readonly persistent: (id: Pickled) => Pickled;
}

/** The error for an unreadable pickle. Its message is a predicate; the caller adds the name of the file as the subject. */
export class PickleError extends Error {
  /** True if the pickle is valid, but its content is not supported. */
  readonly isForeign: boolean;

  constructor(message: string, isForeign = false) {
    super(message);
    this.name = "PickleError";
    this.isForeign = isForeign;
  }
}

/** An object of one of the supported classes. */
export class PickledObject {
  readonly className: string;
  readonly state = new Map<Pickled, Pickled>();

  private constructor(className: string) {
    this.className = className;
  }

  /** Creates an instance of a class that the pickle has looked up. Throws PickleError if `created` is not such a class. */
  static of(created: Pickled): PickledObject {
    if (!(created instanceof Callable) || created.className === null)
      throw new PickleError("creates an object of something that is not a class");
    return new PickledObject(created.className);
  }
}

/** A function or class that the pickle has looked up by name, and may call or instantiate. */
class Callable {
  readonly call: (args: readonly Pickled[]) => Pickled;
  readonly className: string | null;

  constructor(call: (args: readonly Pickled[]) => Pickled, className: string | null) {
    this.call = call;
    this.className = className;
  }
}

const mark = Symbol("mark");
const depthMax = 100_000;
/** Maximum number of lists, tuples and dictionaries: each may be a few bytes in the file, but takes about a hundred bytes in memory. */
const containersMax = 2 ** 20;

/** Reads one pickle of the protocols 2 to 5. Takes time linear in its length, and a bounded amount of additional memory. */
export function readPickle(bytes: Buffer, reader: PickleReader): Pickled {
  return new PickleMachine(bytes, reader).run();
}

class PickleMachine {
  readonly #bytes: Buffer;
  readonly #reader: PickleReader;
  readonly #stack: Pickled[] = [];
  readonly #memo = new Map<number, Pickled>();
  #at = 0;
  #containerCount = 0;

  constructor(bytes: Buffer, reader: PickleReader) {
    this.#bytes = bytes;
    this.#reader = reader;
  }

  run(): Pickled {
    for (;;) {
      const code = this.#byte();
      if (code === 0x2e) return this.#pop();
      const step = steps[code];
      if (step === undefined)
        throw new PickleError(`has the instruction 0x${code.toString(16)}, which no ${this.#reader.needs}`);
      step(this.#handlers);
    }
  }

  /** The operations that `steps` uses to execute instructions. */
  readonly #handlers = {
    byte: () => this.#byte(),
    uint: (width: number) => this.#take(width).readUIntLE(0, width),
    int32: () => this.#take(4).readInt32LE(0),
    float64: () => this.#take(8).readDoubleBE(0),
    long: () => this.#long(this.#byte()),
    text: (width: number) => this.#text(width),
    line: () => this.#line(),
    bytes: (width: number) => this.#take(this.#length(width)),
    push: (value: Pickled) => this.#push(value),
    pop: () => this.#pop(),
    toMark: () => this.#toMark(),
    top: () => this.#top(),
    skip: (count: number) => void this.#take(count),
    remember: (position: number | null) => void this.#memo.set(position ?? this.#memo.size, this.#top()),
    recall: (position: number) => this.#recall(position),
    name: (name: string) => this.#name(name),
    call: (callee: Pickled, args: Pickled) => this.#call(callee, args),
    persistent: (id: Pickled) => this.#reader.persistent(id),
  };

  #byte(): number {
    return this.#take(1)[0] as number;
  }

  #take(count: number): Buffer {
    if (this.#at + count > this.#bytes.byteLength) throw new PickleError("was cut short");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  #text(width: number): string {
    return this.#take(this.#length(width)).toString("utf8");
  }

  #length(width: number): number {
    return width === 8 ? Number(this.#take(8).readBigUInt64LE(0)) : this.#take(width).readUIntLE(0, width);
  }

  #push(value: Pickled): void {
    if (this.#stack.length === depthMax) throw new PickleError("is too deep");
    if (Array.isArray(value) || value instanceof Map) this.#containerCount += 1;
    if (this.#containerCount > containersMax) throw new PickleError(`has more than ${containersMax} lists`, true);
    this.#stack.push(value);
  }

  #line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    if (end === -1) throw new PickleError("was cut short");
    const line = this.#bytes.toString("utf8", this.#at, end);
    this.#at = end + 1;
    return line;
  }

  /** Reads a two's complement number of up to eight bytes, enough for sizes of tensors. */
  #long(count: number): number {
    if (count > 8) throw new PickleError(`has a number of ${count} bytes`);
    let value = 0n;
    for (const [index, byte] of this.#take(count).entries()) value |= BigInt(byte) << BigInt(8 * index);
    return Number(BigInt.asIntN(8 * count, value));
  }

  #pop(): Pickled {
    if (this.#stack.length === 0 || this.#stack.at(-1) === mark) throw new PickleError("refers to a missing value");
    return this.#stack.pop();
  }

  #top(): Pickled {
    if (this.#stack.length === 0 || this.#stack.at(-1) === mark) throw new PickleError("refers to a missing value");
    return this.#stack.at(-1);
  }

  #toMark(): Pickled[] {
    const from = this.#stack.lastIndexOf(mark);
    if (from === -1) throw new PickleError("refers to a missing value");
    const values = this.#stack.splice(from + 1);
    this.#stack.pop();
    return values;
  }

  #recall(position: number): Pickled {
    if (!this.#memo.has(position)) throw new PickleError("refers to a missing value");
    return this.#memo.get(position);
  }

  #name(name: string): Callable {
    if (this.#reader.classes.has(name)) return new Callable(() => refusedCall(name), name);
    const call = this.#reader.names(name);
    if (call === null)
      throw new PickleError(
        `names '${name.slice(0, 200)}', which no ${this.#reader.needs}; it was not looked up`,
        true,
      );
    return new Callable(call, null);
  }

  #call(callee: Pickled, args: Pickled): Pickled {
    if (!(callee instanceof Callable) || !Array.isArray(args))
      throw new PickleError("calls something that is not a function");
    return callee.call(args);
  }
}

function refusedCall(name: string): never {
  throw new PickleError(`calls '${name}', which is a class`);
}

type PickleHandlers = Readonly<{
  byte(): number;
  uint(width: number): number;
  int32(): number;
  float64(): number;
  long(): number;
  text(width: number): string;
  line(): string;
  bytes(width: number): Buffer;
  push(value: Pickled): void;
  pop(): Pickled;
  toMark(): Pickled[];
  top(): Pickled;
  skip(count: number): void;
  remember(position: number | null): void;
  recall(position: number): Pickled;
  name(name: string): Pickled;
  call(callee: Pickled, args: Pickled): Pickled;
  persistent(id: Pickled): Pickled;
}>;

function setItems(into: Pickled, items: readonly Pickled[]): void {
  if (!(into instanceof Map) || items.length % 2 !== 0)
    throw new PickleError("sets items of something that has no items");
  for (let i = 0; i < items.length; i += 2) into.set(items[i], items[i + 1]);
}

function append(to: Pickled, items: readonly Pickled[]): void {
  if (!Array.isArray(to)) throw new PickleError("appends to something that is not a list");
  for (const item of items) to.push(item);
}

function tuple(h: PickleHandlers, count: number): void {
  const values = Array.from({ length: count }, () => h.pop());
  h.push(values.toReversed());
}

/** Implementations of instructions, by opcode. Opcodes for extensions and external buffers are not supported. */
const steps: Readonly<Record<number, (h: PickleHandlers) => void>> = {
  0x80: (h) => h.skip(1), // PROTO
  0x95: (h) => h.skip(8), // FRAME
  0x28: (h) => h.push(mark), // MARK
  0x30: (h) => void h.pop(), // POP
  0x4e: (h) => h.push(null), // NONE
  0x88: (h) => h.push(true), // NEWTRUE
  0x89: (h) => h.push(false), // NEWFALSE
  0x4a: (h) => h.push(h.int32()), // BININT
  0x4b: (h) => h.push(h.byte()), // BININT1
  0x4d: (h) => h.push(h.uint(2)), // BININT2
  0x8a: (h) => h.push(h.long()), // LONG1
  0x47: (h) => h.push(h.float64()), // BINFLOAT
  0x58: (h) => h.push(h.text(4)), // BINUNICODE
  0x8c: (h) => h.push(h.text(1)), // SHORT_BINUNICODE
  0x8d: (h) => h.push(h.text(8)), // BINUNICODE8
  0x42: (h) => h.push(h.bytes(4)), // BINBYTES
  0x43: (h) => h.push(h.bytes(1)), // SHORT_BINBYTES
  0x8e: (h) => h.push(h.bytes(8)), // BINBYTES8
  0x96: (h) => h.push(h.bytes(8)), // BYTEARRAY8
  0x7d: (h) => h.push(new Map()), // EMPTY_DICT
  0x5d: (h) => h.push([]), // EMPTY_LIST
  0x29: (h) => h.push([]), // EMPTY_TUPLE
  0x74: (h) => h.push(h.toMark()), // TUPLE
  0x85: (h) => tuple(h, 1), // TUPLE1
  0x86: (h) => tuple(h, 2), // TUPLE2
  0x87: (h) => tuple(h, 3), // TUPLE3
  0x61: (h) => {
    const item = h.pop();
    append(h.top(), [item]);
  }, // APPEND
  0x65: (h) => {
    const items = h.toMark();
    append(h.top(), items);
  }, // APPENDS
  0x73: (h) => {
    const value = h.pop();
    const key = h.pop();
    setItems(h.top(), [key, value]);
  }, // SETITEM
  0x75: (h) => {
    const items = h.toMark();
    setItems(h.top(), items);
  }, // SETITEMS
  0x71: (h) => h.remember(h.byte()), // BINPUT
  0x72: (h) => h.remember(h.uint(4)), // LONG_BINPUT
  0x94: (h) => h.remember(null), // MEMOIZE
  0x68: (h) => h.push(h.recall(h.byte())), // BINGET
  0x6a: (h) => h.push(h.recall(h.uint(4))), // LONG_BINGET
  0x63: (h) => {
    const module = h.line();
    h.push(h.name(`${module}.${h.line()}`));
  }, // GLOBAL
  0x93: (h) => {
    const name = h.pop();
    const module = h.pop();
    if (typeof name !== "string" || typeof module !== "string")
      throw new PickleError("has a name that is not a string");
    h.push(h.name(`${module}.${name}`));
  }, // STACK_GLOBAL
  0x81: (h) => {
    h.pop();
    h.push(PickledObject.of(h.pop()));
  }, // NEWOBJ
  0x52: (h) => {
    const args = h.pop();
    h.push(h.call(h.pop(), args));
  }, // REDUCE
  0x51: (h) => h.push(h.persistent(h.pop())), // BINPERSID
  0x62: (h) => {
    const state = h.pop();
    const target = h.top();
    // Attributes of a dictionary, such as `_metadata` of a state_dict, are ignored.
    if (target instanceof Map) return;
    if (!(target instanceof PickledObject) || !(state instanceof Map))
      throw new PickleError("sets the state of something that has no state");
    for (const [key, value] of state) target.state.set(key, value);
  }, // BUILD
};
