import type { Dimension } from "@galatea/base/metrics";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";

/** The exact set that identifies a metric; none where none is given. */
export function dimensionsOf(given: readonly CloudwatchInputs["Dimension"][] | undefined): readonly Dimension[] {
  return (given ?? []).map(({ Name, Value }) => ({ name: Name, value: Value }));
}
