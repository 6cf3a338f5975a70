import { type Clock } from "@galatea/base";
import type { LogsInputs, LogsOperations } from "../../../spec/gen/logs.ts";
import { pageAfter, type CallContext, type OperationRows, type UnsupportedMember } from "../../../wire/index.ts";
import { parseFilterPattern } from "../filter-patterns/index.ts";
import type { LogStreams } from "@galatea/hosting";
import { logsArnPrefix, logPageQuery, logParameterError as invalid } from "../log-names.ts";
import { extractedValues, type MetricFilterRecord } from "./metric-filter.ts";
import type { MetricFilters } from "./metric-filters.ts";
import { MatchedLength } from "../matched-length.ts";

export interface MetricFilterDependencies {
  readonly logs: LogStreams;
  readonly metricFilters: MetricFilters;
  readonly clock: Clock;
}

type PutInput = LogsInputs["PutMetricFilterRequest"];

const dimensionsMax = 3;

const refusedMembers: readonly UnsupportedMember[] = [
  { path: "applyOnTransformedLogs", harmless: (value) => value === false },
  { path: "fieldSelectionCriteria", harmless: (value) => value === "" },
  { path: "emitSystemFieldDimensions", harmless: (value) => Array.isArray(value) && value.length === 0 },
];

export function metricFilterOperations(dependencies: MetricFilterDependencies) {
  const { logs, metricFilters, clock } = dependencies;
  const resource = ({ logGroupName }: { readonly logGroupName: string }, context: CallContext) =>
    `${logsArnPrefix(context)}${logGroupName}`;
  return {
    PutMetricFilter: {
      resource,
      unsupportedMembers: refusedMembers,
      async handle(input) {
        await metricFilters.put(recordOf(input, clock.epochMs()));
        return {};
      },
    },
    DeleteMetricFilter: {
      resource,
      async handle({ logGroupName, filterName }) {
        await logs.retentionDays(logGroupName);
        await metricFilters.delete(logGroupName, filterName);
        return {};
      },
    },
    DescribeMetricFilters: {
      resource: (_, context) => `${logsArnPrefix(context)}*`,
      handle: async (input) => describe(metricFilters, input),
    },
    TestMetricFilter: {
      async handle({ filterPattern, logEventMessages }, { nextTick }) {
        const pattern = parseFilterPattern(filterPattern);
        const matched = new MatchedLength();
        const matches = [];
        for (const [index, eventMessage] of logEventMessages.entries()) {
          if (matched.shouldYieldBefore(eventMessage)) await nextTick();
          const values = extractedValues(pattern, eventMessage);
          if (values !== null) matches.push({ eventNumber: index + 1, eventMessage, extractedValues: values });
        }
        return { matches };
      },
    },
  } satisfies Partial<OperationRows<LogsOperations>>;
}

function recordOf(input: PutInput, nowMs: number): MetricFilterRecord {
  const [argument] = input.metricTransformations;
  if (argument === undefined) throw invalid("metricTransformations must contain exactly one metric transformation.");
  const { metricNamespace: namespace, metricName: name, dimensions = {}, defaultValue = null } = argument;
  if (namespace.startsWith("AWS/")) throw invalid(`The namespace ${namespace} is reserved for CloudWatch.`);
  if (Object.keys(dimensions).length > dimensionsMax)
    throw invalid(`A metric can have at most ${dimensionsMax} dimensions.`);
  if (defaultValue !== null && Object.keys(dimensions).length > 0) {
    throw invalid("A metric filter can have either a defaultValue or dimensions, not both.");
  }
  if (defaultValue !== null && !Number.isFinite(defaultValue)) throw invalid("The default value must be a number.");
  return {
    group: input.logGroupName,
    name: input.filterName,
    pattern: input.filterPattern,
    createdMs: nowMs,
    metric: { namespace, name, value: argument.metricValue, defaultValue, unit: argument.unit ?? "None", dimensions },
  };
}

function describe(filters: MetricFilters, input: LogsInputs["DescribeMetricFiltersRequest"]) {
  const { logGroupName: group, filterNamePrefix: prefix, metricName, metricNamespace } = input;
  if ((metricName === undefined) !== (metricNamespace === undefined)) {
    throw invalid("metricName and metricNamespace must be given together.");
  }
  const found = filters
    .list()
    .filter((filter) => group === undefined || filter.group === group)
    .filter((filter) => filter.name.startsWith(prefix ?? ""))
    .filter(({ metric }) => metricName === undefined || metric.name === metricName)
    .filter(({ metric }) => metricNamespace === undefined || metric.namespace === metricNamespace);
  const keyOf = (filter: MetricFilterRecord) => JSON.stringify([filter.group, filter.name]);
  const { page, next } = pageAfter(found, keyOf, logPageQuery("DescribeMetricFilters", input));
  return { metricFilters: page.map(printFilter), nextToken: next };
}

function printFilter({ group, name, pattern, createdMs, metric }: MetricFilterRecord) {
  const transformation = {
    metricName: metric.name,
    metricNamespace: metric.namespace,
    metricValue: metric.value,
    defaultValue: metric.defaultValue,
    dimensions: Object.keys(metric.dimensions).length === 0 ? undefined : metric.dimensions,
    unit: metric.unit === "None" ? undefined : metric.unit,
  };
  return {
    filterName: name,
    filterPattern: pattern,
    metricTransformations: [transformation],
    creationTime: createdMs,
    logGroupName: group,
  };
}
