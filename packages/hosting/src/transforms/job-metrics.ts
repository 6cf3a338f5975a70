import type { OpenSeries } from "../series/index.ts";

export const transformLogGroup = "/aws/sagemaker/TransformJobs";

/** Namespace for metrics of whole jobs. SageMaker has no such metrics. */
const jobNamespace = "Galatea/TransformJobs";

/**
 * Returns a function that opens the series of one instance: the metrics of an endpoint's instance, with SageMaker's
 * dimension for transform jobs.
 */
export function transformInstanceSeries(open: OpenSeries, host: string): OpenSeries {
  return (key) => {
    // Endpoints record each sample a second time with EndpointConfigName. Jobs have no endpoint configuration, so these
    // series are dropped.
    if (key.dimensions.some(({ name }) => name === "EndpointConfigName")) return { record: () => {} };
    const container = key.dimensions.filter(({ name }) => name === "ContainerName");
    return open({ ...key, namespace: transformLogGroup, dimensions: [{ name: "Host", value: host }, ...container] });
  };
}

const jobUnits = { ObjectsTransformed: "Count", ObjectsFailed: "Count", BytesWritten: "Bytes" } as const;

export type TransformJobMetric = keyof typeof jobUnits;

export function openJobMetrics(open: OpenSeries, jobName: string): (metric: TransformJobMetric, value: number) => void {
  const dimensions = [{ name: "TransformJobName", value: jobName }];
  const series = new Map(
    Object.entries(jobUnits).map(([metricName, unit]) => [
      metricName,
      open({ namespace: jobNamespace, metricName, dimensions, unit }),
    ]),
  );
  return (metric, value) => series.get(metric)?.record(value);
}
