export { answer, type Answer } from './admission/answer.js';
export {
  keptFor,
  lineOfStanding,
  noCertificate,
  standingOf,
  type CertificateStanding,
} from './admission/certificate.js';
export { foresee } from './admission/foresight.js';
export { readReview, type AdmissionRequest, type RolloutRequest } from './admission/request.js';
export { reviewOf } from './admission/response.js';
export { answerSteering } from './admission/steering.js';
export { Wanted } from './admission/wanted.js';
export { ABSENT, contentsOf, type Contents } from './changes.js';
export { DEFINITIONS_TODO, NO_TROUBLE, troubleOf, type DefinitionTrouble } from './definitions.js';
export type { SeenDrain } from './drains.js';
export { toldBy, type Told } from './events.js';
export { decide, type Batch, type Decided, type Deed, type Timing } from './gateway.js';
export { FINALIZER, RETRY, type Condition, type Digest, type Heard, type Status } from './resource.js';
export { State, type RolloutResource } from './state.js';
