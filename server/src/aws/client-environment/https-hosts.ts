import type { Server } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket, createSecureContext } from "node:tls";
import type { Certificate } from "./certificate.ts";

export interface HttpsHostsOptions {
  readonly certificate: Certificate;
  /** Names that this server answers itself; the certificate is for them. */
  readonly hosts: readonly string[];
  /** Connections passed on at a time. */
  readonly tunnelsMax: number;
}

const loopback = /^(127\.|::1$|::ffff:127\.)/;

/**
 * Makes an HTTP server a CONNECT proxy for clients of this machine: a connection to one of `hosts` is decrypted and served like any
 * other request to this server; one to another host is passed on, so that a shell with HTTPS_PROXY set to us still reaches
 * the world. Callers from other machines are refused: this is no proxy for a network. Disposing the result ends what is passed on,
 * which the server's own close knows nothing of.
 */
export function answerHttpsHosts(server: Server, options: HttpsHostsOptions): Disposable {
  const { certificatePem: cert, keyPem: key } = options.certificate;
  const secureContext = createSecureContext({ cert, key });
  const own = new Set(options.hosts);
  const tunnels = new Set<Socket>();
  let closed = false;
  server.on("connect", (request, duplex: Duplex, head: Buffer) => {
    const socket = duplex as Socket;
    socket.on("error", () => socket.destroy());
    const target = parseTarget(request.url ?? "");
    if (target === null) return refuse(socket, "400 Bad Request");
    if (!loopback.test(socket.remoteAddress ?? "")) return refuse(socket, "403 Forbidden");
    if (head.length > 0) socket.unshift(head);
    if (own.has(target.host)) {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      const secure = new TLSSocket(socket, { isServer: true, secureContext });
      secure.once("error", () => secure.destroy());
      server.emit("connection", secure);
      return;
    }
    if (closed || tunnels.size >= options.tunnelsMax) return refuse(socket, "503 Service Unavailable");
    tunnels.add(socket);
    const outer = connect(target.port, target.host);
    outer.once("close", () => {
      tunnels.delete(socket);
      socket.destroy();
    });
    socket.once("close", () => outer.destroy());
    outer.once("error", () => refuse(socket, "502 Bad Gateway"));
    outer.once("connect", () => {
      outer.removeAllListeners("error");
      outer.on("error", () => outer.destroy());
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      socket.pipe(outer).pipe(socket);
    });
  });
  return {
    [Symbol.dispose]() {
      closed = true;
      for (const socket of tunnels) socket.destroy();
    },
  };
}

function refuse(socket: Socket, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
}

/** `host:port`, as CONNECT has it. */
function parseTarget(text: string): { readonly host: string; readonly port: number } | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i.exec(text);
  const host = (match?.[1] ?? match?.[2] ?? "").toLowerCase();
  const port = Number(match?.[3]);
  if (host === "" || !(port > 0 && port < 65536) || (match?.[1] !== undefined && isIP(host) !== 6)) return null;
  return { host, port };
}
