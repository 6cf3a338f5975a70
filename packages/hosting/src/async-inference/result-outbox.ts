import type { DocumentChange } from "../records/index.ts";

/** A message that is sent once its changes are written, in one transaction with other changes. */
export interface PostedMessage {
  readonly changes: readonly DocumentChange[];
  /** Reports that the changes are written. */
  readonly written: () => void;
}

/** Publishes the results of invocations. */
export interface ResultOutbox {
  /** Returns null where the topic does not exist. */
  post(topicArn: string, message: string): Promise<PostedMessage | null>;
}
