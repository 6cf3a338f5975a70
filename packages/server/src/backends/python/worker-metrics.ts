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
  readonly held: MetricFamilyLease;
  readonly metricIds: number[];
}

/** The custom metrics of one worker's model, until the process is reaped. The worker writes its values to cells of its own. */
export class WorkerMetrics {
  readonly #metrics: NamespaceMetrics;
  readonly #send: (frame: Uint8Array) => void;
  readonly #families = new Map<number, WorkerFamily>();
  readonly #parts = new Map<number, MetricHolderCells>();

  constructor(metrics: NamespaceMetrics, send: (frame: Uint8Array) => void) {
    this.#metrics = metrics;
    this.#send = send;
  }

  onFrame(frame: Buffer): void {
    const { kind, id: question, extra } = readHeader(frame);
    if (kind === kinds.metricsGone) return this.#gone(extra);
    this.#send(this.#answer(question, () => this.#answered(kind, question, frame)));
  }

  /** Releases the metrics after the process was reaped and can no longer write to its cells. */
  end(): void {
    for (const { held } of this.#families.values()) held[Symbol.dispose]();
    this.#families.clear();
    this.#parts.clear();
  }

  #answer(question: number, answered: () => Buffer): Buffer {
    try {
      return answered();
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      return encodeMetricError(question, error.message);
    }
  }

  #answered(kind: number, question: number, frame: Buffer): Buffer {
    if (kind === kinds.metricFamily) return this.#family(frame);
    if (kind === kinds.metric) return this.#metric(frame);
    const { extra: metricId } = readHeader(frame);
    const part = this.#parts.get(metricId);
    if (part === undefined) throw new MalformedRecord(`metric ${metricId}, which does not exist`);
    return encodeMetricValueResponse(question, part.value());
  }

  #family(frame: Buffer): Buffer {
    const { question, familyId, ...head } = decodeMetricFamily(frame);
    if (this.#families.has(familyId)) throw new MalformedRecord(`family ${familyId} of metrics, which already exists`);
    this.#families.set(familyId, { held: this.#metrics.family(head), metricIds: [] });
    return encodeFamilyResponse(question);
  }

  #metric(frame: Buffer): Buffer {
    const { question, metricId, familyId, labels, bounds } = decodeMetric(frame);
    const family = this.#families.get(familyId);
    if (family === undefined) throw new MalformedRecord(`family ${familyId} of metrics, which does not exist`);
    if (this.#parts.has(metricId)) throw new MalformedRecord(`metric ${metricId}, which already exists`);
    const part = family.held.openSeries(labels, bounds);
    this.#parts.set(metricId, part);
    family.metricIds.push(metricId);
    return encodeMetricResponse(question, part);
  }

  #gone(familyId: number): void {
    const family = this.#families.get(familyId);
    if (family === undefined) throw new MalformedRecord(`family ${familyId} of metrics, which does not exist`);
    this.#families.delete(familyId);
    for (const metricId of family.metricIds) this.#parts.delete(metricId);
    family.held[Symbol.dispose]();
  }
}
