/** Application Auto Scaling of endpoints' variants. */
export { autoscalingService } from "./service.ts";
