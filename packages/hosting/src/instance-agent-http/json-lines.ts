import type { Readable } from "node:stream";

/** Maximum bytes of a line. The longest event is the health of a container, which includes its last lines of output. */
const lineBytesMax = 4 * 2 ** 20;

/** Yields the JSON values of a body that has one on each line. Throws if a line is longer than 4 MiB. */
export async function* readJsonLines<Value>(body: Readable): AsyncGenerator<Value, void> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...rest, chunk.subarray(from, end)]).toString("utf8");
      rest = [];
      restBytes = 0;
      from = end + 1;
      yield JSON.parse(line) as Value;
    }
    rest.push(chunk.subarray(from));
    restBytes += chunk.length - from;
    if (restBytes > lineBytesMax) throw new Error(`a line of events has more than ${lineBytesMax} bytes`);
  }
}
