import { didYouMean } from "../../options/index.ts";
import { PlatformRequestError, type PlatformClient } from "../platform-client.ts";

/** A kind of records, with the names that SageMaker's API uses for it. */
export interface Kind {
  /** The word for one record of this kind. */
  readonly word: string;
  /** The prefix of the record's members and the suffix of its operations. */
  readonly noun: string;
  /** The member of the listing's output that contains the records. */
  readonly records: string;
}

export const recordKinds = {
  endpoints: { word: "endpoint", noun: "Endpoint", records: "Endpoints" },
  components: { word: "inference component", noun: "InferenceComponent", records: "InferenceComponents" },
  jobs: { word: "transform job", noun: "TransformJob", records: "TransformJobSummaries" },
  models: { word: "model", noun: "Model", records: "Models" },
} as const satisfies Record<string, Kind>;

/** A record in a listing. */
export interface ListedRecord {
  readonly name: string;
  /** The status; absent for a model. */
  readonly status?: string;
  readonly created: string;
  /** The FailureReason of a failed record. */
  readonly reason?: string;
}

type Members = Readonly<Record<string, string | number | undefined>>;

const pageLength = 100;
/**
 * Maximum number of failures whose reasons are queried, with one call for each. Further failures are listed without a
 * reason.
 */
const describedMax = 100;

/** Returns every record of a kind, sorted by name, with the reasons of failures. */
export async function listed(client: PlatformClient, { noun, records }: Kind): Promise<readonly ListedRecord[]> {
  const found: ListedRecord[] = [];
  const order = { SortBy: "Name", SortOrder: "Ascending", MaxResults: pageLength };
  for (let token: string | undefined; ;) {
    const page: Members & Record<string, readonly Members[]> = await client.call("sagemaker", `List${noun}s`, {
      ...order,
      ...(token === undefined ? {} : { NextToken: token }),
    });
    for (const record of page[records] ?? []) found.push(listedOf(record, noun));
    token = page["NextToken"] as string | undefined;
    if (token === undefined) break;
  }
  const failed = found.filter(({ status, reason }) => status?.endsWith("Failed") === true && reason === undefined);
  const reasons = new Map<string, string>();
  for (const { name } of failed.slice(0, describedMax)) {
    const { FailureReason: reason } = await client.call<Members>("sagemaker", `Describe${noun}`, {
      [`${noun}Name`]: name,
    });
    if (reason !== undefined) reasons.set(name, String(reason));
  }
  return found.map((each) => {
    const reason = reasons.get(each.name);
    return reason === undefined ? each : { ...each, reason };
  });
}

function listedOf(record: Members, noun: string): ListedRecord {
  const status = record[`${noun}Status`];
  const reason = record["FailureReason"];
  return {
    name: String(record[`${noun}Name`]),
    ...(status === undefined ? {} : { status: String(status) }),
    created: new Date(Number(record["CreationTime"]) * 1000).toISOString(),
    ...(reason === undefined ? {} : { reason: String(reason) }),
  };
}

/** Returns the kind of the record with this name. If there is none, throws an error with similar names. */
export async function kindOf(client: PlatformClient, name: string, among: readonly Kind[]): Promise<Kind> {
  const all = await Promise.all(among.map(async (kind) => ({ kind, records: await listed(client, kind) })));
  const isNamed = (record: ListedRecord) => record.name.toLowerCase() === name.toLowerCase();
  const found = all.find(({ records }) => records.some(isNamed));
  if (found !== undefined) return found.kind;
  const names = all.flatMap(({ records }) => records.map((each) => each.name));
  const words = new Intl.ListFormat("en", { type: "disjunction" }).format(among.map(({ word }) => word));
  throw new PlatformRequestError(`there is no ${words} '${name}'${didYouMean(name, names, "")}`);
}
