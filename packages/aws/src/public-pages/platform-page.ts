import { setImmediate as nextTurn } from "node:timers/promises";
import { statusPage, statusRowsMax } from "@galatea/base/status-page";
import { failureReason, type Hosting } from "@galatea/hosting";

export interface PlatformPageOptions {
  readonly hosting: Pick<Hosting, "endpoints" | "statistics">;
  readonly version: string;
  readonly unconfined: () => Readonly<Record<string, string>>;
}

const anyTime = { fromMs: null, untilMs: null };
const everything = {
  sortBy: "name",
  isDescending: false,
  nameContains: "",
  created: anyTime,
  modified: anyTime,
  status: null,
  after: null,
  limit: statusRowsMax,
} as const;

/** The query of the sign-in link. Its response makes the browser prompt for the owner's key. */
export const signInQuery = "sign-in";

/**
 * Returns the HTML page with the platform's metrics and, with `showsNames`, the endpoints. Failed endpoints come first.
 */
export async function platformPage(
  { hosting, version, unconfined }: PlatformPageOptions,
  showsNames: boolean,
): Promise<string> {
  const { endpoints, instancesInServiceCount } = hosting.statistics();
  const endpointCount = [...endpoints.values()].reduce((sum, count) => sum + count, 0);
  const states = [...endpoints].map(([at, count]) => `${count} ${at}`);
  const gaps = Object.keys(unconfined());
  return statusPage({
    title: `Galatea ${version}`,
    facts: [
      ["endpoints", states.length === 0 ? "none" : states.join(", ")],
      ["instances in service", String(instancesInServiceCount)],
      ["isolation between tenants", gaps.length === 0 ? "complete" : `missing: ${gaps.join(", ")}`],
    ],
    table: showsNames
      ? {
          heading: "Endpoints",
          columns: ["name", "status", "since", "reason"],
          rows: await endpointRows(hosting),
          rowCount: endpointCount,
          emptyText: "There are no endpoints.",
        }
      : null,
    links: [
      ...(showsNames
        ? []
        : [{ href: `/?${signInQuery}`, text: "Names of endpoints: sign in with the access key of `galatea env`" }]),
      { href: "/health", text: "Health" },
      { href: "/metrics", text: "Metrics, for Prometheus" },
      { href: "https://docs.aws.amazon.com/sagemaker/latest/APIReference/", text: "SageMaker's API" },
    ],
  });
}

async function endpointRows(hosting: PlatformPageOptions["hosting"]): Promise<readonly (readonly string[])[]> {
  const nextTick = () => nextTurn();
  const failed = await hosting.endpoints.list({ ...everything, sortBy: "status", status: "Failed" }, nextTick);
  const all = await hosting.endpoints.list(everything, nextTick);
  const names = new Set(failed.page.map(({ name }) => name));
  return [...failed.page, ...all.page.filter(({ name }) => !names.has(name))].map(({ name, state, modifiedMs }) => [
    name,
    state.at,
    new Date(modifiedMs).toISOString(),
    failureReason(state) ?? "",
  ]);
}
