/** Written by scripts/aws-types.ts from cloudwatch.json. Inputs are as parsed and checked against that model. */
export interface CloudwatchOperations {
  readonly DeleteAlarms: { readonly input: DeleteAlarmsInputInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteDashboards: { readonly input: DeleteDashboardsInputInput; readonly output: DeleteDashboardsOutputOutput };
  readonly DescribeAlarmHistory: { readonly input: DescribeAlarmHistoryInputInput; readonly output: DescribeAlarmHistoryOutputOutput };
  readonly DescribeAlarms: { readonly input: DescribeAlarmsInputInput; readonly output: DescribeAlarmsOutputOutput };
  readonly DescribeAlarmsForMetric: { readonly input: DescribeAlarmsForMetricInputInput; readonly output: DescribeAlarmsForMetricOutputOutput };
  readonly DisableAlarmActions: { readonly input: DisableAlarmActionsInputInput; readonly output: Readonly<Record<string, never>> };
  readonly EnableAlarmActions: { readonly input: EnableAlarmActionsInputInput; readonly output: Readonly<Record<string, never>> };
  readonly GetDashboard: { readonly input: GetDashboardInputInput; readonly output: GetDashboardOutputOutput };
  readonly GetMetricData: { readonly input: GetMetricDataInputInput; readonly output: GetMetricDataOutputOutput };
  readonly GetMetricStatistics: { readonly input: GetMetricStatisticsInputInput; readonly output: GetMetricStatisticsOutputOutput };
  readonly ListDashboards: { readonly input: ListDashboardsInputInput; readonly output: ListDashboardsOutputOutput };
  readonly ListMetrics: { readonly input: ListMetricsInputInput; readonly output: ListMetricsOutputOutput };
  readonly ListTagsForResource: { readonly input: ListTagsForResourceInputInput; readonly output: ListTagsForResourceOutputOutput };
  readonly PutCompositeAlarm: { readonly input: PutCompositeAlarmInputInput; readonly output: Readonly<Record<string, never>> };
  readonly PutDashboard: { readonly input: PutDashboardInputInput; readonly output: PutDashboardOutputOutput };
  readonly PutMetricAlarm: { readonly input: PutMetricAlarmInputInput; readonly output: Readonly<Record<string, never>> };
  readonly PutMetricData: { readonly input: PutMetricDataInputInput; readonly output: Readonly<Record<string, never>> };
  readonly SetAlarmState: { readonly input: SetAlarmStateInputInput; readonly output: Readonly<Record<string, never>> };
  readonly TagResource: { readonly input: TagResourceInputInput; readonly output: TagResourceOutputOutput };
  readonly UntagResource: { readonly input: UntagResourceInputInput; readonly output: UntagResourceOutputOutput };
}

/** The structures that inputs are made of, by their published names. */
export interface CloudwatchInputs {
  readonly ActionConfiguration: ActionConfigurationInput;
  readonly AlarmPromQLCriteria: AlarmPromQLCriteriaInput;
  readonly AlarmTagsPropagation: AlarmTagsPropagationInput;
  readonly DeleteAlarmsInput: DeleteAlarmsInputInput;
  readonly DeleteDashboardsInput: DeleteDashboardsInputInput;
  readonly DescribeAlarmHistoryInput: DescribeAlarmHistoryInputInput;
  readonly DescribeAlarmsForMetricInput: DescribeAlarmsForMetricInputInput;
  readonly DescribeAlarmsInput: DescribeAlarmsInputInput;
  readonly Dimension: DimensionInput;
  readonly DimensionFilter: DimensionFilterInput;
  readonly DisableAlarmActionsInput: DisableAlarmActionsInputInput;
  readonly EnableAlarmActionsInput: EnableAlarmActionsInputInput;
  readonly Entity: EntityInput;
  readonly EntityMetricData: EntityMetricDataInput;
  readonly EvaluationCriteria: EvaluationCriteriaInput;
  readonly EvaluationWindow: EvaluationWindowInput;
  readonly GetDashboardInput: GetDashboardInputInput;
  readonly GetMetricDataInput: GetMetricDataInputInput;
  readonly GetMetricStatisticsInput: GetMetricStatisticsInputInput;
  readonly LabelOptions: LabelOptionsInput;
  readonly ListDashboardsInput: ListDashboardsInputInput;
  readonly ListMetricsInput: ListMetricsInputInput;
  readonly ListTagsForResourceInput: ListTagsForResourceInputInput;
  readonly Metric: MetricInput;
  readonly MetricDataQuery: MetricDataQueryInput;
  readonly MetricDatum: MetricDatumInput;
  readonly MetricStat: MetricStatInput;
  readonly PutCompositeAlarmInput: PutCompositeAlarmInputInput;
  readonly PutDashboardInput: PutDashboardInputInput;
  readonly PutMetricAlarmInput: PutMetricAlarmInputInput;
  readonly PutMetricDataInput: PutMetricDataInputInput;
  readonly SetAlarmStateInput: SetAlarmStateInputInput;
  readonly SlidingWindow: SlidingWindowInput;
  readonly StatisticSet: StatisticSetInput;
  readonly Tag: TagInput;
  readonly TagResourceInput: TagResourceInputInput;
  readonly UntagResourceInput: UntagResourceInputInput;
  readonly WallClockWindow: WallClockWindowInput;
  readonly WarmUpConfiguration: WarmUpConfigurationInput;
}

interface ActionConfigurationInput {
  readonly AlarmTagsPropagation?: AlarmTagsPropagationInput;
}

interface AlarmPromQLCriteriaInput {
  readonly Query: string;
  readonly PendingPeriod?: number;
  readonly RecoveryPeriod?: number;
}

interface AlarmTagsPropagationInput {
  readonly Enabled: boolean;
  readonly IncludedTagKeys?: readonly string[];
  readonly ExcludedTagKeys?: readonly string[];
}

interface DeleteAlarmsInputInput {
  readonly AlarmNames: readonly string[];
}

interface DeleteDashboardsInputInput {
  readonly DashboardNames: readonly string[];
}

interface DescribeAlarmHistoryInputInput {
  readonly AlarmName?: string;
  readonly AlarmContributorId?: string;
  readonly AlarmTypes?: readonly ("CompositeAlarm" | "MetricAlarm" | "LogAlarm")[];
  readonly HistoryItemType?: "ConfigurationUpdate" | "StateUpdate" | "Action" | "AlarmContributorStateUpdate" | "AlarmContributorAction";
  readonly StartDate?: Date;
  readonly EndDate?: Date;
  readonly MaxRecords?: number;
  readonly NextToken?: string;
  readonly ScanBy?: "TimestampDescending" | "TimestampAscending";
}

interface DescribeAlarmsForMetricInputInput {
  readonly MetricName: string;
  readonly Namespace: string;
  readonly Statistic?: "SampleCount" | "Average" | "Sum" | "Minimum" | "Maximum";
  readonly ExtendedStatistic?: string;
  readonly Dimensions?: readonly DimensionInput[];
  readonly Period?: number;
  readonly Unit?: "Seconds" | "Microseconds" | "Milliseconds" | "Bytes" | "Kilobytes" | "Megabytes" | "Gigabytes" | "Terabytes" | "Bits" | "Kilobits" | "Megabits" | "Gigabits" | "Terabits" | "Percent" | "Count" | "Bytes/Second" | "Kilobytes/Second" | "Megabytes/Second" | "Gigabytes/Second" | "Terabytes/Second" | "Bits/Second" | "Kilobits/Second" | "Megabits/Second" | "Gigabits/Second" | "Terabits/Second" | "Count/Second" | "None";
}

interface DescribeAlarmsInputInput {
  readonly AlarmNames?: readonly string[];
  readonly AlarmNamePrefix?: string;
  readonly AlarmTypes?: readonly ("CompositeAlarm" | "MetricAlarm" | "LogAlarm")[];
  readonly ChildrenOfAlarmName?: string;
  readonly ParentsOfAlarmName?: string;
  readonly StateValue?: "OK" | "ALARM" | "INSUFFICIENT_DATA";
  readonly ActionPrefix?: string;
  readonly MaxRecords?: number;
  readonly NextToken?: string;
}

interface DimensionInput {
  readonly Name: string;
  readonly Value: string;
}

interface DimensionFilterInput {
  readonly Name: string;
  readonly Value?: string;
}

interface DisableAlarmActionsInputInput {
  readonly AlarmNames: readonly string[];
}

interface EnableAlarmActionsInputInput {
  readonly AlarmNames: readonly string[];
}

interface EntityInput {
  readonly KeyAttributes?: Readonly<Record<string, string>>;
  readonly Attributes?: Readonly<Record<string, string>>;
}

interface EntityMetricDataInput {
  readonly Entity?: EntityInput;
  readonly MetricData?: readonly MetricDatumInput[];
}

interface EvaluationCriteriaInput {
  readonly PromQLCriteria?: AlarmPromQLCriteriaInput;
}

interface EvaluationWindowInput {
  readonly WallClockWindow?: WallClockWindowInput;
  readonly SlidingWindow?: SlidingWindowInput;
}

interface GetDashboardInputInput {
  readonly DashboardName: string;
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

interface ListDashboardsInputInput {
  readonly DashboardNamePrefix?: string;
  readonly NextToken?: string;
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

interface ListTagsForResourceInputInput {
  readonly ResourceARN: string;
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

interface PutCompositeAlarmInputInput {
  readonly ActionsEnabled?: boolean;
  readonly AlarmActions?: readonly string[];
  readonly AlarmDescription?: string;
  readonly AlarmName: string;
  readonly AlarmRule: string;
  readonly InsufficientDataActions?: readonly string[];
  readonly OKActions?: readonly string[];
  readonly Tags?: readonly TagInput[];
  readonly ActionsSuppressor?: string;
  readonly ActionsSuppressorWaitPeriod?: number;
  readonly ActionsSuppressorExtensionPeriod?: number;
  readonly ActionConfiguration?: ActionConfigurationInput;
}

interface PutDashboardInputInput {
  readonly DashboardName: string;
  readonly DashboardBody: string;
  readonly Tags?: readonly TagInput[];
}

interface PutMetricAlarmInputInput {
  readonly AlarmName: string;
  readonly AlarmDescription?: string;
  readonly ActionsEnabled?: boolean;
  readonly OKActions?: readonly string[];
  readonly AlarmActions?: readonly string[];
  readonly InsufficientDataActions?: readonly string[];
  readonly MetricName?: string;
  readonly Namespace?: string;
  readonly Statistic?: "SampleCount" | "Average" | "Sum" | "Minimum" | "Maximum";
  readonly ExtendedStatistic?: string;
  readonly Dimensions?: readonly DimensionInput[];
  readonly Period?: number;
  readonly Unit?: "Seconds" | "Microseconds" | "Milliseconds" | "Bytes" | "Kilobytes" | "Megabytes" | "Gigabytes" | "Terabytes" | "Bits" | "Kilobits" | "Megabits" | "Gigabits" | "Terabits" | "Percent" | "Count" | "Bytes/Second" | "Kilobytes/Second" | "Megabytes/Second" | "Gigabytes/Second" | "Terabytes/Second" | "Bits/Second" | "Kilobits/Second" | "Megabits/Second" | "Gigabits/Second" | "Terabits/Second" | "Count/Second" | "None";
  readonly EvaluationPeriods?: number;
  readonly DatapointsToAlarm?: number;
  readonly Threshold?: number;
  readonly ComparisonOperator?: "GreaterThanOrEqualToThreshold" | "GreaterThanThreshold" | "LessThanThreshold" | "LessThanOrEqualToThreshold" | "LessThanLowerOrGreaterThanUpperThreshold" | "LessThanLowerThreshold" | "GreaterThanUpperThreshold";
  readonly TreatMissingData?: string;
  readonly EvaluateLowSampleCountPercentile?: string;
  readonly Metrics?: readonly MetricDataQueryInput[];
  readonly Tags?: readonly TagInput[];
  readonly ThresholdMetricId?: string;
  readonly EvaluationWindow?: EvaluationWindowInput;
  readonly WarmUpConfiguration?: WarmUpConfigurationInput;
  readonly EvaluationCriteria?: EvaluationCriteriaInput;
  readonly EvaluationInterval?: number;
  readonly ActionConfiguration?: ActionConfigurationInput;
}

interface PutMetricDataInputInput {
  readonly Namespace: string;
  readonly MetricData?: readonly MetricDatumInput[];
  readonly EntityMetricData?: readonly EntityMetricDataInput[];
  readonly StrictEntityValidation?: boolean;
}

interface SetAlarmStateInputInput {
  readonly AlarmName: string;
  readonly StateValue: "OK" | "ALARM" | "INSUFFICIENT_DATA";
  readonly StateReason: string;
  readonly StateReasonData?: string;
}

interface SlidingWindowInput {
}

interface StatisticSetInput {
  readonly SampleCount: number;
  readonly Sum: number;
  readonly Minimum: number;
  readonly Maximum: number;
}

interface TagInput {
  readonly Key: string;
  readonly Value: string;
}

interface TagResourceInputInput {
  readonly ResourceARN: string;
  readonly Tags: readonly TagInput[];
}

interface UntagResourceInputInput {
  readonly ResourceARN: string;
  readonly TagKeys: readonly string[];
}

interface WallClockWindowInput {
  readonly Timezone?: string;
}

interface WarmUpConfigurationInput {
  readonly WarmUpPeriodDurationInMinutes: number;
  readonly OnlyStartEvaluatingAfterWarmUpPeriodEnds?: boolean;
}

interface ActionConfigurationOutput {
  readonly AlarmTagsPropagation?: AlarmTagsPropagationOutput | null | undefined;
}

interface AlarmHistoryItemOutput {
  readonly AlarmName?: string | null | undefined;
  readonly AlarmContributorId?: string | null | undefined;
  readonly AlarmType?: string | null | undefined;
  readonly Timestamp?: Date | null | undefined;
  readonly HistoryItemType?: string | null | undefined;
  readonly HistorySummary?: string | null | undefined;
  readonly HistoryData?: string | null | undefined;
  readonly AlarmContributorAttributes?: Readonly<Record<string, string>> | null | undefined;
}

interface AlarmPromQLCriteriaOutput {
  readonly Query: string;
  readonly PendingPeriod?: number | null | undefined;
  readonly RecoveryPeriod?: number | null | undefined;
}

interface AlarmTagsPropagationOutput {
  readonly Enabled: boolean;
  readonly IncludedTagKeys?: readonly string[] | null | undefined;
  readonly ExcludedTagKeys?: readonly string[] | null | undefined;
}

interface CompositeAlarmOutput {
  readonly ActionsEnabled?: boolean | null | undefined;
  readonly AlarmActions?: readonly string[] | null | undefined;
  readonly AlarmArn?: string | null | undefined;
  readonly AlarmConfigurationUpdatedTimestamp?: Date | null | undefined;
  readonly AlarmDescription?: string | null | undefined;
  readonly AlarmName?: string | null | undefined;
  readonly AlarmRule?: string | null | undefined;
  readonly InsufficientDataActions?: readonly string[] | null | undefined;
  readonly OKActions?: readonly string[] | null | undefined;
  readonly StateReason?: string | null | undefined;
  readonly StateReasonData?: string | null | undefined;
  readonly StateUpdatedTimestamp?: Date | null | undefined;
  readonly StateValue?: string | null | undefined;
  readonly StateTransitionedTimestamp?: Date | null | undefined;
  readonly ActionsSuppressedBy?: string | null | undefined;
  readonly ActionsSuppressedReason?: string | null | undefined;
  readonly ActionsSuppressor?: string | null | undefined;
  readonly ActionsSuppressorWaitPeriod?: number | null | undefined;
  readonly ActionsSuppressorExtensionPeriod?: number | null | undefined;
  readonly ActionConfiguration?: ActionConfigurationOutput | null | undefined;
}

interface DashboardEntryOutput {
  readonly DashboardName?: string | null | undefined;
  readonly DashboardArn?: string | null | undefined;
  readonly LastModified?: Date | null | undefined;
  readonly Size?: number | null | undefined;
}

interface DashboardValidationMessageOutput {
  readonly DataPath?: string | null | undefined;
  readonly Message?: string | null | undefined;
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

interface DeleteDashboardsOutputOutput {
}

interface DescribeAlarmHistoryOutputOutput {
  readonly AlarmHistoryItems?: readonly AlarmHistoryItemOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface DescribeAlarmsForMetricOutputOutput {
  readonly MetricAlarms?: readonly MetricAlarmOutput[] | null | undefined;
}

interface DescribeAlarmsOutputOutput {
  readonly CompositeAlarms?: readonly CompositeAlarmOutput[] | null | undefined;
  readonly MetricAlarms?: readonly MetricAlarmOutput[] | null | undefined;
  readonly LogAlarms?: readonly LogAlarmOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface DimensionOutput {
  readonly Name: string;
  readonly Value: string;
}

interface EvaluationCriteriaOutput {
  readonly PromQLCriteria?: AlarmPromQLCriteriaOutput | null | undefined;
}

interface EvaluationWindowOutput {
  readonly WallClockWindow?: WallClockWindowOutput | null | undefined;
  readonly SlidingWindow?: SlidingWindowOutput | null | undefined;
}

interface GetDashboardOutputOutput {
  readonly DashboardArn?: string | null | undefined;
  readonly DashboardBody?: string | null | undefined;
  readonly DashboardName?: string | null | undefined;
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

interface ListDashboardsOutputOutput {
  readonly DashboardEntries?: readonly DashboardEntryOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
}

interface ListMetricsOutputOutput {
  readonly Metrics?: readonly MetricOutput[] | null | undefined;
  readonly NextToken?: string | null | undefined;
  readonly OwningAccounts?: readonly string[] | null | undefined;
}

interface ListTagsForResourceOutputOutput {
  readonly Tags?: readonly TagOutput[] | null | undefined;
}

interface LogAlarmOutput {
  readonly AlarmName?: string | null | undefined;
  readonly AlarmArn?: string | null | undefined;
  readonly AlarmDescription?: string | null | undefined;
  readonly AlarmConfigurationUpdatedTimestamp?: Date | null | undefined;
  readonly ActionsEnabled?: boolean | null | undefined;
  readonly OKActions?: readonly string[] | null | undefined;
  readonly AlarmActions?: readonly string[] | null | undefined;
  readonly InsufficientDataActions?: readonly string[] | null | undefined;
  readonly StateValue?: string | null | undefined;
  readonly StateReason?: string | null | undefined;
  readonly StateReasonData?: string | null | undefined;
  readonly StateUpdatedTimestamp?: Date | null | undefined;
  readonly ScheduledQueryConfiguration?: ScheduledQueryConfigurationOutput | null | undefined;
  readonly QueryResultsToEvaluate?: number | null | undefined;
  readonly QueryResultsToAlarm?: number | null | undefined;
  readonly Threshold?: number | null | undefined;
  readonly ComparisonOperator?: string | null | undefined;
  readonly TreatMissingData?: string | null | undefined;
  readonly StateTransitionedTimestamp?: Date | null | undefined;
  readonly EvaluationState?: string | null | undefined;
  readonly ActionLogLineCount?: number | null | undefined;
  readonly ActionLogLineRoleArn?: string | null | undefined;
  readonly WarmUpConfiguration?: WarmUpConfigurationOutput | null | undefined;
  readonly ActionConfiguration?: ActionConfigurationOutput | null | undefined;
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

interface MetricAlarmOutput {
  readonly AlarmName?: string | null | undefined;
  readonly AlarmArn?: string | null | undefined;
  readonly AlarmDescription?: string | null | undefined;
  readonly AlarmConfigurationUpdatedTimestamp?: Date | null | undefined;
  readonly ActionsEnabled?: boolean | null | undefined;
  readonly OKActions?: readonly string[] | null | undefined;
  readonly AlarmActions?: readonly string[] | null | undefined;
  readonly InsufficientDataActions?: readonly string[] | null | undefined;
  readonly StateValue?: string | null | undefined;
  readonly StateReason?: string | null | undefined;
  readonly StateReasonData?: string | null | undefined;
  readonly StateUpdatedTimestamp?: Date | null | undefined;
  readonly MetricName?: string | null | undefined;
  readonly Namespace?: string | null | undefined;
  readonly Statistic?: string | null | undefined;
  readonly ExtendedStatistic?: string | null | undefined;
  readonly Dimensions?: readonly DimensionOutput[] | null | undefined;
  readonly Period?: number | null | undefined;
  readonly Unit?: string | null | undefined;
  readonly EvaluationPeriods?: number | null | undefined;
  readonly DatapointsToAlarm?: number | null | undefined;
  readonly Threshold?: number | null | undefined;
  readonly ComparisonOperator?: string | null | undefined;
  readonly TreatMissingData?: string | null | undefined;
  readonly EvaluateLowSampleCountPercentile?: string | null | undefined;
  readonly Metrics?: readonly MetricDataQueryOutput[] | null | undefined;
  readonly ThresholdMetricId?: string | null | undefined;
  readonly EvaluationState?: string | null | undefined;
  readonly StateTransitionedTimestamp?: Date | null | undefined;
  readonly EvaluationWindow?: EvaluationWindowOutput | null | undefined;
  readonly WarmUpConfiguration?: WarmUpConfigurationOutput | null | undefined;
  readonly EvaluationCriteria?: EvaluationCriteriaOutput | null | undefined;
  readonly EvaluationInterval?: number | null | undefined;
  readonly ActionConfiguration?: ActionConfigurationOutput | null | undefined;
}

interface MetricDataQueryOutput {
  readonly Id: string;
  readonly MetricStat?: MetricStatOutput | null | undefined;
  readonly Expression?: string | null | undefined;
  readonly Label?: string | null | undefined;
  readonly ReturnData?: boolean | null | undefined;
  readonly Period?: number | null | undefined;
  readonly AccountId?: string | null | undefined;
}

interface MetricDataResultOutput {
  readonly Id?: string | null | undefined;
  readonly Label?: string | null | undefined;
  readonly Timestamps?: readonly Date[] | null | undefined;
  readonly Values?: readonly number[] | null | undefined;
  readonly StatusCode?: string | null | undefined;
  readonly Messages?: readonly MessageDataOutput[] | null | undefined;
}

interface MetricStatOutput {
  readonly Metric: MetricOutput;
  readonly Period: number;
  readonly Stat: string;
  readonly Unit?: string | null | undefined;
}

interface PutDashboardOutputOutput {
  readonly DashboardValidationMessages?: readonly DashboardValidationMessageOutput[] | null | undefined;
}

interface ScheduleConfigurationOutput {
  readonly ScheduleExpression: string;
  readonly StartTimeOffset: number;
  readonly EndTimeOffset?: number | null | undefined;
}

interface ScheduledQueryConfigurationOutput {
  readonly QueryString: string;
  readonly LogGroupIdentifiers?: readonly string[] | null | undefined;
  readonly QueryARN?: string | null | undefined;
  readonly ScheduledQueryRoleARN: string;
  readonly ScheduleConfiguration: ScheduleConfigurationOutput;
  readonly AggregationExpression: string;
  readonly Tags?: readonly TagOutput[] | null | undefined;
}

interface SlidingWindowOutput {
}

interface TagOutput {
  readonly Key: string;
  readonly Value: string;
}

interface TagResourceOutputOutput {
}

interface UntagResourceOutputOutput {
}

interface WallClockWindowOutput {
  readonly Timezone?: string | null | undefined;
}

interface WarmUpConfigurationOutput {
  readonly WarmUpPeriodDurationInMinutes: number;
  readonly OnlyStartEvaluatingAfterWarmUpPeriodEnds?: boolean | null | undefined;
}
