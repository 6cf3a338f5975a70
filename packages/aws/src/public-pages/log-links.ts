import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "@galatea/base";

export interface LogLinksOptions {
  /** URL of the platform. */
  readonly url: string;
  /** Returns the secret that signs the URLs. When it changes, earlier URLs become invalid. */
  readonly secret: () => string;
  readonly clock: Clock;
}

export interface LogLinks {
  /** Returns the URL of a page with a group's last lines. It is valid for a day, without a signature. */
  linkTo(group: string): string;
  /** Returns the group of a URL; null for an unknown or expired one. */
  groupOf(url: string): string | null;
}

const dayMs = 24 * 3600 * 1000;
const hourMs = 3600 * 1000;
const pathPrefix = "/logs/";

/**
 * Creates the links to logs in error messages. The fragment equals that of CloudWatch's console links, because scripts
 * and dashboards search messages for it. This server ignores the fragment.
 */
export function createLogLinks({ url, secret, clock }: LogLinksOptions): LogLinks {
  const tokenOf = (group: string, until: number) =>
    createHmac("sha256", secret()).update(`logs ${until} ${group}`).digest("hex").slice(0, 32);
  return {
    linkTo(group) {
      // Rounded to the hour, so that repeated errors have the same text for up to an hour.
      const until = Math.ceil((clock.epochMs() + dayMs) / hourMs) * hourMs;
      const path = group.replace(/^\//, "").split("/").map(encodeURIComponent).join("/");
      return `${url}${pathPrefix}${path}?until=${until}&token=${tokenOf(group, until)}#logEventViewer:group=${group}`;
    },
    groupOf(requested) {
      const match = /^\/logs\/([^?]+)\?until=(\d{1,15})&token=([0-9a-f]{32})$/.exec(requested);
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
