import type { Clock } from "@galatea/base";
import {
  invalidParameter,
  parseDeliveryPolicy,
  topicArn,
  type DeliveryFeedback,
  type Topic,
  type Topics,
} from "../../topics/index.ts";
import { pageAfter } from "../../wire/index.ts";
import { topicPageQuery } from "./topic-listing.ts";
import type { SnsRows } from "./rows.ts";

const fifoText = "FIFO topics are not supported by this platform yet: their messages go to Amazon SQS alone";

type Changes = Partial<Pick<Topic, "displayName" | "signatureVersion" | "deliveryPolicy" | "feedback">>;

export function topicOperations(topics: Topics, clock: Clock) {
  const resource = ({ TopicArn: arn }: { readonly TopicArn: string }) => arn;
  return {
    CreateTopic: {
      resource: ({ Name: name }, context) => topicArn(name, context),
      unsupportedMembers: [{ path: "DataProtectionPolicy" }],
      async handle({ Name: name, Attributes: attributes = {} }, context) {
        if (name.endsWith(".fifo")) throw invalidParameter(`Topic Name Reason: ${fifoText}`);
        if (!/^[A-Za-z0-9_-]{1,256}$/.test(name)) throw invalidParameter("Topic Name");
        const { accountId } = context;
        const arn = topicArn(name, context);
        let feedback: DeliveryFeedback | null = null;
        let changes: Changes = {};
        for (const [attribute, value] of Object.entries(attributes)) {
          changes = { ...changes, ...changesOf(attribute, value, feedback) };
          feedback = changes.feedback ?? feedback;
        }
        const fresh = {
          arn,
          name,
          accountId,
          createdMs: clock.epochMs(),
          displayName: "",
          signatureVersion: "1",
          deliveryPolicy: null,
          feedback: null,
        } as const;
        await topics.create({ ...fresh, ...changes });
        return { TopicArn: arn };
      },
    },
    DeleteTopic: {
      resource,
      async handle({ TopicArn: arn }) {
        await topics.delete(arn);
        return {};
      },
    },
    GetTopicAttributes: {
      resource,
      async handle({ TopicArn: arn }) {
        return { Attributes: attributesOf(topics, topics.topic(arn)) };
      },
    },
    SetTopicAttributes: {
      resource,
      async handle({ TopicArn: arn, AttributeName: attribute, AttributeValue: value = "" }) {
        topics.topic(arn);
        await topics.change(arn, (topic) => ({ ...topic, ...changesOf(attribute, value, topic.feedback) }));
        return {};
      },
    },
    ListTopics: {
      async handle(input) {
        const { page, next } = pageAfter(topics.list(), ({ arn }) => arn, topicPageQuery("ListTopics", input));
        return { Topics: page.map(({ arn }) => ({ TopicArn: arn })), NextToken: next };
      },
    },
  } satisfies Partial<SnsRows>;
}

function attributesOf(topics: Topics, topic: Topic): Readonly<Record<string, string>> {
  const states = topics.subscriptions(topic.arn).map(({ state }) => state.at);
  const count = (at: "pending" | "confirmed") => String(states.filter((state) => state === at).length);
  return {
    TopicArn: topic.arn,
    Owner: topic.accountId,
    Policy: policyOf(topic),
    DisplayName: topic.displayName,
    SubscriptionsPending: count("pending"),
    SubscriptionsConfirmed: count("confirmed"),
    SubscriptionsDeleted: "0",
    ...(topic.deliveryPolicy === null ? {} : { DeliveryPolicy: topic.deliveryPolicy }),
    EffectiveDeliveryPolicy: topics.effectivePolicy(topic),
    ...feedbackAttributes(topic),
    ...(topic.signatureVersion === "1" ? {} : { SignatureVersion: topic.signatureVersion }),
  };
}

/**
 * Returns the changes that an attribute makes to a topic. Throws AwsError for an unimplemented attribute that affects
 * the content or the recipients of messages.
 */
function changesOf(attribute: string, value: string, feedback: DeliveryFeedback | null): Changes {
  switch (attribute) {
    case "DisplayName":
      if (value.length > 100) throw invalidParameter("DisplayName Reason: it is longer than 100 characters");
      return { displayName: value };
    case "SignatureVersion":
      if (value !== "1" && value !== "2") throw invalidParameter("SignatureVersion");
      return { signatureVersion: value };
    case "DeliveryPolicy":
      if (value === "") return { deliveryPolicy: null };
      parseDeliveryPolicy(value, "topic");
      return { deliveryPolicy: value };
    case "HTTPSuccessFeedbackRoleArn":
      return { feedback: { ...noFeedback, ...feedback, successRole: roleOf(attribute, value) } };
    case "HTTPFailureFeedbackRoleArn":
      return { feedback: { ...noFeedback, ...feedback, failureRole: roleOf(attribute, value) } };
    case "HTTPSuccessFeedbackSampleRate":
      if (!/^(100|\d{1,2})$/.test(value)) {
        throw invalidParameter(`${attribute} Reason: it must be a whole number from 0 to 100`);
      }
      return { feedback: { ...noFeedback, ...feedback, successSampleRate: Number(value) } };
    case "FifoTopic":
      if (value === "false") return {};
      throw invalidParameter(`Attributes Reason: ${fifoText}`);
    default:
      throw invalidParameter(`AttributeName Reason: ${attribute.slice(0, 64)} is not supported by this platform yet`);
  }
}

const noFeedback: DeliveryFeedback = { successRole: null, successSampleRate: 0, failureRole: null };

/** Returns the role of an attribute; null for an empty value, which removes the role. */
function roleOf(attribute: string, value: string): string | null {
  if (value === "") return null;
  if (value.length <= 2048 && /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]+$/.test(value)) return value;
  throw invalidParameter(`${attribute} Reason: it must be the ARN of a role`);
}

function feedbackAttributes({ feedback }: Topic): Readonly<Record<string, string>> {
  if (feedback === null) return {};
  const { successRole, successSampleRate, failureRole } = feedback;
  return {
    ...(successRole === null ? {} : { HTTPSuccessFeedbackRoleArn: successRole }),
    ...(successSampleRate === 0 ? {} : { HTTPSuccessFeedbackSampleRate: String(successSampleRate) }),
    ...(failureRole === null ? {} : { HTTPFailureFeedbackRoleArn: failureRole }),
  };
}

/** Returns a policy with the platform's real permissions: the owner's keys may do everything, other callers nothing. */
function policyOf({ arn, accountId }: Topic): string {
  const action = ["Publish", "Subscribe", "GetTopicAttributes", "SetTopicAttributes", "DeleteTopic"];
  return JSON.stringify({
    Version: "2008-10-17",
    Id: "__default_policy_ID",
    Statement: [
      {
        Sid: "__default_statement_ID",
        Effect: "Allow",
        Principal: { AWS: "*" },
        Action: action.map((name) => `SNS:${name}`),
        Resource: arn,
        Condition: { StringEquals: { "AWS:SourceOwner": accountId } },
      },
    ],
  });
}
