import { Agent, request as httpRequest } from "node:http";

/** A response that is read as it arrives. */
export interface EventStream extends Disposable {
  readonly status: number;
  readonly contentType: string;
  /** The received bytes, and the complete events in them. */
  readonly text: () => string;
  readonly events: () => readonly string[];
  /** The reason for the end of the response; null before the end. */
  readonly end: () => "whole" | "broken" | null;
  /** Stops reading, or resumes it. */
  pause(): void;
  resume(): void;
}

/** Posts a body on its own connection, and resolves when the header of the response has arrived. `where` is a port or a Unix socket. */
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
      reply.on("data", (segment: string) => (text += segment));
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
