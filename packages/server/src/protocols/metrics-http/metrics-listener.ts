import {
  openHttpListener,
  reply,
  replyError,
  type Exchange,
  type HttpListenerOptions,
} from "../http-listener/index.ts";
import type { Listener } from "../listener.ts";

export interface MetricsHttpOptions extends Omit<HttpListenerOptions, "handle"> {
  /** Returns the metrics in Prometheus text format; called for each scrape. */
  readonly text: () => string | Promise<string>;
}

const contentType = "text/plain; charset=utf-8";

/** Binds the metrics listener (Triton's port 8002). */
export function openMetricsHttp(options: MetricsHttpOptions): Promise<Listener> {
  return openHttpListener({ ...options, handle: (exchange) => respond(exchange, options.text) });
}

async function respond(exchange: Exchange, text: MetricsHttpOptions["text"]): Promise<void> {
  if (exchange.method !== "GET") return replyError(exchange, 405, "Method Not Allowed");
  if (exchange.path !== "/metrics" && exchange.path !== "/metrics/") return replyError(exchange, 404, "Not Found");
  const body = Buffer.from(await text());
  if (!exchange.signal.aborted) reply(exchange, 200, contentType, body);
}
