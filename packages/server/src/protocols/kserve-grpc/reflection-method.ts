import {
  create,
  createRegistry,
  fromBinary,
  toBinary,
  type DescFile,
  type DescService,
  type Registry,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { GrpcError, type Call } from "../grpc-listener/index.ts";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
  type ServerReflectionRequest,
} from "./gen/reflection_v1_pb.js";
import { bufferMessage, type CallHandler } from "./unary-method.ts";

/** Maximum size of a reflection request, which contains one name. */
const requestBytesMax = 64 * 1024;
const notFound = 5;
const unimplemented = 12;

/**
 * Returns the method of gRPC server reflection, which describes this server's services and messages to clients such as grpcurl. The
 * versions v1 and v1alpha of the reflection service differ only in their name.
 */
export function reflectionMethod(services: readonly DescService[]): CallHandler {
  const known = protocolOf(services);
  return (call) =>
    call.receive({
      begin: (byteLength) => {
        if (byteLength > requestBytesMax)
          throw new GrpcError("RESOURCE_EXHAUSTED", `a reflection request has at most ${requestBytesMax} bytes`);
        return bufferMessage(call, byteLength, (bytes, release) => {
          sendResponse(call, bytes, known);
          release();
        });
      },
      halfClosed: () => call.finish("OK"),
    });
}

interface Protocol {
  readonly services: readonly DescService[];
  /** The served files and their imports, by name. */
  readonly files: ReadonlyMap<string, DescFile>;
  readonly types: Registry;
}

function protocolOf(services: readonly DescService[]): Protocol {
  const files = new Map<string, DescFile>();
  for (const { file } of services) for (const each of withImports(file)) files.set(`${each.name}.proto`, each);
  return { services, files, types: createRegistry(...files.values()) };
}

function withImports(file: DescFile): DescFile[] {
  const all = new Map<string, DescFile>();
  const visit = (each: DescFile) => {
    if (all.has(each.name)) return;
    all.set(each.name, each);
    each.dependencies.forEach(visit);
  };
  visit(file);
  return [...all.values()];
}

function sendResponse(call: Call, bytes: Uint8Array, known: Protocol): void {
  const originalRequest = fromBinary(ServerReflectionRequestSchema, bytes);
  const reply = create(ServerReflectionResponseSchema, {
    validHost: originalRequest.host,
    originalRequest,
    messageResponse: respond(originalRequest, known),
  });
  if (call.send([toBinary(ServerReflectionResponseSchema, reply)], () => {})) return;
  call.pause();
  void call.drained().then(() => call.resume());
}

function respond({ messageRequest }: ServerReflectionRequest, { services, files, types }: Protocol) {
  switch (messageRequest.case) {
    case "listServices":
      return {
        case: "listServicesResponse" as const,
        value: { service: services.map(({ typeName: name }) => ({ name })) },
      };
    case "fileByFilename":
      return described(files.get(messageRequest.value), messageRequest.value);
    case "fileContainingSymbol":
      return described(fileOf(messageRequest.value, types), messageRequest.value);
    case "allExtensionNumbersOfType":
      return { case: "allExtensionNumbersResponse" as const, value: { baseTypeName: messageRequest.value } };
    case "fileContainingExtension":
      return failed(notFound, "this server has no protobuf extensions");
    default:
      return failed(unimplemented, "the request is of no kind that this server supports");
  }
}

/** Returns the file that defines a symbol: a type, a service, or a member of one. */
function fileOf(symbol: string, types: Registry): DescFile | undefined {
  const found = types.get(symbol) ?? types.get(symbol.slice(0, Math.max(0, symbol.lastIndexOf("."))));
  return found?.file;
}

/** Returns a file with all its imports, which saves the client further requests. */
function described(file: DescFile | undefined, name: string) {
  if (file === undefined) return failed(notFound, `'${name}' is unknown`);
  const fileDescriptorProto = withImports(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto } };
}

function failed(errorCode: number, errorMessage: string) {
  return { case: "errorResponse" as const, value: { errorCode, errorMessage } };
}
