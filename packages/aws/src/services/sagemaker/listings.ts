import {
  validationError,
  type Hosting,
  type ListingPage,
  type ListingPosition,
  type ListQuery,
} from "@galatea/hosting";
import { pageToken, positionOfToken, type Listing } from "../../wire/index.ts";
import type { SageMakerRows } from "./rows.ts";

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

export function listOperations(hosting: Hosting) {
  return {
    ListModels: {
      async handle(input, context) {
        const { page, hasMore } = await hosting.catalog.listModels(listQueryOf("ListModels", input), context.nextTick);
        const rows = page.map((each) => ({
          ModelName: each.name,
          ModelArn: each.arn,
          CreationTime: new Date(each.createdMs),
        }));
        return { Models: rows, ...listingToken("ListModels", input, { page, hasMore }) };
      },
    },
    ListEndpointConfigs: {
      async handle(input, context) {
        const { page, hasMore } = await hosting.catalog.listConfigs(
          listQueryOf("ListEndpointConfigs", input),
          context.nextTick,
        );
        const rows = page.map((each) => ({
          EndpointConfigName: each.name,
          EndpointConfigArn: each.arn,
          CreationTime: new Date(each.createdMs),
        }));
        return { EndpointConfigs: rows, ...listingToken("ListEndpointConfigs", input, { page, hasMore }) };
      },
    },
    ListEndpoints: {
      async handle(input, context) {
        const { page, hasMore } = await hosting.endpoints.list(listQueryOf("ListEndpoints", input), context.nextTick);
        const rows = page.map((each) => ({
          EndpointName: each.name,
          EndpointArn: each.arn,
          CreationTime: new Date(each.createdMs),
          LastModifiedTime: new Date(each.modifiedMs),
          EndpointStatus: each.state.at,
        }));
        return { Endpoints: rows, ...listingToken("ListEndpoints", input, { page, hasMore }) };
      },
    },
    ListTransformJobs: {
      async handle(input, context) {
        const { page, hasMore } = await hosting.transforms.list(
          listQueryOf("ListTransformJobs", input),
          context.nextTick,
        );
        const rows = page.map(({ state, ...each }) => ({
          TransformJobName: each.name,
          TransformJobArn: each.arn,
          CreationTime: new Date(each.createdMs),
          LastModifiedTime: new Date(each.modifiedMs),
          TransformJobStatus: state.at,
          ...("endedMs" in state ? { TransformEndTime: new Date(state.endedMs) } : {}),
          ...(state.at === "Failed" ? { FailureReason: state.reason } : {}),
        }));
        return { TransformJobSummaries: rows, ...listingToken("ListTransformJobs", input, { page, hasMore }) };
      },
    },
  } satisfies Partial<SageMakerRows>;
}

const sortedBy = { Name: "name", CreationTime: "created", Status: "status" } as const;

/**
 * Returns the query of a listing, newest first by default. The token is the position after the previous page. Records
 * that were added or deleted since then do not shift the pages.
 */
export function listQueryOf(operation: string, question: Question): ListQuery {
  const ms = (time: Date | undefined) => time?.getTime() ?? null;
  return {
    sortBy: sortedBy[question.SortBy ?? "CreationTime"],
    isDescending: question.SortOrder !== "Ascending",
    nameContains: question.NameContains ?? "",
    created: { fromMs: ms(question.CreationTimeAfter), untilMs: ms(question.CreationTimeBefore) },
    modified: { fromMs: ms(question.LastModifiedTimeAfter), untilMs: ms(question.LastModifiedTimeBefore) },
    status: question.StatusEquals ?? null,
    after: question.NextToken === undefined ? null : placeOf({ operation, input: question }, question.NextToken),
    limit: question.MaxResults ?? pageLengthDefault,
  };
}

interface ListedRow {
  readonly name: string;
  readonly createdMs: number;
  readonly state?: { readonly at: string };
}

export function listingToken(
  operation: string,
  input: Question,
  { page, hasMore }: Pick<ListingPage<ListedRow>, "page" | "hasMore">,
): { NextToken?: string } {
  const last = page.at(-1);
  if (last === undefined || !hasMore) return {};
  const location: ListingPosition = { name: last.name, createdMs: last.createdMs, status: last.state?.at ?? "" };
  return { NextToken: pageToken({ operation, input }, JSON.stringify(location)) };
}

function placeOf(listing: Listing, token: string): ListingPosition {
  return JSON.parse(positionOfToken(listing, token, () => validationError("Invalid NextToken."))) as ListingPosition;
}
