/** TLS and passwords of `--records`: what each `sslmode` verifies, and that no message has the password. */
import assert from "node:assert/strict";
import { chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { silentLogger } from "@galatea/base";
import { createCertificate } from "@galatea/base/certificates";
import { openPostgresDocuments, parseDatabaseUrl } from "@galatea/hosting/records/postgres";
import { startPostgres, type PostgresServer } from "../environments/index.ts";

const dayMs = 86_400_000;
const newCertificate = (...names: readonly string[]) =>
  createCertificate({ names, notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + dayMs) });

let server: PostgresServer;
const pathOf = (name: string) => join(server.folder, name);
before(async () => {
  server = await startPostgres("newest");
  const own = newCertificate("localhost");
  const files = {
    "server.crt": own.certificatePem,
    "server.key": own.keyPem,
    "other.crt": newCertificate("localhost").certificatePem,
  };
  const rules =
    "hostssl all galatea all trust\nhostssl all tenant all scram-sha-256\nhost all galatea 127.0.0.1/32 trust\n";
  for (const [name, text] of Object.entries({ ...files, "rules.conf": rules })) {
    writeFileSync(pathOf(name), text, { mode: 0o600 });
    if (process.getuid?.() === 0) chownSync(pathOf(name), 65_534, 65_534);
  }
  await server.query("CREATE ROLE tenant LOGIN PASSWORD 'p@ss word'");
  await server.query("CREATE DATABASE tenant OWNER tenant");
  await server.createDatabase("records");
  await server.stop();
  await server.start(
    "ssl=on",
    `ssl_cert_file=${pathOf("server.crt")}`,
    `ssl_key_file=${pathOf("server.key")}`,
    `hba_file=${pathOf("rules.conf")}`,
  );
});
after(() => server[Symbol.asyncDispose]());

/** Opens and closes the documents; resolves with the error's message, or null. */
async function openedWith(url: string): Promise<string | null> {
  try {
    await using documents = await openPostgresDocuments({ address: parseDatabaseUrl(url), logger: silentLogger });
    await documents.write([{ do: "put", kind: "k", key: "a", body: "", expects: "any" }]);
    assert.equal((await documents.get("k", "a"))?.body, "");
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

test("each sslmode verifies the documented parts of the server's certificate", async () => {
  const own = `sslrootcert=${pathOf("server.crt")}`;
  const other = `sslrootcert=${pathOf("other.crt")}`;
  for (const [host, parameters, message] of [
    ["localhost", `sslmode=verify-full&${own}`, null],
    ["127.0.0.1", `sslmode=verify-full&${own}`, /IP: 127\.0\.0\.1 is not in the cert's list/],
    ["127.0.0.1", `sslmode=verify-ca&${own}`, null],
    ["localhost", `sslmode=verify-ca&${other}`, /cannot open the records in .*: (self.signed|unable to verify)/],
    ["localhost", "sslmode=verify-full", /cannot open the records in .*: self.signed certificate/],
    ["localhost", "", /cannot open the records in .*: self.signed certificate/],
    ["localhost", "sslmode=require", null],
    ["localhost", `sslmode=require&${other}`, /cannot open the records in/],
  ] as const) {
    const found = await openedWith(`postgres://galatea@${host}:${server.port}/records?${parameters}`);
    if (message === null) assert.equal(found, null, `${host} ${parameters}`);
    else assert.match(String(found), message, `${host} ${parameters}`);
  }
});

test("a password is taken from the URL; a wrong one is rejected by the server, and no message has it", async () => {
  const url = (password: string) =>
    `postgres://tenant:${password}@localhost:${server.port}/tenant?sslmode=verify-full&sslrootcert=${pathOf("server.crt")}`;
  assert.equal(await openedWith(url("p%40ss%20word")), null);
  const message = await openedWith(url("wrong-secret"));
  assert.match(
    String(message),
    /^cannot open the records in postgres:\/\/tenant@localhost:\d+\/tenant: password authentication failed for user "tenant"/,
  );
  assert.doesNotMatch(String(message), /wrong-secret/);
});
