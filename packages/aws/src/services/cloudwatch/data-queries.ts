import { AwsError } from "@galatea/base";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";

const queriesMax = 500;

interface QueryFacts {
  readonly id: string;
  readonly label: string;
  /** True if the response contains the query's values; false if only expressions read them. */
  readonly isReturned: boolean;
}

export type MetricStat = CloudwatchInputs["MetricStat"];

export type MetricQuery = QueryFacts & { readonly kind: "metric"; readonly stat: MetricStat };

export type ExpressionQuery = QueryFacts & {
  readonly kind: "expression";
  readonly expression: string;
  /** Null: the longest period of the queries that the expression reads. */
  readonly periodSeconds: number | null;
};

/** One query of GetMetricData: a metric, or an expression over others. */
export type DataQuery = MetricQuery | ExpressionQuery;

/** Parses the queries of GetMetricData, with the checks that the published service model does not contain. Throws AwsError. */
export function parseDataQueries(inputs: readonly CloudwatchInputs["MetricDataQuery"][]): readonly DataQuery[] {
  if (inputs.length > queriesMax) {
    throw invalid(`The collection MetricDataQueries must not have a size greater than ${queriesMax}.`);
  }
  const ids = new Set<string>();
  return inputs.map((input) => {
    if (!/^[a-z]\w*$/.test(input.Id)) throw invalid(`The value ${input.Id} for parameter Id is invalid.`);
    if (ids.has(input.Id)) throw invalid("The values for parameter id in MetricDataQueries are not unique.");
    ids.add(input.Id);
    return dataQuery(input);
  });
}

function dataQuery(input: CloudwatchInputs["MetricDataQuery"]): DataQuery {
  const { Id: id, Label: label, ReturnData: isReturned = true, MetricStat: stat, Expression: expression } = input;
  if (stat !== undefined && expression === undefined) {
    return { kind: "metric", id, label: label ?? stat.Metric.MetricName ?? id, isReturned, stat };
  }
  if (stat === undefined && expression !== undefined) {
    return { kind: "expression", id, label: label ?? id, isReturned, expression, periodSeconds: input.Period ?? null };
  }
  throw invalid(`Exactly one of the parameters MetricStat and Expression must be specified for the query ${id}.`);
}

function invalid(text: string): AwsError {
  return new AwsError("ValidationError", text);
}
