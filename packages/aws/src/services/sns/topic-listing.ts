import { invalidParameter } from "../../topics/index.ts";
import type { PageQuery } from "../../wire/index.ts";

const pageMax = 100;

export function topicPageQuery(operation: string, input: { readonly NextToken?: string }): PageQuery {
  const refusal = () => invalidParameter("NextToken");
  return { countMax: undefined, pageMax, token: input.NextToken, listing: { operation, input }, refusal };
}
