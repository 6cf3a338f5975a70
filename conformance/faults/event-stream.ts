import { Agent, request as httpRequest } from "node:http";

/** A reply that is read as it comes. */
export interface EventStream extends Disposable {
  readonly status: number;
  readonly contentType: string;
  /** The bytes that have come so far, and the whole events among them. */
  readonly text: () => string;
  readonly events: () => readonly string[];
  /** How the reply ended: null while it has not. */
  readonly end: () => "whole" | "broken" | null;
  /** Reads nothing from now on, or reads again. */
  pause(): void;
  resume(): void;
}

/** Posts a body on a connection of its own and resolves with the head of the reply; `where` is a port or a Unix socket. */
export function openEventStream(
  where: number | string,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<EventStream> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      ...(typeof where === "number" ? { host: "127.0.0.1", port: where } : { socketPath: where }),
      agent: new Agent({ keepAlive: false }),
      method: "POST",
      path,
      headers: { "content-length": String(Buffer.byteLength(body)), ...headers },
    });
    request.once("error", reject);
    request.once("response", (reply) => {
      let text = "";
      let end: ReturnType<EventStream["end"]> = null;
      request.on("error", () => {});
      reply.on("error", () => {});
      reply.on("close", () => (end = reply.complete ? "whole" : "broken"));
      reply.setEncoding("utf8");
      reply.on("data", (part: string) => (text += part));
      resolve({
        status: reply.statusCode ?? 0,
        contentType: reply.headers["content-type"] ?? "",
        text: () => text,
        events: () => text.split("\n\n").slice(0, -1),
        end: () => end,
        pause: () => void reply.pause(),
        resume: () => void reply.resume(),
        [Symbol.dispose]: () => request.destroy(),
      });
    });
    request.end(body);
  });
}
