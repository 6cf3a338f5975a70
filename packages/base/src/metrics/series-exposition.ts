import { printFamilyHeader, printLabels, printSample } from "./exposition.ts";
import type { MetricStore } from "./metric-store.ts";
import type { Datapoint, MetricName } from "./series.ts";

export interface SeriesExpositionOptions {
  /** Maximum number of printed series. The platform's own series are printed first. */
  readonly seriesMax: number;
  readonly nowMs: number;
  /** Yields to the event loop. */
  readonly yieldToEventLoop: () => Promise<void>;
}

const minuteMs = 60_000;
const namespacesFirst = ["AWS/", "/aws/", "Galatea/"];

interface PrintedFamily {
  readonly description: string;
  /**
   * Points by their printed labels. If two metrics have the same printed name and labels, only the first one is
   * printed.
   */
  readonly points: Map<string, PrintedPoint>;
}

interface PrintedPoint {
  readonly point: Datapoint;
  /** Name of the inference component that the series belongs to; null if it belongs to none. */
  readonly component: string | null;
  /** True if the component's name is the series' only dimension. */
  readonly isComponentAlone: boolean;
}

const statistics: readonly (readonly [string, string, (point: Datapoint) => number])[] = [
  ["sum", "sum", ({ sum }) => sum],
  ["samples", "number of samples", ({ sampleCount }) => sampleCount],
  ["minimum", "least sample", ({ minimum }) => minimum],
  ["maximum", "greatest sample", ({ maximum }) => maximum],
];

/**
 * Prints CloudWatch's series as Prometheus text, as gauges of the last complete minute. For example, ModelLatency of
 * `AWS/SageMaker` becomes `aws_sagemaker_model_latency_sum` and similar gauges, and dimensions become labels
 * (`endpoint_name`). Series without a sample in that minute are omitted.
 *
 * Like CloudWatch, the platform records a sample in several series with different sets of dimensions. Only one of these
 * series is printed, so that `sum()` counts each sample once. For a variant, this is the series without
 * EndpointConfigName; for a component, the series with its endpoint. Samples of a container are in a separate family
 * (`aws_sagemaker_container_invocations_sum`).
 */
export async function printSeries(
  metrics: MetricStore,
  { seriesMax, nowMs, yieldToEventLoop }: SeriesExpositionOptions,
): Promise<string> {
  const endMs = Math.floor(nowMs / minuteMs) * minuteMs;
  const query = { startMs: endMs - minuteMs, endMs, periodMs: minuteMs, unit: null };
  const families = new Map<string, PrintedFamily>();
  let [printedCount, omittedCount] = [0, 0];
  const recent = { namespace: null, metricName: null, dimensions: [], recordedSinceMs: query.startMs };
  for (const isOwn of [true, false]) {
    for await (const batch of metrics.list(recent)) {
      await yieldToEventLoop();
      for (const name of batch) {
        if (isPlatforms(name) !== isOwn) continue;
        if (isOwn && dimensionOf(name, "EndpointConfigName") !== null) continue;
        const [point] = await metrics.query(name, query);
        if (point === undefined) continue;
        if (printedCount >= seriesMax) omittedCount += 1;
        else if (addSeries(families, { key: name, isOwn, point })) printedCount += 1;
      }
    }
  }
  const lines: string[] = [];
  for (const [name, { description, points }] of [...families].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    await yieldToEventLoop();
    const detailed = new Set<string | null>();
    for (const { component, isComponentAlone } of points.values()) if (!isComponentAlone) detailed.add(component);
    for (const [suffix, what, valueOf] of statistics) {
      lines.push(printFamilyHeader(`${name}_${suffix}`, `${description}, ${what} of the last whole minute.`, "gauge"));
      for (const [labels, { point, component, isComponentAlone }] of points) {
        if (!isComponentAlone || !detailed.has(component))
          lines.push(printSample(`${name}_${suffix}`, labels, valueOf(point)));
      }
    }
  }
  lines.push(
    printFamilyHeader(
      "galatea_series_left_out",
      "Number of series omitted because of the limit on printed series.",
      "gauge",
    ),
    printSample("galatea_series_left_out", "", omittedCount),
  );
  return lines.join("");
}

const isPlatforms = ({ namespace }: MetricName) => namespacesFirst.some((each) => namespace.startsWith(each));

const dimensionOf = ({ dimensions }: MetricName, name: string) =>
  dimensions.find((dimension) => dimension.name === name)?.value ?? null;

interface PrintedSeries {
  readonly key: MetricName;
  /** True for the platform's own series. */
  readonly isOwn: boolean;
  readonly point: Datapoint;
}

/** Adds a point to the families. Returns false if another metric has the same name and labels. */
function addSeries(families: Map<string, PrintedFamily>, { key, isOwn, point }: PrintedSeries): boolean {
  const { namespace, metricName, dimensions } = key;
  const containerPrefix =
    isOwn && dimensionOf(key, "ContainerName") !== null && !metricName.startsWith("Container") ? "Container " : "";
  const printed = snakeCase(`${namespace} ${containerPrefix}${metricName}`);
  // Prevents a metric of a client from having the name of one of the platform's own families.
  const name = !isOwn && printed.startsWith("galatea_") ? `x_${printed}` : printed;
  const family = families.get(name) ?? {
    description: `${namespace} ${metricName}${containerPrefix === "" ? "" : " of containers"}, ${point.unit}`,
    points: new Map<string, PrintedPoint>(),
  };
  families.set(name, family);
  const labels = new Map<string, string>();
  for (const { name: dimension, value } of dimensions) {
    const label = snakeCase(dimension);
    if (!labels.has(label)) labels.set(label, value);
  }
  const row = printLabels(labels);
  if (family.points.has(row)) return false;
  const component = isOwn ? dimensionOf(key, "InferenceComponentName") : null;
  family.points.set(row, { point, component, isComponentAlone: component !== null && dimensions.length === 1 });
  return true;
}

/**
 * Converts a name to snake case, as Prometheus requires: `EndpointName` to `endpoint_name`, `/aws/sagemaker/Endpoints`
 * to `aws_sagemaker_endpoints`.
 */
function snakeCase(text: string): string {
  const spaced = text
    .replaceAll("SageMaker", "Sagemaker")
    .replaceAll(/(\d)XX/g, "_$1xx_")
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
    .replaceAll(/[^A-Za-z\d]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .toLowerCase();
  return /^[a-z]/.test(spaced) ? spaced : `x_${spaced}`;
}
