import { AwsError } from "@galatea/base";
import type { Topics } from "../topics/index.ts";
import type { MessageSigner } from "./message-signer.ts";

export interface TopicPage {
  readonly type: string;
  readonly text: string;
}

/**
 * The unsigned pages that messages of topics link to: the certificate of message signatures, and the links to confirm
 * and to unsubscribe. A link contains a token or a subscription's name, and neither can be guessed. Resolves with null
 * for other URLs. Rejects with AwsError.
 */
export type TopicPages = (url: string) => Promise<TopicPage | null>;

export function topicPages(topics: Topics, signer: MessageSigner): TopicPages {
  return async (url) => {
    if (url === signer.certificatePath) return { type: "application/x-pem-file", text: signer.certificatePem };
    if (!url.startsWith("/?")) return null;
    const query = new URLSearchParams(url.slice(2));
    const action = query.get("Action");
    if (action === "ConfirmSubscription") return confirmed(topics, query);
    return action === "Unsubscribe" ? left(topics, query) : null;
  };
}

async function confirmed(topics: Topics, query: URLSearchParams): Promise<TopicPage> {
  const authenticates = query.get("AuthenticateOnUnsubscribe") === "true";
  const { arn } = await topics.confirm(query.get("TopicArn") ?? "", query.get("Token") ?? "", !authenticates);
  return respond("ConfirmSubscription", `<SubscriptionArn>${arn}</SubscriptionArn>`);
}

async function left(topics: Topics, query: URLSearchParams): Promise<TopicPage> {
  const { arn, state } = topics.subscription(query.get("SubscriptionArn") ?? "");
  if (state.at === "pending" || !state.mayLeaveByLink) {
    throw new AwsError("AuthorizationError", "This subscription can only be deleted by a signed request.");
  }
  await topics.unsubscribe(arn);
  return respond("Unsubscribe", null);
}

function respond(action: string, result: string | null): TopicPage {
  const body = result === null ? "" : `<${action}Result>${result}</${action}Result>`;
  return {
    type: "text/xml",
    text: `<${action}Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/">${body}</${action}Response>\n`,
  };
}
