import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** The requests that are sent repeatedly, with headers and body; created before the measurement starts. */
export interface LoadOptions {
  readonly port: number;
  /** One request for all clients, or the next one each time. */
  readonly request: Uint8Array | (() => Uint8Array);
  readonly clients: number;
  readonly durationMs: number;
  /** Responses before this time are not counted. */
  readonly warmUpMs: number;
}

export interface LoadResult {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly responses: number;
}

/** A body of 1 MiB fits in a few reads. There is one buffer for each connection, so that nothing is allocated during the measurement. */
const readBytes = 256 * 1024;
const sampleCountMax = 2_000_000;

/**
 * Closed-loop load over raw keep-alive sockets: each client sends a request, reads the whole response, and repeats. All
 * servers are measured with this client, which takes about 20 us of one core for a small response. A status other than
 * 200 ends the run with an error.
 */
export function runLoad(options: LoadOptions): Promise<LoadResult> {
  return runClosedLoop(options, (endMs, one) => runClient(options, endMs, one));
}

/** `client` sends until `endMs`. It reports for each response when the request was sent and when the response was complete. */
export async function runClosedLoop(
  options: { readonly clients: number; readonly durationMs: number; readonly warmUpMs: number },
  client: (endMs: number, one: (sentMs: number, nowMs: number) => void) => Promise<void>,
): Promise<LoadResult> {
  const latenciesUs = new Float64Array(sampleCountMax);
  const startedMs = performance.now();
  const countFromMs = startedMs + options.warmUpMs;
  const endMs = countFromMs + options.durationMs;
  let responseCount = 0;
  const one = (sentMs: number, nowMs: number) => {
    if (nowMs < countFromMs || nowMs > endMs) return;
    if (responseCount < sampleCountMax) latenciesUs[responseCount] = (nowMs - sentMs) * 1000;
    responseCount++;
  };
  await Promise.all(Array.from({ length: options.clients }, () => client(endMs, one)));
  const sorted = latenciesUs.subarray(0, Math.min(responseCount, sampleCountMax)).sort();
  if (sorted.length === 0) throw new Error("no answer while the clock ran: give the round more time");
  return {
    perSecond: (responseCount * 1000) / options.durationMs,
    p50Us: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
    p99Us: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    responses: responseCount,
  };
}

function runClient(options: LoadOptions, endMs: number, one: (sentMs: number, nowMs: number) => void): Promise<void> {
  const next = typeof options.request === "function" ? options.request : () => options.request as Uint8Array;
  return new Promise((resolve, reject) => {
    const buffer = Buffer.allocUnsafe(readBytes);
    let sentMs = 0;
    let isOver = false;
    const parser = answerParser();
    const send = (socket: Socket) => {
      sentMs = performance.now();
      socket.write(next());
    };
    const socket: Socket = connect({
      host: "127.0.0.1",
      port: options.port,
      noDelay: true,
      onread: {
        buffer,
        callback: (length) => {
          try {
            if (!parser(buffer.subarray(0, length))) return true;
          } catch (error) {
            socket.destroy(error as Error);
            return false;
          }
          const nowMs = performance.now();
          one(sentMs, nowMs);
          if (nowMs < endMs) send(socket);
          else {
            isOver = true;
            socket.end();
          }
          return true;
        },
      },
    });
    socket.on("connect", () => send(socket));
    // Some servers reset a connection when the client ends it. All responses have arrived by then.
    socket.on("error", (error) => isOver || reject(error));
    socket.on("close", () =>
      performance.now() < endMs ? reject(new Error("the server closed a connection")) : resolve(),
    );
  });
}

/** One client that calls several servers in a repeated sequence; the time of each whole round is reported. */
export function runRounds(
  options: Omit<LoadOptions, "port" | "clients" | "request"> & {
    readonly ports: readonly number[];
    readonly request: Uint8Array;
  },
): Promise<LoadResult> {
  const { ports, request } = options;
  return runClosedLoop({ ...options, clients: 1 }, async (endMs, one) => {
    const connections = await Promise.all(ports.map(openConnection));
    try {
      while (performance.now() < endMs) {
        const sentMs = performance.now();
        for (const { call: ask } of connections) await ask(request);
        one(sentMs, performance.now());
      }
    } finally {
      for (const { socket } of connections) socket.destroy();
    }
  });
}

interface Connection {
  readonly socket: Socket;
  /** Resolves with the last byte of the response. */
  readonly call: (request: Uint8Array) => Promise<void>;
}

async function openConnection(port: number): Promise<Connection> {
  const buffer = Buffer.allocUnsafe(readBytes);
  const parser = answerParser();
  let responded = Promise.withResolvers<void>();
  const socket: Socket = connect({
    host: "127.0.0.1",
    port,
    noDelay: true,
    onread: {
      buffer,
      callback: (length) => {
        try {
          if (parser(buffer.subarray(0, length))) responded.resolve();
        } catch (error) {
          responded.reject(error);
        }
        return true;
      },
    },
  });
  await once(socket, "connect");
  socket.on("close", () => responded.reject(new Error("the server closed a connection")));
  socket.on("error", (error) => responded.reject(error));
  return {
    socket,
    call(request) {
      responded = Promise.withResolvers<void>();
      socket.write(request);
      return responded.promise;
    },
  };
}

const headEnd = Buffer.from("\r\n\r\n");

/** True when the response is complete. Only the status and the length are read from its header. */
function answerParser(): (chunk: Buffer) => boolean {
  let head: Buffer = Buffer.alloc(0);
  let missing = -1;
  return (chunk) => {
    if (missing < 0) {
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      const end = head.indexOf(headEnd);
      if (end < 0) {
        head = Buffer.from(head);
        return false;
      }
      const text = head.toString("latin1", 0, end);
      if (!text.startsWith("HTTP/1.1 200"))
        throw new Error(`an answer was refused: ${head.toString("latin1", 0, 400)}`);
      const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
      if (length === undefined) throw new Error(`an answer without a length: ${text}`);
      missing = Number(length) - (head.length - end - 4);
      head = Buffer.alloc(0);
    } else {
      missing -= chunk.length;
    }
    if (missing > 0) return false;
    missing = -1;
    return true;
  };
}

/** A complete request as bytes. */
export function requestBytes(
  path: string,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  method = "POST",
): Uint8Array {
  const lines = Object.entries({ host: "127.0.0.1", "content-length": String(body.length), ...headers });
  const head = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}
