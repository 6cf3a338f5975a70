import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { createServer as createHttpServer, request, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { answerHttpsHosts, clientEnvironment, createCertificate, stsHosts } from "./index.ts";

const day = 24 * 3600 * 1000;
const certificate = createCertificate({
  names: ["localhost", "127.0.0.1", ...stsHosts()],
  notBefore: new Date(Date.now() - day),
  notAfter: new Date(Date.now() + 3650 * day),
});

test("the certificate is what OpenSSL reads it as: its own authority, for these names", () => {
  const read = new X509Certificate(certificate.certificatePem);
  assert(read.verify(read.publicKey));
  assert(read.ca);
  assert(read.checkIssued(read));
  assert.equal(read.checkHost("localhost"), "localhost");
  assert.equal(read.checkIP("127.0.0.1"), "127.0.0.1");
  assert.equal(read.checkHost("example.com"), undefined);
});

test("behind CONNECT the hosts of STS are answered here, the others are passed on, and nothing else is harmed", async () => {
  const elsewhere = createHttpServer((_, response) => response.end("elsewhere"));
  const server = createHttpServer((request, response) => response.end(`${request.headers.host} ${request.url}`));
  const passedOn = answerHttpsHosts(server, { certificate, hosts: stsHosts(), tunnelsMax: 10 });
  for (const each of [server, elsewhere]) await new Promise<void>((resolve) => each.listen(0, "127.0.0.1", resolve));
  const portOf = (each: Server) => (each.address() as AddressInfo).port;
  const tunnel = (host: string) =>
    new Promise<{ status: number; socket: Socket }>((resolve, reject) => {
      const asked = request({ port: portOf(server), host: "127.0.0.1", method: "CONNECT", path: host, agent: false });
      asked.on("connect", (response, socket) => resolve({ status: response.statusCode ?? 0, socket }));
      asked.on("error", reject);
      asked.end();
    });
  const answer = (socket: Socket, host: string) =>
    new Promise<string>((resolve, reject) => {
      const asked = request({ createConnection: () => socket, host, path: "/x" }, (response) => {
        response.setEncoding("utf8").on("data", resolve);
      });
      asked.on("error", reject);
      asked.end();
    });
  try {
    const inner = await tunnel("sts.us-east-1.amazonaws.com:443");
    const servername = "sts.us-east-1.amazonaws.com";
    const secure = connectTls({ socket: inner.socket, servername, ca: certificate.certificatePem });
    assert.equal(await answer(secure, servername), "sts.us-east-1.amazonaws.com:80 /x");
    const outer = await tunnel(`127.0.0.1:${portOf(elsewhere)}`);
    assert.equal(await answer(outer.socket, "127.0.0.1"), "elsewhere");
    const closed = await tunnel("127.0.0.1:1");
    assert.equal(closed.status, 502);
    const broken = await tunnel("sts.us-east-1.amazonaws.com:443");
    await new Promise<void>((resolve) => {
      broken.socket.on("error", () => {});
      broken.socket.on("close", () => resolve());
      broken.socket.resume();
      broken.socket.end(Buffer.from("not a handshake"));
    });
    const open = await tunnel(`127.0.0.1:${portOf(elsewhere)}`);
    const ended = new Promise((resolve) => open.socket.once("close", resolve).resume());
    passedOn[Symbol.dispose]();
    await ended;
    assert.equal((await tunnel(`127.0.0.1:${portOf(elsewhere)}`)).status, 503);
  } finally {
    for (const each of [server, elsewhere]) {
      each.closeAllConnections();
      each.close();
    }
  }
});

test("without TLS nothing that needs it is set", () => {
  const options = {
    url: "http://127.0.0.1:8770",
    region: "us-east-1",
    accessKeyId: "000000000000",
    secretAccessKey: "galatea",
    directory: "/data/clients",
  };
  const plain = clientEnvironment({ ...options, certificatePem: null });
  assert.equal(plain.variables.AWS_CA_BUNDLE, undefined);
  const full = clientEnvironment({ ...options, certificatePem: certificate.certificatePem });
  assert.equal(full.variables.HTTPS_PROXY, "http://127.0.0.1:8770");
  assert.equal(full.variables.AWS_CA_BUNDLE, "/data/clients/certificate.pem");
  assert.deepEqual(
    full.files.map(({ path }) => path),
    ["/data/clients/sagemaker.yaml", "/data/clients/certificate.pem"],
  );
});
