import type { DocumentChange } from "../records/index.ts";

/** A message that is sent after its document changes are written. The caller writes them in one transaction with its own changes. */
export interface PreparedMessage {
  readonly changes: readonly DocumentChange[];
  /** The caller calls this after the changes are written; the message is then sent. */
  readonly written: () => void;
}

/** Sends the results of asynchronous requests to SNS topics. */
export interface ResultOutbox {
  /** Prepares a message for a topic. Resolves with null if the topic does not exist. */
  prepareMessage(topicArn: string, message: string): Promise<PreparedMessage | null>;
}
