import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { openDeadline, type Clock } from "@galatea/base";
import { requestHeaders } from "./passed-headers.ts";

/** A request over an open connection, of which nothing is sent yet. */
export type UnsentRequest = ClientRequest;

const connectMsMax = 2000;
const idleConnectionsMax = 256;

/** The connections to the leader, which are kept open between requests. */
export class LeaderConnections implements Disposable {
  readonly #clock: Clock;
  readonly #http = new HttpAgent({ keepAlive: true, maxFreeSockets: idleConnectionsMax });
  readonly #https = new HttpsAgent({ keepAlive: true, maxFreeSockets: idleConnectionsMax });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Opens a connection for a request, or takes an idle one. Resolves with null if the leader does not accept it in time.
   * Rejects with the signal's reason.
   */
  async open(
    url: string,
    { method, url: path, rawHeaders, headers }: Pick<IncomingMessage, "method" | "url" | "rawHeaders" | "headers">,
    signal: AbortSignal,
  ): Promise<UnsentRequest | null> {
    const { protocol, hostname, port } = new URL(url);
    const isSecure = protocol === "https:";
    const options = {
      hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: Number(port || (isSecure ? 443 : 80)),
      method,
      path,
      headers: requestHeaders(rawHeaders, { method, headers }),
    };
    const opened = isSecure
      ? httpsRequest({ ...options, agent: this.#https })
      : httpRequest({ ...options, agent: this.#http });
    using limit = openDeadline({ clock: this.#clock, afterMs: connectMsMax, signal });
    try {
      await connected(opened, { event: isSecure ? "secureConnect" : "connect", signal: limit.signal });
      return opened;
    } catch {
      opened.on("error", () => {}).destroy();
      signal.throwIfAborted();
      return null;
    }
  }

  [Symbol.dispose](): void {
    this.#http.destroy();
    this.#https.destroy();
  }
}

function connected(
  opened: ClientRequest,
  { event, signal }: { readonly event: "connect" | "secureConnect"; readonly signal: AbortSignal },
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    opened.once("error", reject);
    opened.once("socket", (socket) => {
      if (socket.connecting) socket.once(event, () => resolve());
      else resolve();
    });
  });
}
