import { configFieldsPage } from "./config-fields.ts";
import { errorsPage } from "./errors.ts";
import { flagsPage } from "./flags.ts";
import { metricsPage } from "./metrics.ts";
import { operationsPage } from "./operations.ts";

/** Returns the pages of the reference, by their names in `docs/reference`. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ["flags.md", flagsPage()],
    ["aws-operations.md", await operationsPage()],
    ["config-pbtxt.md", configFieldsPage()],
    ["metrics.md", await metricsPage()],
    ["errors.md", await errorsPage()],
  ]);
}
