import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/**
 * A TCP proxy for a port that simulates network faults. With `isSilent`, connections are half-open: the proxy keeps
 * them open and forwards nothing, as if the machine had failed.
 */
export class FaultyNetwork implements AsyncDisposable {
  /** Delay of each chunk in each direction, in milliseconds. */
  delayMs = 0;
  /** Maximum bytes of a forwarded chunk. */
  chunkBytesMax = Infinity;
  /** The port that new connections are forwarded to. */
  target: number;
  readonly #pairs = new Set<Pair>();
  #server: Server;
  #isSilent = false;

  private constructor(target: number, server: Server) {
    this.target = target;
    this.#server = server;
  }

  static async open(target: number): Promise<FaultyNetwork> {
    const network = new FaultyNetwork(target, createServer());
    await network.accept(0);
    return network;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Number of open connections. */
  get connectionCount(): number {
    return this.#pairs.size;
  }

  /** Listens on a port and forwards its connections. */
  async accept(port: number): Promise<void> {
    this.#server = createServer((client) => this.#forward(client));
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  /** Refuses new connections. Open connections are not affected. */
  refuse(): void {
    this.#server.close();
  }

  /** Stops or resumes all connections. Bytes of a stopped connection are delivered when it resumes. */
  set isSilent(isSilent: boolean) {
    this.#isSilent = isSilent;
    for (const pair of this.#pairs)
      for (const socket of pair.sockets)
        if (isSilent) socket.pause();
        else socket.resume();
  }

  /** Closes all connections on both sides immediately. */
  cut(): void {
    for (const { sockets } of this.#pairs) for (const socket of sockets) socket.destroy();
  }

  /** Closes each connection when the target sends the next bytes on it, and discards these bytes. */
  loseResponses(): void {
    for (const { sockets } of this.#pairs) {
      const [client, target] = sockets;
      target.removeAllListeners("data");
      target.once("data", () => client.destroy());
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.refuse();
    this.cut();
    await Promise.resolve();
  }

  #forward(client: Socket): void {
    const target = connect({ host: "127.0.0.1", port: this.target });
    const pair: Pair = { sockets: [client, target] };
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      from.setNoDelay(true);
      let sent = Promise.resolve();
      from.on("data", (bytes: Buffer) => {
        for (let at = 0; at < bytes.length; at += Math.min(this.chunkBytesMax, bytes.length)) {
          const chunk = bytes.subarray(at, at + Math.min(this.chunkBytesMax, bytes.length));
          sent = sent.then(() => this.#deliver(chunk, to));
        }
      });
      from.on("end", () => void (sent = sent.then(() => void to.end())));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#pairs.delete(pair);
        void sent.then(() => to.destroy());
      });
    }
    if (this.#isSilent) for (const socket of pair.sockets) socket.pause();
  }

  async #deliver(chunk: Buffer, to: Socket): Promise<void> {
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    if (!to.destroyed) to.write(chunk);
  }
}

interface Pair {
  readonly sockets: readonly [client: Socket, target: Socket];
}
