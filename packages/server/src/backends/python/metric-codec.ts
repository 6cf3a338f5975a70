/**
 * The frames about a model's custom metrics, specified in `packages/server/python/WIRE.md`. The worker's side is
 * `packages/server/python/galatea_worker/metric_wire.py`. Both sides are tested against the same bytes in `conformance/vectors`.
 */
import type { MetricKind, MetricHolderCells } from "../namespace-metrics.ts";
import { decodeFields, FrameReader, readHeader } from "./frame-decoder.ts";
import { frameLimits } from "./frame-limits.ts";
import { readFlatObject } from "./untrusted-json.ts";
import { encodeFrame, kinds, MalformedRecord, writeNatural } from "./wire.ts";

const metricKinds: readonly MetricKind[] = ["counter", "gauge", "histogram"];

export interface WireMetricFamily {
  readonly requestId: number;
  readonly familyId: number;
  readonly kind: MetricKind;
  readonly name: string;
  readonly description: string;
}

export interface WireMetric {
  readonly requestId: number;
  readonly metricId: number;
  readonly familyId: number;
  readonly bounds: readonly number[];
  readonly labels: ReadonlyMap<string, string>;
}

export function decodeMetricFamily(frame: Buffer): WireMetricFamily {
  const { id: requestId, count, extra: familyId } = readHeader(frame);
  const kind = metricKinds[count];
  if (kind === undefined) throw new MalformedRecord(`a family of metrics of kind ${count}`);
  const body = decodeFields(frame);
  const [name, description] = [body.get("name"), body.get("description")];
  if (typeof name !== "string" || typeof description !== "string" || body.size !== 2)
    throw new MalformedRecord("a family of metrics without its name and description");
  return { requestId, familyId, kind, name, description };
}

const metricHeadBytes = 8;

export function decodeMetric(frame: Buffer): WireMetric {
  const { id: requestId, count, extra: metricId } = readHeader(frame);
  if (frame.byteLength > frameLimits.textFrameBytesMax)
    throw new MalformedRecord(`${frame.byteLength} bytes of a metric`);
  const reader = new FrameReader(frame);
  const familyId = reader.u32(reader.take(metricHeadBytes));
  const at = reader.take(8 * count);
  const bounds = Array.from({ length: count }, (_, index) => frame.readDoubleLE(at + 8 * index));
  const text = reader.text(frame.byteLength - reader.at);
  const labels = new Map<string, string>();
  for (const [name, value] of readFlatObject(text, { left: frameLimits.metricLabelsMax })) {
    if (typeof value !== "string") throw new MalformedRecord("a label that is not a string");
    labels.set(name, value);
  }
  return { requestId, metricId, familyId, bounds, labels };
}

/** Encodes the response to a METRIC_FAMILY frame. */
export function encodeFamilyResponse(requestId: number): Buffer {
  return encodeFrame(kinds.metricResult, new Uint8Array(), { id: requestId });
}

/** Encodes the response to a METRIC frame: the offset of the metric's cells, and the bounds of its buckets. */
export function encodeMetricResponse(
  requestId: number,
  part: Pick<MetricHolderCells, "id" | "byteOffset" | "sharedByteOffset" | "bounds">,
): Buffer {
  const body = new DataView(new ArrayBuffer(24 + 8 * part.bounds.length));
  writeNatural(body, 0, part.byteOffset);
  writeNatural(body, 8, part.sharedByteOffset);
  writeNatural(body, 16, part.id);
  part.bounds.forEach((bound, index) => body.setFloat64(24 + 8 * index, bound, true));
  return encodeFrame(kinds.metricResult, new Uint8Array(body.buffer), { id: requestId });
}

/** Encodes the response to a METRIC_VALUE frame. */
export function encodeMetricValueResponse(requestId: number, value: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeDoubleLE(value);
  return encodeFrame(kinds.metricResult, body, { id: requestId });
}

/** Encodes an error response to any of the metric frames. */
export function encodeMetricError(requestId: number, reason: string): Buffer {
  return encodeFrame(kinds.metricResult, Buffer.from(reason), { id: requestId, extra: 1 });
}
