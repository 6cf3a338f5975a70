/**
 * Encoder for the part of WebAssembly's binary format (core specification 2.0, chapter 5) that evaluation of trees needs: functions with
 * 32-bit integer parameters, and one imported shared memory. Code is a list of bytes. Each instruction is a function that returns the code
 * of its operands followed by its opcode.
 */
export type Code = readonly number[];

export interface WasmFunction {
  /** Name under which the module exports the function. */
  readonly name: string;
  /** Number of parameters, which are all i32. The function has no result. */
  readonly parameterCount: number;
  /** Additional i32 locals, initially 0. */
  readonly localCount: number;
  readonly body: Code;
}

const header = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const i32 = 0x7f;
const nothing = 0x40;

/** Encodes a module, whose functions call one another by index. The module imports its memory as `trees.memory`. */
export function encodeModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ parameterCount }) => [
    0x60,
    ...list(Array.from({ length: parameterCount }, () => [i32])),
    0,
  ]);
  const sharedMemory = [0x02, 0x03, ...unsigned(1), ...unsigned(memoryPagesMax)];
  const bodies = functions.map(({ localCount, body }) => {
    const code = [...list([[...unsigned(localCount), i32]]), ...body, 0x0b];
    return [...unsigned(code.length), ...code];
  });
  return Uint8Array.from([
    ...header,
    ...section(1, list(types)),
    ...section(2, list([[...text("trees"), ...text("memory"), ...sharedMemory]])),
    ...section(3, list(functions.map((_, index) => unsigned(index)))),
    ...section(7, list(functions.map(({ name }, index) => [...text(name), 0x00, ...unsigned(index)]))),
    ...section(10, list(bodies)),
  ]);
}

export const memoryPageBytes = 65_536;
export const memoryPagesMax = 65_536;

function section(id: number, content: Code): Code {
  return [id, ...unsigned(content.length), ...content];
}

function list(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()];
}

function text(value: string): Code {
  return [...unsigned(value.length), ...Buffer.from(value, "latin1")];
}

/** Encodes an unsigned integer as LEB128. */
function unsigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  return [...bytes, rest];
}

/** Encodes a 32-bit signed integer as LEB128. */
function signed(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  for (; rest < -0x40 || rest > 0x3f; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest & 0x7f];
}

const binary =
  (opcode: number) =>
  (left: Code, right: Code): Code => [...left, ...right, opcode];
const load =
  (opcode: number, alignment: number) =>
  (address: Code, offset = 0): Code => [...address, opcode, alignment, ...unsigned(offset)];

export const wasm = {
  get: (local: number): Code => [0x20, ...unsigned(local)],
  set: (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)],
  /** Sets a local and returns its value. */
  tee: (local: number, value: Code): Code => [...value, 0x22, ...unsigned(local)],
  constant: (value: number): Code => [0x41, ...signed(value)],
  add: binary(0x6a),
  subtract: binary(0x6b),
  shiftLeft: binary(0x74),
  or: binary(0x72),
  notEqual: binary(0x47),
  below: binary(0x48),
  greaterOrEqual: binary(0x4e),
  belowUnsigned: binary(0x49),
  isZero: (value: Code): Code => [...value, 0x45],
  loadInteger: load(0x28, 2),
  loadFloat: load(0x2a, 2),
  loadDouble: load(0x2b, 3),
  storeDouble: (address: Code, value: Code, offset = 0): Code => [...address, ...value, 0x39, 3, ...unsigned(offset)],
  addDouble: binary(0xa0),
  multiplyDouble: binary(0xa2),
  /** Converts a float32 to a float64. */
  promote: (value: Code): Code => [...value, 0xbb],
  /** Rounds a float64 to a float32. */
  demote: (value: Code): Code => [...value, 0xb6],
  /** Reinterprets bits as a float32. */
  floatOfBits: (bits: Code): Code => [...bits, 0xbe],
  select: (condition: Code, then: Code, otherwise: Code): Code => [...then, ...otherwise, ...condition, 0x1b],
  /** Runs the body, and repeats it while the condition, which is evaluated after it, is not 0. */
  doWhile: (body: Code, condition: Code): Code => [0x03, nothing, ...body, ...condition, 0x0d, 0x00, 0x0b],
  when: (condition: Code, then: Code, otherwise: Code = []): Code => [
    ...condition,
    0x04,
    nothing,
    ...then,
    ...(otherwise.length === 0 ? [] : [0x05, ...otherwise]),
    0x0b,
  ],
  call: (position: number, operands: readonly Code[]): Code => [...operands.flat(), 0x10, ...unsigned(position)],
} as const;
