/** Generates, for tests, frames that a malicious worker could send. */
import * as fc from "fast-check";
import {
  encodeSpaceRequest,
  encodeCall,
  encodeCallSpaceRequest,
  encodeReleased,
  encodeResult,
  output,
  outputResponse,
} from "./hostile-wire.ts";
import { encodeFrame, inlineMarker, kinds } from "./wire.ts";

const numbers = fc.oneof(
  fc.bigInt({ min: 0n, max: 5000n }),
  fc.constantFrom(0n, 1n, 4096n, 2n ** 26n, 2n ** 31n, 2n ** 32n, 2n ** 52n, 2n ** 53n - 1n, 2n ** 63n, 2n ** 64n - 1n),
);
const ids = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constantFrom(2 ** 30, 2 ** 32 - 1));
const outputs = fc.record({
  nameIndex: fc.constantFrom(0, 0, 1, 2, 65_535),
  datatype: fc.constantFrom(2, 11, 13, 14, 0, 255),
  rank: fc.constantFrom(0, 1, 2, 33, 255),
  shape: fc.array(numbers, { maxLength: 3 }),
  blockRef: fc.oneof(fc.constant(inlineMarker), ids),
  byteOffset: numbers,
  byteLength: numbers,
});
const texts = fc.oneof(
  fc.constantFrom("", "{}", "null", '{"a":1}', '{"a":true,"b":"x"}', '{"a":[1]}', '{"a":1e999}', '{"a":1,}', "[", '"'),
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: "binary" }),
);
const responses = fc.array(
  fc.record({
    status: fc.constantFrom(0, 0, 1, 2),
    count: fc.constantFrom(null, null, 0, 1, 7, 65_535),
    text: texts,
    outputs: fc.array(outputs, { maxLength: 2 }),
  }),
  { maxLength: 3 },
);
const results = fc
  .record({
    id: ids,
    answers: responses,
    released: fc.array(ids, { maxLength: 3 }),
    inline: fc.uint8Array({ maxLength: 40 }),
    durations: fc.array(numbers, { minLength: 3, maxLength: 3 }),
    count: fc.constantFrom(undefined, undefined, 0, 1, 2, 65_535),
  })
  .map(({ id, answers: input, count, ...more }) =>
    encodeResult(id, input, count === undefined ? more : { ...more, count }),
  );
const validResponses = fc
  .record({ id: fc.integer({ min: 1, max: 4 }), count: fc.integer({ min: 1, max: 2 }) })
  .map(({ id, count }) =>
    encodeResult(
      id,
      Array.from({ length: count }, () => outputResponse('{"a":1}', [output()])),
    ),
  );
/** Frames of any kind with any body. */
export const arbitraryFrames = fc
  .record({
    kind: fc.oneof(fc.constantFrom(...Object.values(kinds)), fc.integer({ min: 0, max: 65_535 })),
    count: fc.constantFrom(0, 1, 65_535),
    id: ids,
    extra: fc.oneof(ids, fc.constantFrom(0, 1)),
    body: fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      texts.map((text) => Buffer.from(text)),
    ),
  })
  .map(({ kind, body, ...header }) => encodeFrame(kind, body, header));
const calls = fc
  .record({
    id: ids,
    execution: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 4 })),
    names: fc.constantFrom(["IN"], ["IN", "X"], []),
    extra: fc.constantFrom(0, 0, 1, 2),
    inputs: fc.array(
      fc.record({
        nameIndex: fc.constantFrom(0, 0, 1, 7),
        datatype: fc.constantFrom(7, 7, 11, 13, 99),
        shape: fc.array(fc.oneof(fc.constant(4n), numbers), { maxLength: 2 }),
        blockRef: fc.oneof(ids, fc.constantFrom(1, 2, inlineMarker)),
        byteOffset: fc.oneof(fc.constant(0n), numbers),
        byteLength: fc.oneof(fc.constant(4n), fc.constant(4096n), numbers),
      }),
      { maxLength: 2 },
    ),
  })
  .map(({ id, execution, names, extra, inputs }) =>
    encodeCall(
      id,
      {
        execution,
        model: "m",
        version: "",
        id: "",
        correlation: ["0"],
        flags: 0,
        timeout: 0,
        outputs: null,
        parameters: "",
        names,
      },
      { inputs, extra },
    ),
  );
const smallIds = fc.integer({ min: 0, max: 3 });
const families = fc
  .record({
    id: ids,
    extra: fc.oneof(smallIds, ids),
    count: fc.constantFrom(0, 0, 1, 2, 3),
    text: fc.oneof(
      fc.constantFrom("m", "n", "").map((name) => JSON.stringify({ name, description: "d" })),
      texts,
    ),
  })
  .map(({ text, ...header }) => encodeFrame(kinds.metricFamily, Buffer.from(text), header));
const metrics = fc
  .record({
    id: ids,
    extra: fc.oneof(smallIds, ids),
    familyId: fc.oneof(smallIds, ids),
    bounds: fc.array(fc.double(), { maxLength: 3 }),
    surplus: fc.constantFrom(0, 0, 0, 1, 60_000),
    labels: fc.oneof(fc.constantFrom("{}", '{"a":"b"}', '{"a":"c"}', '{"a b":""}', '{"a":1}'), texts),
  })
  .map(({ id, extra, familyId, bounds, surplus, labels }) => {
    const head = Buffer.alloc(8 + 8 * bounds.length);
    head.writeUInt32LE(familyId, 0);
    bounds.forEach((bound, index) => head.writeDoubleLE(bound, 8 + 8 * index));
    const body = Buffer.concat([head, Buffer.from(labels)]);
    return encodeFrame(kinds.metric, body, { id, extra, count: bounds.length + surplus });
  });
const aboutMetrics = fc
  .record({ kind: fc.constantFrom(kinds.metricValue, kinds.metricsReleased), extra: smallIds })
  .map(({ kind, extra }) => encodeFrame(kind, new Uint8Array(), { id: 1, extra }));
/** Several metric frames in sequence. A single frame usually refers to a metric that does not exist. */
const metricFrames = fc
  .tuple(families, fc.array(fc.oneof(families, metrics, metrics, aboutMetrics), { maxLength: 4 }))
  .map(([first, others]) => Buffer.concat([first, ...others]));
/** Valid and invalid frames that a worker could send. */
export const hostileFrames = fc.oneof(
  { weight: 4, arbitrary: results },
  { weight: 3, arbitrary: validResponses },
  {
    weight: 3,
    arbitrary: fc
      .record({ id: ids, sizes: fc.array(numbers, { maxLength: 3 }) })
      .map(({ id, sizes }) => encodeSpaceRequest(id, sizes)),
  },
  { weight: 2, arbitrary: fc.array(ids, { maxLength: 3 }).map(encodeReleased) },
  { weight: 3, arbitrary: calls },
  { weight: 3, arbitrary: fc.oneof(families, metrics, aboutMetrics, metricFrames) },
  {
    weight: 1,
    arbitrary: fc
      .record({ id: ids, sizes: fc.array(fc.oneof(fc.constant(4096n), numbers), { maxLength: 3 }) })
      .map(({ id, sizes }) => encodeCallSpaceRequest(id, ...sizes)),
  },
  { weight: 3, arbitrary: arbitraryFrames },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
);
/** Frames with some bytes changed. */
export const mutatedFrames = fc
  .tuple(hostileFrames, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 3 }))
  .map(([frame, changes]) => {
    const bytes = Buffer.from(frame);
    // The length field is not changed, because a frame that never ends would test nothing.
    for (const [at, value] of changes) if (bytes.byteLength > 4) bytes[4 + (at % (bytes.byteLength - 4))] = value;
    return bytes;
  });
