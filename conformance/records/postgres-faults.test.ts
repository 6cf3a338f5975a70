/** Documents in PostgreSQL when the server is killed, sessions or connections end, or a second platform opens the database. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { createLogger, silentLogger, type Logger } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { DocumentConflict, type ChangeBatch, type DocumentChange, type Documents } from "@galatea/hosting/records";
import { openPostgresDocuments, parseDatabaseUrl, type PostgresDocuments } from "@galatea/hosting/records/postgres";
import { FaultyNetwork } from "../../packages/hosting/test/faulty-network-fixture.ts";
import { until } from "../faults/until.ts";
import { startPostgres, type PostgresServer } from "../environments/index.ts";

/** A pooler that sends clients its own process number in BackendKeyData, and forwards everything else. */
class FakePooler implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: number) {
    this.#server = createServer((client) => {
      const backend = connect({ host: "127.0.0.1", port: target });
      for (const socket of [client, backend]) {
        this.#sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => [client, backend].forEach((each) => each.destroy()));
      }
      client.pipe(backend);
      backend.on("data", (bytes) => client.write(withOtherProcess(bytes)));
    }).listen(0, "127.0.0.1");
  }

  static async open(target: number): Promise<FakePooler> {
    const pooler = new FakePooler(target);
    await once(pooler.#server, "listening");
    return pooler;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await Promise.resolve();
  }
}

/** BackendKeyData: `K`, the length, the process number, the key for cancellations. Its length is 12 up to PostgreSQL 17. */
function withOtherProcess(bytes: Buffer): Buffer {
  const at = [12, 8 + 32]
    .map((length) => bytes.indexOf(Buffer.from([0x4b, 0, 0, 0, length])))
    .find((found) => found >= 0);
  if (at === undefined) return bytes;
  const changed = Buffer.from(bytes);
  changed.writeUInt32BE(1, at + 5);
  return changed;
}

let server: PostgresServer;
before(async () => {
  server = await startPostgres("newest");
});
after(() => server[Symbol.asyncDispose]());

let count = 0;
async function newDatabase(): Promise<string> {
  const name = `faults_${(count += 1)}`;
  await server.createDatabase(name);
  return name;
}

const open = (
  database: string,
  { port = server.port, logger = silentLogger }: { port?: number; logger?: Logger } = {},
) =>
  openPostgresDocuments({
    address: parseDatabaseUrl(`postgres://galatea@127.0.0.1:${port}/${database}?sslmode=disable`),
    logger,
  });

const put = (key: string, body: string, expects: number | "absent" | "any"): DocumentChange => ({
  do: "put",
  kind: "k",
  key,
  body,
  expects,
});

/** Numbers of a writer's writes by result. */
interface WriteCounts {
  acknowledged: number;
  /** Number of writes that were rejected as not committed, or with an unknown outcome. */
  failed: number;
  unknown: number;
}

/** Reads until the database is reachable again. */
async function readAgain(documents: Documents, key: string) {
  for (;;) {
    try {
      return await documents.get("k", key);
    } catch (error) {
      assert.match(String(error), /DatabaseUnavailable/);
    }
  }
}

/** Increments counters in two documents, each write on the version of the previous one, until the signal aborts. */
async function countUp(documents: Documents, name: string, counts: WriteCounts, until: AbortSignal): Promise<void> {
  let [value, version]: [number, number | "absent"] = [0, "absent"];
  while (!until.aborted) {
    try {
      const body = String(value + 1);
      version = await documents.write([put(`${name}-a`, body, version), put(`${name}-b`, body, version)]);
      value += 1;
      counts.acknowledged += 1;
    } catch (error) {
      assert.ok(!(error instanceof DocumentConflict), "no other writer");
      if (/unknown/.test(String(error))) counts.unknown += 1;
      else counts.failed += 1;
      const now = await readAgain(documents, `${name}-a`);
      assert.ok(Number(now?.body ?? 0) - value <= (/unknown/.test(String(error)) ? 1 : 0), String(error));
      [value, version] = [Number(now?.body ?? 0), now?.version ?? "absent"];
    }
  }
}

async function assertCounted(
  documents: Documents,
  name: string,
  { acknowledged, unknown }: WriteCounts,
): Promise<void> {
  const [a, b] = await Promise.all([documents.get("k", `${name}-a`), documents.get("k", `${name}-b`)]);
  assert.equal(a?.body, b?.body, "no write is incomplete");
  const value = Number(a?.body);
  assert.ok(
    value >= acknowledged && value <= acknowledged + unknown,
    `${value} of ${acknowledged} and ${unknown} unknown`,
  );
}

/** Runs writers during faults, and checks that the stored documents match the reported results, also after a reopening. */
async function underFaults(
  database: string,
  documents: PostgresDocuments,
  /** `progress` resolves when every writer has completed another write. */
  faults: (progress: () => Promise<void>) => Promise<void>,
  reopen: () => Promise<PostgresDocuments> = () => open(database),
): Promise<WriteCounts[]> {
  const over = new AbortController();
  const names = Array.from({ length: 16 }, (_, index) => `w${index}`);
  const counts = names.map((): WriteCounts => ({ acknowledged: 0, failed: 0, unknown: 0 }));
  const working = Promise.all(names.map((name, index) => countUp(documents, name, counts[index]!, over.signal)));
  await faults(async () => {
    const created = counts.map(({ acknowledged }) => acknowledged);
    await eventually(() => counts.every(({ acknowledged }, index) => acknowledged > created[index]!));
  });
  over.abort();
  await working;
  for (const [index, name] of names.entries()) await assertCounted(documents, name, counts[index]!);
  await documents[Symbol.asyncDispose]();
  await using again = await reopen();
  for (const [index, name] of names.entries()) await assertCounted(again, name, counts[index]!);
  return counts;
}

const total = (counts: readonly WriteCounts[], what: keyof WriteCounts) =>
  counts.reduce((sum, each) => sum + each[what], 0);

test("kill -9 of the database amid writes: each acknowledged write is stored once and completely", async (t) => {
  const database = await newDatabase();
  const documents = await open(database);
  const counts = await underFaults(database, documents, async () => {
    for (let round = 0; round < 5; round += 1) {
      await delay(200 + 50 * round);
      await server.kill();
      await server.start();
    }
    await delay(300);
  });
  t.diagnostic(JSON.stringify([total(counts, "acknowledged"), total(counts, "failed"), total(counts, "unknown")]));
  assert.ok(total(counts, "acknowledged") > 100);
});

test("sessions that are terminated at random under load fail no conditional write", async (t) => {
  const database = await newDatabase();
  const documents = await open(database);
  const counts = await underFaults(database, documents, async (progress) => {
    for (let round = 0; round < 30; round += 1) {
      await progress();
      await delay(round);
      await server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = '${database}' AND application_name LIKE 'galatea%' AND random() < 0.7`,
      );
    }
  });
  t.diagnostic(JSON.stringify([total(counts, "acknowledged"), total(counts, "failed"), total(counts, "unknown")]));
  assert.equal(total(counts, "failed") + total(counts, "unknown"), 0);
  assert.ok(total(counts, "acknowledged") > 100);
});

test("connections that break at any moment, also between a commit and its response, neither fail nor repeat a conditional write", async (t) => {
  const database = await newDatabase();
  await using network = await FaultyNetwork.open(server.port);
  const documents = await open(database, { port: network.port });
  const counts = await underFaults(database, documents, async (progress) => {
    for (let round = 0; round < 30; round += 1) {
      await progress();
      await delay(round);
      if (round % 2 === 0) network.cut();
      else network.loseResponses();
    }
    await progress();
  });
  t.diagnostic(JSON.stringify([total(counts, "acknowledged"), total(counts, "failed"), total(counts, "unknown")]));
  assert.equal(total(counts, "failed") + total(counts, "unknown"), 0);
});

test("after a failover to a synchronous replica each acknowledged write is there, and writes continue", async (t) => {
  await using primary = await startPostgres("newest");
  await primary.createDatabase("records");
  await using replica = await primary.replicate();
  await primary.stop();
  await primary.start("synchronous_standby_names=*");
  await until(
    "the replica is connected",
    async () => (await primary.query("SELECT 1 FROM pg_stat_replication")).length > 0,
  );
  // An address that follows the primary.
  await using network = await FaultyNetwork.open(primary.port);
  const openThere = () => open("records", { port: network.port });
  const counts = await underFaults(
    "records",
    await openThere(),
    async (progress) => {
      await progress();
      await primary.kill();
      await replica.query("SELECT pg_promote()");
      network.target = replica.port;
      await progress();
    },
    openThere,
  );
  t.diagnostic(JSON.stringify([total(counts, "acknowledged"), total(counts, "failed"), total(counts, "unknown")]));
});

test("a platform that reaches a replica instead of the primary does not start", async () => {
  await using primary = await startPostgres("newest");
  await primary.createDatabase("records");
  await using replica = await primary.replicate();
  await assert.rejects(
    open("records", { port: replica.port }),
    /is a replica, which takes no writes; use the address of the primary/,
  );
});

test("a write whose response is lost after the commit resolves with its version", async () => {
  const database = await newDatabase();
  await using network = await FaultyNetwork.open(server.port);
  await using documents = await open(database, { port: network.port });
  const first = await documents.write([put("a", "1", "absent")]);
  network.loseResponses();
  // The write is not repeated, although it was committed in this case: `any` expects no version.
  const second = await documents.write([put("a", "2", "any")]);
  assert.equal(second, first + 1);
  assert.equal((await documents.get("k", "a"))?.version, second);
});

test("an unconditional write fails after a lost connection and is not repeated", async () => {
  const database = await newDatabase();
  await using documents = await open(database);
  await documents.write([put("a", "0", "absent")]);
  await using pending = await hold(database);
  const writes = Promise.allSettled([
    documents.write([put("a", "any", "any")]),
    documents.write([put("b", "1", "absent")]),
  ]);
  await eventually(() => isWaiting(database));
  await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'
    AND application_name LIKE 'galatea%' AND wait_event_type = 'Lock'`);
  await pending.end();
  const [any, expecting] = await writes;
  assert.match(String((any as PromiseRejectedResult).reason), /DatabaseUnavailable: the write was not made/);
  assert.equal(expecting?.status, "fulfilled");
  assert.equal((await documents.get("k", "a"))?.body, "0");
});

/** A session of another program that has locked the change feed in its own transaction. */
async function hold(database: string) {
  const client = new Client({ host: "127.0.0.1", port: server.port, user: "galatea", database });
  await client.connect();
  await client.query("BEGIN; SELECT * FROM galatea.document_feed FOR UPDATE");
  return {
    client,
    async end(how: "COMMIT" | "ROLLBACK" = "ROLLBACK") {
      await client.query(how);
    },
    async [Symbol.asyncDispose]() {
      await client.end();
    },
  };
}

async function isWaiting(database: string): Promise<boolean> {
  const rows = await server.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = '${database}' AND wait_event_type = 'Lock'`,
  );
  return rows.length > 0;
}

test("a reader of changes does not skip a transaction that commits long after it got its version", async () => {
  const database = await newDatabase();
  await using documents = await open(database);
  const since = await documents.write([put("first", "", "absent")]);
  const over = new AbortController();
  const batches = documents.changes(since, over.signal)[Symbol.asyncIterator]();
  const next = batches.next();
  await using other = await hold(database);
  const write = `SELECT galatea.write_documents((SELECT epoch FROM galatea.document_feed), 99,
    '[[{"d":"put","k":"k","i":"early","b":"","o":{},"e":0}]]', NULL)`;
  await other.client.query(`SET search_path = galatea; ${write}`);
  const late = documents.write([put("late", "", "absent")]);
  await eventually(() => isWaiting(database));
  await other.end("COMMIT");
  const version = await late;
  assert.equal(version, since + 2);
  const keys: string[] = [];
  for (let batch = (await next).value!; ; batch = (await batches.next()).value!) {
    keys.push(...(batch as ChangeBatch).changes.map(({ key }) => key));
    if (batch.version >= version) break;
  }
  assert.deepEqual(keys, ["early", "late"]);
  over.abort();
});

test("changes of another session are delivered by notification, and by polling when the notification is lost", async () => {
  const database = await newDatabase();
  await using documents = await open(database);
  const over = new AbortController();
  const batches = documents.changes(0, over.signal)[Symbol.asyncIterator]();
  const byOthers = (key: string, more = "") =>
    server.query(
      // The lock keeps the platform, which reconnects, from changing the epoch between the read and the write.
      `SET search_path = galatea; ${more} SELECT 1 FROM document_feed FOR UPDATE;
       SELECT write_documents((SELECT epoch FROM document_feed), 99,
        '[[{"d":"put","k":"k","i":"${key}","b":"","o":{}}]]', NULL)`,
      database,
    );
  for (const [key, more] of [
    ["notified", ""],
    // Simulates a lost notification: the session has stopped listening.
    ["polled", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%';"],
  ] as const) {
    const next = batches.next();
    await byOthers(key, more);
    const { value } = await next;
    assert.ok(value !== undefined);
    assert.deepEqual(
      (value as ChangeBatch).changes.map((each: { readonly key: string }) => each.key),
      [key],
    );
  }
  over.abort();
});

test("a reader of changes outlives a restart of the database and misses nothing", async () => {
  const database = await newDatabase();
  await using documents = await open(database);
  const over = new AbortController();
  const batches = documents.changes(0, over.signal)[Symbol.asyncIterator]();
  const next = batches.next();
  await server.stop();
  await delay(1500);
  const written = documents.write([put("a", "", "absent")]);
  await server.start();
  const version = await written;
  assert.equal((await next).value?.version, version);
  over.abort();
});

test("a second platform is rejected at once; after the first has closed, or was killed, the second acquires the records", async () => {
  const database = await newDatabase();
  const first = await open(database);
  const beganMs = performance.now();
  await assert.rejects(
    open(database),
    /another platform from 127\.0\.0\.1 uses the records in postgres:\/\/galatea@127\.0\.0\.1:\d+\/faults_\d+; stop it, or use another database/,
  );
  assert.ok(performance.now() - beganMs < 5000);
  await first.write([put("a", "1", "absent")]);
  await first[Symbol.asyncDispose]();
  await using second = await open(database);
  assert.equal((await second.get("k", "a"))?.body, "1");
});

test("a platform whose connection is silent loses the records to another one, and its earlier writes are not applied later", async () => {
  const database = await newDatabase();
  await using network = await FaultyNetwork.open(server.port);
  const first = await open(database, { port: network.port });
  const version = await first.write([put("a", "1", "absent")]);
  network.isSilent = true;
  const late = assert.rejects(first.write([put("a", "late", version), put("b", "late", "absent")]));
  // The database waits 10 s for a message of the first session.
  await using second = await open(database);
  await second.write([put("c", "2", "absent")]);
  network.isSilent = false;
  assert.ok(second.epoch > first.epoch);
  assert.deepEqual([await first.isHolder(), await second.isHolder()], [false, true]);
  assert.match((await first.lost).message, /another platform has taken over the records/);
  await late;
  await assert.rejects(first.write([put("d", "", "absent")]), /another platform has taken over the records/);
  assert.equal((await second.get("k", "a"))?.body, "1");
  assert.equal(await second.get("k", "b"), null);
  await first[Symbol.asyncDispose]();
});

test("a database that has lost acknowledged commits, as an asynchronous standby may, stops the platform", async () => {
  const database = await newDatabase();
  await using documents = await open(database);
  await documents.write([put("a", "1", "absent")]);
  await server.query("UPDATE galatea.document_feed SET version = 0", database);
  await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'
    AND application_name LIKE 'galatea%'`);
  assert.match((await documents.lost).message, /have lost commits: they are of version 0, and 1 was acknowledged/);
});

test("a database that stays away: reads and writes fail as unavailable after seconds, and work again when it is back", async () => {
  const database = await newDatabase();
  const lines: string[] = [];
  const logger = createLogger((level, message) => lines.push(`${level}: ${message}`));
  await using documents = await open(database, { logger });
  const version = await documents.write([put("a", "1", "absent")]);
  await server.stop();
  const beganMs = performance.now();
  const outcomes = await Promise.allSettled([documents.get("k", "a"), documents.write([put("a", "2", version)])]);
  for (const outcome of outcomes) {
    assert.match(String((outcome as PromiseRejectedResult).reason), /DatabaseUnavailable: .*not reachable/);
  }
  assert.ok(performance.now() - beganMs < 10_000);
  await server.start();
  assert.equal((await documents.get("k", "a"))?.body, "1");
  await documents.write([put("a", "3", version)]);
  assert.deepEqual(lines, [
    "warning: the connection to the records is lost; reconnecting",
    "info: connected to the records again",
  ]);
});

test("if the database rejects one of many writes, the others succeed", async () => {
  const database = await newDatabase();
  await using documents = await open(database);
  const texts = ["a", "with a \0", "b", "c"];
  const outcomes = await Promise.allSettled(
    texts.map((text, index) => documents.write([put(`${index}`, text, "absent")])),
  );
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "fulfilled"],
  );
  assert.match(String((outcomes[1] as PromiseRejectedResult).reason), /RecordsError/);
});

test("a key or a value of an order too long for an index is rejected with the reason, and other writes continue", async () => {
  const database = await newDatabase();
  await using documents = await open(database);
  // The text has no repetitions, because the server compresses values before it measures them.
  const long = randomBytes(3000).toString("hex");
  const reason =
    /RecordsError: a document's key or its value in an order is too long for an index of PostgreSQL, which takes about 2,700 bytes/;
  await assert.rejects(documents.write([put(long, "", "absent")]), reason);
  await assert.rejects(
    documents.write([{ ...put("a", "", "absent"), orders: { name: long } } as DocumentChange]),
    reason,
  );
  await documents.write([put(long.slice(0, 2000), long, "absent")]);
  assert.equal(await documents.get("k", "a"), null);
});

test("a connection pooler is rejected at the start, because the lock would belong to the pooler's session", async () => {
  const database = await newDatabase();
  await using pooler = await FakePooler.open(server.port);
  await assert.rejects(
    open(database, { port: pooler.port }),
    /postgres:\/\/galatea@127\.0\.0\.1:\d+\/faults_\d+ is a connection pooler, such as PgBouncer; the lock of the records needs a session of the server itself/,
  );
});

test("a stricter default isolation of the database causes no serialization failure", async () => {
  const database = await newDatabase();
  await server.query(`ALTER DATABASE ${database} SET default_transaction_isolation = 'serializable'`);
  const documents = await open(database);
  const counts = await underFaults(database, documents, () => delay(500));
  assert.equal(total(counts, "failed") + total(counts, "unknown"), 0);
});
