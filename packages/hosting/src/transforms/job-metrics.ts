import type { OpenSeries } from "../series/index.ts";

export const transformLogGroup = "/aws/sagemaker/TransformJobs";

/** Namespace for metrics of whole jobs, which SageMaker lacks. */
const jobNamespace = "Galatea/TransformJobs";

/**
 * Returns the series of one instance: those of an endpoint's instance, with SageMaker's dimension for transform jobs.
 */
export function transformInstanceSeries(open: OpenSeries, host: string): OpenSeries {
  return (key) => {
    // An endpoint records each sample again with its configuration.
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
