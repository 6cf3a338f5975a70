import { ConfigReader } from "../config-reader.ts";
import { ConversionError } from "../conversion-error.ts";
import type { EncoderPlan } from "../encoder-plan.ts";
import { albertPlan } from "./albert.ts";
import { bertPlan, electraPlan, robertaPlan } from "./bert.ts";
import { distilbertPlan } from "./distilbert.ts";
import { mpnetPlan } from "./mpnet.ts";

const plans: ReadonlyMap<string, (architecture: string, config: ConfigReader) => EncoderPlan> = new Map([
  ["bert", bertPlan],
  ["roberta", robertaPlan],
  ["xlm-roberta", robertaPlan],
  ["camembert", robertaPlan],
  ["electra", electraPlan],
  ["distilbert", distilbertPlan],
  ["mpnet", mpnetPlan],
  ["albert", albertPlan],
]);

/** Returns the plan for a config.json. For an unknown encoder, throws ConversionError with the encoder's name. */
export function planEncoder(config: Readonly<Record<string, unknown>>): EncoderPlan {
  const { model_type: type } = config;
  const known = [...plans.keys()].join(", ");
  if (typeof type !== "string")
    throw new ConversionError(`config.json has no 'model_type'; encoders of these types can be converted: ${known}`);
  const read = plans.get(type);
  if (read === undefined)
    throw new ConversionError(`there is no graph for a model of type '${type.slice(0, 100)}'; there is for: ${known}`);
  const plan = read(type, new ConfigReader(config));
  if (plan.hiddenWidth % plan.headCount !== 0)
    throw new ConversionError(
      `config.json has ${plan.headCount} heads for a width of ${plan.hiddenWidth}, which they do not divide`,
    );
  if (plan.paddingId !== null && plan.paddingId + 2 >= plan.positionCount)
    throw new ConversionError(`config.json leaves no positions after that of the padding token, ${plan.paddingId}`);
  return plan;
}
