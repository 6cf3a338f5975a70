/**
 * Delivery of SNS messages over HTTP: sending, signing, and the pages for certificates, confirmations and
 * unsubscribing.
 */
export { createMessageSender } from "./message-sender.ts";
export { openMessageSigner } from "./message-signer.ts";
export { topicPages, type TopicPages } from "./topic-pages.ts";
