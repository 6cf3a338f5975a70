import * as fc from "fast-check";
import {
  decodeSpaceRequest,
  decodeJson,
  decodeReleased,
  decodeResult,
  decodeFields,
} from "../../../packages/server/src/backends/python/frame-decoder.ts";
import { hostileFrames, mutatedFrames } from "../../../packages/server/src/backends/python/hostile-arbitraries.ts";
import { decodeMetric, decodeMetricFamily } from "../../../packages/server/src/backends/python/metric-codec.ts";
import { headerBytes, MalformedRecord } from "../../../packages/server/src/backends/python/wire.ts";
import type { FuzzTarget } from "../target.ts";

const decoders: readonly ((frame: Buffer) => unknown)[] = [
  decodeResult,
  decodeSpaceRequest,
  decodeReleased,
  decodeJson,
  decodeFields,
  decodeMetricFamily,
  decodeMetric,
];

/** The readers of messages from Python workers; the channel passes them complete frames with a header. */
export const workerWire: FuzzTarget<Buffer> = {
  name: "worker-wire",
  about: "frames of Python workers",
  share: 0.2,
  inputs: fc
    .oneof(hostileFrames, mutatedFrames)
    .map((frame) => Buffer.concat([frame, Buffer.alloc(Math.max(0, headerBytes - frame.length))])),
  open: () => Promise.resolve({ attempt, [Symbol.asyncDispose]: () => Promise.resolve() }),
};

function attempt(frame: Buffer): boolean {
  let isUsed = false;
  for (const decode of decoders) {
    try {
      decode(frame);
      isUsed = true;
    } catch (error) {
      if (!(error instanceof MalformedRecord)) throw error;
    }
  }
  return isUsed;
}
