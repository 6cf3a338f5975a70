import { createServer, connect, type Socket } from "node:net";
import { once } from "node:events";

/** A TCP proxy in front of a database, whose connections a test breaks. */
export interface FaultyProxy extends Disposable {
  readonly port: number;
  /** Ends all connections at once, on both sides. */
  drop(): void;
  /** Ends each connection when the database next answers on it; the answer is lost. */
  dropResponses(): void;
  /** Passes nothing on, in either direction, and accepts no connection, until `resume`. Nothing is lost meanwhile. */
  stall(): void;
  /** Of the stalled connections passes on what clients have sent. New connections work. */
  resume(): void;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly unsent: Buffer[];
}

export async function openFaultyProxy(targetPort: number): Promise<FaultyProxy> {
  const pairs = new Set<Pair>();
  let isStalled = false;
  const open = (client: Socket) => {
    const server = connect(targetPort, "127.0.0.1");
    const pair: Pair = { client, server, unsent: [] };
    pairs.add(pair);
    const end = () => {
      // A stalled proxy hides from the database that the client has left.
      if (isStalled) return;
      pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on("error", end).on("close", end);
    client.on("data", (data: Buffer) => (isStalled ? pair.unsent.push(data) : server.write(data)));
    server.on("data", (data: Buffer) => isStalled || client.write(data));
  };
  const listener = createServer((client) => (isStalled ? client.on("error", () => {}) : open(client)));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as { port: number };
  const drop = () => {
    for (const { client, server } of pairs) {
      client.destroy();
      server.destroy();
    }
  };
  return {
    port,
    drop,
    dropResponses() {
      for (const { client, server } of pairs) {
        server.removeAllListeners("data");
        server.once("data", () => client.destroy());
      }
    },
    stall() {
      isStalled = true;
    },
    resume() {
      isStalled = false;
      for (const pair of pairs) for (const data of pair.unsent.splice(0)) pair.server.write(data);
    },
    [Symbol.dispose]() {
      listener.close();
      isStalled = false;
      drop();
    },
  };
}
