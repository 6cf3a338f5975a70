import type { Clock } from "@galatea/base";
import type { Topics } from "../../topics/index.ts";
import { publishOperation } from "./publish.ts";
import { subscriptionDescriptions, subscriptionOperations } from "./subscriptions.ts";
import { topicOperations } from "./topic-operations.ts";
import type { SnsRows } from "./rows.ts";

export const snsOperations = (topics: Topics, clock: Clock): SnsRows => ({
  ...topicOperations(topics, clock),
  ...subscriptionOperations(topics),
  ...subscriptionDescriptions(topics),
  ...publishOperation(topics),
});
