import sns from "../../spec/gen/sns.json" with { type: "json" };
import type { Clock } from "@galatea/base";
import { asServiceModel } from "../../spec/index.ts";
import { lazyRows, type LazyOperationRows, type ModelledService } from "../../wire/index.ts";
import type { SnsOperations } from "../../spec/gen/sns.ts";
import type { Topics } from "../../topics/index.ts";

export interface SnsDependencies {
  /** Returns the topics, which the first call opens. */
  readonly topics: () => Promise<Topics>;
  readonly clock: Clock;
}

const operationNames = [
  "ConfirmSubscription",
  "CreateTopic",
  "DeleteTopic",
  "GetSubscriptionAttributes",
  "GetTopicAttributes",
  "ListSubscriptions",
  "ListSubscriptionsByTopic",
  "ListTopics",
  "Publish",
  "SetSubscriptionAttributes",
  "SetTopicAttributes",
  "Subscribe",
  "Unsubscribe",
] as const;

/** SNS for topics with HTTP subscriptions. The first operation loads the code of all operations. */
export function snsService({ topics, clock }: SnsDependencies) {
  const operations: LazyOperationRows<SnsOperations> = lazyRows(operationNames, async () => {
    const { snsOperations } = await import("./sns-operations.ts");
    return snsOperations(await topics(), clock);
  });
  return {
    kind: "modelled",
    model: asServiceModel(sns),
    scope: "sns",
    iamPrefix: "sns",
    validationCodes: { json: "InvalidParameter", query: "InvalidParameter" },
    operations,
  } as const satisfies ModelledService;
}
