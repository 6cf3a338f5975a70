import { inferenceCodes, type InferenceCode, type InferenceReason } from "@galatea/base";
import type { SignatureFailureReason } from "@galatea/aws/signing";
import type { ModelledService } from "@galatea/aws/wire";
import { signatureCodes } from "../../packages/aws/src/wire/errors.ts";
import { grpcStatusOfReason, statusOfInferenceCode } from "../../packages/server/src/protocols/grpc-listener/status.ts";
import { statusOfCode, statusOfReason } from "../../packages/server/src/protocols/http-listener/reply.ts";
import { serviceRows } from "../aws-services.ts";
import { codeSpan, markdownTable, referencePage } from "./markdown.ts";

/** The cause of an error, and the action for its reader. */
interface Explanation {
  readonly cause: string;
  readonly fix: string;
}

const codes: Readonly<Record<InferenceCode, Explanation>> = {
  UNKNOWN: {
    cause: "a model returned a `TritonError` with this code",
    fix: "read the message and the server's log",
  },
  INTERNAL: {
    cause: "the model's code raised an exception, its process ended, or JSON of the request has an unexpected type",
    fix: "read the traceback in the message or in the server's log; correct the model or the request",
  },
  NOT_FOUND: {
    cause: "the model, its version or a shared memory region does not exist",
    fix: "`POST /v2/repository/index` lists the models; check name, version and `--load-model`",
  },
  INVALID_ARG: {
    cause: "an input is missing or has another datatype or shape, or a configuration is invalid",
    fix: "correct what the message names; `GET /v2/models/NAME` describes the inputs, `galatea validate` checks configurations",
  },
  UNAVAILABLE: {
    cause:
      "the server starts or stops, the model is not loaded, its queue is full, or the request waited for longer than its limit",
    fix: "retry with backoff; raise `max_queue_size`, the timeout or the number of instances if it lasts",
  },
  UNSUPPORTED: {
    cause: "the request or the configuration uses a feature that is not implemented",
    fix: "leave out what the message names; see [config.pbtxt](config-pbtxt.md) and [flags](flags.md)",
  },
  ALREADY_EXISTS: {
    cause: "a model or a repository of that name is registered",
    fix: "unload or unregister it first, or choose another name",
  },
  CANCELLED: { cause: "the client closed its connection or cancelled the call", fix: "raise the client's timeout" },
};

const reasons: Readonly<Partial<Record<InferenceReason, Explanation>>> = {
  "memory-full": {
    cause: "requests in flight use all memory for requests",
    fix: "retry after the seconds of the header `Retry-After`; send fewer requests at once",
  },
  "memory-exceeded": {
    cause: "one request is larger than the memory for requests",
    fix: "split the batch, or raise the memory limit of the server",
  },
};

const signatures: Readonly<Record<SignatureFailureReason, Explanation>> = {
  missing: { cause: "the request has no signature", fix: 'run `eval "$(galatea env)"` in the shell of the client' },
  malformed: {
    cause: "the Authorization header or a query parameter of a signature is malformed",
    fix: "use an AWS SDK",
  },
  "unknown-key": {
    cause: "the access key is none of this platform's",
    fix: 'run `eval "$(galatea env)"` again: the client has keys of AWS or of another platform',
  },
  "bad-token": { cause: "the session token is not the one of the key", fix: "get new credentials from STS" },
  mismatch: {
    cause: "the secret key is wrong, or something changed the request on its way",
    fix: 'run `eval "$(galatea env)"` again; let a proxy leave host, path and headers as they are',
  },
  "unsigned-headers": { cause: "headers that must be signed are not", fix: "sign the headers that the message names" },
  "wrong-service": {
    cause: "the request was signed for another service",
    fix: "sign it for the service that it calls",
  },
  expired: { cause: "the credentials or the presigned URL are no longer valid", fix: "get new ones" },
  skewed: { cause: "the clocks of client and platform differ by minutes", fix: "synchronize the clocks" },
};

/** Returns the page of errors, from the tables of codes and statuses of the protocols. */
export async function errorsPage(): Promise<string> {
  const services = (await serviceRows()).filter((each): each is ModelledService => each.kind === "modelled");
  return referencePage(
    "Errors",
    "Messages say what is wrong and where. Clients distinguish errors by code and status.",
    [
      `## Inference\n\nOver HTTP the body is \`{"error": message}\`, over gRPC the message is the status text. A load error begins with the code's text.\n\n${inferenceTable()}`,
      `## Inference: memory\n\n${reasonsTable()}`,
      `## AWS: signatures\n\nStatus 403, and 400 for a malformed signature.\n\n${signaturesTable()}`,
      "## AWS: codes of each service\n\nThe codes of the published service models. Invalid input has the code of the last column, and its message names the member.",
      markdownTable(
        ["service", "codes", "invalid input"],
        services.map(({ model, validationCodes }) => [
          model.service,
          Object.entries(model.errors).map(errorText).join(", "),
          [...new Set([validationCodes.json, validationCodes.query])].map(codeSpan).join(", "),
        ]),
      ),
    ],
  );
}

function errorText([name, { code, status, fault }]: [string, ModelledService["model"]["errors"][string]]): string {
  return `${codeSpan(code ?? name)} (${status ?? (fault === true ? 500 : 400)})`;
}

function inferenceTable(): string {
  return markdownTable(
    ["code", "HTTP", "gRPC", "cause", "what to do"],
    inferenceCodes.map((code) => [
      codeSpan(code),
      String(statusOfCode[code]),
      codeSpan(statusOfInferenceCode[code]),
      codes[code].cause,
      codes[code].fix,
    ]),
  );
}

function reasonsTable(): string {
  return markdownTable(
    ["HTTP", "gRPC", "cause", "what to do"],
    Object.entries(statusOfReason).map(([name, status]) => {
      const reason = name as InferenceReason;
      const { cause = "", fix = "" } = reasons[reason] ?? {};
      return [String(status), codeSpan(grpcStatusOfReason[reason] ?? "as the code"), cause, fix];
    }),
  );
}

function signaturesTable(): string {
  return markdownTable(
    ["code", "cause", "what to do"],
    Object.entries(signatureCodes).map(([reason, names]) => {
      const { cause, fix } = signatures[reason as SignatureFailureReason];
      return [[...new Set(names)].map(codeSpan).join(", "), cause, fix];
    }),
  );
}
