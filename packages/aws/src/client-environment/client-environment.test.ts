import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { createServer as createHttpServer, request, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import * as fc from "fast-check";
import { attachConnectProxy } from "./https-hosts.ts";
import { clientEnvironment } from "./client-environment.ts";
import { createCertificate } from "@galatea/base/certificates";
import { proxyUrl } from "./proxy-access.ts";
import { shellChanges, changesToRestoreShell, type ShellChange } from "./shell-changes.ts";
import { stsHostNames } from "./sts-hosts.ts";

const day = 24 * 3600 * 1000;
const secret = "proxy-secret";
const certificate = createCertificate({
  names: ["localhost", "127.0.0.1", ...stsHostNames()],
  notBefore: new Date(Date.now() - day),
  notAfter: new Date(Date.now() + 3650 * day),
});

test("OpenSSL reads the certificate as self-signed, for these names", () => {
  const read = new X509Certificate(certificate.certificatePem);
  assert(read.verify(read.publicKey));
  assert(read.ca);
  assert(read.checkIssued(read));
  assert.equal(read.checkHost("localhost"), "localhost");
  assert.equal(read.checkIP("127.0.0.1"), "127.0.0.1");
  assert.equal(read.checkHost("example.com"), undefined);
});

type Closing = { close(): void; closeAllConnections(): void };

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Returns the response to a CONNECT; `proxy` is the client's proxy URL, with or without a user name and a password. */
function tunnel(proxy: string, target: string): Promise<{ status: number; socket: Socket }> {
  const { hostname, port, username, password } = new URL(proxy);
  const basic = Buffer.from(`${username}:${password}`).toString("base64");
  const headers = username === "" ? {} : { "proxy-authorization": `Basic ${basic}` };
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: hostname, method: "CONNECT", path: target, headers, agent: false });
    outgoing.on("connect", (response, socket) => resolve({ status: response.statusCode ?? 0, socket }));
    outgoing.on("error", reject);
    outgoing.end();
  });
}

function respond(socket: Socket, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ createConnection: () => socket, host, path: "/x" }, (response) => {
      response.setEncoding("utf8").on("data", resolve);
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

function closeAll(...servers: readonly Closing[]): void {
  for (const each of servers) {
    each.closeAllConnections();
    each.close();
  }
}

test("the proxy accepts CONNECT for the hosts of STS and connects to no other host", async () => {
  const elsewhere = createHttpServer((_, response) => response.end("elsewhere"));
  const server = createHttpServer((requested, response) => response.end(`${requested.headers.host} ${requested.url}`));
  using _passedOn = attachConnectProxy(server, {
    certificate,
    hosts: stsHostNames(),
    tunnelsMax: 10,
    secret: () => secret,
  });
  const [port, other] = [await listening(server), await listening(elsewhere)];
  const url = `http://127.0.0.1:${port}`;
  try {
    const inner = await tunnel(url, "sts.us-east-1.amazonaws.com:443");
    const servername = "sts.us-east-1.amazonaws.com";
    const secure = connectTls({ socket: inner.socket, servername, ca: certificate.certificatePem });
    assert.equal(await respond(secure, servername), "sts.us-east-1.amazonaws.com:80 /x");
    for (const proxy of [url, url.replace("//", "//direct:guess@"), proxyUrl(url, "another-secret", null)])
      for (const target of [`127.0.0.1:${other}`, "169.254.169.254:80", "127.0.0.1:1"])
        assert.equal((await tunnel(proxy, target)).status, 403, `${proxy} ${target}`);
    const broken = await tunnel(url, "sts.us-east-1.amazonaws.com:443");
    await new Promise<void>((resolve) => {
      broken.socket.on("error", () => {});
      broken.socket.on("close", () => resolve());
      broken.socket.resume();
      broken.socket.end(Buffer.from("not a handshake"));
    });
  } finally {
    closeAll(server, elsewhere);
  }
});

test("clients with the proxy's address are forwarded until the platform closes", async () => {
  const elsewhere = createHttpServer((_, response) => response.end("elsewhere"));
  const server = createHttpServer();
  const passedOn = attachConnectProxy(server, {
    certificate,
    hosts: stsHostNames(),
    tunnelsMax: 10,
    secret: () => secret,
  });
  const [port, other] = [await listening(server), await listening(elsewhere)];
  const proxy = proxyUrl(`http://127.0.0.1:${port}`, secret, null);
  try {
    const outer = await tunnel(proxy, `127.0.0.1:${other}`);
    assert.equal(await respond(outer.socket, "127.0.0.1"), "elsewhere");
    assert.equal((await tunnel(proxy, "127.0.0.1:1")).status, 502);
    const open = await tunnel(proxy, `127.0.0.1:${other}`);
    const ended = new Promise((resolve) => open.socket.once("close", resolve).resume());
    passedOn[Symbol.dispose]();
    await ended;
    assert.equal((await tunnel(proxy, `127.0.0.1:${other}`)).status, 503);
  } finally {
    closeAll(server, elsewhere);
  }
});

test("forwarded connections use the shell's earlier proxy with its credentials", async () => {
  const elsewhere = createHttpServer((_, response) => response.end("elsewhere"));
  const requested: (string | undefined)[] = [];
  const corporate = createHttpServer();
  corporate.on("connect", (incoming, socket: Socket) => {
    requested.push(incoming.url, incoming.headers["proxy-authorization"]);
    if (incoming.url === "refused.example:443") {
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      return;
    }
    const outer = connect(Number(incoming.url?.split(":")[1]), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(outer).pipe(socket);
    });
    socket.once("close", () => outer.destroy());
  });
  const server = createHttpServer();
  using _passedOn = attachConnectProxy(server, {
    certificate,
    hosts: stsHostNames(),
    tunnelsMax: 10,
    secret: () => secret,
  });
  const [port, other, corporatePort] = [
    await listening(server),
    await listening(elsewhere),
    await listening(corporate),
  ];
  const url = `http://127.0.0.1:${port}`;
  const proxy = proxyUrl(url, secret, `http://me:p%40ss@127.0.0.1:${corporatePort}`);
  try {
    const outer = await tunnel(proxy, `elsewhere.example:${other}`);
    assert.equal(await respond(outer.socket, "elsewhere.example"), "elsewhere");
    assert.deepEqual(requested, [`elsewhere.example:${other}`, `Basic ${Buffer.from("me:p@ss").toString("base64")}`]);
    assert.equal((await tunnel(proxy, "refused.example:443")).status, 502);
  } finally {
    closeAll(server, elsewhere, corporate);
  }
});

const options = {
  url: "http://127.0.0.1:8770",
  region: "us-east-1",
  accessKeyId: "KEY",
  secretAccessKey: "galatea-secret",
  directory: "/data/clients",
};

test("a shell's HTTPS proxy is unchanged unless requested", () => {
  const { variables, files } = clientEnvironment({ ...options, proxy: null, shell: { AWS_SESSION_TOKEN: "real" } });
  for (const name of Object.keys(variables)) assert.doesNotMatch(name, /proxy|ca_bundle/i);
  assert.equal(variables.AWS_SESSION_TOKEN, null);
  assert.deepEqual(
    files.map(({ path }) => path),
    ["/data/clients/sagemaker.yaml"],
  );
});

test("the proxy address contains the shell's earlier proxy, however often it is printed", () => {
  const proxy = { certificatePem: "ours\n", authoritiesPem: "theirs\n" };
  const earlier = { HTTPS_PROXY: "http://corporate:3128", NO_PROXY: "intranet, 10.0.0.1" };
  const first = clientEnvironment({ ...options, proxy, shell: earlier });
  assert.equal(first.variables.NO_PROXY, "intranet,10.0.0.1,127.0.0.1,localhost");
  assert.equal(first.files[1]?.text, "ours\ntheirs\n");
  const { HTTPS_PROXY: address } = first.variables;
  assert.match(address ?? "", /^http:\/\/[\w-]+:[0-9a-f]{32}@127\.0\.0\.1:8770$/);
  assert.ok(!JSON.stringify([address]).includes(options.secretAccessKey));
  const again = clientEnvironment({ ...options, proxy, shell: { HTTPS_PROXY: address ?? "" } });
  assert.equal(again.variables.HTTPS_PROXY, address);
  const plain = clientEnvironment({ ...options, proxy, shell: {} });
  assert.notEqual(plain.variables.HTTPS_PROXY, address);
});

test("a shell's earlier values are restored, whatever was printed in between", () => {
  const variable = fc.constantFrom("A", "B", "C", "D");
  const shell = fc.dictionary(variable, fc.string(), { noNullPrototype: true });
  const expected = fc.dictionary(variable, fc.option(fc.string()), { noNullPrototype: true });
  const changed = (from: Readonly<Record<string, string>>, changes: readonly ShellChange[]) => {
    const next = new Map(Object.entries(from));
    for (const [name, value] of changes) {
      if (value === null) next.delete(name);
      else next.set(name, value);
    }
    return Object.fromEntries(next);
  };
  fc.assert(
    fc.property(shell, fc.array(expected, { minLength: 1, maxLength: 4 }), (start, evaluated) => {
      let now = start;
      for (const variables of evaluated) {
        now = changed(now, shellChanges(variables, now));
        for (const [name, value] of Object.entries(variables)) assert.equal(now[name] ?? null, value);
        for (const name of ["A", "B", "C", "D"])
          if (!Object.hasOwn(variables, name)) assert.equal(now[name], start[name], name);
      }
      assert.deepEqual(changed(now, changesToRestoreShell(now)), start);
    }),
  );
});
