/** A gRPC port to attack. When it is run as a program, it prints the port. */
import { fileURLToPath } from "node:url";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { FakeEngine } from "../fake-engine.ts";
import { defaultGrpcLimits } from "../grpc-listener/index.ts";
import { usualKeepalive } from "../grpc-listener/keepalive-fixture.ts";
import { openKserveGrpc } from "./index.ts";

/** Opens a port with the limits of `galatea serve`. Adds the port's warnings to `warnings`. */
export function openTarget(engine: FakeEngine, warnings: string[]) {
  return openKserveGrpc({
    engine,
    address: { host: "127.0.0.1", port: 0 },
    limits: defaultGrpcLimits,
    keepalive: usualKeepalive,
    compressionLevel: "none",
    tls: null,
    clock: systemClock,
    budget: new ByteBudget(2 ** 30),
    logger: { ...silentLogger, warning: (text: string) => void warnings.push(text) },
    restrictions: new Map(),
    forwardedHeaders: null,
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { port } = await openTarget(new FakeEngine(2 ** 26), []);
  process.stdout.write(`${port}\n`);
}
