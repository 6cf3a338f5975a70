/** SageMaker's inference components: models whose copies share the instances of an endpoint. Each copy runs in its own container. */
export { ComponentCopies, copyFleetKey } from "./component-copies.ts";
export {
  componentFootprint,
  copiesFootprint,
  isComponentInTransition,
  nodeForCopies,
  type ComponentDeployment,
  type ComponentGoal,
  type ComponentRecord,
  type ComponentSpec,
  type ComponentState,
} from "./component-record.ts";
export {
  applyComponentEvent,
  nextComponentAction,
  type ComponentAction,
  type ComponentEvent,
} from "./component-state.ts";
export {
  addClaims,
  claimFits,
  noClaim,
  type ComponentClaim,
  type CopyNode,
  type PlacementStrategy,
  type SharedInstance,
} from "./placement.ts";
