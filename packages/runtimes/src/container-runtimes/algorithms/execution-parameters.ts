import type { KindStart } from "../container-kind.ts";
import { integerVariable } from "../integer-variable.ts";

/** Returns the body of GET /execution-parameters: default settings for transform jobs that do not specify them. */
export type ExecutionText = (start: KindStart, processorCount: number) => string;

const mebibyte = 2 ** 20;
const contentBytesDefault = 6 * mebibyte;
const contentVariable = "MAX_CONTENT_LENGTH";

/** Returns the maximum body length of XGBoost's container, in bytes; null if its variable is not set. Throws ContainerRefusal. */
export function xgboostBodyBytes({ environment }: KindStart): number | null {
  return integerVariable(environment, [contentVariable], { least: 1, most: 2 ** 30 - 1 });
}

/** Returns XGBoost's execution parameters, in Python's JSON format, or in multi-model mode in that of its Java server. */
export const xgboostExecution: ExecutionText = (start, processorCount) => {
  const megabytes = Math.floor((xgboostBodyBytes(start) ?? contentBytesDefault) / mebibyte);
  const members = { MaxConcurrentTransforms: 1, BatchStrategy: "MULTI_RECORD", MaxPayloadInMB: megabytes };
  if (start.isMultiModel) return JSON.stringify(members, null, 2);
  return `{"MaxConcurrentTransforms": ${processorCount}, "BatchStrategy": "MULTI_RECORD", "MaxPayloadInMB": ${megabytes}}`;
};

/** Returns Spark ML's execution parameters, in Java's JSON format. */
export const sparkExecution: ExecutionText = (_, processorCount) =>
  `{"MaxConcurrentTransforms":${processorCount},"BatchStrategy":"SINGLE_RECORD","MaxPayloadInMB":5}`;
