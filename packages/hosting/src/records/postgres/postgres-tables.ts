import type { Migration } from "../statement.ts";
import { takenCode } from "./database-errors.ts";

/** The schema that contains all tables of a platform. */
export const schemaName = "galatea";

/** The channel on which `write_documents` notifies sessions of each new version. */
export const changedChannel = "galatea_documents";

/** The advisory lock that the writing platform holds. */
export const holderLock = { classId: 0x67_61_6c_61, objectId: 1 } as const;

/**
 * Creates the same tables as in SQLite. Texts are sorted by their UTF-8 bytes (collation C). Each write locks the only row of
 * `document_feed` until its commit, so that versions are committed in order and readers of changes miss none. `holder` and `epoch`
 * identify the session that may write. `batch` and `results` describe its last commit; the holder's next session reads them if the
 * response was lost. Each write of metrics locks the row of `metric_holder`, and fails if it names another platform. Locking
 * `document_feed` instead would delay documents.
 */
export const postgresMigrations: readonly Migration[] = [
  {
    id: "documents-1",
    sql: `CREATE TABLE document (
      kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, body text NOT NULL,
      PRIMARY KEY (kind, key)
    );
    CREATE INDEX document_by_version ON document (version);
    CREATE TABLE document_order (
      kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, value text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL, PRIMARY KEY (kind, name, value, key)
    );
    CREATE INDEX document_order_by_key ON document_order (kind, key);
    CREATE TABLE document_gone (
      kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, PRIMARY KEY (kind, key)
    );
    CREATE INDEX document_gone_by_version ON document_gone (version);
    CREATE TABLE document_feed (
      one int PRIMARY KEY CHECK (one = 1), version bigint NOT NULL, forgotten_version bigint NOT NULL,
      holder text NOT NULL, epoch bigint NOT NULL, batch bigint NOT NULL, results jsonb NOT NULL
    ) WITH (fillfactor = 20);
    INSERT INTO document_feed VALUES (1, 0, 0, '', 0, 0, '[]');
    CREATE FUNCTION write_documents(holder_epoch bigint, batch_number bigint, writes jsonb, gone_kept int) RETURNS jsonb
    LANGUAGE plpgsql AS $$
    DECLARE
      feed document_feed%ROWTYPE;
      changes jsonb;
      failed bigint;
      new_results jsonb := '[]';
    BEGIN
      SELECT * INTO feed FROM document_feed FOR UPDATE;
      IF feed.epoch <> holder_epoch THEN
        RAISE EXCEPTION 'another session writes the records' USING ERRCODE = '${takenCode}';
      END IF;
      FOR changes IN SELECT value FROM jsonb_array_elements(writes) LOOP
        SELECT c.n - 1 INTO failed
          FROM ROWS FROM (jsonb_to_recordset(changes) AS (k text, i text, e bigint)) WITH ORDINALITY AS c(k, i, e, n)
          LEFT JOIN document d ON d.kind = c.k AND d.key = c.i
          WHERE c.e <> coalesce(d.version, 0) ORDER BY c.n LIMIT 1;
        IF FOUND THEN
          new_results := new_results || jsonb_build_object('conflict', failed);
          CONTINUE;
        END IF;
        feed.version := feed.version + 1;
        DELETE FROM document_order o USING jsonb_to_recordset(changes) AS c(d text, k text, i text)
          WHERE c.d <> 'check' AND o.kind = c.k AND o.key = c.i;
        INSERT INTO document SELECT c.k, c.i, feed.version, c.b
          FROM jsonb_to_recordset(changes) AS c(d text, k text, i text, b text) WHERE c.d = 'put'
          ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version, body = excluded.body;
        INSERT INTO document_order SELECT c.k, o.key, o.value, c.i
          FROM jsonb_to_recordset(changes) AS c(d text, k text, i text, o jsonb), jsonb_each_text(c.o) AS o
          WHERE c.d = 'put';
        DELETE FROM document_gone g USING jsonb_to_recordset(changes) AS c(d text, k text, i text)
          WHERE c.d = 'put' AND g.kind = c.k AND g.key = c.i;
        WITH gone AS (
          DELETE FROM document d USING jsonb_to_recordset(changes) AS c(d text, k text, i text)
            WHERE c.d = 'delete' AND d.kind = c.k AND d.key = c.i RETURNING d.kind, d.key
        ) INSERT INTO document_gone SELECT kind, key, feed.version FROM gone
          ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version;
        new_results := new_results || to_jsonb(feed.version);
      END LOOP;
      IF gone_kept IS NOT NULL THEN
        feed.forgotten_version := greatest(feed.forgotten_version,
          coalesce((SELECT version FROM document_gone ORDER BY version DESC LIMIT 1 OFFSET gone_kept), 0));
        DELETE FROM document_gone WHERE version <= feed.forgotten_version;
      END IF;
      UPDATE document_feed SET version = feed.version, forgotten_version = feed.forgotten_version,
        batch = batch_number, results = new_results;
      PERFORM pg_notify('${changedChannel}', feed.version::text);
      RETURN new_results;
    END $$;`,
  },
  {
    id: "metrics-1",
    sql: `CREATE TABLE metric_series (number bigint PRIMARY KEY, body text NOT NULL);
    CREATE TABLE metric_block (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, period_ms bigint NOT NULL, start_ms bigint NOT NULL,
      byte_count int NOT NULL, points bytea NOT NULL
    );
    CREATE INDEX metric_block_by_time ON metric_block (period_ms, start_ms, byte_count);
    CREATE TABLE metric_holder (one int PRIMARY KEY CHECK (one = 1), holder text NOT NULL);
    INSERT INTO metric_holder VALUES (1, '')`,
  },
];

export const writeSql = "SELECT write_documents($1, $2, $3, $4) AS results";

/**
 * Makes a session the only one that may write. `$2`: true to replace another holder, whose last batch is then forgotten.
 * The epoch follows the time in milliseconds, so that it also increases after a restore of an older copy of the database.
 */
export const takeSql = `UPDATE document_feed SET holder = $1, batch = CASE WHEN $2 THEN 0 ELSE batch END,
    epoch = greatest(epoch + 1, floor(1000 * extract(epoch FROM clock_timestamp()))::bigint)
  WHERE $2 OR holder = $1
  RETURNING epoch, batch, results, version, (SELECT count(*) FROM document_gone) AS tombstone_count`;

/** Makes `$1` the holder of the metrics. Returns no row if `$1` does not hold the documents. */
export const takeMetricsSql = `UPDATE metric_holder SET holder = $1
  WHERE $1 = (SELECT holder FROM document_feed FOR SHARE)`;

/** Locks the right to write metrics until the end of the transaction. Returns no row if another platform holds the metrics. */
export const lockMetricsSql = "SELECT 1 FROM metric_holder WHERE holder = $1 FOR UPDATE";

export const tryLockSql = `SELECT pg_try_advisory_lock(${holderLock.classId}, ${holderLock.objectId}) AS locked`;

/** Selects the session that holds the lock. Details of sessions of other users are null. */
export const lockHolderSql = `SELECT pid, a.application_name, host(a.client_addr) AS address, a.state_change
  FROM pg_locks l JOIN pg_stat_activity a USING (pid)
  WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.database = a.datid
    AND l.classid = ${holderLock.classId} AND l.objid = ${holderLock.objectId}`;

/** Selects the address of the session that holds the lock. A replica (`is_in_recovery`) does not see locks of its primary. */
export const lockStateSql = `SELECT pg_is_in_recovery() AS is_in_recovery, holder.pid IS NOT NULL AS is_held, holder.address
  FROM (VALUES (1)) AS one LEFT JOIN (${lockHolderSql}) AS holder ON true`;

export const endOwnSessionsSql = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = $1 AND pid <> pg_backend_pid()`;

/** Selects the version at the end of a batch: the version of its last row, or the current version if the batch is not full. */
export const feedEndSql = `SELECT coalesce((SELECT version FROM (
    SELECT version FROM document WHERE version > $1 UNION ALL SELECT version FROM document_gone WHERE version > $1
  ) AS changed ORDER BY version LIMIT 1 OFFSET $2), feed.version) AS version FROM document_feed feed`;

export const forgottenSql = "SELECT forgotten_version AS number FROM document_feed";

export const versionSql = "SELECT version AS number FROM document_feed";

/** Replaces SQLite's placeholders by PostgreSQL's. */
export function withNumberedPlaceholders(sql: string): string {
  let count = 0;
  return sql.replace(/\?(\d*)/g, (_, number: string) => `$${number === "" ? (count += 1) : number}`);
}
