/**
 * A server of `node:http` that reads the requests of a platform and does nothing else: an invocation gets the text of
 * the first argument, uploads and metrics are dropped. It runs in its own process, prints its port, and ends with its
 * standard input.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const result = Buffer.from(process.argv[2] ?? "");
const xml = { "content-type": "application/xml" };

function reply({ method, url = "" }: IncomingMessage, response: ServerResponse): void {
  if (url.startsWith("/endpoints/")) {
    const headers = { "content-type": "application/json", "content-length": result.byteLength };
    response.writeHead(200, headers).end(result);
  } else if (method === "PUT") response.writeHead(200, { etag: '"of-nothing"' }).end();
  else if (url.includes("uploads")) {
    const id = "<UploadId>bare</UploadId>";
    response.writeHead(200, xml).end(`<InitiateMultipartUploadResult>${id}</InitiateMultipartUploadResult>`);
  } else if (url.includes("uploadId=")) {
    const tag = "<ETag>of-nothing</ETag>";
    response.writeHead(200, xml).end(`<CompleteMultipartUploadResult>${tag}</CompleteMultipartUploadResult>`);
  } else response.writeHead(200, { "content-type": "application/x-amz-json-1.0" }).end("{}");
}

const server = createServer((request, response) => {
  request.resume().once("end", () => reply(request, response));
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.resume().once("end", () => process.exit());
