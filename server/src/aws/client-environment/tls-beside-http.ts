import type { Server } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket, createSecureContext } from "node:tls";
import type { Certificate } from "./certificate.ts";

/** The first byte of a TLS handshake record; no HTTP method begins with it. */
const handshakeByte = 0x16;

/**
 * Makes an HTTP server speak TLS too on its one port: a connection that begins with a handshake is decrypted and then served like
 * any other. Call it before the server listens. A connection that sends nothing within `firstByteMsMax` is closed.
 */
export function serveTlsBesideHttp(server: Server, certificate: Certificate, firstByteMsMax: number): void {
  const secureContext = createSecureContext({ cert: certificate.certificatePem, key: certificate.keyPem });
  const listeners = server.listeners("connection") as ((socket: Socket) => void)[];
  server.removeAllListeners("connection");
  const serve = (socket: Socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
  server.on("connection", (socket: Socket) => {
    const giveUp = () => socket.destroy();
    socket.setTimeout(firstByteMsMax, giveUp);
    socket.once("error", giveUp);
    socket.once("readable", () => {
      const first = socket.read(1) as Buffer | null;
      socket.setTimeout(0);
      socket.removeListener("timeout", giveUp);
      socket.removeListener("error", giveUp);
      if (first === null) {
        socket.destroy();
        return;
      }
      socket.unshift(first);
      if (first[0] !== handshakeByte) {
        serve(socket);
        return;
      }
      const secure = new TLSSocket(socket, { isServer: true, secureContext });
      secure.once("error", () => secure.destroy());
      serve(secure);
    });
  });
}
