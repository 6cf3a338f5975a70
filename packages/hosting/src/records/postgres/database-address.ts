import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import type { ClientConfig } from "pg";

/** The address of a PostgreSQL database, from its URL. */
export interface DatabaseAddress {
  readonly config: ClientConfig;
  /** The URL without password and parameters, for error messages and logs. */
  readonly shown: string;
}

const parameters = ["host", "sslmode", "sslrootcert", "sslcert", "sslkey"] as const;
const tlsModes = ["disable", "require", "verify-ca", "verify-full"] as const;
type TlsMode = (typeof tlsModes)[number];

/** An example of a URL, for error messages. */
const form = "postgres://user:password@host:5432/database?sslmode=verify-full";

/**
 * Parses `postgres://user:password@host:port/database`. Missing fields default to the variables and the password file of
 * libpq (`PGPASSWORD`, `~/.pgpass`). Throws an error whose text does not contain the password.
 */
export function parseDatabaseUrl(text: string): DatabaseAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  const [, hosts = ""] = /^postgres(?:ql)?:\/\/(?:[^/]*@)?([^/?]*)/.exec(text) ?? [];
  if (hosts.includes(",") || url?.searchParams.get("host")?.includes(",") === true) {
    throw new Error("a database URL names one host: use the name or address that follows the primary in a failover");
  }
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol)) {
    throw new Error(`the URL of a database has to be like ${form}`);
  }
  const unknown = [...url.searchParams.keys()].find((name) => !parameters.some((each) => each === name));
  if (unknown !== undefined) {
    throw new Error(`unknown parameter '${unknown}' of a database URL; there are ${parameters.join(", ")}`);
  }
  const of = (name: (typeof parameters)[number]) => url.searchParams.get(name);
  const host = of("host") ?? decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, "$1");
  const database = decodeURIComponent(url.pathname.slice(1));
  if (host === "" || database === "") throw new Error(`a database URL needs a host and a database, like ${form}`);
  const user = decodeURIComponent(url.username);
  const password = decodeURIComponent(url.password);
  const config: ClientConfig = {
    host,
    database,
    ...(url.port === "" ? {} : { port: Number(url.port) }),
    ...(user === "" ? {} : { user }),
    ...(password === "" ? {} : { password }),
    ssl: tlsOptions(host, of),
  };
  const at = user === "" ? "" : `${user}@`;
  return { config, shown: `postgres://${at}${host}${url.port === "" ? "" : `:${url.port}`}/${database}` };
}

/**
 * Returns the TLS options of an `sslmode`, as libpq defines them. `allow` and `prefer` are rejected, because they fall
 * back to plain text. The default verifies the server, or disables TLS for a Unix socket.
 */
function tlsOptions(
  host: string,
  of: (name: "sslmode" | "sslrootcert" | "sslcert" | "sslkey") => string | null,
): ConnectionOptions | false {
  const input = of("sslmode") ?? (host.startsWith("/") ? "disable" : "verify-full");
  const mode: TlsMode | undefined = tlsModes.find((each) => each === input);
  if (mode === undefined) {
    throw new Error(`sslmode '${input}' of a database URL is not one of ${tlsModes.join(", ")}`);
  }
  if (mode === "disable") return false;
  const [ca, cert, key] = [of("sslrootcert"), of("sslcert"), of("sslkey")].map(readPem);
  return {
    // With a root certificate, `require` verifies the chain like `verify-ca`, as libpq does.
    rejectUnauthorized: mode !== "require" || ca !== undefined,
    ...(mode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

/** Reads a PEM file. As in libpq, `system` stands for the certificate authorities that are trusted by default. */
function readPem(path: string | null): string | undefined {
  return path === null || path === "system" ? undefined : readFileSync(path, "utf8");
}
