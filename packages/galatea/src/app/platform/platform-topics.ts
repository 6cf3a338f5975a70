import { LazyResource } from "@galatea/base";
import type { TopicPages } from "@galatea/aws/topic-delivery";
import type { Topics } from "@galatea/aws/topics";
import type { ResultOutbox } from "@galatea/hosting";
import type { TopicsOpening } from "./loaded-topics.ts";

/** Kinds of documents of topics and of messages in delivery. */
const recordedKinds = ["sns-topic", "sns-delivery"];

/**
 * Opens the topics of the platform. Their code is loaded at the start if topics are stored, otherwise by the first
 * request that needs it.
 */
export async function openTopics(
  opening: AsyncDisposableStack,
  options: TopicsOpening,
): Promise<{ readonly topics: () => Promise<Topics>; readonly pages: TopicPages }> {
  const lazy = opening.use(new LazyResource(async () => (await import("./loaded-topics.ts")).loadedTopics(options)));
  const first = { order: null, isDescending: false, after: null, limit: 1 };
  for (const kind of recordedKinds) {
    const { documents } = await options.documents.list({ kind, ...first });
    if (documents.length > 0) await lazy.get();
  }
  return {
    topics: async () => (await lazy.get()).topics,
    pages: async (url) => (await lazy.get()).pages(url),
  };
}

/** Returns the outbox through which asynchronous inference publishes its results. */
export function resultOutbox(topics: () => Promise<Topics>): ResultOutbox {
  return {
    prepareMessage: async (topicArn, text) =>
      (await topics()).prepare({ topicArn, subject: null, text, attributes: {} }),
  };
}
