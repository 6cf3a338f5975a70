import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDatabaseUrl } from "./database-address.ts";

test("a database URL is parsed to host, port, database, user and password, and printed without the password", () => {
  const { config, shown } = parseDatabaseUrl("postgres://me:p%40ss@db.example:6543/records?sslmode=disable");
  assert.deepEqual(config, {
    host: "db.example",
    port: 6543,
    database: "records",
    user: "me",
    password: "p@ss",
    ssl: false,
  });
  assert.equal(shown, "postgres://me@db.example:6543/records");
  const socket = parseDatabaseUrl("postgresql:///records?host=/run/postgresql");
  assert.deepEqual(socket.config, { host: "/run/postgresql", database: "records", ssl: false });
});

test("sslmode decides what of the server's certificate is verified; plain text has to be chosen, except for a Unix socket", () => {
  const tls = (host: string, mode: string) => {
    const { ssl } = parseDatabaseUrl(`postgres://${host}/records${mode}`).config;
    return typeof ssl === "object" ? [ssl.rejectUnauthorized, ssl.checkServerIdentity === undefined] : ssl;
  };
  assert.deepEqual(tls("db.example", ""), [true, true]);
  assert.deepEqual(tls("db.example", "?sslmode=verify-full"), [true, true]);
  assert.deepEqual(tls("db.example", "?sslmode=verify-ca"), [true, false]);
  assert.deepEqual(tls("db.example", "?sslmode=require"), [false, false]);
  assert.equal(tls("db.example", "?sslmode=disable"), false);
  assert.equal(parseDatabaseUrl("postgres:///records?host=/run/postgresql").config.ssl, false);
});

test("an invalid URL is rejected with a text that does not contain its password", () => {
  for (const [url, message] of [
    ["postgres://me:secret@db.example", "needs a host and a database"],
    ["postgres://me:secret@db.example/records?sslmode=prefer", "sslmode 'prefer' of a database URL is not one of"],
    ["postgres://me:secret@db.example/records?pool=4", "unknown parameter 'pool' of a database URL"],
    ["postgres://me:secret@db-1,db-2/records", "names one host: use the name or address that follows the primary"],
    ["postgres://me:secret@db-1:5432,db-2:5432/records", "names one host"],
    ["postgres:///records?host=db-1,db-2", "names one host"],
    ["mysql://me:secret@db.example/records", "has to be like postgres://"],
    ["postgres://me:secret@db.example:port/records", "has to be like postgres://"],
  ] as const) {
    assert.throws(
      () => parseDatabaseUrl(url),
      (error: Error) => error.message.includes(message) && !error.message.includes("secret"),
      url,
    );
  }
});
