import { setTimeout as sleep } from "node:timers/promises";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import {
  defaultGrpcLimits,
  BufferedMessage,
  GrpcError,
  openGrpcListener,
  type Call,
  type GrpcTls,
} from "@galatea/server/protocols/grpc-listener";
import { usualKeepalive } from "../../packages/server/src/protocols/grpc-listener/keepalive-fixture.ts";
import { grpcStatus, type GrpcStatus } from "../../packages/server/src/protocols/grpc-listener/status.ts";
import type { Listener } from "../../packages/server/src/protocols/listener.ts";
import {
  readInputBytes,
  readSimpleRequest,
  readStreamingRequest,
  writeAggregate,
  writePayload,
  type InteropRequest,
} from "./interop-messages.ts";

type BeginCall = (call: Call) => void;

/** gRPC's own test service on our listener, so that gRPC's interop clients test the listener and not the models. */
export function openInteropService(tls: GrpcTls | null): Promise<Listener> {
  return openGrpcListener({
    address: { host: "127.0.0.1", port: 0 },
    limits: defaultGrpcLimits,
    keepalive: usualKeepalive,
    compressionLevel: "none",
    tls,
    clock: systemClock,
    budget: new ByteBudget(2 ** 30),
    logger: silentLogger,
    method: (path) => methods.get(path) ?? null,
  });
}

/** UnimplementedCall and UnimplementedService are missing, as their cases require. */
const methods: ReadonlyMap<string, BeginCall> = new Map([
  ["/grpc.testing.TestService/EmptyCall", onEach(async (call) => void call.send([], () => {}))],
  ["/grpc.testing.TestService/UnaryCall", onEach(answerUnary)],
  ["/grpc.testing.TestService/StreamingOutputCall", onEach(answerStream)],
  ["/grpc.testing.TestService/FullDuplexCall", onEach(answerStream)],
  ["/grpc.testing.TestService/StreamingInputCall", sumOfInputs],
]);

/** Responds to the messages one after another. The call ends when the client has half-closed and every message has its response. */
function onEach(respond: (call: Call, message: Uint8Array) => Promise<void>): BeginCall {
  return (call) => {
    let last = Promise.resolve();
    receiveWhole(call, {
      message: (bytes) => {
        last = last.then(() => respond(call, bytes));
        last.catch((error: unknown) => call.fail(error));
      },
      end: () => void last.then(() => call.finish("OK")).catch(() => {}),
    });
  };
}

function sumOfInputs(call: Call): void {
  let sum = 0;
  receiveWhole(call, {
    message: (bytes) => (sum += readInputBytes(bytes)),
    end: () => {
      call.send([writeAggregate(sum)], () => {});
      call.finish("OK");
    },
  });
}

async function answerUnary(call: Call, message: Uint8Array): Promise<void> {
  const request = readSimpleRequest(message);
  throwAsked(request);
  call.send([writePayload(request.responseBytes)], () => {});
}

async function answerStream(call: Call, message: Uint8Array): Promise<void> {
  const request = readStreamingRequest(message);
  throwAsked(request);
  for (const { bytes, intervalUs } of request.responses) {
    // The client requests the pause; a call that has ended is not delayed.
    if (intervalUs > 0) await sleep(intervalUs / 1000, null, { signal: call.signal });
    if (!call.send([writePayload(bytes)], () => {})) await call.drained();
  }
}

function throwAsked({ status }: InteropRequest): void {
  if (status === null || status.code === 0) return;
  const name = (Object.keys(grpcStatus) as GrpcStatus[]).find((each) => grpcStatus[each] === status.code);
  throw new GrpcError(name ?? "UNKNOWN", status.message);
}

function receiveWhole(call: Call, on: { message: (bytes: Uint8Array) => void; end: () => void }): void {
  call.receive({
    begin: (byteLength) => {
      const gathered = new BufferedMessage(byteLength, call.memory);
      return {
        write: (chunk) => gathered.write(chunk),
        end: () => {
          on.message(gathered.bytes);
          call.memory.shrinkBy(gathered.heldBytes);
        },
      };
    },
    halfClosed: on.end,
  });
}
