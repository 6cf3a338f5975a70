/** Inference components: models with claims on shared instances, whose copies are placed by a pure function and run as containers of their own. */
export { ComponentCopies, copiesKey } from "./component-copies.ts";
export {
  componentFootprint,
  copiesFootprint,
  isMoving,
  copyNode,
  type ComponentDeployment,
  type ComponentGoal,
  type ComponentRecord,
  type ComponentSpec,
  type ComponentState,
} from "./component-record.ts";
export { moveComponent, nextComponentAction, type ComponentAction, type ComponentEvent } from "./component-state.ts";
export {
  claimSum,
  fits,
  noClaim,
  type ComponentClaim,
  type CopyNode,
  type PlacementStrategy,
  type SharedInstance,
} from "./placement.ts";
