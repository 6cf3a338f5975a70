import { openEngineSubject } from "./engine-subject.contract.ts";
import { engineContract } from "./engine.contract.ts";

engineContract("the engine", openEngineSubject);
