import { request as requestHttp, type Server } from "node:http";
import { request as requestHttps } from "node:https";
import { connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket, createSecureContext } from "node:tls";
import type { Certificate } from "@galatea/base/certificates";
import { unsignedAccess } from "../unsigned-access/index.ts";
import { parseProxyAuthorization } from "./proxy-access.ts";

export interface ConnectProxyOptions {
  readonly certificate: Certificate;
  /** Host names that this server serves itself. The certificate is valid for them. */
  readonly hosts: readonly string[];
  /** Maximum number of tunnelled connections. */
  readonly tunnelsMax: number;
  /** Returns the secret that `proxyUrl` puts into its URLs. When the secret changes, earlier URLs are rejected. */
  readonly secret: () => string;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

/** Maximum time to connect through another proxy, in milliseconds. */
const upstreamMsMax = 60_000;

/**
 * Makes an HTTP server a CONNECT proxy for clients of this machine. A connection to one of `hosts` is decrypted and
 * served like any other request to this server. A connection to another host needs a proxy URL from `galatea env
 * --proxy`, and is tunnelled through the shell's previous proxy, if any. Without such a URL it is rejected, as are all
 * callers from other machines. Disposal ends the tunnels, which `server.close` leaves open.
 */
export function attachConnectProxy(server: Server, options: ConnectProxyOptions): Disposable {
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
    const { stsTunnel } = unsignedAccess({ remoteAddress: socket.remoteAddress, isOpen: false, hasOwnerKey: false });
    if (!stsTunnel) return refuse(socket, "403 Forbidden");
    if (head.length > 0) socket.unshift(head);
    if (own.has(target.host)) {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      const secure = new TLSSocket(socket, { isServer: true, secureContext });
      secure.once("error", () => secure.destroy());
      server.emit("connection", secure);
      return;
    }
    const access = parseProxyAuthorization(request.headers["proxy-authorization"], options.secret());
    if (access === null) return refuse(socket, "403 Forbidden");
    if (closed || tunnels.size >= options.tunnelsMax) return refuse(socket, "503 Service Unavailable");
    tunnels.add(socket);
    socket.once("close", () => tunnels.delete(socket));
    const join = (outer: Socket) => {
      outer.once("close", () => socket.destroy());
      socket.once("close", () => outer.destroy());
      outer.on("error", () => outer.destroy());
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      socket.pipe(outer).pipe(socket);
    };
    const failed = () => refuse(socket, "502 Bad Gateway");
    if (access.upstream === null) connectDirectly(target, socket, join, failed);
    else connectThroughProxy(access.upstream, target, socket, join, failed);
  });
  return {
    [Symbol.dispose]() {
      closed = true;
      for (const socket of tunnels) socket.destroy();
    },
  };
}

function connectDirectly(target: Target, client: Socket, join: (outer: Socket) => void, failed: () => void): void {
  const outer = connect(target.port, target.host);
  client.once("close", () => outer.destroy());
  outer.once("error", failed);
  outer.once("connect", () => {
    outer.off("error", failed);
    join(outer);
  });
}

/** Connects through the proxy that the client's shell had before. */
function connectThroughProxy(
  upstream: URL,
  { host, port }: Target,
  client: Socket,
  join: (outer: Socket) => void,
  failed: () => void,
): void {
  const path = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const user = `${decodeURIComponent(upstream.username)}:${decodeURIComponent(upstream.password)}`;
  const authorization =
    upstream.username === "" ? {} : { "proxy-authorization": `Basic ${Buffer.from(user).toString("base64")}` };
  const secure = upstream.protocol === "https:";
  const request = (secure ? requestHttps : requestHttp)({
    method: "CONNECT",
    host: upstream.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: upstream.port === "" ? (secure ? 443 : 80) : Number(upstream.port),
    path,
    headers: { host: path, ...authorization },
    agent: false,
    timeout: upstreamMsMax,
  });
  client.once("close", () => request.destroy());
  request.once("timeout", () => request.destroy(new Error("the proxy does not respond")));
  request.once("error", failed);
  request.once("response", (response) => {
    response.resume();
    failed();
  });
  request.once("connect", (response, outer, head) => {
    if (response.statusCode !== 200) {
      outer.destroy();
      return failed();
    }
    outer.setTimeout(0);
    if (head.length > 0) outer.unshift(head);
    join(outer);
  });
  request.end();
}

function refuse(socket: Socket, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
}

/** Parses the `host:port` of a CONNECT request. */
function parseTarget(text: string): Target | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i.exec(text);
  const host = (match?.[1] ?? match?.[2] ?? "").toLowerCase();
  const port = Number(match?.[3]);
  if (host === "" || !(port > 0 && port < 65536) || (match?.[1] !== undefined && isIP(host) !== 6)) return null;
  return { host, port };
}
