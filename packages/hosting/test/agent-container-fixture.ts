import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** A container that implements the contract. The header `do` of an invocation controls its response. */
const program = `import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
const [socketPath, behaviour] = process.argv.slice(2);
process.on("SIGTERM", () => process.exit(0));
const loaded = new Set();
if (behaviour === "fail") {
  console.log("no such model");
  process.exit(3);
}
const text = (request, then) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk)).on("end", () => then(body));
};
createServer((request, response) => {
  const { method, url, headers } = request;
  if (url === "/ping") return response.writeHead(behaviour === "sick" ? 500 : 200).end();
  if (url === "/execution-parameters") return response.end("two at once");
  if (url === "/models" && method === "GET") {
    return response.end(JSON.stringify({ models: [...loaded].map((modelName) => ({ modelName })) }));
  }
  if (url === "/models") {
    return text(request, (body) => {
      const { model_name: name } = JSON.parse(body);
      console.log("loads " + name);
      loaded.add(name);
      response.setHeader("x-galatea-model-bytes", "1000000");
      response.end();
    });
  }
  const [, kind, id] = url.split("/");
  if (kind === "models" && method === "GET") return response.writeHead(loaded.has(id) ? 200 : 404).end();
  if (kind === "models" && method === "DELETE") return response.writeHead(loaded.delete(id) ? 200 : 404).end();
  if (kind === "models" && !loaded.has(id)) return request.resume().on("end", () => response.writeHead(404).end());
  switch (headers.do) {
    case "absent":
      return text(request, () => console.log("ran") || response.writeHead(404).end());
    case "vanish":
      setInterval(() => {}, 1000);
      request.socket.server.close();
      return text(request, () => response.setHeader("connection", "close").end());
    case "refuse":
      return text(request, () => response.writeHead(418, { "x-why": "tea" }).end("a teapot"));
    case "die":
      return text(request, () => process.exit(1));
    case "forget":
      return text(request, () => response.end(String(loaded.clear())));
    case "trickle": {
      const timer = setInterval(() => response.write("drop "), 2);
      return response.on("close", () => {
        clearInterval(timer);
        console.log("the caller disconnected");
      });
    }
    case "hold":
      return console.log("held");
    case "print":
      for (let line = 0; line < 200; line += 1) console.log("line " + line + " " + "x".repeat(1000));
      return text(request, () => response.end("printed"));
    default:
      response.writeHead(200, { "content-type": headers["content-type"] ?? "text/plain", "x-path": url });
      request.pipe(response);
  }
}).listen(socketPath);`;

/** Writes the container's program to a directory. Returns the path of the program. */
export function writeContainer(directory: string): string {
  const path = join(directory, "container.mjs");
  writeFileSync(path, program);
  return path;
}
