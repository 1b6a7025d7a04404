export { answerAdmission, rightsNeeded } from './admission/answer.js';
export type { PurposeRight } from './admission/purpose-rights.js';
export {
  keptCertificate,
  certificateLine,
  noCertificate,
  certificateStatusOf,
  type CertificateStatus,
} from './admission/certificate.js';
export { previewReview } from './admission/review-preview.js';
export { readReview, type AdmissionRequest, type RolloutRequest } from './admission/request.js';
export { reviewOf, type AdmissionAnswer } from './admission/response.js';
export { answerSteering } from './admission/rights.js';
export { DesiredState } from './admission/desired-state.js';
export { ABSENT, contentsOf, type Contents } from './changes.js';
export { DEFINITIONS_TODO, NO_TROUBLE, troubleOf, type DefinitionTrouble } from './definitions.js';
export type { ObservedDrain } from './drains.js';
export { eventsOf, type EventDraft } from './events.js';
export type { Batch, GatewayAction, Timing } from './gateway.js';
export { turn, type GatewayAnswers, type GatewayEffect } from './turn.js';
export {
  FINALIZER,
  RETRY,
  TAKE_OVER,
  type Condition,
  type Digest,
  type ObservedObject,
  type Status,
} from './resource.js';
export { State, type RolloutResource } from './state.js';
