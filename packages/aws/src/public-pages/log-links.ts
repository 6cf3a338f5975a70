import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "@galatea/base";

export interface LogLinksOptions {
  /** Of the platform. */
  readonly url: string;
  /** Signs the addresses: those that another secret signed are no longer valid. */
  readonly secret: () => string;
  readonly clock: Clock;
}

export interface LogLinks {
  /** The address of a page with a group's last lines. Who has it may read them for a day, without a signature. */
  linkTo(group: string): string;
  /** The group whose page is asked for; null where the address is none of ours, or is over. */
  groupOf(url: string): string | null;
}

const dayMs = 24 * 3600 * 1000;
const hourMs = 3600 * 1000;
const pathPrefix = "/logs/";

/**
 * Where the sentences of errors send people to read logs. The fragment is how the managed service's own links end: nothing reads it
 * here, but people and dashboards look for it.
 */
export function createLogLinks({ url, secret, clock }: LogLinksOptions): LogLinks {
  const tokenOf = (group: string, until: number) =>
    createHmac("sha256", secret()).update(`logs ${until} ${group}`).digest("hex").slice(0, 32);
  return {
    linkTo(group) {
      // By the hour, so that the same error has the same words for a while.
      const until = Math.ceil((clock.epochMs() + dayMs) / hourMs) * hourMs;
      const path = group.replace(/^\//, "").split("/").map(encodeURIComponent).join("/");
      return `${url}${pathPrefix}${path}?until=${until}&token=${tokenOf(group, until)}#logEventViewer:group=${group}`;
    },
    groupOf(asked) {
      const match = /^\/logs\/([^?]+)\?until=(\d{1,15})&token=([0-9a-f]{32})$/.exec(asked);
      if (match === null) return null;
      const until = Number(match[2]);
      let group: string;
      try {
        group = `/${decodeURIComponent(match[1] ?? "")}`;
      } catch {
        return null;
      }
      const isOurs = timingSafeEqual(Buffer.from(tokenOf(group, until)), Buffer.from(match[3] ?? ""));
      return isOurs && until > clock.epochMs() ? group : null;
    },
  };
}
