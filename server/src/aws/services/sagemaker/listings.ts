import { invalid, type Hosting } from "../../../hosting/index.ts";
import { anyResource } from "../../wire/index.ts";
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
  readonly NameContains?: string | undefined;
  readonly CreationTimeAfter?: Date | undefined;
  readonly CreationTimeBefore?: Date | undefined;
  readonly LastModifiedTimeAfter?: Date | undefined;
  readonly LastModifiedTimeBefore?: Date | undefined;
  readonly StatusEquals?: string | undefined;
  readonly SortBy?: string | undefined;
  readonly SortOrder?: string | undefined;
  readonly MaxResults?: number | undefined;
  readonly NextToken?: string | undefined;
}

const pageLengthDefault = 10;

export function listOperations(
  hosting: Hosting,
): Pick<SageMakerRows, "ListModels" | "ListEndpointConfigs" | "ListEndpoints"> {
  return {
    ListModels: {
      action: "sagemaker:ListModels",
      resource: anyResource,
      async handle(input) {
        const { page, token } = pageOf([...hosting.models.values()], input);
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
      async handle(input) {
        const { page, token } = pageOf([...hosting.configs.values()], input);
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
      async handle(input) {
        const listed = [...hosting.endpoints.values()].map((each) => ({ ...each, status: each.state.at }));
        const { page, token } = pageOf(listed, input);
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
function pageOf<Row extends Listed>(
  rows: readonly Row[],
  question: Question,
): { page: Row[]; token: { NextToken?: string } } {
  const direction = (question.SortOrder ?? "Descending").startsWith("Desc") ? -1 : 1;
  const order = (a: Place, b: Place) => direction * compare(a, b, question.SortBy);
  const after = question.NextToken === undefined ? null : placeOf(question.NextToken);
  const left = rows
    .filter((row) => matches(row, question) && (after === null || order(row, after) > 0))
    .toSorted(order);
  const page = left.slice(0, question.MaxResults ?? pageLengthDefault);
  const last = page.at(-1);
  return { page, token: last === undefined || page.length === left.length ? {} : { NextToken: tokenOf(last) } };
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

function compare(a: Place, b: Place, sortBy: string | undefined): number {
  const byName = a.name < b.name ? -1 : Number(a.name > b.name);
  if (sortBy === "Name") return byName;
  if (sortBy === "Status") return (a.status ?? "").localeCompare(b.status ?? "") || byName;
  return a.createdMs - b.createdMs || byName;
}
