import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { referencePages } from "./reference/pages.ts";
import { root } from "./source-tree.ts";

/** `npm run reference`: writes the pages of docs/reference from the tables in the code. `documents.test.ts` compares them. */
const folder = join(root, "docs/reference");
mkdirSync(folder, { recursive: true });
for (const [name, text] of await referencePages()) writeFileSync(join(folder, name), text);
