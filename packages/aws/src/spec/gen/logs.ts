/** Written by scripts/aws-types.ts from logs.json. Inputs are as parsed and checked against that model. */
export interface LogsOperations {
  readonly CreateLogGroup: { readonly input: CreateLogGroupRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly CreateLogStream: { readonly input: CreateLogStreamRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteLogGroup: { readonly input: DeleteLogGroupRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteLogStream: { readonly input: DeleteLogStreamRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteMetricFilter: { readonly input: DeleteMetricFilterRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DeleteRetentionPolicy: { readonly input: DeleteRetentionPolicyRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly DescribeLogGroups: { readonly input: DescribeLogGroupsRequestInput; readonly output: DescribeLogGroupsResponseOutput };
  readonly DescribeLogStreams: { readonly input: DescribeLogStreamsRequestInput; readonly output: DescribeLogStreamsResponseOutput };
  readonly DescribeMetricFilters: { readonly input: DescribeMetricFiltersRequestInput; readonly output: DescribeMetricFiltersResponseOutput };
  readonly DescribeQueries: { readonly input: DescribeQueriesRequestInput; readonly output: DescribeQueriesResponseOutput };
  readonly FilterLogEvents: { readonly input: FilterLogEventsRequestInput; readonly output: FilterLogEventsResponseOutput };
  readonly GetLogEvents: { readonly input: GetLogEventsRequestInput; readonly output: GetLogEventsResponseOutput };
  readonly GetQueryResults: { readonly input: GetQueryResultsRequestInput; readonly output: GetQueryResultsResponseOutput };
  readonly PutLogEvents: { readonly input: PutLogEventsRequestInput; readonly output: PutLogEventsResponseOutput };
  readonly PutMetricFilter: { readonly input: PutMetricFilterRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly PutRetentionPolicy: { readonly input: PutRetentionPolicyRequestInput; readonly output: Readonly<Record<string, never>> };
  readonly StartLiveTail: { readonly input: StartLiveTailRequestInput; readonly output: StartLiveTailResponseOutput };
  readonly StartQuery: { readonly input: StartQueryRequestInput; readonly output: StartQueryResponseOutput };
  readonly StopQuery: { readonly input: StopQueryRequestInput; readonly output: StopQueryResponseOutput };
  readonly TestMetricFilter: { readonly input: TestMetricFilterRequestInput; readonly output: TestMetricFilterResponseOutput };
}

/** The structures that inputs are made of, by their published names. */
export interface LogsInputs {
  readonly CreateLogGroupRequest: CreateLogGroupRequestInput;
  readonly CreateLogStreamRequest: CreateLogStreamRequestInput;
  readonly DeleteLogGroupRequest: DeleteLogGroupRequestInput;
  readonly DeleteLogStreamRequest: DeleteLogStreamRequestInput;
  readonly DeleteMetricFilterRequest: DeleteMetricFilterRequestInput;
  readonly DeleteRetentionPolicyRequest: DeleteRetentionPolicyRequestInput;
  readonly DescribeLogGroupsRequest: DescribeLogGroupsRequestInput;
  readonly DescribeLogStreamsRequest: DescribeLogStreamsRequestInput;
  readonly DescribeMetricFiltersRequest: DescribeMetricFiltersRequestInput;
  readonly DescribeQueriesRequest: DescribeQueriesRequestInput;
  readonly Entity: EntityInput;
  readonly FilterLogEventsRequest: FilterLogEventsRequestInput;
  readonly GetLogEventsRequest: GetLogEventsRequestInput;
  readonly GetQueryResultsRequest: GetQueryResultsRequestInput;
  readonly InputLogEvent: InputLogEventInput;
  readonly MetricTransformation: MetricTransformationInput;
  readonly PutLogEventsRequest: PutLogEventsRequestInput;
  readonly PutMetricFilterRequest: PutMetricFilterRequestInput;
  readonly PutRetentionPolicyRequest: PutRetentionPolicyRequestInput;
  readonly StartLiveTailRequest: StartLiveTailRequestInput;
  readonly StartQueryRequest: StartQueryRequestInput;
  readonly StopQueryRequest: StopQueryRequestInput;
  readonly TestMetricFilterRequest: TestMetricFilterRequestInput;
}

interface CreateLogGroupRequestInput {
  readonly logGroupName: string;
  readonly kmsKeyId?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly logGroupClass?: "STANDARD" | "INFREQUENT_ACCESS" | "DELIVERY" | "ESSENTIALS";
  readonly deletionProtectionEnabled?: boolean;
}

interface CreateLogStreamRequestInput {
  readonly logGroupName: string;
  readonly logStreamName: string;
}

interface DeleteLogGroupRequestInput {
  readonly logGroupName: string;
}

interface DeleteLogStreamRequestInput {
  readonly logGroupName: string;
  readonly logStreamName: string;
}

interface DeleteMetricFilterRequestInput {
  readonly logGroupName: string;
  readonly filterName: string;
}

interface DeleteRetentionPolicyRequestInput {
  readonly logGroupName: string;
}

interface DescribeLogGroupsRequestInput {
  readonly accountIdentifiers?: readonly string[];
  readonly logGroupNamePrefix?: string;
  readonly logGroupNamePattern?: string;
  readonly nextToken?: string;
  readonly limit?: number;
  readonly includeLinkedAccounts?: boolean;
  readonly logGroupClass?: "STANDARD" | "INFREQUENT_ACCESS" | "DELIVERY" | "ESSENTIALS";
  readonly logGroupIdentifiers?: readonly string[];
}

interface DescribeLogStreamsRequestInput {
  readonly logGroupName?: string;
  readonly logGroupIdentifier?: string;
  readonly logStreamNamePrefix?: string;
  readonly orderBy?: "LogStreamName" | "LastEventTime";
  readonly descending?: boolean;
  readonly nextToken?: string;
  readonly limit?: number;
}

interface DescribeMetricFiltersRequestInput {
  readonly logGroupName?: string;
  readonly filterNamePrefix?: string;
  readonly nextToken?: string;
  readonly limit?: number;
  readonly metricName?: string;
  readonly metricNamespace?: string;
}

interface DescribeQueriesRequestInput {
  readonly logGroupName?: string;
  readonly status?: "Scheduled" | "Running" | "Complete" | "Failed" | "Cancelled" | "Timeout" | "Unknown";
  readonly maxResults?: number;
  readonly nextToken?: string;
  readonly queryLanguage?: "CWLI" | "SQL" | "PPL";
}

interface EntityInput {
  readonly keyAttributes?: Readonly<Record<string, string>>;
  readonly attributes?: Readonly<Record<string, string>>;
}

interface FilterLogEventsRequestInput {
  readonly logGroupName?: string;
  readonly logGroupIdentifier?: string;
  readonly logStreamNames?: readonly string[];
  readonly logStreamNamePrefix?: string;
  readonly startTime?: number;
  readonly endTime?: number;
  readonly filterPattern?: string;
  readonly nextToken?: string;
  readonly limit?: number;
  readonly startFromHead?: boolean;
  readonly interleaved?: boolean;
  readonly unmask?: boolean;
}

interface GetLogEventsRequestInput {
  readonly logGroupName?: string;
  readonly logGroupIdentifier?: string;
  readonly logStreamName: string;
  readonly startTime?: number;
  readonly endTime?: number;
  readonly nextToken?: string;
  readonly limit?: number;
  readonly startFromHead?: boolean;
  readonly unmask?: boolean;
}

interface GetQueryResultsRequestInput {
  readonly queryId: string;
  readonly nextToken?: string;
  readonly maxItems?: number;
}

interface InputLogEventInput {
  readonly timestamp: number;
  readonly message: string;
}

interface MetricTransformationInput {
  readonly metricName: string;
  readonly metricNamespace: string;
  readonly metricValue: string;
  readonly defaultValue?: number;
  readonly dimensions?: Readonly<Record<string, string>>;
  readonly unit?: "Seconds" | "Microseconds" | "Milliseconds" | "Bytes" | "Kilobytes" | "Megabytes" | "Gigabytes" | "Terabytes" | "Bits" | "Kilobits" | "Megabits" | "Gigabits" | "Terabits" | "Percent" | "Count" | "Bytes/Second" | "Kilobytes/Second" | "Megabytes/Second" | "Gigabytes/Second" | "Terabytes/Second" | "Bits/Second" | "Kilobits/Second" | "Megabits/Second" | "Gigabits/Second" | "Terabits/Second" | "Count/Second" | "None";
}

interface PutLogEventsRequestInput {
  readonly logGroupName: string;
  readonly logStreamName: string;
  readonly logEvents: readonly InputLogEventInput[];
  readonly sequenceToken?: string;
  readonly entity?: EntityInput;
}

interface PutMetricFilterRequestInput {
  readonly logGroupName: string;
  readonly filterName: string;
  readonly filterPattern: string;
  readonly metricTransformations: readonly MetricTransformationInput[];
  readonly applyOnTransformedLogs?: boolean;
  readonly fieldSelectionCriteria?: string;
  readonly emitSystemFieldDimensions?: readonly string[];
}

interface PutRetentionPolicyRequestInput {
  readonly logGroupName: string;
  readonly retentionInDays: number;
}

interface StartLiveTailRequestInput {
  readonly logGroupIdentifiers: readonly string[];
  readonly logStreamNames?: readonly string[];
  readonly logStreamNamePrefixes?: readonly string[];
  readonly logEventFilterPattern?: string;
}

interface StartQueryRequestInput {
  readonly queryLanguage?: "CWLI" | "SQL" | "PPL";
  readonly logGroupName?: string;
  readonly logGroupNames?: readonly string[];
  readonly logGroupIdentifiers?: readonly string[];
  readonly startTime: number;
  readonly endTime: number;
  readonly queryString: string;
  readonly limit?: number;
}

interface StopQueryRequestInput {
  readonly queryId: string;
}

interface TestMetricFilterRequestInput {
  readonly filterPattern: string;
  readonly logEventMessages: readonly string[];
}

interface DescribeLogGroupsResponseOutput {
  readonly logGroups?: readonly LogGroupOutput[] | null | undefined;
  readonly nextToken?: string | null | undefined;
}

interface DescribeLogStreamsResponseOutput {
  readonly logStreams?: readonly LogStreamOutput[] | null | undefined;
  readonly nextToken?: string | null | undefined;
}

interface DescribeMetricFiltersResponseOutput {
  readonly metricFilters?: readonly MetricFilterOutput[] | null | undefined;
  readonly nextToken?: string | null | undefined;
}

interface DescribeQueriesResponseOutput {
  readonly queries?: readonly QueryInfoOutput[] | null | undefined;
  readonly nextToken?: string | null | undefined;
}

interface FilterLogEventsResponseOutput {
  readonly events?: readonly FilteredLogEventOutput[] | null | undefined;
  readonly searchedLogStreams?: readonly SearchedLogStreamOutput[] | null | undefined;
  readonly nextToken?: string | null | undefined;
}

interface FilteredLogEventOutput {
  readonly logStreamName?: string | null | undefined;
  readonly timestamp?: number | null | undefined;
  readonly message?: string | null | undefined;
  readonly ingestionTime?: number | null | undefined;
  readonly eventId?: string | null | undefined;
}

interface GetLogEventsResponseOutput {
  readonly events?: readonly OutputLogEventOutput[] | null | undefined;
  readonly nextForwardToken?: string | null | undefined;
  readonly nextBackwardToken?: string | null | undefined;
}

interface GetQueryResultsResponseOutput {
  readonly queryLanguage?: string | null | undefined;
  readonly results?: readonly (readonly ResultFieldOutput[])[] | null | undefined;
  readonly statistics?: QueryStatisticsOutput | null | undefined;
  readonly status?: string | null | undefined;
  readonly encryptionKey?: string | null | undefined;
  readonly nextToken?: string | null | undefined;
}

interface LiveTailSessionLogEventOutput {
  readonly logStreamName?: string | null | undefined;
  readonly logGroupIdentifier?: string | null | undefined;
  readonly message?: string | null | undefined;
  readonly timestamp?: number | null | undefined;
  readonly ingestionTime?: number | null | undefined;
}

interface LiveTailSessionMetadataOutput {
  readonly sampled?: boolean | null | undefined;
}

interface LiveTailSessionStartOutput {
  readonly requestId?: string | null | undefined;
  readonly sessionId?: string | null | undefined;
  readonly logGroupIdentifiers?: readonly string[] | null | undefined;
  readonly logStreamNames?: readonly string[] | null | undefined;
  readonly logStreamNamePrefixes?: readonly string[] | null | undefined;
  readonly logEventFilterPattern?: string | null | undefined;
}

interface LiveTailSessionUpdateOutput {
  readonly sessionMetadata?: LiveTailSessionMetadataOutput | null | undefined;
  readonly sessionResults?: readonly LiveTailSessionLogEventOutput[] | null | undefined;
}

interface LogGroupOutput {
  readonly logGroupName?: string | null | undefined;
  readonly creationTime?: number | null | undefined;
  readonly retentionInDays?: number | null | undefined;
  readonly metricFilterCount?: number | null | undefined;
  readonly arn?: string | null | undefined;
  readonly storedBytes?: number | null | undefined;
  readonly kmsKeyId?: string | null | undefined;
  readonly dataProtectionStatus?: string | null | undefined;
  readonly inheritedProperties?: readonly string[] | null | undefined;
  readonly logGroupClass?: string | null | undefined;
  readonly logGroupArn?: string | null | undefined;
  readonly deletionProtectionEnabled?: boolean | null | undefined;
  readonly bearerTokenAuthenticationEnabled?: boolean | null | undefined;
  readonly retentionPolicyName?: string | null | undefined;
}

interface LogStreamOutput {
  readonly logStreamName?: string | null | undefined;
  readonly creationTime?: number | null | undefined;
  readonly firstEventTimestamp?: number | null | undefined;
  readonly lastEventTimestamp?: number | null | undefined;
  readonly lastIngestionTime?: number | null | undefined;
  readonly uploadSequenceToken?: string | null | undefined;
  readonly arn?: string | null | undefined;
  readonly storedBytes?: number | null | undefined;
}

interface MetricFilterOutput {
  readonly filterName?: string | null | undefined;
  readonly filterPattern?: string | null | undefined;
  readonly metricTransformations?: readonly MetricTransformationOutput[] | null | undefined;
  readonly creationTime?: number | null | undefined;
  readonly logGroupName?: string | null | undefined;
  readonly applyOnTransformedLogs?: boolean | null | undefined;
  readonly fieldSelectionCriteria?: string | null | undefined;
  readonly emitSystemFieldDimensions?: readonly string[] | null | undefined;
}

interface MetricFilterMatchRecordOutput {
  readonly eventNumber?: number | null | undefined;
  readonly eventMessage?: string | null | undefined;
  readonly extractedValues?: Readonly<Record<string, string>> | null | undefined;
}

interface MetricTransformationOutput {
  readonly metricName: string;
  readonly metricNamespace: string;
  readonly metricValue: string;
  readonly defaultValue?: number | null | undefined;
  readonly dimensions?: Readonly<Record<string, string>> | null | undefined;
  readonly unit?: string | null | undefined;
}

interface OutputLogEventOutput {
  readonly timestamp?: number | null | undefined;
  readonly message?: string | null | undefined;
  readonly ingestionTime?: number | null | undefined;
}

interface PutLogEventsResponseOutput {
  readonly nextSequenceToken?: string | null | undefined;
  readonly rejectedLogEventsInfo?: RejectedLogEventsInfoOutput | null | undefined;
  readonly rejectedEntityInfo?: RejectedEntityInfoOutput | null | undefined;
}

interface QueryInfoOutput {
  readonly queryLanguage?: string | null | undefined;
  readonly queryId?: string | null | undefined;
  readonly queryString?: string | null | undefined;
  readonly status?: string | null | undefined;
  readonly createTime?: number | null | undefined;
  readonly logGroupName?: string | null | undefined;
  readonly queryDuration?: number | null | undefined;
  readonly bytesScanned?: number | null | undefined;
  readonly userIdentity?: string | null | undefined;
}

interface QueryStatisticsOutput {
  readonly recordsMatched?: number | null | undefined;
  readonly recordsScanned?: number | null | undefined;
  readonly estimatedRecordsSkipped?: number | null | undefined;
  readonly bytesScanned?: number | null | undefined;
  readonly estimatedBytesSkipped?: number | null | undefined;
  readonly logGroupsScanned?: number | null | undefined;
  readonly resultCount?: number | null | undefined;
}

interface RejectedEntityInfoOutput {
  readonly errorType: string;
}

interface RejectedLogEventsInfoOutput {
  readonly tooNewLogEventStartIndex?: number | null | undefined;
  readonly tooOldLogEventEndIndex?: number | null | undefined;
  readonly expiredLogEventEndIndex?: number | null | undefined;
}

interface ResultFieldOutput {
  readonly field?: string | null | undefined;
  readonly value?: string | null | undefined;
}

interface SearchedLogStreamOutput {
  readonly logStreamName?: string | null | undefined;
  readonly searchedCompletely?: boolean | null | undefined;
}

interface SessionStreamingExceptionOutput {
  readonly message?: string | null | undefined;
}

interface SessionTimeoutExceptionOutput {
  readonly message?: string | null | undefined;
}

interface StartLiveTailResponseOutput {
  readonly responseStream?: AsyncIterable<StartLiveTailResponseStreamOutput> | null | undefined;
}

interface StartLiveTailResponseStreamOutput {
  readonly sessionStart?: LiveTailSessionStartOutput | null | undefined;
  readonly sessionUpdate?: LiveTailSessionUpdateOutput | null | undefined;
  readonly SessionTimeoutException?: SessionTimeoutExceptionOutput | null | undefined;
  readonly SessionStreamingException?: SessionStreamingExceptionOutput | null | undefined;
}

interface StartQueryResponseOutput {
  readonly queryId?: string | null | undefined;
}

interface StopQueryResponseOutput {
  readonly success?: boolean | null | undefined;
}

interface TestMetricFilterResponseOutput {
  readonly matches?: readonly MetricFilterMatchRecordOutput[] | null | undefined;
}
