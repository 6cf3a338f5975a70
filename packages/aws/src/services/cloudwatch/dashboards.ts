import { AwsError, type Clock, type Logger } from "@galatea/base";
import { RecordedValues, type Documents } from "@galatea/hosting/records";
import type { CloudwatchOperations } from "../../spec/gen/cloudwatch.ts";
import { pageAfter, type OperationRows } from "../../wire/index.ts";
import { invalidNextTokenValue } from "./next-tokens.ts";

export interface DashboardRecord {
  readonly name: string;
  /** The JSON of the request, unchanged. */
  readonly body: string;
  readonly changedMs: number;
}

/** Dashboards by name, stored as documents. */
export type DashboardStore = RecordedValues<DashboardRecord>;

export const openDashboardStore = (documents: Documents, logger: Logger): DashboardStore =>
  new RecordedValues(documents, "dashboard", logger);

const dashboardsMax = 500;
const bodyBytesMax = 2 ** 20;
const perPage = 100;

/** Operations on dashboards. The platform stores dashboards for clients and does not render them. */
export function dashboardOperations(store: DashboardStore, clock: Clock) {
  return {
    PutDashboard: {
      async handle({ DashboardName: name, DashboardBody: body }) {
        checkDashboard(name, body);
        const all = await store.all();
        if (all.length >= dashboardsMax && !all.some((each) => each.name === name)) {
          throw new AwsError("LimitExceeded", `Dashboard limit (${dashboardsMax}) reached.`);
        }
        await store.put(name, { name, body, changedMs: clock.epochMs() });
        return { DashboardValidationMessages: [] };
      },
    },
    GetDashboard: {
      async handle({ DashboardName: name }, { accountId }) {
        const { body } = await known(store, name);
        return { DashboardArn: dashboardArn(name, accountId), DashboardBody: body, DashboardName: name };
      },
    },
    ListDashboards: {
      async handle(input, { accountId }) {
        const { DashboardNamePrefix: prefix = "", NextToken: token } = input;
        const all = (await store.all())
          .filter(({ name }) => name.startsWith(prefix))
          .toSorted((a, b) => (a.name < b.name ? -1 : 1));
        const listing = { operation: "ListDashboards", input };
        const query = { countMax: undefined, pageMax: perPage, token, listing, refusal: invalidNextTokenValue };
        const { page, next } = pageAfter(all, ({ name }) => name, query);
        return {
          DashboardEntries: page.map(({ name, body, changedMs }) => ({
            DashboardName: name,
            DashboardArn: dashboardArn(name, accountId),
            LastModified: new Date(changedMs),
            Size: Buffer.byteLength(body),
          })),
          NextToken: next,
        };
      },
    },
    DeleteDashboards: {
      async handle({ DashboardNames: names }) {
        for (const name of names) await known(store, name);
        for (const name of names) await store.delete(name);
        return {};
      },
    },
  } satisfies Partial<OperationRows<CloudwatchOperations>>;
}

async function known(store: DashboardStore, name: string): Promise<DashboardRecord> {
  const found = await store.get(name);
  if (found === null) throw new AwsError("DashboardNotFoundError", `Dashboard ${name} does not exist`);
  return found;
}

function checkDashboard(name: string, body: string): void {
  if (!/^[\w-]{1,255}$/.test(name)) throw invalidDashboard(`The value ${name} for field DashboardName is invalid.`);
  if (Buffer.byteLength(body) > bodyBytesMax)
    throw invalidDashboard(`DashboardBody is longer than ${bodyBytesMax} bytes.`);
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw invalidDashboard("The field DashboardBody must be a valid JSON object.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidDashboard("The field DashboardBody must be a valid JSON object.");
  }
}

function invalidDashboard(text: string): AwsError {
  return new AwsError("InvalidParameterInput", text, { members: { dashboardValidationMessages: [] } });
}

function dashboardArn(name: string, accountId: string): string {
  return `arn:aws:cloudwatch::${accountId}:dashboard/${name}`;
}
