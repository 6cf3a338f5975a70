import type { DocumentChange } from "../records/index.ts";

/** A message on its way: it is sent once its changes are written, together with whatever they are written with. */
export interface PostedMessage {
  readonly changes: readonly DocumentChange[];
  /** To be called when they are written. */
  readonly written: () => void;
}

/** Where the results of invocations are told. */
export interface ResultOutbox {
  /** Null where there is no such topic. */
  post(topicArn: string, message: string): Promise<PostedMessage | null>;
}
