import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("models/faulty.py", import.meta.url));

/** DO says what goes wrong; VALUE comes back as OUT, what there is to tell as TEXT. */
export const faultyConfig = `backend: "python"
max_batch_size: 0
input [
  { name: "DO" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "VALUE" data_type: TYPE_FP32 dims: [ -1 ] }
]
output [
  { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }
]
`;

/** Writes `<repository>/<name>` with models/faulty.py as its program, or `text` where that is given. */
export async function writeFaultyModel(
  repository: string,
  name: string,
  { more = "", text = null, config = faultyConfig }: { more?: string; text?: string | null; config?: string } = {},
): Promise<void> {
  const directory = join(repository, name);
  await mkdir(join(directory, "1"), { recursive: true });
  await writeFile(join(directory, "config.pbtxt"), config + more);
  if (text === null) await copyFile(program, join(directory, "1", "model.py"));
  else await writeFile(join(directory, "1", "model.py"), text);
}
