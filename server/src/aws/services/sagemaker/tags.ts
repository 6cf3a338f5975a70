import type {
  AddTagsCommandInput,
  DeleteTagsCommandInput,
  ListTagsCommandInput,
  Tag as TagInput,
} from "@aws-sdk/client-sagemaker";
import { invalid, notFound, parseHostingArn, type Hosting, type Tag } from "../../../hosting/index.ts";
import type { OperationHandlers } from "../../wire/index.ts";

const tagCountMax = 50;

export function tagOperations(hosting: Hosting): OperationHandlers {
  return {
    async AddTags(input: AddTagsCommandInput) {
      const arn = checkedArn(hosting, input.ResourceArn ?? "");
      await putTags(hosting, arn, input.Tags ?? []);
      return { Tags: hosting.tags.get(arn) ?? [] };
    },

    async ListTags(input: ListTagsCommandInput) {
      const arn = checkedArn(hosting, input.ResourceArn ?? "");
      return { Tags: hosting.tags.get(arn) ?? [] };
    },

    async DeleteTags(input: DeleteTagsCommandInput) {
      const arn = checkedArn(hosting, input.ResourceArn ?? "");
      const gone = new Set(input.TagKeys ?? []);
      const left = (hosting.tags.get(arn) ?? []).filter(({ Key }) => !gone.has(Key));
      await (left.length === 0 ? hosting.tags.delete(arn) : hosting.tags.put(arn, left));
      return {};
    },
  };
}

/** Adds to what is there; a key that is there takes the new value. */
export async function putTags(hosting: Hosting, arn: string, tags: readonly TagInput[]): Promise<void> {
  if (tags.length === 0) return;
  const merged = new Map((hosting.tags.get(arn) ?? []).map((tag) => [tag.Key, tag]));
  for (const { Key = "", Value = "" } of tags) merged.set(Key, { Key, Value } satisfies Tag);
  if (merged.size > tagCountMax) throw invalid(`A resource cannot have more than ${tagCountMax} tags.`);
  await hosting.tags.put(arn, [...merged.values()]);
}

function checkedArn(hosting: Hosting, arn: string): string {
  const parsed = parseHostingArn(arn);
  if (parsed === null) throw invalid(`Invalid ARN: ${arn}`);
  const { resource, key } = parsed;
  if (resource === "model") return hosting.models.get(key)?.arn ?? absent(notFound("model", arn));
  if (resource === "endpoint") return hosting.endpoints.get(key)?.arn ?? absent(notFound("endpoint", arn));
  return hosting.configs.get(key)?.arn ?? absent(notFound("endpoint configuration", arn));
}

function absent(error: Error): never {
  throw error;
}
