import type { Dimension } from "@galatea/base/metrics";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";

/** Returns the exact set of dimensions that identifies a metric; empty by default. */
export function parseDimensions(input: readonly CloudwatchInputs["Dimension"][] | undefined): readonly Dimension[] {
  return (input ?? []).map(({ Name, Value }) => ({ name: Name, value: Value }));
}
