import * as fc from "fast-check";

/** `usual` in most cases; one of the others once in `often` times. */
export function rarely<Usual, Other>(
  usual: Usual,
  often: number,
  others: fc.Arbitrary<Other>,
): fc.Arbitrary<Usual | Other> {
  return fc.oneof(
    { weight: often - 1, arbitrary: fc.constant(usual) as fc.Arbitrary<Usual | Other> },
    { weight: 1, arbitrary: others },
  );
}

/** A change of some bytes; `at` and `length` are taken modulo the available length. */
type Edit =
  | { readonly kind: "set"; readonly at: number; readonly value: number }
  | { readonly kind: "insert"; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: "remove" | "double"; readonly at: number; readonly length: number }
  | { readonly kind: "cut"; readonly at: number };

const kept = <Kind extends string>(kind: Kind) => fc.constant(kind);

/**
 * Bytes of `valid`, most of them changed at a few positions: bytes are set, `words` of the language inserted, ranges
 * omitted or doubled, or the end is truncated.
 */
export function mutated(
  valid: fc.Arbitrary<Uint8Array>,
  words: readonly (string | Uint8Array)[],
): fc.Arbitrary<Buffer> {
  const tokens = words.map((word) => (typeof word === "string" ? Buffer.from(word) : word));
  const at = fc.nat();
  const length = fc.nat(40);
  const edit: fc.Arbitrary<Edit> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: kept("set"), at, value: fc.nat(255) }) },
    { weight: 4, arbitrary: fc.record({ kind: kept("insert"), at, bytes: fc.constantFrom(...tokens) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("remove" as const, "double" as const), at, length }) },
    { weight: 1, arbitrary: fc.record({ kind: kept("cut"), at }) },
  );
  const edits = fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 3, arbitrary: fc.array(edit, { minLength: 1, maxLength: 4 }) },
  );
  return fc.tuple(valid, edits).map(([bytes, edits]) => edits.reduce(apply, Buffer.from(bytes)));
}

function apply(bytes: Buffer, edit: Edit): Buffer {
  const at = edit.at % (bytes.length + 1);
  const [before, lag] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (edit.kind) {
    case "set":
      return Buffer.concat([before, Buffer.of(edit.value), lag.subarray(1)]);
    case "insert":
      return Buffer.concat([before, edit.bytes, lag]);
    case "remove":
      return Buffer.concat([before, lag.subarray(edit.length)]);
    case "double":
      return Buffer.concat([before, lag.subarray(0, edit.length), lag]);
    case "cut":
      return Buffer.from(before);
    default:
      throw new Error(`no such change: ${JSON.stringify(edit satisfies never)}`);
  }
}

/** Returns the chunks of `bytes` that end at `cuts`, each in its own memory like chunks of a socket. */
export function chunks(bytes: Uint8Array, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].toSorted((a, b) => a - b);
  return ends.map((end, index) => Buffer.from(bytes.slice(index === 0 ? 0 : ends[index - 1], end)));
}
