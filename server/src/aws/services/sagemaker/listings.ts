import { invalid, type EndpointRecord, type Hosting } from "../../../hosting/index.ts";
import { anyResource, firstInOrder, type CallContext } from "../../wire/index.ts";
import type { SageMakerRows } from "./rows.ts";

/** Where a row stands in its listing. */
interface Place {
  readonly name: string;
  readonly createdMs: number;
  readonly status?: string;
}

interface Listed extends Place {
  readonly arn: string;
  readonly modifiedMs?: number;
}

interface Question {
  readonly NameContains?: string;
  readonly CreationTimeAfter?: Date;
  readonly CreationTimeBefore?: Date;
  readonly LastModifiedTimeAfter?: Date;
  readonly LastModifiedTimeBefore?: Date;
  readonly StatusEquals?: string;
  readonly SortBy?: "Name" | "CreationTime" | "Status";
  readonly SortOrder?: "Ascending" | "Descending";
  readonly MaxResults?: number;
  readonly NextToken?: string;
}

const pageLengthDefault = 10;

const itself = <Row>(row: Row): Row => row;
const withStatus = (record: EndpointRecord) => ({ ...record, status: record.state.at });

export function listOperations(
  hosting: Hosting,
): Pick<SageMakerRows, "ListModels" | "ListEndpointConfigs" | "ListEndpoints"> {
  return {
    ListModels: {
      action: "sagemaker:ListModels",
      resource: anyResource,
      async handle(input, context) {
        const { page, token } = await pageOf({ rows: hosting.models.values(), entryOf: itself }, input, context);
        const rows = page.map((each) => ({
          ModelName: each.name,
          ModelArn: each.arn,
          CreationTime: new Date(each.createdMs),
        }));
        return { Models: rows, ...token };
      },
    },
    ListEndpointConfigs: {
      action: "sagemaker:ListEndpointConfigs",
      resource: anyResource,
      async handle(input, context) {
        const { page, token } = await pageOf({ rows: hosting.configs.values(), entryOf: itself }, input, context);
        const rows = page.map((each) => ({
          EndpointConfigName: each.name,
          EndpointConfigArn: each.arn,
          CreationTime: new Date(each.createdMs),
        }));
        return { EndpointConfigs: rows, ...token };
      },
    },
    ListEndpoints: {
      action: "sagemaker:ListEndpoints",
      resource: anyResource,
      async handle(input, context) {
        const { page, token } = await pageOf({ rows: hosting.endpoints.values(), entryOf: withStatus }, input, context);
        const rows = page.map((each) => ({
          EndpointName: each.name,
          EndpointArn: each.arn,
          CreationTime: new Date(each.createdMs),
          LastModifiedTime: new Date(each.modifiedMs),
          EndpointStatus: each.status,
        }));
        return { Endpoints: rows, ...token };
      },
    },
  };
}

/** Newest first unless asked otherwise; a token is where the page before ended, whatever has come or gone since. */
async function pageOf<Row, Entry extends Listed>(
  { rows, entryOf }: { readonly rows: Iterable<Row>; readonly entryOf: (row: Row) => Entry },
  question: Question,
  { turn }: CallContext,
): Promise<{ readonly page: readonly Entry[]; readonly token: { readonly NextToken?: string } }> {
  const direction = question.SortOrder === "Ascending" ? 1 : -1;
  const order = (a: Place, b: Place) => direction * compare(a, b, question.SortBy);
  const after = question.NextToken === undefined ? null : placeOf(question.NextToken);
  const wanted = (row: Row) => {
    const entry = entryOf(row);
    return matches(entry, question) && (after === null || order(entry, after) > 0) ? entry : null;
  };
  const pageLength = question.MaxResults ?? pageLengthDefault;
  // One more tells whether there is another page.
  const first = await firstInOrder(rows, { entryOf: wanted, order, countMax: pageLength + 1 }, turn);
  const page = first.slice(0, pageLength);
  const last = page.at(-1);
  return { page, token: last === undefined || first.length === page.length ? {} : { NextToken: tokenOf(last) } };
}

function tokenOf({ name, createdMs, status = "" }: Place): string {
  return Buffer.from(`${createdMs} ${status} ${name}`).toString("base64url");
}

function placeOf(token: string): Place {
  const match = /^(\d{1,15}) (\w*) ([\w-]+)$/.exec(Buffer.from(token, "base64url").toString("utf8"));
  const [, createdMs, status, name] = match ?? [];
  if (name === undefined) throw invalid("Invalid NextToken.");
  return { name, createdMs: Number(createdMs), ...(status === "" || status === undefined ? {} : { status }) };
}

function matches(row: Listed, question: Question): boolean {
  const modifiedMs = row.modifiedMs ?? row.createdMs;
  const within = (ms: number, after: Date | undefined, before: Date | undefined) =>
    (after === undefined || ms >= after.getTime()) && (before === undefined || ms < before.getTime());
  return (
    row.name.toLowerCase().includes((question.NameContains ?? "").toLowerCase()) &&
    within(row.createdMs, question.CreationTimeAfter, question.CreationTimeBefore) &&
    within(modifiedMs, question.LastModifiedTimeAfter, question.LastModifiedTimeBefore) &&
    (question.StatusEquals === undefined || question.StatusEquals === row.status)
  );
}

function compare(a: Place, b: Place, sortBy: Question["SortBy"]): number {
  const byName = a.name < b.name ? -1 : Number(a.name > b.name);
  if (sortBy === "Name") return byName;
  if (sortBy === "Status") return (a.status ?? "").localeCompare(b.status ?? "") || byName;
  return a.createdMs - b.createdMs || byName;
}
