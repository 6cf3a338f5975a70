import { InferenceError } from "@galatea/base";
import type { MetricFamilyLease, MetricHolderCells, NamespaceMetrics } from "../namespace-metrics.ts";
import { readHeader } from "./frame-decoder.ts";
import {
  decodeMetric,
  decodeMetricFamily,
  encodeFamilyResponse,
  encodeMetricResponse,
  encodeMetricError,
  encodeMetricValueResponse,
} from "./metric-codec.ts";
import { kinds, MalformedRecord } from "./wire.ts";

interface WorkerFamily {
  readonly lease: MetricFamilyLease;
  readonly metricIds: number[];
}

/**
 * The custom metrics of one worker's model, until the process is reaped. The worker writes the values to memory cells that no other process
 * writes.
 */
export class WorkerMetrics {
  readonly #metrics: NamespaceMetrics;
  readonly #send: (frame: Uint8Array) => void;
  readonly #families = new Map<number, WorkerFamily>();
  readonly #cells = new Map<number, MetricHolderCells>();

  constructor(metrics: NamespaceMetrics, send: (frame: Uint8Array) => void) {
    this.#metrics = metrics;
    this.#send = send;
  }

  onFrame(frame: Buffer): void {
    const { kind, id: requestId, extra } = readHeader(frame);
    if (kind === kinds.metricsReleased) return this.#release(extra);
    this.#send(this.#resultOf(requestId, () => this.#handle(kind, requestId, frame)));
  }

  /** Releases the metrics. Must be called only after the process was reaped, because it could otherwise still write to its cells. */
  end(): void {
    for (const { lease } of this.#families.values()) lease[Symbol.dispose]();
    this.#families.clear();
    this.#cells.clear();
  }

  #resultOf(requestId: number, handle: () => Buffer): Buffer {
    try {
      return handle();
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      return encodeMetricError(requestId, error.message);
    }
  }

  #handle(kind: number, requestId: number, frame: Buffer): Buffer {
    if (kind === kinds.metricFamily) return this.#family(frame);
    if (kind === kinds.metric) return this.#metric(frame);
    const { extra: metricId } = readHeader(frame);
    const cells = this.#cells.get(metricId);
    if (cells === undefined) throw new MalformedRecord(`metric ${metricId}, which does not exist`);
    return encodeMetricValueResponse(requestId, cells.value());
  }

  #family(frame: Buffer): Buffer {
    const { requestId, familyId, ...head } = decodeMetricFamily(frame);
    if (this.#families.has(familyId)) throw new MalformedRecord(`family ${familyId} of metrics, which already exists`);
    this.#families.set(familyId, { lease: this.#metrics.family(head), metricIds: [] });
    return encodeFamilyResponse(requestId);
  }

  #metric(frame: Buffer): Buffer {
    const { requestId, metricId, familyId, labels, bounds } = decodeMetric(frame);
    const family = this.#families.get(familyId);
    if (family === undefined) throw new MalformedRecord(`family ${familyId} of metrics, which does not exist`);
    if (this.#cells.has(metricId)) throw new MalformedRecord(`metric ${metricId}, which already exists`);
    const cells = family.lease.openSeries(labels, bounds);
    this.#cells.set(metricId, cells);
    family.metricIds.push(metricId);
    return encodeMetricResponse(requestId, cells);
  }

  #release(familyId: number): void {
    const family = this.#families.get(familyId);
    if (family === undefined) throw new MalformedRecord(`family ${familyId} of metrics, which does not exist`);
    this.#families.delete(familyId);
    for (const metricId of family.metricIds) this.#cells.delete(metricId);
    family.lease[Symbol.dispose]();
  }
}
