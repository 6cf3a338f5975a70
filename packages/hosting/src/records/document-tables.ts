import type { ChangedDocument, DocumentChange, DocumentPage, DocumentQuery } from "./documents.ts";
import type { Migration, SqlValue, Statement } from "./statement.ts";

/** `document_gone` has the newest deletions. `document_feed` has the version up to which deletions were forgotten. */
export const documentMigrations: readonly Migration[] = [
  {
    id: "documents-1",
    // Not `WITHOUT ROWID`, because long bodies would make the tree of keys inefficient.
    sql: `CREATE TABLE document (
      kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, key)
    ) STRICT;
    CREATE INDEX document_by_version ON document (version);
    CREATE TABLE document_order (
      kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, key TEXT NOT NULL,
      PRIMARY KEY (kind, name, value, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX document_order_by_key ON document_order (kind, key);
    CREATE TABLE document_gone (
      kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX document_gone_by_version ON document_gone (version);
    CREATE TABLE document_feed (one INTEGER PRIMARY KEY CHECK (one = 1), forgotten_version INTEGER NOT NULL) STRICT;
    INSERT INTO document_feed VALUES (1, 0)`,
  },
];

/** Selects the last version: the highest version of documents, deletions and forgotten deletions. */
export const lastVersionSql = `SELECT MAX(
    (SELECT COALESCE(MAX(version), 0) FROM document),
    (SELECT COALESCE(MAX(version), 0) FROM document_gone),
    (SELECT forgotten_version FROM document_feed)
  ) AS version`;

/** Returns the statements of one change. One of them fails if the document differs from `expects`. */
export function changeStatements(change: DocumentChange, version: number): readonly Statement[] {
  const { kind, key } = change;
  const location = [kind, key] as const;
  if (change.do === "check") {
    const sql = "UPDATE document SET version = version WHERE kind = ? AND key = ? AND version = ?";
    return [{ sql, values: [...location, change.expects], changes: 1 }];
  }
  const withoutOrders = { sql: "DELETE FROM document_order WHERE kind = ? AND key = ?", values: location };
  if (change.do === "delete") {
    const tombstone: Statement = {
      sql: "INSERT OR REPLACE INTO document_gone SELECT kind, key, ? FROM document WHERE kind = ? AND key = ?",
      values: [version, ...location],
    };
    const sql = "DELETE FROM document WHERE kind = ? AND key = ?";
    const deletion: Statement =
      change.expects === "any"
        ? { sql, values: location }
        : { sql: `${sql} AND version = ?`, values: [...location, change.expects], changes: 1 };
    return [tombstone, deletion, withoutOrders];
  }
  const ordered = Object.entries(change.orders ?? {}).map(([name, value]) => ({
    sql: "INSERT INTO document_order VALUES (?, ?, ?, ?)",
    values: [kind, name, value, key],
  }));
  const back = { sql: "DELETE FROM document_gone WHERE kind = ? AND key = ?", values: location };
  return [putStatement(change, version), withoutOrders, ...ordered, back];
}

function putStatement(
  { kind, key, body, expects }: Extract<DocumentChange, { readonly do: "put" }>,
  version: number,
): Statement {
  const insert = "INSERT INTO document (kind, key, version, body) VALUES (?, ?, ?, ?) ON CONFLICT DO";
  const values = [kind, key, version, body];
  if (expects === "absent") return { sql: `${insert} NOTHING`, values, changes: 1 };
  if (expects === "any") {
    return { sql: `${insert} UPDATE SET version = excluded.version, body = excluded.body`, values };
  }
  const sql = "UPDATE document SET version = ?, body = ? WHERE kind = ? AND key = ? AND version = ?";
  return { sql, values: [version, body, kind, key, expects], changes: 1 };
}

/** The last Unicode character. Appended to a prefix, it sorts after all texts with this prefix. */
const lastCharacter = "\u{10ffff}";

/** Returns the query of a page. It reads one more row than requested, to detect if there are more. */
export function listStatement({ kind, order, isDescending, prefix = "", after, limit }: DocumentQuery): {
  readonly sql: string;
  readonly values: readonly SqlValue[];
} {
  const direction = isDescending ? "DESC" : "ASC";
  const excess = isDescending ? "<" : ">";
  const [value, from] =
    order === null
      ? ["document.key", "document WHERE document.kind = ?"]
      : [
          "document_order.value",
          `document_order JOIN document ON document.kind = document_order.kind AND document.key = document_order.key
            WHERE document_order.kind = ? AND document_order.name = ?`,
        ];
  const key = order === null ? "document.key" : "document_order.key";
  const conditions = [
    ...(prefix === "" ? [] : [`${value} >= ?`, `${value} < ?`]),
    ...(after === null ? [] : [`(${value}, ${key}) ${excess} (?, ?)`]),
  ];
  const sql = `SELECT ${value} AS value, document.key, document.version, document.body FROM ${from}
    ${conditions.map((each) => `AND ${each}`).join(" ")} ORDER BY ${value} ${direction}, ${key} ${direction} LIMIT ?`;
  const values = [
    kind,
    ...(order === null ? [] : [order]),
    ...(prefix === "" ? [] : [prefix, prefix + lastCharacter]),
    ...(after === null ? [] : [after.value, after.key]),
    limit + 1,
  ];
  return { sql, values };
}

/** Selects the current state of documents that changed in a range of versions. */
export const changesSql = `SELECT kind, key, version, body FROM document WHERE version > ?1 AND version <= ?2
  UNION ALL SELECT kind, key, version, NULL FROM document_gone WHERE version > ?1 AND version <= ?2
  ORDER BY version, kind, key`;

/** Selects the version of the last change in a batch; no row if the batch is not full. */
export const batchEndSql = `SELECT version FROM (
    SELECT version FROM document WHERE version > ?1 UNION ALL SELECT version FROM document_gone WHERE version > ?1
  ) ORDER BY version LIMIT 1 OFFSET ?2`;

type Row = Readonly<Record<string, SqlValue>>;

/** Converts the rows of `listStatement` to a page. */
export function pageOfRows({ kind, limit }: Pick<DocumentQuery, "kind" | "limit">, rows: readonly Row[]): DocumentPage {
  const documents = rows.slice(0, limit).map((row) => ({
    kind,
    key: String(row["key"]),
    version: Number(row["version"]),
    body: String(row["body"]),
    value: String(row["value"]),
  }));
  const last = documents.at(-1);
  const next = rows.length > limit && last !== undefined ? { value: last.value, key: last.key } : null;
  return { documents, next };
}

/** Converts a row of `changesSql` to a change. */
export function changedDocument(row: Row): ChangedDocument {
  const changed = { kind: String(row["kind"]), key: String(row["key"]), version: Number(row["version"]) };
  const body = row["body"];
  return { ...changed, document: body === null ? null : { ...changed, body: String(body) } };
}
