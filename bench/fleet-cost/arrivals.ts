import { setTimeout as delay } from "node:timers/promises";
import { zipf } from "../zipf.ts";

/** A request for a model, some time after the start. Models are numbered by popularity from 0. */
export interface Arrival {
  readonly atMs: number;
  readonly model: number;
}

export interface ArrivalOptions {
  readonly perSecond: number;
  readonly durationMs: number;
  readonly modelCount: number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

/** Requests in flight at which a load ends with an error: the servers do not keep up. */
const inFlightMax = 2000;

/** Returns requests at random times (a Poisson process), for models with the weights of Zipf's law with exponent 1. */
export function zipfArrivals({ perSecond, durationMs, modelCount, random }: ArrivalOptions): readonly Arrival[] {
  const next = zipf(modelCount, 1, random);
  const arrivals: Arrival[] = [];
  for (let atMs = 0; ;) {
    atMs += (-Math.log(1 - random()) * 1000) / perSecond;
    if (atMs >= durationMs) return arrivals;
    arrivals.push({ atMs, model: next() });
  }
}

/** Returns the share of the requests that each model gets. */
export function zipfShares(modelCount: number): readonly number[] {
  const weights = Array.from({ length: modelCount }, (_, model) => 1 / (model + 1));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** Sends each request at its time, however long earlier ones take. Resolves with what `send` resolved with, in order; rejects at the first that rejects. */
export async function playArrivals<Response>(
  arrivals: readonly Arrival[],
  send: (model: number) => Promise<Response>,
): Promise<readonly Response[]> {
  const startMs = performance.now();
  const responses: Promise<Response>[] = [];
  let inFlightCount = 0;
  const failed = new AbortController();
  for (const { atMs, model } of arrivals) {
    const afterMs = startMs + atMs - performance.now();
    if (afterMs > 0) await delay(afterMs);
    if (failed.signal.aborted) break;
    if (inFlightCount >= inFlightMax)
      throw new Error(`${inFlightMax} requests wait for a response: the servers do not keep up with the load`);
    inFlightCount += 1;
    const response = send(model).finally(() => (inFlightCount -= 1));
    response.catch(() => failed.abort());
    responses.push(response);
  }
  return await Promise.all(responses);
}

/** Adjacent ranks of popularity, of which a sample is measured. */
export interface RankBand {
  readonly first: number;
  /** The first rank after the band. */
  readonly end: number;
  /** The measured ranks, evenly spread. */
  readonly sampled: readonly number[];
}

/** Divides the ranks into bands that double in width, so that each has a similar share of the requests, and samples each band. */
export function rankBands(modelCount: number, samplesOf: (width: number) => number): readonly RankBand[] {
  const bands: RankBand[] = [];
  for (let first = 0; first < modelCount;) {
    const width = first + 1;
    const end = modelCount - first - width < width ? modelCount : first + width;
    const count = Math.min(end - first, samplesOf(end - first));
    const sampled = Array.from({ length: count }, (_, k) => first + Math.floor(((k + 0.5) * (end - first)) / count));
    bands.push({ first, end, sampled });
    first = end;
  }
  return bands;
}

export interface Weighted {
  readonly value: number;
  readonly weight: number;
}

/** Returns the smallest value such that at least `share` of the weight is at or below it; NaN without values. */
export function weightedQuantile(values: readonly Weighted[], share: number): number {
  const sum = values.reduce((total, { weight }) => total + weight, 0);
  let before = 0;
  for (const { value, weight } of values.toSorted((a, b) => a.value - b.value)) {
    before += weight;
    if (before >= share * sum) return value;
  }
  return Number.NaN;
}
