/** The real gateway over a directory, for clients in tests. Prints its URL; ends with its standard input. Options are one JSON argument. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createGateway, s3Service } from "@galatea/aws";
import { createLogger } from "@galatea/base";
import { openDirectoryStore } from "@galatea/hosting/objects";

interface ServerArguments {
  readonly folder: string;
  readonly domain?: string;
  /** Access key and secret; if they are set, signatures are verified. */
  readonly key?: readonly [string, string];
}

const input = JSON.parse(process.argv[2] ?? "{}") as ServerArguments;
const logger = createLogger((level, message, fields) => console.error(level, message, JSON.stringify(fields ?? {})));
const store = await openDirectoryStore({ folder: input.folder, logger });
const key = input.key;
const gateway = createGateway({
  services: [s3Service({ store, s3Domain: input.domain ?? null })],
  credentials:
    key === undefined
      ? null
      : (id) =>
          id === key[0]
            ? {
                accessKeyId: id,
                secretAccessKey: key[1],
                sessionToken: null,
                accountId: "111122223333",
                expiresMs: null,
              }
            : undefined,
  regionDefault: "us-east-1",
  accountIdDefault: "111122223333",
  logger,
});
// The platform's value: with Node's five seconds a client's pooled connection may be closed just when it is reused.
const server = createServer({ requestTimeout: 0, keepAliveTimeout: 75_000 });
gateway.attach(server);
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.stdin.resume();
process.stdin.once("end", () => process.exit(0));
