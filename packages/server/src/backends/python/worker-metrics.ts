import { InferenceError } from "@galatea/base";
import type { MetricFamilyLease, MetricHolderCells, NamespaceMetrics } from "../namespace-metrics.ts";
import { readHeader } from "./frame-decoder.ts";
import {
  decodeMetric,
  decodeMetricFamily,
  encodeFamilyAnswer,
  encodeMetricAnswer,
  encodeMetricRefusal,
  encodeValueAnswer,
} from "./metric-codec.ts";
import { kinds, MalformedRecord } from "./wire.ts";

interface WorkerFamily {
  readonly held: MetricFamilyLease;
  readonly metricIds: number[];
}

/**
 * The custom metrics of one worker's model, from its first frame about them until the process is reaped. Its counts are in its own cells.
 */
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

  /** Releases the metrics of a reaped process, which writes to its cells no more. */
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
      return encodeMetricRefusal(question, error.message);
    }
  }

  #answered(kind: number, question: number, frame: Buffer): Buffer {
    if (kind === kinds.metricFamily) return this.#family(frame);
    if (kind === kinds.metric) return this.#metric(frame);
    const { extra: metricId } = readHeader(frame);
    const part = this.#parts.get(metricId);
    if (part === undefined) throw new MalformedRecord(`metric ${metricId}, which does not exist`);
    return encodeValueAnswer(question, part.value());
  }

  #family(frame: Buffer): Buffer {
    const { question, familyId, ...head } = decodeMetricFamily(frame);
    if (this.#families.has(familyId)) throw new MalformedRecord(`family ${familyId} of metrics, which already exists`);
    this.#families.set(familyId, { held: this.#metrics.family(head), metricIds: [] });
    return encodeFamilyAnswer(question);
  }

  #metric(frame: Buffer): Buffer {
    const { question, metricId, familyId, labels, bounds } = decodeMetric(frame);
    const family = this.#families.get(familyId);
    if (family === undefined) throw new MalformedRecord(`family ${familyId} of metrics, which does not exist`);
    if (this.#parts.has(metricId)) throw new MalformedRecord(`metric ${metricId}, which already exists`);
    const part = family.held.openSeries(labels, bounds);
    this.#parts.set(metricId, part);
    family.metricIds.push(metricId);
    return encodeMetricAnswer(question, part);
  }

  #gone(familyId: number): void {
    const family = this.#families.get(familyId);
    if (family === undefined) throw new MalformedRecord(`family ${familyId} of metrics, which does not exist`);
    this.#families.delete(familyId);
    for (const metricId of family.metricIds) this.#parts.delete(metricId);
    family.held[Symbol.dispose]();
  }
}
