import { invalidParameter, topicArnOf, type Subscription, type Topics } from "../../topics/index.ts";
import { applySubscriptionAttributes, defaultSubscriptionSettings } from "./subscription-settings.ts";
import { pageAfter, type PageQuery } from "../../wire/index.ts";
import { topicPageQuery } from "./topic-listing.ts";
import type { SnsRows } from "./rows.ts";

const endpointCharsMax = 2048;
const pendingArn = "pending confirmation";

const ofTopic = ({ TopicArn: arn }: { readonly TopicArn: string }) => arn;
const own = ({ SubscriptionArn: arn }: { readonly SubscriptionArn: string }) => topicArnOf(arn) ?? arn;

/** Operations that create, confirm and delete subscriptions. */
export function subscriptionOperations(topics: Topics) {
  return {
    Subscribe: {
      resource: ofTopic,
      async handle(input, { accountId }) {
        const { TopicArn: topicArn, Endpoint: endpoint = "", Attributes: attributes = {} } = input;
        topics.topic(topicArn);
        const protocol = protocolOf(input.Protocol, endpoint);
        const terms = applySubscriptionAttributes(defaultSubscriptionSettings, attributes, "Attributes Reason: ");
        const created = await topics.subscribe({ topicArn, protocol, endpoint, ...terms, accountId });
        const isReported = created.state.at === "confirmed" || input.ReturnSubscriptionArn === true;
        return { SubscriptionArn: isReported ? created.arn : pendingArn };
      },
    },
    ConfirmSubscription: {
      resource: ofTopic,
      async handle({ TopicArn: topicArn, Token: token, AuthenticateOnUnsubscribe: authenticates }) {
        const { arn } = await topics.confirm(topicArn, token, authenticates !== "true");
        return { SubscriptionArn: arn };
      },
    },
    Unsubscribe: {
      resource: own,
      async handle({ SubscriptionArn: arn }) {
        if (topicArnOf(arn) === null) throw invalidParameter("SubscriptionArn");
        await topics.unsubscribe(arn);
        return {};
      },
    },
  } satisfies Partial<SnsRows>;
}

/** Operations that list and configure subscriptions. */
export function subscriptionDescriptions(topics: Topics) {
  return {
    ListSubscriptions: {
      async handle(input) {
        return listed(topics.subscriptions(null), topicPageQuery("ListSubscriptions", input));
      },
    },
    ListSubscriptionsByTopic: {
      resource: ofTopic,
      async handle(input) {
        topics.topic(input.TopicArn);
        return listed(topics.subscriptions(input.TopicArn), topicPageQuery("ListSubscriptionsByTopic", input));
      },
    },
    GetSubscriptionAttributes: {
      resource: own,
      async handle({ SubscriptionArn: arn }) {
        const subscription = topics.subscription(arn);
        const { topicArn, accountId, protocol, endpoint, isRaw, state, filter, deliveryPolicy } = subscription;
        return {
          Attributes: {
            SubscriptionArn: arn,
            TopicArn: topicArn,
            Owner: accountId,
            Protocol: protocol,
            Endpoint: endpoint,
            RawMessageDelivery: String(isRaw),
            PendingConfirmation: String(state.at === "pending"),
            ConfirmationWasAuthenticated: String(state.at === "confirmed" && !state.mayLeaveByLink),
            SubscriptionPrincipal: `arn:aws:iam::${accountId}:root`,
            ...(filter === null || filter.policy === ""
              ? {}
              : { FilterPolicy: filter.policy, FilterPolicyScope: filter.scope }),
            ...(deliveryPolicy === null ? {} : { DeliveryPolicy: deliveryPolicy }),
            EffectiveDeliveryPolicy: topics.effectivePolicy(subscription),
          },
        };
      },
    },
    SetSubscriptionAttributes: {
      resource: own,
      async handle({ SubscriptionArn: arn, AttributeName: name, AttributeValue: value = "" }) {
        topics.subscription(arn);
        await topics.changeSubscription(arn, (subscription) => ({
          ...subscription,
          ...applySubscriptionAttributes(subscription, { [name]: value }, ""),
        }));
        return {};
      },
    },
  } satisfies Partial<SnsRows>;
}

function listed(all: readonly Subscription[], query: PageQuery) {
  const { page, next } = pageAfter(all, ({ arn }) => arn, query);
  const Subscriptions = page.map(({ arn, accountId, protocol, endpoint, topicArn, state }) => ({
    SubscriptionArn: state.at === "pending" ? "PendingConfirmation" : arn,
    Owner: accountId,
    Protocol: protocol,
    Endpoint: endpoint,
    TopicArn: topicArn,
  }));
  return { Subscriptions, NextToken: next };
}

function protocolOf(protocol: string, endpoint: string): "http" | "https" {
  if (protocol !== "http" && protocol !== "https") {
    const text = `Protocol Reason: ${protocol.slice(0, 64)} is not supported by this platform yet; http and https are supported`;
    throw invalidParameter(text);
  }
  const isUrl = endpoint.length <= endpointCharsMax && URL.canParse(endpoint);
  const url = isUrl ? new URL(endpoint) : null;
  if (url === null || url.protocol !== `${protocol}:` || url.hostname === "") {
    throw invalidParameter("Endpoint must match the specified protocol");
  }
  // Rejected because lists and logs would show the password.
  if (url.username !== "" || url.password !== "") {
    throw invalidParameter("Endpoint Reason: user names and passwords in it are not supported by this platform yet");
  }
  return protocol;
}
