import type { OpenSeries } from "../series/index.ts";

export const transformLogGroup = "/aws/sagemaker/TransformJobs";

/** Of what a job does as a whole; SageMaker has no such metrics. */
const jobNamespace = "Galatea/TransformJobs";

/** The series of one instance: whatever an endpoint's instance tells, under the dimension that SageMaker gives transform jobs. */
export function jobSeries(open: OpenSeries, host: string): OpenSeries {
  return (key) => {
    // An endpoint tells everything twice, once with its configuration.
    if (key.dimensions.some(({ name }) => name === "EndpointConfigName")) return { record: () => {} };
    const container = key.dimensions.filter(({ name }) => name === "ContainerName");
    return open({ ...key, namespace: transformLogGroup, dimensions: [{ name: "Host", value: host }, ...container] });
  };
}

const jobUnits = { ObjectsTransformed: "Count", ObjectsFailed: "Count", BytesWritten: "Bytes" } as const;

export type JobMetric = keyof typeof jobUnits;

export function jobMetrics(open: OpenSeries, jobName: string): (metric: JobMetric, value: number) => void {
  const dimensions = [{ name: "TransformJobName", value: jobName }];
  const series = new Map(
    Object.entries(jobUnits).map(([metricName, unit]) => [
      metricName,
      open({ namespace: jobNamespace, metricName, dimensions, unit }),
    ]),
  );
  return (metric, value) => series.get(metric)?.record(value);
}
