import { printHead, printLabels, printLine } from "./exposition.ts";
import type { MetricStore } from "./metric-store.ts";
import type { Datapoint, MetricName } from "./series.ts";

export interface ExpositionLimits {
  /** Maximum number of series printed; the platform's own come first. */
  readonly seriesMax: number;
  readonly nowMs: number;
  /** Yields to the event loop. */
  readonly turn: () => Promise<void>;
}

const minuteMs = 60_000;
const namespacesFirst = ["AWS/", "/aws/", "Galatea/"];

interface ToldFamily {
  readonly description: string;
  /** Points by their printed labels. When two metrics have the same printed name and labels, the first one is printed. */
  readonly points: Map<string, ToldPoint>;
}

interface ToldPoint {
  readonly point: Datapoint;
  /** The inference component whose series it is. */
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
 * Prints CloudWatch's series as Prometheus text, each as gauges of the last whole minute: `AWS/SageMaker` ModelLatency becomes
 * `aws_sagemaker_model_latency_sum` and so on, and dimensions become labels (`endpoint_name`). Series without a sample in that minute are
 * omitted. The platform records a sample once per set of dimensions that CloudWatch has for it. Here each sample is in one line, so that
 * `sum()` counts it once: a variant's without EndpointConfigName, a component's with its endpoint, and a container's in a separate family
 * (`aws_sagemaker_container_invocations_sum`).
 */
export async function printSeries(metrics: MetricStore, { seriesMax, nowMs, turn }: ExpositionLimits): Promise<string> {
  const endMs = Math.floor(nowMs / minuteMs) * minuteMs;
  const query = { startMs: endMs - minuteMs, endMs, periodMs: minuteMs, unit: null };
  const families = new Map<string, ToldFamily>();
  let [told, leftOut] = [0, 0];
  const recent = { namespace: null, metricName: null, dimensions: [], recordedSinceMs: query.startMs };
  for (const isOwn of [true, false]) {
    for await (const batch of metrics.list(recent)) {
      await turn();
      for (const name of batch) {
        if (isPlatforms(name) !== isOwn) continue;
        if (isOwn && dimensionOf(name, "EndpointConfigName") !== null) continue;
        const [point] = await metrics.query(name, query);
        if (point === undefined) continue;
        if (told >= seriesMax) leftOut += 1;
        else if (tell(families, { key: name, isOwn, point })) told += 1;
      }
    }
  }
  const lines: string[] = [];
  for (const [name, { description, points }] of [...families].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    await turn();
    const detailed = new Set<string | null>();
    for (const { component, isComponentAlone } of points.values()) if (!isComponentAlone) detailed.add(component);
    for (const [suffix, what, valueOf] of statistics) {
      lines.push(printHead(`${name}_${suffix}`, `${description}, ${what} of the last whole minute.`, "gauge"));
      for (const [labels, { point, component, isComponentAlone }] of points) {
        if (!isComponentAlone || !detailed.has(component))
          lines.push(printLine(`${name}_${suffix}`, labels, valueOf(point)));
      }
    }
  }
  lines.push(
    printHead("galatea_series_left_out", "Number of series omitted because there are too many.", "gauge"),
    printLine("galatea_series_left_out", "", leftOut),
  );
  return lines.join("");
}

const isPlatforms = ({ namespace }: MetricName) => namespacesFirst.some((each) => namespace.startsWith(each));

const dimensionOf = ({ dimensions }: MetricName, name: string) =>
  dimensions.find((dimension) => dimension.name === name)?.value ?? null;

interface ToldSeries {
  readonly key: MetricName;
  /** True for the platform's own series. */
  readonly isOwn: boolean;
  readonly point: Datapoint;
}

/** Adds a point to the families; returns false when another metric has the same name and labels. */
function tell(families: Map<string, ToldFamily>, { key, isOwn, point }: ToldSeries): boolean {
  const { namespace, metricName, dimensions } = key;
  const ofContainer =
    isOwn && dimensionOf(key, "ContainerName") !== null && !metricName.startsWith("Container") ? "Container " : "";
  const printed = snake(`${namespace} ${ofContainer}${metricName}`);
  // Metrics that clients record must not have names of the platform's own families.
  const name = !isOwn && printed.startsWith("galatea_") ? `x_${printed}` : printed;
  const family = families.get(name) ?? {
    description: `${namespace} ${metricName}${ofContainer === "" ? "" : " of containers"}, ${point.unit}`,
    points: new Map<string, ToldPoint>(),
  };
  families.set(name, family);
  const labels = new Map<string, string>();
  for (const { name: dimension, value } of dimensions) {
    const label = snake(dimension);
    if (!labels.has(label)) labels.set(label, value);
  }
  const row = printLabels(labels);
  if (family.points.has(row)) return false;
  const component = isOwn ? dimensionOf(key, "InferenceComponentName") : null;
  family.points.set(row, { point, component, isComponentAlone: component !== null && dimensions.length === 1 });
  return true;
}

/** Converts a name to Prometheus' letters: `EndpointName` to `endpoint_name`, `/aws/sagemaker/Endpoints` to `aws_sagemaker_endpoints`. */
function snake(text: string): string {
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
