import sns from "../../spec/gen/sns.json" with { type: "json" };
import type { Clock } from "@galatea/base";
import { asServiceModel } from "../../spec/index.ts";
import type { ModelledService } from "../../wire/index.ts";
import type { Topics } from "../../topics/index.ts";
import { publishOperation } from "./publish.ts";
import { subscriptionDescriptions, subscriptionOperations } from "./subscriptions.ts";
import { topicOperations } from "./topic-operations.ts";
import type { SnsRows } from "./rows.ts";

export interface SnsParts {
  readonly topics: Topics;
  readonly clock: Clock;
}

/** SNS as far as topics with HTTP subscriptions go. */
export function snsService({ topics, clock }: SnsParts) {
  const operations: SnsRows = {
    ...topicOperations(topics, clock),
    ...subscriptionOperations(topics),
    ...subscriptionDescriptions(topics),
    ...publishOperation(topics),
  };
  return {
    kind: "modelled",
    model: asServiceModel(sns),
    scope: "sns",
    validationCodes: { json: "InvalidParameter", query: "InvalidParameter" },
    operations,
  } as const satisfies ModelledService;
}
