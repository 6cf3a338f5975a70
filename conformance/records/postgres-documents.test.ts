/** Documents in PostgreSQL pass the same contract tests as documents in SQLite. */
import { after, before } from "node:test";
import { silentLogger } from "@galatea/base";
import { documentsContract } from "@galatea/hosting/records/contracts";
import { openPostgresDocuments, parseDatabaseUrl } from "@galatea/hosting/records/postgres";
import { startPostgres, type PostgresServer } from "../environments/index.ts";

for (const release of ["oldest", "newest"] as const) {
  let server: PostgresServer;
  let count = 0;
  before(async () => {
    server = await startPostgres(release);
  });
  after(() => server[Symbol.asyncDispose]());

  documentsContract(`documents in the ${release} PostgreSQL`, async (limits) => {
    const database = `subject_${(count += 1)}`;
    await server.createDatabase(database);
    const options = { address: parseDatabaseUrl(server.url(database)), logger: silentLogger, ...limits };
    let documents = await openPostgresDocuments(options);
    return {
      documents,
      async reopen() {
        await documents[Symbol.asyncDispose]();
        documents = await openPostgresDocuments(options);
        return documents;
      },
      async [Symbol.asyncDispose]() {
        await documents[Symbol.asyncDispose]();
      },
    };
  });
}
