import { documentMigrations } from "./document-tables.ts";
import { metricMigrations } from "./metric-tables.ts";
import type { Migration } from "./statement.ts";

/** What `orderedBy` writes, of a record of an earlier release; a body that is no JSON is in no order. */
const recordOrders = `INSERT INTO document_order
  SELECT kind, order_name, value, key FROM (
    SELECT document.kind, document.key, orders.name AS order_name, CASE WHEN json_valid(body) THEN CASE orders.name
      WHEN 'name' THEN json_extract(body, '$.name')
      WHEN 'created' THEN printf('%015d', json_extract(body, '$.createdMs')) || ' ' || json_extract(body, '$.name')
      ELSE json_extract(body, '$.state.at') || ' ' || json_extract(body, '$.name')
    END END AS value
    FROM document JOIN (SELECT 'name' AS name UNION ALL SELECT 'created' UNION ALL SELECT 'status') AS orders
    WHERE document.kind IN ('model', 'endpoint-config', 'endpoint')
  ) WHERE typeof(value) = 'text'`;

/** Migrations of the database of the documents, from the tables of earlier releases on. */
export const recordMigrations: readonly Migration[] = [
  {
    id: "hosting-1",
    sql: `CREATE TABLE hosting_record (
      kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID`,
  },
  // Metrics were kept here; now they have a database of their own.
  ...metricMigrations,
  { id: "hosting-2", sql: "DROP TABLE metric_block; DROP TABLE metric_series" },
  ...documentMigrations,
  {
    id: "hosting-3",
    sql: `INSERT INTO document (kind, key, version, body)
      SELECT kind, key, ROW_NUMBER() OVER (ORDER BY kind, key), body FROM hosting_record;
    ${recordOrders};
    DROP TABLE hosting_record`,
  },
];
