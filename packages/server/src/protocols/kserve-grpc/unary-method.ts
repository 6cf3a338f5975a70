import {
  create,
  fromBinary,
  toBinary,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { BufferedMessage, GrpcError, type Call, type MessageSink } from "../grpc-listener/index.ts";

/** A function that handles one call of a gRPC method. */
export type CallHandler = (call: Call) => void;

/**
 * Returns a handler that reads the request message to a buffer and sends one response. Only loads with model files have large request
 * messages.
 */
export function unaryMethod<const Method extends DescMethod>(
  method: Method,
  sendResponse: (
    request: MessageShape<Method["input"]>,
    call: Call,
  ) => MessageInitShape<Method["output"]> | Promise<MessageInitShape<Method["output"]>>,
): CallHandler {
  return (call) => {
    let hasStarted = false;
    call.receive({
      begin: (byteLength) => {
        if (hasStarted) throw tooMany();
        hasStarted = true;
        return bufferMessage(call, byteLength, (bytes) => {
          respond(call, method, bytes, sendResponse).catch((error: unknown) => call.fail(error));
        });
      },
      halfClosed: () => {
        if (!hasStarted) throw new GrpcError("INTERNAL", "the method takes one request message; none was sent");
      },
    });
  };
}

async function respond<Method extends DescMethod>(
  call: Call,
  method: Method,
  bytes: Uint8Array,
  sendResponse: (
    request: MessageShape<Method["input"]>,
    call: Call,
  ) => MessageInitShape<Method["output"]> | Promise<MessageInitShape<Method["output"]>>,
): Promise<void> {
  const reply = create(method.output, await sendResponse(parse(method, bytes), call));
  await call.sendCompressed([toBinary(method.output, reply)], () => {});
  call.finish("OK");
}

function parse<Method extends DescMethod>(method: Method, bytes: Uint8Array): MessageShape<Method["input"]> {
  try {
    return fromBinary(method.input, bytes) as MessageShape<Method["input"]>;
  } catch (error) {
    throw new GrpcError("INTERNAL", `the request message is not valid protobuf: ${(error as Error).message}`);
  }
}

function tooMany(): GrpcError {
  return new GrpcError("INTERNAL", "the method takes one request message; a second one was sent");
}

/**
 * Collects a message in one buffer. The buffer is charged to the call until `release` is called or the call has ended, because parsed
 * values may refer to it.
 */
export function bufferMessage(
  call: Call,
  byteLength: number,
  done: (bytes: Uint8Array, release: () => void) => void,
): MessageSink {
  const gathered = new BufferedMessage(byteLength, call.memory);
  return {
    write: (chunk) => gathered.write(chunk),
    end: () => done(gathered.bytes, () => call.memory.shrinkBy(gathered.heldBytes)),
  };
}
