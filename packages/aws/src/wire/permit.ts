import { AwsError } from "@galatea/base";
import type { Authenticator } from "../signing/index.ts";
import type { WireProtocol } from "./detect.ts";
import type { CallContext } from "./service-row.ts";

/** Whether the owner of a proven key may do that to the resource with that ARN. */
export type Permits = (accessKeyId: string, action: string, resource: string) => boolean;

/** Throws where the caller may not do what a row says that the call does. Where nothing is verified everybody may do everything. */
export function checkPermit(
  gateway: { readonly authenticator: Authenticator | null; readonly permits?: Permits },
  { accessKeyId }: CallContext,
  asked: { readonly action: string; readonly resource: () => string; readonly protocol: WireProtocol },
): void {
  if (gateway.authenticator === null || accessKeyId === null) return;
  const { action, protocol } = asked;
  const resource = asked.resource();
  if (gateway.permits?.(accessKeyId, action, resource) ?? true) return;
  throw accessDenied(protocol, `User: ${accessKeyId} is not authorized to perform: ${action} on resource: ${resource}`);
}

/** With the code that clients of that protocol know. */
export function accessDenied(protocol: WireProtocol, text: string): AwsError {
  const isXml = protocol === "query" || protocol === "rest-xml";
  return new AwsError(isXml ? "AccessDenied" : "AccessDeniedException", text, { statusFallback: 403 });
}
