import type { CompressionLevel } from "@galatea/server/protocols";
import type { GrpcOptions } from "../app/index.ts";
import { portMax, UsageError, type Flag, type ParsedFlags } from "./flags.ts";
import { forwardPattern } from "./forward-pattern.ts";
import { parseRestrictions } from "./restricted-apis.ts";

const oneLoop = { accepted: "one event loop serves all calls; no thread count is needed" };
const compressionLevels: Readonly<Record<CompressionLevel, true>> = { none: true, low: true, medium: true, high: true };
const timerMsMax = 2 ** 31 - 1;

/** tritonserver's flags of the gRPC front end. */
export const grpcFlags: readonly Flag[] = [
  { name: "allow-grpc", kind: "boolean", default: true, about: "serve KServe v2 over gRPC" },
  { name: "grpc-address", kind: "string", default: "0.0.0.0", about: "address of the gRPC listener" },
  { name: "grpc-port", kind: "integer", default: 8001, min: 0, max: portMax, about: "port of the gRPC listener" },
  {
    name: "grpc-header-forward-pattern",
    kind: "string",
    default: "",
    about: "regular expression; metadata whose names it finds, in any case, becomes request parameters",
  },
  { name: "grpc-infer-thread-count", kind: "integer", about: "accepted", status: oneLoop },
  { name: "grpc-infer-allocation-pool-size", kind: "integer", about: "accepted", status: oneLoop },
  {
    name: "grpc-max-response-pool-size",
    kind: "integer",
    about: "accepted",
    status: { accepted: "what a client has not read yet is bounded by its flow control window" },
  },
  { name: "grpc-use-ssl", kind: "boolean", default: false, about: "serve gRPC over TLS" },
  { name: "grpc-use-ssl-mutual", kind: "boolean", default: false, about: "the same, and ask clients for certificates" },
  { name: "grpc-server-cert", kind: "string", default: "", about: "the server's certificate, a file in PEM form" },
  { name: "grpc-server-key", kind: "string", default: "", about: "the server's private key, a file in PEM form" },
  {
    name: "grpc-root-cert",
    kind: "string",
    default: "",
    about: "certificates that sign those of clients, in PEM form",
  },
  {
    name: "grpc-infer-response-compression-level",
    kind: "string",
    default: "none",
    about: "none, low, medium or high: how responses are packed for clients that accept it",
  },
  {
    name: "grpc-keepalive-time",
    kind: "integer",
    default: 7_200_000,
    min: 1,
    about: "ms between pings to a connection with calls",
  },
  {
    name: "grpc-keepalive-timeout",
    kind: "integer",
    default: 20_000,
    min: 1,
    about: "ms until a ping without an answer ends its connection",
  },
  {
    name: "grpc-keepalive-permit-without-calls",
    kind: "boolean",
    default: false,
    about: "ping connections without calls too, and let clients do so",
  },
  {
    name: "grpc-http2-max-pings-without-data",
    kind: "integer",
    default: 2,
    min: 0,
    about: "accepted",
    status: { accepted: "the server pings at its keepalive time only" },
  },
  {
    name: "grpc-http2-min-recv-ping-interval-without-data",
    kind: "integer",
    default: 300_000,
    min: 0,
    about: "ms that a client leaves between its pings",
  },
  {
    name: "grpc-http2-max-ping-strikes",
    kind: "integer",
    default: 2,
    min: 0,
    about: "pings that may come too fast before the connection is ended; 0 for any number",
  },
  {
    name: "grpc-max-connection-age",
    kind: "integer",
    default: 0,
    min: 0,
    about: "ms after which a connection is asked to end; 0 for never",
  },
  {
    name: "grpc-max-connection-age-grace",
    kind: "integer",
    default: 0,
    min: 0,
    about: "ms that the calls of such a connection have to end; 0 for as long as they take",
  },
  {
    name: "grpc-restricted-protocol",
    kind: "string",
    repeatable: true,
    about: "<api>[,<api>...]:<key>=<value>: these answer only to calls with the metadata triton-grpc-protocol-<key>",
  },
];

/** Null where gRPC is not to be served. */
export function grpcOptions({ values, lists }: ParsedFlags): GrpcOptions | null {
  if (values.get("allow-grpc") !== true) return null;
  const text = (name: string) => (values.get(name) as string | undefined) ?? "";
  const milliseconds = (name: string) => Math.min(values.get(name) as number, timerMsMax);
  const optionalMs = (name: string) => (milliseconds(name) === 0 ? null : milliseconds(name));
  const level = text("grpc-infer-response-compression-level");
  if (!Object.hasOwn(compressionLevels, level))
    throw new UsageError(
      `invalid argument for --grpc-infer-response-compression-level, got: ${level}; the levels are ${Object.keys(compressionLevels).join(", ")}`,
    );
  return {
    address: text("grpc-address"),
    port: values.get("grpc-port") as number,
    compressionLevel: level as CompressionLevel,
    restrictions: parseRestrictions(
      "grpc-restricted-protocol",
      lists.get("grpc-restricted-protocol") ?? [],
      "triton-grpc-protocol-",
    ),
    tls: tlsFiles(values, text),
    forwardedHeaders: forwardPattern("grpc-header-forward-pattern", text("grpc-header-forward-pattern")),
    keepalive: {
      timeMs: milliseconds("grpc-keepalive-time"),
      timeoutMs: milliseconds("grpc-keepalive-timeout"),
      permitWithoutCalls: values.get("grpc-keepalive-permit-without-calls") === true,
      receivedPingIntervalMinMs: milliseconds("grpc-http2-min-recv-ping-interval-without-data"),
      pingStrikesMax: values.get("grpc-http2-max-ping-strikes") as number,
      connectionAgeMaxMs: optionalMs("grpc-max-connection-age"),
      connectionAgeGraceMs: optionalMs("grpc-max-connection-age-grace"),
    },
  };
}

function tlsFiles(values: ParsedFlags["values"], text: (name: string) => string): GrpcOptions["tls"] {
  const isMutual = values.get("grpc-use-ssl-mutual") === true;
  if (!isMutual && values.get("grpc-use-ssl") !== true) return null;
  for (const name of ["grpc-server-cert", "grpc-server-key", ...(isMutual ? ["grpc-root-cert"] : [])])
    if (text(name) === "") throw new UsageError(`gRPC over TLS needs --${name}`);
  return {
    certificateFile: text("grpc-server-cert"),
    keyFile: text("grpc-server-key"),
    clientRootsFile: isMutual ? text("grpc-root-cert") : null,
  };
}
