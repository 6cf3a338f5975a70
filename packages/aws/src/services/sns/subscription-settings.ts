import {
  invalidParameter,
  parseDeliveryPolicy,
  parseFilterPolicy,
  type FilterText,
  type Subscription,
} from "../../topics/index.ts";

/** A subscriber's settings for the content and delivery of its messages. */
type SubscriptionTerms = Pick<Subscription, "isRaw" | "filter" | "deliveryPolicy">;

export const defaultSubscriptionSettings: SubscriptionTerms = { isRaw: false, filter: null, deliveryPolicy: null };

/** SNS's dead-letter queues are Amazon SQS queues, which this platform does not have. */
const redriveText =
  "RedrivePolicy: Amazon SQS is not supported by this platform yet, and so there are no dead-letter queues. " +
  "The topic's HTTPFailureFeedbackRoleArn has failed deliveries logged";

/**
 * Returns the settings with these SNS attributes applied. Error texts begin with `where`. Throws AwsError for an
 * invalid attribute.
 */
export function applySubscriptionAttributes(
  terms: SubscriptionTerms,
  attributes: Readonly<Record<string, string>>,
  where: string,
): SubscriptionTerms {
  let { isRaw, deliveryPolicy } = terms;
  let policy = terms.filter?.policy ?? "";
  let scope: string = terms.filter?.scope ?? "MessageAttributes";
  for (const [name, value] of Object.entries(attributes)) {
    switch (name) {
      case "RawMessageDelivery":
        if (value !== "true" && value !== "false") {
          const text = `Invalid value [${value.slice(0, 64)}]. Must be true or false.`;
          throw invalidParameter(`Attributes Reason: RawMessageDelivery: ${text}`);
        }
        isRaw = value === "true";
        break;
      case "FilterPolicy":
        policy = value;
        break;
      case "FilterPolicyScope":
        scope = value;
        break;
      case "DeliveryPolicy":
        if (value !== "") parseDeliveryPolicy(value, "subscription", where);
        deliveryPolicy = value === "" ? null : value;
        break;
      case "RedrivePolicy":
        // An empty value removes the redrive policy. There never is one, so nothing needs to be removed.
        if (value !== "") throw invalidParameter(`${where}${redriveText}`);
        break;
      case "SubscriptionRoleArn":
      case "ReplayPolicy":
        throw invalidParameter(`AttributeName Reason: ${name} is not supported by this platform yet`);
      default:
        throw invalidParameter("AttributeName");
    }
  }
  if (scope !== "MessageAttributes" && scope !== "MessageBody") {
    const text = `Invalid value [${scope.slice(0, 64)}]. Please use either MessageBody or MessageAttributes`;
    throw invalidParameter(`${where}FilterPolicyScope: ${text}`);
  }
  // FilterPolicyScope may be set before FilterPolicy.
  const filter: FilterText | null = policy === "" && scope === "MessageAttributes" ? null : { policy, scope };
  if (filter !== null && policy !== "") parseFilterPolicy(filter, where);
  return { isRaw, deliveryPolicy, filter };
}
