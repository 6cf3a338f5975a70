import { randomBytes, randomUUID } from "node:crypto";
import type { Clock, Logger } from "@galatea/base";
import type { LogStreams } from "@galatea/hosting";
import type { MetricStore } from "@galatea/base/metrics";
import type { Documents } from "@galatea/hosting/records";
import { deliveryLimits, topicLimits, topicMetricUnits, Topics } from "@galatea/aws/topics";
import { createMessageSender, openMessageSigner, topicPages, type TopicPages } from "@galatea/aws/topic-delivery";

export interface TopicsOpening {
  readonly documents: Documents;
  readonly series: MetricStore;
  /** Directory of the key that signs messages. */
  readonly directory: string;
  /** The platform's URL in messages, which receivers must be able to reach. */
  readonly url: string;
  readonly toThisMachine: boolean;
  readonly toPrivateNetworks: boolean;
  readonly openLog: LogStreams["writer"];
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface LoadedTopics extends AsyncDisposable {
  readonly topics: Topics;
  readonly pages: TopicPages;
}

/** Opens topics. Their messages are sent over HTTP and signed with a key of the platform. */
export async function loadedTopics(opening: TopicsOpening): Promise<LoadedTopics> {
  const { documents, series, directory, url, toThisMachine, toPrivateNetworks, openLog, clock, logger } = opening;
  const signer = await openMessageSigner(directory, { clock, logger });
  const query = (members: Readonly<Record<string, string>>) => `${url}/?${new URLSearchParams(members).toString()}`;
  const topics = await Topics.open({
    documents,
    limits: { ...topicLimits, ...deliveryLimits },
    send: createMessageSender({ toThisMachine, toPrivateNetworks }),
    links: {
      certificateUrl: `${url}${signer.certificatePath}`,
      subscribeUrl: (TopicArn, Token) => query({ Action: "ConfirmSubscription", TopicArn, Token }),
      unsubscribeUrl: (SubscriptionArn) => query({ Action: "Unsubscribe", SubscriptionArn }),
    },
    sign: signer.sign,
    record: (arn, metricName, value) => {
      const dimensions = [{ name: "TopicName", value: arn.slice(arn.lastIndexOf(":") + 1) }];
      series
        .recorder({ namespace: "AWS/SNS", metricName, dimensions, unit: topicMetricUnits[metricName] })
        .record(value);
    },
    // One log stream is used per day.
    log: ({ group, text }) => {
      const stream = new Date(clock.epochMs()).toISOString().slice(0, 10);
      openLog(group, stream)(Buffer.from(`${text}\n`));
    },
    random: Math.random,
    newId: randomUUID,
    newToken: () => randomBytes(96).toString("hex"),
    clock,
    logger,
  });
  return { topics, pages: topicPages(topics, signer), [Symbol.asyncDispose]: () => topics[Symbol.asyncDispose]() };
}
