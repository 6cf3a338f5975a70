import type {
  ListEndpointConfigsCommandInput,
  ListEndpointsCommandInput,
  ListModelsCommandInput,
} from "@aws-sdk/client-sagemaker";
import { invalid, type Hosting } from "../../../hosting/index.ts";
import type { OperationHandlers } from "../../wire/index.ts";

interface Listed {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly modifiedMs?: number;
  readonly status?: string;
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

export function listOperations(hosting: Hosting): OperationHandlers {
  return {
    async ListModels(input: ListModelsCommandInput) {
      const { page, token } = pageOf([...hosting.models.values()], input);
      const rows = page.map((each) => ({
        ModelName: each.name,
        ModelArn: each.arn,
        CreationTime: new Date(each.createdMs),
      }));
      return { Models: rows, ...token };
    },

    async ListEndpointConfigs(input: ListEndpointConfigsCommandInput) {
      const { page, token } = pageOf([...hosting.configs.values()], input);
      const rows = page.map((each) => ({
        EndpointConfigName: each.name,
        EndpointConfigArn: each.arn,
        CreationTime: new Date(each.createdMs),
      }));
      return { EndpointConfigs: rows, ...token };
    },

    async ListEndpoints(input: ListEndpointsCommandInput) {
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
  };
}

/** Newest first unless asked otherwise; a token is the name after which the next page begins, in the same order. */
function pageOf<Row extends Listed>(
  rows: readonly Row[],
  question: Question,
): { page: Row[]; token: { NextToken?: string } } {
  const matching = rows.filter((row) => matches(row, question)).sort((a, b) => compare(a, b, question.SortBy));
  if ((question.SortOrder ?? "Descending").startsWith("Desc")) matching.reverse();
  let start = 0;
  if (question.NextToken !== undefined) {
    const after = Buffer.from(question.NextToken, "base64url").toString("utf8");
    start = matching.findIndex(({ name }) => name === after) + 1;
    if (start === 0) throw invalid("Invalid NextToken: the listing it belongs to has changed.");
  }
  const page = matching.slice(start, start + (question.MaxResults ?? pageLengthDefault));
  const last = page.at(-1);
  const hasMore = last !== undefined && start + page.length < matching.length;
  return { page, token: hasMore ? { NextToken: Buffer.from(last.name).toString("base64url") } : {} };
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

function compare(a: Listed, b: Listed, sortBy: string | undefined): number {
  const byName = a.name < b.name ? -1 : Number(a.name > b.name);
  if (sortBy === "Name") return byName;
  if (sortBy === "Status") return (a.status ?? "").localeCompare(b.status ?? "") || byName;
  return a.createdMs - b.createdMs || byName;
}
