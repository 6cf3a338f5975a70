import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { createServer, get as httpGet } from "node:http";
import { get as httpsGet } from "node:https";
import { connect, type AddressInfo } from "node:net";
import { test } from "node:test";
import { clientEnvironment, createCertificate, serveTlsBesideHttp } from "./index.ts";

const day = 24 * 3600 * 1000;
const certificate = createCertificate({
  names: ["localhost", "127.0.0.1"],
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

test("one port answers both, whole bodies and broken handshakes included", async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.end(`${request.method} ${request.url}`);
  });
  serveTlsBesideHttp(server, certificate, 1000);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const answer = (get: typeof httpGet | typeof httpsGet, url: string) =>
      new Promise<string>((resolve, reject) => {
        const asked = get(url, { ca: certificate.certificatePem, agent: false }, (response) => {
          response.setEncoding("utf8").on("data", resolve);
        });
        asked.on("error", reject);
      });
    assert.equal(await answer(httpGet, `http://127.0.0.1:${port}/plain`), "GET /plain");
    assert.equal(await answer(httpsGet, `https://localhost:${port}/secure`), "GET /secure");
    await new Promise<void>((resolve) => {
      const broken = connect(port, "127.0.0.1", () => broken.write(Buffer.from([0x16, 1, 2, 3, 4, 5, 6, 7, 8, 9])));
      broken.on("error", () => {});
      broken.on("close", resolve);
      broken.resume();
    });
    assert.equal(await answer(httpGet, `http://127.0.0.1:${port}/still`), "GET /still");
  } finally {
    server.closeAllConnections();
    server.close();
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
  assert.equal(full.variables.AWS_DATA_PATH, "/data/clients/models");
  const table = full.files.find(({ path }) => path.endsWith("endpoints.json"))?.text ?? "";
  assert.match(table, /"sts":\{"defaults":\{"hostname":"127\.0\.0\.1:8770"\}/);
});
