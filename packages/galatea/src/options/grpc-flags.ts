import {
  booleanFlag,
  choiceFlag,
  ignoredFlag,
  integerFlag,
  parsedFlag,
  parsedListFlag,
  portFlag,
  textFlag,
} from "./flag.ts";
import { forwardPattern } from "./forward-pattern.ts";
import { parseRestrictions } from "./restricted-apis.ts";

const oneLoop = "one event loop serves all calls; no thread count is needed";
const restrictedPrefix = "triton-grpc-protocol-";

/** The flags of tritonserver's gRPC front end. */
export const grpcFlags = {
  "allow-grpc": booleanFlag({
    default: true,
    about: "serve KServe v2 over gRPC",
    variable: "SAGEMAKER_TRITON_ALLOW_GRPC",
  }),
  "grpc-address": textFlag({ default: "0.0.0.0", about: "address of the gRPC listener" }),
  "grpc-port": portFlag({
    default: 8001,
    about: "port of the gRPC listener",
    variable: "SAGEMAKER_TRITON_GRPC_PORT",
  }),
  "grpc-header-forward-pattern": parsedFlag(
    {
      default: "",
      about: "regular expression; metadata whose names match, in any case, becomes request parameters",
    },
    forwardPattern,
  ),
  "grpc-infer-thread-count": ignoredFlag(oneLoop, integerFlag({ about: "" })),
  "grpc-infer-allocation-pool-size": ignoredFlag(oneLoop, integerFlag({ about: "" })),
  "grpc-max-response-pool-size": ignoredFlag(
    "flow control bounds the responses that a client has not read yet",
    integerFlag({ about: "" }),
  ),
  "grpc-use-ssl": booleanFlag({ default: false, about: "serve gRPC over TLS" }),
  "grpc-use-ssl-mutual": booleanFlag({
    default: false,
    about: "serve gRPC over TLS, and require certificates of clients",
  }),
  "grpc-server-cert": textFlag({ default: "", about: "the server's certificate, a file in PEM form" }),
  "grpc-server-key": textFlag({ default: "", about: "the server's private key, a file in PEM form" }),
  "grpc-root-cert": textFlag({ default: "", about: "certificates that sign those of clients, in PEM form" }),
  "grpc-infer-response-compression-level": choiceFlag(["none", "low", "medium", "high"], {
    default: "none",
    about: "compression of responses, for clients that accept it",
  }),
  "grpc-keepalive-time": integerFlag({
    unit: "ms",
    default: 7_200_000,
    min: 1,
    about: "interval of pings on a connection with calls",
  }),
  "grpc-keepalive-timeout": integerFlag({
    unit: "ms",
    default: 20_000,
    min: 1,
    about: "how long after a ping without a reply the connection is closed",
  }),
  "grpc-keepalive-permit-without-calls": booleanFlag({
    default: false,
    about: "also ping connections without calls, and allow clients to do so",
  }),
  "grpc-http2-max-pings-without-data": ignoredFlag(
    "the server pings at its keepalive time only",
    integerFlag({ min: 0, about: "" }),
  ),
  "grpc-http2-min-recv-ping-interval-without-data": integerFlag({
    unit: "ms",
    default: 300_000,
    min: 0,
    about: "the shortest interval of a client's pings",
  }),
  "grpc-http2-max-ping-strikes": integerFlag({
    default: 2,
    min: 0,
    about: "pings above that rate before the connection is closed; 0 for any number",
  }),
  "grpc-max-connection-age": integerFlag({
    unit: "ms",
    default: 0,
    min: 0,
    about: "age at which a connection is closed gracefully; 0 for never",
  }),
  "grpc-max-connection-age-grace": integerFlag({
    unit: "ms",
    default: 0,
    min: 0,
    about: "how long the calls of such a connection may take to end; 0 for no limit",
  }),
  "grpc-restricted-protocol": parsedListFlag(
    {
      about: `<api>[,<api>...]:<key>=<value>: these APIs need the metadata ${restrictedPrefix}<key> with this value`,
    },
    (texts, name) => parseRestrictions(name, texts, restrictedPrefix),
  ),
};
