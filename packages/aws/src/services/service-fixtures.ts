import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { silentLogger, type Clock } from "@galatea/base";
import { createGateway, type GatewayOptions } from "../wire/index.ts";

/** A clock that a test advances. It starts at the current time, because clients sign with the time of the machine. */
export class ManualClock implements Clock {
  nowMs = Math.floor(Date.now() / 60_000) * 60_000;
  epochMs(): number {
    return this.nowMs;
  }
  monotonicNs(): number {
    return this.nowMs * 1e6;
  }
  timer(): Disposable {
    return { [Symbol.dispose]() {} };
  }
}

export interface ServedGateway extends AsyncDisposable {
  /** Options for the constructor of any SDK client. */
  readonly client: {
    readonly endpoint: string;
    readonly region: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
    readonly maxAttempts: number;
  };
}

/** Serves the services under test through a real gateway on a real port. */
export async function serveServices(
  services: GatewayOptions["services"],
  credentials: GatewayOptions["credentials"] = null,
): Promise<ServedGateway> {
  const server = createServer();
  createGateway({
    services,
    credentials,
    regionDefault: "us-east-1",
    accountIdDefault: "111122223333",
    logger: silentLogger,
  }).attach(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    client: {
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: "us-east-1",
      credentials: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" },
      maxAttempts: 1,
    },
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
