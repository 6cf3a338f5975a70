/** Written by scripts/aws-types.ts from cloudwatch.json. Inputs are as parsed and checked against that model. */
export interface CloudwatchOperations {
  readonly GetMetricData: { readonly input: GetMetricDataInputInput; readonly output: GetMetricDataOutputOutput };
  readonly GetMetricStatistics: { readonly input: GetMetricStatisticsInputInput; readonly output: GetMetricStatisticsOutputOutput };
  readonly ListMetrics: { readonly input: ListMetricsInputInput; readonly output: ListMetricsOutputOutput };
  readonly PutMetricData: { readonly input: PutMetricDataInputInput; readonly output: Readonly<Record<string, never>> };
}

/** The structures that inputs are made of, by their published names. */
export interface CloudwatchInputs {
  readonly Dimension: DimensionInput;
  readonly DimensionFilter: DimensionFilterInput;
  readonly Entity: EntityInput;
  readonly EntityMetricData: EntityMetricDataInput;
  readonly GetMetricDataInput: GetMetricDataInputInput;
  readonly GetMetricStatisticsInput: GetMetricStatisticsInputInput;
  readonly LabelOptions: LabelOptionsInput;
  readonly ListMetricsInput: ListMetricsInputInput;
  readonly Metric: MetricInput;
  readonly MetricDataQuery: MetricDataQueryInput;
  readonly MetricDatum: MetricDatumInput;
  readonly MetricStat: MetricStatInput;
  readonly PutMetricDataInput: PutMetricDataInputInput;
  readonly StatisticSet: StatisticSetInput;
}

interface DimensionInput {
  readonly Name: string;
  readonly Value: string;
}

interface DimensionFilterInput {
  readonly Name: string;
  readonly Value?: string;
}

interface EntityInput {
  readonly KeyAttributes?: Readonly<Record<string, string>>;
  readonly Attributes?: Readonly<Record<string, string>>;
}

interface EntityMetricDataInput {
  readonly Entity?: EntityInput;
  readonly MetricData?: readonly MetricDatumInput[];
}

interface GetMetricDataInputInput {
  readonly MetricDataQueries: readonly MetricDataQueryInput[];
  readonly StartTime: Date;
  readonly EndTime: Date;
  readonly NextToken?: string;
  readonly ScanBy?: "TimestampDescending" | "TimestampAscending";
  readonly MaxDatapoints?: number;
  readonly LabelOptions?: LabelOptionsInput;
}

interface GetMetricStatisticsInputInput {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions?: readonly DimensionInput[];
  readonly StartTime: Date;
  readonly EndTime: Date;
  readonly Period: number;
  readonly Statistics?: readonly ("SampleCount" | "Average" | "Sum" | "Minimum" | "Maximum")[];
  readonly ExtendedStatistics?: readonly string[];
  readonly Unit?: "Seconds" | "Microseconds" | "Milliseconds" | "Bytes" | "Kilobytes" | "Megabytes" | "Gigabytes" | "Terabytes" | "Bits" | "Kilobits" | "Megabits" | "Gigabits" | "Terabits" | "Percent" | "Count" | "Bytes/Second" | "Kilobytes/Second" | "Megabytes/Second" | "Gigabytes/Second" | "Terabytes/Second" | "Bits/Second" | "Kilobits/Second" | "Megabits/Second" | "Gigabits/Second" | "Terabits/Second" | "Count/Second" | "None";
}

interface LabelOptionsInput {
  readonly Timezone?: string;
}

interface ListMetricsInputInput {
  readonly Namespace?: string;
  readonly MetricName?: string;
  readonly Dimensions?: readonly DimensionFilterInput[];
  readonly NextToken?: string;
  readonly RecentlyActive?: "PT3H";
  readonly IncludeLinkedAccounts?: boolean;
  readonly OwningAccount?: string;
}

interface MetricInput {
  readonly Namespace?: string;
  readonly MetricName?: string;
  readonly Dimensions?: readonly DimensionInput[];
}

interface MetricDataQueryInput {
  readonly Id: string;
  readonly MetricStat?: MetricStatInput;
  readonly Expression?: string;
  readonly Label?: string;
  readonly ReturnData?: boolean;
  readonly Period?: number;
  readonly AccountId?: string;
}

interface MetricDatumInput {
  readonly MetricName: string;
  readonly Dimensions?: readonly DimensionInput[];
  readonly Timestamp?: Date;
  readonly Value?: number;
  readonly StatisticValues?: StatisticSetInput;
  readonly Values?: readonly number[];
  readonly Counts?: readonly number[];
  readonly Unit?: "Seconds" | "Microseconds" | "Milliseconds" | "Bytes" | "Kilobytes" | "Megabytes" | "Gigabytes" | "Terabytes" | "Bits" | "Kilobits" | "Megabits" | "Gigabits" | "Terabits" | "Percent" | "Count" | "Bytes/Second" | "Kilobytes/Second" | "Megabytes/Second" | "Gigabytes/Second" | "Terabytes/Second" | "Bits/Second" | "Kilobits/Second" | "Megabits/Second" | "Gigabits/Second" | "Terabits/Second" | "Count/Second" | "None";
  readonly StorageResolution?: number;
}

interface MetricStatInput {
  readonly Metric: MetricInput;
  readonly Period: number;
  readonly Stat: string;
  readonly Unit?: "Seconds" | "Microseconds" | "Milliseconds" | "Bytes" | "Kilobytes" | "Megabytes" | "Gigabytes" | "Terabytes" | "Bits" | "Kilobits" | "Megabits" | "Gigabits" | "Terabits" | "Percent" | "Count" | "Bytes/Second" | "Kilobytes/Second" | "Megabytes/Second" | "Gigabytes/Second" | "Terabytes/Second" | "Bits/Second" | "Kilobits/Second" | "Megabits/Second" | "Gigabits/Second" | "Terabits/Second" | "Count/Second" | "None";
}

interface PutMetricDataInputInput {
  readonly Namespace: string;
  readonly MetricData?: readonly MetricDatumInput[];
  readonly EntityMetricData?: readonly EntityMetricDataInput[];
  readonly StrictEntityValidation?: boolean;
}

interface StatisticSetInput {
  readonly SampleCount: number;
  readonly Sum: number;
  readonly Minimum: number;
  readonly Maximum: number;
}

interface DatapointOutput {
  readonly Timestamp?: Date | null | undefined;
  readonly SampleCount?: number | null | undefined;
  readonly Average?: number | null | undefined;
  readonly Sum?: number | null | undefined;
  readonly Minimum?: number | null | undefined;
  readonly Maximum?: number | null | undefined;
  readonly Unit?: string | null | undefined;
  readonly ExtendedStatistics?: Readonly<Record<string, number>> | null | undefined;
}

interface DimensionOutput {
  readonly Name: string;
  readonly Value: string;
}

interface GetMetricDataOutputOutput {
  readonly MetricDataResults?: readonly MetricDataResultOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
  readonly Messages?: readonly MessageDataOutput[] | null | undefined;
}

interface GetMetricStatisticsOutputOutput {
  readonly Label?: string | null | undefined;
  readonly Datapoints?: readonly DatapointOutput[] | null | undefined;
}

interface ListMetricsOutputOutput {
  readonly Metrics?: readonly MetricOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
  readonly OwningAccounts?: readonly string[] | null | undefined;
}

interface MessageDataOutput {
  readonly Code?: string | null | undefined;
  readonly Value?: string | null | undefined;
}

interface MetricOutput {
  readonly Namespace?: string | null | undefined;
  readonly MetricName?: string | null | undefined;
  readonly Dimensions?: readonly DimensionOutput[] | null | undefined;
}

interface MetricDataResultOutput {
  readonly Id?: string | null | undefined;
  readonly Label?: string | null | undefined;
  readonly Timestamps?: readonly Date[] | null | undefined;
  readonly Values?: readonly number[] | null | undefined;
  readonly StatusCode?: string | null | undefined;
  readonly Messages?: readonly MessageDataOutput[] | null | undefined;
}
